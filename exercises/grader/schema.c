#include "task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each member, or where `most` is above 0 a list of at least `least` and at most `most` of them. */
static const struct rule {
    unsigned of;
    const char *names, *expected;
    char type; /* s: string, n: number from `low` to `high`, b: true or false, p: pair of strings, o: object */
    bool needed;
    int least, most;
    double low, high;
    enum object object;
} rules[] = {
    {TASK | VARIANT, "budgets", "a list of at most 4 budgets", 'o', false, 0, 4, 0, 0, BUDGET},
    {TASK, "title", "a string", 's', true, 0, 0, 0, 0, 0},
    {TASK, "next kernel broken", "a string", 's', false, 0, 0, 0, 0, 0},
    {TASK, "pass", "fwd or bwd", 's', true, 0, 0, 0, 0, 0},
    {TASK, "points", "a list of 3 numbers from 0 to 1000", 'n', true, 3, 3, 0, 1000, 0},
    {TASK, "d_multiple d_most", "a number from 1 to 128", 'n', false, 0, 0, 1, 128, 0},
    {TASK, "holes", "a list of 1 to 4 holes", 'o', true, 1, 4, 0, 0, HOLE},
    {TASK, "left_out", "a list of at most 4 parts", 'o', false, 0, 4, 0, 0, HOLE},
    {TASK, "shapes", "a name of shapes.json, or a list of 1 to 16 problems", 'o', false, 1, 16, 0, 0, SHAPE},
    {TASK, "metered", "a problem", 'o', false, 0, 0, 0, 0, SHAPE},
    {TASK, "variants", "a list of at most 99 variants", 'o', false, 0, 99, 0, 0, VARIANT},
    {HOLE, "what", "a string", 's', true, 0, 0, 0, 0, 0},
    {HOLE, "from before", "a string", 's', false, 0, 0, 0, 0, 0},
    {HOLE, "hints", "a list of at most 3 strings", 's', false, 0, 3, 0, 0, 0},
    {HOLE, "starter", "a list of strings", 's', false, 0, 1000, 0, 0, 0},
    {SHAPE, "what", "a string", 's', true, 0, 0, 0, 0, 0},
    {SHAPE, "size", "[heads, N_q, N_kv, d], each from 1 to 4096", 'n', true, 4, 4, 1, 4096, 0},
    {SHAPE, "causal", "true or false", 'b', false, 0, 0, 0, 0, 0},
    {SHAPE, "heads_kv", "a number from 1 to 4096", 'n', false, 0, 0, 1, 4096, 0},
    {SHAPE, "window", "[left, right], each from 0 to 8192", 'n', false, 2, 2, 0, 8192, 0},
    {SHAPE, "scale", "a number", 'n', false, 0, 0, -1e6, 1e6, 0},
    {SHAPE, "input", "random, identity, large, example, outliers, sink or flat", 's', false, 0, 0, 0, 0, 0},
    {SHAPE, "dtype", "fp32, fp16 or bf16", 's', false, 0, 0, 0, 0, 0},
    {BUDGET, "count what naive_is", "a string", 's', true, 0, 0, 0, 0, 0},
    {BUDGET, "naive solution at_most", "a number from 0 on", 'n', true, 0, 0, 0, 1e15, 0},
    {BUDGET, "guard", "true or false", 'b', false, 0, 0, 0, 0, 0},
    {VARIANT, "replace", "a list of pairs of strings", 'p', false, 0, 1000, 0, 0, 0},
    {SHAPES, "forward backward", "a list of 1 to 16 problems", 'o', true, 1, 16, 0, 0, SHAPE},
    {SHAPES, "metered", "a list of one problem", 'o', true, 1, 1, 0, 0, SHAPE},
};

static bool one_fits(const cJSON *item, const struct rule *rule) {
    switch (rule->type) {
    case 's': /* a choice is named in what is expected */
        return cJSON_IsString(item) && (rule->expected[1] == ' ' || rule->most > 0 ||
                                        (*item->valuestring != '\0' && strstr(rule->expected, item->valuestring) != NULL));
    case 'n': return cJSON_IsNumber(item) && item->valuedouble >= rule->low && item->valuedouble <= rule->high;
    case 'b': return cJSON_IsBool(item);
    case 'p': return cJSON_GetArraySize(item) == 2 && cJSON_IsString(item->child) && cJSON_IsString(item->child->next);
    default: return cJSON_IsObject(item);
    }
}

static char *member_is_wrong(const cJSON *item, const char *name, const struct rule *rule) {
    int count = rule->most > 0 ? cJSON_GetArraySize(item) : 1, index = 0;
    bool fits = rule->most == 0 || (cJSON_IsArray(item) && count >= rule->least && count <= rule->most);
    char *text = NULL, *inner;
    if (strcmp(name, "shapes") == 0 && cJSON_IsString(item)) return NULL;
    for (const cJSON *each = rule->most > 0 && fits ? item->child : item; fits && index < count; each = each->next, index++) {
        fits = one_fits(each, rule);
        if (!fits) break; /* it may be NULL */
        inner = rule->type == 'o' ? what_is_wrong(each, rule->object) : NULL;
        if (inner == NULL) continue;
        if (asprintf(&text, "%s[%d].%s", name, index, inner) < 0) abort();
        free(inner);
        return text;
    }
    if (!fits && asprintf(&text, "%s: %s is expected", name, rule->expected) < 0) abort();
    return text;
}

char *what_is_wrong(const cJSON *json, enum object object) {
    if (!cJSON_IsObject(json)) return strdup("an object is expected");
    char *text = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char *names = strdup(rules[i].names), *rest = names, *name;
        while (text == NULL && (rules[i].of & object) != 0 && (name = strsep(&rest, " ")) != NULL) {
            const cJSON *item = cJSON_GetObjectItem(json, name);
            if (item != NULL || rules[i].needed) text = member_is_wrong(item, name, &rules[i]);
        }
        free(names);
    }
    return text;
}
