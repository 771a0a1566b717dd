"""A linked program: entry point and constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.codegen.runtime.runtime_structs import ALIGNMENT
from tecomp.driver.native_sequence import Code
from tecomp.graph.compile_options import Array

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Native:
    """A program in machine code.

    Attributes:
        run: takes inputs, outputs and the memory of constants.
        pack: takes that memory and constants, and writes it; None where nothing is computed.
        packed: the positions of the constants that `pack` takes.
        copied: the positions of those that kernels read as they are, with their places.
        constant_bytes: of the memory of constants.
        calls: how many kernels `run` calls.
        packed_in: the layouts of what the caller has as it lies on the machine, as text.
    """

    run: Code
    pack: Code | None
    packed: tuple[int, ...]
    copied: tuple[tuple[int, int], ...]
    constant_bytes: int
    calls: int
    packed_in: str = ""

    @property
    def codes(self) -> tuple[Code, ...]:
        """`run`, and `pack` if there is one."""
        return (self.run,) if self.pack is None else (self.run, self.pack)

    def constants(self, values: Sequence[Array]) -> Bytes:
        """The memory of constants.

        Args:
            values: the constants, in the order in which they were given.
        """
        size = max(self.constant_bytes, 1)
        room = np.zeros(size + ALIGNMENT, np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        data: Bytes = room[start : start + size]
        for position, offset in self.copied:
            content = values[position].reshape(-1).view(np.uint8)
            data[offset : offset + content.size] = content
        if self.pack is not None:
            self.pack.linked()(data, *(values[k] for k in self.packed))
        return data
