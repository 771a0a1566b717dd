"""TVM's operators under their TVM names, defined in `te`; write `from tecomp import topi`.

Each operator takes tensors and returns a tensor without a schedule. `tecomp.compile` and
`tecomp.build` schedule the result.
"""

from __future__ import annotations

import typing

from tecomp.compute.tvm_compat import unsupported_name_message as _absent
from tecomp.lazy_imports import lazy_names as _lazy_names
from tecomp.topi import elementwise as _elementwise
from tecomp.topi import generic, image, nn, tag
from tecomp.topi import reductions as _reductions
from tecomp.topi.broadcast import broadcast_to
from tecomp.topi.contraction import einsum, matmul, tensordot
from tecomp.topi.creation import elemwise_sum, eye, full, full_like
from tecomp.topi.elementwise import *  # noqa: F403
from tecomp.topi.math import (
    cast,
    ceil_log2,
    clip,
    fast_erf,
    fast_exp,
    fast_tanh,
    fixed_point_multiply,
    reinterpret,
    sign,
)
from tecomp.topi.reduction import collapse_sum
from tecomp.topi.reductions import *  # noqa: F403
from tecomp.topi.scan import scanop
from tecomp.topi.scatter import scatter_elements, scatter_nd, sparse_to_dense
from tecomp.topi.signal import dft
from tecomp.topi.sort import argsort, argwhere, searchsorted, sort, topk, unique
from tecomp.topi.transform import (
    adv_index,
    arange,
    concatenate,
    dynamic_strided_slice,
    expand_dims,
    expand_like,
    flip,
    gather,
    gather_nd,
    hamming_window,
    index_tensor,
    layout_transform,
    matrix_set_diag,
    meshgrid,
    ndarray_size,
    one_hot,
    repeat,
    reshape,
    reverse_sequence,
    sequence_mask,
    shape,
    slice_scatter,
    sliding_window,
    split,
    squeeze,
    stack,
    strided_set,
    strided_slice,
    take,
    tensor_size,
    tile,
    transpose,
    trilu,
    unravel_index,
    where,
)

__all__ = [
    "adv_index",
    "arange",
    "argsort",
    "argwhere",
    "broadcast_to",
    "cast",
    "ceil_log2",
    "clip",
    "collapse_sum",
    "concatenate",
    "dft",
    "dynamic_strided_slice",
    "einsum",
    "elemwise_sum",
    "expand_dims",
    "expand_like",
    "eye",
    "fast_erf",
    "fast_exp",
    "fast_tanh",
    "fixed_point_multiply",
    "flip",
    "full",
    "full_like",
    "gather",
    "gather_nd",
    "generic",
    "hamming_window",
    "image",
    "index_tensor",
    "layout_transform",
    "matmul",
    "matrix_set_diag",
    "meshgrid",
    "ndarray_size",
    "nn",
    "one_hot",
    "reinterpret",
    "repeat",
    "reshape",
    "reverse_sequence",
    "scanop",
    "scatter_elements",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "shape",
    "sign",
    "slice_scatter",
    "sliding_window",
    "sort",
    "sparse_to_dense",
    "split",
    "squeeze",
    "stack",
    "strided_set",
    "strided_slice",
    "tag",
    "take",
    "tensor_size",
    "tensordot",
    "tile",
    "topk",
    "transpose",
    "trilu",
    "unique",
    "unravel_index",
    "where",
]
__all__ += [*_elementwise.__all__, *_reductions.__all__]


if not typing.TYPE_CHECKING:
    __getattr__ = _lazy_names(__name__, missing=lambda name: _absent(__name__, name))[0]
