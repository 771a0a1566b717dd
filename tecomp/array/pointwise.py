"""One kernel for elementwise operations on all arrays that lie alike, of any sizes.

Axes along which all operands go on in memory as they do along the next one are one axis for the
kernel; sizes and strides come with the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

import tecomp
from tecomp import te
from tecomp.array.counters import counters
from tecomp.array.graph import Pending, Step
from tecomp.array.node import Buffer, Node
from tecomp.ptensor.elements import element, is_elementwise
from tecomp.ptensor.promotion import PART
from tecomp.ptensor.types import PTensorType, Shape, numpy_dtype
from tecomp.ptensor.values import Complex, Element


@dataclass(frozen=True, slots=True)
class Operand:
    """How an array is passed: which axes of the loops it has, in the shape of these.

    Attributes:
        axes: the loops that it has elements along.
        index: that takes away what the loops do not go along; None if there is nothing.
        shape: the extents along its loops; None if that is the array's own shape.
        strided: whether there are places between its elements.
        unit: whether elements along the last of its loops lie side by side.
        part: the type of real and imaginary part, which lie side by side; None of real numbers.
    """

    axes: tuple[int, ...]
    index: tuple[Any, ...] | None
    shape: Shape | None
    strided: bool
    unit: bool
    part: np.dtype[Any] | None

    def view(self, data: Buffer) -> Buffer:
        """The array as it is passed."""
        if self.index is not None:
            data = data[self.index]
        if self.shape is not None:
            data = data.reshape(self.shape)
        return data if self.part is None else data[..., None].view(self.part)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How pending operations are computed by a kernel for loops of any extents.

    Attributes:
        kernel: takes the operands and the results.
        operands: how the leaves are passed.
        shape: of the results.
        loops: the extents of the kernel's loops.
        dtypes: of the results.
    """

    kernel: Any
    operands: tuple[Operand, ...]
    shape: Shape
    loops: Shape
    dtypes: tuple[np.dtype[Any], ...]


_recipes: dict[Any, Recipe | None] = {}
_kernels: dict[Any, Any] = {}


def run_pointwise(work: Pending) -> bool:
    """Compute what is wanted by one kernel, if all operations are elementwise; say whether so."""
    recipe = recipe_of(work)
    if recipe is None:
        return False
    _run(recipe, work)
    return True


def recipe_of(work: Pending) -> Recipe | None:
    """How pending operations are computed, if all are elementwise."""
    key = (
        work.steps, work.outputs,
        tuple([(node.type, node.data.strides) for node in work.leaves]),  # type: ignore[union-attr]
    )
    if key not in _recipes:
        _recipes[key] = _recipe(work)
    return _recipes[key]


def _run(recipe: Recipe, work: Pending) -> None:
    results = [np.empty(recipe.shape, dtype) for dtype in recipe.dtypes]
    arrays = [
        how.view(node.data)  # type: ignore[arg-type]
        for how, node in zip(recipe.operands, work.leaves, strict=True)
    ]
    counters.called += 1
    recipe.kernel(*arrays, *[_passed(result, recipe.loops) for result in results])
    for place, result in zip(work.outputs, results, strict=True):
        work.nodes[place].computed(result)


def _passed(result: Buffer, loops: Shape) -> Buffer:
    if result.dtype.kind != "c":
        return result.reshape(loops)
    return result.reshape((*loops, 1)).view(result.real.dtype)


def _recipe(work: Pending) -> Recipe | None:
    shape = work.nodes[work.outputs[0]].type.shape
    if not _is_taken(work, shape):
        return None
    strides = [_strides(node, shape) for node in work.leaves]
    if None in strides:
        return None
    groups = _merged(shape, [*strides, _dense(shape)])  # type: ignore[list-item]
    loops = tuple([prod(shape[axis] for axis in group) for group in groups])
    operands = tuple([
        _operand(node, groups, loops, steps, shape)  # type: ignore[arg-type]
        for node, steps in zip(work.leaves, strides, strict=True)
    ])
    types = [node.type for node in work.nodes]
    kernel = _kernel(work, operands, len(loops))
    dtypes = tuple([numpy_dtype(types[place].dtype) for place in work.outputs])
    return Recipe(kernel, operands, shape, loops, dtypes)


def _is_taken(work: Pending, shape: Shape) -> bool:
    """Whether all results have one shape, and are made of the elements at one place.

    Complex results have another shape for the kernel than real ones.
    """
    kinds = {work.nodes[place].type.dtype in PART for place in work.outputs}
    return (
        len(kinds) == 1
        and all(is_elementwise(op) for op, _ in work.steps)
        and all(node.type.shape == shape for node in work.nodes)
        and all(node.type.device in (None, "cpu") for node in (*work.nodes, *work.leaves))
    )


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array without places between its elements, in elements."""
    return tuple([prod(shape[axis + 1 :]) for axis in range(len(shape))])


def _strides(node: Node, shape: Shape) -> tuple[int, ...] | None:
    """How far an array goes on along each axis of the results, in elements.

    None if that is no whole number.
    """
    data = node.data
    assert data is not None
    if any(stride % data.itemsize for stride in data.strides):
        return None
    missing = len(shape) - data.ndim
    own = [
        0 if extent == 1 else stride // data.itemsize
        for extent, stride in zip(data.shape, data.strides, strict=True)
    ]
    return (0,) * missing + tuple(own)


def _merged(shape: Shape, strides: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Axes that are one loop, outermost first; axes of one place are none."""
    groups: list[list[int]] = []
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        if groups and all(s[groups[-1][-1]] == s[axis] * extent for s in strides):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return tuple(map(tuple, groups))


def _operand(
    node: Node, groups: Sequence[Sequence[int]], loops: Shape, strides: tuple[int, ...],
    shape: Shape,
) -> Operand:
    data = node.data
    assert data is not None
    steps = [strides[group[-1]] for group in groups]
    axes = tuple([k for k, step in enumerate(steps) if step])
    extents = tuple([loops[k] for k in axes])
    held = [0 if extent > 1 and stride == 0 else slice(None) for extent, stride in zip(
        data.shape, data.strides, strict=True)]
    index = (*held, ...) if 0 in held else None  # dots, so that it stays an array
    rest = tuple([e for e, part in zip(data.shape, held, strict=True) if part != 0])
    dense = _dense(extents)
    strided = tuple([steps[k] for k in axes]) != dense
    unit = not strided or not axes or steps[axes[-1]] == 1
    part = data.real.dtype if data.dtype.kind == "c" else None
    return Operand(axes, index, None if rest == extents else extents, strided, unit, part)


def _kernel(work: Pending, operands: Sequence[Operand], rank: int) -> Any:
    dtypes = tuple([node.type.dtype for node in work.leaves])
    lies = tuple([(how.axes, how.strided, how.unit) for how in operands])
    key = work.steps, work.outputs, dtypes, lies, rank
    kernel = _kernels.get(key)
    if kernel is None:
        is_complex = work.nodes[work.outputs[0]].type.dtype in PART
        kernel = _kernels[key] = _built(
            work.steps, work.outputs, dtypes, operands, rank, is_complex
        )
        counters.compiled += 1
    return kernel


def _built(
    steps: Sequence[Step], outputs: Sequence[int], dtypes: Sequence[str],
    operands: Sequence[Operand], rank: int, is_complex: bool,
) -> Any:
    sizes = [te.size_var(f"n{k}") for k in range(rank)]
    inputs = [
        _placeholder([sizes[k] for k in how.axes], dtype, f"x{k}")
        for k, (how, dtype) in enumerate(zip(operands, dtypes, strict=True))
    ]

    def elements(*index: te.Expr) -> list[Element]:
        leaves = [
            _read(x, how, [index[k] for k in how.axes])
            for x, how in zip(inputs, operands, strict=True)
        ]
        made = _elements(steps, leaves, dtypes)
        return [made[place] for place in outputs]

    made = _stage(sizes, elements, is_complex)
    results = made if isinstance(made, tuple) else (made,)
    binds = {
        x: _strided(x, how) for x, how in zip(inputs, operands, strict=True) if how.strided
    }
    return tecomp.build(results, [*inputs, *results], name="array", binds=binds)


def _placeholder(shape: list[te.Expr], dtype: str, name: str) -> te.Tensor:
    part = PART.get(dtype)
    if part is None:
        return te.placeholder(shape, dtype, name=name)
    return te.placeholder([*shape, 2], part, name=name)


def _read(tensor: te.Tensor, how: Operand, index: Sequence[te.Expr]) -> Element:
    if how.part is None:
        return tensor(*index)
    return Complex(tensor(*index, 0), tensor(*index, 1))


def _stage(
    sizes: Sequence[te.Expr], elements: Callable[..., list[Element]], is_complex: bool
) -> Any:
    """Several results of one stage; the parts of complex ones lie side by side."""
    if not is_complex:
        return te.compute(sizes, lambda *i: tuple(elements(*i)), name="y")

    def parts(*index: te.Expr) -> Any:
        *i, part = index
        made = [value for value in elements(*i) if isinstance(value, Complex)]
        return tuple([te.select(part == 0, value.re, value.im) for value in made])

    return te.compute([*sizes, 2], parts, name="y")


def _strided(tensor: te.Tensor, how: Operand) -> Any:
    """Memory with strides that come with the call."""
    strides: list[Any] = [te.var(f"{tensor.name}_s{k}") for k in range(len(how.axes))]
    if how.unit:
        strides[-1] = 1 if how.part is None else 2
    if how.part is not None:
        strides.append(1)
    return te.decl_buffer(tensor.shape, tensor.dtype, strides=strides)


def _elements(
    steps: Sequence[Step], leaves: Sequence[Element], dtypes: Sequence[str]
) -> list[Element]:
    values: list[Element] = []
    kinds: list[str] = []
    for op, places in steps:
        given = [values[k] if k >= 0 else leaves[-1 - k] for k in places]
        types = [kinds[k] if k >= 0 else dtypes[-1 - k] for k in places]
        values.append(element(op, given, types))
        kinds.append(op.infer(*[PTensorType((), dtype) for dtype in types]).dtype)
    return values
