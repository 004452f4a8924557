#include "check.h"

#include <float.h>
#include <math.h>

/* A score s = scale q.k is off by about eps * term_size, and softmax turns an absolute error of a score into a relative
 * one of P; sums of `terms` numbers drift by eps sqrt(terms). The constants leave about a factor of four over what
 * correct kernels show, against the factor of a thousand and more of a wrong one. */
double rounding_bound(double term_size, double terms) {
    return (double)FLT_EPSILON * (8.0 + 2.0 * sqrt(terms) + 2.0 * term_size);
}

static void note_wrong(struct check *check, size_t i, double expected) {
    if (check->wrong < 3) {
        check->first_wrong[check->wrong] = i;
        check->expected[check->wrong] = expected;
    }
    check->wrong++;
}

/* The larger of two errors; a NaN is larger than all. */
static double worse(double a, double b) { return isnan(a) || a > b ? a : b; }

struct check check_values(const float *out, const double *ref, size_t count, double bound) {
    struct check check = {.bound_rel = bound};
    double error_squares = 0.0, squares = 0.0, largest = 0.0;
    for (size_t i = 0; i < count; i++)
        if (fabs(ref[i]) > largest) largest = fabs(ref[i]);
    check.bound_max = 4.0 * bound * largest;
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)out[i] - ref[i]);
        error_squares += error * error;
        squares += ref[i] * ref[i];
        check.err_max = worse(check.err_max, error);
        if (!(error <= check.bound_max)) note_wrong(&check, i, ref[i]);
    }
    check.err_rel = squares > 0.0 ? sqrt(error_squares / squares) : error_squares > 0.0 ? INFINITY : error_squares;
    check.ok = check.err_rel <= check.bound_rel && check.wrong == 0;
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

struct check check_gradient(const float *out, const double *ref, const double *size, size_t count, double bound) {
    struct check check = {0};
    double error_squares = 0.0, squares = 0.0, size_squares = 0.0, largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        squares += ref[i] * ref[i];
        size_squares += size[i] * size[i];
        largest = fmax(largest, fmax(fabs(ref[i]), size[i]));
    }
    /* What is left after the terms cancelled may be 0; it counts as a millionth of them then. */
    double norm = fmax(sqrt(squares), 1e-6 * sqrt(size_squares));
    check.bound_rel = norm > 0.0 ? bound * fmax(norm, sqrt(size_squares)) / norm : 0.0;
    check.bound_max = 4.0 * bound * largest;
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)out[i] - ref[i]);
        error_squares += error * error;
        check.err_max = worse(check.err_max, error);
        if (!(error <= check.bound_max)) note_wrong(&check, i, ref[i]);
    }
    check.err_rel = norm > 0.0 ? sqrt(error_squares) / norm : error_squares > 0.0 ? INFINITY : error_squares;
    check.ok = check.err_rel <= check.bound_rel && check.wrong == 0;
    return check;
}

struct check check_logsumexp(const float *out, const double *ref, size_t count, double bound) {
    struct check check = {.bound_rel = bound};
    double error_squares = 0.0, squares = 0.0, largest = 1.0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(ref[i]) && fabs(ref[i]) > largest) largest = fabs(ref[i]);
    check.bound_max = bound * largest;
    for (size_t i = 0; i < count; i++) {
        double error = isinf(ref[i]) && (double)out[i] == ref[i] ? 0.0 : fabs((double)out[i] - ref[i]);
        error_squares += error * error;
        squares += isfinite(ref[i]) ? ref[i] * ref[i] : 0.0;
        check.err_max = worse(check.err_max, error);
        if (!(error <= check.bound_max)) note_wrong(&check, i, ref[i]);
    }
    check.err_rel = squares > 0.0 ? sqrt(error_squares / squares) : error_squares > 0.0 ? INFINITY : error_squares;
    check.ok = check.wrong == 0; /* a relative error says little where L passes through zero */
    return check;
}

size_t first_not_finite(const float *out, size_t count, bool allow_minus_infinity) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(out[i]) && !(allow_minus_infinity && isinf(out[i]) && out[i] < 0.0f)) return i;
    return count;
}
