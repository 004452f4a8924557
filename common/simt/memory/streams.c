/* Races between streams: vector clocks order the operations, and unordered operations must not share bytes, if one of them writes.
 *
 * A launch has ended when it returns, and the cells of memory hold what it read and wrote (shadow.c). So streams cost an access
 * nothing until two operations are unordered. Then the later launch compares its stamp with each cell that it touches. A cell holds
 * one writer and one reader. A launch may take the place of an unordered one without a race (both read, or both are atomic): the
 * replaced one is kept beside the cell (struct displaced), one per stream, since the last operation of a stream comes after its
 * earlier ones. Copies and memsets keep their regions instead, until the host has waited for them.
 *
 * These come before an operation:
 *     1  the earlier operations of its stream
 *     2  if it is in the default stream, the earlier operations of all blocking streams; if it is in a blocking stream, the earlier
 *        operations of the default stream
 *     3  for each event that its stream has waited for: what came before the latest record of that event
 *     4  what the host has waited for. All host threads count as one: how they order one another is not seen
 * Each device has a default stream. A copy between two devices in a default stream comes after all that either device has been given,
 * and before all that it is given afterwards.
 *
 * Invariant: only operations that the host has not waited for are kept. Of very many, the oldest are dropped, and count as ordered.
 */
#include "streams.h"

#include "judge.h"
#include "sector_lock.h"

#include <execinfo.h>
#include <pthread.h>
#include <sys/mman.h>

enum { OPERATIONS_MAX = 1 << 14 }; /* launches, and regions, that the host has not waited for */

static uint64_t serial;
static uint64_t *last_of; /* by slot: its last operation */
static unsigned slot_count, slot_room;
static struct CUstream_st **streams; /* all but the default one; a destroyed one stays until the host has waited for it */
static unsigned stream_count, stream_room, streams_made;
static struct clock host;
static struct CUstream_st defaults[DEVICES_MAX]; /* blocking once it is known */
static struct clock of_device[DEVICES_MAX];      /* what comes before all that the device is given */
int streams_devices = 1;
uint64_t streams_reach[DEVICES_MAX];

_Thread_local cudaStream_t streams_inside;

/* ---- clocks ---------------------------------------------------------------------------------------------------------- */

static bool is_before(const struct operation *operation, const struct clock *clock) {
    return clock_known(clock, operation->slot) >= operation->serial;
}
bool streams_come_before(const struct operation *operation, const struct clock *clock) { return is_before(operation, clock); }
void streams_tell(struct clock *clock, const struct operation *operation) {
    clock_know(clock, operation->slot, operation->serial);
}

static bool knows_all(const struct clock *clock) {
    for (unsigned slot = 0; slot < slot_count; slot++)
        if (last_of[slot] > clock_known(clock, slot)) return false;
    return true;
}

/* ---- streams ----------------------------------------------------------------------------------------------------------- */

static unsigned *free_slots, free_count,
    free_room; /* of streams that are gone, with nothing that the host has not waited for */

static unsigned new_slot(void) {
    if (free_count > 0) return free_slots[--free_count];
    APPEND(last_of, slot_count, slot_room) = 0;
    return slot_count - 1;
}

static void free_destroyed(void) {
    for (unsigned i = stream_count; i-- > 0;) {
        if (!streams[i]->destroyed || last_of[streams[i]->slot] > clock_known(&host, streams[i]->slot)) continue;
        APPEND(free_slots, free_count, free_room) = streams[i]->slot;
        free(streams[i]->clock.known), free(streams[i]);
        streams[i] = streams[--stream_count];
    }
}

cudaStream_t streams_default_of(int device) {
    struct CUstream_st *of = &defaults[device];
    if (!of->blocking) *of = (struct CUstream_st){.slot = new_slot(), .device = device, .blocking = true};
    return of;
}

cudaStream_t streams_new(bool blocking, int device) {
    cudaStream_t made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    *made = (struct CUstream_st){.slot = new_slot(), .number = ++streams_made, .device = device, .blocking = blocking};
    backtrace(made->made, CALL_FRAMES);
    return APPEND(streams, stream_count, stream_room) = made;
}

bool streams_know(const struct CUstream_st *stream) {
    for (unsigned i = 0; i < stream_count; i++)
        if (streams[i] == stream) return !stream->destroyed;
    return stream >= defaults && stream < defaults + DEVICES_MAX;
}

void streams_destroy(cudaStream_t stream) {
    stream->destroyed = true;
    free_destroyed();
}

void streams_advance(cudaStream_t stream) {
    clock_join(&stream->clock, &host);
    clock_join(&stream->clock, &of_device[stream->device]);
    if (stream->number == 0) {
        for (unsigned i = 0; i < stream_count; i++)
            if (streams[i]->blocking && streams[i]->device == stream->device) clock_join(&stream->clock, &streams[i]->clock);
    } else if (stream->blocking) {
        clock_join(&stream->clock, &defaults[stream->device].clock);
    }
}

void streams_join_device(struct clock *clock, int device) {
    clock_join(clock, &defaults[device].clock);
    for (unsigned i = 0; i < stream_count; i++)
        if (streams[i]->device == device) clock_join(clock, &streams[i]->clock);
}

void streams_meet(cudaStream_t stream, int device, int other, bool after) {
    const int both[] = {device, other};
    for (int i = 0; i < 2; i++)
        if (after)
            clock_join(&of_device[both[i]], &stream->clock);
        else
            streams_join_device(&stream->clock, both[i]);
}

void streams_follow(cudaStream_t stream, const struct clock *event, int slot) {
    clock_join(&stream->clock, event);
    memset(stream->waited, 0, sizeof stream->waited);
    backtrace(stream->waited, CALL_FRAMES);
    stream->waited_for = slot;
}

struct operation streams_next(cudaStream_t stream, const char *what, const char *did) {
    streams_advance(stream);
    struct operation next = {++serial,  .slot = stream->slot, .stream = stream->number, .device = stream->device, .what = what,
                             .did = did};
    last_of[stream->slot] = serial;
    clock_know(&stream->clock, stream->slot, serial);
    memcpy(next.made, stream->made, sizeof next.made);
    backtrace(next.called, CALL_FRAMES);
    return next;
}

/* ---- what the host has not waited for ------------------------------------------------------------------------------------- */

static struct operation *launches; /* in their order */
static unsigned launch_count, launch_room;
static struct used {
    struct operation by;
    struct region region;
    bool writes;
} * regions;
static unsigned region_count, region_room;
static _Atomic bool some_are_displaced;

static void forget_launches(unsigned count) {
    launch_count -= count;
    memmove(launches, launches + count, launch_count * sizeof *launches);
}
static void forget_region(unsigned i) { regions[i] = regions[--region_count]; }

bool streams_are_busy(void) { return !knows_all(&host); }

static void let_go(void) {
    unsigned done = 0;
    while (done < launch_count && is_before(&launches[done], &host)) done++;
    if (done > 0) forget_launches(done);
    for (unsigned i = region_count; i-- > 0;)
        if (is_before(&regions[i].by, &host)) forget_region(i);
    free_destroyed();
}

void streams_wait(const struct clock *clock) {
    if (clock != NULL)
        clock_join(&host, clock);
    else
        for (unsigned slot = 0; slot < slot_count; slot++) clock_know(&host, slot, last_of[slot]);
    let_go();
}

static bool reaches(int device, int other) { return device == other || (streams_reach[device] >> other & 1) != 0; }

struct beyond {
    int device;
    bool found;
};
static void look_beyond(const struct allocation *allocation, void *data) {
    struct beyond *beyond = data;
    beyond->found |= allocation->kind == DEVICE && !reaches(beyond->device, allocation->device);
}
/* Is there memory that the device may not access? */
static bool is_apart(int device) {
    struct beyond beyond = {.device = device};
    if (streams_devices > 1) memory_for_each(look_beyond, &beyond);
    return beyond.found;
}

void streams_launch(cudaStream_t stream, struct launch *launch) {
    if (launch_count == OPERATIONS_MAX) forget_launches(OPERATIONS_MAX / 2);
    struct operation next = streams_next(stream, launch->name, NULL);
    next.first_order = launch->first_order;
    APPEND(launches, launch_count, launch_room) = next;
    launch->stream = stream;
    launch->contested = !knows_all(&stream->clock) || is_apart(stream->device);
}

void streams_launched(const struct launch *launch) {
    struct operation *operation = &launches[launch_count - 1];
    operation->synchronises = atomic_load(&launch->fenced) == SIMT_DEVICE || atomic_load(&launch->has_semaphores);
}

/* The launch that had this order, if the host has not waited for it. */
static const struct operation *launch_of(uint64_t order) {
    unsigned low = 0, high = launch_count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (launches[middle].first_order <= order)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &launches[low - 1] : NULL;
}

uint64_t streams_renumbered(uint64_t order) {
    const struct operation *operation = order != 0 ? launch_of(order) : NULL;
    return operation != NULL ? (uint64_t)(operation - launches) + 1 : 0;
}

static void renumber_displaced(const struct allocation *allocation, void *data) {
    (void)data;
    for (struct displaced *of = allocation->displaced; of != NULL; of = of->next)
        for (size_t i = 0; i < of->count; i++) {
            of->cells[i].read_order = (uint32_t)streams_renumbered(of->cells[i].read_order);
            of->cells[i].write_order = (uint32_t)streams_renumbered(of->cells[i].write_order);
        }
}

void streams_keep(unsigned count) {
    if (launch_count > count) forget_launches(launch_count - count);
}

uint64_t streams_renumber(struct launch *running) {
    memory_for_each(renumber_displaced, NULL);
    for (unsigned i = 0; i < launch_count; i++) launches[i].first_order = i + 1;
    if (running != NULL) running->first_order = launch_count;
    return launch_count;
}

/* ---- regions ----------------------------------------------------------------------------------------------------------------- */

/* Those that come before and that whoever meets them meets here, too, need not be kept. */
static void keep_region(const struct operation *by, const struct clock *clock, const struct region *region, bool writes) {
    for (unsigned i = region_count; i-- > 0;)
        if ((writes || !regions[i].writes) && is_before(&regions[i].by, clock) && region_covers(region, &regions[i].region))
            forget_region(i);
    if (region_count == OPERATIONS_MAX) forget_region(0);
    APPEND(regions, region_count, region_room) = (struct used){*by, *region, writes};
}

void streams_forget(uintptr_t start, size_t bytes) {
    const struct region all = {start, bytes, bytes, 1};
    for (unsigned i = region_count; i-- > 0;)
        if (region_common(&regions[i].region, &all) != 0) forget_region(i);
}

/* ---- what a launch has displaced in a cell -------------------------------------------------------------------------------------- */

static struct displaced *displaced_by(const struct allocation *allocation, unsigned slot) {
    struct displaced *of = allocation->displaced;
    while (of != NULL && of->slot != slot) of = of->next;
    return of;
}

static struct displaced_cell *make_displaced(const struct allocation *allocation, unsigned slot, size_t cell) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    struct displaced *of = displaced_by(allocation, slot);
    if (of == NULL) { /* pages that nobody touches take no memory */
        size_t count = allocation->cell_bytes / sizeof(struct cell), bytes = sizeof *of + count * sizeof *of->cells;
        of = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (of == MAP_FAILED) {
            fputs("simulated device: no memory for the readers of several streams\n", stderr);
            abort();
        }
        *of = (struct displaced){.next = allocation->displaced, .bytes = bytes, .slot = slot, .count = count};
        atomic_store(&((struct allocation *)allocation)->displaced, of);
        some_are_displaced = true;
    }
    pthread_mutex_unlock(&lock);
    return &of->cells[cell];
}

static void keep_displaced(uintptr_t address, const struct cell *cell, const struct operation *by, bool wrote) {
    const struct allocation *allocation = memory_find(address);
    if (allocation == NULL) return;
    struct displaced_cell *kept = make_displaced(allocation, by->slot, (size_t)(cell - allocation->cells));
    if (wrote)
        kept->write_order = (uint32_t)stamp_launch(cell->write), kept->write_pc = cell->write_pc;
    else
        kept->read_order = (uint32_t)stamp_launch(cell->read), kept->read_pc = cell->read_pc;
}

/* ---- two operations that nothing orders ------------------------------------------------------------------------------------------ */

static const struct operation *unordered_launch(uint64_t order, const struct clock *clock) {
    const struct operation *operation = order != 0 ? launch_of(order) : NULL;
    return operation != NULL && !is_before(operation, clock) ? operation : NULL;
}

static bool is_met(struct meeting *meeting, uint64_t order, const struct clock *clock, uint32_t pc, bool wrote) {
    meeting->other = unordered_launch(order, clock), meeting->pc = pc, meeting->wrote = wrote;
    return meeting->other != NULL;
}

/* A cell of this allocation, or a word's bytes' cells. */
static bool meets_displaced(const struct allocation *allocation, const struct cell *cell, bool reads_too, bool atomic,
                            const struct clock *clock, struct meeting *meeting) {
    size_t words = (allocation->bytes + 3) / 4, at = (size_t)(cell - allocation->cells);
    for (const struct displaced *of = allocation->displaced; of != NULL; of = of->next)
        for (int whole = 0; whole < 1 + (at >= words); whole++) { /* before the word was split */
            const struct displaced_cell *kept = &of->cells[whole ? (at - words) / 4 : at];
            if (!atomic && is_met(meeting, kept->write_order, clock, kept->write_pc, true)) return true;
            if (reads_too && is_met(meeting, kept->read_order, clock, kept->read_pc, false)) return true;
        }
    return false;
}

/* Bytes of one allocation. */
static bool meets_cells(uintptr_t low, uintptr_t high, bool writes, const struct clock *clock, struct meeting *meeting) {
    const struct allocation *memory = memory_find(low);
    if (memory == NULL) return false;
    if (high > memory->start + memory->bytes) high = memory->start + memory->bytes;
    for (uintptr_t next; low < high; low = next) {
        size_t offset = low - memory->start;
        const struct cell *cell = &memory->cells[offset / 4];
        next = cell->split ? low + 1 : memory->start + offset / 4 * 4 + 4;
        if (cell->split) cell = byte_cells(memory->cells, memory->bytes, offset / 4) + offset % 4;
        meeting->address = low;
        if (is_met(meeting, stamp_launch(cell->write), clock, cell->write_pc, true)) return true;
        if (writes && is_met(meeting, stamp_launch(cell->read), clock, cell->read_pc, false)) return true;
        if (some_are_displaced && meets_displaced(memory, cell, writes, false, clock, meeting)) return true;
    }
    return false;
}

static bool meets(const struct region *region, bool writes, const struct clock *clock, struct meeting *meeting) {
    if (knows_all(clock)) return false;
    for (unsigned i = 0; i < region_count; i++) {
        if (!(writes || regions[i].writes) || is_before(&regions[i].by, clock)) continue;
        *meeting = (struct meeting){&regions[i].by, region_common(region, &regions[i].region), 0, regions[i].writes};
        if (meeting->address != 0) return true;
    }
    bool launches_are_known = true;
    for (unsigned i = 0; i < launch_count && launches_are_known; i++) launches_are_known = is_before(&launches[i], clock);
    for (size_t row = 0; row < region->rows && !launches_are_known; row++) {
        uintptr_t low = region->start + row * region->pitch;
        if (meets_cells(low, low + region->width, writes, clock, meeting)) return true;
    }
    return false;
}

bool streams_host_meets(uintptr_t address, size_t bytes, bool writes, struct meeting *meeting) {
    const struct region region = {address, bytes, bytes, 1};
    return meets(&region, writes, streams_inside != NULL ? &streams_inside->clock : &host, meeting);
}

void streams_host_did(const struct operation *operation, uintptr_t address, size_t bytes, bool writes) {
    struct used *last = region_count > 0 ? &regions[region_count - 1] : NULL;
    if (last != NULL && last->by.serial == operation->serial && last->writes == writes &&
        last->region.start + last->region.width == address)
        last->region.width += bytes;
    else
        keep_region(operation, &streams_inside->clock, &(struct region){address, bytes, bytes, 1}, writes);
}

/* ---- in words -------------------------------------------------------------------------------------------------------------------- */

/* Behind "race between streams on O[3]: this thread reads it at FILE:LINE, launched at FILE:LINE". */
static void explain(const struct CUstream_st *own, const struct meeting *meeting, char *text, size_t room) {
    const struct operation *other = meeting->other;
    char here[400], there[400], *called = line_of_frames(other->called, CALL_FRAMES);
    streams_name_own(own, here, sizeof here);
    streams_name_any(other->stream, other->device, other->made, there, sizeof there);
    append_text(text, room, " in %s; ", here);
    const char *did = other->did != NULL ? other->did : meeting->wrote ? "wrote" : "read";
    if (other->first_order != 0) {
        char *line = line_or(meeting->pc, "");
        append_text(text, room, "kernel %s, launched at %s in %s, %s it at %s", other->what, called, there, did, line);
        free(line);
    } else {
        append_text(text, room, "the %s at %s in %s %s it", other->what, called, there, did);
    }
    append_text(text, room, ", and nothing orders the two: ");
    free(called);
    here[strcspn(here, "(") - (own->number != 0)] = there[strcspn(there, "(") - (other->stream != 0)] = '\0';
    char *wait = line_of_frames(own->waited, CALL_FRAMES);
    if (own->waited[0] != NULL && own->waited_for == -1)
        append_text(text, room, "the wait at %s is for an event that had not been recorded, which orders nothing; ", wait);
    else if (own->waited[0] != NULL && own->waited_for == (int)other->slot)
        append_text(text, room, "the event that is waited for at %s was recorded in %s before that%s; ", wait, there,
                    strncmp(other->what, "nccl", 4) == 0 ? ": a call of NCCL is in its stream only when its group has ended"
                                                         : "");
    free(wait);
    if (own->device != other->device)
        append_text(text, room, "only events and the host order streams of two devices; ");
    else if (own->number == 0 || other->stream == 0)
        append_text(text, room, "a stream made with cudaStreamNonBlocking is not ordered with the default stream; ");
    append_text(text, room,
                "record an event in %s after the first and let %s wait for it before the second (cudaEventRecord(), "
                "cudaStreamWaitEvent()), or let the host wait between the two (cudaStreamSynchronize())",
                there, here);
}

bool streams_use(const struct CUstream_st *stream, const struct operation *operation, const struct region *region,
                 bool writes) {
    struct meeting meeting;
    if (meets(region, writes, &stream->clock, &meeting)) {
        char text[2600], *line = line_of_frames(operation->called, CALL_FRAMES);
        snprintf(text, sizeof text, "%s: race between streams on %s: this %s %s it", line,
                 describe_address(meeting.address).text, operation->what,
                 operation->did != NULL ? "frees"
                 : writes               ? "writes"
                                        : "reads");
        explain(stream, &meeting, text, sizeof text);
        simt_fail_outside(cudaErrorLaunchFailure, text);
        free(line);
        return false;
    }
    keep_region(operation, &stream->clock, region, writes);
    return true;
}

static __attribute__((noinline, cold)) void report(const struct meeting *meeting, enum access_kind kind, const void *pc) {
    unlock_sector(simt_worker);
    char text[2600] = "", *line = line_of_frames(launches[launch_count - 1].called, CALL_FRAMES);
    append_text(text, sizeof text, ", launched at %s", line);
    explain(simt_worker->launch->stream, meeting, text, sizeof text);
    free(line);
    simt_fail(NULL, cudaErrorLaunchFailure, "race between streams on %s: this thread %s it at %s%s",
              describe_address(meeting->address).text,
              only_reads(kind)       ? "reads"
              : kind == ACCESS_WRITE ? "writes"
                                     : "updates (atomically)",
              source_line(pc), text);
}

/* Both kernels may order their threads by flags or semaphores, which are not followed from one launch to another. */
static bool may_be_ordered(const struct operation *other) {
    const struct launch *launch = simt_worker->launch;
    bool synchronises =
        simt_worker->shadow.block_synchronises && (atomic_load_explicit(&launch->fenced, memory_order_relaxed) == SIMT_DEVICE ||
                                                   atomic_load_explicit(&launch->has_semaphores, memory_order_relaxed));
    return synchronises && other->synchronises;
}

static __attribute__((noinline, cold)) void judge_device(uintptr_t address, enum access_kind kind, const void *pc) {
    const struct allocation *memory = memory_find(address);
    int device = simt_worker->launch->stream->device;
    if (memory == NULL || memory->kind != DEVICE || reaches(device, memory->device)) return;
    unlock_sector(simt_worker);
    char *line = line_of_frames(launches[launch_count - 1].called, CALL_FRAMES);
    simt_fail(pc, cudaErrorIllegalAddress,
              "%s of %s, which lies on device %d; the kernel runs on device %d (launched at %s), which has no access to it: "
              "cudaDeviceEnablePeerAccess(%d, 0) while device %d is current gives it",
              only_reads(kind) ? "read" : "write", describe_address(address).text, memory->device, device, line, memory->device,
              device);
}

void streams_judge(const struct cell *cell, uintptr_t address, enum access_kind kind, bool marked, const void *pc) {
    if (streams_devices > 1) judge_device(address, kind, pc);
    const struct clock *clock = &simt_worker->launch->stream->clock;
    bool writes = !only_reads(kind);
    struct meeting meeting = {.address = address};
    bool found = is_met(&meeting, stamp_launch(cell->write), clock, cell->write_pc, true);
    if (found && marked && (cell->write & WRITE_MARKED) != 0) {
        if (writes) keep_displaced(address, cell, meeting.other, true);
        found = false;
    }
    if (!found && is_met(&meeting, stamp_launch(cell->read), clock, cell->read_pc, false)) {
        found = writes;
        if (!writes && !marked) keep_displaced(address, cell, meeting.other, false);
    }
    if (!found && some_are_displaced) found = meets_displaced(memory_find(address), cell, writes, marked, clock, &meeting);
    for (unsigned i = 0; i < region_count && !found; i++) {
        if (!(writes || regions[i].writes) || is_before(&regions[i].by, clock)) continue;
        meeting = (struct meeting){&regions[i].by, address, 0, regions[i].writes};
        found = region_first_common(&regions[i].region, address, address + simt_worker->shadow.access_width) != 0;
    }
    if (found && !may_be_ordered(meeting.other)) report(&meeting, kind, pc);
}
