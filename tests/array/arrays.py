"""Arrays for tests of the graph, made without the namespace."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.array.array_object import Array, made
from tecomp.array.graph.node import leaf
from tecomp.ptensor import PTensorType


def array(data: np.ndarray[Any, Any]) -> Array:
    """The elements as they lie."""
    return made(leaf(data, PTensorType(data.shape, data.dtype.name)))
