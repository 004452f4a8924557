#!/usr/bin/env python3
"""What the binding refuses, and what the autograd function does. Needs PyTorch and a card; pytorch.sh calls it."""

# flake8: noqa: E741
# O is the papers' letter.

import ctypes
import math
import unittest

import torch

import attention_steps
from autograd_function import attention


def tensor(*shape, **options):
    return torch.randn(shape, **{"device": "cuda", "dtype": torch.float32, **options})


class Refusals(unittest.TestCase):
    def setUp(self):
        self.step = attention_steps.load().steps()[0]
        self.Q, self.K, self.V = tensor(1, 2, 8, 16), tensor(1, 2, 12, 16), tensor(1, 2, 12, 16)

    def refused(self, error, message, **changes):
        arguments = {"Q": self.Q, "K": self.K, "V": self.V, **changes}
        with self.assertRaisesRegex(error, message):
            self.step.forward(**arguments)

    def test_dtype(self):
        self.refused(TypeError, "^Q must be torch.float32", Q=self.Q.half())
        self.refused(TypeError, "^V must be torch.float32", V=self.V.double())
        self.refused(TypeError, "^K must be a torch.Tensor", K=None)

    def test_device(self):
        for name in "QKV":
            self.refused(ValueError, f"^{name} must be on a CUDA device", **{name: getattr(self, name).cpu()})

    def test_contiguity(self):
        self.refused(ValueError, "^Q must be contiguous", Q=tensor(1, 8, 2, 16).transpose(1, 2))
        self.refused(ValueError, "^V must be contiguous", V=tensor(1, 2, 12, 32)[..., :16])

    def test_alignment(self):
        self.refused(ValueError, "^K must begin at", K=tensor(2 * 12 * 16 + 1)[1:].view(1, 2, 12, 16))

    def test_shapes(self):
        self.refused(ValueError, r"^Q must be \(batch, heads, N_q, d\)", Q=tensor(8, 16))
        self.refused(ValueError, "^K has shape", K=tensor(1, 2, 12, 8))
        self.refused(ValueError, "^K has shape", K=tensor(2, 2, 12, 16))
        self.refused(ValueError, "^V has shape", V=tensor(1, 2, 11, 16))
        self.refused(ValueError, "^O has shape", O=tensor(1, 2, 8, 15))
        self.refused(ValueError, "^L has shape", L=tensor(1, 2, 9))

    def test_problem(self):
        self.refused(ValueError, "number of queries 0 is not supported", Q=tensor(1, 2, 0, 16))
        wide = [tensor(1, 1, 4, 129) for _ in range(3)]
        self.refused(ValueError, "head dimension 129 is not supported", Q=wide[0], K=wide[1], V=wide[2])
        self.refused(ValueError, "^scale must be finite", scale=math.nan)
        self.refused(TypeError, "^scale must be a number", scale="1")
        self.refused(TypeError, "^causal must be", causal=1)

    def test_workspace(self):
        needed = self.step.workspace_bytes(self.Q, self.K)
        self.assertGreater(needed, 0)  # the first step keeps S
        small = torch.empty(needed - 1, dtype=torch.uint8, device="cuda")
        self.refused(ValueError, "^workspace has", workspace=small)
        self.refused(TypeError, "^workspace must be", workspace=small.float())

    def test_no_such_step(self):
        with self.assertRaisesRegex(ValueError, 'no step "99"'):
            attention_steps.load().step("99")

    def test_null_pointer(self):
        step = attention_steps.load().steps()[0]
        call = step.call(self.Q, self.K, False, None)
        functions = step.library.functions
        self.assertEqual(functions.attention_error_name(functions.attention_run(ctypes.byref(call))), b"cudaErrorInvalidValue")
        call.bytes -= 8
        self.assertIn(b"layout", functions.attention_refuses(ctypes.byref(call)))


class Variants(unittest.TestCase):
    """What a step that takes variants refuses: numbers that make no sense, and tables that lead outside of the tensors."""

    def setUp(self):
        able = [step for step in attention_steps.load().steps() if {"window", "starts"} <= set(step.variants)]
        paged = [step for step in attention_steps.load().steps() if "pages" in step.variants]
        if not able or not paged:
            self.skipTest("no step takes variants")
        self.step, self.paged = able[-1], paged[-1]
        self.Q, self.K = tensor(1, 2, 10, 16, dtype=torch.bfloat16), tensor(1, 2, 10, 16, dtype=torch.bfloat16)

    def refused(self, message, **variants):
        with self.assertRaisesRegex(ValueError, message):
            self.step.forward(self.Q, self.K, self.K, **variants)

    def test_numbers(self):
        self.refused("window -1,0 is not supported", window=(-1, 0))
        self.refused("dropout 1 is not supported", dropout=1.0)
        self.refused("softcap -2 is not supported", softcap=-2.0)
        self.refused("^rotary must be", rotary="both")
        self.refused("^lengths need pages", lengths=[1])

    def test_starts(self):
        ints = lambda *numbers: torch.tensor(numbers, dtype=torch.int32, device="cuda")
        for wrong in (ints(0, 5), ints(1, 10), ints(0, 6, 5, 10), ints(0, 11), ints(10)):
            self.refused("^starts must begin with 0", starts=wrong)
        with self.assertRaisesRegex(TypeError, "^starts must be torch.int32"):
            self.step.forward(self.Q, self.K, self.K, starts=ints(0, 10).long())
        self.step.forward(self.Q, self.K, self.K, starts=ints(0, 4, 4, 10))

    def test_pages(self):
        ints = lambda *numbers: torch.tensor(numbers, dtype=torch.int32, device="cuda")
        Q, pool = self.Q[:, :, :4].contiguous(), tensor(3, 2, 16, 16, dtype=torch.bfloat16)
        good = dict(lengths=ints(20), pages=ints(2, 0).view(1, 2))
        self.paged.forward(Q, pool, pool, **good)
        self.paged.forward(Q, pool, pool, lengths=ints(16), pages=ints(2, -1).view(1, 2))
        for wrong, message in ((dict(lengths=ints(33)), "^lengths must be"), (dict(lengths=ints(-1)), "^lengths must be"),
                               (dict(pages=ints(2, 3).view(1, 2)), "^pages must be"), (dict(pages=ints(2, -1).view(1, 2)), "^pages must be")):
            with self.assertRaisesRegex(ValueError, message):
                self.paged.forward(Q, pool, pool, **(good | wrong))

    def test_autograd(self):
        """The gradients of a windowed attention with dropout are those of the step's own backward pass."""
        variants = dict(window=(3, 0), dropout=0.25, dropout_seed=11, softcap=5.0)
        steps = [s for s in attention_steps.load().steps() if s.has_forward and s.has_backward and {"window", "dropout"} <= set(s.variants)]
        if not steps:
            self.skipTest("no step takes them in both passes")
        Q, K, V = (x.clone().requires_grad_() for x in (self.Q, self.K, self.K))
        O = attention(Q, K, V, step=steps[-1], backward=steps[-1], causal=True, **variants)
        dO = torch.ones_like(O)
        dQ, dK, dV = torch.autograd.grad(O, (Q, K, V), dO)
        own_O, L = steps[-1].forward(self.Q, self.K, self.K, causal=True, **variants)
        own = steps[-1].backward(self.Q, self.K, self.K, own_O, L, dO, causal=True, **variants)
        for got, expected in zip((dQ, dK, dV), own, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-3)  # dQ is summed in any order


class Pages(unittest.TestCase):
    def setUp(self):
        self.step = next((step for step in attention_steps.load().steps() if step.name == "14_decode"), None)
        if self.step is None:
            self.skipTest("the library has no chapter 14")
        self.Q, self.K, self.V = (tensor(*shape, dtype=torch.bfloat16) for shape in ((2, 6, 3, 64), (9, 2, 16, 64), (9, 2, 16, 64)))
        self.pages = torch.tensor([[3, 0, 8, 5], [7, 1, 2, 99]], dtype=torch.int32, device="cuda")
        self.lengths = torch.tensor([50, 48], dtype=torch.int32, device="cuda")

    def test_forward(self):
        """The same keys and values one after the other, per sequence, whose lengths differ."""
        O, L = self.step.forward(self.Q, self.K, self.V, causal=True, pages=self.pages, lengths=self.lengths)
        for b, length in enumerate(self.lengths.tolist()):
            pages = self.pages[b, :(length + 15) // 16].long()
            K, V = (x[pages].transpose(0, 1).reshape(1, 2, -1, 64)[:, :, :length].contiguous() for x in (self.K, self.V))
            O_ref, L_ref = self.step.forward(self.Q[b:b + 1], K, V, causal=True)
            torch.testing.assert_close(O[b:b + 1], O_ref, rtol=2e-2, atol=2e-2)
            torch.testing.assert_close(L[b:b + 1], L_ref, rtol=1e-5, atol=1e-5)

    def test_step_without_pages(self):
        with self.assertRaisesRegex(ValueError, "pages are not supported"):
            attention_steps.load().step("14c_group").forward(self.Q, self.K, self.V, pages=self.pages, lengths=self.lengths)


class Autograd(unittest.TestCase):
    def setUp(self):
        self.Q, self.K, self.V = tensor(2, 3, 20, 32), tensor(2, 3, 30, 32), tensor(2, 3, 30, 32)

    def steps(self):
        return [step for step in attention_steps.load().steps() if step.has_forward and torch.float32 in step.dtypes]

    def test_forward_is_the_steps_own(self):
        for step in self.steps():
            O, _ = step.forward(self.Q, self.K, self.V, causal=True)
            torch.testing.assert_close(attention(self.Q, self.K, self.V, step, causal=True), O, rtol=0, atol=0)

    def test_takes_what_a_model_hands_over(self):
        """Heads split off a projection are not contiguous."""
        Q = tensor(2, 20, 3, 32).transpose(1, 2)
        for step in self.steps():
            O, _ = step.forward(Q.contiguous(), self.K, self.V)
            torch.testing.assert_close(attention(Q, self.K, self.V, step), O, rtol=0, atol=0)

    def test_on_a_side_stream(self):
        stream = torch.cuda.Stream()
        for step in self.steps():
            expected, _ = step.forward(self.Q, self.K, self.V)
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                O, _ = step.forward(self.Q, self.K, self.V)
            stream.synchronize()
            torch.testing.assert_close(O, expected, rtol=0, atol=0)

    def test_backward_that_is_missing(self):
        for step in self.steps():
            if step.has_backward:
                continue
            with self.assertRaisesRegex(NotImplementedError, f"{step.name} has no backward pass"):
                step.backward(*[None] * 6)
            with self.assertRaisesRegex(NotImplementedError, f"{step.name} has no backward pass"):
                attention(self.Q, self.K, self.V, step, backward=step)

    def backward_steps(self):
        return [step for step in attention_steps.load().steps() if step.has_backward and torch.float32 in step.dtypes]

    def test_backward_is_the_steps_own(self):
        dO = tensor(2, 3, 20, 32)
        for step in self.backward_steps():
            if not step.has_deterministic_backward:
                continue
            Q, K, V = (x.clone().requires_grad_() for x in (self.Q, self.K, self.V))
            O = attention(Q, K, V, backward=step, causal=True, deterministic=True)
            gradients = torch.autograd.grad(O, (Q, K, V), dO)
            forward = self.steps()[-1]
            O, L = forward.forward(self.Q, self.K, self.V, causal=True)
            own = step.backward(self.Q, self.K, self.V, O, L, dO, causal=True, deterministic=True)
            for got, expected in zip(gradients, own, strict=True):
                torch.testing.assert_close(got, expected, rtol=0, atol=0)

    def test_gradient_of_a_sum(self):
        """dO is a single number, expanded; the sum of dV over keys is the number of query rows."""
        for step in self.backward_steps():
            V = self.V.clone().requires_grad_()
            attention(self.Q, self.K, V, backward=step).sum().backward()
            rows = torch.full((2, 3, 32), 20.0, device="cuda")
            torch.testing.assert_close(V.grad.sum(dim=2), rows, rtol=1e-5, atol=0)

    def test_refusals_of_the_backward_pass(self):
        step = self.backward_steps()[0]
        O, L = self.steps()[-1].forward(self.Q, self.K, self.V)
        with self.assertRaisesRegex(ValueError, "^dO has shape"):
            step.backward(self.Q, self.K, self.V, O, L, tensor(2, 3, 20, 31))
        with self.assertRaisesRegex(TypeError, "^L must be torch.float32"):
            step.backward(self.Q, self.K, self.V, O, L.double(), O)
        with self.assertRaisesRegex(ValueError, "^dK has shape"):
            step.backward(self.Q, self.K, self.V, O, L, O, gradients=(self.Q, self.Q, self.V))
        for other in self.backward_steps():
            if not other.has_deterministic_backward:
                with self.assertRaisesRegex(NotImplementedError, "no deterministic backward pass"):
                    other.backward(self.Q, self.K, self.V, O, L, O, deterministic=True)


if __name__ == "__main__":
    unittest.main()
