#include "check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A score s = scale q.k is off by about eps * term_size, and softmax turns an absolute error of a score into a relative
 * one of P; sums of `terms` numbers drift by eps sqrt(terms). The constants leave about a factor of four over what
 * correct kernels show, against the factor of a thousand and more of a wrong one. */
double rounding_bound(double term_size, double terms) {
    return (double)FLT_EPSILON * (8.0 + 2.0 * sqrt(terms) + 2.0 * term_size);
}

double tensor_core_bound(enum dtype dtype, double terms) {
    return dtype == BF16 || dtype == FP16 ? 0.7 * (double)FLT_EPSILON / 2.0 * terms / 16.0 : 0.0;
}

/* -inf that meets -inf is right. */
static double error_of(float out, double ref) { return (double)out == ref ? 0.0 : fabs((double)out - ref); }

/* The larger of two errors; a NaN is larger than all. */
static double worse(double a, double b) { return isnan(a) || a > b ? a : b; }

/* Element by element; err_rel is relative to `norm`. */
static void compare(struct check *check, const float *out, const double *ref, size_t count, double norm) {
    double squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        double error = error_of(out[i], ref[i]);
        squares += error * error;
        check->err_max = worse(check->err_max, error);
        if (!(error <= check->bound_max) && check->wrong++ < 3)
            check->first_wrong[check->wrong - 1] = i, check->expected[check->wrong - 1] = ref[i];
    }
    check->err_rel = norm > 0.0 ? sqrt(squares) / norm : squares > 0.0 ? INFINITY : squares;
}

/* c where out is c times ref, c not 1; else NAN. */
static double factor_of(const float *out, const double *ref, size_t count, double tolerance) {
    double along = 0.0, squares = 0.0, rest = 0.0;
    for (size_t i = 0; i < count; i++) along += (double)out[i] * ref[i], squares += ref[i] * ref[i];
    double c = along / squares;
    for (size_t i = 0; i < count; i++) rest += pow((double)out[i] - c * ref[i], 2);
    return count > 4 && sqrt(rest) <= tolerance * fabs(c) * sqrt(squares) && fabs(c - 1.0) > 0.03 ? c : NAN;
}

/* `size` NULL: no terms cancel. */
struct check check_gradient(const float *out, const double *ref, const double *size, size_t count, double bound) {
    double squares = 0.0, size_squares = 0.0, largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        double own_size = size != NULL ? size[i] : 0.0;
        squares += ref[i] * ref[i];
        size_squares += own_size * own_size;
        largest = fmax(largest, fmax(fabs(ref[i]), own_size));
    }
    /* Where rounding may be as large as what is left after the terms cancelled, the error is relative to the terms. */
    double norm = sqrt(squares), terms = fmax(norm, sqrt(size_squares));
    if (bound * terms > norm) norm = terms;
    struct check check = {.bound_rel = norm > 0.0 ? bound * terms / norm : 0.0, .bound_max = 4.0 * bound * largest};
    compare(&check, out, ref, count, norm);
    check.vague = !(4.0 * bound <= 1.0);
    check.ok = check.err_rel <= check.bound_rel && check.wrong == 0 && !check.vague;
    check.factor = check.ok || check.vague ? NAN : factor_of(out, ref, count, fmax(1e-4, bound));
    return check;
}

struct check check_values(const float *out, const double *ref, size_t count, double bound) {
    return check_gradient(out, ref, NULL, count, bound);
}

struct check check_logsumexp(const float *out, const double *ref, size_t count, double bound) {
    double squares = 0.0, largest = 1.0, finite = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(ref[i])) continue;
        squares += ref[i] * ref[i], finite += 1.0;
        largest = fmax(largest, fabs(ref[i]));
    }
    double norm = sqrt(fmax(squares, finite)); /* L may pass through zero */
    struct check check = {.bound_max = bound * fmin(largest, 4.0), .factor = NAN};
    check.bound_rel = norm > 0.0 ? bound * sqrt(finite) / norm : 0.0;
    compare(&check, out, ref, count, norm);
    check.vague = !(check.bound_max <= 1.0);
    check.ok = check.err_rel <= check.bound_rel && check.wrong == 0 && !check.vague;
    return check;
}

double bias_of(const float *out, const double *ref, size_t count) {
    double product = 0.0, squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        product += ((double)out[i] - ref[i]) * ref[i];
        squares += ref[i] * ref[i];
    }
    return squares > 0.0 ? fabs(product) / squares : 0.0;
}

size_t first_not_finite(const float *out, size_t count, bool allow_minus_infinity) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(out[i]) && !(allow_minus_infinity && isinf(out[i]) && out[i] < 0.0f)) return i;
    return count;
}

/* ---- which elements are wrong ---- */

enum { COMPARED = 1, WRONG = 2 };

struct dimension {
    const char *one, *many;
    size_t size;
    unsigned char *seen; /* of each index: COMPARED, WRONG or both */
};

static size_t gcd(size_t a, size_t b) { return b == 0 ? a : gcd(b, a % b); }

/* Append which indices are wrong; nothing where all are, or where they are scattered. */
static void describe_indices(const struct dimension *dimension, char *text, size_t room) {
    size_t first = 0, last = 0, step = 0, wrong = 0, compared = 0, right_between = 0, right_on_steps = 0;
    for (size_t i = 0; i < dimension->size; i++) {
        compared += dimension->seen[i] != 0;
        if ((dimension->seen[i] & WRONG) == 0) continue;
        if (wrong++ == 0) first = i;
        step = gcd(i - first, step);
        last = i;
    }
    if (wrong == compared) return;
    for (size_t i = first; i <= last; i++) {
        right_between += dimension->seen[i] == COMPARED;
        right_on_steps += dimension->seen[i] == COMPARED && (i - first) % step == 0;
    }
    size_t length = strlen(text);
    const char *many = dimension->many;
    text += length, room -= length;
    if (wrong == 1)
        snprintf(text, room, ", %s %zu", dimension->one, first);
    else if (right_between == 0)
        snprintf(text, room, ", %s %zu to %zu", many, first, last);
    else if (wrong == 2)
        snprintf(text, room, ", %s %zu and %zu", many, first, last);
    else if (right_on_steps == 0 && step == 2)
        snprintf(text, room, ", %s %s from %zu to %zu", first % 2 == 0 ? "even" : "odd", many, first, last);
    else if (right_on_steps == 0 && step > 2)
        snprintf(text, room, ", %s %zu, %zu, ..., %zu", many, first, first + step, last);
}

void describe_wrong(struct check *check, const struct problem *problem, enum tensor tensor, const size_t *rows, size_t count,
                    const float *out, const double *ref) {
    size_t columns = tensor_columns(problem, tensor), H = tensor_heads(problem, tensor), heads = (size_t)problem->batch * H;
    size_t N = tensor_rows(problem, tensor) / heads, total = 0;
    const char *those = count == heads * N ? "" : " compared";
    if (check->wrong == 0) return;
    if (check->wrong <= 3 || check->wrong == count * columns) {
        snprintf(check->where, sizeof check->where, "%s element%s is wrong", check->wrong <= 3 ? "no other" : "every", those);
        return;
    }
    enum { BATCH, HEAD, ROW, COLUMN, EACH_HEAD, DIMENSIONS };
    struct dimension dimensions[DIMENSIONS] = {{"batch", "batches", heads / H, NULL},
                                               {"head", "heads", H, NULL},
                                               {"row", "rows", N, NULL},
                                               {"column", "columns", columns, NULL},
                                               {"", "", heads, NULL}};
    for (int k = 0; k < DIMENSIONS; k++) total += dimensions[k].size;
    unsigned char *seen = calloc(total, 1);
    if (seen == NULL) return;
    for (size_t k = 0, start = 0; k < DIMENSIONS; start += dimensions[k++].size) dimensions[k].seen = seen + start;
    for (size_t i = 0; i < count * columns; i++) {
        size_t number = rows[i / columns], head = number / N;
        size_t index[DIMENSIONS] = {head / H, head % H, number % N, i % columns, head};
        bool right = error_of(out[i], ref[i]) <= check->bound_max;
        for (int k = 0; k < DIMENSIONS; k++) dimensions[k].seen[index[k]] |= right ? COMPARED : COMPARED | WRONG;
    }
    char text[180] = "";
    bool of_every = heads > 1;
    for (int k = 0; k < EACH_HEAD; k++) describe_indices(&dimensions[k], text, sizeof text);
    for (size_t i = 0; i < heads; i++) of_every = of_every && (dimensions[EACH_HEAD].seen[i] & WRONG) != 0;
    if (text[0] != '\0')
        snprintf(check->where, sizeof check->where, "all wrong elements%s lie in%s%s", those, text + 1,
                 of_every ? " of every head" : "");
    free(seen);
}
