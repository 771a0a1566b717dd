"""Writes to memory by a library; each call is counted by the library's name for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.array.counters import counters
from tecomp.array.node import Buffer
from tecomp.errors import ArrayValueError


def copy_to(target: Buffer, source: Buffer) -> None:
    """Write elements that broadcast to a view of memory."""
    counters.libraries["numpy.copyto"] += 1
    np.copyto(target, source)


def put(target: Buffer, key: Any, source: Buffer, where: str) -> None:
    """Write elements to places that arrays of indices say, or masks.

    Raises:
        ArrayValueError: the shapes do not fit.
    """
    counters.libraries["numpy.ndarray.__setitem__"] += 1
    try:
        target[key] = source
    except (ValueError, IndexError):
        raise ArrayValueError(
            f"{where}: the value has shape {source.shape}, and the index says elements of shape "
            f"{target[key].shape}; give a value that broadcasts to it"
        ) from None
