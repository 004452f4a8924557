/* Several devices: whose stream, whose event and whose memory it is, and what orders the work of two devices. Each test has three. */
#include "faults.h"

#include <cstdlib>

enum { DEVICES = 3, BYTES = T * sizeof(int) };

__global__ static void put(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ static void add(int *to, const int *from) { to[threadIdx.x] += from[threadIdx.x]; }
__global__ static void twice(int *to) { to[threadIdx.x] *= 2; }

/* A stream, an event and two buffers on each device; device 0 is current at the beginning and at the end. */
struct devices {
    cudaStream_t stream[DEVICES];
    cudaEvent_t event[DEVICES];
    int *buffer[DEVICES], *next[DEVICES];
    explicit devices(bool peers = true) {
        int count;
        setenv("SIMT_DEVICES", "3", 1);
        if (cudaGetDeviceCount(&count) != cudaSuccess || count < DEVICES) cr_skip_test("needs %d devices", DEVICES);
        for (int i = 0; i < DEVICES; i++) {
            cudaSetDevice(i);
            for (int j = 0; j < DEVICES; j++)
                if (i != j && peers) cudaDeviceEnablePeerAccess(j, 0);
            cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking), cudaEventCreate(&event[i]);
            cudaMalloc(&buffer[i], BYTES), cudaMalloc(&next[i], BYTES);
        }
        cudaSetDevice(0);
    }
    ~devices() {
        for (int i = 0; i < DEVICES; i++) {
            cudaSetDevice(i), cudaDeviceSynchronize(); /* the caller waits for one of them */
            cudaStreamDestroy(stream[i]), cudaEventDestroy(event[i]);
        }
        cudaSetDevice(0);
        cudaGetLastError();
    }
    /* What stream `first` has been given comes before what stream `second` is given next. */
    void order(int first, int second) const {
        cudaEventRecord(event[first], stream[first]);
        cudaStreamWaitEvent(stream[second], event[first], 0);
    }
};

#define DEVICE_FAULT(name, error, says, expected) FAULT(name, error, says, FIRST(T, expected), name<CORRECT>(in, out))
#define RACE(name, expected) DEVICE_FAULT(name, cudaErrorLaunchFailure, "race between streams on ", expected)

/* ---- whose memory -------------------------------------------------------------------------------------------------------- */

__global__ static void reads_peer(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; } // here
template <bool CORRECT> static void launch_reads_peer_of(const int *in, int *out) {
    devices d(false);
    if (CORRECT) cudaSetDevice(0), cudaDeviceEnablePeerAccess(1, 0);
    cudaMemcpyPeer(d.buffer[1], 1, in, 0, BYTES);
    reads_peer<<<1, T>>>(out, d.buffer[1]);
}
FAULT(reads_peer, cudaErrorIllegalAddress, "which lies on device 1; the kernel runs on device 0", FIRST(T, in[i]),
      launch_reads_peer_of<CORRECT>(in, out))

__global__ static void writes_peer(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; } // here
/* Access goes one way: device 1 has it, and device 0 needs it. */
template <bool CORRECT> static void launch_writes_peer_of(const int *in, int *out) {
    devices d(false);
    cudaSetDevice(CORRECT ? 0 : 1);
    cudaDeviceEnablePeerAccess(CORRECT ? 1 : 0, 0);
    cudaSetDevice(0);
    writes_peer<<<1, T>>>(d.buffer[1], in);
    cudaMemcpy(out, d.buffer[1], BYTES, cudaMemcpyDefault);
}
FAULT(writes_peer, cudaErrorIllegalAddress, "cudaDeviceEnablePeerAccess(1, 0) while device 0 is current gives it",
      FIRST(T, in[i]), launch_writes_peer_of<CORRECT>(in, out))

__global__ static void access_is_gone(int *to, const int *from) { to[threadIdx.x] += from[threadIdx.x]; } // here
template <bool CORRECT> static void launch_access_is_gone_of(const int *in, int *out) {
    devices d;
    cudaMemcpyPeer(d.buffer[2], 2, in, 0, BYTES);
    access_is_gone<<<1, T>>>(out, d.buffer[2]);
    if (!CORRECT) cudaDeviceDisablePeerAccess(2);
    access_is_gone<<<1, T>>>(out, d.buffer[2]);
}
FAULT(access_is_gone, cudaErrorIllegalAddress, "which lies on device 2", FIRST(T, 2 * in[i]),
      launch_access_is_gone_of<CORRECT>(in, out))

/* ---- work of two devices --------------------------------------------------------------------------------------------------- */

template <bool CORRECT> static void arrival_without_event(const int *in, int *out) {
    devices d;
    cudaMemcpyPeerAsync(d.buffer[1], 1, in, 0, BYTES, d.stream[0]); // here
    if (CORRECT) d.order(0, 1);
    cudaSetDevice(1);
    put<<<1, T, 0, d.stream[1]>>>(out, d.buffer[1]); // here
}
RACE(arrival_without_event, in[i])

template <bool CORRECT> static void pulled_too_early(const int *in, int *out) {
    devices d;
    put<<<1, T, 0, d.stream[0]>>>(d.buffer[0], in); // here
    if (CORRECT) d.order(0, 1);
    cudaMemcpyPeerAsync(d.buffer[1], 1, d.buffer[0], 0, BYTES, d.stream[1]); // here
    cudaMemcpyPeerAsync(out, 0, d.buffer[1], 1, BYTES, d.stream[1]);
}
RACE(pulled_too_early, in[i])

/* The owner fills its buffer again while the peer's copy still reads it. */
template <bool CORRECT> static void refilled_while_pulled(const int *in, int *out) {
    devices d;
    put<<<1, T, 0, d.stream[0]>>>(d.buffer[0], in);
    d.order(0, 1);
    cudaMemcpyPeerAsync(d.buffer[1], 1, d.buffer[0], 0, BYTES, d.stream[1]); // here
    if (CORRECT) d.order(1, 0);
    twice<<<1, T, 0, d.stream[0]>>>(d.buffer[0]); // here
    cudaMemcpyPeerAsync(out, 0, d.buffer[1], 1, BYTES, d.stream[1]);
}
RACE(refilled_while_pulled, in[i])

template <bool CORRECT> static void kernel_reads_peer_early(const int *in, int *out) {
    devices d;
    cudaSetDevice(1);
    put<<<1, T, 0, d.stream[1]>>>(d.buffer[1], in); // here
    if (CORRECT) d.order(1, 0);
    cudaSetDevice(0);
    add<<<1, T, 0, d.stream[0]>>>(out, d.buffer[1]); // here
}
RACE(kernel_reads_peer_early, in[i])

/* Each device has a default stream of its own. */
template <bool CORRECT> static void two_default_streams(const int *in, int *out) {
    devices d;
    put<<<1, T>>>(d.buffer[1], in); // here
    if (CORRECT) cudaDeviceSynchronize();
    cudaSetDevice(1);
    put<<<1, T>>>(out, d.buffer[1]); // here
}
RACE(two_default_streams, in[i])

/* A blocking stream waits for the default stream of its own device. */
template <bool CORRECT> static void blocking_beside_other_default(const int *in, int *out) {
    devices d;
    cudaStream_t blocking;
    cudaSetDevice(CORRECT ? 0 : 1);
    cudaStreamCreate(&blocking);
    cudaSetDevice(0);
    put<<<1, T>>>(d.buffer[1], in);                                        // here
    cudaMemcpyAsync(out, d.buffer[1], BYTES, cudaMemcpyDefault, blocking); // here
}
RACE(blocking_beside_other_default, in[i])

/* cudaDeviceSynchronize() waits for the current device. */
template <bool CORRECT> static void waits_for_other_device(const int *in, int *out) {
    devices d;
    put<<<1, T, 0, d.stream[0]>>>(d.buffer[1], in); // here
    cudaSetDevice(1);
    if (CORRECT) cudaSetDevice(0);
    cudaDeviceSynchronize();
    cudaSetDevice(1);
    put<<<1, T, 0, d.stream[1]>>>(out, d.buffer[1]); // here
}
RACE(waits_for_other_device, in[i])

/* The hop from device 0 to 1 is ordered, and that from 1 to 2 is not. */
template <bool CORRECT> static void second_hop_without_event(const int *in, int *out) {
    devices d;
    cudaMemcpyPeerAsync(d.buffer[1], 1, in, 0, BYTES, d.stream[0]);
    d.order(0, 1);
    cudaMemcpyPeerAsync(d.buffer[2], 2, d.buffer[1], 1, BYTES, d.stream[1]); // here
    if (CORRECT) d.order(1, 2);
    cudaSetDevice(2);
    put<<<1, T, 0, d.stream[2]>>>(out, d.buffer[2]); // here
}
RACE(second_hop_without_event, in[i])

/* ---- whose stream, whose event ------------------------------------------------------------------------------------------------ */

/* What the call returns and what it says. */
static void refused(cudaError_t got, cudaError_t wanted, const char *words) {
    cr_assert_eq(got, wanted, "%s instead of %s", cudaGetErrorName(got), cudaGetErrorName(wanted));
    report_says(words);
    cudaGetLastError();
}

Test(messages, stream_of_other_device) {
    struct arrays arrays;
    make_arrays(&arrays);
    devices d;
    put<<<1, T, 0, d.stream[1]>>>(arrays.out, arrays.in);
    refused(cudaGetLastError(), cudaErrorInvalidResourceHandle, "of device 1 (made at tests/device_faults.cu:");
    report_says("launch of put in stream ");
    report_says("while device 0 is current: cudaSetDevice(1) first");
    cudaSetDevice(1);
    put<<<1, T, 0, d.stream[1]>>>(arrays.out, arrays.in);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    /* A copy, a wait and a query may be in a stream of another device. */
    cr_assert_eq(cudaMemcpyAsync(d.buffer[0], arrays.in, BYTES, cudaMemcpyDeviceToDevice, d.stream[0]), cudaSuccess);
    cr_assert_eq(cudaStreamSynchronize(d.stream[0]), cudaSuccess);
}

Test(messages, event_of_other_device) {
    struct arrays arrays;
    make_arrays(&arrays);
    devices d;
    float time;
    refused(cudaEventRecord(d.event[1], d.stream[0]), cudaErrorInvalidResourceHandle,
            "cudaEventRecord(): the event was made on device 1 and cannot be recorded in stream ");
    refused(cudaEventRecord(d.event[1], 0), cudaErrorInvalidResourceHandle,
            "cannot be recorded in the default stream of device 0");
    cr_assert_eq(cudaEventRecord(d.event[0], d.stream[0]), cudaSuccess);
    cr_assert_eq(cudaEventRecord(d.event[1], d.stream[1]), cudaSuccess);
    cr_assert_eq(cudaStreamWaitEvent(d.stream[0], d.event[1], 0), cudaSuccess);
    cr_assert_eq(cudaEventElapsedTime(&time, d.event[0], d.event[1]), cudaErrorInvalidResourceHandle);
}

Test(messages, copy_of_other_devices) {
    struct arrays arrays;
    make_arrays(&arrays);
    devices d;
    refused(cudaMemcpyPeer(d.buffer[1], 2, arrays.in, 0, BYTES), cudaErrorInvalidValue,
            "lies on device 1, and the call says device 2");
    refused(cudaMemcpyPeerAsync(d.buffer[1], 1, arrays.in, 2, BYTES, d.stream[0]), cudaErrorInvalidValue,
            "copy between devices: the source");
    cr_assert_eq(cudaMemcpyPeer(d.buffer[1], 1, arrays.in, 0, BYTES), cudaSuccess);
}

Test(messages, race_between_devices) {
    launch_fault(&fault_arrival_without_event);
    report_says("only events and the host order streams of two devices");
    report_says("this thread reads it at tests/device_faults.cu:");
    report_says(" of device 0 (made at tests/device_faults.cu:");
}

/* ---- idioms ---------------------------------------------------------------------------------------------------------------------- */

/* Round a ring of three devices, by pulls, with two buffers on each. */
static void ring_of_pulls(const int *in, int *out) {
    devices d;
    for (int i = 0; i < DEVICES; i++) cudaMemcpyAsync(d.buffer[i], in, BYTES, cudaMemcpyDeviceToDevice, d.stream[i]);
    for (int step = 0; step < DEVICES; step++) {
        for (int i = 0; i < DEVICES; i++) cudaEventRecord(d.event[i], d.stream[i]);
        for (int i = 0; i < DEVICES; i++) {
            int from = (i + DEVICES - 1) % DEVICES, to = (i + 1) % DEVICES;
            cudaStreamWaitEvent(d.stream[i], d.event[from], 0); /* its buffer is full */
            cudaStreamWaitEvent(d.stream[i], d.event[to], 0);   /* and who reads mine of the step before is done */
            cudaMemcpyPeerAsync(d.next[i], i, d.buffer[from], from, BYTES, d.stream[i]);
        }
        for (int i = 0; i < DEVICES; i++) {
            cudaSetDevice(i);
            twice<<<1, T, 0, d.stream[i]>>>(d.next[i]);
            int *full = d.next[i];
            d.next[i] = d.buffer[i], d.buffer[i] = full;
        }
    }
    cudaMemcpyAsync(out, d.buffer[0], BYTES, cudaMemcpyDeviceToDevice, d.stream[0]);
}
PATTERN(ring_of_pulls, FIRST(T, 8 * in[i]), ring_of_pulls(in, out))

/* A part of the work for each device, and all results to the first. */
static void parts_on_devices(const int *in, int *out) {
    devices d;
    cudaDeviceSynchronize();
    for (int i = 0; i < DEVICES; i++) {
        cudaSetDevice(i);
        cudaMemcpyAsync(d.buffer[i], in + i * T, BYTES, cudaMemcpyDefault, d.stream[i]);
        twice<<<1, T, 0, d.stream[i]>>>(d.buffer[i]);
    }
    for (int i = 0; i < DEVICES; i++) {
        cudaStreamSynchronize(d.stream[i]); /* of whichever device */
        cudaMemcpy(out + i * T, d.buffer[i], BYTES, cudaMemcpyDefault);
    }
}
PATTERN(parts_on_devices, FIRST(int(DEVICES) * T, 2 * in[i]), parts_on_devices(in, out))

/* cudaMemcpyPeer() comes after all work of both devices, and before all that follows. */
static void copy_between_all(const int *in, int *out) {
    devices d;
    cudaSetDevice(1);
    put<<<1, T, 0, d.stream[1]>>>(d.buffer[1], in);
    cudaMemcpyPeer(d.buffer[2], 2, d.buffer[1], 1, BYTES);
    twice<<<1, T, 0, d.stream[1]>>>(d.buffer[1]);
    cudaSetDevice(2);
    put<<<1, T, 0, d.stream[2]>>>(out, d.buffer[2]);
}
PATTERN(copy_between_all, FIRST(T, in[i]), copy_between_all(in, out))

/* Two devices add to a third one's memory in turn. */
static void chain_over_devices(const int *in, int *out) {
    devices d;
    for (int i = 0; i < DEVICES; i++) {
        cudaSetDevice(i);
        add<<<1, T, 0, d.stream[i]>>>(out, in);
        if (i + 1 < DEVICES) d.order(i, i + 1);
    }
}
PATTERN(chain_over_devices, FIRST(T, 3 * in[i]), chain_over_devices(in, out))

/* Memory that all devices share needs no access to a peer. */
static void shared_by_all(const int *in, int *out) {
    devices d(false);
    int *page_locked, *managed;
    cudaMallocHost(&page_locked, BYTES), cudaMallocManaged(&managed, BYTES);
    put<<<1, T>>>(managed, in);
    cudaDeviceSynchronize();
    cudaSetDevice(1);
    put<<<1, T>>>(page_locked, managed);
    cudaDeviceSynchronize();
    cudaSetDevice(0);
    put<<<1, T>>>(out, page_locked);
}
PATTERN(shared_by_all, FIRST(T, in[i]), shared_by_all(in, out))
