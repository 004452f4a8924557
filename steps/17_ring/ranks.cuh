/* A rank is a device with its rows: of Q, K, V and O it holds (heads, rows, d), of L (heads, rows). What all rungs share: ranks with
 * their streams and events are made, the inputs are distributed from device 0, the outputs collected there, and a pass forks from the
 * caller's stream and joins it again. None of this is the exchange itself, which each rung has. */
#ifndef RANKS_CUH
#define RANKS_CUH

#include "attention.h"

#include <new>

constexpr int MOST_RANKS = 64, MOST_PIECES = 2;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if (cudaError_t error_ = (call); error_ != cudaSuccess) return error_;                                         \
    } while (0)

// Rows [first, first + rows) of the sequence.
struct piece {
    int first, rows;
};
// Piece i of `count` pieces of N rows, of which none has more than one row more than another; some are empty where N < count.
inline piece piece_of(int N, int i, int count) {
    auto start = [&](long long k) { return (int)(k * N / count); };
    return {start(i), start(i + 1) - start(i)};
}

struct rank {
    int device;
    piece pieces[MOST_PIECES]; // one after the other in memory
    int rows;                  // of all of them
    int keys;                  // as many, but of a problem on one device
    void *Q, *O;
    float *L;
    const void *K, *V;                // not written after distribute(); V lies right behind K
    void *buffers;                    // what the rung asked for
    cudaStream_t compute, copy;       // of this device
    cudaEvent_t arrived[MOST_RANKS];  // by hop: the copy is done, its target full, its source read
    cudaEvent_t computed[MOST_RANKS]; // by step: the kernel is done, its keys read
};

struct ranks {
    int count;
    cudaEvent_t begin; // of device 0: what came before the pass in the caller's stream
    rank of[MOST_RANKS];
};

inline int ranks_of(const problem *p) { return p->devices > 1 ? p->devices : 1; }
inline size_t heads_of(const problem *p) { return (size_t)p->batch * p->heads; }
inline size_t row_bytes(const problem *p) { return 2 * (size_t)p->d; }
// Of Q, K, V or O.
inline size_t shard_bytes(const problem *p, int rows) { return (size_t)rows * heads_of(p) * row_bytes(p); }

// Copy `rows` rows of each head, each of `bytes` bytes, between tensors whose heads have to_rows and from_rows rows.
inline cudaError_t copy_rows(const problem *p, void *to, int to_rows, const void *from, int from_rows, int rows,
                             size_t bytes, cudaStream_t stream) {
    if (rows == 0) return cudaSuccess;
    return cudaMemcpy2DAsync(to, to_rows * bytes, from, from_rows * bytes, rows * bytes, heads_of(p), cudaMemcpyDefault,
                             stream);
}
template <class T> T *row_at(T *tensor, size_t row, size_t bytes) { return (T *)((uintptr_t)tensor + row * bytes); }

// Between the whole tensor, on device 0, and the rank's rows of it.
inline cudaError_t copy_pieces(const problem *p, const rank &r, void *shard, const void *whole, size_t bytes,
                               bool to_shard) {
    int at = 0;
    for (const piece &piece : r.pieces) {
        void *part = row_at(shard, at, bytes), *rows = row_at((void *)whole, piece.first, bytes);
        TRY(to_shard ? copy_rows(p, part, r.rows, rows, p->N_q, piece.rows, bytes, r.copy)
                     : copy_rows(p, rows, p->N_q, part, r.rows, piece.rows, bytes, r.copy));
        at += piece.rows;
    }
    return cudaSuccess;
}

// A problem on one device is one rank: the tensors as they are, the caller's stream, no copies and no events.
inline ranks *one_rank(ranks *one, const problem *p, const tensors *t, cudaStream_t stream) {
    *one = {.count = 1};
    one->of[0] = {
        .pieces = {{0, 0}, {0, p->N_q}}, .rows = p->N_q, .keys = p->N_kv, .Q = (void *)t->Q, .O = t->O, .L = t->L};
    cudaGetDevice(&one->of[0].device);
    one->of[0].K = t->K, one->of[0].V = t->V, one->of[0].compute = one->of[0].copy = stream;
    return one;
}

inline cudaError_t make_rank(const problem *p, const tensors *t, rank &r, int count, size_t buffer_bytes) {
    int device = r.device;
    TRY(cudaSetDevice(device));
    for (int peer = 0; peer < count; peer++) {
        int direct = 0;
        TRY(cudaDeviceCanAccessPeer(&direct, device, peer)); // 0 for itself; else copies go through the host
        if (direct == 0) continue;
        cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
        if (error == cudaErrorPeerAccessAlreadyEnabled) error = (cudaGetLastError(), cudaSuccess); // by a run before
        TRY(error);
    }
    TRY(cudaStreamCreateWithFlags(&r.compute, cudaStreamNonBlocking));
    TRY(cudaStreamCreateWithFlags(&r.copy, cudaStreamNonBlocking));
    for (int i = 0; i < count; i++) {
        TRY(cudaEventCreateWithFlags(&r.arrived[i], cudaEventDisableTiming));
        TRY(cudaEventCreateWithFlags(&r.computed[i], cudaEventDisableTiming));
    }
    size_t bytes = shard_bytes(p, r.rows > 0 ? r.rows : 1), L_bytes = heads_of(p) * r.rows * sizeof(float);
    void *K = nullptr;
    TRY(cudaMalloc(&r.Q, bytes));
    TRY(cudaMalloc(&K, 2 * bytes));
    r.K = K, r.V = (char *)K + shard_bytes(p, r.rows);
    TRY(cudaMalloc(&r.O, bytes));
    TRY(cudaMalloc(&r.L, L_bytes + sizeof(float)));
    TRY(cudaMalloc(&r.buffers, buffer_bytes));
    TRY(cudaMemsetAsync(r.O, 0xff, bytes, r.copy)); // NaN: what a kernel leaves out shows
    TRY(copy_pieces(p, r, r.Q, t->Q, row_bytes(p), true));
    TRY(copy_pieces(p, r, (void *)r.K, t->K, row_bytes(p), true));
    TRY(copy_pieces(p, r, (void *)r.V, t->V, row_bytes(p), true));
    return cudaStreamSynchronize(r.copy);
}

// Releases what is there; the first error of a call is the result.
inline cudaError_t free_ranks(ranks *all) {
    cudaError_t error = cudaSuccess;
    auto keep = [&](cudaError_t of_call) { error = error != cudaSuccess ? error : of_call; };
    for (int i = 0; i < all->count; i++) {
        rank &r = all->of[i];
        keep(cudaSetDevice(r.device));
        for (void *memory : {r.Q, (void *)r.K, r.O, (void *)r.L, r.buffers}) keep(cudaFree(memory));
        for (int hop = 0; hop < all->count; hop++) {
            if (r.arrived[hop] != nullptr) keep(cudaEventDestroy(r.arrived[hop]));
            if (r.computed[hop] != nullptr) keep(cudaEventDestroy(r.computed[hop]));
        }
        if (r.compute != nullptr) keep(cudaStreamDestroy(r.compute));
        if (r.copy != nullptr) keep(cudaStreamDestroy(r.copy));
    }
    keep(cudaSetDevice(0));
    if (all->begin != nullptr) keep(cudaEventDestroy(all->begin));
    delete all;
    return error;
}

// For struct step. PIECES: per rank; piece_of_rank(p, rank, i) is piece i of them. buffer_bytes(p): on each device.
template <int PIECES, piece (*piece_of_rank)(const problem *, int, int), size_t (*buffer_bytes)(const problem *)>
cudaError_t distribute(const problem *p, const tensors *t, void **shards) {
    ranks *all = new (std::nothrow) ranks();
    if (all == nullptr) return cudaErrorMemoryAllocation;
    all->count = ranks_of(p);
    cudaError_t error = cudaEventCreateWithFlags(&all->begin, cudaEventDisableTiming);
    for (int i = 0; i < all->count && error == cudaSuccess; i++) {
        rank &r = all->of[i];
        r.device = i;
        for (int k = 0; k < PIECES; k++) r.rows += (r.pieces[k] = piece_of_rank(p, i, k)).rows;
        r.keys = r.rows;
        error = make_rank(p, t, r, all->count, buffer_bytes(p));
    }
    cudaError_t back = cudaSetDevice(0);
    if (error == cudaSuccess) error = back;
    if (error == cudaSuccess)
        *shards = all;
    else
        free_ranks(all);
    return error;
}

inline cudaError_t collect(const problem *p, const tensors *t, void *shards) {
    ranks *all = (ranks *)shards;
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < all->count && error == cudaSuccess; i++) {
        const rank &r = all->of[i];
        error = cudaSetDevice(r.device);
        if (error == cudaSuccess) error = cudaDeviceSynchronize(); // the pass is over
        if (error == cudaSuccess) error = copy_pieces(p, r, r.O, t->O, row_bytes(p), false);
        if (error == cudaSuccess) error = copy_pieces(p, r, r.L, t->L, sizeof(float), false);
        if (error == cudaSuccess) error = cudaStreamSynchronize(r.copy);
    }
    cudaError_t released = free_ranks(all);
    return error != cudaSuccess ? error : released;
}

// No stream of a rank begins before what `stream` has now: an earlier pass may still read the buffers, and the clock may not run yet.
inline cudaError_t fork(ranks *all, cudaStream_t stream) {
    if (all->count == 1) return cudaSuccess;
    TRY(cudaEventRecord(all->begin, stream));
    for (int i = 0; i < all->count; i++) {
        TRY(cudaSetDevice(i));
        TRY(cudaStreamWaitEvent(all->of[i].compute, all->begin, 0)); // for the clock: its buffers wait for the copies
        TRY(cudaStreamWaitEvent(all->of[i].copy, all->begin, 0));
    }
    return cudaSuccess;
}

// `stream` goes on after the last kernel of each rank, which came after all copies that it needed.
inline cudaError_t join(ranks *all, int last_step, cudaStream_t stream) {
    if (all->count == 1) return cudaSuccess;
    TRY(cudaSetDevice(0));
    for (int i = 0; i < all->count; i++) TRY(cudaStreamWaitEvent(stream, all->of[i].computed[last_step], 0));
    return cudaSuccess;
}

// For struct step: why the ranks cannot do it, or the kernel.
template <const char *(*of_kernel)(const problem *)> const char *ranks_refuse(const problem *p) {
    if (p->devices > 1 && p->N_q != p->N_kv)
        return "several devices need as many keys as queries: each has the same rows of both";
    return of_kernel(p);
}

#endif
