"""Steps of the ladder as a differentiable function, to drop into a model.

    from autograd_function import attention

    O = attention(Q, K, V, step="06", causal=True)                # backward by the last step that has one
    O = attention(Q, K, V, step="04", backward="08", causal=True)
    O = attention(Q, K, V, step="15", causal=True, window=(1024, 0), dropout=0.1, dropout_seed=7)  # attention_steps.py

Q is (batch, heads, N_q, d), K and V are (batch, heads, N_kv, d), float32 on one CUDA device; as with
torch.nn.functional.scaled_dot_product_attention, except that a causal mask is aligned to the bottom right corner when
N_q and N_kv differ.
"""

# flake8: noqa: E741
# O is the papers' letter.

import torch
from torch.autograd.function import once_differentiable

import attention_steps


class StepAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, K, V, step, backward, causal, scale, deterministic, variants):
        O, L = step.forward(Q, K, V, causal=causal, scale=scale, **variants)
        ctx.save_for_backward(Q, K, V, O, L)
        ctx.mark_non_differentiable(L)
        ctx.step, ctx.causal, ctx.scale, ctx.deterministic, ctx.variants = backward, causal, scale, deterministic, variants
        return O, L

    @staticmethod
    @once_differentiable
    def backward(ctx, dO, _):
        # What follows the attention decides how dO lies in memory: sum() hands over a single number, expanded.
        gradients = ctx.step.backward(
            *ctx.saved_tensors,
            as_steps_take_it(dO),
            causal=ctx.causal,
            scale=ctx.scale,
            deterministic=ctx.deterministic,
            **ctx.variants,
        )
        return *gradients, None, None, None, None, None, None


def as_steps_take_it(tensor):
    """Contiguous, and at the start of an allocation when it begins at an odd place."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % attention_steps.ALIGNMENT == 0 else tensor.clone()


def choose(library, step, ability, Q, K, causal, scale, variants):
    """The step of that name, number or Step; the last one that does not refuse the problem when it is None."""
    if step is None:
        able = [other for other in library.steps() if getattr(other, ability) and Q.dtype in other.dtypes]
        able = [other for other in able if other.refuses(Q, K, causal, scale, **variants) is None]
        if not able:
            raise ValueError("no step of the library takes this problem")
        return able[-1]
    return step if isinstance(step, attention_steps.Step) else library.step(step)


def attention(Q, K, V, step=None, backward=None, causal=False, scale=None, library=None, deterministic=False, **variants):
    """softmax(scale Q K^T) V by one step, its gradients by another. Returns O."""
    if library is None:
        known = next((s for s in (step, backward) if isinstance(s, attention_steps.Step)), None)
        library = known.library if known else attention_steps.load()
    attention_steps.check_types(Q=Q, K=K, V=V)
    problem = Q, K, causal, scale, variants
    step, backward = choose(library, step, "has_forward", *problem), choose(library, backward, "has_backward", *problem)
    if not backward.has_backward:
        raise NotImplementedError(f"{backward.name} has no backward pass")
    tensors = [as_steps_take_it(tensor) for tensor in (Q, K, V)]
    O, _ = StepAttention.apply(*tensors, step, backward, causal, scale, deterministic, variants)
    return O
