"""Random tensor expressions, as the Python text that defines them.

Values are small integers, also in floating-point types, so that every sum is exact and the order
in which it is computed does not show. What an element can be is followed through the program; a
value that would leave the exact range is clipped first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from hypothesis import strategies as st

from tecomp import te
from tests.strategies.values import (
    FLOATS,
    INTEGERS,
    TYPES,
    Value,
    as_type,
    common_type,
    full_range,
    limited,
    literal,
    tamed,
)

T = TypeVar("T")
Draw: TypeAlias = "Callable[[st.SearchStrategy[Any]], Any]"
Extent: TypeAlias = "int | str"
SIZES = (3, 2, 1, 5, 7, 8, 13, 17)
MOST_ELEMENTS, MOST_TERMS = 130, 400

ARGMAX = """\
argmax = te.comm_reducer(
    lambda x, y: [
        te.Select(te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] <= y[0])), x[k], y[k])
        for k in (0, 1)
    ],
    lambda index, value: [te.max_value(index), te.min_value(value)],
    name="argmax",
)"""


@dataclass(frozen=True)
class Program:
    """A computation.

    Attributes:
        source: Python text that makes the tensors.
        inputs: for each placeholder the least and the greatest value of an element.
        outputs: tensors that nothing reads, and others that the caller wants.
        sizes: values for the size variables, several for each.
    """

    source: str
    inputs: Mapping[str, tuple[int, int]]
    outputs: tuple[str, ...]
    sizes: Mapping[str, tuple[int, ...]]

    def define(self) -> dict[str, Any]:
        """The tensors and size variables by name."""
        names: dict[str, Any] = {"te": te}
        exec(self.source, names)
        return names


@dataclass(frozen=True)
class Known:
    """A tensor that can be read."""

    name: str
    shape: tuple[Extent, ...]
    value: Value


@dataclass(frozen=True)
class Axis:
    """A variable of the index function, or one that is reduced over."""

    name: str
    extent: Extent

    @property
    def last(self) -> int:
        """Greatest value; an empty axis counts as one element."""
        assert isinstance(self.extent, int)
        return max(self.extent - 1, 0)


@dataclass(frozen=True)
class Index:
    """An index expression, with its bounds where they are numbers."""

    text: str
    low: int | None = None
    high: int | None = None
    whole: Extent | None = None
    """Set where the index is in range of any axis of this extent."""


@dataclass
class Maker:
    """Writes a program line by line."""

    draw: Draw
    lines: list[str] = field(default_factory=list)
    tensors: list[Known] = field(default_factory=list)
    inputs: dict[str, tuple[int, int]] = field(default_factory=dict)
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    count: int = 0

    def pick(self, options: Sequence[T]) -> T:
        chosen: T = self.draw(st.sampled_from(options))
        return chosen

    def number(self, low: int, high: int) -> int:
        drawn: int = self.draw(st.integers(low, high))
        return drawn

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) >= 100 - percent

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    # Shapes.

    def extent(self) -> Extent:
        if self.sizes and self.chance(40):
            return self.pick(list(self.sizes))
        return 0 if self.chance(3) else self.pick(SIZES)

    def shape(self) -> tuple[Extent, ...]:
        if self.tensors and self.chance(40):
            shape = self.pick(self.tensors).shape
            if self.chance(30):
                shape = tuple(self.draw(st.permutations(shape)))
            if self.points(shape) <= MOST_ELEMENTS:
                return shape
        rank = self.pick((2, 1, 3, 2, 1, 2, 3, 0))
        shape = ()
        for _ in range(rank):
            extent = self.extent()
            if self.points((*shape, extent)) > MOST_ELEMENTS:
                extent = self.pick((1, 2))
            shape = (*shape, extent)
        return shape

    def points(self, shape: Sequence[Extent]) -> int:
        most = {name: max(values) for name, values in self.sizes.items()}
        return math.prod(n if isinstance(n, int) else eval(n, dict(most)) for n in shape)

    # Indices.

    def index(self, axes: Sequence[Axis]) -> Index:
        """An index made of axes, diagonal, strided, reversed or whatever."""
        if not axes or self.chance(5):
            value = self.number(0, 3)
            return Index(str(value), value, value)
        axis = self.pick(axes)
        if isinstance(axis.extent, str):
            return self._symbolic_index(axis)
        name, last = axis.name, axis.last
        match self.number(0, 11):
            case 0 | 1 | 2 | 3:
                return Index(name, 0, last, axis.extent)
            case 4:
                step = self.number(-3, 3)
                return Index(f"{name} + {step}" if step >= 0 else f"{name} - {-step}",
                             step, last + step)
            case 5:
                return Index(f"{last} - {name}", 0, last, axis.extent)
            case 6:
                step, start = self.number(2, 3), self.number(0, 2)
                return Index(f"{name} * {step} + {start}", start, last * step + start)
            case 7:
                step = self.number(2, 4)
                return Index(f"{name} // {step}", 0, last // step)
            case 8:
                step = self.number(2, 4)
                return Index(f"{name} % {step}", 0, min(last, step - 1))
        other = self.pick(axes)
        if isinstance(other.extent, str):
            return Index(name, 0, last, axis.extent)
        match self.number(0, 2):
            case 0:
                return Index(f"{name} + {other.name}", 0, last + other.last)
            case 1:
                return Index(f"{name} - {other.name} + {other.last}", 0, last + other.last)
        return Index(f"{name} * 2 + {other.name}", 0, 2 * last + other.last)

    def _symbolic_index(self, axis: Axis) -> Index:
        match self.number(0, 5):
            case 0:
                return Index(f"{axis.name} - 1")
            case 1:
                return Index(f"{axis.extent} - 1 - {axis.name}", whole=axis.extent)
            case 2:
                return Index(f"{axis.name} // 2", whole=axis.extent)
            case 3:
                return Index(f"{axis.name} + 1")
        return Index(axis.name, whole=axis.extent)

    def read(self, axes: Sequence[Axis], *, gather: bool = True) -> Value:
        """An element of a tensor that exists, or of a new placeholder that fits the indices."""
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
        text = f"{tensor.name}[{', '.join(indices) or '()'}]"
        if not guards:
            return Value(text, *tensor.value.range)
        other = literal(self.number(0, 3), tensor.value.dtype)
        condition = guards[0] if len(guards) == 1 else f"te.all({', '.join(guards)})"
        return Value(f"te.if_then_else({condition}, {text}, {other.text})",
                     tensor.value.dtype, min(tensor.value.low, other.low),
                     max(tensor.value.high, other.high))

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
        """An index that is data."""
        found = [t for t in self.tensors if t.value.dtype in INTEGERS and t.name in self.inputs]
        if not found:
            return None
        self_read = self._read_of(self.pick(found), axes)
        if self_read is None:
            return None
        low, high = int(self_read.low), int(self_read.high)
        return Index(self_read.text, low, high)

    def _read_of(self, tensor: Known, axes: Sequence[Axis]) -> Value | None:
        indices = []
        for extent in tensor.shape:
            index = self.index([a for a in axes if a.extent == extent])
            guards: list[str] = []
            indices.append(self._inside(index, extent, guards))
            if guards:
                return None
        return Value(f"{tensor.name}[{', '.join(indices) or '()'}]", *tensor.value.range)

    def _read_new(self, axes: Sequence[Axis]) -> Value:
        """A placeholder just as large as the indices need, or a little larger."""
        indices: list[str] = []
        shape: list[Extent] = []
        for _ in range(self.pick((2, 1, 2, 3, 1, 0))):
            index = self.index(axes)
            text, extent = index.text, index.whole
            if isinstance(extent, str) and self.chance(20):
                step = self.number(0, 2)
                text, extent = f"{text} + {step}", f"{extent} + 2"
            if index.low is not None and index.high is not None and (
                extent is None or self.chance(30)
            ):
                start = max(-index.low, 0)
                text = f"{text} + {start}" if start else text
                extent = index.high + start + 1 + self.pick((0, 0, 1, 3))
            if extent is None:
                continue
            if self.points((*shape, extent)) > 3 * MOST_ELEMENTS:
                break
            indices.append(text)
            shape.append(extent)
        tensor = self.placeholder(tuple(shape))
        return Value(f"{tensor.name}[{', '.join(indices) or '()'}]", *tensor.value.range)

    def placeholder(self, shape: tuple[Extent, ...]) -> Known:
        dtype = self.pick(TYPES)
        low = -4 if dtype.startswith(("int", "float", "bfloat")) else 0
        high = 1 if dtype == "bool" else 4
        if dtype in INTEGERS and self.chance(50):
            low = 0
        name = self.fresh("P")
        self.inputs[name] = (low, high)
        self.lines.append(f'{name} = te.placeholder({shape_text(shape)}, "{dtype}", name="{name}")')
        tensor = Known(name, shape, Value(name, dtype, low, high))
        self.tensors.append(tensor)
        return tensor

    # Expressions.

    def leaf(self, axes: Sequence[Axis]) -> Value:
        if self.chance(8):
            return literal(self.number(0, 4), self.pick(TYPES))
        counted = [a for a in axes if isinstance(a.extent, int)]
        if counted and self.chance(8):
            axis = self.pick(counted)
            # Not the bare name: te.max(x, axis) of a reduction axis is a reduction.
            return as_type(Value(f"({axis.name} + 0)", "int32", 0, axis.last), self.pick(TYPES))
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
        """An element-wise expression."""
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
        """Two values of one type."""
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
            case "<<" | ">>":
                b = literal(self.number(0, 3), dtype)
            case "//" | "%" if self.chance(70):
                b = literal(self.number(1, 4), dtype)
        if op == "%" and b.low == b.high and b.low > 0:
            return Value(f"({a.text} % {b.text})", dtype, 0, b.high - 1)
        return Value(f"({a.text} {op} {b.text})", dtype, *full_range(dtype))

    def _unary(self, a: Value) -> Value:
        dtype = a.dtype
        if dtype == "bool":
            return Value(f"(~{a.text})", dtype, 0, 1)
        if dtype in FLOATS:
            a = tamed(a)
            word = self.pick(("floor", "ceil", "round", "trunc", "fabs", "-"))
            if word == "-":
                return Value(f"(-{a.text})", dtype, -a.high, -a.low)
            if word == "fabs":
                return Value(f"te.fabs({a.text})", dtype, 0, 8)
            half = literal(0.5, dtype)
            return Value(f"te.{word}({a.text} * {half.text})", dtype, -4, 4)
        word = self.pick(("te.popcount", "te.abs", "~"))
        return Value(f"{word}({a.text})", dtype, *full_range(dtype))

    # Stages.

    def stage(self) -> None:
        shape = self.shape()
        axes = [Axis(self.fresh("i"), extent) for extent in shape]
        match self.number(0, 9):
            case 0 | 1 | 2 | 3:
                self._elementwise(shape, axes)
            case 4 | 5 | 6 | 7 | 8:
                self._reduction(shape, axes)
            case 9:
                self.pick((self._argmax, self._two_outputs))(shape, axes)

    def _elementwise(self, shape: tuple[Extent, ...], axes: Sequence[Axis]) -> None:
        value = self.expr(axes, self.number(1, 3))
        self._define(shape, axes, value.text, (value,))

    def _two_outputs(self, shape: tuple[Extent, ...], axes: Sequence[Axis]) -> None:
        values = [self.expr(axes, self.number(1, 2)) for _ in range(2)]
        text = f"({values[0].text}, {values[1].text})"
        self._define(shape, axes, text, tuple(values))

    def _reduce_axes(self, shape: Sequence[Extent]) -> list[Axis]:
        axes: list[Axis] = []
        for _ in range(self.pick((1, 2, 1))):
            extent = self.extent()
            if self.points((*shape, *(a.extent for a in axes), extent)) > MOST_TERMS:
                extent = self.pick((2, 3))
            name = self.fresh("r")
            axes.append(Axis(name, extent))
            self.lines.append(f'{name} = te.reduce_axis((0, {extent}), name="{name}")')
        return axes

    def _reduction(self, shape: tuple[Extent, ...], axes: Sequence[Axis]) -> None:
        reduced = self._reduce_axes(shape)
        over = [*axes, *reduced]
        kind = self.pick(("sum", "sum", "max", "min", "prod"))
        if kind == "sum" and self.chance(50):
            a, b = self.read(over), self.read(over)
            dtype = common_type(a.dtype, b.dtype) or a.dtype
            value = arithmetic("*", as_type(a, dtype), as_type(b, dtype))
        else:
            value = self.expr(over, self.number(0, 2))
        if value.dtype == "bool":
            value = as_type(value, self.pick(("int32", "uint8", "float32")))
        terms = self.points([axis.extent for axis in reduced])
        value, low, high = _reduced(kind, value, terms)
        where = f", where={self.condition(over, 1).text}" if self.chance(25) else ""
        init = ""
        if self.chance(20):
            start = literal(self.number(0, 3), value.dtype)
            if self.chance(40) and axes:
                start = self.leaf(axes)
                start = as_type(tamed(as_type(start, value.dtype), 3), value.dtype)
            init = f", init={start.text}"
            low, high = _with_start(kind, value.dtype, (low, high), start)
        names = ", ".join(axis.name for axis in reduced)
        text = f"te.{kind}({value.text}, axis=[{names}]{where}{init})"
        self._define(shape, axes, text, (Value("", value.dtype, low, high),))

    def _argmax(self, shape: tuple[Extent, ...], axes: Sequence[Axis]) -> None:
        if ARGMAX not in self.lines:
            self.lines.append(ARGMAX)
        reduced = self._reduce_axes(shape)[-1]
        value = tamed(self.expr([*axes, reduced], 1))
        if value.dtype == "bool":
            value = as_type(value, "int8")
        text = f"argmax(({reduced.name}, {value.text}), axis={reduced.name})"
        bounds = full_range(value.dtype)
        results = Value("", "int32", *full_range("int32")), Value("", value.dtype, *bounds)
        self._define(shape, axes, text, results)

    def _define(
        self,
        shape: tuple[Extent, ...],
        axes: Sequence[Axis],
        body: str,
        values: tuple[Value, ...],
    ) -> None:
        names = [self.fresh("T") for _ in values]
        parameters = ", ".join(axis.name for axis in axes)
        function = f"lambda {parameters}: {body}" if axes else f"lambda: {body}"
        self.lines.append(
            f"{', '.join(names)} = te.compute(\n"
            f'    {shape_text(shape)}, {function}, name="{names[0]}"\n)'
        )
        self.tensors += [Known(n, shape, v) for n, v in zip(names, values, strict=True)]


def arithmetic(op: str, a: Value, b: Value) -> Value:
    """`a op b`, for operands of one type; clipped first where it would not be exact."""
    low, high = _interval(op, a, b)
    if a.dtype in FLOATS and not full_range(a.dtype)[0] <= low <= high <= full_range(a.dtype)[1]:
        a, b = tamed(a), tamed(b)
        low, high = _interval(op, a, b)
    least, most = full_range(a.dtype)
    if low < least or high > most:
        low, high = least, most
    return Value(f"({a.text} {op} {b.text})", a.dtype, low, high)


def _interval(op: str, a: Value, b: Value) -> tuple[float, float]:
    match op:
        case "+":
            return a.low + b.low, a.high + b.high
        case "-":
            return a.low - b.high, a.high - b.low
    ends = [0.0 if 0 in (x, y) else x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)


def _reduced(kind: str, value: Value, terms: int) -> tuple[Value, float, float]:
    """What to reduce, and the bounds of the result."""
    least, most = full_range(value.dtype)
    is_float = value.dtype in FLOATS
    if kind == "sum":
        if is_float and max(-value.low, value.high) * terms > most // 2:
            value = tamed(value, max(1, min(8, int(most // (2 * max(terms, 1))))))
        low, high = min(value.low * terms, 0), max(value.high * terms, 0)
        return value, max(low, least), min(high, most)
    if kind == "prod":
        return (tamed(value, 1), -1, 1) if is_float else (value, least, most)
    # Over nothing, the identity: the least or the greatest value.
    if kind == "max":
        return value, (-math.inf if is_float else least), value.high
    return value, value.low, (math.inf if is_float else most)


def _with_start(
    kind: str, dtype: str, bounds: tuple[float, float], start: Value
) -> tuple[float, float]:
    low, high = bounds
    if dtype in INTEGERS:
        return full_range(dtype)
    match kind:
        case "sum":
            return low + min(start.low, 0), high + max(start.high, 0)
        case "prod":
            return -8, 8
        case "max":
            return start.low, max(high, start.high)
    return min(low, start.low), start.high


def shape_text(shape: Sequence[Extent]) -> str:
    """A shape as one writes it."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@st.composite
def programs(draw: Draw, *, most_stages: int = 5) -> Program:
    """Computations of up to `most_stages` stages."""
    maker = Maker(draw)
    if maker.chance(20):
        for name in ("n", "m")[: maker.number(1, 2)]:
            values = draw(st.lists(st.sampled_from((3, 2, 5, 8, 7, 1, 11, 0)), min_size=2, max_size=2))
            maker.sizes[name] = tuple(values)
            maker.lines.append(f'{name} = te.var("{name}")')
    for _ in range(maker.number(1, most_stages)):
        maker.stage()
    body = "\n".join(maker.lines)
    computed = [t.name for t in maker.tensors if t.name not in maker.inputs]
    read = {name for name in computed if body.count(f"{name}[") > 0}
    wanted = [name for name in computed if name not in read or maker.chance(7)]
    return Program(body + "\n", maker.inputs, tuple(wanted), maker.sizes)
