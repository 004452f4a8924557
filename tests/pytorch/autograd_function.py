"""A step of the ladder as a differentiable function, to drop into a model.

    from autograd_function import attention

    O = attention(Q, K, V, step="05_fa2_fwd", causal=True)

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
    def forward(ctx, Q, K, V, step, causal, scale):
        O, L = step.forward(Q, K, V, causal=causal, scale=scale)
        ctx.save_for_backward(Q, K, V, O, L)
        ctx.mark_non_differentiable(L)
        ctx.step, ctx.causal, ctx.scale = step, causal, scale
        return O, L

    @staticmethod
    @once_differentiable
    def backward(ctx, dO, _):
        if not ctx.step.has_backward:
            raise NotImplementedError(backward_missing(ctx.step))
        # What follows the attention decides how dO lies in memory: sum() hands over a single number, expanded.
        gradients = ctx.step.backward(*ctx.saved_tensors, as_steps_take_it(dO), causal=ctx.causal, scale=ctx.scale)
        return *gradients, None, None, None


def backward_missing(step):
    others = [other.name for other in step.library.steps() if other.has_backward]
    advice = f"steps that have one: {', '.join(others)}" if others else "no step that is built has one yet"
    return f"{step.name} has no backward pass; {advice}. For inference, call it under torch.no_grad()"


def as_steps_take_it(tensor):
    """Contiguous, and at the start of an allocation when it begins at an odd place."""
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % attention_steps.ALIGNMENT == 0 else tensor.clone()


def attention(Q, K, V, step, causal=False, scale=None, library=None):
    """softmax(scale Q K^T) V by a step, given as its name, its number or a Step. Returns O."""
    if not isinstance(step, attention_steps.Step):
        step = (library or attention_steps.load()).step(step)
    attention_steps.check_types(Q=Q, K=K, V=V)
    tensors = [as_steps_take_it(tensor) for tensor in (Q, K, V)]
    O, _ = StepAttention.apply(*tensors, step, causal, scale)
    return O
