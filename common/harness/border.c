#include "border.h"

#include "variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- 16-bit floating-point numbers ------------------------------------------------------------------------------------- */

__extension__ typedef _Float16 half; /* the compiler's own IEEE binary16 */

double unit_roundoff(enum dtype dtype) { return dtype == FP32 ? 0x1p-24 : dtype == FP16 ? 0x1p-11 : 0x1p-8; }

uint16_t packed_as(float value, enum dtype dtype) {
    uint16_t packed;
    if (dtype == FP16) {
        half number = (half)value;
        memcpy(&packed, &number, sizeof packed);
        return packed;
    }
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40); /* rounding must not make an infinity of it */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float unpacked(uint16_t packed, enum dtype dtype) {
    if (dtype == FP16) {
        half number;
        memcpy(&number, &packed, sizeof number);
        return (float)number;
    }
    uint32_t bits = (uint32_t)packed << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float rounded_to(float value, enum dtype dtype) { return dtype == FP32 ? value : unpacked(packed_as(value, dtype), dtype); }

/* ---- rotary embedding ------------------------------------------------------------------------------------------------- */

/* The position of a row within its sequence. Query i stands at the position of key i + N_kv - N_q, and where sequences are
 * packed, at that of key i. */
static double position_of(const struct problem *p, enum tensor tensor, size_t row) {
    if (!tensor_table[tensor].per_key) return (double)sight_of_query(p, row).position;
    size_t key = row % (size_t)p->N_kv;
    return p->starts == NULL ? (double)key : (double)sight_within(p, 0, 0, 0, (long long)key).position;
}

void rotate_rows(const struct problem *p, enum tensor tensor, const size_t *rows, size_t count, double *values, bool back,
                 bool squares) {
    int pairs = p->rotary == NOT_ROTARY ? 0 : p->d / 2, step = p->rotary == HALVED ? pairs : 1;
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
    size_t count = tensor_elements(p, tensor);
    float *result = host_memory(count, sizeof *result);
    if (p->rotary == NOT_ROTARY) return memcpy(result, values, count * sizeof *result);
    double *turned = host_doubles(count);
    for (size_t i = 0; i < count; i++) turned[i] = (double)values[i];
    rotate_rows(p, tensor, NULL, tensor_rows(p, tensor), turned, false, false);
    for (size_t i = 0; i < count; i++) result[i] = rounded_to((float)turned[i], p->dtype);
    free(turned);
    return result;
}

/* ---- pages ------------------------------------------------------------------------------------------------------------- */

int *make_pages(struct problem *p, unsigned long long seed) {
    size_t each = (size_t)pages_per_sequence(p), entries = (size_t)p->batch * each;
    int *table = host_memory(entries, sizeof *table), used = 0;
    for (int b = 0; b < p->batch; b++) used += ceil_div(p->lengths[b], p->page_size);
    p->page_count = used + 3;
    int *order = host_memory((size_t)p->page_count, sizeof *order);
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
    float *pool = host_memory(count, sizeof *pool);
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
