"""What follows from constants alone: computed once, when a program is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tecomp.compute.tensor import Tensor
from tecomp.driver.build import ScheduledKernel, build
from tecomp.driver.cached import Build
from tecomp.errors import CallError
from tecomp.machine.descriptor import Target
from tecomp.scheduling.given import after, before, stages_of
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.state import StageState, State

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Folded:
    """A stage that follows from constants, such as a copy of weights in the order of tiles.

    Attributes:
        kernel: computes it.
        tensor: what it is, as the kernel knows it.
        sources: the positions, among what the group reads, of the constants.
    """

    kernel: ScheduledKernel
    tensor: Tensor
    sources: tuple[int, ...]

    def value(self, constants: Sequence[Any]) -> np.ndarray[Any, Any]:
        """It, in its layout, for the constants at `sources`."""
        result = self.kernel.empty(self.tensor)
        self.kernel(*constants, result)
        return result


def fold(asked: Build, constants: Sequence[Tensor]) -> tuple[Build, tuple[Folded, ...]]:
    """A kernel without the stages that follow from constants alone, and those.

    Args:
        asked: the kernel.
        constants: those of its arguments that are the same in every call.

    Returns:
        The kernel, whose arguments are those that it still reads, then the folded stages in order,
        then the results; and what computes the folded ones.
    """
    state = asked.schedule.state
    stages = stages_of(state, constants)
    if not stages:
        return asked, ()
    left, places = after(state, stages)
    reads = [x for x in asked.args if isinstance(x, Tensor) and _is_read(left, x)]
    results = [x for x in asked.args if isinstance(x, Tensor) and x.op in state.outputs]
    args = [*reads, *(places[stage.key] for stage in stages), *results]
    folded = tuple(_folded(asked, before(state, stage), stage) for stage in stages)
    return replace(asked, schedule=Schedule(left), args=args), folded


def _is_read(state: State, tensor: Tensor) -> bool:
    stage = state.find(tensor.op)
    return stage is not None and stage.is_placeholder


def _folded(asked: Build, state: State, stage: StageState) -> Folded:
    sources = [
        (k, x) for k, x in enumerate(asked.args) if isinstance(x, Tensor) and _is_read(state, x)
    ]
    target = asked.target
    assert isinstance(target, Target)
    tensor = stage.op.output(0)
    kernel = build(Schedule(state), [*(x for _, x in sources), tensor], target)
    return Folded(kernel, tensor, tuple(k for k, _ in sources))


@dataclass(slots=True)
class Store:
    """Constants of a program side by side in memory.

    Attributes:
        alignment: bytes that each begins at a multiple of.
        parts: what is there so far, padded.
        end: bytes of that.
        places: where each begins, by what it is.
    """

    alignment: int
    parts: list[bytes]
    end: int
    places: dict[object, int]

    def offset(self, key: object, make: Callable[[], Array]) -> int:
        """Where an array begins, which is made and added if it is not there yet."""
        if key not in self.places:
            content = np.ascontiguousarray(make()).tobytes()
            padding = bytes(-len(content) % self.alignment)
            self.places[key] = self.end
            self.parts += [content, padding]
            self.end += len(content) + len(padding)
        return self.places[key]

    def array(self) -> Bytes:
        """All of it, aligned."""
        size = max(self.end, 1)
        room = np.zeros(size + self.alignment, np.uint8)
        start = -room.ctypes.data % self.alignment
        aligned = room[start : start + size]
        aligned[: self.end] = np.frombuffer(b"".join(self.parts), np.uint8)
        return aligned


def checked(given: Mapping[Tensor, Any]) -> dict[Tensor, np.ndarray[Any, Any]]:
    """The values of constants as arrays.

    Raises:
        CallError: one has another shape or type than its tensor.
    """
    found: dict[Tensor, np.ndarray[Any, Any]] = {}
    for tensor, value in given.items():
        cure = f"give an array of {tensor.dtype} of shape {tuple(tensor.shape)}"
        try:
            array = np.asarray(value, order="C")
        except (TypeError, ValueError, RuntimeError) as error:
            raise CallError(
                f"compile: the constant {tensor.name} is no array ({error}); {cure}"
            ) from None
        if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
            raise CallError(
                f"compile: the constant {tensor.name} is {array.dtype} of shape {array.shape}; "
                f"{cure}"
            )
        found[tensor] = array
    return found
