#pragma once

/* Functions around one asm statement, as headers have them. */
#include <stdint.h>

__device__ inline uint32_t shared_address(const void *pointer) { return (uint32_t)__cvta_generic_to_shared(pointer); }

__device__ inline void meet() { asm volatile("bar.sync 0;" ::: "memory"); }

__device__ void meet_declared_first();
__device__ inline void meet_declared_first() { asm volatile("bar.sync 0;" ::: "memory"); }

template <class T> __device__ void meet_as();
template <> __device__ inline void meet_as<int>() { asm volatile("bar.sync 0;" ::: "memory"); }
template <> __device__ inline void meet_as<float>() { __syncthreads(); }

template <class T> __device__ inline void meet_in_template(T) { asm volatile("bar.sync 0;" ::: "memory"); }

__device__ inline void load_rows(uint32_t (&matrix)[1], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(matrix[0]) : "r"(shared_address(row)));
}
__device__ inline void load_rows(uint32_t (&matrix)[2], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(matrix[0]), "=r"(matrix[1])
                 : "r"(shared_address(row)));
}

/* Not all of them are called by their names. */
__device__ inline float twice(float x) {
    float y;
    asm("add.f32 %0, %1, %1;" : "=f"(y) : "f"(x));
    return y;
}

struct pair {
    float low, high;
    __device__ float sum() const {
        float y;
        asm("add.f32 %0, %1, %2;" : "=f"(y) : "f"(low), "f"(high));
        return y;
    }
};

/* A header of the project with device code and shared memory, which is rewritten like the file that includes it. */
__shared__ int remembered[32];

__device__ inline void remember(int x) { remembered[x] = x; }
__device__ inline int recall(int i) { return remembered[i]; }
__host__ __device__ inline int doubled(int x) { return 2 * x; }
