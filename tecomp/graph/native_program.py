"""A linked program: entry point and constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.codegen.dispatch.kernel import SequenceCode
from tecomp.codegen.runtime.runtime_structs import ALIGNMENT
from tecomp.graph.compile_options import Array

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class NativeProgram:
    """Machine code of a program.

    Attributes:
        run: Code of a program call; takes inputs, outputs and the constant pool.
        pack: Code that packs constants; takes the constant pool and constants. None if no constant
            is computed.
        packed: Positions of the constants that `pack` takes.
        copied: Positions of the constants that kernels read unpacked, with their pool offsets.
        constant_bytes: Size of the constant pool in bytes.
        calls: Number of kernel calls in `run`.
        packed_in: Serialized layouts of the arguments in device layout.
    """

    run: SequenceCode
    pack: SequenceCode | None
    packed: tuple[int, ...]
    copied: tuple[tuple[int, int], ...]
    constant_bytes: int
    calls: int
    packed_in: str = ""

    @property
    def codes(self) -> tuple[SequenceCode, ...]:
        """Code objects: `run`, and `pack` if present."""
        return (self.run,) if self.pack is None else (self.run, self.pack)

    def constants(self, values: Sequence[Array]) -> Bytes:
        """Build the constant pool.

        Args:
            values: Constants, in the order of the `constants` argument of `compile`.
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
