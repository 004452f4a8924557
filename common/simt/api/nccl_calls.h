/* What the files of NCCL share: nccl.c has the public calls, nccl_data.c what comes about, nccl_waits.c who waits for ever. Each
 * calls only those named after it. */
#pragma once

#include "nccl.h"

#include "api.h"

#include <pthread.h>

enum kind { SEND, RECEIVE, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, REDUCE, BROADCAST };
extern const char *const nccl_names[]; /* of each kind */
extern const struct nccl_type {
    const char *name;
    size_t bytes;
} nccl_types[ncclNumTypes];

struct clique { /* what one ncclUniqueId makes */
    struct clique *next;
    ncclUniqueId id;
    int ranks, joined;
    struct ncclComm **comms;
};
struct ncclComm {
    struct clique *clique;
    int rank, device;
    bool destroyed;
    void *made[CALL_FRAMES];
};

struct call {
    enum kind kind;
    ncclComm_t comm;
    int peer; /* or the root */
    const void *from;
    void *to;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    cudaStream_t stream;
    void *called[CALL_FRAMES];
    pthread_t thread;
    unsigned long group;
    /* when it is in its stream */
    struct operation operation;
    struct clock before;
};

extern struct call **nccl_given; /* in streams, and not come about; each rank's in its order */
extern unsigned nccl_given_count, nccl_given_room;
extern unsigned nccl_news; /* counts what may let a thread go on that waits: a call given or come about, a rank that joins */
extern struct clique *nccl_cliques;
extern unsigned nccl_open_groups;
extern void *nccl_last_start[CALL_FRAMES]; /* where a group began last */

extern _Thread_local struct nccl_group {
    unsigned depth;
    struct call **calls;
    unsigned call_count, call_room;
    struct ncclComm **joins;
    unsigned join_count, join_room;
    bool gives; /* the calling thread is in ncclGroupEnd(), or in a call outside of a group */
} nccl_group;

/* ---- nccl_waits.c ---- */

/* "the ncclSend() of rank 0 to rank 1 at x.cu:12" */
void nccl_call_name(const struct call *call, char *text, size_t room);
/* A call that is wrong in itself: told with its line. The result is what the call returns. */
ncclResult_t nccl_refuse(ncclResult_t result, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A fault, after which the device does no more. */
void nccl_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
ncclResult_t nccl_result_now(void); /* of a call that did what it had to: is there a fault? */
/* What would be the other side of the call. */
bool nccl_call_is_other_side(const struct call *call, const struct call *other);
/* For api_communication, api_calls_wait_for_group and api_no_more_calls. */
enum communication nccl_communication(const struct clock *clock, bool waits);
bool nccl_calls_wait_for_group(const struct CUstream_st *stream, int device);
void nccl_at_end(void);
ncclResult_t nccl_wait_for_ranks(const struct clique *clique); /* all have joined */

/* ---- nccl_data.c ---- */

bool nccl_call_reads(const struct call *call); /* has the rank bytes that it gives, or takes? */
bool nccl_call_writes(const struct call *call);
struct region nccl_call_read_by(const struct call *call);
struct region nccl_call_written_by(const struct call *call);
/* The verb between them, where `a` uses bytes that `b` writes; NULL: it does not, or they are one call in place. */
const char *nccl_call_own_overlap(const struct call *a, const struct call *b);
/* The bytes do not lie in one allocation of the rank's device: that has been told. */
bool nccl_call_buffer_is_refused(const struct call *call, struct region region, const char *side);
/* The call as the stream that it is in, with what came before it: for messages too. */
bool nccl_call_use(const struct call *call, const struct clock *clock, struct region region, bool written);
/* A pair, or a collective's calls, whose sides are all there comes about. False: none. */
bool nccl_come_about(void);
