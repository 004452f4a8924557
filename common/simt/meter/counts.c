/* The meter: counts the memory accesses of a kernel, for each source line, as a card's hardware counters do.
 *
 * requests.c groups the accesses that the lanes of a warp make together, so a request is what it is on a card: one
 * instruction, up to 32 addresses. A request to global memory costs the 32-byte sectors that its addresses fall into. A
 * request to shared memory costs wavefronts: in each wavefront every one of the 32 banks serves one 4-byte word. */
#include "counts.h"
#include "device_memory.h"
#include "report.h"

struct kernel *simt_kernels;
unsigned simt_kernel_count;
static unsigned kernel_room;
uint64_t meter_every;
void (*meter_watch_request)(struct worker *worker, unsigned warp, const uintptr_t *addresses, const uint32_t *destinations,
                            unsigned lanes, const struct access *access);

void simt_meter_start(unsigned every) {
    for (unsigned i = 0; i < simt_kernel_count; i++) {
        free(simt_kernels[i].meter->events);
        free(simt_kernels[i].meter);
    }
    simt_kernel_count = 0;
    meter_every = every > 0 ? every : 1;
    simt_counts_blocks = true;
}

void simt_meter_stop(void) {
    meter_every = 0;
    simt_counts_blocks = false;
}

/* ---- one request ------------------------------------------------------------------------------------------------------- */

/* The numbers of one count, which differ; emptied by counting the generation up. */
static _Thread_local struct {
    uint64_t keys[256];
    uint32_t generations[256], generation;
} set;

static bool add_to_set(uint64_t key) {
    unsigned place = (unsigned)(key * 0x9e3779b97f4a7c15u >> 56);
    while (set.generations[place] == set.generation) {
        if (set.keys[place] == key) return false;
        place = (place + 1) & 255;
    }
    set.generations[place] = set.generation;
    set.keys[place] = key;
    return true;
}

/* Where addresses rise with the lanes, as they nearly always do, a sector is new when it differs from the last one. */
static unsigned count_sectors(const uintptr_t *addresses, unsigned lanes, unsigned bytes) {
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
    set.generation++;
    FOR_EACH_LANE (lane, lanes) {
        uintptr_t address = addresses[lane];
        for (uintptr_t sector = address / SECTOR; sector <= (address + bytes - 1) / SECTOR; sector++)
            sectors += add_to_set(sector);
    }
    return sectors;
}

/* A card counts the sectors of a 16-byte cp.async, which passes L1 by, by where they go as well: one for each 32 bytes of
 * shared memory that are filled from one 128-byte line. A row that is shifted by 16 bytes against its place in global
 * memory, as those of a padded tile are, so costs one more for each line that it comes from. Copies of 4 bytes go through
 * L1, and count as loads do. Found from an H100's and an H200's counters of chapters 06 and 09. */
static unsigned count_copied_sectors(const uintptr_t *addresses, const uint32_t *destinations, unsigned lanes, unsigned bytes) {
    enum { LINE = 128 };
    unsigned filled = 0, sectors = count_sectors(addresses, lanes, bytes);
    if (bytes < 16) return sectors;
    set.generation++;
    FOR_EACH_LANE (lane, lanes)
        filled += add_to_set(addresses[lane] / LINE * (SHARED_BYTES_MAX / SECTOR) + destinations[lane] / SECTOR);
    return filled > sectors ? filled : sectors;
}

/* Does every lane that takes part read the same address as the lane whose number differs in `bit`? */
static bool pairs_agree(const uintptr_t *addresses, unsigned lanes, unsigned bit) {
    FOR_EACH_LANE (lane, lanes)
        if ((lanes >> (lane ^ bit) & 1) != 0 && addresses[lane] != addresses[lane ^ bit]) return false;
    return true;
}

/* Wavefronts of the lanes of one group: the most different words that one bank must give. */
static unsigned group_wavefronts(const uintptr_t *addresses, unsigned lanes, unsigned bytes) {
    if (lanes == 0) return 0;
    /* Addresses that rise by at most 128 bytes in all, without gaps that repeat a bank: one turn. */
    uintptr_t lowest = addresses[__builtin_ctz(lanes)], highest = lowest, last = lowest;
    bool rising = true;
    FOR_EACH_LANE (lane, lanes) {
        uintptr_t address = addresses[lane];
        rising = rising && address >= last;
        last = highest = address;
    }
    if (rising && highest + bytes - lowest <= BANKS * 4) return 1;

    unsigned in_bank[BANKS] = {0}, most = 0;
    set.generation++;
    FOR_EACH_LANE (lane, lanes) {
        uintptr_t address = addresses[lane];
        for (uintptr_t word = address / 4; word <= (address + bytes - 1) / 4; word++) {
            if (!add_to_set(word)) continue;
            unsigned depth = ++in_bank[word % BANKS];
            if (depth > most) most = depth;
        }
    }
    return most;
}

/* A warp's 4-byte accesses are one group; 8-byte ones two groups of 16 lanes, 16-byte ones four of 8, so that a group
 * accesses at most 128 bytes. Loads of 8 and 16 bytes form groups twice as large where pairs of lanes access the same
 * address, each lane with its neighbour or with the lane two further: measured on an H100. */
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
    for (unsigned tries = 0; tries < SITE_TABLE; tries++, place = (place + 1) % SITE_TABLE) {
        struct site *site = &sites[place];
        if (site->pc == NULL || (site->pc == pc && site->kind == kind && site->space == space)) return site;
    }
    fputs("simulated device: too many places of access for the meter\n", stderr);
    abort();
}

uintptr_t lowest_of_sample(const struct site *site) {
    uintptr_t lowest = UINTPTR_MAX;
    FOR_EACH_LANE (lane, site->sample_lanes)
        if (site->sample[lane] < lowest) lowest = site->sample[lane];
    return lowest;
}

static void keep_sample(struct worker *worker, struct site *site, const uintptr_t *addresses, unsigned lanes) {
    unsigned lowest = (unsigned)__builtin_ctz(lanes), highest = lowest;
    FOR_EACH_LANE (lane, lanes) {
        if (addresses[lane] < addresses[lowest]) lowest = lane;
        if (addresses[lane] > addresses[highest]) highest = lane;
    }
    site->sample_lanes = lanes;
    memcpy(site->sample, addresses, sizeof site->sample);
    /* Banks are counted from the start of the block's shared memory. */
    if (site->space == SPACE_SHARED)
        for (int i = 0; i < WARP_SIZE; i++) site->sample[i] -= (uintptr_t)worker->shared.start;
    if (site->space == SPACE_LOCAL) return;
    for (int i = 0; i < 2; i++) {
        struct words name = describe_address(addresses[i == 0 ? lowest : highest]);
        snprintf(site->sample_names[i], sizeof site->sample_names[i], "%.*s", (int)strcspn(name.text, " ,"), name.text);
    }
}

static void add_wavefronts(struct site *site, const uintptr_t *addresses, unsigned lanes) {
    bool is_load = site->kind == ACCESS_READ;
    site->wavefronts += count_wavefronts(addresses, lanes, site->bytes, is_load);
    uintptr_t spread[WARP_SIZE]; /* the same lanes side by side, or agreeing as they do: no conflicts */
    for (unsigned i = 0; i < WARP_SIZE; i++) spread[i] = i * site->bytes;
    bool agree = site->bytes > 4 && is_load && (pairs_agree(addresses, lanes, 1) || pairs_agree(addresses, lanes, 2));
    unsigned least = count_wavefronts(spread, lanes, site->bytes, false);
    site->least_wavefronts += agree && least > 1 ? (least + 1) / 2 : least;
}

static void note_local(struct site *site, const struct thread *first_lane, const uintptr_t *addresses, unsigned lanes) {
    FOR_EACH_LANE (lane, lanes) {
        size_t offset = stack_offset(&first_lane[lane], addresses[lane]);
        if (site->past == 0 || offset < site->lowest) site->lowest = offset;
        if (offset + site->bytes > site->past) site->past = offset + site->bytes;
    }
}

void meter_request(struct worker *worker, unsigned warp, const uintptr_t *addresses, const uint32_t *destinations,
                   unsigned lanes, unsigned live, const struct access *access) {
    if (worker->meter.watched) meter_watch_request(worker, warp, addresses, destinations, lanes, access);
    if (!worker->meter.counted || access->kind >= ACCESS_KINDS) return;
    const void *pc = absolute_pc(access->pc);
    struct site *site = find_place(worker->meter.counts->sites, pc, access->kind, access->space);
    site->pc = pc;
    site->kind = access->kind;
    site->space = access->space;
    site->bytes = access->bytes;
    site->requests++;
    worker->meter.counts->warp_requests[warp]++;
    site->lanes += (unsigned)__builtin_popcount(lanes);
    site->partial += lanes != live;
    if (access->space == SPACE_LOCAL) note_local(site, &worker->threads[warp * WARP_SIZE], addresses, lanes);
    if (access->space == SPACE_GLOBAL)
        site->sectors += access->kind == ACCESS_COPY ? count_copied_sectors(addresses, destinations, lanes, access->bytes)
                                                     : count_sectors(addresses, lanes, access->bytes);
    else if (access->space == SPACE_SHARED && access->kind != ACCESS_COPY)
        add_wavefronts(site, addresses, lanes);
    /* What copies of 4 or 8 bytes write. Those of 16 bytes pass by the data path that counts wavefronts on a card. */
    if (access->kind == ACCESS_COPY && access->bytes < 16) {
        uintptr_t to[WARP_SIZE];
        for (unsigned i = 0; i < WARP_SIZE; i++) to[i] = destinations[i];
        add_wavefronts(site, to, lanes);
    }
    if (__builtin_popcount(lanes) > __builtin_popcount(site->sample_lanes)) keep_sample(worker, site, addresses, lanes);
}

void meter_end_block(struct meter *meter) {
    uint64_t most = 0;
    for (size_t warp = 0; warp < sizeof meter->warp_requests / sizeof *meter->warp_requests; warp++)
        if (meter->warp_requests[warp] > most) most = meter->warp_requests[warp];
    meter->busiest_warp_requests += most;
    memset(meter->warp_requests, 0, sizeof meter->warp_requests);
}

static void add_event(struct meter *meter, const char *what, const char *file, int line, uint64_t count) {
    for (unsigned i = 0; i < meter->event_count; i++) {
        struct event *event = &meter->events[i];
        if (event->line == line && strcmp(event->what, what) == 0 && strcmp(event->file, file) == 0) {
            event->count += count;
            return;
        }
    }
    APPEND(meter->events, meter->event_count, meter->event_room) = (struct event){what, file, line, count};
}

void meter_event(struct worker *worker, int warp, const struct place *place) {
    add_event(worker->meter.counts, PLACE(*place), 1);
    if (warp < 0)
        worker->meter.counts->barriers++;
    else
        worker->meter.counts->collectives++;
}

void meter_phase(struct worker *worker) {
    if (worker->meter.on && worker->meter.counted) worker->meter.counts->barrier_phases++;
}

void meter_flag(struct worker *worker) {
    if (worker->meter.on && worker->meter.counted) worker->meter.counts->flag_accesses++;
}

static void add_basic_block(struct meter *meter, const void *pc, uint64_t times) {
    unsigned place = (unsigned)((uintptr_t)pc * 0x9e3779b97f4a7c15u >> 51);
    meter->basic_blocks += times;
    for (unsigned tries = 0; tries < BLOCK_TABLE; tries++, place = (place + 1) % BLOCK_TABLE) {
        struct basic_block *block = &meter->blocks[place];
        if (block->pc != NULL && block->pc != pc) continue;
        block->pc = pc;
        block->entered += times;
        return;
    }
}

void meter_basic_block(struct worker *worker, const void *pc) { add_basic_block(worker->meter.counts, pc, 1); }

void meter_copy_landed(struct worker *worker, uint64_t accesses) {
    worker->meter.counts->copies++;
    worker->meter.counts->copy_accesses += accesses;
}

/* Found from an H200's counters of chapter 12: a load counts, row by row of its box, what lies outside of the tensor as well. */
void meter_tensor(struct worker *worker, enum tensor_traffic kind, uint64_t sectors) {
    if (!worker->meter.counted) return;
    worker->meter.counts->tensor_requests[kind]++;
    worker->meter.counts->tensor_sectors[kind] += sectors;
}

void meter_product(struct worker *worker, unsigned wavefronts) {
    if (!worker->meter.counted) return;
    worker->meter.counts->products++;
    worker->meter.counts->product_wavefronts += wavefronts;
}

void meter_registers(const struct thread *lane, const void *registers, size_t bytes) {
    size_t offset = stack_offset(lane, (uintptr_t)registers);
    if (simt_worker->meter.counted && offset <= STACK_BYTES - bytes)
        memset(&simt_worker->meter.counts->registers[offset / 4], true, bytes / 4);
}

/* A register of wgmma that is written before its first product looks like local memory until then. */
static bool has_registers_only(const struct meter *meter, const struct site *site) {
    return site->space == SPACE_LOCAL && site->past <= STACK_BYTES &&
           memchr(&meter->registers[site->lowest / 4], false, (site->past - site->lowest + 3) / 4) == NULL;
}

/* ---- one launch --------------------------------------------------------------------------------------------------------- */

static void merge(struct meter *into, struct meter *from) {
    meter_end_block(from);
    for (int i = 0; i < SITE_TABLE; i++) {
        const struct site *mine = &from->sites[i];
        if (mine->pc == NULL || has_registers_only(into, mine)) continue;
        struct site *site = find_place(into->sites, mine->pc, mine->kind, mine->space);
        struct site sum = *mine;
        if (site->pc != NULL) {
            int more = __builtin_popcount(site->sample_lanes) - __builtin_popcount(mine->sample_lanes);
            /* of two equals the lower one, whichever worker came first */
            if (more > 0 || (more == 0 && lowest_of_sample(site) <= lowest_of_sample(mine))) sum = *site;
            sum.lowest = site->lowest < mine->lowest ? site->lowest : mine->lowest;
            sum.past = site->past > mine->past ? site->past : mine->past;
            sum.requests = site->requests + mine->requests;
            sum.lanes = site->lanes + mine->lanes;
            sum.partial = site->partial + mine->partial;
            sum.sectors = site->sectors + mine->sectors;
            sum.wavefronts = site->wavefronts + mine->wavefronts;
            sum.least_wavefronts = site->least_wavefronts + mine->least_wavefronts;
        }
        *site = sum;
    }
    for (unsigned i = 0; i < from->event_count; i++) add_event(into, PLACE(from->events[i]), from->events[i].count);
    for (size_t i = 0; i < sizeof into->sums / sizeof *into->sums; i++) into->sums[i] += from->sums[i];
    uint64_t in_table = 0;
    for (int i = 0; i < BLOCK_TABLE; i++) {
        if (from->blocks[i].pc == NULL) continue;
        add_basic_block(into, from->blocks[i].pc, from->blocks[i].entered);
        in_table += from->blocks[i].entered;
    }
    into->basic_blocks += from->basic_blocks - in_table;
    if (from->shared_bytes > into->shared_bytes) into->shared_bytes = from->shared_bytes;
}

struct touched {
    const struct launch *launch;
    uint64_t read, written;
};

static void count_touched(const struct allocation *allocation, void *data) {
    struct touched *touched = data;
    for (size_t i = 0; i < (allocation->bytes + 3) / 4; i++) {
        const struct cell *cell = &allocation->cells[i], *bytes = byte_cells(allocation->cells, allocation->bytes, i);
        bool read = false;
        for (int b = 0; b < (cell->split ? 4 : 1); b++)
            read |= stamp_is_of((cell->split ? &bytes[b] : cell)->read, touched->launch);
        touched->read += read;
        touched->written += stamp_is_of(cell->write, touched->launch);
    }
}

static struct kernel *find_kernel(const struct launch *launch) {
    for (unsigned i = 0; i < simt_kernel_count; i++)
        if (simt_kernels[i].code == launch->kernel) return &simt_kernels[i];
    struct kernel *kernel = &APPEND(simt_kernels, simt_kernel_count, kernel_room);
    *kernel = (struct kernel){.code = launch->kernel};
    kernel_name(launch, kernel->name, sizeof kernel->name);
    kernel->meter = resize_or_die(NULL, sizeof *kernel->meter);
    return kernel;
}

void meter_launch_done(struct launch *launch) {
    struct kernel *kernel = find_kernel(launch);
    struct touched touched = {.launch = launch};
    memory_for_each(count_touched, &touched);
    for (int i = 0; i < launch->worker_count; i++)
        for (const struct worker *of = launch->workers[i]; of != NULL; of = of->second)
            for (size_t word = 0; of->meter.counts != NULL && word < STACK_BYTES / 4; word++)
                kernel->meter->registers[word] |= of->meter.counts->registers[word];
    for (int i = 0; i < launch->worker_count; i++)
        for (const struct worker *of = launch->workers[i]; of != NULL; of = of->second) {
            struct meter *counts = of->meter.counts;
            if (counts == NULL) continue;
            merge(kernel->meter, counts);
            free(counts->events);
            memset(counts, 0, sizeof *counts);
        }
    kernel->grid = launch->grid;
    kernel->block = launch->block;
    kernel->launches++;
    kernel->blocks += launch->blocks;
    kernel->metered_blocks += (launch->blocks + meter_every - 1) / meter_every;
    kernel->words_read += touched.read;
    kernel->words_written += touched.written;
}
