/* What the simulated device's meter counts of one kernel, for files whose kernels have counts that are known exactly: from the
 * rules of a card's memory system, and from what an H100 was measured to do. A card has its own counters. */
#ifndef METER_TEST_H
#define METER_TEST_H

#include "device_test.h"

#include <cjson/cJSON.h>

static cJSON *counted; /* the JSON of the last measurement */

static inline void start(unsigned every) {
    cJSON_Delete(counted);
    counted = nullptr;
    simt_meter_start(every);
}

/* Ends the measurement and gives its only kernel. */
static inline const cJSON *finish() {
    EXPECT_OK(cudaDeviceSynchronize());
    simt_meter_stop();
    char *text = simt_meter_json();
    counted = cJSON_Parse(text);
    cr_assert_not_null(counted, "no JSON: %s", text);
    free(text);
    cr_assert_eq(cJSON_GetArraySize(counted), 1);
    return cJSON_GetArrayItem(counted, 0);
}

static inline double number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItem(object, name);
    cr_assert(cJSON_IsNumber(item), "no number \"%s\"", name);
    return item->valuedouble;
}

static inline void expect_number(const cJSON *object, const char *name, double expected, const char *what) {
    double got = number(object, name);
    cr_assert_eq(got, expected, "%s: %s is %.0f instead of %.0f", what, name, got, expected);
}

static inline void expect_total(const cJSON *kernel, const char *name, double expected, const char *what) {
    expect_number(cJSON_GetObjectItem(kernel, "totals"), name, expected, what);
}

/* The number of the line of the .cu file that ends in "// mark". */
static inline int line_of(const char *mark) {
    FILE *file = fopen(__BASE_FILE__, "r");
    cr_assert_not_null(file, "cannot read %s", __BASE_FILE__);
    char text[300], wanted[60];
    snprintf(wanted, sizeof wanted, "// %s\n", mark);
    int line = 0, found = 0;
    while (fgets(text, sizeof text, file) != nullptr && found == 0) {
        line++;
        if (strstr(text, wanted) != nullptr) found = line;
    }
    fclose(file);
    cr_assert_gt(found, 0, "no line is marked \"%s\"", mark);
    return found;
}

static inline bool says(const cJSON *object, const char *name, const char *words) {
    return strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(object, name)), words) == 0;
}

static inline void expect_this_file(const cJSON *line) {
    char name[60];
    snprintf(name, sizeof name, "tests%s", strrchr(__BASE_FILE__, '/'));
    cr_assert(says(line, "file", name), "a line that is not of %s", name);
}

/* What the JSON says of the accesses at a line: the only one of its kind there. */
static inline const cJSON *at_line(const cJSON *kernel, const char *mark, const char *space, const char *access) {
    const cJSON *line, *found = nullptr;
    cJSON_ArrayForEach(line, cJSON_GetObjectItem(kernel, "lines")) {
        if ((int)number(line, "line") != line_of(mark)) continue;
        if (!says(line, "space", space) || !says(line, "access", access)) continue;
        cr_assert_null(found, "two %s %ss at \"%s\"", space, access, mark);
        expect_this_file(line);
        found = line;
    }
    cr_assert_not_null(found, "no %s %s at \"%s\"", space, access, mark);
    return found;
}

#endif
