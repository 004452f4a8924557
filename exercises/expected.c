#include "grading.h"

#include <math.h>
#include <string.h>

/* Per head, Q is a matrix of N_q rows and d columns. */
enum tensor expected_of_warm_up(const char *id, const struct problem *p, const float *Q, double *values, double *size) {
    bool scaled = strcmp(id, "00a") == 0, reversed = strcmp(id, "00b") == 0, transposed = strcmp(id, "00c") == 0;
    bool sums = strcmp(id, "00d") == 0;
    if (!scaled && !reversed && !transposed && !sums) return TENSOR_COUNT;
    size_t heads = (size_t)p->batch * (size_t)p->heads, rows = (size_t)p->N_q, columns = (size_t)p->d;
    for (size_t head = 0; head < heads; head++) {
        for (size_t i = 0; i < rows; i++) {
            double sum = 0.0, squares = 0.0;
            for (size_t j = 0; j < columns; j++) {
                double q = (double)Q[(head * rows + i) * columns + j];
                size_t at = transposed ? j * rows + i : reversed ? (rows - 1 - i) * columns + j : i * columns + j;
                sum += q;
                squares += q * q;
                if (sums) continue;
                at += head * rows * columns;
                values[at] = scaled ? q * (double)p->scale : q;
                size[at] = fabs(values[at]);
            }
            if (!sums) continue;
            values[head * rows + i] = sum;
            size[head * rows + i] = sqrt(squares);
        }
    }
    return sums ? TENSOR_L : TENSOR_O;
}
