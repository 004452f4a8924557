// expect: 0 cudaErrorPeerAccessUnsupported cudaErrorPeerAccessNotEnabled cudaErrorInvalidDevice cudaSuccess 8
#include "construct.h"

/* A device is no peer of its own, but a copy between "peers" may stay on one. */
int main() {
    int can = 7, host = 8, *a, *b;
    must(cudaDeviceCanAccessPeer(&can, 0, 0), "cudaDeviceCanAccessPeer");
    printf("%d %s ", can, cudaGetErrorName(cudaDeviceEnablePeerAccess(0, 0)));
    printf("%s ", cudaGetErrorName(cudaDeviceDisablePeerAccess(0)));
    printf("%s ", cudaGetErrorName(cudaDeviceCanAccessPeer(&can, 0, 64)));
    must(cudaMalloc(&a, sizeof host), "cudaMalloc");
    must(cudaMalloc(&b, sizeof host), "cudaMalloc");
    must(cudaMemcpy(a, &host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    printf("%s ", cudaGetErrorName(cudaMemcpyPeer(b, 0, a, 0, sizeof host)));
    host = 0;
    must(cudaMemcpy(&host, b, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d\n", host);
    return 0;
}
