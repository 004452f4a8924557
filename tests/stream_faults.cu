/* Operations of several streams that touch the same bytes, and what orders them. The patterns are idioms of programs that use
 * streams rightly. */
#include "faults.h"

enum { BYTES = T * sizeof(int) };

__global__ static void put(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ static void add(int *to, const int *from) { to[threadIdx.x] += from[threadIdx.x]; }
__global__ static void count(int *to) { atomicAdd(&to[threadIdx.x], 1); }
__global__ static void twice(int *to) { to[threadIdx.x] *= 2; }
__global__ static void set_bytes(unsigned char *to, int first, int step) { to[first + (int)threadIdx.x * step] = 1; }
__global__ static void put_words(int *to, const int *from, int first, int step) {
    int i = first + (int)threadIdx.x * step;
    to[i] = from[i];
}

/* Streams and events; their work may go on when they are gone. */
struct streams {
    cudaStream_t a, b, c;
    cudaEvent_t e, f;
    explicit streams(unsigned flags = cudaStreamDefault) {
        cudaStreamCreateWithFlags(&a, flags), cudaStreamCreateWithFlags(&b, flags), cudaStreamCreateWithFlags(&c, flags);
        cudaEventCreate(&e), cudaEventCreateWithFlags(&f, cudaEventDisableTiming);
    }
    ~streams() {
        cudaEventDestroy(e), cudaEventDestroy(f);
        cudaStreamDestroy(a), cudaStreamDestroy(b), cudaStreamDestroy(c);
    }
};
static void order(cudaEvent_t event, cudaStream_t first, cudaStream_t second) {
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
}

#define STREAM_FAULT(name, says, expected)                                                                             \
    FAULT(name, cudaErrorLaunchFailure, "race between streams on " says, FIRST(T, expected), name<CORRECT>(in, out))

/* ---- events ------------------------------------------------------------------------------------------------------------ */

template <bool CORRECT> static void no_event(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in); // here
    if (CORRECT) order(s.e, s.a, s.b);
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(no_event, "", 2 * in[i])

template <bool CORRECT> static void event_recorded_too_early(const int *in, int *out) {
    streams s;
    if (!CORRECT) cudaEventRecord(s.e, s.a);
    put<<<1, T, 0, s.a>>>(out, in); // here
    if (CORRECT) cudaEventRecord(s.e, s.a);
    cudaStreamWaitEvent(s.b, s.e, 0); // here
    add<<<1, T, 0, s.b>>>(out, in);
}
STREAM_FAULT(event_recorded_too_early, "", 2 * in[i])

template <bool CORRECT> static void event_of_other_stream(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in); // here
    order(s.e, CORRECT ? s.a : s.c, s.b);
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(event_of_other_stream, "", 2 * in[i])

template <bool CORRECT> static void event_never_recorded(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in); // here
    if (CORRECT) cudaEventRecord(s.e, s.a);
    cudaStreamWaitEvent(s.b, s.e, 0); // here
    add<<<1, T, 0, s.b>>>(out, in);
}
STREAM_FAULT(event_never_recorded, "", 2 * in[i])

/* A wait is for the latest record before it. */
template <bool CORRECT> static void wait_before_second_record(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in);
    cudaEventRecord(s.e, s.a);
    if (!CORRECT) cudaStreamWaitEvent(s.b, s.e, 0); // here
    twice<<<1, T, 0, s.a>>>(out); // here
    cudaEventRecord(s.e, s.a);
    if (CORRECT) cudaStreamWaitEvent(s.b, s.e, 0);
    add<<<1, T, 0, s.b>>>(out, in);
}
STREAM_FAULT(wait_before_second_record, "", 3 * in[i])

/* The latest record is of a stream that has done nothing. */
template <bool CORRECT> static void recorded_again_elsewhere(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in); // here
    cudaEventRecord(s.e, s.a);
    if (!CORRECT) cudaEventRecord(s.e, s.c);
    cudaStreamWaitEvent(s.b, s.e, 0);
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(recorded_again_elsewhere, "", 2 * in[i])

template <bool CORRECT> static void other_stream_waits(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in); // here
    order(s.e, s.a, CORRECT ? s.b : s.c);
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(other_stream_waits, "", 2 * in[i])

/* The first of two rounds has an event back, the second has none. */
template <bool CORRECT> static void buffer_refilled_early(const int *in, int *out) {
    streams s;
    int *buffer;
    cudaMalloc(&buffer, BYTES);
    for (int round = 0; round < 2; round++) {
        cudaMemcpyAsync(buffer, in, BYTES, cudaMemcpyDeviceToDevice, s.a); // here
        order(s.e, s.a, s.b);
        add<<<1, T, 0, s.b>>>(out, buffer); // here
        if (CORRECT) order(s.f, s.b, s.a);
    }
}
STREAM_FAULT(buffer_refilled_early, "buffer", 2 * in[i])

/* Both read; of the two, the event covers the second reader only. */
template <bool CORRECT> static void first_reader_forgotten(const int *in, int *out) {
    streams s;
    int *sums, *weights;
    cudaMalloc(&sums, 2 * BYTES), cudaMalloc(&weights, BYTES);
    cudaMemset(sums, 0, 2 * BYTES);
    put<<<1, T>>>(weights, in);
    add<<<1, T, 0, s.a>>>(sums, weights); // here
    add<<<1, T, 0, s.b>>>(sums + T, weights);
    if (CORRECT) order(s.e, s.a, s.b);
    twice<<<1, T, 0, s.b>>>(weights); // here
    put<<<1, T, 0, s.b>>>(out, weights);
}
STREAM_FAULT(first_reader_forgotten, "weights", 2 * in[i])

/* The same, where a memset comes third. */
template <bool CORRECT> static void first_reader_before_memset(const int *in, int *out) {
    streams s;
    int *weights;
    cudaMalloc(&weights, BYTES);
    put<<<1, T>>>(weights, in);
    add<<<1, T, 0, s.a>>>(out, weights); // here
    add<<<1, T, 0, s.b>>>(out + T, weights);
    if (CORRECT) order(s.e, s.a, s.b);
    cudaMemsetAsync(weights, 0, BYTES, s.b); // here
}
FAULT(first_reader_before_memset, cudaErrorLaunchFailure, "race between streams on weights", FIRST(2 * T, in[i % T]),
      first_reader_before_memset<CORRECT>(in, out))

/* And where single bytes are written of the words that were read. */
template <bool CORRECT> static void bytes_over_first_reader(const int *in, int *out) {
    streams s;
    int *weights;
    cudaMalloc(&weights, BYTES);
    put<<<1, T>>>(weights, in);
    add<<<1, T, 0, s.a>>>(out, weights); // here
    add<<<1, T, 0, s.b>>>(out + T, weights);
    if (CORRECT) order(s.e, s.a, s.b);
    set_bytes<<<1, T, 0, s.b>>>((unsigned char *)weights, 1, 4); // here
}
FAULT(bytes_over_first_reader, cudaErrorLaunchFailure, "race between streams on weights", FIRST(2 * T, in[i % T]),
      bytes_over_first_reader<CORRECT>(in, out))

/* Two atomics are no race, but who reads must come after both. */
template <bool CORRECT> static void first_atomic_forgotten(const int *in, int *out) {
    streams s;
    (void)in;
    int *counts;
    cudaMalloc(&counts, BYTES);
    cudaMemset(counts, 0, BYTES);
    count<<<1, T, 0, s.a>>>(counts); // here
    count<<<1, T, 0, s.b>>>(counts);
    if (CORRECT) order(s.e, s.a, s.b);
    put<<<1, T, 0, s.b>>>(out, counts); // here
}
STREAM_FAULT(first_atomic_forgotten, "counts", 2)

template <bool CORRECT> static void plain_beside_atomic(const int *in, int *out) {
    streams s;
    count<<<1, T, 0, s.a>>>(out); // here
    if (CORRECT) order(s.e, s.a, s.b);
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(plain_beside_atomic, "", in[i] + 1)

/* 128 bytes from the first on, and 128 from byte 127 or 128 on. */
template <bool CORRECT> static void one_byte_in_common(const int *in, int *out) {
    streams s;
    (void)in;
    set_bytes<<<1, T, 0, s.a>>>((unsigned char *)out, 0, 1); // here
    set_bytes<<<1, T, 0, s.b>>>((unsigned char *)out, CORRECT ? T : T - 1, 1); // here
}
STREAM_FAULT(one_byte_in_common, "", i < 64 ? 0x01010101 : 0)

/* ---- copies, memsets, allocations ---------------------------------------------------------------------------------------- */

template <bool CORRECT> static void copied_in_other_stream(const int *in, int *out) {
    streams s;
    int *host, *buffer;
    cudaMallocHost(&host, BYTES), cudaMalloc(&buffer, BYTES);
    cudaMemcpy(host, in, BYTES, cudaMemcpyDeviceToHost);
    cudaMemcpyAsync(buffer, host, BYTES, cudaMemcpyHostToDevice, s.a); // here
    if (CORRECT) cudaStreamSynchronize(s.a);
    put<<<1, T, 0, s.b>>>(out, buffer); // here
}
STREAM_FAULT(copied_in_other_stream, "buffer", in[i])

template <bool CORRECT> static void copied_out_early(const int *in, int *out) {
    streams s;
    int *host, *buffer;
    cudaMallocHost(&host, BYTES), cudaMalloc(&buffer, BYTES);
    put<<<1, T, 0, s.a>>>(buffer, in); // here
    cudaMemcpyAsync(host, buffer, BYTES, cudaMemcpyDeviceToHost, CORRECT ? s.a : s.b); // here
    cudaDeviceSynchronize();
    cudaMemcpy(out, host, BYTES, cudaMemcpyHostToDevice);
}
STREAM_FAULT(copied_out_early, "buffer", in[i])

/* The host has the buffer for both: one copy still reads it. */
template <bool CORRECT> static void host_buffer_reused(const int *in, int *out) {
    streams s;
    int *host;
    cudaMallocHost(&host, BYTES);
    cudaMemcpy(host, in, BYTES, cudaMemcpyDeviceToHost);
    cudaMemcpyAsync(out, host, BYTES, cudaMemcpyHostToDevice, s.a); // here
    if (CORRECT) order(s.e, s.a, s.b);
    cudaMemcpyAsync(host, in + T, BYTES, cudaMemcpyDeviceToHost, s.b); // here
}
STREAM_FAULT(host_buffer_reused, "host", in[i])

/* Of two copies from one place the second is not before the first, and must not hide it. */
template <bool CORRECT> static void first_copy_forgotten(const int *in, int *out) {
    streams s;
    int *weights;
    cudaMalloc(&weights, BYTES);
    cudaMemcpy(weights, in, BYTES, cudaMemcpyDeviceToDevice);
    cudaMemcpyAsync(out, weights, BYTES, cudaMemcpyDeviceToDevice, s.a); // here
    cudaMemcpyAsync(out + T, weights, BYTES, cudaMemcpyDeviceToDevice, s.b);
    if (CORRECT) order(s.e, s.a, s.b);
    cudaMemsetAsync(weights, 0, BYTES, s.b); // here
    cudaMemcpyAsync(out + T, weights, BYTES, cudaMemcpyDeviceToDevice, s.b);
}
STREAM_FAULT(first_copy_forgotten, "weights", in[i])

template <bool CORRECT> static void memset_in_other_stream(const int *in, int *out) {
    streams s;
    cudaMemsetAsync(out, 0, BYTES, s.a); // here
    if (CORRECT) order(s.e, s.a, s.b);
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(memset_in_other_stream, "", in[i])

template <bool CORRECT> static void two_memsets(const int *in, int *out) {
    streams s;
    (void)in;
    cudaMemsetAsync(out, 1, BYTES, s.a); // here
    if (CORRECT) cudaStreamSynchronize(s.a);
    cudaMemsetAsync(out, 0, BYTES, s.b); // here
}
STREAM_FAULT(two_memsets, "", 0)

/* 8 rows of 16 ints: columns 0 to 7, and columns 7 or 8 to 15. */
template <bool CORRECT> static void columns_in_common(const int *in, int *out) {
    streams s;
    const size_t pitch = 16 * sizeof(int), width = 8 * sizeof(int);
    int first = CORRECT ? 8 : 7;
    cudaMemcpy2DAsync(out, pitch, in, pitch, width, 8, cudaMemcpyDeviceToDevice, s.a); // here
    cudaMemcpy2DAsync(out + first, pitch, in + first, pitch, width, 8, cudaMemcpyDeviceToDevice, s.b); // here
}
STREAM_FAULT(columns_in_common, "", in[i])

template <bool CORRECT> static void allocated_in_other_stream(const int *in, int *out) {
    streams s;
    int *buffer;
    cudaMallocAsync(&buffer, BYTES, s.a); // here
    if (CORRECT) order(s.e, s.a, s.b);
    put<<<1, T, 0, s.b>>>(buffer, in); // here
    put<<<1, T, 0, s.b>>>(out, buffer);
}
STREAM_FAULT(allocated_in_other_stream, "buffer", in[i])

template <bool CORRECT> static void freed_while_used(const int *in, int *out) {
    streams s;
    int *buffer;
    cudaMallocAsync(&buffer, BYTES, s.a);
    order(s.e, s.a, s.b);
    put<<<1, T, 0, s.b>>>(buffer, in); // here
    put<<<1, T, 0, s.b>>>(out, buffer);
    if (CORRECT) order(s.f, s.b, s.a);
    cudaFreeAsync(buffer, s.a); // here
}
STREAM_FAULT(freed_while_used, "buffer", in[i])

/* ---- the default stream ---------------------------------------------------------------------------------------------------- */

template <bool CORRECT> static void non_blocking_beside_default(const int *in, int *out) {
    streams s(CORRECT ? cudaStreamDefault : cudaStreamNonBlocking);
    put<<<1, T>>>(out, in); // here
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(non_blocking_beside_default, "", 2 * in[i])

template <bool CORRECT> static void default_beside_non_blocking(const int *in, int *out) {
    streams s(cudaStreamNonBlocking);
    put<<<1, T, 0, s.a>>>(out, in); // here
    if (CORRECT) cudaStreamSynchronize(s.a);
    add<<<1, T>>>(out, in); // here
}
STREAM_FAULT(default_beside_non_blocking, "", 2 * in[i])

/* The host does not wait for cudaMemset() of the device's memory. */
template <bool CORRECT> static void memset_beside_non_blocking(const int *in, int *out) {
    streams s(cudaStreamNonBlocking);
    cudaMemset(out, 0, BYTES); // here
    if (CORRECT) cudaDeviceSynchronize();
    add<<<1, T, 0, s.a>>>(out, in); // here
}
STREAM_FAULT(memset_beside_non_blocking, "", in[i])

/* Nor for a copy within the device. */
template <bool CORRECT> static void copy_beside_non_blocking(const int *in, int *out) {
    streams s(cudaStreamNonBlocking);
    cudaMemcpy(out, in, BYTES, cudaMemcpyDeviceToDevice); // here
    if (CORRECT) cudaStreamSynchronize(0);
    add<<<1, T, 0, s.a>>>(out, in); // here
}
STREAM_FAULT(copy_beside_non_blocking, "", 2 * in[i])

/* A copy to the host waits for blocking streams only. */
template <bool CORRECT> static void copy_to_host_without_wait(const int *in, int *out) {
    streams s(cudaStreamNonBlocking);
    int host[T];
    put<<<1, T, 0, s.a>>>(out, in); // here
    if (CORRECT) cudaStreamSynchronize(s.a);
    cudaMemcpy(host, out, BYTES, cudaMemcpyDeviceToHost); // here
}
STREAM_FAULT(copy_to_host_without_wait, "", in[i])

template <bool CORRECT> static void threads_own_stream(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, cudaStreamPerThread>>>(out, in); // here
    if (CORRECT) cudaStreamSynchronize(cudaStreamPerThread);
    add<<<1, T, 0, s.a>>>(out, in); // here
}
STREAM_FAULT(threads_own_stream, "", 2 * in[i])

/* ---- the host waits --------------------------------------------------------------------------------------------------------- */

template <bool CORRECT> static void waits_for_wrong_stream(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in); // here
    cudaStreamSynchronize(CORRECT ? s.a : s.b);
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(waits_for_wrong_stream, "", 2 * in[i])

template <bool CORRECT> static void waits_for_old_event(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in);
    cudaEventRecord(s.e, s.a);
    twice<<<1, T, 0, s.a>>>(out); // here
    if (CORRECT) cudaEventRecord(s.e, s.a);
    cudaEventSynchronize(s.e);
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(waits_for_old_event, "", 3 * in[i])

template <bool CORRECT> static void asks_wrong_stream(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in); // here
    while (cudaStreamQuery(CORRECT ? s.a : s.c) == cudaErrorNotReady) {
    }
    add<<<1, T, 0, s.b>>>(out, in); // here
}
STREAM_FAULT(asks_wrong_stream, "", 2 * in[i])

/* ---- what messages say --------------------------------------------------------------------------------------------------------- */

static void fail_and_say(const struct fault *fault, const char *words) {
    launch_fault(fault);
    report_says(words);
}
Test(messages, event_recorded_too_early) {
    fail_and_say(&fault_event_recorded_too_early, "was recorded in stream 1 before that; record an event in stream 1 after the first");
}
Test(messages, event_never_recorded) {
    fail_and_say(&fault_event_never_recorded, "is for an event that had not been recorded, which orders nothing");
}
Test(messages, non_blocking_stream) {
    fail_and_say(&fault_memset_beside_non_blocking, "a stream made with cudaStreamNonBlocking is not ordered with the default stream");
}
Test(messages, both_streams) {
    fail_and_say(&fault_no_event, "and let stream 2 wait for it before the second");
    report_says("in kernel add, block");
    report_says("kernel put, launched at tests/stream_faults.cu:");
}
Test(messages, operations) {
    fail_and_say(&fault_copied_out_early, "this copy reads it in stream 2 (made at tests/stream_faults.cu:");
    fail_and_say(&fault_allocated_in_other_stream, "the cudaMallocAsync() at tests/stream_faults.cu:");
    fail_and_say(&fault_freed_while_used, "this cudaFreeAsync() frees it in stream ");
}
Test(messages, destroyed_stream) {
    struct arrays arrays;
    make_arrays(&arrays);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cr_assert_eq(cudaStreamDestroy(stream), cudaSuccess);
    cr_assert_eq(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    put<<<1, T, 0, stream>>>(arrays.out, arrays.in);
    cr_assert_eq(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    report_says("launch of put: its stream is none, or has been destroyed");
}

/* ---- idioms ---------------------------------------------------------------------------------------------------------------------- */

enum { PARTS = 4, PART = T / PARTS, PART_BYTES = PART * (int)sizeof(int) };

/* Page-locked copies of `in`, for what is copied by parts. */
static int *host_copy(const int *in) {
    int *host;
    cudaMallocHost(&host, BYTES);
    cudaMemcpy(host, in, BYTES, cudaMemcpyDeviceToHost);
    return host;
}

static void overlap(const int *in, int *out, bool breadth_first) {
    cudaStream_t stream[PARTS];
    int *host = host_copy(in), *back, *from, *to;
    cudaMallocHost(&back, BYTES), cudaMalloc(&from, BYTES), cudaMalloc(&to, BYTES);
    for (int i = 0; i < PARTS; i++) cudaStreamCreate(&stream[i]);
    for (int round = 0; round < (breadth_first ? 3 : 1); round++)
        for (int i = 0; i < PARTS; i++) {
            int at = i * PART;
            bool all = !breadth_first;
            if (all || round == 0)
                cudaMemcpyAsync(from + at, host + at, PART_BYTES, cudaMemcpyHostToDevice, stream[i]);
            if (all || round == 1) put<<<1, PART, 0, stream[i]>>>(to + at, from + at);
            if (all || round == 2) cudaMemcpyAsync(back + at, to + at, PART_BYTES, cudaMemcpyDeviceToHost, stream[i]);
        }
    for (int i = 0; i < PARTS; i++) cudaStreamSynchronize(stream[i]), cudaStreamDestroy(stream[i]);
    cudaMemcpy(out, back, BYTES, cudaMemcpyHostToDevice);
}
PATTERN(overlap_depth_first, FIRST(T, in[i]), overlap(in, out, false))
PATTERN(overlap_breadth_first, FIRST(T, in[i]), overlap(in, out, true))

/* A copying stream fills one buffer while a computing stream works on the other. */
static void double_buffers(const int *in, int *out) {
    streams s(cudaStreamNonBlocking);
    cudaEvent_t full[2], empty[2];
    int *buffer, *host = host_copy(in);
    cudaMalloc(&buffer, 2 * PART_BYTES);
    for (int i = 0; i < 2; i++) cudaEventCreate(&full[i]), cudaEventCreate(&empty[i]);
    for (int i = 0; i < PARTS; i++) {
        int *half = buffer + i % 2 * PART;
        cudaStreamWaitEvent(s.a, empty[i % 2], 0); /* in the first rounds it has not been recorded: no wait */
        cudaMemcpyAsync(half, host + i * PART, PART_BYTES, cudaMemcpyHostToDevice, s.a);
        order(full[i % 2], s.a, s.b);
        put<<<1, PART, 0, s.b>>>(out + i * PART, half);
        cudaEventRecord(empty[i % 2], s.b);
    }
}
PATTERN(double_buffers, FIRST(T, in[i]), double_buffers(in, out))

static void ring_of_streams(const int *in, int *out) {
    streams s;
    cudaStream_t stream[] = {s.a, s.b, s.c};
    int *buffer[3];
    for (int *&each : buffer) cudaMalloc(&each, PART_BYTES);
    for (int i = 0; i < PARTS; i++) { /* each stream has a buffer of its own, and meets it again in its own order */
        cudaMemcpyAsync(buffer[i % 3], in + i * PART, PART_BYTES, cudaMemcpyDeviceToDevice, stream[i % 3]);
        put<<<1, PART, 0, stream[i % 3]>>>(out + i * PART, buffer[i % 3]);
    }
}
PATTERN(ring_of_streams, FIRST(T, in[i]), ring_of_streams(in, out))

static void default_stream_barrier(const int *in, int *out) {
    streams s;
    put<<<1, PART, 0, s.a>>>(out, in);
    put<<<1, PART, 0, s.b>>>(out + PART, in + PART);
    twice<<<1, 2 * PART>>>(out); /* after both, and before what comes */
    add<<<1, 2 * PART, 0, s.c>>>(out, in);
}
PATTERN(default_stream_barrier, FIRST(2 * PART, 3 * in[i]), default_stream_barrier(in, out))

static void legacy_by_name(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in);
    twice<<<1, T, 0, cudaStreamLegacy>>>(out);
    add<<<1, T, 0, s.b>>>(out, in);
}
PATTERN(legacy_by_name, FIRST(T, 3 * in[i]), legacy_by_name(in, out))

static void event_on_default_stream(const int *in, int *out) {
    streams s(cudaStreamNonBlocking);
    put<<<1, T>>>(out, in);
    order(s.e, 0, s.a);
    twice<<<1, T, 0, s.a>>>(out);
    order(s.f, s.a, 0);
    add<<<1, T>>>(out, in);
}
PATTERN(event_on_default_stream, FIRST(T, 3 * in[i]), event_on_default_stream(in, out))

static void per_thread_stream(const int *in, int *out) {
    put<<<1, T, 0, cudaStreamPerThread>>>(out, in);
    cudaMemcpyAsync(out + T, out, BYTES, cudaMemcpyDeviceToDevice, cudaStreamPerThread);
    twice<<<1, T>>>(out); /* the default stream waits for it as for others */
    cudaStreamSynchronize(cudaStreamPerThread);
}
PATTERN(per_thread_stream, FIRST(2 * T, i < T ? 2 * in[i] : in[i - T]), per_thread_stream(in, out))

static void shared_weights(const int *in, int *out) {
    streams s;
    for (int round = 0; round < 3; round++) {
        add<<<1, PART, 0, s.a>>>(out, in);
        add<<<1, PART, 0, s.b>>>(out + PART, in);
        add<<<1, PART, 0, s.c>>>(out + 2 * PART, in);
    }
}
PATTERN(shared_weights, FIRST(3 * PART, 3 * in[i % PART]), shared_weights(in, out))

static void one_counter(const int *in, int *out) {
    streams s;
    (void)in;
    count<<<1, T, 0, s.a>>>(out);
    count<<<1, T, 0, s.b>>>(out);
    count<<<1, T, 0, s.c>>>(out);
    order(s.e, s.a, s.c), order(s.f, s.b, s.c);
    twice<<<1, T, 0, s.c>>>(out);
}
PATTERN(one_counter, FIRST(T, 6), one_counter(in, out))

static void fork_and_join(const int *in, int *out) {
    streams s;
    cudaEvent_t done[2];
    cudaEventCreate(&done[0]), cudaEventCreate(&done[1]);
    put<<<1, T, 0, s.a>>>(out, in);
    cudaEventRecord(s.e, s.a); /* one event for two waits */
    cudaStreamWaitEvent(s.b, s.e, 0), cudaStreamWaitEvent(s.c, s.e, 0);
    twice<<<1, T / 2, 0, s.b>>>(out);
    twice<<<1, T / 2, 0, s.c>>>(out + T / 2);
    order(done[0], s.b, s.a), order(done[1], s.c, s.a);
    add<<<1, T, 0, s.a>>>(out, in);
}
PATTERN(fork_and_join, FIRST(T, 3 * in[i]), fork_and_join(in, out))

static void chain_of_events(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in);
    order(s.e, s.a, s.b);
    order(s.f, s.b, s.c); /* stream b has done nothing, and waits all the same */
    add<<<1, T, 0, s.c>>>(out, in);
}
PATTERN(chain_of_events, FIRST(T, 2 * in[i]), chain_of_events(in, out))

static void one_event_again(const int *in, int *out) {
    streams s;
    cudaStream_t stream[] = {s.a, s.b, s.c};
    put<<<1, T, 0, s.a>>>(out, in);
    for (int i = 0; i < 6; i++) {
        order(s.e, stream[i % 3], stream[(i + 1) % 3]);
        add<<<1, T, 0, stream[(i + 1) % 3]>>>(out, in);
    }
}
PATTERN(one_event_again, FIRST(T, 7 * in[i]), one_event_again(in, out))

static void stream_destroyed_early(const int *in, int *out) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    put<<<1, T, 0, stream>>>(out, in);
    cudaStreamDestroy(stream);
    add<<<1, T>>>(out, in); /* the default stream waits for what it had */
}
PATTERN(stream_destroyed_early, FIRST(T, 2 * in[i]), stream_destroyed_early(in, out))

static void many_short_streams(const int *in, int *out) {
    for (int i = 0; i < 40; i++) {
        cudaStream_t stream;
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
        add<<<1, T, 0, stream>>>(out, in);
        cudaStreamSynchronize(stream);
        cudaStreamDestroy(stream);
    }
}
PATTERN(many_short_streams, FIRST(T, 40 * in[i]), many_short_streams(in, out))

static void host_asks(const int *in, int *out) {
    streams s(cudaStreamNonBlocking);
    put<<<1, T, 0, s.a>>>(out, in);
    while (cudaStreamQuery(s.a) == cudaErrorNotReady) {
    }
    twice<<<1, T, 0, s.b>>>(out);
    cudaEventRecord(s.e, s.b);
    while (cudaEventQuery(s.e) == cudaErrorNotReady) {
    }
    add<<<1, T, 0, s.c>>>(out, in);
}
PATTERN(host_asks, FIRST(T, 3 * in[i]), host_asks(in, out))

static void host_waits_for_event(const int *in, int *out) {
    streams s(cudaStreamNonBlocking);
    put<<<1, T, 0, s.a>>>(out, in);
    cudaEventRecord(s.f, s.a);
    cudaEventSynchronize(s.f);
    add<<<1, T, 0, s.b>>>(out, in);
}
PATTERN(host_waits_for_event, FIRST(T, 2 * in[i]), host_waits_for_event(in, out))

static void pool_of_streams(const int *in, int *out) {
    streams s;
    int *buffer;
    cudaMallocAsync(&buffer, BYTES, s.a);
    put<<<1, T, 0, s.a>>>(buffer, in);
    order(s.e, s.a, s.b);
    put<<<1, T, 0, s.b>>>(out, buffer);
    order(s.f, s.b, s.a);
    cudaFreeAsync(buffer, s.a);
}
PATTERN(pool_of_streams, FIRST(T, in[i]), pool_of_streams(in, out))

/* Memory that comes back is new. */
static void pool_again(const int *in, int *out) {
    streams s;
    cudaStream_t stream[] = {s.a, s.b, s.c};
    for (int i = 0; i < PARTS; i++) {
        int *buffer;
        cudaMallocAsync(&buffer, BYTES, stream[i % 3]);
        cudaMemcpyAsync(buffer, in + i * PART, PART_BYTES, cudaMemcpyDeviceToDevice, stream[i % 3]);
        put<<<1, PART, 0, stream[i % 3]>>>(out + i * PART, buffer);
        cudaFreeAsync(buffer, stream[i % 3]);
    }
}
PATTERN(pool_again, FIRST(T, in[i]), pool_again(in, out))

/* The stream that had the first launch goes on. */
static void waits_for_one_of_two(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.c>>>(out + T, in);
    put<<<1, T, 0, s.a>>>(out, in);
    cudaStreamSynchronize(s.a);
    add<<<1, T, 0, s.b>>>(out, in);
}
PATTERN(waits_for_one_of_two, FIRST(2 * T, i < T ? 2 * in[i] : in[i - T]), waits_for_one_of_two(in, out))

static void every_second(const int *in, int *out) {
    streams s;
    put_words<<<1, T / 2, 0, s.a>>>(out, in, 0, 2);
    put_words<<<1, T / 2, 0, s.b>>>(out, in, 1, 2);
    cudaMemsetAsync(out + T, 1, 4, s.c);
}
PATTERN(every_second, FIRST(T + 1, i < T ? in[i] : 0x01010101), every_second(in, out))

/* The last two bytes of each word by a copy with a pitch. */
static void bytes_of_one_word(const int *in, int *out) {
    streams s;
    int *ones;
    (void)in;
    cudaMalloc(&ones, BYTES);
    cudaMemset(ones, 1, BYTES);
    set_bytes<<<1, T, 0, s.a>>>((unsigned char *)out, 0, 4);
    set_bytes<<<1, T, 0, s.b>>>((unsigned char *)out, 1, 4);
    cudaMemcpy2DAsync((char *)out + 2, 4, ones, 4, 2, T, cudaMemcpyDeviceToDevice, s.c);
}
PATTERN(bytes_of_one_word, FIRST(T, 0x01010101), bytes_of_one_word(in, out))

static void phases(const int *in, int *out) {
    streams s(cudaStreamNonBlocking);
    cudaStream_t stream[] = {s.a, s.b};
    for (int phase = 0; phase < 4; phase++) { /* the streams change sides */
        add<<<1, T, 0, stream[phase % 2]>>>(out, in);
        add<<<1, T, 0, stream[(phase + 1) % 2]>>>(out + T, in);
        cudaDeviceSynchronize();
    }
}
PATTERN(phases, FIRST(2 * T, 4 * in[i % T]), phases(in, out))

static void copied_from_pageable(const int *in, int *out) {
    streams s;
    int host[T];
    cudaMemcpyAsync(host, in, BYTES, cudaMemcpyDeviceToHost, s.a); /* has been made when the call returns */
    for (int i = 0; i < T; i++) host[i] += 1;
    cudaMemcpyAsync(out, host, BYTES, cudaMemcpyHostToDevice, s.b);
    for (int i = 0; i < T; i++) host[i] = 0; /* the call has taken what it needs */
    twice<<<1, T, 0, s.b>>>(out);
}
PATTERN(copied_from_pageable, FIRST(T, 2 * (in[i] + 1)), copied_from_pageable(in, out))

/* The usual start of a program: inputs by cudaMemcpy(), then streams that do not block. */
static void inputs_first(const int *in, int *out) {
    int host[T], *buffer;
    cudaMemcpy(host, in, BYTES, cudaMemcpyDeviceToHost);
    cudaMalloc(&buffer, BYTES);
    cudaMemcpy(buffer, host, BYTES, cudaMemcpyHostToDevice);
    streams s(cudaStreamNonBlocking);
    put<<<1, T, 0, s.a>>>(out, buffer);
    cudaFree(buffer); /* waits for all */
    add<<<1, T, 0, s.b>>>(out, in);
}
PATTERN(inputs_first, FIRST(T, 2 * in[i]), inputs_first(in, out))

static void function_of_host(void *data) { ++*(int *)data; }
static void host_functions(const int *in, int *out) {
    streams s;
    static int calls;
    put<<<1, T, 0, s.a>>>(out, in);
    calls = 0;
    cudaLaunchHostFunc(s.a, function_of_host, &calls);
    order(s.e, s.a, s.b);
    add<<<1, T, 0, s.b>>>(out, in);
    cudaStreamAddCallback(s.b, [](cudaStream_t, cudaError_t, void *data) { function_of_host(data); }, &calls, 0);
    cudaDeviceSynchronize();
    cr_assert_eq(calls, 2);
}
PATTERN(host_functions, FIRST(T, 2 * in[i]), host_functions(in, out))

/* Data and a flag: both kernels have fences, and the one waits for the other, so nothing is compared. */
__global__ static void give(volatile int *flag, int *data, const int *in) {
    data[threadIdx.x] = in[threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *flag = 1;
}
__global__ static void take(volatile int *flag, const int *data, int *out) {
    if (threadIdx.x == 0)
        while (*flag == 0) __threadfence();
    __threadfence();
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x];
}
static void flag_between_kernels(const int *in, int *out) {
    streams s;
    int *flag, *data;
    cudaMalloc(&flag, sizeof *flag), cudaMalloc(&data, BYTES);
    cudaMemset(flag, 0, sizeof *flag);
    give<<<1, T, 0, s.a>>>(flag, data, in);
    take<<<1, T, 0, s.b>>>(flag, data, out);
}
PATTERN(flag_between_kernels, FIRST(T, in[i]), flag_between_kernels(in, out))

/* More launches in one stream than the device numbers apart with narrow stamps. */
static void long_before_join(const int *in, int *out) {
    streams s;
    put<<<1, T, 0, s.a>>>(out, in);
    for (int i = 0; i < 60; i++) add<<<1, T, 0, s.a>>>(out, in);
    order(s.e, s.a, s.b);
    add<<<1, T, 0, s.b>>>(out, in);
}
PATTERN(long_before_join, FIRST(T, 62 * in[i]), long_before_join(in, out))
