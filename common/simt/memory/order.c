/* When an access was: the launches' order, and a block's own time, which barriers and collectives advance. judge.h compares. */
#include "device_memory.h"
#include "judge.h"
#include "sector_lock.h"
#include "streams.h"

#include <string.h>
#include <sys/mman.h>

struct sector_lock sector_locks[SECTOR_LOCKS];

/* ---- orders that run out ------------------------------------------------------------------------------------------------- */

/* Call `age` for the cells of all global memory, for the split words' bytes too. */
struct aging {
    void (*age)(struct cell *cell, const struct aging *aging);
    uint64_t stamp; /* of the block that ages */
};

static void age_allocation(const struct allocation *memory, void *data) {
    const struct aging *aging = data;
    for (size_t word = 0; word < (memory->bytes + 3) / 4; word++) {
        struct cell *cell = &memory->cells[word];
        if (simt_worker != NULL) lock_sector(simt_worker, memory->start + 4 * word);
        aging->age(cell, aging);
        for (int i = 0; i < 4 && cell->split; i++) aging->age(&byte_cells(memory->cells, memory->bytes, word)[i], aging);
        if (simt_worker != NULL) unlock_sector(simt_worker);
    }
}

/* Launches become "long ago", but for those that the host has not waited for: they, and the running one, begin at number 1. */
static void age_launches_of(struct cell *cell, const struct aging *aging) {
    (void)aging;
    const uint64_t below = (1ull << STAMP_LAUNCH_SHIFT) - 1;
    uint64_t write = streams_renumbered(stamp_launch(cell->write)), read = streams_renumbered(stamp_launch(cell->read));
    if (cell->write != 0) cell->write = write != 0 ? write << STAMP_LAUNCH_SHIFT | (cell->write & below) : WRITTEN_BY_HOST;
    cell->read = read != 0 ? read << STAMP_LAUNCH_SHIFT | (cell->read & below) : 0;
}

void shadow_next_order(struct launch *launch) {
    static uint64_t last, settled;
    bool runs = launch->order != 0;
    if (last == STAMP_LAUNCH_MAX) {
        streams_keep(STAMP_LAUNCH_MAX / 2);
        memory_for_each(age_allocation, &(struct aging){age_launches_of, 0});
        last = streams_renumber(runs ? launch : NULL);
    }
    launch->order = ++last;
    launch->settled = ++settled;
    if (!runs) launch->first_order = last;
}

/* What this block has done becomes "before the last barrier". */
static void age_clocks_of(struct cell *cell, const struct aging *aging) {
    if (same_owner(cell->write, aging->stamp)) cell->write_clock = 0;
    if (same_owner(cell->read, aging->stamp)) cell->read_clock = 0;
}

static void reset_clocks(struct worker *worker) {
    worker->shadow.barrier_clock = 1;
    shadow_next_settled(worker);
    FOR_EACH_THREAD (thread, worker) thread->clock = 1;
    for (unsigned w = 0; w * WARP_SIZE < worker->launch->threads; w++) {
        struct warp *warp = &worker->warps[w];
        memset(warp->known_to_all, 0, sizeof warp->known_to_all);
        if (warp->has_partial) memset(warp->known, 0, sizeof warp->known);
        warp->has_partial = false;
    }
}

static __attribute__((noinline, cold)) void age_block(struct worker *worker) {
    struct aging aging = {age_clocks_of, stamp_make(worker->shadow.owner, 0)};
    memory_for_each(age_allocation, &aging);
    FOR_EACH_BLOCK (of, worker) {
        aging.stamp = stamp_make(of->shadow.shared_owner, 0);
        for (size_t i = 0; i < (SHARED_BYTES_MAX + 3) / 4 * 5; i++) age_clocks_of(&of->shared.cells[i], &aging);
        reset_clocks(of);
        async_forget(of);
    }
}

/* ---- the block's own time -------------------------------------------------------------------------------------------------- */

static void set_stamps(struct worker *worker) {
    /* Where streams are to be judged, each access that adds to a cell is. */
    worker->shadow.settled_global = worker->launch->contested ? NEVER_SETTLED : worker->launch->settled;
    FOR_EACH_THREAD (thread, worker) thread->stamp = stamp_make(worker->shadow.owner, thread->number);
}

/* The blocks of a cluster are one owner: the numbers of their threads tell them apart. */
static uint64_t owner_of(const struct worker *worker, uint64_t block) {
    return owner_make(worker->launch->order, block - worker->cluster.rank);
}

void shadow_start_block(struct worker *worker, uint64_t number) {
    if (worker->shadow.shared_owner == STAMP_SERIAL_MAX) {
        madvise(worker->shared.cells, cells_bytes(SHARED_BYTES_MAX), MADV_DONTNEED);
        worker->shadow.shared_owner = 0;
    }
    struct shadow_notes *notes = worker->shadow.notes;
    if (notes == NULL) notes = resize_or_die(NULL, sizeof *notes);
    *notes = (struct shadow_notes){.last_barrier = -1};
    worker->shadow = (struct worker_shadow){.owner = owner_of(worker, number),
                                            .shared_owner = worker->shadow.shared_owner + 1,
                                            .last_settled = worker->shadow.last_settled,
                                            .access_width = 4,
                                            .notes = notes};
    worker->async.on = false;
    set_stamps(worker);
    reset_clocks(worker);
}

/* Counts beyond the table are lost: messages then say less. */
static void count_barrier(struct worker *worker, const struct thread *last) {
    struct shadow_notes *notes = worker->shadow.notes;
    enum { ROOM = sizeof notes->barrier_sites / sizeof *notes->barrier_sites };
    unsigned i = 0;
    while (i < notes->barrier_site_count && notes->barrier_sites[i].pc != last->last_pc) i++;
    if (i == notes->barrier_site_count && i < ROOM)
        notes->barrier_sites[notes->barrier_site_count++] = (struct barrier_site){last->last_pc, last->place, 0};
    notes->last_barrier = i < ROOM ? (int)i : -1;
    if (i < ROOM) notes->barrier_sites[i].passed++;
}

void shadow_barrier(struct worker *worker, const struct thread *last) {
    shadow_report_unwritten(worker);
    count_barrier(worker, last);
    uint32_t latest = 0;
    FOR_EACH_BLOCK (of, worker)
        FOR_EACH_THREAD (thread, of)
            if (thread->clock > latest) latest = thread->clock;
    if (latest == STAMP_CLOCK_MAX) {
        age_block(worker);
        return;
    }
    worker->shadow.barrier_clock = latest + 1;
    shadow_next_settled(worker);
    FOR_EACH_THREAD (thread, worker) thread->clock = worker->shadow.barrier_clock;
}

void shadow_grid_barrier(struct worker *worker) {
    worker->shadow.owner = owner_of(worker, worker->block_number);
    set_stamps(worker);
}

/* The lanes have met: each knows now what any of them knew. */
void shadow_collective(struct warp *warp, struct thread *first_lane, unsigned lanes) {
    FOR_EACH_LANE (lane, lanes)
        if (first_lane[lane].clock == STAMP_CLOCK_MAX) age_block(simt_worker);
    FOR_EACH_LANE (lane, lanes) first_lane[lane].clock++;
    if (lanes == warp->live) {
        FOR_EACH_LANE (lane, lanes) warp->known_to_all[lane] = first_lane[lane].clock;
        return;
    }
    warp->has_partial = true;
    uint32_t joined[WARP_SIZE] = {0};
    FOR_EACH_LANE (lane, lanes)
        for (int a = 0; a < WARP_SIZE; a++)
            if (warp->known[lane][a] > joined[a]) joined[a] = warp->known[lane][a];
    FOR_EACH_LANE (lane, lanes) joined[lane] = first_lane[lane].clock;
    FOR_EACH_LANE (lane, lanes) memcpy(warp->known[lane], joined, sizeof joined);
}
