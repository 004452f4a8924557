/* What a card tolerates: a warning on the simulated device, and an error with SIMT_STRICT=1. Beside each kernel its correct
 * twin, and a fault that looks like it and is none to tolerate. Usage: tolerated NAME; tolerated.sh runs them all. */
#include <cstdio>
#include <cstring>

enum { N = 64 };

__global__ void same_value(int *out) { out[0] = 7; } // here
__global__ void same_value_twin(int *out) {
    if (threadIdx.x == 0) out[0] = 7;
}
__global__ void same_value_fault(int *out) { out[0] = threadIdx.x; } // here

__global__ void same_byte(unsigned char *out) { out[1] = 7; } // here
__global__ void same_byte_twin(unsigned char *out) { out[threadIdx.x] = 7; }
__global__ void same_byte_fault(unsigned char *out) { out[1] = threadIdx.x; } // here

__global__ void unwritten(int *out, const int *in, int use) {
    int value = in[threadIdx.x]; // here
    out[threadIdx.x] = threadIdx.x < use ? value : 0;
}

__global__ void early_return(int *out, int count) {
    __shared__ int tile[N];
    if (threadIdx.x >= count) return;
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads(); // here
    out[threadIdx.x] = tile[count - 1 - threadIdx.x];
}
__global__ void early_return_fault(int *out, int count) {
    __shared__ int tile[N];
    if (threadIdx.x >= count) return;
    tile[threadIdx.x] = threadIdx.x; // here
    out[threadIdx.x] = tile[count - 1 - threadIdx.x];
    __syncthreads();
}

__global__ void two_lines(int *out) {
    __shared__ int tile[N];
    if (threadIdx.x < N / 2) {
        tile[threadIdx.x] = 1;
        __syncthreads(); // here
    } else {
        tile[threadIdx.x] = 2;
        __syncthreads(); // here
    }
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
__global__ void two_lines_twin(int *out) {
    __shared__ int tile[N];
    tile[threadIdx.x] = threadIdx.x < N / 2 ? 1 : 2;
    __syncthreads();
    out[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
__global__ void two_lines_fault(int *out) {
    if (threadIdx.x == 0) __syncwarp(0x3); // here
    if (threadIdx.x == 1) __syncthreads();
    out[threadIdx.x] = 1;
}

int main(int argc, char **argv) {
    int *out, *in, host[N];
    const char *name = argc > 1 ? argv[1] : "";
    cudaMalloc(&out, sizeof host);
    cudaMalloc(&in, sizeof host);
    cudaMemset(out, 0, sizeof host);
    auto is = [&](const char *which) { return strcmp(name, which) == 0; };
    if (is("same_value")) same_value<<<1, N>>>(out);
    else if (is("same_value_twin")) same_value_twin<<<1, N>>>(out);
    else if (is("same_value_fault")) same_value_fault<<<1, N>>>(out);
    else if (is("same_byte")) same_byte<<<1, N>>>((unsigned char *)out);
    else if (is("same_byte_twin")) same_byte_twin<<<1, N>>>((unsigned char *)out);
    else if (is("same_byte_fault")) same_byte_fault<<<1, N>>>((unsigned char *)out);
    else if (is("unwritten")) unwritten<<<1, N>>>(out, in, 0);
    else if (is("unwritten_twin")) cudaMemset(in, 0, sizeof host), unwritten<<<1, N>>>(out, in, 0);
    else if (is("early_return")) early_return<<<1, N>>>(out, 40);
    else if (is("early_return_twin")) early_return<<<1, N>>>(out, N);
    else if (is("early_return_fault")) early_return_fault<<<1, N>>>(out, 40);
    else if (is("two_lines")) two_lines<<<1, N>>>(out);
    else if (is("two_lines_twin")) two_lines_twin<<<1, N>>>(out);
    else if (is("two_lines_fault")) two_lines_fault<<<1, N>>>(out);
    else return fprintf(stderr, "no kernel is called \"%s\"\n", name), 2;
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost); /* errors are ignored: the exit status tells of a fault */
    printf("%d\n", host[1]);
    return 0;
}
