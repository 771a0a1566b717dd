"""Arrays as text: for terminals, and for notebooks."""

from __future__ import annotations

from html import escape

import numpy as np

from tecomp.array.graph.node import Buffer


def text_of(data: Buffer, device: str) -> str:
    """An array as NumPy prints one, with its type, and its device if that is not the processor.

    >>> text_of(np.zeros((0, 3)), "cpu")
    'Array([], shape=(0, 3), dtype=float64)'
    """
    marks = [f"dtype={data.dtype}"]
    if not data.size and data.shape != (0,):
        marks.insert(0, f"shape={data.shape}")
    if device != "cpu":
        marks.append(f"device={device!r}")
    elements = np.array2string(data, separator=", ", prefix="Array(") if data.size else "[]"
    return f"Array({', '.join([elements, *marks])})"


def html_of(data: Buffer, device: str) -> str:
    """An array for a notebook: its type above its elements.

    >>> html_of(np.array([1.5]), "cpu")
    '<div><b>Array</b> 1, float64, cpu<pre>[1.5]</pre></div>'
    """
    shape = " by ".join(map(str, data.shape)) or "no axes"
    elements = escape(np.array2string(data, separator=", "))
    return f"<div><b>Array</b> {shape}, {data.dtype}, {escape(device)}<pre>{elements}</pre></div>"
