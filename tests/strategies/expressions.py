"""Random expressions over tensors as text; values are small enough to be exact."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tecomp.operations import FLOATS, INTEGERS
from tests.strategies.indices import Axis, Extent, Index, Indices
from tests.strategies.values import (
    TYPES,
    Value,
    arithmetic,
    as_type,
    common_type,
    full_range,
    limited,
    literal,
    tamed,
)

SIZES = (3, 2, 1, 5, 7, 8, 13, 17)
MOST_ELEMENTS, MOST_TERMS = 130, 400
_MOST_GATHERED = 100
"""Bound of the values of a tensor that is used as an index, far from the limits of all dtypes."""


class _Plain:
    """Functions of `te` that texts of extents use, for plain numbers."""

    max = max
    min = min


@dataclass(frozen=True)
class Known:
    """Tensor that expressions can read."""

    name: str
    shape: tuple[Extent, ...]
    value: Value


@dataclass
class Expressions(Indices):
    """Generator of expressions and of the placeholders that they need.

    Attributes:
        lines: Definitions so far.
        tensors: Tensors that expressions can read.
        inputs: Minimum and maximum element of each placeholder.
        sizes: Values for the size variables.
        parts: Two summands of each extent that is a sum.
        count: Number of names so far.
        has_ends: Whether some placeholders have all values of their dtype, including NaN,
            infinities and the minimum and maximum integers.
        most_elements: Maximum elements of a tensor.
        most_terms: Maximum terms of a reduction over all its results.
    """

    lines: list[str] = field(default_factory=list)
    tensors: list[Known] = field(default_factory=list)
    inputs: dict[str, tuple[float, float]] = field(default_factory=dict)
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    parts: dict[str, tuple[Extent, Extent]] = field(default_factory=dict)
    count: int = 0
    has_ends: bool = False
    most_elements: int = MOST_ELEMENTS
    most_terms: int = MOST_TERMS

    def fresh(self, letter: str) -> str:
        """Return a new name."""
        self.count += 1
        return f"{letter}{self.count}"

    def extent(self) -> Extent:
        if self.sizes and self.chance(60):
            return self.pick((*self.sizes, self._of_sizes()))
        return 0 if self.chance(3) else self.pick(SIZES)

    def _of_sizes(self) -> str:
        """Draw an extent that is an expression of sizes."""
        first, second = self.pick(list(self.sizes)), self.pick(list(self.sizes))
        if self.chance(50):
            others: tuple[Extent, ...] = (second, 1, first, f"({first} * 2)", second, 3)
            return self._sum(first, self.pick(others))
        return self.pick((
            f"(({first} + 3) // 4)", f"({first} * {second})", f"({first} // 2 * 2)",
            f"({first} // 2)", f"(({first} + 3) // 4 * 4)", f"te.max({first} - 2, 0)",
            f"({first} * {second} // 2)", f"(({first} + {second}) // 2)", f"te.min({first}, 4)",
            f"te.max({first}, {second})", f"(({first} + {second}) * 2)",
        ))

    def _sum(self, first: str, second: Extent) -> str:
        """Return the sum of two extents as an extent and record its summands."""
        double, triple = (first, first), (first, f"({first} * 2)")
        if (first, second) in (double, triple) and self.chance(50):
            text = f"({first} * {2 if second == first else 3})"
        else:
            text = f"({first} + {second})"
        self.parts[text] = first, second
        return text

    def shape(self) -> tuple[Extent, ...]:
        if self.tensors and self.chance(40):
            shape = self.pick(self.tensors).shape
            if self.chance(30):
                shape = tuple(self.shuffled(shape))
            if self.points(shape) <= self.most_elements:
                return shape
        rank = self.pick((2, 1, 3, 2, 1, 2, 3, 0))
        shape = ()
        for _ in range(rank):
            extent = self.extent()
            if self.points((*shape, extent)) > self.most_elements:
                extent = self.pick((1, 2))
            shape = (*shape, extent)
        return shape

    def points(self, shape: Sequence[Extent]) -> int:
        most = {name: max(values) for name, values in self.sizes.items()}
        return math.prod(n if isinstance(n, int) else eval(n, {**most, "te": _Plain}) for n in shape)

    def read(self, axes: Sequence[Axis], *, gather: bool = True) -> Value:
        """Draw a read of an existing tensor, or of a new placeholder that fits the indices."""
        if axes and self.chance(12):
            return self._concatenated(axes)
        if not self.tensors or (len(self.inputs) < 5 and self.chance(35)):
            return self._read_new(axes)
        tensor = self.pick(self.tensors)
        guards: list[str] = []
        indices = []
        for extent in tensor.shape:
            if gather and self.chance(8) and (index := self._gathered(axes)):
                indices.append(self._inside(index, extent, guards))
            else:
                same = [a for a in axes if a.extent == extent]
                index = self.index(same if same and self.chance(60) else axes)
                indices.append(self._inside(index, extent, guards))
        return self._guarded(tensor, indices, guards)

    def _guarded(self, tensor: Known, indices: Sequence[str], guards: Sequence[str]) -> Value:
        """Return a read where the guards hold, and another value elsewhere."""
        text = f"{tensor.name}[{', '.join(indices) or '()'}]"
        if not guards:
            return Value(text, *tensor.value.range)
        other = literal(self.number(0, 3), tensor.value.dtype)
        condition = guards[0] if len(guards) == 1 else f"te.all({', '.join(guards)})"
        return Value(f"te.if_then_else({condition}, {text}, {other.text})",
                     tensor.value.dtype, min(tensor.value.low, other.low),
                     max(tensor.value.high, other.high))

    def _concatenated(self, axes: Sequence[Axis]) -> Value:
        """Draw a read of two tensors that are concatenated along an axis."""
        axis = self.pick(axes)
        cut, rest = self._parts(axis.extent)
        neighbors = [a for a in self.shuffled(axes) if a is axis or self.chance(50)]
        if self.points([a.extent for a in neighbors]) > 3 * MOST_ELEMENTS:
            neighbors = [axis]
        one = self.placeholder(tuple(cut if a is axis else a.extent for a in neighbors))
        other = one
        if cut != rest or self.chance(40):
            behind = tuple(rest if a is axis else a.extent for a in neighbors)
            other = self.placeholder(behind, one.value.dtype)
        there = [f"{a.name} - {cut}" if a is axis else a.name for a in neighbors]
        here = f"{one.name}[{', '.join(a.name for a in neighbors)}]"
        behind_it = f"{other.name}[{', '.join(there)}]"
        texts = (f"< {cut}, {here}, {behind_it}", f">= {cut}, {behind_it}, {here}")
        return Value(f"te.if_then_else({axis.name} {self.pick(texts)})", one.value.dtype,
                     min(one.value.low, other.value.low), max(one.value.high, other.value.high))

    def _parts(self, extent: Extent) -> tuple[Extent, Extent]:
        """Return two extents whose sum is `extent`."""
        if isinstance(extent, int):
            cut = self.number(0, extent)
            return cut, extent - cut
        if extent in self.parts:
            return self.parts[extent]
        return f"({extent} // 2)", f"(({extent} + 1) // 2)"

    def _inside(self, index: Index, extent: Extent, guards: list[str]) -> str:
        if index.whole == extent:
            return index.text
        if isinstance(extent, int) and index.low is not None and index.high is not None:
            if index.low >= 0 and index.high < extent:
                return index.text
            if extent > 0 and self.chance(40):
                if self.chance(50):
                    return f"({index.text}) % {extent}"
                return f"te.max(te.min({index.text}, {extent - 1}), 0)"
        if index.low is None or index.low < 0:
            guards.append(f"{index.text} >= 0")
        guards.append(f"{index.text} < {extent}")
        return index.text

    def _gathered(self, axes: Sequence[Axis]) -> Index | None:
        """Draw a data-dependent index; return None if no tensor is suitable."""
        found = [
            t for t in self.tensors
            if t.value.dtype in INTEGERS and t.value.low >= -_MOST_GATHERED
            and t.value.high <= _MOST_GATHERED
        ]
        if not found:
            return None
        read = self._read_of(self.pick(found), axes)
        if read is None:
            return None
        text = read.text
        low, high = int(read.low), int(read.high)
        if self.chance(20):
            # The index is computed in the dtype of the data, where it must not wrap around.
            step = self.number(1, 3)
            text, low, high = f"{text} + {step}", low + step, high + step
        return Index(text, low, high)

    def _read_of(self, tensor: Known, axes: Sequence[Axis]) -> Value | None:
        indices = []
        for extent in tensor.shape:
            index = self.index([a for a in axes if a.extent == extent])
            if self.chance(15):
                index = self._gathered(axes) or index
            guards: list[str] = []
            indices.append(self._inside(index, extent, guards))
            if guards:
                return None
        return Value(f"{tensor.name}[{', '.join(indices) or '()'}]", *tensor.value.range)

    def _read_new(self, axes: Sequence[Axis]) -> Value:
        """Draw a read of a new placeholder that is as large as the indices need, or larger."""
        indices: list[str] = []
        shape: list[Extent] = []
        guards: list[str] = []
        for _ in range(self.pick((2, 1, 2, 3, 1, 0))):
            index = self.index(axes)
            text, extent = index.text, index.whole
            if isinstance(extent, str) and self.chance(20):
                step = self.number(0, 2)
                text, extent = f"{text} + {step}", f"({extent} + 2)"
            if index.low is not None and index.high is not None and (
                extent is None or self.chance(30)
            ):
                start = max(-index.low, 0)
                text = f"{text} + {start}" if start else text
                extent = index.high + start + 1 + self.pick((0, 0, 1, 3))
            if extent is None:
                extent = self.extent()
                text = self._inside(index, extent, guards)
            if self.points((*shape, extent)) > 3 * MOST_ELEMENTS:
                break
            indices.append(text)
            shape.append(extent)
        return self._guarded(self.placeholder(tuple(shape)), indices, guards)

    def placeholder(self, shape: tuple[Extent, ...], dtype: str | None = None) -> Known:
        dtype = dtype or self.pick(TYPES)
        low: float = -4 if dtype.startswith(("int", "float", "bfloat")) else 0
        high: float = 1 if dtype == "bool" else 4
        if dtype in INTEGERS and self.chance(50):
            low = 0
        if self.has_ends and dtype != "bool" and self.chance(60):
            low, high = (-math.inf, math.inf) if dtype in FLOATS else full_range(dtype)
        name = self.fresh("P")
        self.inputs[name] = (low, high)
        self.lines.append(f'{name} = te.placeholder({shape_text(shape)}, "{dtype}", name="{name}")')
        tensor = Known(name, shape, Value(name, dtype, low, high))
        self.tensors.append(tensor)
        return tensor

    def leaf(self, axes: Sequence[Axis]) -> Value:
        if self.chance(8):
            return literal(self.number(0, 4), self.pick(TYPES))
        if axes and self.chance(8):
            axis = self.pick(axes)
            last = max(self.points([axis.extent]) - 1, 0)
            # `+ 0` is necessary: the bare axis would turn `te.max(x, axis)` into a reduction.
            counts = Value(f'te.cast({axis.name} + 0, "int32")', "int32", 0, last)
            return as_type(counts, self.pick(TYPES))
        return self.read(axes)

    def condition(self, axes: Sequence[Axis], depth: int) -> Value:
        match self.number(0, 5):
            case 0 | 1 if axes:
                first, second = self.index(axes), self.index(axes)
                op = self.pick(("<", "<=", "==", "!=", ">", ">="))
                return Value(f"({first.text} {op} {second.text})", "bool", 0, 1)
            case 2 if depth:
                parts = [self.condition(axes, depth - 1).text for _ in range(2)]
                return Value(f"te.{self.pick(('all', 'any'))}({', '.join(parts)})", "bool", 0, 1)
            case 3 if depth:
                return Value(f"te.logical_not({self.condition(axes, depth - 1).text})",
                             "bool", 0, 1)
        a, b = self.expr(axes, 0), self.leaf(axes)
        if (dtype := common_type(a.dtype, b.dtype)) is None:
            b = as_type(b, dtype := a.dtype)
        a, b = limited(a, dtype), limited(b, dtype)
        op = self.pick(("<", "<=", "==", "!=", ">", ">="))
        return Value(f"({a.text} {op} {b.text})", "bool", 0, 1)

    def expr(self, axes: Sequence[Axis], depth: int) -> Value:
        """Draw an element-wise expression."""
        if depth == 0:
            return self.leaf(axes)
        match self.number(0, 9):
            case 0:
                return self.leaf(axes)
            case 1 | 2:
                test = self.condition(axes, depth - 1)
                a, b = self._pair(axes, depth - 1)
                word = self.pick(("if_then_else", "Select"))
                return Value(f"te.{word}({test.text}, {a.text}, {b.text})", a.dtype,
                             min(a.low, b.low), max(a.high, b.high))
            case 3:
                return as_type(self.expr(axes, depth - 1), self.pick(TYPES))
            case 4:
                return self.condition(axes, depth - 1)
            case 5:
                return self._unary(self.expr(axes, depth - 1))
        a, b = self._pair(axes, depth - 1)
        return self._binary(a, b)

    def _pair(self, axes: Sequence[Axis], depth: int) -> tuple[Value, Value]:
        """Draw two values of one dtype."""
        a, b = self.expr(axes, depth), self.expr(axes, depth)
        dtype = common_type(a.dtype, b.dtype)
        if dtype is None or self.chance(50):
            dtype = a.dtype
        return as_type(a, dtype), as_type(b, dtype)

    def _binary(self, a: Value, b: Value) -> Value:
        dtype = a.dtype
        if dtype == "bool":
            op = self.pick(("&", "|", "^"))
            return Value(f"({a.text} {op} {b.text})", "bool", 0, 1)
        op = self.pick(("+", "*", "-", "max", "min", "other"))
        if op in ("max", "min"):
            both = (a.low, b.low), (a.high, b.high)
            low, high = ((max(x) if op == "max" else min(x)) for x in both)
            return Value(f"te.{op}({a.text}, {b.text})", dtype, low, high)
        if op == "other" and dtype in INTEGERS:
            return self._integer_binary(a, b)
        return arithmetic(op if op != "other" else "+", a, b)

    def _integer_binary(self, a: Value, b: Value) -> Value:
        dtype = a.dtype
        match op := self.pick(("//", "%", "&", "|", "^", "<<", ">>")):
            case "<<" | ">>" if not self.has_ends or is_constant(b):
                b = literal(self.number(0, 3), dtype)
            case "//" | "%" if self.chance(70):
                b = literal(self.number(1, 4), dtype)
            case "//" | "%" if is_constant(b):  # a constant divisor may be 0
                op = "|"
        if op == "%" and b.low == b.high and b.low > 0:
            return Value(f"({a.text} % {b.text})", dtype, 0, b.high - 1)
        return Value(f"({a.text} {op} {b.text})", dtype, *full_range(dtype))

    def _unary(self, a: Value) -> Value:
        dtype = a.dtype
        if dtype == "bool":
            return Value(f"(~{a.text})", dtype, 0, 1)
        if dtype in FLOATS:
            a = tamed(a)
            word = self.pick(("floor", "ceil", "round", "nearbyint", "trunc", "fabs", "-"))
            if word == "-":
                return Value(f"(-{a.text})", dtype, -a.high, -a.low)
            if word == "fabs":
                return Value(f"te.fabs({a.text})", dtype, 0, 8)
            half = literal(0.5, dtype)
            return Value(f"te.{word}({a.text} * {half.text})", dtype, -4, 4)
        word = self.pick(("te.popcount", "te.abs", "~"))
        return Value(f"{word}({a.text})", dtype, *full_range(dtype))


def is_constant(value: Value) -> bool:
    """Return whether a value consists of numbers only."""
    nodes = ast.walk(ast.parse(value.text, mode="eval"))
    return not any(isinstance(node, ast.Name) and node.id != "te" for node in nodes)


def shape_text(shape: Sequence[Extent]) -> str:
    """Return the Python text of a shape."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
