"""Data movement: shapes, axis order, slices, concatenation and indexed reads."""

from __future__ import annotations

from tecomp.topi.creation import arange, hamming_window
from tecomp.topi.transform.concatenate import concatenate, meshgrid, split, stack
from tecomp.topi.transform.gather import (
    adv_index,
    gather,
    gather_nd,
    index_tensor,
    matrix_set_diag,
    ndarray_size,
    one_hot,
    reverse_sequence,
    sequence_mask,
    shape,
    take,
    tensor_size,
    trilu,
    unravel_index,
    where,
)
from tecomp.topi.transform.layout_transform import layout_transform
from tecomp.topi.transform.slices import (
    dynamic_strided_slice,
    slice_scatter,
    strided_set,
    strided_slice,
)
from tecomp.topi.transform.views import (
    expand_dims,
    expand_like,
    flip,
    repeat,
    reshape,
    sliding_window,
    squeeze,
    tile,
    transpose,
)

__all__ = [
    "adv_index",
    "arange",
    "concatenate",
    "dynamic_strided_slice",
    "expand_dims",
    "expand_like",
    "flip",
    "gather",
    "gather_nd",
    "hamming_window",
    "index_tensor",
    "layout_transform",
    "matrix_set_diag",
    "meshgrid",
    "ndarray_size",
    "one_hot",
    "repeat",
    "reshape",
    "reverse_sequence",
    "sequence_mask",
    "shape",
    "slice_scatter",
    "sliding_window",
    "split",
    "squeeze",
    "stack",
    "strided_set",
    "strided_slice",
    "take",
    "tensor_size",
    "tile",
    "transpose",
    "trilu",
    "unravel_index",
    "where",
]
