"""Neural network operators: products, convolutions, pools, norms, activations, padding."""

from __future__ import annotations

import typing

from tecomp.compute.tvm_compat import unsupported_name_message as _absent
from tecomp.lazy_imports import lazy_names as _lazy_names
from tecomp.topi.image.sampling import upsampling, upsampling3d
from tecomp.topi.nn.conv_transpose import (
    conv1d_transpose_ncw,
    conv2d_transpose_nchw,
    conv3d_transpose_ncdhw,
    group_conv1d_transpose_ncw,
    group_conv2d_transpose_nchw,
    group_conv3d_transpose_ncdhw,
)
from tecomp.topi.nn.convolution import (
    conv,
    conv1d,
    conv1d_ncw,
    conv1d_nwc,
    conv2d,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_NCHWc,
    conv2d_nhwc,
    conv3d_ncdhw,
    conv3d_ndhwc,
    depthwise_conv2d_nchw,
    depthwise_conv2d_nhwc,
    group_conv1d_ncw,
    group_conv1d_nwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
)
from tecomp.topi.nn.dense import batch_matmul, dense, matmul
from tecomp.topi.nn.elemwise import (
    bias_add,
    leaky_relu,
    nll_loss,
    prelu,
    relu,
    scale_shift_nchw,
    scale_shift_nhwc,
    softplus,
)
from tecomp.topi.nn.normalization import (
    batch_norm,
    fast_softmax,
    group_norm,
    instance_norm,
    l2_normalize,
    layer_norm,
    log_softmax,
    lrn,
    rms_norm,
    softmax,
)
from tecomp.topi.nn.pad import circular_pad, mirror_pad, pad, reflect_pad, replicate_pad
from tecomp.topi.nn.pooling import (
    adaptive_pool,
    adaptive_pool1d,
    adaptive_pool3d,
    global_pool,
    pool1d,
    pool2d,
    pool3d,
)
from tecomp.topi.nn.quantization import (
    SQNN_DTYPE_TO_CODE,
    binarize_pack,
    binary_dense,
    simulated_dequantize,
    simulated_quantize,
)
from tecomp.topi.nn.rearrange import (
    batch_to_space_nd,
    depth_to_space,
    dilate,
    fifo_buffer,
    flatten,
    space_to_batch_nd,
    space_to_depth,
)
from tecomp.topi.nn.sparse import sparse_dense, sparse_transpose

__all__ = [
    "SQNN_DTYPE_TO_CODE",
    "adaptive_pool",
    "adaptive_pool1d",
    "adaptive_pool3d",
    "batch_matmul",
    "batch_norm",
    "batch_to_space_nd",
    "bias_add",
    "binarize_pack",
    "binary_dense",
    "circular_pad",
    "conv",
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_nchw",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "dense",
    "depth_to_space",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "dilate",
    "fast_softmax",
    "fifo_buffer",
    "flatten",
    "global_pool",
    "group_conv1d_ncw",
    "group_conv1d_nwc",
    "group_conv1d_transpose_ncw",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw",
    "group_conv3d_transpose_ncdhw",
    "group_norm",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "matmul",
    "mirror_pad",
    "nll_loss",
    "pad",
    "pool1d",
    "pool2d",
    "pool3d",
    "prelu",
    "reflect_pad",
    "relu",
    "replicate_pad",
    "rms_norm",
    "scale_shift_nchw",
    "scale_shift_nhwc",
    "simulated_dequantize",
    "simulated_quantize",
    "softmax",
    "softplus",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_dense",
    "sparse_transpose",
    "upsampling",
    "upsampling3d",
]


if not typing.TYPE_CHECKING:
    __getattr__ = _lazy_names(__name__, missing=lambda name: _absent(__name__, name))[0]
