"""Arrays for tests of the graph, created without the namespace functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.array.array_object import Array, from_node
from tecomp.array.graph import materialized_node
from tecomp.ptensor import PTensorType


def array(data: np.ndarray[Any, Any]) -> Array:
    """Wrap a NumPy array with its strides."""
    return from_node(materialized_node(data, PTensorType(data.shape, data.dtype.name)))
