/* The meter: counts the memory accesses of a kernel as a card's hardware counters do. It knows memory and its names. */
#pragma once

#include "machine.h"
#include "shadow.h"

#include <cjson/cJSON.h>
#include <stdio.h>

enum memory_space { SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, MEMORY_SPACES };
extern const char *const space_names[MEMORY_SPACES], *const kind_names[ACCESS_KINDS]; /* "global", "load" */

/* What a program calls of it is declared in simulated.h. */
extern uint64_t meter_every;                   /* of the blocks, one in so many is metered; 0: none */
void meter_start_block(struct worker *worker); /* is it counted? */

/* One access of one lane, as the meter keeps it until the rest of the warp has come as far. */
struct access {
    uintptr_t address;
    uint32_t pc;  /* relative to the program's start */
    uint32_t via; /* the furthest basic block since the access before, when that lies behind this one; else 0 */
    uint32_t to;  /* of a copy: where in the block's shared memory it goes */
    uint16_t bytes;
    uint8_t kind, space;
};

/* Called with each request of a block that is watched: trace/. */
extern void (*meter_watch_request)(struct worker *worker, unsigned warp, const uintptr_t *addresses,
                                   const uint32_t *destinations, unsigned lanes, const struct access *access);

/* ---- requests.c: the accesses of a metered block, lane by lane, put together to requests of its warps ---- */
void meter_access(uintptr_t address, size_t bytes, enum access_kind kind, enum memory_space space, const void *pc);
void meter_destination(const void *from, size_t shared_offset); /* of the copy from there, if it was the last one noted */
/* Count what these lanes of a warp have done so far, when they meet; and what the whole block has, at its barriers, before
 * any thread goes past, and at its end. */
void meter_lanes(struct worker *worker, struct thread *first_lane, unsigned lanes);
void meter_block(struct worker *worker);
/* No lane of the warp can go on: make room in its logs. False when that was not what they waited for. */
bool meter_make_room(struct worker *worker, unsigned first, unsigned end);

/* ---- counts.c: what each source line cost ---- */
void meter_event(struct worker *worker, int warp, const struct place *place); /* warp -1: a barrier */
void meter_phase(struct worker *worker);                          /* of a barrier that is not the block's has ended */
void meter_flag(struct worker *worker);                           /* an access by which threads may wait for one another */
void meter_basic_block(struct worker *worker, const void *pc);    /* the running thread enters it */
void meter_copy_landed(struct worker *worker, uint64_t accesses); /* made by its thread since the copy was issued */
void meter_tensor(struct worker *worker, enum tensor_traffic kind, uint64_t sectors); /* a box or bytes that the TMA copies */
void meter_product(struct worker *worker, unsigned wavefronts);                       /* of a warpgroup */
void meter_registers(const struct thread *lane, const void *registers, size_t bytes); /* that a lane has in a wgmma */
void meter_launch_done(struct launch *launch);

/* ---- table.c: the counts in words ---- */
cJSON *json_of_index(struct uint3 index);
