// Four threads exchange numbers through dynamic shared memory.
#include <cstdio>

__global__ void reverse(int *out) {
    extern __shared__ int tile[];
    int t = threadIdx.x;
    tile[t] = t;
    __syncthreads();
    out[t] = tile[3 - t];
}

int main() {
    int host[4], *out;
    cudaMalloc(&out, sizeof host);
    reverse<<<1, 4, sizeof host>>>(out);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    printf("%d %d %d %d\n", host[0], host[1], host[2], host[3]);
    cudaFree(out);
}
