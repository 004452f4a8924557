/* What task.json and shapes.json must look like, so that whoever reads them finds what is expected. */
#ifndef SCHEMA_H
#define SCHEMA_H

#include <cjson/cJSON.h>

enum object { TASK, HOLE, SHAPE, BUDGET, VARIANT, SHAPES };

/* NULL, or the first member that is not as it must be and what is expected: the caller's to free. */
char *what_is_wrong(const cJSON *json, enum object object);

#endif
