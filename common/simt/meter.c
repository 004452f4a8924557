/* The meter: what kernels ask of memory, counted as a card's hardware counters count it, for each source line.
 *
 * execute.c puts together what the lanes of a warp access at once (count_requests), so a request is what it is on a
 * card: one instruction, up to 32 addresses. A request to global memory costs the 32-byte sectors that its addresses
 * fall into; one to shared memory costs wavefronts, in each of which every one of the 32 banks serves one 4-byte word.
 */
#define _GNU_SOURCE
#include "simt.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 32, BANKS = 32, TABLE = 2048, MAX_EVENTS = 64, MAX_KERNELS = 64, MAX_TEXT = 300 };

struct site {
    const void *pc; /* NULL: this place in the table is free */
    enum access_kind kind;
    enum memory_space space;
    unsigned bytes; /* a lane's access */
    uint64_t requests, lanes, partial, sectors, wavefronts, least_wavefronts;
    /* One request of the site, the first with the most lanes, for pictures. */
    unsigned sample_lanes;
    uintptr_t sample[WARP_SIZE];
    char sample_names[2][80]; /* the lowest address and the highest, in words */
};

struct event {
    const char *what, *file;
    int line;
    uint64_t count;
};

struct meter {
    struct site sites[TABLE];
    struct event events[MAX_EVENTS];
    int event_count;
    uint64_t blocks;
};

struct kernel {
    const void *code;
    char name[MAX_TEXT];
    struct uint3 grid, block;
    uint64_t launches, blocks, metered_blocks, every;
    uint64_t words_read, words_written; /* different 4-byte words of global memory */
    struct meter *meter;
};

static struct kernel kernels[MAX_KERNELS];
static int kernel_count;
static uint64_t meter_every; /* 0: the meter is off */

static void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (memory == NULL) {
        fputs("simulated device: no memory for the meter\n", stderr);
        abort();
    }
    return memory;
}

struct meter *meter_create(void) {
    return allocate(sizeof(struct meter));
}

bool meter_is_on(uint64_t *every) {
    *every = meter_every;
    return meter_every != 0;
}

void simt_meter_start(unsigned every) {
    for (int i = 0; i < kernel_count; i++) free(kernels[i].meter);
    memset(kernels, 0, sizeof kernels);
    kernel_count = 0;
    meter_every = every > 0 ? every : 1;
}

void simt_meter_stop(void) { meter_every = 0; }

/* ---- one request ------------------------------------------------------------------------------------------------------- */

/* A set of numbers that is emptied by counting its generation up. */
struct small_set {
    uint64_t keys[256];
    uint32_t generations[256], generation;
};

static void empty_set(struct small_set *set) { set->generation++; }

static bool add_to_set(struct small_set *set, uint64_t key) {
    unsigned place = (unsigned)(key * 0x9e3779b97f4a7c15u >> 56);
    while (set->generations[place] == set->generation) {
        if (set->keys[place] == key) return false;
        place = (place + 1) & 255;
    }
    set->generations[place] = set->generation;
    set->keys[place] = key;
    return true;
}

/* Where addresses rise with the lanes, as they nearly always do, a sector is new when it differs from the last one. */
static unsigned count_sectors(const uintptr_t *addresses, unsigned lanes, unsigned bytes) {
    static _Thread_local struct small_set set;
    unsigned sectors = 0;
    uintptr_t last = 0;
    bool rising = true;
    for (unsigned left = lanes; left != 0 && rising; left &= left - 1) {
        uintptr_t address = addresses[__builtin_ctz(left)];
        uintptr_t first_sector = address / SECTOR, last_sector = (address + bytes - 1) / SECTOR;
        rising = first_sector >= last;
        if (first_sector > last) sectors++;
        sectors += (unsigned)(last_sector - first_sector);
        last = last_sector;
    }
    if (rising) return sectors;
    sectors = 0;
    empty_set(&set);
    for (unsigned left = lanes; left != 0; left &= left - 1) {
        uintptr_t address = addresses[__builtin_ctz(left)];
        for (uintptr_t sector = address / SECTOR; sector <= (address + bytes - 1) / SECTOR; sector++)
            sectors += add_to_set(&set, sector);
    }
    return sectors;
}

/* A card counts the sectors of a cp.async by where they go as well: one for each 32 bytes of shared memory that are
 * filled from one 128-byte line. A row that is shifted by 16 bytes against its place in global memory, as those of a
 * padded tile are, so costs one more for each line that it comes from. Found from an H100's counters of chapter 06. */
static unsigned count_copied_sectors(const uintptr_t *addresses, const uint32_t *destinations, unsigned lanes,
                                     unsigned bytes) {
    enum { LINE = 128 };
    static _Thread_local struct small_set set;
    unsigned filled = 0, sectors = count_sectors(addresses, lanes, bytes);
    empty_set(&set);
    for (unsigned left = lanes; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        filled += add_to_set(&set, addresses[lane] / LINE * (SHARED_BYTES_MAX / SECTOR) + destinations[lane] / SECTOR);
    }
    return filled > sectors ? filled : sectors;
}

/* Does every lane that takes part read the same address as the lane whose number differs in `bit`? */
static bool pairs_agree(const uintptr_t *addresses, unsigned lanes, unsigned bit) {
    for (unsigned left = lanes; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        if ((lanes >> (lane ^ bit) & 1) != 0 && addresses[lane] != addresses[lane ^ bit]) return false;
    }
    return true;
}

/* Wavefronts of the lanes of one group: the most different words that one bank must give. */
static unsigned group_wavefronts(const uintptr_t *addresses, unsigned lanes, unsigned bytes) {
    static _Thread_local struct small_set set;
    if (lanes == 0) return 0;
    /* Addresses that rise by at most 128 bytes in all, without gaps that repeat a bank: one turn. */
    uintptr_t lowest = addresses[__builtin_ctz(lanes)], highest = lowest, last = lowest;
    bool rising = true;
    for (unsigned left = lanes; left != 0; left &= left - 1) {
        uintptr_t address = addresses[__builtin_ctz(left)];
        rising = rising && address >= last;
        last = highest = address;
    }
    if (rising && highest + bytes - lowest <= BANKS * 4) return 1;

    unsigned in_bank[BANKS] = {0}, most = 0;
    empty_set(&set);
    for (unsigned left = lanes; left != 0; left &= left - 1) {
        uintptr_t address = addresses[__builtin_ctz(left)];
        for (uintptr_t word = address / 4; word <= (address + bytes - 1) / 4; word++) {
            if (!add_to_set(&set, word)) continue;
            unsigned depth = ++in_bank[word % BANKS];
            if (depth > most) most = depth;
        }
    }
    return most;
}

/* A warp's 4-byte accesses are one group; 8-byte ones two groups of 16 lanes, 16-byte ones four of 8, so that a group
 * asks for 128 bytes at most. Loads of 8 and 16 bytes take groups twice as large where lanes agree in pairs, each with
 * its neighbour or each with the lane two further: measured on an H100. */
static unsigned count_wavefronts(const uintptr_t *addresses, unsigned lanes, unsigned bytes, bool is_load) {
    unsigned group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
    if (group < 32 && is_load && (pairs_agree(addresses, lanes, 1) || pairs_agree(addresses, lanes, 2))) group *= 2;
    unsigned wavefronts = 0;
    for (unsigned first = 0; first < WARP_SIZE; first += group) {
        unsigned mask = group == 32 ? 0xffffffffu : ((1u << group) - 1) << first;
        wavefronts += group_wavefronts(addresses, lanes & mask, bytes);
    }
    return wavefronts;
}

static struct site *find_place(struct site *sites, const void *pc, enum access_kind kind, enum memory_space space) {
    unsigned place = (unsigned)((uintptr_t)pc * 0x9e3779b97f4a7c15u >> 53);
    for (unsigned tries = 0; tries < TABLE; tries++, place = (place + 1) % TABLE) {
        struct site *site = &sites[place];
        if (site->pc == NULL || (site->pc == pc && site->kind == kind && site->space == space)) return site;
    }
    fputs("simulated device: too many places of access for the meter\n", stderr);
    abort();
}

static void keep_sample(struct worker *worker, struct site *site, const uintptr_t *addresses, unsigned lanes) {
    unsigned lowest = (unsigned)__builtin_ctz(lanes), highest = lowest;
    for (unsigned left = lanes; left != 0; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        if (addresses[lane] < addresses[lowest]) lowest = lane;
        if (addresses[lane] > addresses[highest]) highest = lane;
    }
    site->sample_lanes = lanes;
    memcpy(site->sample, addresses, sizeof site->sample);
    /* Banks are counted from the start of the block's shared memory. */
    if (site->space == SPACE_SHARED)
        for (int i = 0; i < WARP_SIZE; i++) site->sample[i] -= (uintptr_t)worker->shared;
    if (site->space == SPACE_LOCAL) return;
    describe_address(addresses[lowest], site->sample_names[0], sizeof site->sample_names[0]);
    describe_address(addresses[highest], site->sample_names[1], sizeof site->sample_names[1]);
    for (int i = 0; i < 2; i++) site->sample_names[i][strcspn(site->sample_names[i], " ,")] = '\0';
}

void meter_request(struct worker *worker, const uintptr_t *addresses, const uint32_t *destinations, unsigned lanes,
                   unsigned live, const struct access *access) {
    const void *pc = absolute_pc(access->pc);
    struct site *site = find_place(worker->meter->sites, pc, access->kind, access->space);
    site->pc = pc;
    site->kind = access->kind;
    site->space = access->space;
    site->bytes = access->bytes;
    site->requests++;
    site->lanes += (unsigned)__builtin_popcount(lanes);
    site->partial += lanes != live;
    if (access->space == SPACE_GLOBAL) {
        site->sectors += access->kind == ACCESS_COPY
                             ? count_copied_sectors(addresses, destinations, lanes, access->bytes)
                             : count_sectors(addresses, lanes, access->bytes);
    } else if (access->space == SPACE_SHARED) {
        site->wavefronts += count_wavefronts(addresses, lanes, access->bytes, access->kind == ACCESS_READ);
        uintptr_t spread[WARP_SIZE]; /* the same lanes side by side, or agreeing as they do: no conflicts */
        for (unsigned i = 0; i < WARP_SIZE; i++) spread[i] = i * access->bytes;
        bool agree = access->bytes > 4 && access->kind == ACCESS_READ &&
                     (pairs_agree(addresses, lanes, 1) || pairs_agree(addresses, lanes, 2));
        unsigned least = count_wavefronts(spread, lanes, access->bytes, false);
        site->least_wavefronts += agree && least > 1 ? (least + 1) / 2 : least;
    }
    if (__builtin_popcount(lanes) > __builtin_popcount(site->sample_lanes)) keep_sample(worker, site, addresses, lanes);
}

static void add_event(struct meter *meter, const char *what, const char *file, int line, uint64_t count) {
    for (int i = 0; i < meter->event_count; i++) {
        struct event *event = &meter->events[i];
        if (event->line == line && strcmp(event->what, what) == 0 && strcmp(event->file, file) == 0) {
            event->count += count;
            return;
        }
    }
    if (meter->event_count < MAX_EVENTS) meter->events[meter->event_count++] = (struct event){what, file, line, count};
}

void meter_event(struct worker *worker, const char *what, const char *file, int line) {
    add_event(worker->meter, what, file, line, 1);
}

/* ---- one launch --------------------------------------------------------------------------------------------------------- */

static void merge(struct meter *into, struct meter *from) {
    for (int i = 0; i < TABLE; i++) {
        const struct site *mine = &from->sites[i];
        if (mine->pc == NULL) continue;
        struct site *site = find_place(into->sites, mine->pc, mine->kind, mine->space);
        struct site sum = *mine;
        if (site->pc != NULL) {
            if (__builtin_popcount(site->sample_lanes) >= __builtin_popcount(mine->sample_lanes)) sum = *site;
            sum.requests = site->requests + mine->requests;
            sum.lanes = site->lanes + mine->lanes;
            sum.partial = site->partial + mine->partial;
            sum.sectors = site->sectors + mine->sectors;
            sum.wavefronts = site->wavefronts + mine->wavefronts;
            sum.least_wavefronts = site->least_wavefronts + mine->least_wavefronts;
        }
        *site = sum;
    }
    for (int i = 0; i < from->event_count; i++)
        add_event(into, from->events[i].what, from->events[i].file, from->events[i].line, from->events[i].count);
}

struct touched {
    uint64_t launch_bits, read, written;
};

static void count_touched(const struct allocation *allocation, void *data) {
    struct touched *touched = data;
    for (size_t i = 0; i < allocation->cell_bytes / sizeof(struct cell); i++) {
        touched->read += allocation->cells[i].read >> STAMP_LAUNCH_SHIFT == touched->launch_bits;
        touched->written += allocation->cells[i].write >> STAMP_LAUNCH_SHIFT == touched->launch_bits;
    }
}

static struct kernel *find_kernel(const struct launch *launch) {
    for (int i = 0; i < kernel_count; i++)
        if (kernels[i].code == launch->kernel) return &kernels[i];
    if (kernel_count == MAX_KERNELS) return NULL;
    struct kernel *kernel = &kernels[kernel_count++];
    kernel->code = launch->kernel;
    kernel_name(launch, kernel->name, sizeof kernel->name);
    kernel->meter = allocate(sizeof *kernel->meter);
    return kernel;
}

void meter_launch_done(struct launch *launch, struct worker **workers, int count) {
    struct kernel *kernel = find_kernel(launch);
    struct touched touched = {.launch_bits = launch->number % 0xffff + 1};
    memory_for_each(count_touched, &touched);
    for (int i = 0; i < count; i++) {
        if (kernel != NULL) merge(kernel->meter, workers[i]->meter);
        memset(workers[i]->meter, 0, sizeof *workers[i]->meter);
    }
    if (kernel == NULL) return;
    kernel->grid = launch->grid;
    kernel->block = launch->block;
    kernel->launches++;
    kernel->blocks += launch->blocks;
    kernel->metered_blocks += (launch->blocks + launch->meter_every - 1) / launch->meter_every;
    kernel->every = launch->meter_every;
    kernel->words_read += touched.read;
    kernel->words_written += touched.written;
}

/* ---- reports ------------------------------------------------------------------------------------------------------------ */

static const char *const space_names[MEMORY_SPACES] = {"global", "shared", "local"};
static const char *const kind_names[ACCESS_KINDS] = {"load", "store", "atomic", "copy"};

/* A site with its source line, ready to be shown. */
struct line {
    char *file; /* "steps/01_naive/naive.cu:31" until it is cut at the colon */
    int number;
    const struct site *site;
};

static int by_place(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    int files = strcmp(x->file, y->file);
    if (files != 0) return files;
    if (x->number != y->number) return x->number - y->number;
    return (x->site->pc > y->site->pc) - (x->site->pc < y->site->pc);
}

static struct line *lines_of(const struct kernel *kernel, int *count) {
    struct line *lines = allocate(TABLE * sizeof *lines);
    const void **pcs = allocate(TABLE * sizeof *pcs);
    char **texts = allocate(TABLE * sizeof *texts);
    *count = 0;
    for (int i = 0; i < TABLE; i++) {
        if (kernel->meter->sites[i].pc == NULL) continue;
        lines[*count].site = &kernel->meter->sites[i];
        pcs[(*count)++] = kernel->meter->sites[i].pc;
    }
    source_lines(pcs, *count, texts);
    for (int i = 0; i < *count; i++) {
        char *colon = strrchr(texts[i], ':');
        lines[i].number = colon != NULL ? atoi(colon + 1) : 0;
        if (colon != NULL) *colon = '\0';
        lines[i].file = texts[i];
    }
    free(pcs);
    free(texts);
    qsort(lines, (size_t)*count, sizeof *lines, by_place);
    return lines;
}

static void free_lines(struct line *lines, int count) {
    for (int i = 0; i < count; i++) free(lines[i].file);
    free(lines);
}

struct totals {
    uint64_t requests[MEMORY_SPACES][ACCESS_KINDS], sectors[ACCESS_KINDS], wavefronts[ACCESS_KINDS],
        conflicts[ACCESS_KINDS];
};

static struct totals totals_of(const struct kernel *kernel) {
    struct totals totals = {0};
    for (int i = 0; i < TABLE; i++) {
        const struct site *site = &kernel->meter->sites[i];
        if (site->pc == NULL) continue;
        totals.requests[site->space][site->kind] += site->requests;
        totals.sectors[site->kind] += site->sectors;
        totals.wavefronts[site->kind] += site->wavefronts;
        totals.conflicts[site->kind] += site->wavefronts - site->least_wavefronts;
    }
    return totals;
}

static void add_count(cJSON *object, const char *name, uint64_t value) {
    cJSON_AddNumberToObject(object, name, (double)value);
}

static cJSON *json_of_totals(const struct kernel *kernel) {
    struct totals totals = totals_of(kernel);
    cJSON *object = cJSON_CreateObject();
    for (int kind = 0; kind < ACCESS_KINDS; kind++) {
        char name[60];
        for (int space = 0; space < MEMORY_SPACES; space++) {
            snprintf(name, sizeof name, "%s_%s_requests", space_names[space], kind_names[kind]);
            add_count(object, name, totals.requests[space][kind]);
        }
        snprintf(name, sizeof name, "global_%s_sectors", kind_names[kind]);
        add_count(object, name, totals.sectors[kind]);
        snprintf(name, sizeof name, "shared_%s_wavefronts", kind_names[kind]);
        add_count(object, name, totals.wavefronts[kind]);
        snprintf(name, sizeof name, "shared_%s_conflicts", kind_names[kind]);
        add_count(object, name, totals.conflicts[kind]);
    }
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
    if (site->space == SPACE_SHARED) {
        add_count(object, "wavefronts", site->wavefronts);
        add_count(object, "conflicts", site->wavefronts - site->least_wavefronts);
    }
    if (site->space == SPACE_LOCAL) return object;
    /* One request as an example: each lane's address, relative to the lowest sector or to shared memory's start. */
    cJSON *sample = cJSON_AddObjectToObject(object, "sample");
    uintptr_t base = 0;
    if (site->space == SPACE_GLOBAL) {
        base = UINTPTR_MAX;
        for (unsigned left = site->sample_lanes; left != 0; left &= left - 1)
            if (site->sample[__builtin_ctz(left)] < base) base = site->sample[__builtin_ctz(left)];
        base -= base % 128;
    }
    cJSON_AddStringToObject(sample, "lowest", site->sample_names[0]);
    cJSON_AddStringToObject(sample, "highest", site->sample_names[1]);
    cJSON *addresses = cJSON_AddArrayToObject(sample, "addresses");
    for (unsigned lane = 0; lane < WARP_SIZE; lane++)
        cJSON_AddItemToArray(addresses, (site->sample_lanes >> lane & 1) != 0
                                            ? cJSON_CreateNumber((double)(site->sample[lane] - base))
                                            : cJSON_CreateNull());
    return object;
}

static cJSON *json_of_shape(struct uint3 shape) {
    int numbers[3] = {(int)shape.x, (int)shape.y, (int)shape.z};
    return cJSON_CreateIntArray(numbers, 3);
}

char *simt_meter_json(void) {
    cJSON *list = cJSON_CreateArray();
    for (int k = 0; k < kernel_count; k++) {
        const struct kernel *kernel = &kernels[k];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "kernel", kernel->name);
        cJSON_AddItemToObject(object, "grid", json_of_shape(kernel->grid));
        cJSON_AddItemToObject(object, "block", json_of_shape(kernel->block));
        add_count(object, "launches", kernel->launches);
        add_count(object, "blocks", kernel->blocks);
        add_count(object, "metered_blocks", kernel->metered_blocks);
        add_count(object, "different_bytes_read", 4 * kernel->words_read);
        add_count(object, "different_bytes_written", 4 * kernel->words_written);
        cJSON_AddItemToObject(object, "totals", json_of_totals(kernel));
        int count;
        struct line *lines = lines_of(kernel, &count);
        cJSON *json_lines = cJSON_AddArrayToObject(object, "lines");
        for (int i = 0; i < count; i++) cJSON_AddItemToArray(json_lines, json_of_line(&lines[i]));
        free_lines(lines, count);
        cJSON *events = cJSON_AddArrayToObject(object, "events");
        for (int i = 0; i < kernel->meter->event_count; i++) {
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

static double cost(const struct site *site) {
    return (double)(site->space == SPACE_SHARED ? site->wavefronts : site->sectors);
}

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
    return worst > 0.0 && waste(lines[i].site) > 0.5 * worst;
}

static void print_kernel_heading(FILE *out, const struct kernel *kernel) {
    fprintf(out, "%s<<<(%u,%u,%u), (%u,%u,%u)>>>", kernel->name, kernel->grid.x, kernel->grid.y, kernel->grid.z,
            kernel->block.x, kernel->block.y, kernel->block.z);
    if (kernel->launches > 1) fprintf(out, ", %lu launches", (unsigned long)kernel->launches);
    if (kernel->metered_blocks < kernel->blocks)
        fprintf(out, ": counts of %lu of its %lu blocks\n", (unsigned long)kernel->metered_blocks,
                (unsigned long)kernel->blocks);
    else
        fprintf(out, ": all %lu blocks\n", (unsigned long)kernel->blocks);
    fprintf(out, "  different bytes of device memory: %lu read, %lu written\n", (unsigned long)(4 * kernel->words_read),
            (unsigned long)(4 * kernel->words_written));
}

static void print_site(FILE *out, const struct line *line, bool worst) {
    const struct site *site = line->site;
    char place[200], unit[80] = "";
    snprintf(place, sizeof place, "%s:%d", line->file, line->number);
    if (site->space != SPACE_LOCAL)
        snprintf(unit, sizeof unit, "%12.0f %s  %5.2f a request", cost(site),
                 site->space == SPACE_SHARED ? "wavefronts" : "sectors   ", cost(site) / (double)site->requests);
    fprintf(out, "  %-46s %s %-6s %2u B %11lu requests %s%s\n", place, space_names[site->space], kind_names[site->kind],
            site->bytes, (unsigned long)site->requests, unit, worst ? "  <-- most waste" : "");
}

static void print_events(FILE *out, const struct kernel *kernel) {
    for (int i = 0; i < kernel->meter->event_count; i++) {
        const struct event *event = &kernel->meter->events[i];
        char place[200];
        snprintf(place, sizeof place, "%s:%d", event->file, event->line);
        fprintf(out, "  %-46s %-22s %11lu times\n", place, event->what, (unsigned long)event->count);
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
            bool shown = false;
            for (; next < end && lines[next].number == number; next++) {
                const struct site *site = lines[next].site;
                char each[40] = "";
                if (site->space != SPACE_LOCAL)
                    snprintf(each, sizeof each, "%.2f %c", cost(site) / (double)site->requests,
                             site->space == SPACE_SHARED ? 'w' : 's');
                fprintf(out, "  %11lu %9s %c%4d  %s\n", (unsigned long)site->requests, each,
                        is_worst(lines, count, next) ? '!' : ' ', number, shown ? "" : text);
                shown = true;
            }
            if (!shown) fprintf(out, "  %11s %9s  %4d  %s\n", "", "", number, text);
        }
        if (file != NULL) fclose(file);
        first = end;
    }
    fputs("  (each: s sectors of global memory or w wavefronts of shared memory a request; ! the most waste)\n", out);
}

void simt_meter_print(FILE *out, int with_source) {
    for (int k = 0; k < kernel_count; k++) {
        int count;
        struct line *lines = lines_of(&kernels[k], &count);
        print_kernel_heading(out, &kernels[k]);
        if (with_source)
            print_listing(out, lines, count);
        else
            for (int i = 0; i < count; i++) print_site(out, &lines[i], is_worst(lines, count, i));
        print_events(out, &kernels[k]);
        fputc('\n', out);
        free_lines(lines, count);
    }
}
