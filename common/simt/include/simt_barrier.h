/* cuda::barrier, cuda::pipeline and cuda::memcpy_async, as libcu++ declares them, for the threads of one block. The barriers are
 * mbarriers in shared memory (simt_abi.h); a copy is cp.async where its addresses and size allow that, else a plain copy. */
#pragma once

#include "cuda_runtime.h"

namespace cuda {

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };

/* A number of bytes that is a multiple of ALIGNMENT, as both addresses are. */
template <size_t _ALIGNMENT> struct aligned_size_t {
    static constexpr size_t align = _ALIGNMENT;
    size_t value;
    constexpr explicit aligned_size_t(size_t size) : value(size) {}
    constexpr operator size_t() const { return value; }
};

/* ---- barriers ------------------------------------------------------------------------------------------------------- */
template <thread_scope _SCOPE, typename Completion = void> class barrier {
    static_assert(_SCOPE == thread_scope_block, "the simulated device has cuda::barrier for the threads of one block only");
    static_assert(std::is_void_v<Completion>, "a barrier with a completion function is not supported");
    uint64_t word;

  public:
    typedef unsigned arrival_token;
    barrier() = default;
    barrier(ptrdiff_t expected) { simt_mbarrier_init(this, (unsigned)expected); }
    barrier(const barrier &) = delete;
    barrier &operator=(const barrier &) = delete;
    friend void init(barrier *self, ptrdiff_t expected) { simt_mbarrier_init(self, (unsigned)expected); }
    [[nodiscard]] arrival_token arrive(ptrdiff_t count = 1, SIMT_HERE) {
        return simt_mbarrier_arrive(this, (unsigned)count, 0, "barrier::arrive()", file, line);
    }
    void wait(arrival_token phase, SIMT_HERE) const { simt_mbarrier_wait((void *)this, phase, file, line); }
    bool try_wait(arrival_token phase) const { return simt_mbarrier_test((void *)this, phase) != 0; }
    /* Until the phase whose number is odd (parity true) or even is over. */
    void wait_parity(bool parity, SIMT_HERE) const {
        simt_mbarrier_wait((void *)this, simt_mbarrier_phase((void *)this, parity), file, line);
    }
    bool try_wait_parity(bool parity) const {
        return simt_mbarrier_test((void *)this, simt_mbarrier_phase((void *)this, parity)) != 0;
    }
    void arrive_and_wait(SIMT_HERE) {
        simt_mbarrier_wait(this, simt_mbarrier_arrive(this, 1, 0, "barrier::arrive_and_wait()", file, line), file, line);
    }
    void arrive_and_drop(SIMT_HERE) { simt_mbarrier_arrive(this, 1, 1, "barrier::arrive_and_drop()", file, line); }
    static constexpr ptrdiff_t max() { return (1 << 20) - 1; }
};

/* ---- pipelines ------------------------------------------------------------------------------------------------------ */
enum class pipeline_role { producer, consumer };

/* Stage i % STAGES is full when its producers have committed, and free when its consumers have released it. */
template <thread_scope _SCOPE, uint8_t _STAGES> struct pipeline_shared_state {
    static_assert(_SCOPE == thread_scope_block, "the simulated device has cuda::pipeline for the threads of one block only");
    uint64_t full[_STAGES], free[_STAGES];
    unsigned producers;
};

template <thread_scope _SCOPE> class pipeline;

/* The thread's own copies: stages are groups of cp.async. */
template <> class pipeline<thread_scope_thread> {
    unsigned committed = 0, consumed = 0;

  public:
    void producer_acquire() {}
    void producer_commit() { simt_async_commit(), committed++; }
    void consumer_wait(SIMT_HERE) { simt_async_wait(committed - consumed - 1, file, line); }
    void consumer_release() { consumed++; }
    bool quit() { return true; }
};

template <> class pipeline<thread_scope_block> {
    uint64_t *full, *free;
    unsigned stages, head = 0, tail = 0;

  public:
    pipeline(uint64_t *full_, uint64_t *free_, unsigned stages_) : full(full_), free(free_), stages(stages_) {}
    void producer_acquire(SIMT_HERE) {
        if (head >= stages) simt_mbarrier_wait(&free[head % stages], head / stages - 1, file, line);
    }
    void producer_commit(SIMT_HERE) {
        simt_async_bind(&full[head % stages]);
        simt_mbarrier_arrive(&full[head++ % stages], 1, 0, "pipeline::producer_commit()", file, line);
    }
    void consumer_wait(SIMT_HERE) { simt_mbarrier_wait(&full[tail % stages], tail / stages, file, line); }
    void consumer_release(SIMT_HERE) {
        simt_mbarrier_arrive(&free[tail++ % stages], 1, 0, "pipeline::consumer_release()", file, line);
    }
    bool quit() { return true; }
};

static inline pipeline<thread_scope_thread> make_pipeline() { return pipeline<thread_scope_thread>(); }

template <uint8_t _PRIOR> static inline void pipeline_consumer_wait_prior(pipeline<thread_scope_thread> &, SIMT_HERE) {
    simt_async_wait(_PRIOR, file, line);
}

/* All threads of the group call it: the first `producers` of them produce, the rest consume. */
template <typename Group, thread_scope _SCOPE, uint8_t _STAGES>
static inline pipeline<_SCOPE> make_pipeline(const Group &group, pipeline_shared_state<_SCOPE, _STAGES> *state,
                                             size_t producers, size_t consumers, SIMT_HERE) {
    if (group.thread_rank() == 0)
        for (unsigned i = 0; i < _STAGES; i++) {
            simt_mbarrier_init(&state->full[i], (unsigned)producers);
            simt_mbarrier_init(&state->free[i], (unsigned)consumers);
        }
    group.sync(file, line);
    return pipeline<_SCOPE>(state->full, state->free, _STAGES);
}
template <typename Group, thread_scope _SCOPE, uint8_t _STAGES>
static inline pipeline<_SCOPE> make_pipeline(const Group &group, pipeline_shared_state<_SCOPE, _STAGES> *state, SIMT_HERE) {
    return make_pipeline(group, state, group.size(), group.size(), file, line);
}
template <typename Group, thread_scope _SCOPE, uint8_t _STAGES>
static inline pipeline<_SCOPE> make_pipeline(const Group &group, pipeline_shared_state<_SCOPE, _STAGES> *state,
                                             size_t producers, SIMT_HERE) {
    return make_pipeline(group, state, producers, group.size() - producers, file, line);
}
template <typename Group, thread_scope _SCOPE, uint8_t _STAGES>
static inline pipeline<_SCOPE> make_pipeline(const Group &group, pipeline_shared_state<_SCOPE, _STAGES> *state,
                                             pipeline_role role, SIMT_HERE) {
    if (group.thread_rank() == 0) state->producers = 0;
    group.sync(file, line);
    if (role == pipeline_role::producer) atomicAdd(&state->producers, 1u);
    group.sync(file, line);
    return make_pipeline(group, state, state->producers, group.size() - state->producers, file, line);
}

/* ---- copies --------------------------------------------------------------------------------------------------------- */

template <thread_scope _SCOPE> static inline void complete_at(barrier<_SCOPE> &at) { simt_async_bind(&at); }
template <thread_scope _SCOPE> static inline void complete_at(pipeline<_SCOPE> &) {}

/* One thread copies all, or a group shares it. The copy is complete when the barrier's phase or the pipeline's stage is. */
template <typename At> static inline void memcpy_async(void *to, const void *from, size_t bytes, At &at) {
    simt::copy_share(to, from, bytes, 0, 1);
    complete_at(at);
}
template <typename Group, typename At>
static inline void memcpy_async(const Group &group, void *to, const void *from, size_t bytes, At &at) {
    simt::copy_share(to, from, bytes, group.thread_rank(), group.size());
    complete_at(at);
}

} // namespace cuda
