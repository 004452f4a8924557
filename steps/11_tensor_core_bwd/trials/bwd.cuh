// The host part of a form. FORM is its tiling, which names the kernel.
#include "normal.cuh"
#include "transposed.cuh"

template <class T, class C> constexpr auto kernel_of() {
    if constexpr (requires { C::STAGES; })
        return backward_normal<T, C>;
    else
        return backward_transposed<T, C>;
}

template <class T, class C>
static cudaError_t run_form(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    int heads = p->batch * p->heads, padded = padded_rows(p);
    float *dQ_sum = (float *)workspace, *L2 = dQ_sum + (size_t)heads * padded * C::D, *D = L2 + (size_t)heads * padded;
    const T *Q = (const T *)t->Q, *K = (const T *)t->K, *V = (const T *)t->V, *dO = (const T *)t->dO;
    dim3 threads(C::D / 8, 2048 / C::D), blocks(padded / threads.y, heads), key_blocks(ceil_div(p->N_kv, C::Bc), heads);
    cudaError_t error =
        launch(preprocess<T, C::D>, blocks, threads, 0, stream, (const T *)t->O, dO, t->L, L2, D, dQ_sum, padded, *p);
    if (error == cudaSuccess)
        error = launch(kernel_of<T, C>(), key_blocks, C::THREADS, C::BYTES, stream, Q, K, V, dO, L2, D, dQ_sum,
                       (T *)t->dK, (T *)t->dV, padded, *p);
    blocks.x /= 2; // one thread: two rows
    if (error == cudaSuccess)
        error = launch(postprocess<T, C::D>, blocks, threads, 0, stream, (const float *)dQ_sum, (T *)t->dQ, padded, *p);
    return error;
}

static cudaError_t backward_of_form(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return dispatch(p, [&]<int D, class T>() {
        using form = FORM;
        if constexpr (D == form::D)
            return run_form<T, form>(p, t, workspace, stream);
        else
            return cudaErrorInvalidValue; // the other width
    });
}

extern "C" const step step_11_tensor_core_bwd = {
    .name = "11_tensor_core_bwd",
    .idea = "another form",
    .backward = backward_of_form,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 80,
};
