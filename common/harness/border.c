#include "border.h"

#include "variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- 16-bit floating-point numbers ------------------------------------------------------------------------------------- */

__extension__ typedef _Float16 half; /* the compiler's own IEEE binary16 */

double unit_roundoff(enum dtype dtype) {
    return dtype == FP32 ? 0x1p-24 : dtype == FP16 ? 0x1p-11 : dtype == BF16 ? 0x1p-8 : 0x1p-4;
}

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

float rounded_to(float value, enum dtype dtype) {
    return dtype == FP32 || dtype == FP8 ? value : unpacked(packed_as(value, dtype), dtype);
}

/* ---- 8-bit floating-point numbers -------------------------------------------------------------------------------------- */

float largest_fp8(enum fp8 format) { return format == E4M3 ? 448.0f : 57344.0f; }

/* Below 2^lowest numbers are 2^(lowest - fraction) apart. */
static int fraction_of(enum fp8 format) { return format == E4M3 ? 3 : 2; }
static int lowest_of(enum fp8 format) { return format == E4M3 ? -6 : -14; }

uint8_t fp8_of(float value, enum fp8 format) {
    uint8_t sign = signbit(value) ? 0x80 : 0;
    float size = fminf(fabsf(value), largest_fp8(format));
    int exponent = size > 0.0f ? ilogbf(size) : lowest_of(format);
    if (isnan(value)) return 0x7f;
    if (exponent < lowest_of(format)) exponent = lowest_of(format);
    int units = (int)rintf(ldexpf(size, fraction_of(format) - exponent)); /* may carry over to the exponent */
    return (uint8_t)(sign + ((exponent - lowest_of(format)) << fraction_of(format)) + units);
}

float of_fp8(uint8_t bits, enum fp8 format) {
    int fraction = fraction_of(format), field = (bits & 0x7f) >> fraction, units = bits & ((1 << fraction) - 1);
    if ((bits & 0x7f) > (format == E4M3 ? 0x7e : 0x7c)) return NAN;
    float size = (bits & 0x7f) == 0x7c && format == E5M2 ? INFINITY
                 : field == 0                            ? ldexpf((float)units, lowest_of(format) - fraction)
                              : ldexpf((float)(units + (1 << fraction)), lowest_of(format) - fraction + field - 1);
    return (bits & 0x80) != 0 ? -size : size;
}

static size_t rows_of(const struct problem *p, enum tensor tensor) {
    return (size_t)(tensor_table[tensor].per_key ? p->N_kv : p->N_q);
}

size_t scale_count(const struct problem *p, enum tensor tensor) {
    return (size_t)p->batch * tensor_heads(p, tensor) * (size_t)scale_blocks((int)rows_of(p, tensor));
}

static float scale_of(const float *values, size_t count, enum fp8 format) {
    float largest = 0.0f;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) largest = fmaxf(largest, fabsf(values[i]));
    return largest == 0.0f ? 1.0f : fmaxf(largest / largest_fp8(format), 0x1p-126f);
}

void quantise(const struct problem *p, enum tensor tensor, const float *values, uint8_t *bits, float *scales) {
    size_t N = rows_of(p, tensor), d = (size_t)p->d, blocks = (size_t)scale_blocks((int)N),
           heads = scale_count(p, tensor) / blocks;
    float scale = p->scales == OF_TENSOR ? scale_of(values, heads * N * d, p->fp8) : 0.0f;
    for (size_t head = 0; head < heads; head++) {
        if (p->scales == OF_HEAD) scale = scale_of(values + head * N * d, N * d, p->fp8);
        for (size_t block = 0; block < blocks; block++) {
            size_t first = block * SCALE_ROWS, last = first + SCALE_ROWS < N ? first + SCALE_ROWS : N;
            if (p->scales == OF_BLOCK) scale = scale_of(values + (head * N + first) * d, (last - first) * d, p->fp8);
            scales[head * blocks + block] = scale;
            for (size_t i = (head * N + first) * d; i < (head * N + last) * d; i++) bits[i] = fp8_of(values[i] / scale, p->fp8);
        }
    }
}

/* What the 8-bit numbers stand for. */
static void round_fp8(const struct problem *p, enum tensor tensor, float *values) {
    size_t N = rows_of(p, tensor), d = (size_t)p->d, blocks = (size_t)scale_blocks((int)N), count = tensor_elements(p, tensor);
    uint8_t *bits = host_memory(count, 1);
    float *scales = host_memory(scale_count(p, tensor), sizeof *scales);
    quantise(p, tensor, values, bits, scales);
    for (size_t i = 0; i < count; i++)
        values[i] = of_fp8(bits[i], p->fp8) * scales[i / d / N * blocks + i / d % N / SCALE_ROWS];
    free(bits), free(scales);
}

/* A row of Q or K as a step makes it that has `hadamard`: attention.h describes the signs and the order of the sums. */
static void multiply_hadamard(const struct problem *p, enum tensor tensor, float *row) {
    size_t d = (size_t)p->d, n = d & -d;
    for (size_t c = 0; c < d; c++) {
        uint32_t y = (uint32_t)(c + 1) * 0x9e3779b1u;
        row[c] = rounded_to(row[c], BF16) * ((y ^ y >> 15) * 0x85ebca77u >> 31 != 0 ? -1.0f : 1.0f);
    }
    for (size_t distance = 1; distance < n; distance *= 2)
        for (size_t c = 0; c < d; c++) {
            if ((c & distance) != 0) continue;
            float a = row[c], b = row[c + distance];
            row[c] = a + b, row[c + distance] = a - b;
        }
    for (size_t c = 0; c < d && tensor == TENSOR_Q; c++) row[c] /= (float)n;
}

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

float *as_seen(const struct problem *p, enum tensor tensor, const float *values) {
    size_t count = tensor_elements(p, tensor);
    float *result = host_memory(count, sizeof *result);
    if (p->rotary == NOT_ROTARY || tensor == TENSOR_V) {
        memcpy(result, values, count * sizeof *result);
        for (size_t i = 0; i < count && p->hadamard && p->dtype == FP8 && tensor != TENSOR_V; i += (size_t)p->d)
            multiply_hadamard(p, tensor, result + i);
        if (p->dtype == FP8) round_fp8(p, tensor, result);
        return result;
    }
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
