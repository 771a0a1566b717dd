"""TOPI operators that are not provided, and replacements."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tecomp import MissingError

_SCHEDULES = "use tecomp.schedules.auto or topi.generic, which schedule for all targets"
_PACKED = "pack channels with topi.layout_transform, or with transform_layout in a schedule"
_HELPERS = (
    "these are internal to TVM's operators; use shape, which has ints for static extents, and te "
    "and tir for other extents"
)
_FORMULAS = "write it with te.compute, or call a function on tensors with te.call_packed"

ABSENT: Mapping[str, Mapping[str, str]] = MappingProxyType({
    "tecomp.topi": {
        **dict.fromkeys(("x86", "cuda", "gpu", "arm_cpu", "mali", "rocm", "hexagon"), _SCHEDULES),
        **dict.fromkeys(("vision", "stft"), _FORMULAS),
        "random": "create random numbers with np.random.default_rng(seed), and pass them as inputs",
        "sparse": "use topi.nn.sparse_dense to multiply by CSR and BSR matrices, "
                  "topi.nn.sparse_transpose to transpose",
        **dict.fromkeys(("utils", "get_const_tuple"), _HELPERS),
    },
    "tecomp.topi.nn": {
        **dict.fromkeys(("conv2d_NCHWc_int8", "depthwise_conv2d_NCHWc",
                         "group_conv2d_NCHWc_int8"), _PACKED),
        **dict.fromkeys(("deformable_conv2d_nchw", "bitserial_conv2d_nchw", "bitserial_dense",
                         "correlation_nchw"), _FORMULAS),
        **dict.fromkeys(("sparse_conv2d", "sparse_add", "sparse_dense_alter_layout"),
                        "use topi.nn.sparse_dense to multiply by CSR and BSR matrices, "
                        "topi.sparse_to_dense to convert to dense"),
        **dict.fromkeys(("utils", "get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d"),
                        "use padding= of topi's operators: one number, one per axis, one per end, "
                        "or 'SAME'"),
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
