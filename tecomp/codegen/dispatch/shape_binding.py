"""Bind symbolic shapes to call arguments and check them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from tecomp.codegen.dispatch.array_interop import ArrayMemory, is_in_layout, layout_tag_of
from tecomp.codegen.dispatch.parameter import KernelParameter, Shape, array_text, compact_strides
from tecomp.errors import CallError, LowerError
from tecomp.ir.arith.constraint_context import ConstraintContext
from tecomp.ir.arith.simplify_expr import expression
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.stmt import PrimFunc
from tecomp.ir.traversal.rewrite import free_variables, run_trampoline, substitute

_MAX_COMPARED = 10_000
"""Maximum number of candidates in the NumPy search for an element shared by two arrays."""


@dataclass(frozen=True, slots=True)
class Size:
    """Value of a symbolic size, with its source for error messages."""

    value: int
    source: str


def check_findable(func: PrimFunc, parameters: Sequence[KernelParameter]) -> None:
    """Check that every size is by itself an extent or a stride of some argument.

    Raises:
        LowerError: If a size only appears inside expressions, from which it cannot be solved.
    """
    inferable = {extent for p in parameters if not p.buffer.has_offset
             for extent in (*p.shape, *p.flat, *p.strides) if isinstance(extent, Var)}
    for var in func.sizes:
        if var not in inferable:
            raise LowerError(
                "{func}: size variable `{var}` is not by itself an extent of any argument, so it "
                "cannot be inferred; add the variable {var} to the arguments",
                kind="unbound-size", func=func.name, var=var.name,
            )


def bind_sizes(
    sizes: dict[Var, Size], parameters: Sequence[KernelParameter], memories: Sequence[ArrayMemory]
) -> None:
    """Bind sizes that are extents or strides of arguments; the first occurrence counts."""
    found = [
        (parameter, memory) for parameter, memory in zip(parameters, memories, strict=True)
        if not parameter.buffer.has_offset
    ]
    for parameter, memory in found:
        rank = len(memory.shape)
        shape = parameter.shape if rank == len(parameter.shape) else parameter.flat
        if rank != len(shape):
            continue
        for axis, extent in enumerate(shape):
            if isinstance(extent, Var) and extent not in sizes:
                source = f"axis {axis} of {parameter.buffer.name}"
                sizes[extent] = Size(memory.shape[axis], source)
    for skip_unit in (True, False):
        # The stride of an axis of size 1 is irrelevant; use it only without an alternative.
        for parameter, memory in found:
            steps = memory.strides or compact_strides(memory.shape)
            for axis, (stride, step) in enumerate(zip(parameter.strides, steps, strict=False)):
                if isinstance(stride, Var) and stride not in sizes and (
                    not skip_unit or memory.shape[axis] > 1
                ):
                    source = f"the stride of axis {axis} of {parameter.buffer.name}"
                    sizes[stride] = Size(step, source)


def part_at_offset(
    parameter: KernelParameter, memory: ArrayMemory, sizes: Mapping[Var, Size]
) -> ArrayMemory:
    """Return the elements of an array that a parameter with an `elem_offset` denotes.

    The array is one-dimensional and contiguous, and its first elements precede the parameter.

    Raises:
        CallError: If the array has several axes or gaps, or if an element is outside of it.
    """
    got = array_text(memory.dtype, memory.shape)
    if len(memory.shape) != 1 or ((memory.strides or (1,)) != (1,) and memory.shape != (1,)):
        raise CallError(
            "{where}: expected a contiguous one-dimensional array for {parameter}, got {got}; pass "
            "array.reshape(-1) of a contiguous array",
            kind="argument-mismatch", where=parameter.where, parameter=parameter.describe(),
            got=got,
        )
    shape = shape_value(parameter.shape, sizes)
    strides = shape_value(parameter.strides, sizes) if parameter.strides else None
    start = _format(parameter.buffer.elem_offset, sizes)
    spans = [(n - 1) * step for n, step in zip(
        shape, strides or compact_strides(shape), strict=True)]
    first = start + sum(min(n, 0) for n in spans)
    last = start + sum(max(n, 0) for n in spans)
    if min(shape, default=0) < 0:
        raise CallError(
            "{where}: {shape} has a negative extent; pass larger sizes",
            kind="argument-mismatch", where=parameter.where, shape=array_text(memory.dtype, shape),
        )
    if 0 not in shape and (first < 0 or last >= memory.shape[0]):
        raise CallError(
            "{where}: {shape} spans elements {first} to {last} of the array, got {got}; pass a "
            "longer array, or another offset",
            kind="argument-mismatch", where=parameter.where, shape=array_text(memory.dtype, shape),
            first=first, last=last, got=got,
        )
    address = memory.address + start * parameter.scalar.bytes
    return ArrayMemory(address, memory.dtype, shape, strides, memory.access, memory.owner)


def check_bounds(name: str, sizes: Mapping[Var, Size]) -> None:
    """Check that sizes are within their declared bounds.

    Raises:
        CallError: If a size is outside its declared bounds.
    """
    for var, size in sizes.items():
        if var.bounds is not None and not var.bounds.admits(size.value):
            raise CallError(
                "{kernel}: the size {var} must be {bounds}, got {value}, from {source}; pad the "
                "array, or declare wider bounds",
                kind="argument-mismatch", kernel=name, var=var.name, bounds=str(var.bounds),
                value=size.value, source=size.source,
            )


def check_shape(parameter: KernelParameter, memory: ArrayMemory, sizes: Mapping[Var, Size]) -> None:
    """Check the shape of an argument against the declared shape for the given sizes.

    Raises:
        CallError: If the shapes differ, or if a required size is unknown.
    """
    got = memory.shape
    if got == parameter.fixed:
        return
    if parameter.logical is not None and _fits(got, parameter.logical):
        _refuse_logical(parameter, got, sizes)
    candidates = [shape for shape in (parameter.shape, parameter.flat) if len(shape) == len(got)]
    if not candidates:
        raise CallError(
            "{where}: expected {rank} axes, {parameter}, got {got_count}, {got}; {remedy}",
            kind="argument-mismatch", where=parameter.where, rank=len(parameter.shape),
            parameter=parameter.describe(), got_count=len(got), got=array_text(memory.dtype, got),
            remedy=_advice(parameter),
        )
    for var in (v for shape in candidates for v in _variables(shape) if v not in sizes):
        raise CallError(
            "{where}: size `{var}` cannot be inferred from an array with {got_count} {axes}, "
            "{got}; pass an unflattened array, {parameter}",
            kind="unbound-size", where=parameter.where, var=var.name, got_count=len(got),
            axes="axis" if len(got) == 1 else "axes", got=array_text(memory.dtype, got),
            parameter=parameter.describe(),
        )
    problems = [_difference(parameter, shape, got, sizes) for shape in candidates]
    if all(problems):
        raise CallError(
            "{where}: {problem}",
            kind="argument-mismatch", where=parameter.where, problem=problems[0],
        )


def check_mark(parameter: KernelParameter, argument: Any, sizes: Mapping[Var, Size]) -> None:
    """Check that the layout tag of an argument agrees with the layout of the parameter.

    Raises:
        CallError: If the array is tagged with another layout.
    """
    found, required = layout_tag_of(argument), parameter.mark
    if found is None or required is None or found is required:
        return
    shape = parameter.shape if parameter.logical is None else parameter.logical
    if found.formula == required.formula or (
        all(var in sizes for var in _variables((*shape, *parameter.shape)))
        and is_in_layout(
            argument, required, shape_value(shape, sizes), shape_value(parameter.shape, sizes))
    ):
        return
    name = parameter.buffer.name
    advice = f"pass kernel.pack({name}, a)"
    if parameter.logical is None:
        advice = "unpack it with the layout that packed it"
    raise CallError(
        "{where}: the array is packed as {formula}, but {name} is stored as {wanted_formula}; "
        "{advice}, or pass np.asarray(...) of it if the packing is intended",
        kind="packed", where=parameter.where, formula=found.formula, name=name,
        wanted_formula=required.formula, advice=advice,
    )


def _advice(parameter: KernelParameter) -> str:
    if parameter.logical is None:
        return "reshape it"
    logical = array_text(str(parameter.scalar), parameter.logical)
    return f"pass kernel.pack({parameter.buffer.name}, a) of an array of {logical}"


def _fits(got: tuple[int, ...], shape: Shape) -> bool:
    return len(got) == len(shape) and all(
        not isinstance(extent, int) or extent == n for n, extent in zip(got, shape, strict=True)
    )


def _refuse_logical(
    parameter: KernelParameter, got: tuple[int, ...], sizes: Mapping[Var, Size]
) -> None:
    """Raise if an array has the logical shape instead of the shape of the layout.

    Raises:
        CallError: If the array does not also fit the shape of the layout.
    """
    if len(got) == len(parameter.shape) and all(
        var in sizes for var in _variables(parameter.shape)
    ) and not _difference(parameter, parameter.shape, got, sizes):
        return
    name = parameter.buffer.name
    also = "pass it with layouts='logical'" if parameter.is_written else (
        f"pass kernel.pack({name}, a), or a itself with layouts='logical'")
    raise CallError(
        "{where}: {name} is stored as {parameter} in a layout, got {got}, its logical shape; "
        "{also}",
        kind="argument-mismatch", where=parameter.where, name=name, parameter=parameter.describe(),
        got=array_text(str(parameter.scalar), got), also=also,
    )


def check_strides(
    parameter: KernelParameter, memory: ArrayMemory, sizes: Mapping[Var, Size]
) -> None:
    """Check the strides of an argument against the declared strides, if any.

    Raises:
        CallError: If the strides differ, or if elements of an output may overlap.
    """
    if parameter.buffer.strides is None or 0 in memory.shape:
        return
    expected = tuple(_format(step, sizes) for step in parameter.strides)
    got = memory.strides or compact_strides(memory.shape)
    if any(n != 1 and a != b for n, a, b in zip(memory.shape, got, expected, strict=True)):
        raise CallError(
            "{where}: expected strides of {expected} elements, got {got}; pass an array with these "
            "strides",
            kind="unsupported-memory", where=parameter.where, expected=expected, got=got,
        )
    if parameter.is_written and not _are_apart(memory.shape, got):
        raise CallError(
            "{where}: the argument is written to, but with strides of {got} elements some elements "
            "of {shape} may share an address; pass a new array, and copy the result from it",
            kind="unsupported-memory", where=parameter.where, got=got,
            shape=array_text(memory.dtype, memory.shape),
        )


def _are_apart(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether elements provably do not overlap: each stride exceeds the inner reach."""
    reach = 0
    for step, extent in sorted((abs(step), n) for n, step in zip(shape, strides, strict=True)):
        if extent > 1 and step <= reach:
            return False
        reach += (extent - 1) * step
    return True


def bytes_spanned(parameter: KernelParameter, memory: ArrayMemory) -> tuple[int, int]:
    """Return the begin and end addresses of the memory of an argument."""
    size, first = parameter.scalar.bytes, memory.address
    if memory.strides is None or 0 in memory.shape:
        return first, first + prod(memory.shape) * size
    dims = zip(memory.shape, memory.strides, strict=True)
    spans = [(extent - 1) * step for extent, step in dims]
    low, high = sum(min(n, 0) for n in spans), 1 + sum(max(n, 0) for n in spans)
    return first + low * size, first + high * size


def are_interleaved(
    a: KernelParameter, first: ArrayMemory, b: KernelParameter, second: ArrayMemory
) -> bool:
    """Return whether two arguments with overlapping address ranges share no element."""
    if first.strides is None and second.strides is None:
        return False
    try:
        arrays = _array_at(a, first), _array_at(b, second)
        return not np.shares_memory(*arrays, _MAX_COMPARED)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return False


def _array_at(parameter: KernelParameter, memory: ArrayMemory) -> np.ndarray[Any, Any]:
    """Return a NumPy array over the memory of an argument, for address comparison only."""
    strides = memory.strides or compact_strides(memory.shape)
    size = parameter.scalar.bytes
    interface = {"shape": memory.shape, "typestr": f"|V{size}", "data": (memory.address, True),
            "strides": tuple(step * size for step in strides), "version": 3}
    return np.asarray(SimpleNamespace(__array_interface__=interface))


def _variables(shape: Shape) -> list[Var]:
    return [v for extent in shape if isinstance(extent, Expr) for v in free_variables(extent)]


def _difference(
    parameter: KernelParameter, shape: Shape, got: tuple[int, ...], sizes: Mapping[Var, Size]
) -> str:
    for axis, (extent, actual) in enumerate(zip(shape, got, strict=True)):
        expected = extent if isinstance(extent, int) else extent_value(extent, sizes)
        if expected == actual:
            continue
        if isinstance(extent, int):
            reason = f"expected {expected}"
        elif isinstance(extent, Var):
            reason = f"but {extent.name} is {expected} from {sizes[extent].source}"
        else:
            reason = f"but {extent} is {expected}"
        return (
            f"axis {axis} is {actual}, {reason}; pass an array of "
            f"{array_text(str(parameter.scalar), [_format(n, sizes) for n in shape])}"
        )
    return ""


def _format(extent: int | Expr, sizes: Mapping[Var, Size]) -> int:
    return extent if isinstance(extent, int) else extent_value(extent, sizes)


def shape_value(shape: Shape, sizes: Mapping[Var, Size]) -> tuple[int, ...]:
    """Return the values of the extents of an array for these sizes.

    Raises:
        CallError: If an extent has no 64-bit value, as after a division by 0 or an overflow.
    """
    return tuple(_format(extent, sizes) for extent in shape)


def extent_value(extent: Expr, sizes: Mapping[Var, Size]) -> int:
    """Return the value of an extent for these sizes.

    Raises:
        CallError: If the extent has no 64-bit value, as after a division by 0 or an overflow.
    """
    if isinstance(extent, Var):
        return sizes[extent].value

    values = {var: Const(size.value, var.dtype) for var, size in sizes.items()}
    result = run_trampoline(expression(ConstraintContext(), substitute(extent, values)))
    if not isinstance(result, Const):
        bindings = ", ".join(f"{v.name} = {sizes[v].value}" for v in free_variables(extent))
        raise CallError(
            "the extent `{extent}` has no 64-bit value for {sizes}; pass other sizes",
            kind="unbound-size", extent=extent, sizes=bindings,
        )
    return int(result.value)
