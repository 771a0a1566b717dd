"""JAX, jitted for static shapes, with channels-last images."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from tests.bench.case import Array, Case
from tests.bench.cases.functions import EPSILON
from tests.bench.chains.written import CHAINS
from tests.bench.programs import in_arrays
from tests.bench.programs.in_jax import Jax
from tests.bench.worker import Bind, Call, importing, serve

Function = Callable[..., Any]

_WIDE = ("float64", "complex128")


def product(case: Case) -> Function:
    """Accumulate small dtypes in wide ones."""
    wide = {"int8": jnp.int32, "bfloat16": jnp.float32}.get(case.dtype)
    return lambda a, b: jnp.matmul(a, b, preferred_element_type=wide)


def finished_product(_: Case) -> Function:
    """Compute the product with its epilogue, which XLA fuses."""
    return lambda a, b, bias: jax.nn.gelu(jnp.matmul(a, b) + bias, approximate=False)


def convolution(case: Case) -> Function:
    """Convolve with channels-last input and output."""
    stride, padding, groups = (case.options[name] for name in ("stride", "padding", "groups"))
    return lambda x, w: jax.lax.conv_general_dilated(
        x, w, (stride, stride), [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups,
    )


def layer_norm(_: Case) -> Function:
    """Compute mean and variance, which XLA fuses."""

    def function(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + EPSILON) * scale + shift

    return function


def rms_norm(_: Case) -> Function:
    """Normalize by the mean of squares."""
    return lambda x, scale: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPSILON) * scale


def pooling(case: Case) -> Function:
    """Pool channels-last images."""
    is_max = case.options["op"] == "max"
    start, combine = (-jnp.inf, jax.lax.max) if is_max else (0.0, jax.lax.add)

    def function(x: Any) -> Any:
        total = jax.lax.reduce_window(
            x, start, combine, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
        )
        return total if is_max else total * (1 / 9)

    return function


def reduction(case: Case) -> Function:
    """Call the reduction of the same name."""
    function, axis = getattr(jnp, case.options["op"]), case.options["axis"]
    return lambda x: function(x, axis=axis)


def attention(_: Case) -> Function:
    """Call JAX's attention, which expects tokens before heads."""

    def function(q: Any, k: Any, v: Any) -> Any:
        inputs = [x.transpose(1, 0, 2) for x in (q, k, v)]
        return jax.nn.dot_product_attention(*inputs).transpose(1, 0, 2)

    return function


def blur(_: Case) -> Function:
    """Add slices, which XLA fuses."""

    def function(x: Any) -> Any:
        rows = x[:-2] + x[1:-1] + x[2:]
        return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) * (1 / 9)

    return function


def chain(case: Case) -> Function:
    """Jit the chain as written."""
    return partial(CHAINS[case.options["chain"]], jnp)


def program(case: Case) -> Function:
    """Jit the program as one function."""
    run: Function = in_arrays.function(case.options["program"], Jax())
    return run


FUNCTIONS: dict[str, Callable[[Case], Function]] = {
    "matmul": product,
    "matmul_bias_gelu": finished_product,
    "conv2d": convolution,
    "softmax": lambda _: lambda x: jax.nn.softmax(x, -1),
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "gelu": lambda _: lambda x: jax.nn.gelu(x, approximate=False),
    "reduce": reduction,
    "pool": pooling,
    "attention": attention,
    "blur": blur,
    "add": lambda _: jnp.add,
    "program": program,
    "chain": chain,
}


def jitted(case: Case) -> Bind:
    """Return calls that wait for their result."""
    jax.config.update("jax_enable_x64", case.dtype in _WIDE)
    function = jax.jit(FUNCTIONS[case.kind](case))

    def bind(*inputs: Array) -> Call:
        arrays = [jnp.asarray(array) for array in inputs]
        return lambda: jax.block_until_ready(function(*arrays))

    return bind


def one_operation(case: Case) -> Bind:
    """Measure a sum with or without waiting for its result."""
    jax.config.update("jax_enable_x64", True)

    def bind(*inputs: Array) -> Call:
        x, y = [jnp.asarray(array) for array in inputs]
        is_forced = case.options["is_forced"]
        return (lambda: (x + y).block_until_ready()) if is_forced else (lambda: x + y)

    return bind


def first_use(case: Case) -> Bind:
    """Measure the first call of a compiled function, after a warm-up compilation."""
    jax.config.update("jax_enable_x64", True)
    if case.options["is_kept"]:
        _keep()
    jax.jit(jnp.negative)(jnp.ones(3)).block_until_ready()

    def bind(*inputs: Array) -> Call:
        arrays = [jnp.asarray(array) for array in inputs]
        function = partial(CHAINS[case.options["chain"]], jnp)
        return lambda: jax.jit(function)(*arrays).block_until_ready()

    return bind


def _keep() -> None:
    """Enable the disk cache, regardless of compile time."""
    jax.config.update("jax_compilation_cache_dir", os.environ["BENCH_FOLDER"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def building(case: Case) -> Bind:
    """Measure tracing and compilation, after a warm-up compilation."""
    part: Case = case.options["part"]
    if case.options["is_kept"]:
        _keep()
    jax.jit(jnp.negative).lower(jnp.ones(3)).compile()

    def bind(*inputs: Array) -> Call:
        arrays = [jnp.asarray(array) for array in inputs]
        return lambda: jax.jit(FUNCTIONS[part.kind](part)).lower(*arrays).compile()

    return bind


if __name__ == "__main__":
    serve({**dict.fromkeys(FUNCTIONS, jitted), "build": building, "one-operation": one_operation,
           "first-use": first_use, "import": importing("jax.numpy")}, "jax")
