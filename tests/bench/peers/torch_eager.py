"""PyTorch in eager mode, with channels-last images and fused attention."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import torch

from tests.bench.case import Array, Case, numpy_dtype
from tests.bench.cases.functions import EPSILON
from tests.bench.chains.written import CHAINS
from tests.bench.machine import flags
from tests.bench.programs import in_arrays
from tests.bench.programs.in_torch import Torch
from tests.bench.worker import Bind, Call, Makers, importing, serve, together

Function = Callable[..., Any]


def product(case: Case) -> Function:
    """Multiply by `@`, or by a separate function for bytes.

    Without AVX-512, oneDNN has no bfloat16 kernel, and the fallback takes fifty times as long as a
    float32 product.
    """
    if case.dtype == "bfloat16" and "avx512bw" not in flags():
        return lambda a, b: (a.float() @ b.float()).bfloat16()
    function: Function = torch._int_mm if case.dtype == "int8" else torch.matmul
    return function


def finished_product(_: Case) -> Function:
    """Call `addmm` for a single matrix, as a linear layer does, and a batched product otherwise."""

    def function(a: Any, b: Any, bias: Any) -> Any:
        total = torch.addmm(bias, a, b) if a.dim() == 2 else torch.matmul(a, b) + bias
        return torch.nn.functional.gelu(total)

    return function


def convolution(case: Case) -> Function:
    """Call the channels-last convolution of oneDNN."""
    stride, padding, groups = (case.options[name] for name in ("stride", "padding", "groups"))
    return lambda x, w: torch.nn.functional.conv2d(
        x, w, stride=stride, padding=padding, groups=groups
    )


def pooling(case: Case) -> Function:
    """Pool channels-last images."""
    functional = torch.nn.functional
    function = functional.max_pool2d if case.options["op"] == "max" else functional.avg_pool2d
    window, stride, padding = (case.options[name] for name in ("window", "stride", "padding"))
    return lambda x: function(x, window, stride=stride, padding=padding)


def reduction(case: Case) -> Function:
    """Call the reduction of the same name."""
    op, axis = case.options["op"], case.options["axis"]
    function: Function = torch.amax if op == "max" else getattr(torch, op)
    return function if axis is None else lambda x: function(x, dim=axis)


def blur(case: Case) -> Function:
    """Add slices into preallocated tensors; pooling and convolution are slower."""
    (height, width), = case.shapes
    rows, out = torch.empty(height - 2, width), torch.empty(height - 2, width - 2)

    def function(x: Any) -> Any:
        torch.add(x[:-2], x[1:-1], out=rows).add_(x[2:])
        return torch.add(rows[:, :-2], rows[:, 1:-1], out=out).add_(rows[:, 2:]).mul_(1 / 9)

    return function


def relayout(case: Case) -> Bind:
    """Copy a view with permuted axes into a preallocated tensor."""

    def bind(x: Array) -> tuple[Call, Any]:
        view = torch.from_numpy(x).permute(case.options["axes"])
        out = torch.empty(view.shape, dtype=view.dtype)
        return lambda: out.copy_(view), out

    return bind


def chain(case: Case) -> Function:
    """Run the chain as written, under PyTorch's names."""
    name = case.options["chain"]
    return lambda *arrays: CHAINS[name](Namespace, *arrays)


def one_operation(case: Case) -> Bind:
    """Compute a sum."""

    def bind(*inputs: Array) -> Call:
        x, y = tensors(case, inputs)
        return lambda: x + y

    return bind


def program(case: Case) -> Function:
    """Return a function with its own code object, as compilers cache by code object."""
    run = in_arrays.function(case.options["program"], Torch())
    assert isinstance(run, FunctionType)
    return FunctionType(run.__code__.replace(), run.__globals__, closure=run.__closure__)


class Namespace:
    """PyTorch functions under their array API names."""

    arange, argmin, exp, log, sqrt, tanh = (
        torch.arange, torch.argmin, torch.exp, torch.log, torch.sqrt, torch.tanh
    )
    mean, sum = torch.mean, torch.sum

    @staticmethod
    def std(x: Any, *, axis: int) -> Any:
        """Compute the population standard deviation."""
        return torch.std(x, dim=axis, correction=0)

    @staticmethod
    def roll(x: Any, shift: int, *, axis: int) -> Any:
        """Roll along one axis."""
        return torch.roll(x, shift, axis)

    @staticmethod
    def astype(x: Any, dtype: Any) -> Any:
        """Cast to another dtype."""
        return x.to(dtype)


FUNCTIONS: dict[str, Callable[[Case], Function]] = {
    "matmul": product,
    "matmul_bias_gelu": finished_product,
    "conv2d": convolution,
    "softmax": lambda _: lambda x: torch.softmax(x, -1),
    "layer_norm": lambda _: lambda x, scale, shift: torch.nn.functional.layer_norm(
        x, scale.shape, scale, shift, EPSILON
    ),
    "rms_norm": lambda _: lambda x, scale: torch.nn.functional.rms_norm(
        x, scale.shape, scale, EPSILON
    ),
    "gelu": lambda _: torch.nn.functional.gelu,
    "reduce": reduction,
    "pool": pooling,
    "attention": lambda _: torch.nn.functional.scaled_dot_product_attention,
    "blur": blur,
    "add": lambda _: torch.add,
    "program": program,
    "chain": chain,
}


def tensors(case: Case, inputs: tuple[Array, ...]) -> list[Any]:
    """Return inputs as tensors; images and filters become channels-last views."""
    arrays = []
    for array in inputs:
        if array.dtype == numpy_dtype("bfloat16"):
            arrays.append(torch.from_numpy(array.view("int16")).view(torch.bfloat16))
        else:
            arrays.append(torch.from_numpy(array))
    if case.kind == "conv2d":
        x, w = arrays
        w = w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        return [x.permute(0, 3, 1, 2), w]
    if case.kind == "pool":
        return [arrays[0].permute(0, 3, 1, 2)]
    if case.kind == "attention":
        return [tensor[None] for tensor in arrays]
    return arrays


def to_numpy(case: Case, result: Any) -> Array:
    """Return a tensor in the shape of the case."""
    if case.kind in ("conv2d", "pool"):
        result = result.permute(0, 2, 3, 1)
    if case.kind == "attention":
        result = result[0]
    if isinstance(result, tuple):
        return together(case, result)
    array: Array = (result.float() if result.dtype == torch.bfloat16 else result).numpy()
    return array


def serve_torch(makers: Makers) -> None:
    """Serve the runner with one thread per core, without gradients."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.set_num_interop_threads(1)
    torch.set_grad_enabled(False)
    serve(makers, "torch", to_numpy)


def eager(case: Case) -> Bind:
    """Return calls of the function in eager mode."""
    function = FUNCTIONS[case.kind](case)
    return lambda *inputs: partial(function, *tensors(case, inputs))


if __name__ == "__main__":
    serve_torch({**dict.fromkeys(FUNCTIONS, eager), "relayout": relayout, "transpose": relayout,
                 "one-operation": one_operation, "import": importing("torch")})
