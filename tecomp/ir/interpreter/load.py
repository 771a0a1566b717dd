"""Reads and writes of the interpreter: one element, or as many as the index has lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from tecomp.errors import InternalError
from tecomp.ir.interpreter.arithmetic import Data
from tecomp.ir.interpreter.memory import View
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import BufferLoad
from tecomp.ir.language.stmt import BufferStore
from tecomp.ir.language.tensor_op import TensorOp

Closure: TypeAlias = "Callable[[list[Any]], Data]"
Seen: TypeAlias = "Callable[[tuple[int, ...]], None]"


class Watch(Protocol):
    """Who is told what a function does while it is interpreted, as far as it has no vectors."""

    def reader(self, node: BufferLoad) -> Seen:
        """Asked once for every load: who is told the place of each element that it reads."""

    def writer(self, node: BufferStore) -> Seen:
        """Asked once for every store: who is told the place of each element that it writes."""

    def operation(self, node: TensorOp) -> Callable[[], None] | None:
        """Asked once for every operation of the machine: who is told each time that it is done.

        Then its operands are what it reads and writes; if nobody is, what its body does.
        """

    def core(self, thread: str, value: int | None) -> None:
        """From here on a core of this coordinate works; None at the end of the loop over cores."""


def load_function(
    node: BufferLoad,
    slot: int,
    indices: Sequence[Closure],
    predicate: Closure | None,
    seen: Seen | None = None,
) -> Closure:
    """The read of the buffer in `slot` as a function of the values in the slots.

    `seen` is told the place of every element that is read.
    """
    _check_rank(node)
    if node.indices and node.indices[-1].dtype.lanes > 1:
        return _gather(node.dtype, slot, indices, predicate)
    read = _reader(node.buffer.dtype)
    none = read(np.zeros(node.dtype.lanes if node.dtype.lanes > 1 else (), node.dtype.numpy), ())

    def load(env: list[Any]) -> Data:
        view: View = env[slot]
        place = view.place([index(env) for index in indices])
        if seen is not None:
            seen(place)
        return read(view.array, place)

    if predicate is None:
        return load

    def masked(env: list[Any]) -> Data:
        mask = predicate(env)
        if isinstance(mask, np.ndarray):
            return np.where(mask, load(env), none) if mask.any() else none
        return load(env) if mask else none

    return masked


def _check_rank(node: BufferLoad | BufferStore) -> None:
    if len(node.indices) != node.buffer.index_count:
        raise InternalError(f"`{node}` has {len(node.indices)} indices for {node.buffer}")


def _reader(dtype: DType) -> Callable[[Any, tuple[int, ...]], Data]:
    """How one element becomes a value: an int, a bool, a NumPy float, or a vector of its own."""
    if dtype.lanes > 1:
        return lambda array, place: array[place].copy()
    if dtype.is_float:
        return lambda array, place: array[place]
    if dtype.is_bool:
        return lambda array, place: bool(array[place])
    return lambda array, place: int(array[place])


def _gather(
    result: DType,
    slot: int,
    indices: Sequence[Closure],
    predicate: Closure | None,
) -> Closure:
    *outer, last = indices
    lanes, kind = result.lanes, result.numpy

    def gather(env: list[Any]) -> Data:
        view: View = env[slot]
        rest, across = [index(env) for index in outer], last(env)
        if predicate is None:
            return view.array[view.lanes(rest, across)].reshape(lanes)
        values = np.zeros(lanes, kind).reshape(len(across), -1)
        lane, part = np.nonzero(_live(predicate(env), *values.shape))
        if lane.size:
            values[lane, part] = view.array[view.lanes(rest, across[lane], part)]
        return values.reshape(lanes)

    return gather


def _live(mask: Data, lanes: int, each: int) -> Any:
    """For each lane of the index, which lanes of the element take part."""
    given = np.asarray(mask)
    whole = given if given.size == lanes * each else np.repeat(given, lanes * each // given.size)
    return whole.reshape(lanes, each)


def store_function(
    node: BufferStore,
    slot: int,
    value: Closure,
    indices: Sequence[Closure],
    predicate: Closure | None,
    seen: Seen | None = None,
) -> Closure:
    """The write to the buffer in `slot` as a function of the values in the slots."""
    _check_rank(node)
    if node.indices and node.indices[-1].dtype.lanes > 1:
        return _scatter(node.buffer.dtype.lanes, slot, value, indices, predicate)

    def store(env: list[Any]) -> None:
        view: View = env[slot]
        place = view.place([index(env) for index in indices])
        view.array[place] = value(env)
        if seen is not None:
            seen(place)

    if predicate is None:
        return store

    def masked(env: list[Any]) -> None:
        view: View = env[slot]
        at, mask, new = [index(env) for index in indices], predicate(env), value(env)
        if not np.any(mask):
            return
        place = view.place(at)
        if isinstance(mask, np.ndarray):
            new = np.where(mask, new, view.array[place])
        view.array[place] = new
        if seen is not None:
            seen(place)

    return masked


def _scatter(
    each: int,
    slot: int,
    value: Closure,
    indices: Sequence[Closure],
    predicate: Closure | None,
) -> Closure:
    *outer, last = indices

    def scatter(env: list[Any]) -> None:
        view: View = env[slot]
        rest, across = [index(env) for index in outer], last(env)
        mask = True if predicate is None else predicate(env)
        values = np.asarray(value(env)).reshape(len(across), each)
        lane, part = np.nonzero(_live(mask, *values.shape))
        if lane.size:
            # Of lanes that write the same element, the last one's value stays.
            view.array[view.lanes(rest, across[lane], part)] = values[lane, part]

    return scatter
