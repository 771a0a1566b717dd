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
    if len(node.indices) != len(node.buffer.shape):
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
        values = np.zeros(lanes, kind).reshape(len(across), -1)
        mask = None if predicate is None else predicate(env)
        for lane, live in enumerate(_live(mask, len(across), values.shape[1])):
            if live.any():
                read = view.array[view.place([*rest, int(across[lane])])]
                values[lane] = np.where(live, read, values[lane])
        return values.reshape(lanes)

    return gather


def _live(mask: Data, lanes: int, each: int) -> Any:
    """For each lane of the index, which lanes of the element take part."""
    if mask is None:
        return np.ones((lanes, each), bool)
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
    if predicate is not None or (node.indices and node.indices[-1].dtype.lanes > 1):
        return _scatter(node, slot, value, indices, predicate, seen)

    def store(env: list[Any]) -> None:
        view: View = env[slot]
        place = view.place([index(env) for index in indices])
        view.array[place] = value(env)
        if seen is not None:
            seen(place)

    return store


def _scatter(
    node: BufferStore,
    slot: int,
    value: Closure,
    indices: Sequence[Closure],
    predicate: Closure | None,
    seen: Seen | None,
) -> Closure:
    each = node.buffer.dtype.lanes

    def scatter(env: list[Any]) -> None:
        view: View = env[slot]
        places = [index(env) for index in indices]
        across = np.atleast_1d(places[-1]) if places else np.zeros(1, int)
        mask = None if predicate is None else predicate(env)
        values = np.asarray(value(env)).reshape(len(across), each)
        for lane, live in enumerate(_live(mask, len(across), each)):
            if live.any():
                at = [*places[:-1], int(across[lane])] if places else []
                place = view.place(at)
                view.array[place] = np.where(live, values[lane], view.array[place]).reshape(
                    np.shape(view.array[place])
                )
                if seen is not None:
                    seen(place)

    return scatter
