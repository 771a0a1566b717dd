"""Random programs of arrays with shared elements, checked against a model of the documented rules.

The model has flat NumPy arrays and, for each array of a program, the positions of its elements in
one flat array. Views have positions in the same flat array; every other operation makes a new flat
array. External owners write to their memory between operations. The model does not depend on which
arrays were evaluated or printed before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tecomp.array import Array
from tests.strategies.draws import Draws

Buffer = np.ndarray[Any, Any]
_SHAPES: tuple[tuple[int, ...], ...] = ((12,), (3, 4), (4, 3), (2, 3, 2), (4,), (1, 5), (6, 1), ())


@dataclass
class Value:
    """Array of a program with the positions of its elements in a flat array of the model."""

    ours: Array
    base: Buffer
    places: Buffer

    @property
    def expected(self) -> Buffer:
        """Copy of the expected elements."""
        found: Buffer = self.base[self.places]
        return np.asarray(found)


@dataclass
class Foreign:
    """Memory of an external owner that writes to it; `is_lent` if an array borrows it."""

    data: Buffer
    expected: Buffer
    is_lent: bool = False


@dataclass
class Program:
    """Random program with its model."""

    draws: Draws
    text: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    foreign: list[Foreign] = field(default_factory=list)
    exported: list[tuple[Buffer, Buffer]] = field(default_factory=list)

    def run(self, steps: int) -> None:
        """Draw `steps` operations and check the result."""
        self.dtype = self.draws.pick(("float64", "int64", "float32"))
        self.create()
        kinds: tuple[Callable[[], None], ...] = (
            self.create, self.borrow, self.borrow, self.owner_writes, self.owner_writes,
            self.view, self.view, self.view, self.view, self.copy, self.compute, self.compute,
            self.assign, self.assign, self.assign, self.assign_elements, self.change_in_place,
            self.change_in_place, self.drop, self.drop, self.read, self.read, self.export,
        )
        for _ in range(steps):
            self.draws.pick(kinds)()
        self.check()

    def check(self) -> None:
        """Compare all arrays with the model."""
        for foreign in self.foreign:
            np.testing.assert_array_equal(foreign.data, foreign.expected)
        for value in self.draws.shuffled(self.values):
            np.testing.assert_array_equal(np.asarray(value.ours), value.expected)
        for data, expected in self.exported:
            np.testing.assert_array_equal(data, expected)

    def note(self, text: str) -> None:
        """Add a line to the text of the program."""
        self.text.append(text)

    def name(self, value: Value) -> str:
        """Return the name of a value in the text."""
        return f"v{[id(item) for item in self.values].index(id(value))}"

    def pick(self) -> Value:
        """Draw one of the values."""
        return self.draws.pick(self.values)

    def keep(self, actual: Array, base: Buffer, places: Buffer, text: str) -> None:
        """Add a value; it replaces another one if there are ten already."""
        assert actual.shape == places.shape, (actual.shape, places.shape, text)
        value = Value(actual, base, places)
        if len(self.values) > 9:
            self.values[self.draws.below(len(self.values))] = value
        else:
            self.values.append(value)
        self.note(f"{self.name(value)} = {text}")

    def fresh(self, actual: Array, elements: Any, text: str) -> None:
        """Add a value that shares no elements."""
        elements = np.asarray(elements)
        base = elements.reshape(-1).copy()
        self.keep(actual, base, np.arange(base.size).reshape(elements.shape), text)

    def numbers(self, shape: tuple[int, ...]) -> Buffer:
        """Draw a NumPy array with one of several memory layouts."""
        size = int(np.prod(shape))
        data = (np.arange(size) + 100 * self.draws.below(10)).astype(self.dtype).reshape(shape)
        way = self.draws.below(5)
        if way == 1:
            return np.asfortranarray(data)
        if way == 2 and shape:
            return np.repeat(data, 2, axis=-1)[..., ::2]
        if way == 3 and shape:
            return np.flip(data).copy()[(slice(None, None, -1),) * len(shape)]
        if way == 4 and shape:
            return np.lib.stride_tricks.as_strided(data, shape, (0, *data.strides[1:]))
        return data

    def create(self) -> None:
        """Create an array that owns its memory."""
        shape = self.draws.pick(_SHAPES)
        size = int(np.prod(shape))
        match self.draws.below(4):
            case 0:
                self.fresh(xp.zeros(shape, dtype=self.dtype), np.zeros(shape, self.dtype), f"zeros{shape}")
            case 1:
                actual = xp.reshape(xp.arange(size, dtype=self.dtype), shape)
                self.fresh(actual, np.arange(size, dtype=self.dtype).reshape(shape), f"arange{shape}")
            case 2:
                row = np.arange(shape[-1] if shape else 1).astype(self.dtype)
                actual = xp.broadcast_to(xp.asarray(row.tolist(), dtype=self.dtype), (3, row.size))
                self.fresh(actual, np.broadcast_to(row, (3, row.size)), f"broadcast (3, {row.size})")
            case _:
                data = np.arange(size).astype(self.dtype).reshape(shape)
                self.fresh(xp.asarray(data.tolist(), dtype=self.dtype), data, f"numbers{shape}")

    def borrow(self) -> None:
        """Create an array from memory that its owner can write."""
        data = self.numbers(self.draws.pick(_SHAPES))
        read_only = data.view()
        read_only.flags.writeable = False
        ways: tuple[tuple[str, Callable[[], Array], bool], ...] = (
            ("asarray(f)", lambda: xp.asarray(data), False),
            ("asarray(f, dtype)", lambda: xp.asarray(data, dtype=self.dtype), False),
            ("asarray(f, copy=True)", lambda: xp.asarray(data, copy=True), False),
            ("asarray(read-only f)", lambda: xp.asarray(read_only), False),
            ("from_dlpack(f)", lambda: xp.from_dlpack(data), False),
            ("astype(asarray(f, float64))",
             lambda: xp.astype(xp.asarray(data, dtype="float64"), self.dtype), False),
            ("gather(asarray(f, team))", lambda: xp.gather(xp.asarray(data, team=dist.world())), False),
            ("from_local(f).to_local()",
             lambda: xp.from_local(data, dist.world()).to_local(), False),
            ("asarray(f, copy=False)", lambda: xp.asarray(data, copy=False), True),
        )
        text, make, is_lent = self.draws.pick(ways if data.ndim else ways[:6])
        foreign = Foreign(data, data.copy(), is_lent)
        self.foreign.append(foreign)
        self.fresh(make(), data, f"{text}: f{len(self.foreign) - 1}, strides {data.strides}")

    def owner_writes(self) -> None:
        """Let owners write to their memory, unless it is lent."""
        free = [k for k, foreign in enumerate(self.foreign) if not foreign.is_lent]
        if not free:
            return
        at = self.draws.pick(free)
        number = 7000 + self.draws.below(1000)
        self.foreign[at].data[...] = number
        self.foreign[at].expected[...] = number
        self.note(f"f{at}[...] = {number}")

    def key(self, shape: tuple[int, ...]) -> Any:
        """Draw an index of integers, slices, new axes and an ellipsis."""
        parts: list[Any] = []
        for extent in shape[: self.draws.number(0, len(shape))]:
            way = self.draws.below(10)
            if extent and way < 3:
                kind = self.draws.pick((int, np.int64, np.int32))
                parts.append(kind(self.draws.number(-extent, extent - 1)))
            else:
                parts.append(self.draws.pick((
                    slice(None), slice(1, None), slice(None, -1), slice(None, None, 2),
                    slice(None, None, -1), slice(None, None, -2), slice(1, 3), slice(np.int64(1), None),
                )))
            if way == 9:
                parts.insert(self.draws.below(len(parts) + 1), None)
        if self.draws.chance(20) and len([part for part in parts if part is not None]) < len(shape):
            parts.append(Ellipsis)
        return tuple(parts)

    def view(self) -> None:
        """Create a view of an array."""
        value = self.pick()
        actual, places, rank = value.ours, value.places, value.places.ndim
        order = tuple(self.draws.shuffled(range(rank)))
        way = self.draws.below(9)
        at = self.draws.below(rank + 1)
        name = self.name(value)
        if way in (0, 1, 2):
            self.index(value)
        elif way == 3:
            self.keep(xp.permute_dims(actual, order), value.base, places.transpose(order),
                      f"permute_dims({name}, {order})")
        elif way == 4:
            self.keep(xp.expand_dims(actual, axis=at), value.base, np.expand_dims(places, at),
                      f"expand_dims({name}, {at})")
        elif way == 5:
            axes = tuple([k for k, n in enumerate(places.shape) if n == 1])
            self.keep(xp.squeeze(actual, axis=axes), value.base, places.squeeze(axes),
                      f"squeeze({name}, {axes})")
        elif way == 6 and rank >= 2:
            transposed = xp.matrix_transpose(actual) if self.draws.chance(50) else actual.mT
            self.keep(transposed, value.base, places.swapaxes(-1, -2), f"{name}.mT")
        elif way == 7 and rank:
            self.keep(xp.moveaxis(actual, 0, -1), value.base, np.moveaxis(places, 0, -1),
                      f"moveaxis({name}, 0, -1)")
        else:
            self.reshape(value)

    def index(self, value: Value) -> None:
        """Index an array; a single element without an ellipsis is a new array."""
        key = self.key(value.places.shape)
        found = value.places[key]
        text = f"{self.name(value)}[{key}]"
        if isinstance(found, np.ndarray):
            self.keep(value.ours[key], value.base, found, text)
        else:
            self.fresh(value.ours[key], value.base[found], text)

    def reshape(self, value: Value) -> None:
        """Reshape an array."""
        size, shape = value.places.size, value.places.shape
        shapes = [(size,), (1, size), shape[::-1], (*shape, 1)]
        shapes += [(n, size // n) for n in (2, 3, 4) if size and size % n == 0]
        new = self.draws.pick(shapes)
        copy = self.draws.pick((None, False))
        self.keep(xp.reshape(value.ours, new, copy=copy), value.base, value.places.reshape(new),
                  f"reshape({self.name(value)}, {new})")

    def copy(self) -> None:
        """Copy an array."""
        value = self.pick()
        elements, actual, name = value.expected, value.ours, self.name(value)
        match self.draws.below(7):
            case 0:
                self.fresh(xp.asarray(actual, copy=True), elements, f"asarray({name}, copy=True)")
            case 1:
                self.fresh(xp.flip(actual), np.flip(elements), f"flip({name})")
            case 2:
                self.fresh(xp.reshape(actual, (-1,), copy=True), elements.reshape(-1),
                           f"reshape({name}, (-1,), copy=True)")
            case 3:
                self.fresh(xp.broadcast_to(actual, (2, *actual.shape)),
                           np.broadcast_to(elements, (2, *actual.shape)), f"broadcast_to({name})")
            case 4 if actual.ndim:
                part = xp.unstack(actual)[:1]
                for item in part:
                    self.fresh(item, elements[0], f"unstack({name})[0]")
            case 5 if actual.ndim:
                at = [0] * min(actual.shape[0], 1)
                index = xp.asarray(at, dtype="int64")
                self.fresh(actual[index], elements[at], f"{name}[array({at})]")
            case _:
                self.fresh(xp.astype(actual, actual.dtype), elements, f"astype({name})")

    def compute(self) -> None:
        """Compute an array from other arrays."""
        one, name = self.pick(), ""
        same = [value for value in self.values if value.ours.shape == one.ours.shape]
        other = self.draws.pick(same)
        name = self.name(one)
        match self.draws.below(4):
            case 0:
                self.fresh(one.ours + other.ours, one.expected + other.expected,
                           f"{name} + {self.name(other)}")
            case 1:
                self.fresh(one.ours * 2 - other.ours, one.expected * 2 - other.expected,
                           f"{name} * 2 - {self.name(other)}")
            case 2 if one.ours.ndim and one.places.size:
                self.fresh(xp.max(one.ours, axis=0), one.expected.max(axis=0), f"max({name}, 0)")
            case _:
                self.fresh(xp.abs(one.ours), abs(one.expected), f"abs({name})")

    def assign(self) -> None:
        """Assign to an index of integers and slices."""
        value = self.pick()
        key = self.key(value.places.shape)
        found = value.places[key]
        fits = [item for item in self.values if item.places.shape == np.shape(found)]
        text = f"{self.name(value)}[{key}] = "
        if fits and self.draws.chance(50):
            source = self.draws.pick(fits)
            elements = source.expected
            self.note(text + self.name(source))
            value.ours[key] = source.ours
            value.base[found] = elements
        else:
            number = self.draws.below(1000)
            self.note(f"{text}{number}")
            value.ours[key] = number
            value.base[found] = number

    def assign_elements(self) -> None:
        """Assign to a mask or to an index array."""
        value = self.pick()
        name = self.name(value)
        if self.draws.chance(50):
            self.note(f"{name}[{name} > 50] = 3")
            value.ours[value.ours > 50] = 3
            value.base[value.places[value.expected > 50]] = 3
        elif value.places.ndim and value.places.shape[0]:
            at = [self.draws.below(value.places.shape[0]) for _ in range(2)]
            self.note(f"{name}[array({at})] = 5")
            value.ours[xp.asarray(at)] = 5
            value.base[value.places[at]] = 5

    def change_in_place(self) -> None:
        """Update an array in place."""
        value = self.pick()
        same = [item for item in self.values if item.ours.shape == value.ours.shape]
        other = self.draws.pick(same)
        name = self.name(value)
        if self.draws.chance(50):
            self.note(f"{name} += {self.name(other)}")
            new = value.expected + other.expected
            actual = value.ours
            actual += other.ours
        else:
            self.note(f"{name} -= 1")
            new = value.expected - 1
            actual = value.ours
            actual -= 1
        assert actual is value.ours
        value.base[value.places] = new

    def drop(self) -> None:
        """Delete an array."""
        if len(self.values) > 1:
            at = self.draws.below(len(self.values))
            self.note(f"del v{at}")
            del self.values[at]

    def read(self) -> None:
        """Evaluate, print or read an array; no element may change."""
        value = self.pick()
        way = self.draws.below(4)
        self.note(f"read {self.name(value)}: {way}")
        if way == 0:
            xp.eval(*[item.ours for item in self.draws.shuffled(self.values)[:3]])
        elif way == 1:
            repr(value.ours)
        elif way == 2 and value.places.size:
            place = tuple([self.draws.below(n) for n in value.places.shape])
            assert float(value.ours[place]) == value.expected[place]
        else:
            np.testing.assert_array_equal(np.asarray(value.ours), value.expected)

    def export(self) -> None:
        """Export elements to NumPy; the exported elements must not change later."""
        value = self.pick()
        self.note(f"export {self.name(value)}")
        actual = value.ours
        data = np.asarray(actual) if self.draws.chance(50) else np.from_dlpack(actual)
        self.exported.append((data, value.expected))
