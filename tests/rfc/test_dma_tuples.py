"""The 3-tuples and the loop nest of the tiled tensors RFC."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from tecomp import Layout

NEST = """
for i in range(4):
  for j in range(1024):
    for k in range(64):
      device_memory[device_tensor_address + i*65536 + j*64 + k*1] = \
host_memory[host_tensor_address + j*256 + (i*64 + k*1)]
"""


def sticks(rows: int, columns: int) -> Layout:
    return Layout.of((rows, columns), "float16", lambda i, j: [j // 64, i, j % 64])


def run(text: str, host: np.ndarray[Any, Any], device: np.ndarray[Any, Any]) -> None:
    body = f"def copy():\n{textwrap.indent(text.strip(), '  ')}"
    names: dict[str, Any] = {
        "device_memory": device, "host_memory": host,
        "device_tensor_address": 0, "host_tensor_address": 0,
    }
    exec(body, names)
    names["copy"]()


def test_contiguous_tiles() -> None:
    """A (1024, 256) float16 tensor is stored as (4, 1024, 64)."""
    layout = sticks(1024, 256)
    (nest,) = layout.dma()

    assert layout.physical_shape == (4, 1024, 64)
    assert nest.as_tuples() == ((4, 1024, 64), (65536, 64, 1), (64, 256, 1))
    assert str(nest) == "((4, 1024, 64), (65536, 64, 1), (64, 256, 1))"


def test_loop_nest() -> None:
    """The loop nest prints as in the document and copies the right elements."""
    (nest,) = sticks(1024, 256).dma()
    host = np.arange(1024 * 256)
    expected, found = np.full(4 * 1024 * 64, -1), np.full(4 * 1024 * 64, -1)

    run(NEST, host, expected)
    run(nest.as_loops(), host, found)

    assert nest.as_loops() == NEST.strip()
    assert np.array_equal(found, expected)
    assert np.array_equal(found.reshape(4, 1024, 64), host.reshape(1024, 4, 64).swapaxes(0, 1))


def test_padded_tensors() -> None:
    """Shape (1000, 200) is stored as (4, 1000, 64), with 8 elements in each last stick."""
    layout = sticks(1000, 200)
    full, last = layout.dma()

    assert layout.physical_shape == (4, 1000, 64)
    assert (full.ranges, last.ranges) == ((3, 1000, 64), (1, 1000, 8))
    assert (last.device_offset, last.host_offset) == (192000, 192)
    assert layout.padding_count * 2 == 1000 * 112
