/* What the meter counted, in words: as JSON, as a table by source line, and in the margin of the source. */
#include "counts.h"
#include "report.h"

const char *const space_names[MEMORY_SPACES] = {"global", "shared", "local"};
const char *const kind_names[ACCESS_KINDS] = {"load", "store", "atomic", "copy", "ldmatrix"};

/* A site with its source line, ready to be shown. */
struct line {
    char *file; /* "steps/01_naive/naive.cu:31" until it is cut at the colon */
    int number;
    const struct site *site;
};

static int by_address(const void *a, const void *b) {
    uintptr_t one = (uintptr_t)((const struct basic_block *)a)->pc, other = (uintptr_t)((const struct basic_block *)b)->pc;
    return (one > other) - (one < other);
}

static int by_place(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    int files = strcmp(x->file, y->file);
    if (files != 0) return files;
    if (x->number != y->number) return x->number - y->number;
    return (x->site->pc > y->site->pc) - (x->site->pc < y->site->pc);
}

static struct line *lines_of(const struct kernel *kernel, int *count) {
    struct line *lines = resize_or_die(NULL, SITE_TABLE * sizeof *lines);
    *count = 0;
    for (const struct site *site = kernel->meter->sites; site < kernel->meter->sites + SITE_TABLE; site++) {
        if (site->pc == NULL) continue;
        char *file = source_line_alone(site->pc), *colon = strrchr(file, ':');
        lines[(*count)++] = (struct line){file, colon != NULL ? atoi(colon + 1) : 0, site};
        if (colon != NULL) *colon = '\0';
    }
    qsort(lines, (size_t)*count, sizeof *lines, by_place);
    return lines;
}

static void free_lines(struct line *lines, int count) {
    for (int i = 0; i < count; i++) free(lines[i].file);
    free(lines);
}

static void add_count(cJSON *object, const char *name, uint64_t value) { cJSON_AddNumberToObject(object, name, (double)value); }

static void add_named(cJSON *object, const char *space, const char *access, const char *what, uint64_t value) {
    char name[60];
    snprintf(name, sizeof name, "%s_%s_%s", space, access, what);
    add_count(object, name, value);
}

static bool has_tensor_traffic(const struct meter *meter) {
    return meter->tensor_requests[TENSOR_LOAD] + meter->tensor_requests[TENSOR_STORE] +
               meter->tensor_requests[TENSOR_REDUCTION] >
           0;
}

/* Of a kernel with Hopper's instructions. */
static void add_hopper(cJSON *totals, const struct meter *meter) {
    static const char *const names[] = {"load", "store", "reduction"};
    for (int i = 0; i < TENSOR_TRAFFIC && has_tensor_traffic(meter); i++) {
        if (i == TENSOR_REDUCTION && meter->tensor_requests[i] == 0) continue;
        add_named(totals, "global_tensor", names[i], "requests", meter->tensor_requests[i]);
        add_named(totals, "global_tensor", names[i], "sectors", meter->tensor_sectors[i]);
    }
    if (meter->products == 0) return;
    add_count(totals, "shared_product_requests", meter->products);
    add_count(totals, "shared_product_wavefronts", meter->product_wavefronts);
}

static cJSON *json_of_totals(const struct kernel *kernel) {
    uint64_t requests[MEMORY_SPACES][ACCESS_KINDS] = {0}, sectors[ACCESS_KINDS] = {0}, wavefronts[ACCESS_KINDS] = {0},
             conflicts[ACCESS_KINDS] = {0};
    for (const struct site *site = kernel->meter->sites; site < kernel->meter->sites + SITE_TABLE; site++) {
        requests[site->space][site->kind] += site->requests;
        sectors[site->kind] += site->sectors;
        wavefronts[site->kind] += site->wavefronts;
        conflicts[site->kind] += site->wavefronts - site->least_wavefronts;
    }
    cJSON *object = cJSON_CreateObject();
    for (int kind = 0; kind < ACCESS_KINDS; kind++) {
        for (int space = 0; space < MEMORY_SPACES; space++)
            if (kind != ACCESS_LDMATRIX || space == SPACE_SHARED)
                add_named(object, space_names[space], kind_names[kind], "requests", requests[space][kind]);
        if (kind != ACCESS_LDMATRIX) add_named(object, "global", kind_names[kind], "sectors", sectors[kind]);
        add_named(object, "shared", kind_names[kind], "wavefronts", wavefronts[kind]);
        add_named(object, "shared", kind_names[kind], "conflicts", conflicts[kind]);
    }
    add_hopper(object, kernel->meter);
    return object;
}

static cJSON *json_of_line(const struct line *line) {
    const struct site *site = line->site;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "file", line->file);
    cJSON_AddNumberToObject(object, "line", line->number);
    cJSON_AddStringToObject(object, "space", space_names[site->space]);
    cJSON_AddStringToObject(object, "access", kind_names[site->kind]);
    add_count(object, "bytes_a_lane", site->bytes);
    add_count(object, "requests", site->requests);
    add_count(object, "lanes", site->lanes);
    add_count(object, "partial_requests", site->partial);
    add_count(object, "bytes", site->lanes * site->bytes);
    if (site->space == SPACE_GLOBAL) add_count(object, "sectors", site->sectors);
    if (site->space == SPACE_SHARED || site->kind == ACCESS_COPY) { /* of a copy: what it writes */
        add_count(object, "wavefronts", site->wavefronts);
        add_count(object, "conflicts", site->wavefronts - site->least_wavefronts);
    }
    if (site->space == SPACE_LOCAL) return object;
    /* One request as an example: each lane's address, relative to the lowest sector or to shared memory's start. */
    cJSON *sample = cJSON_AddObjectToObject(object, "sample");
    uintptr_t base = site->space == SPACE_GLOBAL ? lowest_of_sample(site) / 128 * 128 : 0;
    cJSON_AddStringToObject(sample, "lowest", site->sample_names[0]);
    cJSON_AddStringToObject(sample, "highest", site->sample_names[1]);
    cJSON *addresses = cJSON_AddArrayToObject(sample, "addresses");
    for (unsigned lane = 0; lane < WARP_SIZE; lane++)
        cJSON_AddItemToArray(addresses, (site->sample_lanes >> lane & 1) != 0
                                            ? cJSON_CreateNumber((double)(site->sample[lane] - base))
                                            : cJSON_CreateNull());
    return object;
}

cJSON *json_of_index(struct uint3 index) { return cJSON_CreateIntArray((int[]){XYZ(index)}, 3); }

char *simt_meter_json(void) {
    cJSON *list = cJSON_CreateArray();
    for (unsigned k = 0; k < simt_kernel_count; k++) {
        const struct kernel *kernel = &simt_kernels[k];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "kernel", kernel->name);
        cJSON_AddItemToObject(object, "grid", json_of_index(kernel->grid));
        cJSON_AddItemToObject(object, "block", json_of_index(kernel->block));
        add_count(object, "launches", kernel->launches);
        add_count(object, "blocks", kernel->blocks);
        add_count(object, "metered_blocks", kernel->metered_blocks);
        add_count(object, "shared_bytes_per_block", kernel->meter->shared_bytes);
        add_count(object, "barriers", kernel->meter->barriers);
        add_count(object, "warp_collectives", kernel->meter->collectives);
        add_count(object, "barrier_phases", kernel->meter->barrier_phases);
        add_count(object, "flag_accesses", kernel->meter->flag_accesses);
        add_count(object, "busiest_warp_requests", kernel->meter->busiest_warp_requests);
        add_count(object, "basic_blocks", kernel->meter->basic_blocks);
        add_count(object, "async_copies", kernel->meter->copies);
        add_count(object, "accesses_during_async_copies", kernel->meter->copy_accesses);
        add_count(object, "different_bytes_read", 4 * kernel->words_read);
        add_count(object, "different_bytes_written", 4 * kernel->words_written);
        cJSON *blocks = cJSON_AddArrayToObject(object, "basic_block_counts"); /* address in the program, times entered */
        struct basic_block *sorted = resize_or_die(NULL, sizeof kernel->meter->blocks);
        memcpy(sorted, kernel->meter->blocks, sizeof kernel->meter->blocks);
        qsort(sorted, BLOCK_TABLE, sizeof *sorted,
              by_address); /* two that share a place stand in the order of their first entry */
        for (int i = 0; i < BLOCK_TABLE; i++) {
            if (sorted[i].pc == NULL) continue;
            cJSON_AddItemToArray(blocks, cJSON_CreateNumber(relative_pc(sorted[i].pc)));
            cJSON_AddItemToArray(blocks, cJSON_CreateNumber((double)sorted[i].entered));
        }
        free(sorted);
        cJSON_AddItemToObject(object, "totals", json_of_totals(kernel));
        int count;
        struct line *lines = lines_of(kernel, &count);
        cJSON *json_lines = cJSON_AddArrayToObject(object, "lines");
        for (int i = 0; i < count; i++) cJSON_AddItemToArray(json_lines, json_of_line(&lines[i]));
        free_lines(lines, count);
        cJSON *events = cJSON_AddArrayToObject(object, "events");
        for (unsigned i = 0; i < kernel->meter->event_count; i++) {
            const struct event *event = &kernel->meter->events[i];
            cJSON *json_event = cJSON_CreateObject();
            cJSON_AddStringToObject(json_event, "what", event->what);
            cJSON_AddStringToObject(json_event, "file", event->file);
            cJSON_AddNumberToObject(json_event, "line", event->line);
            add_count(json_event, "count", event->count);
            cJSON_AddItemToArray(events, json_event);
        }
        cJSON_AddItemToArray(list, object);
    }
    char *text = cJSON_PrintUnformatted(list);
    cJSON_Delete(list);
    return text;
}

/* The least that the same bytes can cost: sectors used whole, wavefronts without conflicts. */
static double least_cost(const struct site *site) {
    if (site->space == SPACE_SHARED) return (double)site->least_wavefronts;
    return (double)(site->lanes * site->bytes) / SECTOR;
}

static double cost(const struct site *site) { return (double)(site->space == SPACE_SHARED ? site->wavefronts : site->sectors); }

/* What a site wastes, in sectors or wavefronts; a broadcast, which uses less than a sector, wastes nothing. */
static double waste(const struct site *site) {
    if (site->space == SPACE_LOCAL) return 0.0;
    double least = least_cost(site) > (double)site->requests ? least_cost(site) : (double)site->requests;
    return cost(site) - least;
}

static bool is_worst(const struct line *lines, int count, int i) {
    double worst = 0.0;
    for (int j = 0; j < count; j++)
        if (lines[j].site->space == lines[i].site->space && waste(lines[j].site) > worst) worst = waste(lines[j].site);
    /* No mark for a small part: rows that begin within a sector cost as much. */
    return waste(lines[i].site) > 0.5 * worst && waste(lines[i].site) > 0.15 * cost(lines[i].site);
}

static void print_kernel_heading(FILE *out, const struct kernel *kernel) {
    fprintf(out, "%s<<<(%u,%u,%u), (%u,%u,%u)>>>", kernel->name, XYZ(kernel->grid), XYZ(kernel->block));
    if (kernel->launches > 1) fprintf(out, ", %lu launches", kernel->launches);
    if (kernel->metered_blocks < kernel->blocks)
        fprintf(out, ": counts of %lu of its %lu blocks\n", kernel->metered_blocks, kernel->blocks);
    else
        fprintf(out, ": all %lu blocks\n", kernel->blocks);
    fprintf(out, "  different bytes of device memory: %lu read, %lu written\n", 4 * kernel->words_read,
            4 * kernel->words_written);
    const struct meter *meter = kernel->meter;
    if (meter->copies > 0)
        fprintf(out, "  asynchronous copies: %.1f accesses by a thread between the issue of its copy and the wait for it\n",
                (double)meter->copy_accesses / (double)meter->copies);
    if (has_tensor_traffic(meter))
        fprintf(out, "  boxes of tensors: %lu loaded, %lu sectors; %lu stored, %lu sectors\n",
                meter->tensor_requests[TENSOR_LOAD], meter->tensor_sectors[TENSOR_LOAD], meter->tensor_requests[TENSOR_STORE],
                meter->tensor_sectors[TENSOR_STORE]);
    if (meter->tensor_requests[TENSOR_REDUCTION] > 0)
        fprintf(out, "  bulk reductions: %lu, %lu sectors\n", meter->tensor_requests[TENSOR_REDUCTION],
                meter->tensor_sectors[TENSOR_REDUCTION]);
    if (meter->products > 0)
        fprintf(out, "  products of warpgroups: %lu, %lu wavefronts of shared memory\n", meter->products,
                meter->product_wavefronts);
    if (meter->shared_bytes + meter->barriers + meter->collectives > 0)
        fprintf(out, "  shared memory: %zu bytes per block; %lu barriers, %lu warp collectives\n", meter->shared_bytes,
                meter->barriers, meter->collectives);
}

static void print_site(FILE *out, const struct line *line, bool worst) {
    const struct site *site = line->site;
    char place[200], unit[80] = "";
    snprintf(place, sizeof place, "%s:%d", line->file, line->number);
    if (site->space != SPACE_LOCAL)
        snprintf(unit, sizeof unit, "%12.0f %s  %5.2f a request", cost(site),
                 site->space == SPACE_SHARED ? "wavefronts" : "sectors   ", cost(site) / (double)site->requests);
    if (site->kind == ACCESS_COPY && site->wavefronts > 0) append_text(unit, sizeof unit, ", %lu wavefronts", site->wavefronts);
    fprintf(out, "  %-46s %s %-6s %2u B %11lu requests %s%s\n", place, space_names[site->space], kind_names[site->kind],
            site->bytes, site->requests, unit, worst ? "  <-- most waste" : "");
}

static void print_events(FILE *out, const struct kernel *kernel) {
    for (unsigned i = 0; i < kernel->meter->event_count; i++) {
        const struct event *event = &kernel->meter->events[i];
        char place[200];
        snprintf(place, sizeof place, "%s:%d", event->file, event->line);
        fprintf(out, "  %-46s %-22s %11lu times\n", place, event->what, event->count);
    }
}

/* Paths in line numbers are relative to the project; a program may run from elsewhere. */
static FILE *open_source(const char *name) {
    FILE *file = fopen(name, "r");
    if (file != NULL) return file;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", SOURCE_ROOT, name);
    return fopen(path, "r");
}

static void print_counted(FILE *out, const struct line *line, bool worst, const char *text) {
    const struct site *site = line->site;
    char each[40] = "";
    if (site->space != SPACE_LOCAL)
        snprintf(each, sizeof each, "%.2f %c", cost(site) / (double)site->requests, site->space == SPACE_SHARED ? 'w' : 's');
    fprintf(out, "  %11lu %9s %c%4d  %s\n", site->requests, each, worst ? '!' : ' ', line->number, text);
}

/* The lines of one file between the first and the last that the kernel touched, with counts in the margin. */
static void print_listing(FILE *out, const struct line *lines, int count) {
    for (int first = 0; first < count;) {
        int end = first;
        while (end < count && strcmp(lines[end].file, lines[first].file) == 0) end++;
        FILE *file = open_source(lines[first].file);
        char text[400];
        int number = 0, next = first;
        fprintf(out, "  %s\n  %11s %9s  line\n", lines[first].file, "requests", "each");
        while (file != NULL && fgets(text, sizeof text, file) != NULL && next < end) {
            number++;
            if (number + 3 < lines[first].number) continue;
            text[strcspn(text, "\n")] = '\0';
            if (lines[next].number != number) fprintf(out, "  %11s %9s  %4d  %s\n", "", "", number, text);
            for (int shown = next; next < end && lines[next].number == number; next++)
                print_counted(out, &lines[next], is_worst(lines, count, next), next == shown ? text : "");
        }
        for (; file == NULL && next < end; next++) /* a program without its source */
            print_counted(out, &lines[next], is_worst(lines, count, next), "");
        if (file != NULL) fclose(file);
        first = end;
    }
    fputs("  (each: s sectors of global memory or w wavefronts of shared memory a request; ! the most waste)\n", out);
}

void simt_meter_print(FILE *out, int with_source) {
    for (unsigned k = 0; k < simt_kernel_count; k++) {
        int count;
        struct line *lines = lines_of(&simt_kernels[k], &count);
        print_kernel_heading(out, &simt_kernels[k]);
        if (with_source)
            print_listing(out, lines, count);
        else
            for (int i = 0; i < count; i++) print_site(out, &lines[i], is_worst(lines, count, i));
        print_events(out, &simt_kernels[k]);
        fputc('\n', out);
        free_lines(lines, count);
    }
}
