"""The steps of the ladder as functions on PyTorch tensors: libattention_steps.so (common/harness/interface.h) through ctypes.

    from attention_steps import load

    step = load().step("05_fa2_fwd")           # or "05"
    O, L = step.forward(Q, K, V, causal=True)  # Q (batch, heads, N_q, d), K and V (batch, heads_kv, N_kv, d)

Variants are named arguments, as far as the step takes them (common/device/attention.h has the conventions):

    O, L = step.forward(Q, K, V, window=(1024, 0), softcap=30.0, alibi=True, dropout=0.1, dropout_seed=7, rotary="halved")
    O, L = step.forward(Q, K, V, starts=starts)   # packed: batch 1, starts int32 (sequences + 1) on the device
    O, L = step.forward(Q, K, V, lengths=lengths, pages=pages)  # K and V (pages, heads_kv, page_size, d)

heads_kv is heads, or fewer where the step takes grouped heads: then query head h uses head h / (heads / heads_kv) of K and V.
Tensors are contiguous, on one CUDA device and of a type that the step takes: float32, or for steps on tensor cores
float16 and bfloat16 (L is always float32). What is not is refused with a TypeError or a ValueError that
names the argument, before anything is launched: the library gets bare pointers and could not tell.
"""

# flake8: noqa: E741
# O is the papers' letter.

import ctypes
import math
import os
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_LIBRARY = ROOT / "build" / "cuda" / "lib" / "libattention_steps.so"
ALIGNMENT = 16  # bytes: the widest load of a thread

INT, TEXT, POINTER = ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
C_TYPES = {"size_t": ctypes.c_size_t, "int": INT, "float": ctypes.c_float, "pointer": POINTER}
DTYPES = (torch.float32, torch.float16, torch.bfloat16)  # by the library's numbers
FORWARD, BACKWARD, BACKWARD_DETERMINISTIC = range(3)
VARIANTS = ("window", "softcap", "alibi", "dropout", "rotary", "starts", "pages", "grouped_heads")  # by the library's bits


class Field(ctypes.Structure):
    """struct attention_field."""

    _fields_ = [("name", TEXT), ("type", TEXT), ("offset", ctypes.c_size_t)]


# What common/harness/interface.h declares: result and arguments. A call is a struct that the library itself describes.
FUNCTIONS = {
    "attention_fields": (ctypes.POINTER(Field), []),
    "attention_call_bytes": (ctypes.c_size_t, []),
    "attention_step_count": (INT, []),
    "attention_step_name": (TEXT, [INT]),
    "attention_step_idea": (TEXT, [INT]),
    "attention_step_find": (INT, [TEXT]),
    "attention_step_has": (INT, [INT, INT]),
    "attention_step_dtypes": (ctypes.c_uint, [INT]),
    "attention_step_variants": (ctypes.c_uint, [INT]),
    "attention_refuses": (TEXT, [POINTER]),
    "attention_workspace_bytes": (ctypes.c_size_t, [POINTER]),
    "attention_run": (INT, [POINTER]),
    "attention_error_name": (TEXT, [INT]),
    "attention_error_text": (TEXT, [INT]),
    "attention_cuda_version": (INT, []),
    "attention_device_count": (INT, [ctypes.POINTER(INT)]),
}


def call_struct(functions):
    """struct attention_call as a class, from the names, types and offsets that the library tells."""
    fields, described = [], functions.attention_fields()
    for index in range(1000):
        if described[index].name is None:
            break
        fields.append((described[index].name.decode(), C_TYPES[described[index].type.decode()]))
    call = type("Call", (ctypes.Structure,), {"_fields_": fields})
    offsets = [getattr(call, name).offset for name, _ in fields]
    if offsets != [described[i].offset for i in range(len(fields))] or ctypes.sizeof(call) != functions.attention_call_bytes():
        raise LibraryMissing("the library lays out struct attention_call in a way that ctypes does not")
    return call


class LibraryMissing(RuntimeError):
    """libattention_steps.so is not there or cannot be loaded; the message says what to do."""


class CudaError(RuntimeError):
    """The library returned a CUDA error."""


def load(path=None):
    """The library at `path`; else the one that ATTENTION_STEPS_LIBRARY names, else the cuda preset's."""
    return Library(path or os.environ.get("ATTENTION_STEPS_LIBRARY") or DEFAULT_LIBRARY)


class Library:
    def __init__(self, path):
        if not Path(path).exists():
            raise LibraryMissing(f"{path} is not built: cmake --preset cuda && cmake --build --preset cuda --target attention_steps")
        try:
            self.functions = ctypes.CDLL(str(path))
        except OSError as error:
            raise LibraryMissing(f"{path} cannot be loaded: {error}") from error
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self.functions, name)
            function.restype, function.argtypes = result, arguments
        self.Call = call_struct(self.functions)

    def steps(self):
        return [Step(self, index) for index in range(self.functions.attention_step_count())]

    def step(self, name):
        """The step of that name ("05_fa2_fwd") or number ("05")."""
        index = self.functions.attention_step_find(str(name).encode())
        if index < 0:
            there = ", ".join(step.name for step in self.steps())
            raise ValueError(f'there is no step "{name}"; there are: {there}')
        return Step(self, index)

    def cuda_version(self):
        """The CUDA runtime's, as "13.0"."""
        version = self.functions.attention_cuda_version()
        return f"{version // 1000}.{version % 1000 // 10}"

    def check(self, error, doing):
        if error:
            name, text = self.functions.attention_error_name(error), self.functions.attention_error_text(error)
            raise CudaError(f"{doing}: {name.decode()} ({text.decode()})")


class Step:
    def __init__(self, library, index):
        functions = library.functions
        self.library = library
        self.index = index
        self.name = functions.attention_step_name(index).decode()
        self.idea = functions.attention_step_idea(index).decode()
        has = functions.attention_step_has
        self.has_forward, self.has_backward = bool(has(index, FORWARD)), bool(has(index, BACKWARD))
        self.has_deterministic_backward = bool(has(index, BACKWARD_DETERMINISTIC))
        types = functions.attention_step_dtypes(index)
        self.dtypes = tuple(dtype for number, dtype in enumerate(DTYPES) if types >> number & 1)
        variants = functions.attention_step_variants(index)
        self.variants = tuple(name for number, name in enumerate(VARIANTS) if variants >> number & 1)

    def call(self, Q, K, causal, scale, variants=None, pass_=None, pointers=None):
        """One call of the library: the problem of Q and K, and the pointers by their names."""
        batch, heads, N_q, d = Q.shape
        if pass_ is None:
            pass_ = FORWARD if self.has_forward else BACKWARD
        members = {"N_kv": K.shape[2]} | variant_members(Q, K, **(variants or {}))
        return self.library.Call(
            bytes=ctypes.sizeof(self.library.Call), step=self.index, dtype=DTYPES.index(Q.dtype), batch=batch, heads=heads,
            N_q=N_q, d=d, heads_kv=K.shape[1], causal=int(causal), scale=chosen_scale(scale, d), **members, **{"pass": pass_}, **(pointers or {}),
        )

    def refuses(self, Q, K, causal=False, scale=None, **variants):
        """Why the step cannot do a problem of these shapes; None when it can."""
        reason = self.library.functions.attention_refuses(ctypes.byref(self.call(Q, K, causal, scale, variants)))
        return reason.decode() if reason is not None else None

    def workspace_bytes(self, Q, K, causal=False, scale=None, **variants):
        return self.library.functions.attention_workspace_bytes(ctypes.byref(self.call(Q, K, causal, scale, variants)))

    def forward(self, Q, K, V, causal=False, scale=None, O=None, L=None, workspace=None, **variants):
        """O (batch, heads, N_q, d) and L (batch, heads, N_q), enqueued on PyTorch's current stream.

        scale: 1 / sqrt(d) when it is None. O, L and workspace are made when they are None; a workspace is a uint8
        tensor of at least workspace_bytes().
        """
        if not self.has_forward:
            raise NotImplementedError(f"{self.name} has no forward pass")
        check_inputs(Q, K, V, self.dtypes, "pages" in variants)
        self.check_problem(Q, K, causal, scale, variants)
        O = torch.empty_like(Q) if O is None else checked("O", O, Q.shape, Q)
        if L is None:
            L = torch.empty(Q.shape[:3], dtype=torch.float32, device=Q.device)
        checked("L", L, Q.shape[:3], Q, torch.float32)
        self.launch(FORWARD, dict(Q=Q, K=K, V=V, O=O, L=L), causal, scale, workspace, variants)
        return O, L

    def backward(
        self, Q, K, V, O, L, dO, causal=False, scale=None, gradients=None, workspace=None, deterministic=False,
        **variants,
    ):
        """dQ, dK and dV, of the shapes of Q, K and V. O and L are what a forward() returned, dO the gradient of O.

        gradients: the three tensors to write to; made when it is None. deterministic: the same bits in every call.
        """
        if not self.has_backward:
            raise NotImplementedError(f"{self.name} has no backward pass")
        if deterministic and not self.has_deterministic_backward:
            raise NotImplementedError(f"{self.name} has no deterministic backward pass")
        check_inputs(Q, K, V, self.dtypes)
        checked("O", O, Q.shape, Q)
        checked("L", L, Q.shape[:3], Q, torch.float32)
        checked("dO", dO, Q.shape, Q)
        self.check_problem(Q, K, causal, scale, variants)
        if gradients is None:
            gradients = torch.empty_like(Q), torch.empty_like(K), torch.empty_like(V)
        for name, tensor, like in zip(("dQ", "dK", "dV"), gradients, (Q, K, V), strict=True):
            checked(name, tensor, like.shape, Q)
        tensors = dict(Q=Q, K=K, V=V, O=O, L=L, dO=dO, **dict(zip(("dQ", "dK", "dV"), gradients)))
        self.launch(BACKWARD_DETERMINISTIC if deterministic else BACKWARD, tensors, causal, scale, workspace, variants)
        return tuple(gradients)

    def check_problem(self, Q, K, causal, scale, variants):
        if not isinstance(causal, bool):
            raise TypeError(f"causal must be True or False, not {causal!r}")
        reason = self.refuses(Q, K, causal, scale, **variants)
        if reason is not None:
            raise ValueError(f"{self.name}: {reason}")

    def launch(self, pass_, tensors, causal, scale, workspace, variants):
        self.prepared(pass_, tensors, causal, scale, workspace, variants)()

    def prepared(self, pass_, tensors, causal=False, scale=None, workspace=None, variants=None):
        """A function that enqueues the pass on these tensors, by their names, and looks at nothing any more: for timing."""
        Q, K, variants = tensors["Q"], tensors["K"], variants or {}
        bytes_needed = self.workspace_bytes(Q, K, causal, scale, **variants)
        if workspace is None:
            workspace = torch.empty(bytes_needed, dtype=torch.uint8, device=Q.device)
        else:
            check_workspace(workspace, bytes_needed, Q.device)
        pointers = {name: tensor.data_ptr() for name, tensor in tensors.items()} | {"workspace": workspace.data_ptr()}
        call = self.call(Q, K, causal, scale, variants, pass_, pointers)

        def run(kept=(tensors, workspace, variants)):
            # The library launches on the thread's current device. Memory that is dropped here is handed out again only to
            # work that follows on the same stream.
            with torch.cuda.device(Q.device):
                call.stream = torch.cuda.current_stream(Q.device).cuda_stream
                error = self.library.functions.attention_run(ctypes.byref(call))
            self.library.check(error, f"{self.name} {('forward', 'backward', 'deterministic backward')[pass_]}")

        return run


# ---- arguments -------------------------------------------------------------------------------------------------------


def chosen_scale(scale, d):
    if scale is None:
        return 1.0 / math.sqrt(d)
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        raise TypeError(f"scale must be a number or None, not {scale!r}")
    if not math.isfinite(scale):
        raise ValueError(f"scale must be finite, not {scale}")
    return float(scale)


def variant_members(Q, K, window=None, softcap=0.0, alibi=False, dropout=0.0, dropout_seed=0, rotary=None, starts=None, lengths=None, pages=None):
    """The members of a call. What stands in tables is looked at: a wrong number would lead the kernel outside of its tensors."""
    batch, _, N_q, _ = Q.shape
    N_kv, members = K.shape[2], {}
    if pages is not None:
        page_count, _, page_size, _ = K.shape
        check_table("pages", pages, Q, (batch, pages.shape[-1]))
        check_table("lengths", lengths, Q, (batch,))
        N_kv = pages.shape[1] * page_size
        if not bool(((lengths >= 0) & (lengths <= N_kv)).all()):
            raise ValueError(f"lengths must be from 0 to {N_kv}, not {lengths.tolist()}")
        used = torch.arange(pages.shape[1], device=pages.device) * page_size < lengths[:, None]
        if not bool(((pages >= 0) & (pages < page_count) | ~used).all()):
            raise ValueError(f"pages must be from 0 to {page_count - 1} where the sequence has keys")
        members |= dict(N_kv=N_kv, lengths=lengths.data_ptr(), pages=pages.data_ptr(), page_size=page_size, page_count=page_count)
    elif lengths is not None:
        raise ValueError("lengths need pages")
    if starts is not None:
        check_table("starts", starts, Q, (starts.shape[0],))
        numbers = starts.tolist()
        rows = [end - start for start, end in zip(numbers, numbers[1:])]
        if not rows or numbers[0] != 0 or numbers[-1] != N_q or min(rows) < 0:
            raise ValueError(f"starts must begin with 0, end with {N_q} and never fall, not {numbers}")
        members |= dict(starts=starts.data_ptr(), sequences=len(rows), longest=max(rows))
    if window is not None:
        left, right = (N_q + N_kv if bound is None else min(bound, N_q + N_kv) for bound in window)
        members |= dict(windowed=1, left=left, right=right)
    if rotary not in (None, "interleaved", "halved"):
        raise ValueError(f'rotary must be None, "interleaved" or "halved", not {rotary!r}')
    kind = (None, "interleaved", "halved").index(rotary)
    if alibi not in (False, True, "released"):
        raise ValueError(f'alibi must be False, True or "released", not {alibi!r}')
    return members | dict(softcap=softcap, alibi=2 if alibi == "released" else int(alibi), dropout=dropout, dropout_seed=dropout_seed, rotary=kind)


def check_table(name, tensor, Q, shape):
    checked(name, tensor, shape, Q, torch.int32, aligned=False)


def check_inputs(Q, K, V, dtypes, paged=False):
    """Q decides: K and V must fit it."""
    check_tensor("Q", Q, dtypes, dimensions="batch, heads, N_q, d")
    check_tensor("K", K, (Q.dtype,), dimensions="pages, heads_kv, page_size, d" if paged else "batch, heads_kv, N_kv, d")
    batch, heads, _, d = Q.shape
    batch = K.shape[0] if paged else batch
    heads_kv = K.shape[1] if K.shape[1] > 0 and heads % K.shape[1] == 0 else heads
    checked("K", K, (batch, heads_kv, K.shape[2], d), Q)
    checked("V", V, K.shape, Q)


def checked(name, tensor, shape, Q, dtype=None, aligned=True):
    """The tensor, when it can be handed to the library as `name`: of this shape, on Q's device, of Q's type or of dtype."""
    check_tensor(name, tensor, (dtype or Q.dtype,), aligned=aligned)
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected {tuple(shape)}")
    if tensor.device != Q.device:
        raise ValueError(f"{name} is on {tensor.device}, but Q is on {Q.device}")
    return tensor


def check_types(**tensors):
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")


def check_tensor(name, tensor, dtypes, dimensions=None, aligned=True):
    check_types(**{name: tensor})
    if tensor.dtype not in dtypes:
        raise TypeError(f"{name} must be {' or '.join(map(str, dtypes))}, not {tensor.dtype}")
    if not tensor.is_cuda:
        raise ValueError(f"{name} must be on a CUDA device, not on {tensor.device}")
    if dimensions is not None and tensor.dim() != len(dimensions.split(", ")):
        raise ValueError(f"{name} must be ({dimensions}), not of shape {tuple(tensor.shape)}")
    if not tensor.is_contiguous():
        raise ValueError(f"{name} must be contiguous; its strides are {tensor.stride()}: use {name}.contiguous()")
    if aligned and tensor.data_ptr() % ALIGNMENT != 0:
        raise ValueError(f"{name} must begin at a multiple of {ALIGNMENT} bytes: use {name}.clone()")


def check_workspace(workspace, bytes_needed, device):
    if not isinstance(workspace, torch.Tensor) or workspace.dtype != torch.uint8:
        raise TypeError("workspace must be a torch.Tensor of torch.uint8")
    if workspace.device != device:
        raise ValueError(f"workspace is on {workspace.device}, but Q is on {device}")
    if not workspace.is_contiguous() or workspace.data_ptr() % ALIGNMENT != 0:
        raise ValueError(f"workspace must be contiguous and begin at a multiple of {ALIGNMENT} bytes")
    if workspace.numel() < bytes_needed:
        raise ValueError(f"workspace has {workspace.numel()} bytes, needed are {bytes_needed}")
