/* g++ leaves accesses to a local array without hooks where nothing takes the array's address: with -fsanitize=bounds it
 * compares each index with the array's size instead, and calls this function, which UBSan's library would define. */
#include "report.h"

/* What g++ lays out: GCC's libsanitizer/ubsan describes it. */
struct array_type {
    uint16_t kind, width_and_sign; /* of an integer type: 2 log2(bits) + whether it is signed */
    char name[];                   /* 'float [8]' with the quotes */
};
struct index_check {
    const char *file;
    uint32_t line, column;
    const struct array_type *array, *index;
};

_Noreturn void __ubsan_handle_out_of_bounds_abort(const struct index_check *check, uintptr_t index) {
    int unused = 64 - (1 << (check->index->width_and_sign >> 1)); /* an index of 128 bits is told as an address */
    intptr_t value = unused > 0 ? (intptr_t)(index << unused) >> unused : (intptr_t)index;
    if (simt_self != NULL)
        simt_fail(__builtin_return_address(0), cudaErrorIllegalAddress, "index %ld is out of bounds: the array is %s", value,
                  check->array->name);
    fprintf(stderr, "%s:%u: index %ld is out of bounds: the array is %s\n", check->file, check->line, value,
            check->array->name);
    exit(3);
}
