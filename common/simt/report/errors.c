/* What errors are called. */
#include "report.h"

#define NAMES(error, number, text) {error, #error, text},
static const struct {
    cudaError_t error;
    const char *name, *text;
} error_texts[] = {SIMT_ERRORS(NAMES)};

const char *cudaGetErrorName(cudaError_t error) {
    for (size_t i = 0; i < sizeof error_texts / sizeof *error_texts; i++)
        if (error_texts[i].error == error) return error_texts[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
    for (size_t i = 0; i < sizeof error_texts / sizeof *error_texts; i++)
        if (error_texts[i].error == error) return error_texts[i].text;
    return "unrecognized error code";
}
