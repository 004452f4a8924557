#include "variants.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

unsigned variants_of(const struct problem *p) {
    return (p->windowed ? WINDOW : 0u) | (p->softcap != 0.0f ? SOFTCAP : 0u) | (p->alibi != NO_ALIBI ? ALIBI : 0u) |
           (p->dropout != 0.0f ? DROPOUT : 0u) | (p->rotary != NOT_ROTARY ? ROTARY : 0u) | (p->starts != NULL ? PACKED : 0u) |
           (p->pages != NULL || p->lengths != NULL ? PAGES : 0u);
}

const char *refusal(const char *format, ...) {
    static _Thread_local char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

const char *variants_refuse(const struct step *step, const struct problem *p) {
    static const char *const names[] = {"a window is", "softcap is",          "ALiBi is",
                                        "dropout is",  "rotary embedding is", "packed sequences (lengths without pages) are",
                                        "pages are"};
    unsigned variants = variants_of(p), missing = variants & ~step->variants;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((missing >> i & 1u) != 0) return refusal("%s not supported by this step", names[i]);
    if (p->windowed && (p->left < 0 || p->right < 0 || p->left > p->N_q + p->N_kv || p->right > p->N_q + p->N_kv))
        return refusal("window %d,%d is not supported: both must be from 0 to the number of queries and keys", p->left,
                       p->right);
    if (!(p->softcap >= 0.0f && isfinite(p->softcap)))
        return refusal("softcap %g is not supported: it must be above 0", (double)p->softcap);
    /* Softcap enlarges what rounding did to a product of Q and K by scale / softcap: a larger factor leaves no digit of a gradient. */
    if (p->softcap > 0.0f && !(p->softcap >= fabsf(p->scale) / 1024.0f))
        return refusal("softcap %g is not supported: with scale %g it must be at least scale / 1024, %g", (double)p->softcap,
                       (double)p->scale, fabs((double)p->scale) / 1024.0);
    if (!(p->dropout >= 0.0f && p->dropout < 1.0f))
        return refusal("dropout %g is not supported: it must be at least 0 and below 1", (double)p->dropout);
    if (p->rotary != NOT_ROTARY && p->d % 2 != 0) return refusal("rotary embedding needs an even head dimension, not %d", p->d);
    if ((variants & PACKED) != 0 && (variants & PAGES) != 0) return "packed sequences and pages are two things";
    if ((variants & PACKED) != 0) {
        if (p->batch != 1 || p->N_q != p->N_kv) return "packed sequences need batch 1 and as many keys as queries";
        if (p->sequences < 1 || p->longest < 0 || p->longest > p->N_q)
            return "packed sequences need a number and a longest one";
        if ((double)p->sequences * p->heads > MAX_BATCH_HEADS)
            return refusal("sequences x heads = %.0f is not supported: the largest is %d", (double)p->sequences * p->heads,
                           MAX_BATCH_HEADS);
    }
    if ((variants & PAGES) != 0) {
        int size = p->page_size;
        if (p->lengths == NULL) return "a cache in pages needs the length of each sequence";
        if (size < 16 || size > 256 || (size & (size - 1)) != 0)
            return refusal("pages of %d keys are not supported: it must be 16, 32, 64, 128 or 256", size);
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
    int sight = p->N_q + p->N_kv; /* what -1 became: no side has as many keys */
    ADD(p->windowed, ", window %d,%d", p->left == sight ? -1 : p->left, p->right == sight ? -1 : p->right);
    ADD(p->softcap > 0.0f, ", softcap %g", (double)p->softcap);
    ADD(p->alibi != NO_ALIBI, ", ALiBi%s", p->alibi == RELEASED_RULE ? " by the released rule" : "");
    ADD(p->dropout > 0.0f, ", dropout %g", (double)p->dropout);
    ADD(p->rotary != NOT_ROTARY, ", rotary %s", rotary[p->rotary]);
    ADD(p->starts != NULL, ", %d packed sequences", p->sequences);
    ADD(p->page_size > 0, ", pages of %d", p->page_size);
    ADD(p->fp8 == E5M2, ", e5m2");
    ADD(p->scales != OF_TENSOR, ", a scale per %s", p->scales == OF_HEAD ? "head" : "block");
#undef ADD
    return all;
}

const char *tables_refuse(const struct problem *p) {
    for (int s = 0; p->starts != NULL && s <= p->sequences; s++) {
        int least = s > 0 ? p->starts[s - 1] : 0, most = s == 0 ? 0 : s == p->sequences ? p->N_q : least + p->longest;
        if (s == p->sequences && least + p->longest < most)
            return refusal("the last sequence is longer than longest, %d", p->longest);
        if (p->starts[s] < least || p->starts[s] > most || (s == p->sequences && p->starts[s] != p->N_q))
            return refusal("starts[%d] is %d, of %d rows, after %d; the longest sequence is said to have %d", s, p->starts[s],
                           p->N_q, least, p->longest);
    }
    for (int b = 0; p->lengths != NULL && b < p->batch; b++) {
        if (p->lengths[b] < 0 || p->lengths[b] > p->N_kv)
            return refusal("lengths[%d] is %d, of %d keys", b, p->lengths[b], p->N_kv);
        for (int i = 0; i * p->page_size < p->lengths[b]; i++) {
            int page = p->pages[(size_t)b * (size_t)pages_per_sequence(p) + (size_t)i];
            if (page < 0 || page >= p->page_count)
                return refusal("page %d of sequence %d is %d, of %d pages", i, b, page, p->page_count);
        }
    }
    return NULL;
}

struct sight sight_within(const struct problem *problem, size_t batch, size_t head, size_t head_kv, long long i) {
    long long N_q = problem->N_q, N_kv = problem->N_kv, start = 0;
    struct sight sight = {.head = head};
    if (problem->lengths != NULL) N_kv = problem->lengths[batch];
    if (problem->starts != NULL) {
        while (i >= problem->starts[sight.sequence + 1]) sight.sequence++;
        start = problem->starts[sight.sequence];
        N_q = N_kv = problem->starts[sight.sequence + 1] - start;
    }
    sight.query = i - start;
    sight.position = sight.query + N_kv - N_q;
    long long first = 0, end = N_kv; /* eq. 7, and the window */
    if (problem->causal && end > sight.position + 1) end = sight.position + 1;
    if (problem->windowed && end > sight.position + problem->right + 1) end = sight.position + problem->right + 1;
    if (problem->windowed && first < sight.position - problem->left) first = sight.position - problem->left;
    sight.first = first;
    sight.keys = end > first ? (size_t)(end - first) : 0;
    sight.first_row = head_kv * (size_t)problem->N_kv + (size_t)(start + first);
    return sight;
}

struct sight sight_of_query(const struct problem *problem, size_t row) {
    size_t heads = (size_t)problem->heads, heads_kv = (size_t)kv_heads(problem), head = row / (size_t)problem->N_q,
           batch = head / heads;
    return sight_within(problem, batch, head, batch * heads_kv + head % heads / (heads / heads_kv),
                        (long long)(row % (size_t)problem->N_q));
}
