// What the explorer *Fragments* is compared with, as JSON: which elements each lane of a warp holds. Matrices whose elements are their own
// numbers, row by row, are loaded as the chapters load them; then mma.sync and ldmatrix say who holds what.
#include <stdio.h>

#include "tensor.cuh"

static const struct operand {
    const char *name;
    int rows, columns, per_lane, each; // elements; each: of a register
} operands[] = {{"A", 16, 16, 8, 2},
                {"B", 16, 8, 4, 2},
                {"C", 16, 8, 4, 1},
                {"ldmatrix.x4", 32, 8, 8, 2},
                {"ldmatrix.x2", 16, 8, 4, 2},
                {"ldmatrix.x1", 8, 8, 2, 2},
                {"ldmatrix.x4.trans", 32, 8, 8, 2},
                {"ldmatrix.x2.trans", 16, 8, 4, 2},
                {"ldmatrix.x1.trans", 8, 8, 2, 2}};
constexpr int OPERANDS = sizeof operands / sizeof *operands;

static __managed__ int held[OPERANDS][WARP][8]; // numbers of elements, register by register
static __managed__ float product[16 * 8];       // A B, as C holds it

static __global__ void hold() {
    __shared__ __align__(16) __half numbers[16 * 16], identity[16 * 16]; // of a B its columns are the rows here
    __shared__ __align__(16) uint16_t row[WARP][8];                      // that each lane names
    int lane = threadIdx.x;
    for (int i = lane; i < 16 * 16; i += WARP) {
        numbers[i] = (__half)(float)i;
        identity[i] = (__half)(i % 17 == 0 ? 1.0f : 0.0f);
        row[i / 8][i % 8] = (uint16_t)i;
    }
    __syncthreads(); // the matrices are complete before any lane reads them
    uint32_t A[4], B[4], one[4], loaded[6][4] = {};
    float C[4] = {}, A_B[4] = {};
    gather_k<16>(A, numbers);
    gather_n<16>(B, numbers);
    gather_n<16>(one, identity);
    mma_m16n8k16<__half>(C, A, one[0], one[1]);
    mma_m16n8k16<__half>(A_B, A, B[0], B[1]);
    ldmatrix_x4(loaded[0], row[lane]);
    ldmatrix_x2(*(uint32_t(*)[2])loaded[1], row[lane]);
    ldmatrix_x1(*(uint32_t(*)[1])loaded[2], row[lane]);
    ldmatrix_x4_trans(loaded[3], row[lane]);
    ldmatrix_x2_trans(*(uint32_t(*)[2])loaded[4], row[lane]);
    ldmatrix_x1_trans(*(uint32_t(*)[1])loaded[5], row[lane]);
    for (int i = 0; i < 8; i++) {
        int in_B = (int)(float)((const __half *)B)[i];
        held[0][lane][i] = (int)(float)((const __half *)A)[i];
        held[1][lane][i] = in_B % 16 * 8 + in_B / 16;
        for (int form = 0; form < 6; form++) held[3 + form][lane][i] = ((const uint16_t *)loaded[form])[i];
    }
    for (int i = 0; i < 4; i++) {
        held[2][lane][i] = (int)C[i] / 16 * 8 + (int)C[i] % 16;
        product[held[2][lane][i]] = A_B[i];
    }
}

int main() {
    hold<<<1, WARP>>>();
    if (cudaDeviceSynchronize() != cudaSuccess) return 3;
    for (int i = 0; i < 16 * 8; i++) { // the product is right, so A, B and C are held where mma.sync expects them
        float sum = 0.0f;
        for (int k = 0; k < 16; k++) sum += (float)((i / 8 * 16 + k) * (i % 8 * 16 + k));
        if (product[i] != sum) return fprintf(stderr, "fragments.cu: the product's element %d is wrong\n", i), 1;
    }
    for (const operand &o : operands) {
        printf("%c\"%s\":{\"rows\":%d,\"columns\":%d,\"each\":%d,\"held\":[", &o == operands ? '{' : ',', o.name,
               o.rows, o.columns, o.each);
        for (int i = 0; i < WARP * o.per_lane; i++)
            printf("%s%d", i > 0 ? "," : "", held[&o - operands][i / o.per_lane][i % o.per_lane]);
        printf("]}");
    }
    printf("}\n");
    return 0;
}
