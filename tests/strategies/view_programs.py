"""Random functions on memory with views, layout maps and several physical axes, and a NumPy model.

The model stores each memory as bytes: one row, or one row for each index of the leading physical
axes. A view is a dtype and a shape whose elements are numbered within these rows. The model has no
layout maps, because they only change where the elements of a memory are stored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from tecomp import te
from tecomp.codegen import Kernel
from tecomp.errors import LowerError
from tecomp.ir import Buffer, PrimFunc, evaluate, parse, verify
from tecomp.lowering import PASSES
from tests.strategies.arrays import Guarded, assert_equal, garbage
from tests.strategies.draws import Dice, Draw, Draws
from tests.strategies.layouts import draw_layout, function_of, pack
from tests.strategies.reference import number

Array: TypeAlias = NDArray[Any]
Sizes: TypeAlias = "Mapping[str, int]"

_DTYPES = ("int32", "float32", "int8", "int64", "uint8", "float64")
_SAME_BYTES = {"int32": "uint32", "uint8": "int8", "int8": "uint8", "int64": "uint64"}
_WIDER = {"int8": "int32", "uint8": "int16", "int32": "int64"}
_SIZES: tuple[Sizes, ...] = ({"n": 3, "m": 2}, {"n": 1, "m": 5}, {"n": 0, "m": 4})
_OPERATIONS = {"+": np.add, "-": np.subtract, "max": np.maximum, "min": np.minimum}


def _value(text: str, values: Mapping[str, Any]) -> int:
    """Evaluate the text of an index or an extent."""
    return int(eval(text, {"cast": _to_int64}, values))


def _to_int64(_: str, value: int) -> int:
    """Wrap a number to a signed 64-bit integer, the only dtype to which indices are cast."""
    return (value + 2**63) % 2**64 - 2**63


def _symbols(extents: Sequence[str]) -> set[str]:
    return {name for extent in extents for name in ("n", "m") if name in extent}


def _tuple(parts: Sequence[object]) -> str:
    return "(" + "".join(f"{part}, " for part in parts)[: -1 if len(parts) == 1 else -2] + ")"


@dataclass(frozen=True)
class View:
    """Buffer of a memory, or view of the memory.

    Attributes:
        name: Name in the text.
        memory: Name of the memory.
        extents: Extent of each axis, as text.
        dtype: dtype of one lane.
        lanes: Lanes of an element.
        separators: Axis separators as in the text.
        cut: Number of leading axes that select a row.
        offset: Elements of the memory before the first element, as text.
    """

    name: str
    memory: str
    extents: tuple[str, ...]
    dtype: str
    lanes: int = 1
    separators: tuple[int, ...] = ()
    cut: int = 0
    offset: str = ""

    @property
    def element(self) -> str:
        """Dtype of an element, with its lanes."""
        return self.dtype if self.lanes == 1 else f"{self.dtype}x{self.lanes}"

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.dtype).itemsize * self.lanes

    def text(self, more: str = "") -> str:
        """Return the text of the declaration."""
        cuts = f", axis_separators={_tuple(self.separators)}" if self.separators else ""
        start = f", elem_offset={self.offset}" if self.offset else ""
        return f'Buffer("{self.element}", {_tuple(self.extents)}{cuts}{start}{more})'


@dataclass(frozen=True)
class Memory:
    """Memory of a parameter or of an allocation, with its layout maps as text."""

    buffer: View
    kind: str
    maps: tuple[str, ...] = ()

    def table(self, sizes: Sizes) -> Array:
        """Return the bytes of the memory in the model."""
        shape = [_value(extent, sizes) for extent in self.buffer.extents]
        cut = self.buffer.cut
        row = math.prod(shape[cut:]) * self.buffer.bytes
        return np.zeros((math.prod(shape[:cut]), row), np.uint8)


@dataclass(frozen=True)
class Store:
    """Loops around a store of a value that combines two loads and a constant.

    Attributes:
        target: Buffer that is written.
        loops: Variable, extent and kind of each loop.
        place: Indices of the store.
        loads: Buffers and indices of the loads.
        operation: Operation that combines the operands.
        constant: Constant operand, as text.
        condition: Condition of the store, as text.
    """

    target: View
    loops: tuple[tuple[str, str, str], ...]
    place: tuple[str, ...]
    loads: tuple[tuple[View, tuple[str, ...]], ...]
    operation: str
    constant: str
    condition: str = ""

    def lines(self, indent: str) -> Iterator[str]:
        """Yield the lines of the text."""
        for name, extent, kind in self.loops:
            yield f"{indent}for {name} in {kind}({extent}):"
            indent += "    "
        if self.condition:
            yield f"{indent}if {self.condition}:"
            indent += "    "
        yield f"{indent}{_access(self.target, self.place)} = {self._expression()}"

    def _expression(self) -> str:
        kind, lanes = self.target.element, self.target.lanes
        number = f'cast("{self.target.dtype}", {self.constant})'
        parts = [number if lanes == 1 else f"broadcast({number}, {lanes})"]
        for view, indices in self.loads:
            access = _access(view, indices)
            parts.append(access if view.element == kind else f'cast("{kind}", {access})')
        text = parts[0]
        for part in parts[1:]:
            word = self.operation
            text = f"{word}({text}, {part})" if word in ("max", "min") else f"{text} {word} {part}"
        return text

    def run(self, buffers: Sequence[View], tables: Mapping[str, Array], sizes: Sizes) -> None:
        """Execute the loops in the model."""
        numbers = {view.name: _Numbers(tables, view, sizes) for view in buffers}
        extents = [range(_value(extent, sizes)) for _, extent, _ in self.loops]
        names = [name for name, _, _ in self.loops]
        combine = _OPERATIONS[self.operation]
        for point in itertools.product(*extents):
            values = {**sizes, **numbers, **dict(zip(names, point, strict=True))}
            if self.condition and not eval(self.condition, {}, values):
                continue
            kind = np.dtype(self.target.dtype)
            result = np.full(self.target.lanes, eval(self.constant, {}, values), np.int64)
            result = result.astype(kind)
            for view, indices in self.loads:
                result = combine(result, _element(tables, view, indices, values).astype(kind))
            _element(tables, self.target, self.place, values)[...] = result


@dataclass(frozen=True)
class _Numbers:
    """Buffer that is read in an index."""

    tables: Mapping[str, Array]
    view: View
    sizes: Sizes

    def __getitem__(self, at: int | tuple[int, ...]) -> int:
        indices = [str(k) for k in (at if isinstance(at, tuple) else (at,))]
        return int(_element(self.tables, self.view, indices, self.sizes)[0])


def _access(view: View, indices: Sequence[str]) -> str:
    return f"{view.name}[{', '.join(indices) or '()'}]"


def _element(
    tables: Mapping[str, Array], view: View, indices: Sequence[str], values: Mapping[str, Any]
) -> Array:
    """Return a writable view of the lanes of an element in the model."""
    shape = [_value(extent, values) for extent in view.extents]
    at = [_value(index, values) for index in indices]
    assert all(0 <= k < extent for k, extent in zip(at, shape, strict=True)), (view, indices)
    row, column = (
        int(np.ravel_multi_index(at[part], shape[part])) if shape[part] else 0
        for part in (slice(view.cut), slice(view.cut, None))
    )
    table = tables[view.memory]
    column += _value(view.offset, values) if view.offset else 0
    return table[row, column * view.bytes : (column + 1) * view.bytes].view(view.dtype)


@dataclass
class Maker(Draws):
    """Generator of a function, line by line."""

    memories: list[Memory] = field(default_factory=list)
    buffers: list[View] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    indent: str = "    "

    def make(self) -> None:
        self.symbolic = self.chance(40)
        for k in range(self.number(1, 3)):
            self._memory("ABC"[k], "param")
        for memory in list(self.memories):
            self._views(memory)
        for k in range(self.number(0, 2)):
            memory = self._memory(f"T{k}", self.pick(("Allocate", "BufferRealize")))
            self._open(memory)
            self._store(memory.buffer, is_first=True)
            self._views(memory)
        for _ in range(self.number(1, 4)):
            self._store(self.pick(self.buffers))

    def _memory(self, name: str, kind: str) -> Memory:
        extents = tuple(self._extent() for _ in range(self.number(0, 3)))
        dtype, cut = self.pick(_DTYPES), 0
        separators: tuple[int, ...] = ()
        maps: list[str] = []
        if extents and self.chance(50):
            maps, separators = self._maps(extents)
        elif not extents and self.chance(20):
            maps = ["lambda: []"]
        elif len(extents) >= 2 and self.chance(50):
            separators = tuple(k for k in range(len(extents) - 1) if self.chance(60))
            cut = separators[-1] + 1 if separators else 0
        buffer = View(name, name, extents, dtype, separators=separators, cut=cut)
        memory = Memory(buffer, kind, tuple(maps))
        self.memories.append(memory)
        self.buffers.append(buffer)
        return memory

    def _extent(self) -> str:
        if self.symbolic and self.chance(30):
            return self.pick(("n", "m", "n * 2"))
        return str(self.pick((4, 2, 3, 8, 1, 5, 6, 12)))

    def _maps(self, extents: Sequence[str]) -> tuple[list[str], tuple[int, ...]]:
        shape = [int(e) if e.isdigit() else None for e in extents]
        text = draw_layout(self.draw, shape, separated=self.chance(40))
        if "^" in text and None in shape:
            text = draw_layout(Dice(), shape)  # bit operations need constant extents
        results = function_of(text)(*(te.var(f"v{k}") for k in range(len(extents))))
        cuts = [k for k, result in enumerate(results) if result is te.AXIS_SEPARATOR]
        return [text], tuple(at - k - 1 for k, at in enumerate(cuts))

    def _open(self, memory: Memory) -> None:
        """Open the `with` block that allocates a memory."""
        more = ""
        if memory.kind == "BufferRealize":
            more = f", bounds={_tuple([f'(0, {extent})' for extent in memory.buffer.extents])}"
        self._with(f"{memory.kind}({memory.buffer.text()}{more})", memory.buffer.name)

    def _with(self, subject: str, name: str) -> None:
        self.lines.append(f"{self.indent}with {subject} as {name}:")
        self.indent += "    "

    def _views(self, memory: Memory) -> None:
        for _ in range(self.number(0, 2)):
            view = self._view(memory, f"V{len(self.buffers)}")
            self.buffers.append(view)
            self._with(f"DeclBuffer({view.text(f', data={memory.buffer.name}.data')})", view.name)

    def _view(self, memory: Memory, name: str) -> View:
        base = memory.buffer
        if self.chance(15):
            return View(name, base.name, base.extents, base.dtype, 1, base.separators, base.cut)
        dtype, lanes, divisor = base.dtype, 1, 1
        if dtype in _SAME_BYTES and self.chance(30):
            dtype = _SAME_BYTES[dtype]
        elif not memory.maps and self.chance(30):
            lanes = divisor = self.pick((2, 4, 3))
        elif not memory.maps and dtype in _WIDER and self.chance(30):
            dtype = _WIDER[dtype]
            divisor = np.dtype(dtype).itemsize // np.dtype(base.dtype).itemsize
        outer = self._shape(base.extents[: base.cut], 1)
        inner = self._shape(base.extents[base.cut :], divisor)
        if inner is None or outer is None:
            return View(name, base.name, base.extents, base.dtype, 1, base.separators, base.cut)
        # A view has the same number of axis groups as its memory.
        separators = base.separators
        if base.cut:
            while len(outer) < len(base.separators):
                outer = ("1", *outer)
            inner = inner or ("1",)
            cuts = [*range(len(base.separators) - 1), len(outer) - 1]
            separators = tuple(cuts)
        cut = len(outer) if base.cut else 0
        offset = "" if base.separators else self._offset(base.extents, inner, divisor)
        return View(name, base.name, (*outer, *inner), dtype, lanes, separators, cut, offset)

    def _offset(self, extents: Sequence[str], shape: Sequence[str], divisor: int) -> str:
        """Draw the offset of a view of this shape in a memory; an empty string for most views."""
        ones = {"n": 1, "m": 1}
        symbols = [e for e in extents if not e.isdigit()]
        count = math.prod(int(e) for e in extents if e.isdigit()) // divisor
        count *= math.prod(_value(e, ones) for e in symbols)
        most = count - math.prod(_value(e, ones) for e in shape)
        if most == 0 and self.chance(80):
            return ""
        return " * ".join([str(self.number(0, most)), *(e[0] for e in symbols)])

    def _shape(self, extents: Sequence[str], divisor: int) -> tuple[str, ...] | None:
        """Draw a shape with at most the elements of `extents` divided by `divisor`; None if empty."""
        symbols = [e for e in extents if not e.isdigit()]
        count = math.prod(int(e) for e in extents if e.isdigit()) // divisor
        if count == 0:
            return None
        if self.chance(25):
            count = self.number(1, count)
        parts: list[str] = []
        while count > 1 and len(parts) < 2:
            factor = self.pick([k for k in range(1, count + 1) if count % k == 0])
            parts.append(str(factor))
            count //= factor
        if count > 1 or not parts:
            parts.append(str(count))
        if symbols and self.chance(60):
            merged = " * ".join(f"({symbol})" if " " in symbol else symbol for symbol in symbols)
            at = self.number(0, len(parts) - 1)
            parts[at] = f"{merged} * {parts[at]}"
            return tuple(parts)
        return tuple(self.shuffled([*parts, *symbols]))

    def _store(self, target: View, *, is_first: bool = False) -> None:
        is_free = is_first or self.chance(60)
        names = "ijklopqrstuw"
        if is_free:
            loops = [(names[k], extent) for k, extent in enumerate(target.extents)]
            place = tuple(name for name, _ in loops)
            loops = self.shuffled(loops)
        else:
            loops = [(names[k], str(self.number(1, 5))) for k in range(self.number(0, 2))]
            if missing := sorted(_symbols(target.extents)):
                loops += [(names[2 + k], symbol) for k, symbol in enumerate(missing)]
            place = self._indices(target, loops)
        symbols = _symbols(target.extents)
        readers = [b for b in self.buffers if _symbols(b.extents) <= symbols
                   and not (is_free and b.memory == target.memory)]
        allowed = [
            b for b in readers
            if b.lanes == target.lanes
            and not (b.dtype.startswith("float") and not target.dtype.startswith("float"))
        ]
        tables = [b for b in readers if b.lanes == 1 and "int" in b.dtype]
        loads = tuple(
            (b, self._gathered(b, tables, loops))
            for b in (self.pick(allowed) for _ in range(self.number(0, 2 if allowed else 0)))
        )
        condition = ""
        if loops and not is_first and self.chance(25):
            condition = f"{loops[-1][0]} {self.pick(('<', '!=', '>='))} {self.number(0, 3)}"
        constant = " + ".join([str(self.number(-3, 9)), *(name for name, _ in loops)])
        self._add(Store(
            target, self._kinds(loops, is_free=is_free), place, loads,
            self.pick(tuple(_OPERATIONS)), constant, condition,
        ))

    def _kinds(
        self, loops: Sequence[tuple[str, str]], *, is_free: bool
    ) -> tuple[tuple[str, str, str], ...]:
        kinds = []
        for k, (name, extent) in enumerate(loops):
            kind = "range"
            if extent.isdigit() and int(extent) <= 4 and self.chance(15):
                kind = "unrolled"
            elif is_free and k == len(loops) - 1 and self.chance(40):
                kind = "vectorized"
            elif is_free and k == 0 and self.chance(15):
                kind = "parallel"
            kinds.append((name, extent, kind))
        return tuple(kinds)

    def _gathered(
        self, view: View, tables: Sequence[View], loops: Sequence[tuple[str, str]]
    ) -> tuple[str, ...]:
        """Draw indices, of which one may be read from memory."""
        indices = [*self._indices(view, loops)]
        if indices and tables and self.chance(15):
            at, table = self.number(0, len(indices) - 1), self.pick(tables)
            number = _access(table, self._indices(table, loops))
            widened = number if table.dtype == "int64" else f'cast("int64", {number})'
            indices[at] = f"{widened} % ({view.extents[at]})"
        return tuple(indices)

    def _indices(self, view: View, loops: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        return tuple(self._index(extent, loops) for extent in view.extents)

    def _index(self, extent: str, loops: Sequence[tuple[str, str]]) -> str:
        same = [name for name, other in loops if other == extent]
        if same and self.chance(60):
            return self.pick(same)
        terms = [str(self.number(0, 3))]
        for name, _ in loops:
            if self.chance(50):
                terms.append(f"{name} * {self.number(1, 3)}")
        if extent.isdigit() and len(terms) == 1:
            return str(int(terms[0]) % int(extent))
        return f"({' + '.join(terms)}) % ({extent})"

    def _add(self, store: Store) -> None:
        self.stores.append(store)
        self.lines += store.lines(self.indent)


@dataclass
class ViewProgram:
    """Random function as text, with its model."""

    text: str
    memories: list[Memory]
    buffers: list[View]
    stores: list[Store]
    is_symbolic: bool
    checks_bounds: bool
    wrong: str = ""

    def check(self) -> None:
        """Check the interpreter after each pass, and the kernel, against the model."""
        if self.wrong:
            self._check_wrong()
        func = parse(self.text)
        assert parse(str(func)) == func
        verify(func)
        functions = {"text": func}
        for step in PASSES:
            func = step.run(func)
            verify(func, flat=step.flat)
            functions[step.name] = func
        signature = functions["apply_buffer_transforms"].params
        kernel = Kernel(func, signature, check_bounds=self.checks_bounds)
        for sizes in _SIZES if self.is_symbolic else _SIZES[:1]:
            self._check(functions, kernel, sizes)

    def _check_wrong(self) -> None:
        """Check that an incompatible view is rejected by name before the function runs."""
        func = parse(self.wrong)

        def lowered() -> None:
            reduce(lambda result, step: step.run(result), PASSES, func)

        with pytest.raises(LowerError) as error:
            lowered()
        assert error.value.kind == "lower"
        assert any(value == "X" or "`X`" in str(value) for value in error.value.parameters.values())

    def _check(self, functions: Mapping[str, PrimFunc], kernel: Kernel, sizes: Sizes) -> None:
        before, reference = self._model(sizes)
        stored = self._stored(functions["apply_buffer_transforms"], before, sizes)
        expected = self._stored(functions["apply_buffer_transforms"], reference, sizes)
        numbers = [sizes["n"], sizes["m"]]
        last = None
        for name, func in functions.items():
            if func == last:
                continue
            last = func
            source, right = (before, reference) if name == "text" else (stored, expected)
            arrays = [array.copy() for array in source]
            shaped = [
                array.reshape([number(extent, self._values(func, sizes)) for extent in param.shape])
                for array, param in zip(arrays, func.params, strict=False)
                if isinstance(param, Buffer)
            ]
            evaluate(func, [*shaped, *numbers])
            self._compare(arrays, right, f"interpreted after {name}, {sizes}")
        guarded = [Guarded(array) for array in stored]
        kernel(*(item.array for item in guarded), *numbers)
        for item in guarded:
            item.check()
        self._compare([item.array for item in guarded], expected, f"the kernel, {sizes}")

    def _values(self, func: PrimFunc, sizes: Sizes) -> dict[Any, int]:
        return {p: sizes[p.name] for p in func.params if not isinstance(p, Buffer)}

    def _compare(self, actual: Sequence[Array], expected: Sequence[Array], name: str) -> None:
        for memory, a, b in zip(self.memories, actual, expected, strict=False):
            assert_equal(a, b, f"{memory.buffer.name}, {name}")

    def _model(self, sizes: Sizes) -> tuple[list[Array], list[Array]]:
        """Return the parameter arrays before and after the call, in the shapes of the text."""
        tables = {memory.buffer.name: memory.table(sizes) for memory in self.memories}
        params = [memory for memory in self.memories if memory.kind == "param"]
        random = np.random.default_rng(7)
        for memory in params:
            table = tables[memory.buffer.name]
            kind = np.dtype(memory.buffer.dtype)
            count = table.nbytes // kind.itemsize
            numbers = random.integers(0, 100, count).astype(kind)
            table[...] = numbers.view(np.uint8).reshape(table.shape)
        before = [self._array(memory, tables, sizes) for memory in params]
        with np.errstate(all="ignore"):
            for store in self.stores:
                store.run(self.buffers, tables, sizes)
        return before, [self._array(memory, tables, sizes) for memory in params]

    def _array(self, memory: Memory, tables: Mapping[str, Array], sizes: Sizes) -> Array:
        shape = [_value(extent, sizes) for extent in memory.buffer.extents]
        table = tables[memory.buffer.name].copy()
        return np.frombuffer(table.tobytes(), memory.buffer.dtype).reshape(shape).copy()

    def _stored(self, func: PrimFunc, arrays: Sequence[Array], sizes: Sizes) -> list[Array]:
        """Return the arrays in their mapped layouts; padding positions hold garbage."""
        values, found = self._values(func, sizes), []
        for memory, array, param in zip(self.memories, arrays, func.params, strict=False):
            assert isinstance(param, Buffer)
            place = garbage([number(extent, values) for extent in param.shape], array.dtype)
            maps = [text for text in memory.maps if text != "lambda: []"]
            pack(maps, array, place)
            found.append(place)
        return found


def draw_view_program(draw: Draw | Dice) -> ViewProgram:
    """Draw a random function."""
    maker = Maker(draw)
    maker.make()
    maps = ", ".join(
        f"{memory.buffer.name}=[{', '.join(memory.maps).replace('te.AXIS', 'AXIS')}]"
        for memory in maker.memories if memory.maps
    )
    params = [
        f"{memory.buffer.name}: {memory.buffer.text()}"
        for memory in maker.memories if memory.kind == "param"
    ]
    head = f"def f({', '.join(params)}, n: \"int64\", m: \"int64\"):"
    decorator = f"@layout_transform_map({maps})\n" if maps else ""
    text = f"{decorator}{head}\n" + "\n".join(maker.lines) + "\n"
    wrong = _wrong(maker)
    return ViewProgram(
        text, maker.memories, maker.buffers, maker.stores, maker.symbolic,
        checks_bounds=maker.chance(25),
        wrong=f"{decorator}{head}\n{wrong}" + "\n".join(maker.lines) + "\n" if wrong else "",
    )


def _wrong(maker: Maker) -> str:
    """Draw lines with an invalid view X; the text is empty for most functions."""
    memory = maker.pick([item for item in maker.memories if item.kind == "param"])
    base, several = memory.buffer, len(memory.buffer.separators) > 0
    if not base.extents or _symbols(base.extents) or not maker.chance(25):
        return ""
    first, *others = base.extents
    wide = View("X", base.name, base.extents, base.dtype, 2, base.separators)
    longer = View("X", base.name, (str(int(first) + 1), *others), base.dtype, 1, base.separators)
    count = str(math.prod(int(extent) for extent in base.extents))
    flat = View("X", base.name, (count,), base.dtype)
    view = maker.pick((wide, longer, flat) if several else (wide, longer))
    number = f'cast("{view.dtype}", 1)'
    value = number if view.lanes == 1 else f"broadcast({number}, {view.lanes})"
    place = ", ".join("0" for _ in view.extents)
    return (
        f"    with DeclBuffer({view.text(f', data={base.name}.data')}) as X:\n"
        f"        X[{place}] = {value}\n"
    )
