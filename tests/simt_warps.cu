/* What the lanes of a warp do together: shuffles, votes, matches, reductions.
 * For cards of compute_capability = 80 and later, which have __reduce_add_sync() and the like. */
#include "device_test.h"

/* The lanes that the caller's warp has: all, or fewer in the last warp of a block. */
__device__ static unsigned lanes_of_warp() {
    int left = (int)blockDim.x - ((int)threadIdx.x & ~31);
    return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}

/* Each round: the next lane's value, through shared memory. */
__global__ static void syncwarp(int *data, int rounds) {
    __shared__ int values[1024];
    int t = (int)threadIdx.x, next = (t & ~31) + (t + 1) % 32;
    values[t] = data[t];
    for (int round = 0; round < rounds; round++) {
        __syncwarp();
        int value = values[next];
        __syncwarp();
        values[t] = value;
    }
    data[t] = values[t];
}

Test(simt_features, syncwarp_exchanges_through_shared_memory) {
    enum { N = 128 };
    int in[N], expected[N], rounds = 5;
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    for (int i = 0; i < N; i++) expected[i] = in[i / 32 * 32 + (i + rounds) % 32];
    int *data = on_device(in);
    syncwarp<<<1, N>>>(data, rounds);
    expect_values(data, expected, N, "next lanes");
}

/* ---- shuffles ---------------------------------------------------------------------------------------------------- */

enum shuffle { SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR };

/* For each amount below `amounts`: out[amount * threads + i] is what thread i got. Each warp's mask names the lanes that it
 * has. SHUFFLE_INDEX reads lane 5 * lane + amount. */
template <typename T> __global__ void shuffle_lanes(shuffle kind, const T *in, T *out, int width, int amounts) {
    int t = (int)threadIdx.x, lane = t % 32;
    unsigned mask = lanes_of_warp();
    T value = in[t];
    for (int amount = 0; amount < amounts; amount++) {
        T got = T();
        switch (kind) {
        case SHUFFLE_INDEX: got = __shfl_sync(mask, value, 5 * lane + amount, width); break;
        case SHUFFLE_UP: got = __shfl_up_sync(mask, value, (unsigned)amount, width); break;
        case SHUFFLE_DOWN: got = __shfl_down_sync(mask, value, (unsigned)amount, width); break;
        case SHUFFLE_XOR: got = __shfl_xor_sync(mask, value, amount, width); break;
        }
        out[amount * (int)blockDim.x + t] = got;
    }
}

/* The lane that `lane` reads, as the CUDA programming guide defines it. */
static int source_lane(shuffle kind, int lane, int amount, int width) {
    int first = lane / width * width, last = first + width - 1;
    switch (kind) {
    case SHUFFLE_INDEX: return first + (5 * lane + amount) % width;
    case SHUFFLE_UP: return lane - amount < first ? lane : lane - amount;
    case SHUFFLE_DOWN: return lane + amount > last ? lane : lane + amount;
    case SHUFFLE_XOR: return (lane ^ amount) > last ? lane : lane ^ amount;
    }
    return lane;
}

/* A value of the type in which every byte that the type can use matters. */
static void put_value(int &value, int i) { value = -123456789 + 1000003 * i; }
static void put_value(unsigned &value, int i) { value = 4000000000u + 1000003u * (unsigned)i; }
static void put_value(float &value, int i) { value = -1.0f / (float)(i + 3); }
static void put_value(double &value, int i) { value = -1.0 / (i + 3); }
static void put_value(long long &value, int i) { value = -1234567890123456789 + 10000000033 * i; }

template <typename T> static void check_shuffle(shuffle kind, int threads, int width) {
    int amounts = width < 32 && kind == SHUFFLE_XOR ? width : 32;
    T values[128];
    for (int i = 0; i < threads; i++) put_value(values[i], i);
    T *in = on_device(values, threads), *out = filled_on_device<T>(0xff, amounts * threads);
    shuffle_lanes<T><<<1, threads>>>(kind, in, out, width, amounts);
    auto got = take_back(out, amounts * threads);
    for (int amount = 0; amount < amounts; amount++) {
        for (int i = 0; i < threads; i++) {
            int source = i / 32 * 32 + source_lane(kind, i % 32, amount, width);
            cr_assert_eq(memcmp(&got[amount * threads + i], &values[source], sizeof(T)), 0,
                         "shuffle %d in %s, width %d, amount %d: thread %d did not get the value of %d", kind,
                         __PRETTY_FUNCTION__, width, amount, i, source);
        }
    }
    EXPECT_OK(cudaFree(in));
}

static void check_shuffles_of_full_warps(shuffle kind) {
    for (int width = 2; width <= 32; width *= 2) {
        check_shuffle<int>(kind, 64, width);
        check_shuffle<unsigned>(kind, 64, width);
        check_shuffle<float>(kind, 64, width);
        check_shuffle<double>(kind, 64, width);
        check_shuffle<long long>(kind, 64, width);
    }
}

Test(simt_features, shfl_sync) { check_shuffles_of_full_warps(SHUFFLE_INDEX); }
Test(simt_features, shfl_up_sync) { check_shuffles_of_full_warps(SHUFFLE_UP); }
Test(simt_features, shfl_down_sync) { check_shuffles_of_full_warps(SHUFFLE_DOWN); }
Test(simt_features, shfl_xor_sync) { check_shuffles_of_full_warps(SHUFFLE_XOR); }

Test(simt_features, shfl_xor_sync_reads_earlier_groups) {
    /* With a width below 32, a lane of a later group reads across its group's start, one of an earlier cannot. */
    enum { N = 32, WIDTH = 8, AMOUNTS = 32 };
    int in[N], expected[AMOUNTS * N];
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    for (int i = 0; i < AMOUNTS * N; i++) expected[i] = in[source_lane(SHUFFLE_XOR, i % N, i / N, WIDTH)];
    int *out = filled_on_device<int>(0xff, AMOUNTS * N);
    shuffle_lanes<int><<<1, N>>>(SHUFFLE_XOR, on_device(in), out, WIDTH, AMOUNTS);
    expect_values(out, expected, AMOUNTS * N, "xor across groups");
}

Test(simt_features, shuffles_in_a_partial_last_warp) {
    for (shuffle kind : {SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR}) {
        for (int width = 2; width <= 16; width *= 2) check_shuffle<int>(kind, 48, width);
        for (int width = 2; width <= 8; width *= 2) check_shuffle<float>(kind, 8, width);
        check_shuffle<double>(kind, 98, 2);
    }
}

/* Lane 0 of each warp to all its lanes. */
__global__ static void broadcast(const int *in, int *out) {
    out[threadIdx.x] = __shfl_sync(lanes_of_warp(), in[threadIdx.x], 0);
}

Test(simt_features, broadcast_in_blocks_of_any_size) {
    for (int n = 1; n <= 100; n++) {
        int in[100], expected[100];
        for (int i = 0; i < n; i++) in[i] = scrambled(i);
        for (int i = 0; i < n; i++) expected[i] = in[i / 32 * 32];
        int *data = on_device(in, n), *out = filled_on_device<int>(0xff, n);
        broadcast<<<1, n>>>(data, out);
        expect_values(out, expected, n, "broadcast");
        EXPECT_OK(cudaFree(data));
    }
}

/* Sums over 16 lanes, each half in a branch of its own. */
__global__ static void half_warps(const int *in, int *out) {
    int t = (int)threadIdx.x, sum = in[t];
    if (t % 32 < 16) {
        for (int bit = 8; bit > 0; bit /= 2) sum += __shfl_xor_sync(0x0000ffffu, sum, bit);
    } else {
        for (int bit = 8; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffff0000u, sum, bit, 16);
        sum = -sum; /* which branch a lane took shows in its result */
    }
    out[t] = sum;
}

Test(simt_features, half_warps_shuffle_in_branches_of_their_own) {
    enum { N = 96 };
    int in[N], expected[N];
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    for (int i = 0; i < N; i++) {
        expected[i] = 0;
        for (int j = 0; j < 16; j++) expected[i] += in[i / 16 * 16 + j];
        if (i % 32 >= 16) expected[i] = -expected[i];
    }
    int *out = filled_on_device<int>(0xff, N);
    half_warps<<<1, N>>>(on_device(in), out);
    expect_values(out, expected, N, "sums of 16");
}

/* ---- votes ------------------------------------------------------------------------------------------------------- */

__global__ static void votes(const int *predicates, unsigned *out) {
    unsigned mask = lanes_of_warp();
    int t = (int)threadIdx.x, predicate = predicates[t];
    out[3 * t] = __any_sync(mask, predicate) != 0;
    out[3 * t + 1] = __all_sync(mask, predicate) != 0;
    out[3 * t + 2] = __ballot_sync(mask, predicate);
}

static void check_votes(const int *in, int n) {
    unsigned expected[3 * 128];
    for (int i = 0; i < n; i++) {
        unsigned ballot = 0, mask = 0;
        for (int j = i / 32 * 32; j < n && j < i / 32 * 32 + 32; j++) {
            mask |= 1u << j % 32;
            if (in[j] != 0) ballot |= 1u << j % 32;
        }
        expected[3 * i] = ballot != 0;
        expected[3 * i + 1] = ballot == mask;
        expected[3 * i + 2] = ballot;
    }
    int *data = on_device(in, n);
    unsigned *out = filled_on_device<unsigned>(0xff, 3 * n);
    votes<<<1, n>>>(data, out);
    expect_values(out, expected, 3 * n, "any, all, ballot");
    EXPECT_OK(cudaFree(data));
}

Test(simt_features, votes) {
    int in[128];
    for (int pattern = 0; pattern < 5; pattern++) { /* none, one, alternating warps, irregular, all */
        for (int i = 0; i < 128; i++) {
            in[i] = pattern == 0   ? 0
                    : pattern == 1 ? i == 70
                    : pattern == 2 ? i / 32 % 2
                    : pattern == 3 ? scrambled(i) > 0
                                   : -8;
        }
        check_votes(in, 128);
        check_votes(in, 71);
        check_votes(in, 1);
    }
}

__global__ static void votes_of_odd_lanes(const int *predicates, unsigned *out) {
    const unsigned odd = 0xaaaaaaaau;
    int t = (int)threadIdx.x, predicate = predicates[t];
    if (t % 2 == 0) return;
    out[3 * t] = __any_sync(odd, predicate) != 0;
    out[3 * t + 1] = __all_sync(odd, predicate) != 0;
    out[3 * t + 2] = __ballot_sync(odd, predicate);
}

Test(simt_features, votes_of_some_lanes) {
    enum { N = 32 };
    int in[N];
    unsigned expected[3 * N];
    for (int i = 0; i < N; i++) in[i] = i % 4 != 2; /* odd lanes: all; even lanes do not count */
    memset(expected, 0xff, sizeof expected);
    for (int i = 1; i < N; i += 2) expected[3 * i] = expected[3 * i + 1] = 1, expected[3 * i + 2] = 0xaaaaaaaau;
    unsigned *out = filled_on_device<unsigned>(0xff, 3 * N);
    votes_of_odd_lanes<<<1, N>>>(on_device(in), out);
    expect_values(out, expected, 3 * N, "any, all, ballot");
}

/* ---- matches and reductions -------------------------------------------------------------------------------------- */

/* MATCHES values per thread: match_any, match_all of values and of ones, its predicates, then reductions. */
enum {
    MATCH_ANY,
    MATCH_ALL,
    MATCH_ALL_PREDICATE,
    MATCH_ALL_OF_ONES,
    MATCH_ALL_OF_ONES_PREDICATE,
    REDUCE_ADD,
    REDUCE_MIN,
    REDUCE_MAX,
    REDUCE_ADD_UNSIGNED,
    REDUCE_MIN_UNSIGNED,
    REDUCE_MAX_UNSIGNED,
    REDUCE_AND,
    REDUCE_OR,
    REDUCE_XOR,
    MATCHES
};

__global__ static void matches(const int *in, int *out) {
    unsigned mask = lanes_of_warp(), value = (unsigned)in[threadIdx.x];
    int *own = &out[MATCHES * threadIdx.x];
    own[MATCH_ANY] = (int)__match_any_sync(mask, in[threadIdx.x]);
    own[MATCH_ALL] = (int)__match_all_sync(mask, in[threadIdx.x], &own[MATCH_ALL_PREDICATE]);
    own[MATCH_ALL_OF_ONES] = (int)__match_all_sync(mask, 1, &own[MATCH_ALL_OF_ONES_PREDICATE]);
    own[REDUCE_ADD] = __reduce_add_sync(mask, in[threadIdx.x]);
    own[REDUCE_MIN] = __reduce_min_sync(mask, in[threadIdx.x]);
    own[REDUCE_MAX] = __reduce_max_sync(mask, in[threadIdx.x]);
    own[REDUCE_ADD_UNSIGNED] = (int)__reduce_add_sync(mask, value);
    own[REDUCE_MIN_UNSIGNED] = (int)__reduce_min_sync(mask, value);
    own[REDUCE_MAX_UNSIGNED] = (int)__reduce_max_sync(mask, value);
    own[REDUCE_AND] = (int)__reduce_and_sync(mask, value);
    own[REDUCE_OR] = (int)__reduce_or_sync(mask, value);
    own[REDUCE_XOR] = (int)__reduce_xor_sync(mask, value);
}

static void check_matches(const int *in, int n) {
    static int expected[MATCHES * 128];
    for (int i = 0; i < n; i++) {
        int first = i / 32 * 32, end = first + 32 < n ? first + 32 : n;
        int *own = &expected[MATCHES * i];
        unsigned lanes = 0, same = 0, sum = 0, in_all = ~0u, in_any = 0, odd = 0, lowest = ~0u, highest = 0;
        int min = INT32_MAX, max = INT32_MIN;
        for (int j = first; j < end; j++) {
            unsigned value = (unsigned)in[j];
            lanes |= 1u << (j - first);
            same |= (unsigned)(in[j] == in[i]) << (j - first);
            sum += value, in_all &= value, in_any |= value, odd ^= value;
            min = in[j] < min ? in[j] : min, max = in[j] > max ? in[j] : max;
            lowest = value < lowest ? value : lowest, highest = value > highest ? value : highest;
        }
        own[MATCH_ANY] = (int)same;
        own[MATCH_ALL] = same == lanes ? (int)lanes : 0;
        own[MATCH_ALL_PREDICATE] = same == lanes;
        own[MATCH_ALL_OF_ONES] = (int)lanes;
        own[MATCH_ALL_OF_ONES_PREDICATE] = 1;
        own[REDUCE_ADD] = own[REDUCE_ADD_UNSIGNED] = (int)sum;
        own[REDUCE_MIN] = min, own[REDUCE_MAX] = max;
        own[REDUCE_MIN_UNSIGNED] = (int)lowest, own[REDUCE_MAX_UNSIGNED] = (int)highest;
        own[REDUCE_AND] = (int)in_all, own[REDUCE_OR] = (int)in_any, own[REDUCE_XOR] = (int)odd;
    }
    int *data = on_device(in, n), *out = filled_on_device<int>(0xff, MATCHES * n);
    matches<<<1, n>>>(data, out);
    expect_values(out, expected, MATCHES * n, "match and reduce");
    EXPECT_OK(cudaFree(data));
}

Test(simt_features, matches_and_reductions) {
    int in[128];
    for (int pattern = 0; pattern < 3; pattern++) { /* few values, of both signs; all different; all alike */
        for (int i = 0; i < 128; i++) in[i] = pattern == 0 ? i % 3 - 1 : pattern == 1 ? scrambled(i) : -7;
        check_matches(in, 128);
        check_matches(in, 71);
        check_matches(in, 1);
    }
}
