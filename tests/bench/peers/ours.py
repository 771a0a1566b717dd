"""tecomp, with the schedules of `tecomp.schedules`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import get_args

import numpy as np

import tecomp
from tecomp import te
from tecomp.schedules import (
    activations,
    argreduce,
    attention,
    conv2d,
    cumsum,
    elementwise,
    matmul,
    norm,
    pool,
    reduce,
    softmax,
    stencil,
    transpose,
)
from tests.bench.case import Array, Case, NoFormError, numpy_dtype
from tests.bench.cases.functions import EPSILON
from tests.bench.peers import ours_arrays
from tests.bench.programs import in_te
from tests.bench.programs.describe import Description
from tests.bench.worker import Bind, Call, importing, serve

NO_SCHEDULE = "tecomp.schedules has no module for it"
TARGET = tecomp.Target.load("cpu")

Definition = Callable[..., te.Tensor]
Operator = tuple[Definition, Callable[[te.Tensor, tecomp.Target], te.Schedule]]


def product(case: Case) -> Operator:
    """Define a product, with accumulators wider than small dtypes."""
    wide = {"int8": "int32", "bfloat16": "float32"}.get(case.dtype)
    return partial(matmul.define, out_dtype=wide), matmul.schedule


def finished_product(_: Case) -> Operator:
    """Define a product with bias and GELU."""

    def define(a: te.Tensor, b: te.Tensor, bias: te.Tensor) -> te.Tensor:
        result: te.Tensor = matmul.define(a, b, bias=bias, activation=activations.gelu)
        return result

    return define, matmul.schedule


def convolution(case: Case) -> Operator:
    """Define a channels-last convolution."""
    return partial(conv2d.define, layout="NHWC", **case.options), conv2d.schedule


def pooling(case: Case) -> Operator:
    """Define channels-last pooling."""
    return partial(pool.define, **case.options), pool.schedule


def transposition(case: Case) -> Operator:
    """Define a permutation of axes."""
    return partial(transpose.define, axes=case.options["axes"]), transpose.schedule


def gelu(_: Case) -> Operator:
    """Define GELU by erf."""
    return partial(elementwise.define, activations.gelu), elementwise.schedule


def reduction(case: Case) -> Operator:
    """Define a reduction over one axis or all axes."""
    op, axis = case.options["op"], case.options["axis"]
    if op in get_args(argreduce.Operation):
        return partial(argreduce.define, axis=axis, op=op), argreduce.schedule
    if op == "cumsum":
        return partial(cumsum.define, axis=axis), cumsum.schedule
    if op not in get_args(reduce.Operation):
        raise NoFormError(NO_SCHEDULE)
    return partial(reduce.define, axis=axis, op=op), reduce.schedule


def blur(_: Case) -> Operator:
    """Define sums along columns, then along rows."""
    third = [1 / 3] * 3
    return partial(stencil.separable, column=third, row=third), stencil.schedule


def heads(_: Case) -> Operator:
    """Define attention for each head separately."""
    return attention.define, attention.schedule


def add(_: Case) -> Operator:
    """Define an unscheduled addition, which measures call overhead."""
    return (
        lambda a, b: te.compute(a.shape, lambda i: a[i] + b[i], name="sum"),
        lambda output, _: te.create_schedule(output),
    )


OPERATORS: dict[str, Callable[[Case], Operator]] = {
    "matmul": product, "matmul_bias_gelu": finished_product, "conv2d": convolution,
    "pool": pooling, "gelu": gelu, "transpose": transposition,
    "softmax": lambda _: (softmax.define, softmax.schedule),
    "layer_norm": lambda _: (partial(norm.layer_norm, epsilon=EPSILON), norm.schedule),
    "rms_norm": lambda _: (partial(norm.rms_norm, epsilon=EPSILON), norm.schedule),
    "reduce": reduction, "blur": blur, "attention": heads,
    "add": add,
}


def build(case: Case) -> tuple[Callable[..., None], te.Tensor]:
    """Return a kernel for the case, and its result."""
    if case.kind not in OPERATORS:
        raise NoFormError(NO_SCHEDULE)
    define, schedule = OPERATORS[case.kind](case)
    inputs = [
        te.placeholder(shape, case.dtype, f"in{k}") for k, shape in enumerate(case.shapes)
    ]
    output = define(*inputs)
    kernel = tecomp.build(schedule(output, TARGET), [*inputs, output], TARGET)
    return kernel, output


def prepared(case: Case) -> Bind:
    """Return calls of the kernel with a preallocated result."""
    kernel, output = build(case)
    shape = [extent for extent in output.shape if isinstance(extent, int)]

    def bind(*inputs: Array) -> tuple[Call, Array]:
        out = np.empty(shape, numpy_dtype(output.dtype))
        return partial(kernel, *inputs, out), out

    return bind


def program(case: Case) -> Bind:
    """Build one kernel; a network with constants is compiled as a program."""
    description: Description = case.options["program"]
    inputs, output = in_te.tensors(description)
    shape = in_te.sizes_of(output)
    if not description.constants:
        kernel = tecomp.build(output, [*inputs, output], TARGET)

        def bind(*source: Array) -> tuple[Call, Array]:
            out = np.empty(shape, numpy_dtype(output.dtype))
            return partial(kernel, *source, out), out

        return bind

    def compiled(*source: Array) -> tuple[Call, Array]:
        constants = {inputs[k]: source[k] for k in description.constants}
        free = [x for x in inputs if x not in constants]
        result = tecomp.compile(output, free, TARGET, constants=constants)
        out = np.empty(shape, numpy_dtype(output.dtype))
        rest = [x for k, x in enumerate(source) if k not in description.constants]
        return partial(result, *rest, out=out), out

    return compiled


def relayout(case: Case) -> Bind:
    """Return the compiled copy with a preallocated result."""
    shape = case.options["shape"]
    src, dst = (
        tecomp.Layout.of(shape, case.dtype, case.options[name]) for name in ("source", "result")
    )
    copy = tecomp.relayout(src, dst)

    def bind(x: Array) -> tuple[Call, Array]:
        out = np.empty(dst.physical_shape, x.dtype)
        written = out.reshape([x.shape[k] for k in case.options["axes"]])
        return partial(copy, x.reshape(src.physical_shape), out), written

    return bind


def building(case: Case) -> Bind:
    """Measure kernel builds, after a warm-up build in the process."""
    part: Case = case.options["part"]
    if part.kind not in OPERATORS:
        raise NoFormError(NO_SCHEDULE)
    x = te.placeholder((3,), name="x")
    first = te.compute((3,), lambda i: x[i] * 2.0, name="first")
    tecomp.build(te.create_schedule(first), [x, first], TARGET)
    return lambda *_: partial(build, part)


def _layout(case: Case, function: str = "map") -> tecomp.Layout:
    options = case.options
    return tecomp.Layout.of(
        options["shape"], "float16", options[function], grid_axes=options.get("grid", ())
    )


def deciding(case: Case) -> Bind:
    """Measure all queries of a new layout."""

    def ask() -> int:
        layout = _layout(case)
        assert layout.inverse is not None
        return layout.padding_count

    return lambda _: ask


def nesting(case: Case) -> Bind:
    """Measure DMA nests of an existing layout."""
    layout = _layout(case)
    return lambda _: lambda: len(layout.dma())


def counting(case: Case) -> Bind:
    """Measure the runs of a copy between two existing layouts."""
    source, target = _layout(case), _layout(case, "to")
    return lambda _: lambda: source.runs_to(target).count


def loading(case: Case) -> Bind:
    """Measure loading of a target that the process has not loaded."""
    return lambda _: lambda: tecomp.Target.load(case.options["target"]).cores


QUESTIONS: dict[str, Callable[[Case], Bind]] = {
    "layout": deciding, "dma": nesting, "runs": counting, "target": loading,
}


if __name__ == "__main__":
    serve({**dict.fromkeys(OPERATORS, prepared), **QUESTIONS, "relayout": relayout, "build": building,
           "program": program, "chain": ours_arrays.chain, "first-use": ours_arrays.first_use,
           "one-operation": ours_arrays.one_operation, "import": importing("tecomp.array")}, "tecomp")
