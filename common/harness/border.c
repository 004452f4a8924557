#include "border.h"

#include "dtype.h"
#include "reference.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *memory(size_t count, size_t size) {
    void *values = malloc((count > 0 ? count : 1) * size);
    if (values == NULL) abort();
    return values;
}

unsigned variants_of(const struct problem *p) {
    return (p->windowed ? WINDOW : 0u) | (p->softcap != 0.0f ? SOFTCAP : 0u) | (p->alibi ? ALIBI : 0u) |
           (p->dropout != 0.0f ? DROPOUT : 0u) | (p->rotary != NOT_ROTARY ? ROTARY : 0u) | (p->starts != NULL ? PACKED : 0u) |
           (p->pages != NULL || p->lengths != NULL ? PAGES : 0u);
}

static _Thread_local char text[200];
static const char *say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

const char *variants_refuse(const struct step *step, const struct problem *p) {
    static const char *const names[] = {"a window is",          "softcap is",          "ALiBi is",
                                        "dropout is",           "rotary embedding is", "packed sequences are",
                                        "pages and lengths are"};
    unsigned variants = variants_of(p), missing = variants & ~step->variants;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((missing >> i & 1u) != 0) return say("%s not supported by this step", names[i]);
    if (p->windowed && (p->left < 0 || p->right < 0 || p->left > p->N_q + p->N_kv || p->right > p->N_q + p->N_kv))
        return say("window %d,%d is not supported: both must be from 0 to the number of queries and keys", p->left, p->right);
    if (!(p->softcap >= 0.0f && isfinite(p->softcap)))
        return say("softcap %g is not supported: it must be above 0", (double)p->softcap);
    if (!(p->dropout >= 0.0f && p->dropout < 1.0f))
        return say("dropout %g is not supported: it must be at least 0 and below 1", (double)p->dropout);
    if (p->rotary != NOT_ROTARY && p->d % 2 != 0) return say("rotary embedding needs an even head dimension, not %d", p->d);
    if ((variants & PACKED) != 0 && (variants & PAGES) != 0) return "packed sequences and pages are two things";
    if ((variants & PACKED) != 0) {
        if (p->batch != 1 || p->N_q != p->N_kv) return "packed sequences need batch 1 and as many keys as queries";
        if (p->sequences < 1 || p->longest < 0 || p->longest > p->N_q)
            return "packed sequences need a number and a longest one";
        if ((double)p->sequences * p->heads > MAX_BATCH_HEADS)
            return say("sequences x heads = %.0f is not supported: the largest is %d", (double)p->sequences * p->heads,
                       MAX_BATCH_HEADS);
    }
    if ((variants & PAGES) != 0) {
        int size = p->page_size;
        if (p->lengths == NULL) return "a cache in pages needs the length of each sequence";
        if (size < 16 || size > 256 || (size & (size - 1)) != 0)
            return say("pages of %d keys are not supported: it must be 16, 32, 64, 128 or 256", size);
    }
    return NULL;
}

const char *variants_text(const struct problem *p) {
    static _Thread_local char all[160];
    const char *const rotary[] = {"", "interleaved", "halved"};
    size_t used = 0;
    all[0] = '\0';
#define ADD(condition, ...)                                                                                                    \
    if (condition) used += (size_t)snprintf(all + used, sizeof all - used, __VA_ARGS__)
    ADD(p->windowed, ", window %d,%d", p->left, p->right);
    ADD(p->softcap > 0.0f, ", softcap %g", (double)p->softcap);
    ADD(p->alibi, ", ALiBi");
    ADD(p->dropout > 0.0f, ", dropout %g", (double)p->dropout);
    ADD(p->rotary != NOT_ROTARY, ", rotary %s", rotary[p->rotary]);
    ADD(p->starts != NULL, ", %d packed sequences", p->sequences);
    ADD(p->pages != NULL, ", pages of %d", p->page_size);
#undef ADD
    return all;
}

const char *tables_refuse(const struct problem *p) {
    for (int s = 0; p->starts != NULL && s <= p->sequences; s++) {
        int least = s > 0 ? p->starts[s - 1] : 0, most = s == 0 ? 0 : s == p->sequences ? p->N_q : least + p->longest;
        if (s == p->sequences && least + p->longest < most)
            return say("the last sequence is longer than longest, %d", p->longest);
        if (p->starts[s] < least || p->starts[s] > most || (s == p->sequences && p->starts[s] != p->N_q))
            return say("starts[%d] is %d, of %d rows, after %d; the longest sequence is said to have %d", s, p->starts[s],
                       p->N_q, least, p->longest);
    }
    for (int b = 0; p->lengths != NULL && b < p->batch; b++) {
        if (p->lengths[b] < 0 || p->lengths[b] > p->N_kv)
            return say("lengths[%d] is %d, of %d keys", b, p->lengths[b], p->N_kv);
        for (int i = 0; i * p->page_size < p->lengths[b]; i++) {
            int page = p->pages[b * pages_per_sequence(p) + i];
            if (page < 0 || page >= p->page_count)
                return say("page %d of sequence %d is %d, of %d pages", i, b, page, p->page_count);
        }
    }
    return NULL;
}

/* ---- rotary embedding ------------------------------------------------------------------------------------------------- */

/* Of a row within its sequence; a query's is that of the key below it on the diagonal. */
static double position_of(const struct problem *p, enum tensor tensor, size_t row) {
    struct problem queries = *p; /* keys as queries: packed ones are alike, others count from 0 */
    if (!tensor_table[tensor].per_key) return (double)sight_of_query(p, row).position;
    if (p->starts == NULL) return (double)(row % (size_t)p->N_kv);
    queries.heads = kv_heads(p);
    queries.heads_kv = 0;
    return (double)sight_of_query(&queries, row).position;
}

void rotate_rows(const struct problem *p, enum tensor tensor, const size_t *rows, size_t count, double *values, bool back,
                 bool squares) {
    int pairs = p->d / 2, step = p->rotary == HALVED ? pairs : 1;
    for (size_t r = 0; r < count; r++) {
        double position = position_of(p, tensor, rows != NULL ? rows[r] : r);
        for (int c = 0; c < pairs; c++) {
            double angle = position * pow(10000, -2.0 * c / p->d), cosine = cos(angle), sine = back ? -sin(angle) : sin(angle);
            double *x = values + r * (size_t)p->d + (p->rotary == HALVED ? c : 2 * c), *y = x + step, a = *x, b = *y;
            *x = squares ? sqrt(a * a * cosine * cosine + b * b * sine * sine) : a * cosine - b * sine;
            *y = squares ? sqrt(a * a * sine * sine + b * b * cosine * cosine) : a * sine + b * cosine;
        }
    }
}

float *rotated(const struct problem *p, enum tensor tensor, const float *values) {
    if (p->rotary == NOT_ROTARY || (tensor != TENSOR_Q && tensor != TENSOR_K)) return NULL;
    size_t count = tensor_elements(p, tensor);
    double *turned = memory(count, sizeof *turned);
    float *result = memory(count, sizeof *result);
    for (size_t i = 0; i < count; i++) turned[i] = (double)values[i];
    rotate_rows(p, tensor, NULL, tensor_rows(p, tensor), turned, false, false);
    for (size_t i = 0; i < count; i++) result[i] = rounded_to((float)turned[i], p->dtype);
    free(turned);
    return result;
}

/* ---- pages ------------------------------------------------------------------------------------------------------------- */

int *make_pages(struct problem *p, unsigned long long seed) {
    size_t each = (size_t)pages_per_sequence(p), entries = (size_t)p->batch * each;
    int *table = memory(entries, sizeof *table), used = 0;
    for (int b = 0; b < p->batch; b++) used += ceil_div(p->lengths[b], p->page_size);
    p->page_count = used + 3;
    int *order = memory((size_t)p->page_count, sizeof *order);
    for (int i = 0; i < p->page_count; i++) { /* each order is as likely as any: Fisher and Yates */
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int j = (int)((seed >> 33) % (unsigned)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    used = 0;
    for (size_t i = 0; i < entries; i++)
        table[i] = (long long)(i % each) * p->page_size < p->lengths[i / each] ? order[used++] : -1;
    free(order);
    p->pages = table;
    return table;
}

float *in_pages(const struct problem *p, const float *values) {
    size_t d = (size_t)p->d, size = (size_t)p->page_size, heads = (size_t)kv_heads(p);
    size_t count = (size_t)p->page_count * heads * size * d;
    float *pool = memory(count, sizeof *pool);
    for (size_t i = 0; i < count; i++) pool[i] = NAN;
    for (size_t b = 0; b < (size_t)p->batch; b++)
        for (size_t j = 0; j < (size_t)p->lengths[b]; j++) {
            size_t page = (size_t)p->pages[b * (size_t)pages_per_sequence(p) + j / size];
            for (size_t h = 0; h < heads; h++)
                memcpy(pool + ((page * heads + h) * size + j % size) * d, values + ((b * heads + h) * (size_t)p->N_kv + j) * d,
                       d * sizeof *pool);
        }
    return pool;
}
