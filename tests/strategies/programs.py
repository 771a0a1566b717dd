"""Random tensor expressions as Python text.

Values are small integers, also in floating-point dtypes, so that every sum is exact and independent
of the order of evaluation. The bounds of each element are tracked through the program, and a value
that would leave the exact range is clipped first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tecomp import te
from tecomp.operations import FLOATS, INTEGERS
from tests.strategies.draws import Dice, Draw
from tests.strategies.expressions import (
    Expressions,
    Known,
    shape_text,
)
from tests.strategies.indices import Axis, Extent
from tests.strategies.values import (
    Value,
    arithmetic,
    as_type,
    common_type,
    full_range,
    literal,
    tamed,
)

ARGMAX = """\
argmax = te.comm_reducer(
    lambda x, y: [
        te.Select(te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] <= y[0])), x[k], y[k])
        for k in (0, 1)
    ],
    lambda index, value: [te.max_value(index), te.min_value(value)],
    name="argmax",
)"""
PAIRS = MappingProxyType({
    "argmax": ARGMAX,
    "both": """\
both = te.comm_reducer(
    lambda x, y: [te.max(x[0], y[0]), x[1] + y[1]],
    lambda t0, t1: [te.min_value(t0), te.const(0, t1)],
    name="both",
)""",
})


@dataclass(frozen=True)
class Program:
    """Random computation.

    Attributes:
        source: Python text that defines the tensors.
        inputs: Minimum and maximum element of each placeholder.
        outputs: Tensors that no other tensor reads, and further requested tensors.
        sizes: Several values for each size variable.
    """

    source: str
    inputs: Mapping[str, tuple[float, float]]
    outputs: tuple[str, ...]
    sizes: Mapping[str, tuple[int, ...]]

    def define(self) -> dict[str, Any]:
        """Execute the text and return tensors and size variables by name."""
        names: dict[str, Any] = {"te": te}
        exec(self.source, names)
        return names


class Maker(Expressions):
    """Generator of a program, line by line."""

    def stage(self) -> None:
        shape = self.shape()
        axes = [Axis(self.fresh("i"), extent) for extent in shape]
        match self.number(0, 10):
            case 0 | 1 | 2 | 3:
                self._elementwise(shape, axes)
            case 4 | 5 | 6 | 7 | 8:
                self._reduction(shape, axes)
            case 9 | 10:
                self.pick((self._several, self._two_outputs, self._scan))(shape, axes)

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
            if self.points((*shape, *(a.extent for a in axes), extent)) > self.most_terms:
                extent = self.pick((2, 3))
            name = self.fresh("r")
            low = self.pick((0, 0, 0, 2, -3))
            # Indices and conditions start at 0 even if the axis does not.
            axes.append(Axis(f"({name} - {low})" if low else name, extent))
            self.lines.append(
                f'{name} = te.reduce_axis(({low}, {extent} + {low}), name="{name}")'
            )
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
        names = ", ".join(axis.variable for axis in reduced)
        text = f"te.{kind}({value.text}, axis=[{names}]{where}{init})"
        self._define(shape, axes, text, (Value("", value.dtype, low, high),))

    def _several(self, shape: tuple[Extent, ...], axes: Sequence[Axis]) -> None:
        """Draw a reduction of pairs."""
        name = self.pick(tuple(PAIRS))
        if PAIRS[name] not in self.lines:
            self.lines.append(PAIRS[name])
        reduced = self._reduce_axes(shape)
        over = [*axes, *reduced]
        value = tamed(self.expr(over, 1))
        # The maximum of NaN is not defined, so dtypes without NaN are used.
        if value.dtype == "bool" or (self.has_ends and value.dtype in FLOATS):
            value = as_type(value, "int8")
        if name == "argmax":
            first = Value(f'te.cast({reduced[-1].name}, "int32")', *_whole("int32"))
            reduced = reduced[-1:]
            value = tamed(as_type(self.expr([*axes, *reduced], 1), value.dtype))
            results = first, Value("", *_whole(value.dtype))
        else:
            first = tamed(as_type(self.expr(over, 1), "int32"))
            value = as_type(value, self.pick(("int32", "int64", "int16")))
            results = Value("", *_whole("int32")), Value("", *_whole(value.dtype))
        where = f", where={self.condition([*axes, *reduced], 1).text}" if self.chance(25) else ""
        variables = ", ".join(axis.variable for axis in reduced)
        text = f"{name}(({first.text}, {value.text}), axis=[{variables}]{where})"
        self._define(shape, axes, text, results)

    def _scan(self, shape: tuple[Extent, ...], axes: Sequence[Axis]) -> None:
        """Draw a scan over the first axis; steps are clipped, so that values stay small."""
        if not shape or shape[0] == 0:
            return self._elementwise(shape, axes)
        names = [self.fresh("S") for _ in range(self.pick((1, 1, 2)))]
        types = [self.pick(("int32", "float32", "int8")) for _ in names]
        first = 1 if shape[0] == 1 else self.number(1, 2)
        for name, dtype in zip(names, types, strict=True):
            self.lines.append(
                f'{name}_state = te.placeholder({shape_text(shape)}, "{dtype}", name="{name}_state")'
            )
        starts, steps = [], []
        for name, dtype in zip(names, types, strict=True):
            time, *places = axes
            begin = as_type(tamed(self.expr([Axis(time.name, first), *places], 1)), dtype)
            old = [self._state(*self.pick([*zip(names, types, strict=True)]), first, shape, axes)
                   for _ in range(self.number(1, len(names)))]
            value = as_type(tamed(self.expr(axes, 1)), dtype)
            for item in old:
                value = tamed(arithmetic("+", as_type(item, dtype), value))
            parameters = ", ".join(axis.name for axis in axes)
            many = shape_text((first, *shape[1:]))
            starts.append(f'te.compute({many}, lambda {parameters}: {begin.text}, '
                          f'name="{name}_start")')
            steps.append(f'te.compute({shape_text(shape)}, lambda {parameters}: {value.text}, '
                         f'name="{name}_step")')
        states = ", ".join(f"{name}_state" for name in names)
        self.lines.append(
            f"{', '.join(names)} = te.scan(\n    [{', '.join(starts)}],\n    [{', '.join(steps)}],\n"
            f'    [{states}], name="{names[0]}",\n)'
        )
        self.tensors += [
            Known(name, shape, Value("", dtype, -8, 8))
            for name, dtype in zip(names, types, strict=True)
        ]
        return None

    def _state(
        self, name: str, dtype: str, first: int, shape: Sequence[Extent], axes: Sequence[Axis]
    ) -> Value:
        """Draw a read of an earlier step of a scan."""
        time, *places = axes
        at = [place.name for place in places]
        if places and self.chance(30):
            extent = shape[1]
            at[0] = f"{extent} - 1 - {at[0]}" if self.chance(50) else f"te.max({at[0]} - 1, 0)"
        read = f"{name}_state[{', '.join([f'{time.name} - {self.number(1, first)}', *at])}]"
        return Value(read, dtype, -8, 8)

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


def _whole(dtype: str) -> tuple[str, float, float]:
    return dtype, *full_range(dtype)


def _reduced(kind: str, value: Value, terms: int) -> tuple[Value, float, float]:
    """Return the value to reduce, converted or clipped if necessary, and the result bounds."""
    least, most = full_range(value.dtype)
    is_float = value.dtype in FLOATS
    if kind == "sum":
        if is_float and terms > most:
            # Even a sum of ones would be rounded, depending on the order of evaluation.
            return _reduced(kind, as_type(value, "float32"), terms)
        if is_float and max(-value.low, value.high) * terms > most // 2:
            value = tamed(value, max(1, min(8, int(most // (2 * max(terms, 1))))))
        if not terms:
            return value, 0, 0
        low, high = min(value.low * terms, 0), max(value.high * terms, 0)
        return value, max(low, least), min(high, most)
    if kind == "prod":
        return (tamed(value, 1), -1, 1) if is_float else (value, least, most)
    # An empty reduction gives the identity: the minimum or maximum of the dtype.
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


def draw_program(
    draw: Draw | Dice, *, most_stages: int = 5, has_sizes: bool = True
) -> Program:
    """Draw a computation of up to `most_stages` stages, with symbolic sizes if `has_sizes`."""
    return _drawn(Maker(draw), most_stages, has_sizes=has_sizes)


MANY_SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 23, 24, 29, 31, 32, 33, 37)


def draw_program_of_sizes(draw: Draw | Dice) -> Program:
    """Draw a computation with size variables, 20 values for each of them.

    Every size variable is an extent of an input.
    """
    maker = Maker(draw, most_elements=1400, most_terms=3000)
    program = _drawn(maker, 6, has_sizes=True, values=MANY_SIZES)
    names = program.define()
    read = [name for name in program.inputs if f"{name}[" in program.source]
    extents = [extent for name in read for extent in names[name].shape]
    lines, inputs, outputs = [program.source], dict(program.inputs), [*program.outputs]
    for name in program.sizes:
        if not any(extent is names[name] for extent in extents):
            lines.append(f'I{name} = te.placeholder(({name},), "int32", name="I{name}")\n')
            lines.append(f'O{name} = te.compute(({name},), lambda i: I{name}[i], name="O{name}")\n')
            inputs[f"I{name}"] = -8, 8
            outputs.append(f"O{name}")
    return Program("".join(lines), inputs, tuple(outputs), program.sizes)


def _drawn(
    maker: Maker, most_stages: int, *, has_sizes: bool, values: tuple[int, ...] = ()
) -> Program:
    maker.has_ends = maker.chance(15)
    if has_sizes and (values or maker.chance(70)):
        dtype = "int64" if maker.chance(15) else "int32"
        for name in ("n", "m")[: maker.number(1, 2)]:
            maker.sizes[name] = tuple(maker.shuffled(values)) or (
                maker.pick((3, 2, 5, 8, 7, 11)), maker.pick((1, 0, 4)),
                maker.pick((6, 3, 1, 0, 10, 2)),
            )
            maker.lines.append(f'{name} = te.var("{name}", "{dtype}")')
    for _ in range(min(maker.pick((1, 2, 3, 1, 2, 5)), most_stages)):
        maker.stage()
    body = "\n".join(maker.lines)
    computed = [t.name for t in maker.tensors if t.name not in maker.inputs]
    read = {name for name in computed if body.count(f"{name}[") > 0}
    expected = [name for name in computed if name not in read or maker.chance(7)]
    return Program(body + "\n", maker.inputs, tuple(expected), maker.sizes)
