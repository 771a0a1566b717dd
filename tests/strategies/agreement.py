"""Compare the interpreted and compiled results of a case with its definition."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import hypothesis
import numpy as np
from numpy.typing import NDArray

from tecomp.codegen import Kernel
from tecomp.compute import Tensor
from tecomp.ir import Buffer, DType, PrimFunc, Var, evaluate, integer_range
from tecomp.lowering import LoweringResult
from tests.strategies.arrays import Guarded, assert_equal, garbage
from tests.strategies.layouts import function_of, pack, unpack
from tests.strategies.programs import Program
from tests.strategies.reference import Tensors, compute, number
from tests.strategies.schedules import Case

Array: TypeAlias = NDArray[Any]
Sizes: TypeAlias = "Mapping[Var, int]"
STORED = "apply_buffer_transforms"
_MOST_NUMBERS = 100


def bindings(case: Case) -> Iterator[Sizes]:
    """Yield values for the size variables."""
    variables = [case.names[name] for name in case.program.sizes]
    for values in zip(*case.program.sizes.values(), strict=True) if variables else [()]:
        yield dict(zip(variables, values, strict=True))


def check_numbers(
    case: Case, lowered: LoweringResult, kernels: Sequence[Kernel], sizes: Sizes
) -> None:
    """Check the interpreter after every pass, and all kernels, against the definition."""
    run = run_of(case, lowered, sizes)
    before = None
    for name, func in lowered.functions.items():
        if func == before:
            continue
        before = func
        note(f"interpreting after {name}, sizes {sizes}")
        run.interpret(func, logical=name == "nest", padded=name not in ("nest", STORED))
    for kernel in kernels:
        note(f"running the kernel, {kernel.compiled.options}, sizes {sizes}")
        run.call(kernel)


def check_ends(case: Case, lowered: LoweringResult, kernel: Kernel | None, sizes: Sizes) -> None:
    """Check the interpreter after the last pass, and the kernel, against the definition."""
    run = run_of(case, lowered, sizes)
    run.interpret(lowered.final, logical=False, padded=True)
    if kernel is not None:
        run.call(kernel)


def run_of(case: Case, lowered: LoweringResult, sizes: Sizes) -> Run:
    """Return the arguments and expected results of calls with the given sizes."""
    inputs = {tensor.op: random_input(case.program, tensor, sizes) for tensor in case.inputs}
    expected = compute([tensor.op for tensor in case.outputs], inputs, sizes)
    return Run(case, lowered, sizes, expected)


def random_input(program: Program, tensor: Tensor, sizes: Sizes) -> Array:
    """Return random elements for a placeholder of a program."""
    low, high = program.inputs[tensor.name]
    rng = np.random.default_rng(zlib.crc32(tensor.name.encode()))
    shape = [number(extent, sizes) for extent in tensor.shape]
    if high - low > _MOST_NUMBERS:
        return rng.choice(_ends(tensor.dtype), shape)
    return rng.integers(int(low), int(high), shape, endpoint=True).astype(tensor.dtype.numpy)


def _ends(dtype: DType) -> Array:
    """Return numbers near the limits of a dtype and near 0."""
    if dtype.is_float:
        numbers = [0.0, -0.0, 1.0, -2.0, 3.0, 8.0, np.inf, -np.inf, np.nan]
        return np.array(numbers).astype(dtype.numpy)
    low, high = integer_range(dtype)
    neighbors = [low, low + 1, -2, -1, 0, 1, 2, 3, 8 * dtype.bytes, high - 1, high]
    return np.array([n for n in neighbors if low <= n <= high], dtype.numpy)


class Run:
    """Arguments and expected results of calls with one set of sizes."""

    def __init__(
        self, case: Case, lowered: LoweringResult, sizes: Sizes, expected: Tensors
    ) -> None:
        self.case = case
        self.sizes = sizes
        self.wanted = expected
        self.signature = lowered.signature.params

    def interpret(self, func: PrimFunc, *, logical: bool, padded: bool) -> None:
        stored = self.arguments(logical=logical)
        flat = [
            x if isinstance(x, int) else x.reshape(self.shape(param, func.params))
            for x, param in zip(stored, func.params, strict=True)
        ]
        evaluate(func, flat)
        self.check(stored, logical=logical, padded=padded)

    def call(self, kernel: Kernel) -> None:
        stored = self.arguments(logical=False)
        guarded = [x if isinstance(x, int) else Guarded(x) for x in stored]
        kernel(*(g.array if isinstance(g, Guarded) else g for g in guarded))
        for x, guard in zip(stored, guarded, strict=True):
            if isinstance(guard, Guarded):
                guard.check()
                x[...] = guard.array
        self.check(stored, logical=False, padded=True)

    def shape(self, param: Any, params: tuple[Any, ...]) -> list[int]:
        values = [size for size in params if isinstance(size, Var)]
        known = dict(zip(values, self.sizes.values(), strict=True))
        return [number(extent, known) for extent in param.shape]

    def arguments(self, *, logical: bool) -> list[Any]:
        """Return arrays as callers pass them; padding positions and outputs hold garbage."""
        found: list[Any] = []
        for arg, param in zip(self.case.args, self.signature, strict=True):
            if isinstance(arg, Var):
                found.append(self.sizes[arg])
                continue
            assert isinstance(param, Buffer)
            value = self.wanted[arg.op, arg.value_index]
            shape = value.shape if logical else self.shape(param, self.signature)
            array = garbage(shape, value.dtype)
            if arg.name in self.case.program.inputs:
                pack([] if logical else self.case.maps.get(arg.op, []), value, array)
            found.append(array)
        return found

    def check(self, arrays: list[Any], *, logical: bool, padded: bool) -> None:
        for arg, array in zip(self.case.args, arrays, strict=True):
            if isinstance(arg, Var):
                continue
            maps = [] if logical else self.case.maps.get(arg.op, [])
            value = self.wanted[arg.op, arg.value_index]
            assert_equal(unpack(maps, array, value.shape), value, arg.name)
            if maps and padded and arg.op in self.case.pads:
                self.check_padding(arg, array, maps)

    def check_padding(self, tensor: Tensor, array: Array, maps: list[str]) -> None:
        value = self.wanted[tensor.op, tensor.value_index]
        expected = garbage(array.shape, array.dtype)
        grid = np.indices(array.shape)
        text = self.case.pads[tensor.op]
        pad = np.asarray(function_of(text)(*grid) if "lambda" in text else eval(text))
        expected[...] = pad != 0 if array.dtype == bool else pad.astype(array.dtype)
        pack(maps, value, expected)
        assert_equal(array, expected, f"{tensor.name} with its padding")


def note(text: str) -> None:
    """Add a note that Hypothesis prints if the test fails."""
    if hypothesis.currently_in_test_context():
        hypothesis.note(text)
