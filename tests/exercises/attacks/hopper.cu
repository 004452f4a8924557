// Hopper's instructions: copies by maps and addresses that the kernel chooses, products that write registers later than their
// call, and the host's way to a tensor map. In task 12a the code is in the producer's loop, one thread, as in 13a.

//! a forged map whose tensor lies in the host's memory
//: task 12a
//: says its tensor map lies in local memory
CUtensorMap forged = maps.K; ((uint64_t *)&forged)[1] = 0x7ffd00000000; tma_load(K_smem, &forged, 0, 0, 0, K_full);
//! a forged map whose tensor is the thread's stack
//: task 12a
//: says its tensor map lies in local memory
CUtensorMap forged = maps.K; ((uint64_t *)&forged)[1] = (uint64_t)&forged; tma_load(K_smem, &forged, 0, 0, 0, K_full);
//! a forged map that stores over the thread's stack
//: task 12a
//: says its tensor map lies in local memory
CUtensorMap forged = maps.K; ((uint64_t *)&forged)[1] = (uint64_t)&forged; mbarrier_wait(Q_full, 0); tma_store(&forged, 0, 0, 0, Q_smem); tma_commit(); tma_wait<0>();
//! a forged map of a tensor without end
//: task 12a
//: says its tensor map lies in local memory
CUtensorMap forged = maps.K; for (int i = 2; i < 5; i++) ((uint64_t *)&forged)[i] = (uint64_t)-1; tma_load(K_smem, &forged, 0, 1 << 30, 0, K_full);
//! a map of made bytes
//: task 12a
//: says its tensor map is none that
CUtensorMap forged = {}; tma_load(K_smem, &forged, 0, 0, 0, K_full);
//! a map in the host's memory
//: task 12a
//: says out of bounds
tma_load(K_smem, (const CUtensorMap *)0x7ffd00000000, 0, 0, 0, K_full);
//! stores over an input, by its map
//: task 12a
//: says write to K\[0\]
mbarrier_wait(Q_full, 0); tma_store(&maps.K, 0, 0, 0, Q_smem); tma_commit(); tma_wait<0>();
//! a bulk copy from the host's memory
//: task 12a
//: says out of bounds
bulk_load(K_smem, (const void *)0x7ffd00000000, 64, K_full);
//! a bulk copy over the thread's stack, up to the return address
//: task 12a
//: says the other side must be global memory
uint4 a[4] = {}; mbarrier_wait(Q_full, 0); bulk_store(a, Q_smem, 4096); tma_commit(); tma_wait<0>();
//! a bulk copy to the host's memory
//: task 12a
//: says out of bounds
mbarrier_wait(Q_full, 0); bulk_store((void *)0x7ffd00000000, Q_smem, 64); tma_commit(); tma_wait<0>();
//! a bulk reduction over the thread's stack
//: task 12a
//: says the other side must be global memory
float4 a[4] = {}; mbarrier_wait(Q_full, 0); bulk_reduce_add(&a[0].x, (float *)Q_smem, 4096); tma_commit(); tma_wait<0>();
//! a bulk reduction over an input
//: task 13a
//: says write to K\[0\]
mbarrier_wait(KV_full, 0); if (lane == 0) bulk_reduce_add(*(float *const *)((const char *)&maps.K + 8), (const float *)K_smem, 64);
//! a semaphore that is a return address
//: task 12a
//: says not of global memory
int a[4] = {}; for (int i = 0; i < 64; i++) semaphore_raise(a + i);
//! a semaphore in the host's memory
//: task 12a
//: says out of bounds
semaphore_raise((int *)0x7ffd00000000);
//! waits for a value of the host's memory
//: task 12a
//: says out of bounds
semaphore_wait((const int *)0x7ffd00000000, 1);
//! a barrier in the host's memory
//: task 12a
//: says must lie in shared memory
mbarrier_init((uint64_t *)0x7ffd00000000, 1);
//! device code makes a tensor map
//: task 12a
//: says device code calls make_tensor_map
CUtensorMap made; make_tensor_map(&made, BF16, O, 1, 1, 8, 8);
//! calls the driver's function itself
//: task 12a
//: says calls cuTensorMapEncodeTiled, which is no function of kernels
cuTensorMapEncodeTiled(nullptr, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, nullptr, nullptr, nullptr, nullptr, nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
//! a product that writes registers of a function that has returned, where others keep their return addresses by then
//: task b15
//: change
//: says a store past
//: alone machine -> access to address|signal|status
struct later {
    static __device__ void start(const __half *A) { float C[8][4]; wgmma_fence(); wgmma<true>(__half(), C, swizzled_tile(A, 0), swizzled_tile(A, 0), false); wgmma_commit(); }
    static __device__ int end(int n) {
        int (*volatile again)(int) = end; // a call that is not inlined
        volatile int kept = n;
        if (n == 0) wgmma_wait<0>(); else kept = kept + again(n - 1);
        return kept;
    }
};
__device__ void attack(const void *K) {
    void (*volatile start)(const __half *) = later::start; int (*volatile end)(int) = later::end;
    start((const __half *)K); if (end(8) == 12345) wgmma_fence();
}
//! a product that writes beyond the frames of the kernel
//: task b15
//: change
//: says a store past|no local variables
__device__ void attack(const void *K) {
    float C[8][4]; wgmma_fence(); wgmma<true>(__half(), *(float (*)[8][4])((char *)C + 8192), swizzled_tile(K, 0), swizzled_tile(K, 0), false); wgmma_commit(); wgmma_wait<0>();
}
//! a product of matrices beyond shared memory
//: task b15
//: change
//: says in no array
__device__ void attack(const void *K) {
    float C[8][4]; wgmma_fence(); wgmma<true>(__half(), C, swizzled_tile(K, 0), swizzled_tile(K, 0) | 0x3fff, false); wgmma_commit(); wgmma_wait<0>();
}
//! a parameter's constructor has a tensor map made over the harness's memory
//: task b13
//: change
//: says in host code
//: alone machine -> MISSED
struct of_host : problem {
    of_host(const problem &of) : problem(of) { make_tensor_map((CUtensorMap *)((uintptr_t)&of & ~(uintptr_t)127), BF16, nullptr, 1, 1, 8, 8); }
};
//! a parameter's constructor looks up another of the driver's functions, and calls it
//: task b13
//: change
//: says a call through a pointer
struct of_host : problem {
    of_host(const problem &of) : problem(of) {
        void *function = nullptr; cudaDriverEntryPointQueryResult found;
        cudaGetDriverEntryPointByVersion("cuMemFree", &function, 12000, cudaEnableDefault, &found);
        ((void (*)(void))function)();
    }
};
//! a parameter's constructor has a function's address stored over the harness's memory
//: task b13
//: change
//: says in host code
struct of_host : problem {
    of_host(const problem &of) : problem(of) {
        cudaDriverEntryPointQueryResult found;
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&of, 12000, cudaEnableDefault, &found);
    }
};
