"""TOPI operators that are not provided, and replacements."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tecomp import MissingError

_SCHEDULES = "one function schedules for all targets: tecomp.schedules.auto, or topi.generic"
_PACKED = "pack channels with topi.layout_transform, or by transform_layout in a schedule"
_HELPERS = (
    "these serve TVM's operators; shape has ints for extents that are known, and te and tir have "
    "what computes others"
)
_FORMULAS = "write it as te.computes, or call a function on tensors by te.call_packed"

ABSENT: Mapping[str, Mapping[str, str]] = MappingProxyType({
    "tecomp.topi": {
        **dict.fromkeys(("x86", "cuda", "gpu", "arm_cpu", "mali", "rocm", "hexagon"), _SCHEDULES),
        **dict.fromkeys(("vision", "stft"), _FORMULAS),
        "random": "make random numbers with np.random.default_rng(seed), and pass them as inputs",
        "sparse": "topi.nn.sparse_dense multiplies by matrices in CSR and BSR, "
                  "topi.nn.sparse_transpose transposes",
        **dict.fromkeys(("utils", "get_const_tuple"), _HELPERS),
    },
    "tecomp.topi.nn": {
        **dict.fromkeys(("conv2d_NCHWc_int8", "depthwise_conv2d_NCHWc",
                         "group_conv2d_NCHWc_int8"), _PACKED),
        **dict.fromkeys(("deformable_conv2d_nchw", "bitserial_conv2d_nchw", "bitserial_dense",
                         "correlation_nchw"), _FORMULAS),
        **dict.fromkeys(("sparse_conv2d", "sparse_add", "sparse_dense_alter_layout"),
                        "topi.nn.sparse_dense multiplies by matrices in CSR and BSR; "
                        "topi.sparse_to_dense makes dense ones"),
        **dict.fromkeys(("utils", "get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d"),
                        "padding= of topi's operators takes a number, one for each axis, one for "
                        "each end, or 'SAME'"),
        "lstm": "write its steps with te.scan",
    },
})


def absent(module: str, name: str) -> AttributeError:
    """Return the error for a missing attribute; name the replacement or similar names.

    Args:
        module: Full name of the module.
        name: Requested attribute.
    """
    return MissingError.of(module, module.removeprefix("tecomp."), name, ABSENT[module])
