/* Which operations of the program are ordered, by its streams, events and waits: streams.c has the rules. An operation is a launch,
 * a copy, a memset, an allocation or a release in a stream, or a function that the host runs there. */
#pragma once

#include "cuda_runtime.h"
#include "device_memory.h"
#include "shadow.h"

/* Of each stream, by its slot, the last operation that comes before. */
struct clock {
    uint64_t *known;
    unsigned count;
};
uint64_t clock_known(const struct clock *clock, unsigned slot);
void clock_know(struct clock *clock, unsigned slot, uint64_t of);
void clock_join(struct clock *clock, const struct clock *other);
void clock_copy(struct clock *clock, const struct clock *other);

enum { CALL_FRAMES = 8 };
struct operation {
    uint64_t serial;      /* from 1, of all streams */
    uint64_t first_order; /* of a launch (stamp.h), else 0 */
    unsigned slot, stream;
    int device;
    const char *what, *did; /* "kernel fill", "wrote"; of a copy `did` is NULL: it reads one place and writes another */
    void *called[CALL_FRAMES], *made[CALL_FRAMES]; /* where it and its stream were */
    bool synchronises;                             /* a kernel whose threads may order themselves by flags or semaphores */
};

struct CUstream_st {
    unsigned slot, number; /* number: as messages call it; 0: the default one */
    int device;
    bool blocking; /* ordered with the default stream */
    bool destroyed;
    struct clock clock;
    void *made[CALL_FRAMES];
    void *waited[CALL_FRAMES]; /* the last wait of it for an event, */
    int waited_for;            /* which was recorded in the stream of this slot; -1: had not been recorded */
};
enum { DEVICES_MAX = 64 };
extern int streams_devices;                  /* how many there are */
extern uint64_t streams_reach[DEVICES_MAX];  /* of each device, a bit for each peer whose memory it may access */
cudaStream_t streams_default_of(int device); /* the legacy one */
cudaStream_t streams_new(bool blocking, int device);
bool streams_know(const struct CUstream_st *stream);
void streams_destroy(cudaStream_t stream);

/* What comes before the stream's next operation is in its clock after that. */
void streams_advance(cudaStream_t stream);
void streams_follow(cudaStream_t stream, const struct clock *event, int slot); /* slot: as waited_for */
/* All work of both devices comes before the stream's next operation; or, `after` it, what either device gets from now on does. */
void streams_meet(cudaStream_t stream, int device, int other, bool after);
/* The clock learns of all that the device has been given; of this operation; and does it know of it? */
void streams_join_device(struct clock *clock, int device);
void streams_tell(struct clock *clock, const struct operation *operation);
bool streams_come_before(const struct operation *operation, const struct clock *clock);
/* The host waits for what the clock holds; NULL: for all. */
void streams_wait(const struct clock *clock);
/* Is there something that the host has not waited for? */
bool streams_are_busy(void);

/* The stream's next operation. */
struct operation streams_next(cudaStream_t stream, const char *what, const char *did);
/* A launch that has its orders; and that has ended. */
void streams_launch(cudaStream_t stream, struct launch *launch);
void streams_launched(const struct launch *launch);
/* The orders of launches begin again: keep so many launches; the order that each will have, 0: long ago; when all cells have them,
 * the same for what is kept beside. Returns the last order that is taken. */
void streams_keep(unsigned count);
uint64_t streams_renumbered(uint64_t order);
uint64_t streams_renumber(struct launch *running);

/* `rows` rows of `width` bytes each. */
struct region {
    uintptr_t start;
    size_t width, pitch, rows;
};
/* The first byte from `low` up to `high` that is of the region, or that both regions have, or 0. */
uintptr_t region_first_common(const struct region *region, uintptr_t low, uintptr_t high);
uintptr_t region_common(const struct region *a, const struct region *b);
bool region_covers(const struct region *a, const struct region *b);
/* The operation, the next of its stream, does this to the region. False: it races with another one, and that is told. */
bool streams_use(const struct CUstream_st *stream, const struct operation *operation, const struct region *region, bool writes);
void streams_forget(uintptr_t start, size_t bytes); /* the memory is released */

/* An access to one cell by the running thread of a contested launch, before it is noted; holds the sector's lock. */
void streams_judge(const struct cell *cell, uintptr_t address, enum access_kind kind, bool marked, const void *pc);

/* An operation that comes neither before nor after, and what it did at `address`. */
struct meeting {
    const struct operation *other;
    uintptr_t address;
    uint32_t pc; /* of a kernel's access, else 0 */
    bool wrote;
};
/* Of the host's code, or inside of a function that a stream runs of it. */
bool streams_host_meets(uintptr_t address, size_t bytes, bool writes, struct meeting *meeting);
extern _Thread_local cudaStream_t streams_inside; /* of such a function, while it runs */
void streams_host_did(const struct operation *operation, uintptr_t address, size_t bytes, bool writes);
/* " in stream 2 (made at x.cu:4)" of one that is not the default stream, else "". */
void streams_name(const struct operation *operation, char *text, size_t room);
void streams_name_any(unsigned number, int device, void *const made[CALL_FRAMES], char *text, size_t room);
void streams_name_own(const struct CUstream_st *stream, char *text, size_t room); /* "stream 2 (made at x.cu:4)" */
