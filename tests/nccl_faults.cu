/* NCCL between three devices: calls that nothing meets, and what a group's end and the streams order. The patterns are right. */
#include "faults.h"

#include <cstdlib>
#include <functional>
#include <nccl.h>
#include <thread>

enum { RANKS = 3, BYTES = T * sizeof(int) };

__global__ static void put(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ static void add(int *to, const int *from) { to[threadIdx.x] += from[threadIdx.x]; }
__global__ static void twice(int *to) { to[threadIdx.x] *= 2; }

/* Of each rank a communicator, two streams, two events and two buffers, of which the first holds the rank's part of `in`. */
struct ranks {
    ncclComm_t comm[RANKS];
    cudaStream_t stream[RANKS], copy[RANKS];
    cudaEvent_t event[RANKS], back[RANKS];
    int *mine[RANKS], *other[RANKS];
    explicit ranks(const int *in, bool all = true) {
        int count;
        setenv("SIMT_DEVICES", "3", 1);
        setenv("SIMT_WATCHDOG_SECONDS", "0.1", 1); /* a rank that waits is told so soon, in 20 orders */
        if (cudaGetDeviceCount(&count) != cudaSuccess || count < RANKS) cr_skip_test("needs %d devices", RANKS);
        for (int r = 0; r < RANKS; r++) {
            cudaSetDevice(r);
            for (int peer = 0; peer < RANKS; peer++)
                if (peer != r) cudaDeviceEnablePeerAccess(peer, 0);
            cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking),
                cudaStreamCreateWithFlags(&copy[r], cudaStreamNonBlocking);
            cudaEventCreate(&event[r]), cudaEventCreate(&back[r]);
            cudaMalloc(&mine[r], RANKS * BYTES), cudaMalloc(&other[r], RANKS * BYTES);
            cudaMemset(mine[r], 0, RANKS * BYTES), cudaMemset(other[r], 0, RANKS * BYTES);
            cudaMemcpy(mine[r], in + r * T, BYTES, cudaMemcpyDefault);
            cudaDeviceSynchronize();
        }
        cudaSetDevice(0);
        if (all) cr_assert_eq(ncclCommInitAll(comm, RANKS, nullptr), ncclSuccess);
    }
    ~ranks() {
        for (int r = 0; r < RANKS; r++) cudaSetDevice(r), cudaDeviceSynchronize();
        cudaSetDevice(0);
    }
    void send(int from, int to, const int *what) const { ncclSend(what, T, ncclInt32, to, comm[from], stream[from]); }
    void receive(int to, int from, int *where) const { ncclRecv(where, T, ncclInt32, from, comm[to], stream[to]); }
    void keep(int *out, int rank, const int *what) const {
        cudaMemcpyAsync(out, what, BYTES, cudaMemcpyDefault, stream[rank]);
    }
    void order(int rank, cudaEvent_t by, cudaStream_t first, cudaStream_t second) const {
        cudaSetDevice(rank);
        cudaEventRecord(by, first), cudaStreamWaitEvent(second, by, 0);
    }
};

#define NCCL_FAULT(name, says, expected)                                                                               \
    FAULT(name, cudaErrorLaunchFailure, says, FIRST(T, expected), name<CORRECT>(in, out))

/* ---- what meets ------------------------------------------------------------------------------------------------------------ */

template <bool CORRECT> static void receive_without_send(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    if (CORRECT) of.send(0, 1, of.mine[0]);
    ncclRecv(of.other[1], T, ncclInt32, 0, of.comm[1], of.stream[1]); // here
    ncclGroupEnd();
    cudaStreamSynchronize(of.stream[1]); // here
    of.keep(out, 1, of.other[1]);
}
NCCL_FAULT(receive_without_send, "waits for ever for the ncclRecv() of rank 1 from rank 0 at ", in[i])

template <bool CORRECT> static void send_without_receive(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    ncclSend(of.mine[0], T, ncclInt32, 1, of.comm[0], of.stream[0]); // here
    if (CORRECT) of.receive(1, 0, of.other[1]);
    ncclGroupEnd();
    of.keep(out, 0, of.mine[0]); // not the last
    cudaDeviceSynchronize();
}
FAULT(send_without_receive, cudaErrorLaunchFailure, ", which no ncclRecv() of rank 1 from rank 0 meets",
      FIRST(T, in[i]), send_without_receive<CORRECT>(in, out))

/* Each rank sends to the next one, and receives from the next one: right for two ranks. */
template <bool CORRECT> static void wrong_peer(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) {
        of.send(r, (r + 1) % RANKS, of.mine[r]);
        ncclRecv(of.other[r], T, ncclInt32, (r + (CORRECT ? RANKS - 1 : 1)) % RANKS, of.comm[r], of.stream[r]); // here
    }
    ncclGroupEnd();
    of.keep(out, 0, of.other[0]);
}
NCCL_FAULT(wrong_peer, ", which no ncclRecv() of rank 1 from rank 0 meets; there is the ncclSend() of rank 1 to rank 2",
           in[i + 2 * T])

template <bool CORRECT> static void counts_differ(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    ncclSend(of.mine[0], T, ncclInt32, 1, of.comm[0], of.stream[0]);                    // first
    ncclRecv(of.other[1], CORRECT ? T : T / 2, ncclInt32, 0, of.comm[1], of.stream[1]); // here
    ncclGroupEnd();
    of.keep(out, 1, of.other[1]);
}
NCCL_FAULT(counts_differ, "is of 128 elements of ncclInt32, and the ncclRecv() of rank 1 from rank 0", in[i])

template <bool CORRECT> static void types_differ(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    ncclSend(of.mine[0], T, CORRECT ? ncclInt32 : ncclFloat32, 1, of.comm[0], of.stream[0]); // here
    ncclRecv(of.other[1], T, ncclInt32, 0, of.comm[1], of.stream[1]);                        // here
    ncclGroupEnd();
    of.keep(out, 1, of.other[1]);
}
NCCL_FAULT(types_differ, "the ncclSend() of rank 0 to rank 1 at ", in[i])

/* Two messages of one pair: the first send meets the first receive. */
template <bool CORRECT> static void order_of_messages(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    ncclSend(of.mine[0], T, ncclInt32, 1, of.comm[0], of.stream[0]); // here
    ncclSend(of.mine[0], T / 2, ncclInt32, 1, of.comm[0], of.stream[0]);
    if (CORRECT) ncclRecv(of.other[1], T, ncclInt32, 0, of.comm[1], of.stream[1]);
    ncclRecv(of.other[1] + T, T / 2, ncclInt32, 0, of.comm[1], of.stream[1]); // here
    if (!CORRECT) ncclRecv(of.other[1], T, ncclInt32, 0, of.comm[1], of.stream[1]);
    ncclGroupEnd();
    of.keep(out, 1, of.other[1]);
}
NCCL_FAULT(order_of_messages, "the ncclRecv() of rank 1 from rank 0 at ", in[i])

/* All send first: nobody receives, though few bytes fit into a card's buffers. */
template <bool CORRECT> static void cycle_outside_group(const int *in, int *out) {
    ranks of(in);
    if (CORRECT) ncclGroupStart();
    for (int r = 0; r < RANKS; r++)
        ncclSend(of.mine[r], T, ncclInt32, (r + 1) % RANKS, of.comm[r], of.stream[r]); // here
    for (int r = 0; r < RANKS; r++)
        ncclRecv(of.other[r], T, ncclInt32, (r + RANKS - 1) % RANKS, of.comm[r], of.stream[r]); // here
    if (CORRECT) ncclGroupEnd();
    of.keep(out, 0, of.other[0]);
}
NCCL_FAULT(cycle_outside_group, "waits for ever for the ncclSend() of rank 0 to rank 1 at ", in[i + 2 * T])

/* A thread for each rank. */
static void in_threads(const std::function<void(int)> &work) {
    std::thread thread[RANKS];
    for (int r = 0; r < RANKS; r++) thread[r] = std::thread([&work, r] { cudaSetDevice(r), work(r); });
    for (std::thread &each : thread) each.join();
}

template <bool CORRECT> static void two_groups_of_one_thread(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    ncclSend(of.mine[0], T, ncclInt32, 1, of.comm[0], of.stream[0]); // here
    if (!CORRECT) ncclGroupEnd(), ncclGroupStart();
    ncclRecv(of.other[1], T, ncclInt32, 0, of.comm[1], of.stream[1]); // here
    ncclGroupEnd();
    of.keep(out, 1, of.other[1]);
}
NCCL_FAULT(two_groups_of_one_thread, "are not in one group, though one thread makes both: on a card", in[i])

template <bool CORRECT> static void rank_does_not_call(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    for (int r = 0; r < (CORRECT ? RANKS : RANKS - 1); r++)
        ncclAllReduce(of.mine[r], of.other[r], T, ncclInt32, ncclSum, of.comm[r], of.stream[r]); // here
    ncclGroupEnd();
    of.keep(out, 1, of.other[1]); // not the last
}
NCCL_FAULT(rank_does_not_call, ", which rank 2 has not called", in[i] + in[i + T] + in[i + 2 * T])

template <bool CORRECT> static void collectives_differ(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++)
        if (CORRECT || r < 2)
            ncclAllReduce(of.mine[r], of.other[r], T, ncclInt32, ncclMax, of.comm[r], of.stream[r]); // here
        else
            ncclReduceScatter(of.mine[r], of.other[r], T, ncclInt32, ncclMax, of.comm[r], of.stream[r]); // here
    ncclGroupEnd();
    of.keep(out, 0, of.other[0]);
}
NCCL_FAULT(collectives_differ, "meets the ncclReduceScatter() of rank 2 at ",
           in[i] > in[i + T] ? (in[i] > in[i + 2 * T] ? in[i] : in[i + 2 * T])
                             : (in[i + T] > in[i + 2 * T] ? in[i + T] : in[i + 2 * T]))

template <bool CORRECT> static void roots_differ(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++)
        ncclBroadcast(of.mine[r], of.other[r], T, ncclInt32, CORRECT ? 1 : r, of.comm[r], of.stream[r]); // here
    ncclGroupEnd();
    of.keep(out, 2, of.other[2]);
}
NCCL_FAULT(roots_differ, "the ncclBroadcast() of rank 1 at ", in[i + T])

/* ---- what a group's end, events and streams order ----------------------------------------------------------------------------- */

template <bool CORRECT> static void event_before_group_end(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    of.send(0, 1, of.mine[0]);
    ncclRecv(of.other[1], T, ncclInt32, 0, of.comm[1], of.copy[1]); // here
    cudaSetDevice(1);
    if (!CORRECT) cudaEventRecord(of.event[1], of.copy[1]);
    ncclGroupEnd();
    if (CORRECT) cudaEventRecord(of.event[1], of.copy[1]);
    cudaStreamWaitEvent(of.stream[1], of.event[1], 0); // here
    put<<<1, T, 0, of.stream[1]>>>(out, of.other[1]);  // here
}
NCCL_FAULT(event_before_group_end, "race between streams on ", in[i])

template <bool CORRECT> static void used_before_arrival(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    of.send(0, 1, of.mine[0]);
    ncclRecv(of.other[1], T, ncclInt32, 0, of.comm[1], of.copy[1]); // here
    ncclGroupEnd();
    if (CORRECT) of.order(1, of.event[1], of.copy[1], of.stream[1]);
    cudaSetDevice(1);
    put<<<1, T, 0, of.stream[1]>>>(out, of.other[1]); // here
}
NCCL_FAULT(used_before_arrival, "race between streams on ", in[i])

/* The buffer is filled again while it may still be sent. */
template <bool CORRECT> static void refilled_while_sent(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    ncclSend(of.mine[0], T, ncclInt32, 1, of.comm[0], of.copy[0]); // here
    of.receive(1, 0, of.other[1]);
    ncclGroupEnd();
    if (CORRECT) of.order(0, of.event[0], of.copy[0], of.stream[0]);
    cudaSetDevice(0);
    twice<<<1, T, 0, of.stream[0]>>>(of.mine[0]); // here
    of.keep(out, 1, of.other[1]);
}
NCCL_FAULT(refilled_while_sent, "race between streams on ", in[i])

/* It is received into while a kernel may still read it. */
template <bool CORRECT> static void received_while_read(const int *in, int *out) {
    ranks of(in);
    cudaSetDevice(1);
    put<<<1, T, 0, of.copy[1]>>>(out, of.mine[1]); // here
    if (CORRECT) of.order(1, of.event[1], of.copy[1], of.stream[1]);
    ncclGroupStart();
    of.send(0, 1, of.mine[0]);
    ncclRecv(of.mine[1], T, ncclInt32, 0, of.comm[1], of.stream[1]); // here
    ncclGroupEnd();
}
NCCL_FAULT(received_while_read, "race between streams on ", in[i + T])

template <bool CORRECT> static void sent_before_filled(const int *in, int *out) {
    ranks of(in);
    twice<<<1, T, 0, of.copy[0]>>>(of.mine[0]); // here
    if (CORRECT) of.order(0, of.event[0], of.copy[0], of.stream[0]);
    ncclGroupStart();
    ncclSend(of.mine[0], T, ncclInt32, 1, of.comm[0], of.stream[0]); // here
    of.receive(1, 0, of.other[1]);
    ncclGroupEnd();
    of.keep(out, 1, of.other[1]);
}
NCCL_FAULT(sent_before_filled, "race between streams on ", 2 * in[i])

/* Both at the same time, of one buffer. */
template <bool CORRECT> static void received_where_sent(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) {
        ncclSend(of.mine[r], T, ncclInt32, (r + 1) % RANKS, of.comm[r], of.stream[r]);                         // here
        ncclRecv(CORRECT ? of.other[r] : of.mine[r], T, ncclInt32, (r + 2) % RANKS, of.comm[r], of.stream[r]); // here
    }
    ncclGroupEnd();
    of.keep(out, 0, CORRECT ? of.other[0] : of.mine[0]);
}
NCCL_FAULT(received_where_sent, "the calls of one group run at the same time", in[i + 2 * T])

/* A send to rank 1 tells rank 1, and not rank 2. */
template <bool CORRECT> static void token_to_wrong_rank(const int *in, int *out) {
    ranks of(in);
    cudaSetDevice(0);
    put<<<1, T, 0, of.stream[0]>>>(of.other[0], in); // here
    int to = CORRECT ? 2 : 1;
    ncclGroupStart();
    of.send(0, to, of.mine[0]);
    of.receive(to, 0, of.other[to]);
    ncclGroupEnd();
    cudaSetDevice(2);
    put<<<1, T, 0, of.stream[2]>>>(out, of.other[0]); // here
}
NCCL_FAULT(token_to_wrong_rank, "race between streams on ", in[i])

/* Who has received knows that it was sent, and not what else came in the sender's group. */
template <bool CORRECT> static void other_call_of_group(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    of.send(2, 0, of.mine[2]);
    ncclRecv(of.other[0], T, ncclInt32, 2, of.comm[0], of.stream[0]); // here
    if (CORRECT) ncclGroupEnd(), ncclGroupStart();
    of.send(0, 1, of.mine[0]), of.receive(1, 0, of.other[1]);
    ncclGroupEnd();
    cudaSetDevice(1);
    put<<<1, T, 0, of.stream[1]>>>(out, of.other[0]); // here
}
NCCL_FAULT(other_call_of_group, "race between streams on ", in[i + 2 * T])

template <bool CORRECT> static void gathered_in_other_stream(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++)
        ncclAllGather(of.mine[r], of.other[r], T, ncclInt32, of.comm[r], of.copy[r]); // here
    ncclGroupEnd();
    if (CORRECT) of.order(2, of.event[2], of.copy[2], of.stream[2]);
    cudaSetDevice(2);
    put<<<1, T, 0, of.stream[2]>>>(out, of.other[2] + T); // here
}
NCCL_FAULT(gathered_in_other_stream, "race between streams on ", in[i + T])

template <bool CORRECT> static void not_in_place(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) {
        cudaMemcpyAsync(of.other[r] + r * T, of.mine[r], BYTES, cudaMemcpyDefault, of.stream[r]);
        const int *from = of.other[r] + (CORRECT ? r : (r + 1) % RANKS) * T;
        ncclAllGather(from, of.other[r], T, ncclInt32, of.comm[r], of.stream[r]); // here
    }
    ncclGroupEnd();
    of.keep(out, 0, of.other[0] + T);
}
NCCL_FAULT(not_in_place, "the two buffers of the ncclAllGather() of rank 0 at ", in[i + T])

template <bool CORRECT> static void group_without_end(const int *in, int *out) {
    ranks of(in);
    ncclGroupStart();
    of.send(0, 1, of.mine[0]);
    ncclRecv(of.other[1], T, ncclInt32, 0, of.comm[1], of.stream[1]); // here
    if (CORRECT) ncclGroupEnd();
    cudaStreamSynchronize(of.stream[1]); // here
    of.keep(out, 1, of.other[1]);
}
NCCL_FAULT(group_without_end, "the ncclRecv() of rank 1 from rank 0 at ", in[i])

/* With a thread for each rank, all others wait as well. */
template <bool CORRECT> static void cycle_of_threads(const int *in, int *out) {
    ranks of(in);
    in_threads([&of](int r) {
        if (CORRECT) ncclGroupStart();
        ncclSend(of.mine[r], T, ncclInt32, (r + 1) % RANKS, of.comm[r], of.stream[r]);  // here
        ncclRecv(of.other[r], T, ncclInt32, (r + 2) % RANKS, of.comm[r], of.stream[r]); // here
        if (CORRECT) ncclGroupEnd();
    });
    of.keep(out, 0, of.other[0]);
}

/* ---- what is refused ------------------------------------------------------------------------------------------------------------- */

static void refused(ncclResult_t got, ncclResult_t wanted, const char *words) {
    cr_assert_eq(got, wanted, "%s instead of %s", ncclGetErrorString(got), ncclGetErrorString(wanted));
    report_says(words);
}

Test(messages, nccl_refuses) {
    struct arrays arrays;
    make_arrays(&arrays);
    ranks of(arrays.in);
    ncclComm_t two[2];
    const int same[] = {1, 1}, far[] = {0, 3};
    refused(ncclCommInitAll(two, 2, same), ncclInvalidUsage, "ranks 0 and 1 are both on device 1");
    refused(ncclCommInitAll(two, 2, far), ncclInvalidArgument, "there is no device 3: there are 3 (SIMT_DEVICES)");
    refused(ncclSend(of.mine[0], T, ncclInt32, 3, of.comm[0], of.stream[0]), ncclInvalidArgument, "there is no rank 3");
    refused(ncclSend(of.mine[0], T, ncclInt32, 1, of.comm[0], of.stream[1]), ncclInvalidArgument,
            "of rank 0, which is on device 0, in stream ");
    refused(ncclSend(of.mine[1], T, ncclInt32, 1, of.comm[0], of.stream[0]), ncclInvalidArgument, "lies on device 1");
    refused(ncclSend(of.mine[0], (size_t)RANKS * T + 1, ncclInt32, 1, of.comm[0], of.stream[0]), ncclInvalidArgument,
            "do not all lie in one allocation");
    refused(ncclGroupEnd(), ncclInvalidUsage, "ncclGroupEnd() without ncclGroupStart()");
    int value = -1;
    cr_assert(ncclCommCount(of.comm[2], &value) == ncclSuccess && value == RANKS);
    cr_assert(ncclCommUserRank(of.comm[2], &value) == ncclSuccess && value == 2);
    cr_assert(ncclCommCuDevice(of.comm[1], &value) == ncclSuccess && value == 1);
    cr_assert_eq(ncclCommDestroy(of.comm[0]), ncclSuccess);
    refused(ncclSend(of.mine[0], T, ncclInt32, 1, of.comm[0], of.stream[0]), ncclInvalidArgument,
            "it is no communicator, or has been destroyed");
    ncclUniqueId id = {{0}};
    refused(ncclCommInitRank(two, 2, id, 0), ncclInvalidArgument, "the ncclUniqueId is not of this process");
}

Test(messages, nccl_cycles) {
    launch_fault(&fault_cycle_outside_group);
    report_says("calls outside of a group run one after the other");
    struct arrays arrays;
    make_arrays(&arrays);
    cycle_of_threads<false>(arrays.in, arrays.out);
    report_says("this waits for ever for the ncclSend() of rank ");
    report_says("even if a card's buffers hide it for few bytes");
}

Test(messages, nccl_event) {
    launch_fault(&fault_event_before_group_end);
    report_says("before that: a call of NCCL is in its stream only when its group has ended");
    report_says("the ncclRecv() at tests/nccl_faults.cu:");
}

Test(messages, rank_missing) {
    struct arrays arrays;
    make_arrays(&arrays);
    ranks of(arrays.in, false);
    ncclUniqueId id;
    ncclComm_t comm;
    ncclGetUniqueId(&id);
    cr_assert_eq(ncclCommInitRank(&comm, 2, id, 0), ncclUnhandledCudaError);
    report_says("this waits for ever for all 2 ranks: 1 have called ncclCommInitRank()");
}

/* ---- right -------------------------------------------------------------------------------------------------------------------------- */

/* Round the ring, with two buffers; `other` takes what comes while `mine` is used. */
static void ring_in_groups(const int *in, int *out) {
    ranks of(in);
    for (int step = 0; step < RANKS; step++) {
        ncclGroupStart();
        for (int r = 0; r < RANKS; r++)
            of.send(r, (r + 1) % RANKS, of.mine[r]), of.receive(r, (r + 2) % RANKS, of.other[r]);
        ncclGroupEnd();
        for (int r = 0; r < RANKS; r++) {
            cudaSetDevice(r);
            twice<<<1, T, 0, of.stream[r]>>>(of.other[r]);
            int *came = of.other[r];
            of.other[r] = of.mine[r], of.mine[r] = came;
        }
    }
    of.keep(out, 1, of.mine[1]);
}
PATTERN(ring_in_groups, FIRST(T, 8 * in[i + T]), ring_in_groups(in, out))

/* Compute and communication in streams of their own, with events both ways. */
static void ring_with_events(const int *in, int *out) {
    ranks of(in);
    for (int r = 0; r < RANKS; r++) cudaMemsetAsync(of.other[r] + 2 * T, 0, BYTES, of.stream[r]);
    for (int step = 0; step < RANKS; step++) {
        int now = step % 2 * T, next = (step + 1) % 2 * T; /* parts of `mine` */
        ncclGroupStart();
        for (int r = 0; r < RANKS; r++) {
            ncclSend(of.mine[r] + now, T, ncclInt32, (r + 1) % RANKS, of.comm[r], of.copy[r]);
            ncclRecv(of.mine[r] + next, T, ncclInt32, (r + 2) % RANKS, of.comm[r], of.copy[r]);
        }
        ncclGroupEnd();
        for (int r = 0; r < RANKS; r++) {
            cudaSetDevice(r);
            add<<<1, T, 0, of.stream[r]>>>(of.other[r] + 2 * T, of.mine[r] + now);
            of.order(r, of.event[r], of.copy[r], of.stream[r]); /* it has come */
            of.order(r, of.back[r], of.stream[r], of.copy[r]);  /* it has been used */
        }
    }
    of.keep(out, 2, of.other[2] + 2 * T);
}
PATTERN(ring_with_events, FIRST(T, in[i] + in[i + T] + in[i + 2 * T]), ring_with_events(in, out))

static void threads_and_ranks(const int *in, int *out) {
    ranks of(in, false);
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    in_threads([&](int r) {
        cr_assert_eq(ncclCommInitRank(&of.comm[r], RANKS, id, r), ncclSuccess);
        for (int step = 0; step < 2; step++) {
            ncclGroupStart();
            of.send(r, (r + 1) % RANKS, of.mine[r]), of.receive(r, (r + 2) % RANKS, of.other[r]);
            ncclGroupEnd();
            put<<<1, T, 0, of.stream[r]>>>(of.mine[r], of.other[r]);
        }
        ncclAllReduce(of.mine[r], of.other[r], T, ncclInt32, ncclSum, of.comm[r], of.stream[r]);
        if (r == 0) cudaStreamSynchronize(of.stream[r]);
        while (cudaStreamQuery(of.stream[r]) == cudaErrorNotReady) {
        }
    });
    of.keep(out, 0, of.mine[0]), of.keep(out + T, 0, of.other[0]);
}
PATTERN(threads_and_ranks, FIRST(2 * T, i < T ? in[i + T] : in[i] + in[i - T] + in[i + T]), threads_and_ranks(in, out))

/* Send and receive outside of a group, where no rank waits for a rank that waits. */
static void chain_of_threads(const int *in, int *out) {
    ranks of(in);
    in_threads([&of](int r) {
        if (r > 0) of.receive(r, r - 1, of.mine[r]);
        if (r + 1 < RANKS) of.send(r, r + 1, of.mine[r]);
    });
    of.keep(out, 2, of.mine[2]);
}
PATTERN(chain_of_threads, FIRST(T, in[i]), chain_of_threads(in, out))

static void ranks_in_group(const int *in, int *out) {
    ranks of(in, false);
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) cudaSetDevice(r), ncclCommInitRank(&of.comm[r], RANKS, id, r);
    ncclGroupEnd();
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) { /* to itself, and nested groups are one */
        ncclGroupStart();
        of.send(r, r, of.mine[r]), of.receive(r, r, of.other[r]);
        ncclGroupEnd();
    }
    ncclGroupEnd();
    of.keep(out, 1, of.other[1]);
}
PATTERN(ranks_in_group, FIRST(T, in[i + T]), ranks_in_group(in, out))

/* In place, and in the default streams of the devices. */
static void collectives_in_place(const int *in, int *out) {
    ranks of(in);
    for (int r = 0; r < RANKS; r++)
        cudaMemcpyAsync(of.other[r] + r * T, of.mine[r], BYTES, cudaMemcpyDefault, 0), cudaStreamSynchronize(0);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) ncclAllGather(of.other[r] + r * T, of.other[r], T, ncclInt32, of.comm[r], 0);
    ncclGroupEnd();
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++)
        ncclReduceScatter(of.other[r], of.other[r] + r * T, T, ncclInt32, ncclSum, of.comm[r], 0);
    ncclGroupEnd();
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++) ncclAllReduce(of.mine[r], of.mine[r], T, ncclInt32, ncclMin, of.comm[r], 0);
    for (int r = 0; r < RANKS; r++) ncclBcast(of.other[r] + r * T, T, ncclInt32, 2, of.comm[r], 0);
    ncclGroupEnd();
    cudaSetDevice(1);
    put<<<1, T>>>(out, of.other[1] + T);
    put<<<1, T>>>(out + T, of.mine[1]);
}
PATTERN(collectives_in_place,
        FIRST(2 * T, i < T ? 3 * in[i + 2 * T]
                           : (in[i - T] < in[i] ? (in[i - T] < in[i + T] ? in[i - T] : in[i + T])
                                                : (in[i] < in[i + T] ? in[i] : in[i + T]))),
        collectives_in_place(in, out))

/* Who has received knows what the sender's stream had done or waited for, and that the buffer has been read. */
static void message_orders(const int *in, int *out) {
    ranks of(in);
    put<<<1, T, 0, of.copy[0]>>>(of.other[0], in);
    of.order(0, of.event[0], of.copy[0], of.stream[0]);
    ncclGroupStart();
    of.send(0, 1, of.mine[0]), of.receive(1, 0, of.other[1]);
    ncclGroupEnd();
    cudaSetDevice(1);
    twice<<<1, T, 0, of.stream[1]>>>(of.mine[0]);
    add<<<1, T, 0, of.stream[1]>>>(of.mine[0], of.other[0]);
    of.keep(out, 1, of.mine[0]);
}
PATTERN(message_orders, FIRST(T, 3 * in[i]), message_orders(in, out))

/* All ranks know what came before a sum at each of them. */
static void sum_orders(const int *in, int *out) {
    ranks of(in);
    put<<<1, T, 0, of.copy[0]>>>(of.mine[0] + T, in);
    of.order(0, of.event[0], of.copy[0], of.stream[0]);
    ncclGroupStart();
    for (int r = 0; r < RANKS; r++)
        ncclAllReduce(of.mine[r], of.other[r], T, ncclInt32, ncclSum, of.comm[r], of.stream[r]);
    ncclGroupEnd();
    cudaSetDevice(2);
    put<<<1, T, 0, of.stream[2]>>>(out, of.mine[0] + T);
}
PATTERN(sum_orders, FIRST(T, in[i]), sum_orders(in, out))

/* Two streams of one rank in one group: all calls come after both, and before what both are given next. */
static void streams_of_one_rank(const int *in, int *out) {
    ranks of(in);
    twice<<<1, T, 0, of.copy[0]>>>(of.mine[0]);
    ncclGroupStart();
    of.send(0, 1, of.mine[0]), of.receive(1, 0, of.other[1]);
    ncclSend(of.mine[0] + T, T, ncclInt32, 2, of.comm[0], of.copy[0]), of.receive(2, 0, of.other[2]);
    ncclGroupEnd();
    cudaSetDevice(0);
    twice<<<1, T, 0, of.stream[0]>>>(of.mine[0] + T);
    of.keep(out, 1, of.other[1]);
}
PATTERN(streams_of_one_rank, FIRST(T, 2 * in[i]), streams_of_one_rank(in, out))

/* At the last moment that order allows, or at once: a host that does not wait sees the difference. */
static void copy_out(bool late, int *seen) {
    struct arrays arrays;
    int *to, *from;
    cudaStream_t stream;
    late ? setenv("SIMT_STREAMS", "late", 1) : unsetenv("SIMT_STREAMS");
    make_arrays(&arrays);
    ranks of(arrays.in);
    cudaMallocHost(&to, BYTES), cudaMallocHost(&from, BYTES);
    cudaStreamCreate(&stream);
    to[0] = -1, from[0] = 1;
    cudaMemcpyAsync(arrays.out, from, sizeof(int), cudaMemcpyHostToDevice, stream);
    from[0] = 2; /* not yet copied */
    cudaMemcpyAsync(to, arrays.in, sizeof(int), cudaMemcpyDeviceToHost, stream);
    seen[0] = to[0]; /* nor this */
    cudaStreamSynchronize(stream);
    seen[1] = to[0] == arrays.host_in[0];
    cudaMemcpy(to, arrays.out, sizeof(int), cudaMemcpyDeviceToHost);
    seen[2] = to[0];
    unsetenv("SIMT_STREAMS");
}
Test(messages, late_copies) {
    int late[3], early[3];
    copy_out(true, late), copy_out(false, early);
    cr_assert(late[0] == -1 && late[1] && late[2] == 2, "%d %d %d", late[0], late[1], late[2]);
    cr_assert(early[0] != -1 && early[1] && early[2] == 1, "%d %d %d", early[0], early[1], early[2]);
}

/* The sender waits, and the receiver has a copy out of the buffer before: it comes first, though it is late. */
static void late_in_order(const int *in, int *out) {
    ranks of(in);
    cudaMemcpyAsync(out, of.mine[1], BYTES, cudaMemcpyDefault, of.stream[1]);
    ncclGroupStart();
    of.send(0, 1, of.mine[0]), of.receive(1, 0, of.mine[1]);
    ncclGroupEnd();
    cudaStreamSynchronize(of.stream[0]);
    cudaMemcpyAsync(out + T, of.mine[1], BYTES, cudaMemcpyDefault, of.stream[1]);
}
PATTERN(late_in_order, FIRST(2 * T, i < T ? in[i + T] : in[i - T]), late_in_order(in, out))

/* Sums round to the type after each rank. */
Test(patterns, sums_of_types) {
    struct arrays arrays;
    make_arrays(&arrays);
    ranks of(arrays.in);
    const struct {
        ncclDataType_t type;
        ncclRedOp_t op;
        double ranks[RANKS], result;
    } cases[] = {{ncclFloat32, ncclSum, {1e8, 1, -1e8}, 0}, {ncclFloat64, ncclSum, {1e8, 1, -1e8}, 1},
                 {ncclFloat64, ncclProd, {2, 3, 4}, 24},    {ncclFloat32, ncclAvg, {1, 2, 6}, 3},
                 {ncclInt64, ncclMax, {-5, -7, -6}, -5},    {ncclUint8, ncclSum, {200, 100, 0}, 44},
                 {ncclInt8, ncclAvg, {-3, -3, -3}, -3},     {ncclUint32, ncclMin, {4e9, 3e9, 3.5e9}, 3e9}};
    for (const auto &each : cases) {
        for (int r = 0; r < RANKS; r++) {
            const double x = each.ranks[r];
            const float single = (float)x;
            const long long whole = (long long)x;
            const void *from = each.type == ncclFloat64   ? (const void *)&x
                               : each.type == ncclFloat32 ? (const void *)&single
                                                          : &whole;
            cudaSetDevice(r);
            cudaMemcpy(of.mine[r], from, 8, cudaMemcpyHostToDevice);
        }
        ncclGroupStart();
        for (int r = 0; r < RANKS; r++)
            ncclReduce(of.mine[r], r == 1 ? of.other[r] : nullptr, 1, each.type, each.op, 1, of.comm[r], of.stream[r]);
        cr_assert_eq(ncclGroupEnd(), ncclSuccess, "%s", report());
        cudaSetDevice(1);
        cudaStreamSynchronize(of.stream[1]);
        double x = 0;
        float single = 0;
        long long whole = 0;
        size_t bytes = each.type == ncclUint8 || each.type == ncclInt8       ? 1
                       : each.type == ncclUint32 || each.type == ncclFloat32 ? 4
                                                                             : 8;
        void *to = each.type == ncclFloat64 ? (void *)&x : each.type == ncclFloat32 ? (void *)&single : &whole;
        cr_assert_eq(cudaMemcpy(to, of.other[1], bytes, cudaMemcpyDeviceToHost), cudaSuccess, "%s", report());
        double got = each.type == ncclFloat64   ? x
                     : each.type == ncclFloat32 ? single
                     : each.type == ncclInt8    ? (signed char)whole
                                                : (double)whole;
        cr_assert_eq(got, each.result, "type %d, operation %d: %g instead of %g", each.type, each.op, got, each.result);
    }
}
