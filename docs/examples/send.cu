// Rank 0 sends to rank 1, which adds. The event is recorded before the group has ended.
#include <cstdio>
#include <nccl.h>

__global__ void add(float *sum, const float *x) { sum[threadIdx.x] += x[threadIdx.x]; }

int main() {
    const int n = 256;
    float *x[2], *sum;
    cudaStream_t transfer[2], compute;
    cudaEvent_t arrived;
    ncclComm_t comm[2];
    ncclCommInitAll(comm, 2, nullptr);
    for (int rank = 0; rank < 2; rank++) {
        cudaSetDevice(rank);
        cudaStreamCreate(&transfer[rank]);
        cudaMalloc(&x[rank], n * sizeof(float));
        cudaMemset(x[rank], 0, n * sizeof(float));
    }
    cudaMalloc(&sum, n * sizeof(float));
    cudaMemset(sum, 0, n * sizeof(float));
    cudaStreamCreate(&compute);
    cudaEventCreate(&arrived);

    ncclGroupStart();
    ncclSend(x[0], n, ncclFloat, 1, comm[0], transfer[0]);
    ncclRecv(x[1], n, ncclFloat, 0, comm[1], transfer[1]);
    cudaEventRecord(arrived, transfer[1]);
    ncclGroupEnd();
    cudaStreamWaitEvent(compute, arrived, 0);
    add<<<1, n, 0, compute>>>(sum, x[1]);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
