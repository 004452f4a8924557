/* The trace: what chosen blocks did, request by request, as JSON. Pictures are drawn from it. The meter's layer puts the
 * requests together; this one watches them and keeps, per block, their text until the launch ends.
 *
 *     {"launches": [{"kernel": "scores", "grid": [x,y,z], "block": [x,y,z],
 *                    "dynamic_shared_bytes": n, "static_shared_bytes": n,
 *                    "shared_arrays": [{"name": "A_smem", "bytes": n, "offset": n, "element_bytes": n, "columns": n}, ...],
 *                    "arrays": ["Q", "A_smem", "dynamic", ...],
 *                    "sites": [{"file": "...", "line": n, "space": "global", "kind": "load", "bytes": 4}, ...],
 *                    "blocks": [{"index": [x,y,z], "events": [...]}, ...]}, ...]}
 *
 * A site is one access in the code, in the order of first use; of one in a header also the kernel's line that calls it, "caller":
 * "file:line". An array is what an event names by its number. An event is
 *     [site, warp, epoch, array, offsets]           a request: bytes from the array's start, one per lane; null: lane off;
 *                                                   one number: all 32 lanes at one address
 *     [site, warp, epoch, array, offsets, to]       a cp.async: `to` is where in shared memory each lane's bytes go
 *     [site, warp, epoch, -1, groups]               space "copies": lanes close a group of their copies by cp.async, "commit", or
 *                                                   have waited until at most so many groups are under way, "wait"
 *     [site, warp, epoch]                           a warp collective (space "warp"), or a barrier (space "block", warp -1)
 *     [site, warp, epoch, array, moves, barrier, lane]  space "bulk": a thread's copy by the TMA, "bulk load", "bulk store" or "bulk
 *                                                   add"; moves: [place in shared memory, bytes, offset in the array, ...],
 *                                                   the offset is null of zeros that a load fills in; of a load also the place
 *                                                   of its mbarrier. Space "operand": a warp issues "wgmma"; array -1, no offsets
 *     [site, warp, epoch, [object, phase, bytes, lane]]  space "mbarrier" (object: its place in shared memory), "named" (its
 *                                                   number), "cluster", "bulk" (groups of stores): a thread "arrive"s,
 *                                                   "expect"s bytes or "wait"s; or "phase": it is over, warp -1, its copies
 *                                                   have landed
 * where the epoch counts the barriers and the phases of the block that are over; warp -2 is of another block of the cluster.
 * Requests stand where their lanes meet next, and those of a thread that waits, arrives or copies before that, lane by lane (with a
 * meter, too, where they meet). The last two kinds have the kernel's own line. Local memory is left out: on a card these are
 * registers. */
#include "trace.h"

#include "device_memory.h"
#include "meter.h"
#include "report.h"

#include <pthread.h>

enum { MAX_TRACED = 64, MAX_SITES = 4096, MAX_NAMES = 256 };

struct traced_site {
    const void *pc; /* of a barrier or collective, whose place is known, only where a header has it */
    const char *what, *file, *space;
    int line;
    unsigned bytes;
};

struct traced_block {
    uint64_t number;
    struct uint3 index;
    FILE *stream; /* NULL: it did not run in this launch */
    char *text;
    size_t bytes;
    unsigned epoch, events;
    struct move {
        uint32_t shared, bytes;
        uintptr_t global; /* or 0 */
    } * moves;            /* of the next copy or product */
    unsigned move_count, move_room;
};

static struct {
    FILE *file;
    bool is_on, any_launch;
    struct traced_block blocks[MAX_TRACED];
    int block_count;
    pthread_mutex_t lock; /* of what follows: two blocks of one launch may be traced at once */
    struct traced_site sites[MAX_SITES];
    char *names[MAX_NAMES];
    struct static_array shared[MAX_STATIC_ARRAYS];
    int site_count, name_count, shared_count;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- events ------------------------------------------------------------------------------------------------------------ */

static int number_of_site(struct traced_site wanted) {
    for (int i = 0; i < trace.site_count; i++) {
        const struct traced_site *site = &trace.sites[i];
        if (site->pc == wanted.pc && site->line == wanted.line && site->bytes == wanted.bytes &&
            strcmp(site->what, wanted.what) == 0 && strcmp(site->space, wanted.space) == 0)
            return i;
    }
    if (trace.site_count == MAX_SITES) abort();
    trace.sites[trace.site_count] = wanted;
    return trace.site_count++;
}

static int number_of_name(const char *name) {
    for (int i = 0; i < trace.name_count; i++)
        if (strcmp(trace.names[i], name) == 0) return i;
    char *copy = trace.name_count < MAX_NAMES ? strdup(name) : NULL;
    if (copy == NULL) abort();
    trace.names[trace.name_count] = copy;
    return trace.name_count++;
}

/* The array that holds an address: its number, and where it starts. */
static int find_array(const struct worker *worker, uintptr_t address, uintptr_t *start) {
    size_t offset = address - (uintptr_t)worker->shared.start;
    if (offset < SHARED_BYTES_MAX) {
        const struct static_array *found = NULL;
        for (int i = 0; i < worker->shared.array_count; i++)
            if (worker->shared.arrays[i].offset <= offset) found = &worker->shared.arrays[i];
        *start = (uintptr_t)worker->shared.start + (found != NULL ? found->offset : 0);
        return number_of_name(found != NULL ? found->name : "dynamic");
    }
    const struct allocation *allocation = memory_find(address);
    *start = allocation != NULL ? allocation->start : address;
    char name[40] = "a __device__ variable";
    if (allocation != NULL) snprintf(name, sizeof name, "allocation %d", allocation->serial);
    return number_of_name(allocation != NULL && allocation->name != NULL ? allocation->name : name);
}

static void write_lanes(FILE *out, unsigned lanes, const uintptr_t *values, uintptr_t start) {
    bool alike = lanes == 0xffffffffu;
    for (int lane = 1; lane < WARP_SIZE && alike; lane++) alike = values[lane] == values[0];
    if (alike) {
        fprintf(out, ",%ld", (long)(values[0] - start));
        return;
    }
    for (int lane = 0; lane < WARP_SIZE; lane++) {
        fputs(lane == 0 ? ",[" : ",", out);
        if ((lanes >> lane & 1) != 0)
            fprintf(out, "%ld", (long)(values[lane] - start));
        else
            fputs("null", out);
    }
    fputc(']', out);
}

static struct traced_block *block_of(const struct worker *worker) {
    for (int i = 0; i < trace.block_count; i++)
        if (trace.blocks[i].number == worker->block_number) return &trace.blocks[i];
    return NULL;
}

bool trace_start_block(struct worker *worker) {
    struct traced_block *block = trace.is_on ? block_of(worker) : NULL;
    if (block == NULL) return false;
    block->index = worker->block_index;
    block->epoch = block->events = block->move_count = 0;
    block->stream = open_memstream(&block->text, &block->bytes);
    if (block->stream == NULL) abort();
    fputc('[', block->stream);
    return true;
}

static void note_shared(const struct worker *worker) {
    for (int i = trace.shared_count; i < worker->shared.array_count; i++)
        trace.shared[trace.shared_count++] = worker->shared.arrays[i];
}

static void begin_event(struct traced_block *block, int warp, struct traced_site site) {
    fprintf(block->stream, "%s[%d,%d,%u", block->events++ > 0 ? ",\n" : "", number_of_site(site), warp, block->epoch);
}

static void watch_request(struct worker *worker, unsigned warp, const uintptr_t *addresses, const uint32_t *destinations,
                          unsigned lanes, const struct access *access) {
    if (access->space == SPACE_LOCAL) return;
    struct traced_block *block = block_of(worker);
    uintptr_t start = 0, to[WARP_SIZE];
    bool of_copies = access->kind >= ACCESS_KINDS; /* their groups, no address */
    const char *what = !of_copies ? kind_names[access->kind] : access->kind == COPIES_WAIT ? "wait" : "commit";
    pthread_mutex_lock(&trace.lock);
    begin_event(block, (int)warp,
                (struct traced_site){absolute_pc(access->pc), what, NULL, of_copies ? "copies" : space_names[access->space], 0,
                                     access->bytes});
    fprintf(block->stream, ",%d", of_copies ? -1 : find_array(worker, addresses[__builtin_ctz(lanes)], &start));
    note_shared(worker);
    pthread_mutex_unlock(&trace.lock);
    write_lanes(block->stream, lanes, addresses, start);
    if (access->kind == ACCESS_COPY) {
        for (int lane = 0; lane < WARP_SIZE; lane++) to[lane] = destinations[lane];
        write_lanes(block->stream, lanes, to, 0);
    }
    fputc(']', block->stream);
}

void trace_event(struct worker *worker, int warp, const struct thread *thread) {
    struct traced_block *block = block_of(worker);
    const struct place *place = &thread->place;
    const char *end = strrchr(place->file, '.'), *space = warp < 0 ? "block" : "warp";
    const void *pc =
        end != NULL && strcmp(end, ".cu") == 0 ? NULL : thread->last_pc; /* of the call, where that can be another line */
    pthread_mutex_lock(&trace.lock);
    begin_event(block, warp, (struct traced_site){pc, place->what, place->file, space, place->line, 0});
    pthread_mutex_unlock(&trace.lock);
    fputc(']', block->stream);
    if (warp < 0) block->epoch++;
}

/* ---- copies by the TMA, products, and what is waited for ------------------------------------------------------------------- */

static void begin_sync(const struct worker *worker, struct traced_block *block, const struct thread *thread, struct sync sync) {
    int warp = thread == NULL ? -1 : thread->home != worker ? -2 : (int)(thread->linear / WARP_SIZE);
    note_shared(worker);
    begin_event(block, warp, (struct traced_site){sync.pc, sync.what, NULL, sync.space, 0, 0});
}

void trace_sync(struct worker *worker, const struct thread *thread, struct sync sync) {
    struct traced_block *block = block_of(worker);
    pthread_mutex_lock(&trace.lock);
    begin_sync(worker, block, thread, sync);
    pthread_mutex_unlock(&trace.lock);
    unsigned lane = thread != NULL ? thread->linear % WARP_SIZE : 0;
    fprintf(block->stream, ",[%u,%u,%ld,%u]]", sync.object, sync.phase, (long)sync.bytes, lane);
    block->epoch += thread == NULL;
}

static void add_move(struct traced_block *block, struct move move) {
    struct move *last = &block->moves[block->move_count - 1];
    uint32_t done = block->move_count > 0 ? last->shared + last->bytes : 0;
    if (block->move_count > 0 && move.global == 0 && last->global == 0 && last->shared <= move.shared && move.shared <= done) {
        if (move.shared + move.bytes > done) last->bytes = move.shared + move.bytes - last->shared; /* A and B may overlap */
        return;
    }
    if (block->move_count > 0 && move.shared == done && last->global != 0 && move.global == last->global + last->bytes) {
        last->bytes += move.bytes;
        return;
    }
    APPEND(block->moves, block->move_count, block->move_room) = move;
}

void trace_unit(struct worker *worker, uint32_t shared, uintptr_t global, uint64_t inside) {
    for (uint32_t i = 0; i < 16; i += 4) /* words: an event has no smaller ones */
        add_move(block_of(worker), (struct move){shared + i, 4, (inside >> i & 15) != 0 && global != 0 ? global + i : 0});
}

static int by_place(const void *a, const void *b) {
    const struct move *of_a = a, *of_b = b;
    return of_a->shared < of_b->shared ? -1 : of_a->shared > of_b->shared;
}

void trace_units(struct worker *worker, const struct thread *thread, struct sync sync, uintptr_t base) {
    struct traced_block *block = block_of(worker);
    uintptr_t start = 0;
    unsigned count = block->move_count;
    qsort(block->moves, count, sizeof *block->moves, by_place);
    block->move_count = 0;
    for (unsigned i = 0; i < count; i++) add_move(block, block->moves[i]);
    pthread_mutex_lock(&trace.lock);
    begin_sync(worker, block, thread, sync);
    fprintf(block->stream, ",%d", base != 0 ? find_array(worker, base, &start) : -1);
    pthread_mutex_unlock(&trace.lock);
    for (unsigned i = 0; i < block->move_count; i++) {
        const struct move *move = &block->moves[i];
        fprintf(block->stream, i == 0 ? ",[%u,%u," : ",%u,%u,", move->shared, move->bytes);
        fprintf(block->stream, move->global != 0 ? "%ld" : "null", (long)(move->global - start));
    }
    fprintf(block->stream, block->move_count > 0 ? "],%u,%u]" : ",[],%u,%u]", sync.object, thread->linear % WARP_SIZE);
    block->move_count = 0;
}

/* ---- one launch -------------------------------------------------------------------------------------------------------- */

static cJSON *json_of_shared(const struct static_array *array) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", array->name);
    cJSON_AddNumberToObject(json, "bytes", (double)array->bytes);
    cJSON_AddNumberToObject(json, "offset", (double)array->offset);
    cJSON_AddNumberToObject(json, "element_bytes", (double)array->element_bytes);
    cJSON_AddNumberToObject(json, "columns", (double)array->extents[1]);
    return json;
}

static cJSON *json_of_site(const struct traced_site *site) {
    char *kernel = site->pc != NULL ? source_line_of_kernel(site->pc) : NULL, *own = NULL;
    if (site->pc != NULL) own = site->bytes > 0 || site->file != NULL ? source_line_alone(site->pc) : strdup(kernel);
    char *colon = own != NULL ? strrchr(own, ':') : NULL;
    int line = colon != NULL ? atoi(colon + 1) : 0;
    bool is_called = own != NULL && strcmp(own, kernel) != 0 && source_line_is_known(kernel);
    if (colon != NULL) *colon = '\0';
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "file", site->file != NULL ? site->file : own);
    cJSON_AddNumberToObject(json, "line", site->file != NULL ? site->line : line);
    cJSON_AddStringToObject(json, "space", site->space);
    cJSON_AddStringToObject(json, "kind", site->what);
    cJSON_AddNumberToObject(json, "bytes", site->bytes);
    if (is_called && (site->file == NULL || line == site->line)) cJSON_AddStringToObject(json, "caller", kernel);
    free(own), free(kernel);
    return json;
}

/* The events are there as text: as a tree they would take up many times as much. */
static cJSON *json_of_block(struct traced_block *block) {
    fputc(']', block->stream);
    fclose(block->stream);
    block->stream = NULL;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "index", json_of_index(block->index));
    cJSON_AddRawToObject(json, "events", block->text);
    free(block->text);
    return json;
}

void trace_launch_done(const struct launch *launch) {
    if (!trace.is_on) return;
    char name[300];
    size_t shared_bytes = 0;
    kernel_name(launch, name, sizeof name);
    for (int i = 0; i < trace.shared_count; i++) shared_bytes += trace.shared[i].bytes;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kernel", name);
    cJSON_AddItemToObject(json, "grid", json_of_index(launch->grid));
    cJSON_AddItemToObject(json, "block", json_of_index(launch->block));
    cJSON_AddNumberToObject(json, "dynamic_shared_bytes", (double)launch->dynamic_shared_bytes);
    cJSON_AddNumberToObject(json, "static_shared_bytes", (double)shared_bytes);
    cJSON *arrays = cJSON_AddArrayToObject(json, "shared_arrays");
    for (int i = 0; i < trace.shared_count; i++) cJSON_AddItemToArray(arrays, json_of_shared(&trace.shared[i]));
    cJSON_AddItemToObject(json, "arrays", cJSON_CreateStringArray((const char *const *)trace.names, trace.name_count));
    cJSON *sites = cJSON_AddArrayToObject(json, "sites"), *blocks = cJSON_AddArrayToObject(json, "blocks");
    for (int i = 0; i < trace.site_count; i++) cJSON_AddItemToArray(sites, json_of_site(&trace.sites[i]));
    for (int i = 0; i < trace.block_count; i++)
        if (trace.blocks[i].stream != NULL) cJSON_AddItemToArray(blocks, json_of_block(&trace.blocks[i]));
    char *text = cJSON_PrintUnformatted(json);
    if (text == NULL) abort();
    fprintf(trace.file, "%s\n%s", trace.any_launch ? "," : "", text);
    free(text);
    cJSON_Delete(json);
    for (int i = 0; i < trace.name_count; i++) free(trace.names[i]);
    trace.site_count = trace.name_count = trace.shared_count = 0;
    trace.any_launch = true;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------------- */

static bool read_blocks(const char *list) {
    trace.block_count = 0;
    for (const char *at = list; trace.block_count < MAX_TRACED; at++) {
        char *end;
        if (*at < '0' || *at > '9') return false;
        unsigned long long number = strtoull(at, &end, 10);
        for (int i = 0; i < trace.block_count; i++)
            if (trace.blocks[i].number == number) return false;
        trace.blocks[trace.block_count++] = (struct traced_block){.number = number};
        if (*end == '\0') return true;
        if (*end != ',') return false;
        at = end;
    }
    return false;
}

int simt_trace_start(FILE *file, const char *blocks) {
    if (!read_blocks(blocks != NULL ? blocks : "0")) return false;
    if (file == NULL) return true;
    trace.file = file;
    trace.any_launch = false;
    meter_watch_request = watch_request;
    trace.is_on = true;
    fputs("{\"launches\":[", file);
    return true;
}

void simt_trace_stop(void) {
    if (!trace.is_on) return;
    trace.is_on = false;
    fputs("\n]}\n", trace.file);
    fflush(trace.file);
}
