"""Discrete Fourier transforms, computed by NumPy.

Importing this module registers the packed functions that compiled programs call. Running a saved
program requires this import too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tecomp import DefinitionError, register_func, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.extents import differ
from tecomp.topi.validation import as_bool, check_float, tensor_of

Array = NDArray[Any]


@register_func("tecomp.topi.dft", override=True)
def _dft(re: Array, im: Array, re_out: Array, im_out: Array, inverse: bool) -> None:
    complex_type = np.complex128 if np.asarray(re).dtype == np.float64 else np.complex64
    signal = np.empty(re.shape, complex_type)
    signal.real, signal.imag = re, im
    if not signal.size:
        return
    found = (np.fft.ifft if inverse else np.fft.fft)(signal)
    re_out[...], im_out[...] = found.real, found.imag


def dft(
    re_data: te.Tensor, im_data: te.Tensor, inverse: bool | te.Expr
) -> tuple[te.Tensor, te.Tensor]:
    """Compute the discrete Fourier transform along the last axis.

    Args:
        re_data: Real parts, floating-point.
        im_data: Imaginary parts, with the shape and dtype of `re_data`.
        inverse: If True, compute the inverse transform, which divides by the length.

    Returns:
        Real and imaginary parts of the result.

    Raises:
        DefinitionError: If the shapes or dtypes differ, or if the tensors have rank 0.
        TypeMismatchError: If an input is not floating-point.

    >>> re, im = te.placeholder((4, 8), name="re"), te.placeholder((4, 8), name="im")
    >>> [x.shape for x in dft(re, im, False)]
    [(4, 8), (4, 8)]
    """
    where = "topi.dft"
    for tensor, name in ((re_data, "re_data"), (im_data, "im_data")):
        check_float(tensor_of(tensor, where, name), where)
    shapes = re_data.shape, im_data.shape
    matching = re_data.dtype == im_data.dtype and len(shapes[0]) == len(shapes[1])
    if not matching or not re_data.ndim or any(map(differ, *shapes)):
        raise DefinitionError(
            "{where}: re_data is {dtype}{shape} and im_data is {im_data_dtype}{im_data_shape}; "
            "pass two tensors of the same shape and dtype, with at least 1 axis",
            kind="shapes", where=where, dtype=re_data.dtype, shape=shape_text(shapes[0]),
            im_data_dtype=im_data.dtype, im_data_shape=shape_text(shapes[1]),
        )
    literal = getattr(inverse, "value", inverse)  # TVM passes a te.const
    is_inverse = as_bool(bool(literal) if literal in (0, 1) else literal, where, "inverse")
    result: tuple[te.Tensor, te.Tensor] = te.extern(
        [re_data.shape, im_data.shape], [re_data, im_data],
        lambda ins, outs: te.call_packed("tecomp.topi.dft", *ins, *outs, int(is_inverse)),
        name="T_dft", dtype=[re_data.dtype, im_data.dtype])
    return result
