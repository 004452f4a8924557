/* Is an output right? Norms, bounds and the list of mismatches. */
#pragma once

#include "problem.h"

/* One output against the reference. The bounds are tied to the precision of the type and to the size of the terms that
 * were added (docs/math.md, "Rounding"); every test is written !(error <= bound), so that NaN fails. */
struct check {
    double err_rel, bound_rel; /* ||out - ref|| / ||ref||, or / ||size|| where that bound would be above 1 */
    double err_max, bound_max; /* largest absolute error */
    size_t wrong;              /* elements whose own error is over bound_max, NaN among them */
    size_t first_wrong[3];     /* their indices in the compared rows, the first few */
    double expected[3];        /* and the reference's values there */
    char where[240];           /* which elements are wrong, in words; "" where they follow no simple rule */
    double bias, bound_bias;   /* bias_of(), where it was looked at: in 16 bits; else 0 */
    double factor;             /* a wrong O or gradient is this times the reference, as far as its digits go; else NAN */
    bool vague;                /* rounding may be as large as all that is compared: the bound says nothing, and ok is false */
    bool ok;
};

/* How far rounding may carry a result computed in fp32, relative to its size: `term_size` is what the reference
 * returned, `terms` the longest sum (N_kv for the forward pass). */
double rounding_bound(double term_size, double terms);

/* The largest part that a tensor core may cut off a sum of `terms` products of 16-bit numbers, averaged over many sums that stay in its
 * accumulator. 0 for other types (docs/math/rounding.md, "What a tensor core cuts off"). */
double tensor_core_bound(enum dtype dtype, double terms);

/* O: count elements. A zero reference must be met by zeros. */
struct check check_values(const float *out, const double *ref, size_t count, double bound);

/* How far `out` is too small or too large as a whole: |<out - ref, ref>| / <ref, ref>. Rounding to nearest leaves nearly
 * nothing of it, truncation about half a unit of the type. */
double bias_of(const float *out, const double *ref, size_t count);

/* A gradient: count elements. `size` is that of the terms of each sum (reference_backward_rows()): where they cancel, as
 * for a row that attends to one key only, the error is relative to them and not to what is left. */
struct check check_gradient(const float *out, const double *ref, const double *size, size_t count, double bound);

/* L: a logarithm, so its error is absolute and does not grow with L: the bound applies to the root of the mean square, and up to four
 * times of it to one element. -inf must be met by -inf. */
struct check check_logsumexp(const float *out, const double *ref, size_t count, double bound);

/* Fill in check->where. `out` and `ref` hold the `count` rows of the tensor whose numbers `rows` lists. Each dimension of
 * which only a range, one residue class or one or two indices are wrong is named; what is said holds of all wrong elements. */
void describe_wrong(struct check *check, const struct problem *problem, enum tensor tensor, const size_t *rows, size_t count,
                    const float *out, const double *ref);

/* The index of the first NaN or infinity that is not allowed (L may be -inf), or count. */
size_t first_not_finite(const float *out, size_t count, bool allow_minus_infinity);
