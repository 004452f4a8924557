/* A header of the project with device code and shared memory, which is rewritten like the file that includes it. */
#pragma once

__shared__ int remembered[32];

__device__ inline void remember(int x) { remembered[x] = x; }
__device__ inline int recall(int i) { return remembered[i]; }
__host__ __device__ inline int twice(int x) { return 2 * x; }
