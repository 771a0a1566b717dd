"""Binary products and simulated quantization."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.extents import differ, is_multiple, quotient, times
from tecomp.topi.validation import axis_of, check_integer, check_rank, tensor_of

_BITS = 32  # bits of a packed word
SQNN_DTYPE_TO_CODE: Mapping[str, int] = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}
"""TVM's codes of the simulated dtypes."""

_LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}


def binarize_pack(
    data: te.Tensor, axis: int | None = None, name: str = "PackedInput"
) -> te.Tensor:
    """Pack the signs of 32 consecutive elements along an axis into one word.

    Args:
        data: Input tensor.
        axis: Axis to pack; its extent is a multiple of 32. Default: the last axis.
        name: Name of the operation.

    Returns:
        uint32 words. The first element is the most significant bit; a bit is 1 for an element >= 0.

    Raises:
        DefinitionError: If `axis` is out of bounds, or if its extent is not known to be a multiple
            of 32.

    >>> binarize_pack(te.placeholder((4, 64), name="A")).shape
    (4, 2)
    """
    where = "topi.nn.binarize_pack"
    data = tensor_of(data, where)
    dim = axis_of(-1 if axis is None else axis, data.ndim, where)
    if not is_multiple(data.shape[dim], _BITS):
        raise DefinitionError(
            "{where}: {data} has shape {shape}, and the extent of axis {axis} must be a multiple "
            "of {bits}; pad it with topi.nn.pad",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape), axis=dim,
            bits=_BITS,
        )
    shape = (*data.shape[:dim], quotient(data.shape[dim], _BITS), *data.shape[dim + 1 :])

    def packed(*i: te.Expr) -> te.Expr:
        word: te.Expr = te.const(0, "uint32")
        for bit in range(_BITS):
            element = data[(*i[:dim], i[dim] * _BITS + bit, *i[dim + 1 :])]
            bit_mask = te.const(1 << (_BITS - 1 - bit), "uint32")
            word = word | te.Select(element >= 0, bit_mask, te.const(0, "uint32"))
        return word

    result: te.Tensor = te.compute(shape, packed, name=name, tag="binarize_pack")
    return result


def binary_dense(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """Multiply sign matrices packed by `binarize_pack`: `data @ weight.T`.

    Args:
        data: uint32 words, shape (m, k).
        weight: uint32 words, shape (n, k).

    Returns:
        Products of rows of 32 * k signs, shape (m, n), float32.

    Raises:
        DefinitionError: If the shapes or dtypes do not match.

    >>> A, W = [te.placeholder((n, 2), "uint32") for n in (4, 8)]
    >>> binary_dense(A, W).shape
    (4, 8)
    """
    where = "topi.nn.binary_dense"
    for tensor, name in ((data, "data"), (weight, "weight")):
        check_rank(tensor_of(tensor, where, name), 2, where, name, "a matrix")
    if (data.dtype, weight.dtype) != ("uint32", "uint32") or differ(
        data.shape[1], weight.shape[1]
    ):
        raise DefinitionError(
            "{where}: data is {dtype}{shape} and weight is {weight_dtype}{weight_shape}, expected "
            "rows with equal numbers of uint32 words; create them with topi.nn.binarize_pack",
            kind="shapes", where=where, dtype=data.dtype, shape=shape_text(data.shape),
            weight_dtype=weight.dtype, weight_shape=shape_text(weight.shape),
        )
    count = data.shape[1]
    k = te.reduce_axis((0, count), name="k")
    differing = te.compute(
        (data.shape[0], weight.shape[0]),
        lambda i, j: te.sum(te.popcount(data[i, k] ^ weight[j, k]), axis=k),
        name="T_binary_dense", tag="binary_dense")
    bits = times(count, _BITS)
    total = te.const(bits, "float32") if isinstance(bits, int) else te.cast(bits, "float32")
    result: te.Tensor = te.compute(
        differing.shape, lambda i, j: total - 2.0 * te.cast(differing[i, j], "float32"),
        name="T_binary_dense_signs", tag="elemwise")
    return result


def simulated_quantize(
    data: te.Tensor, out_dtype: te.Tensor, output_scale: te.Tensor | None = None,
    output_zero_point: te.Tensor | None = None, axis: int = -1,
) -> te.Tensor:
    """Round and clip values as quantization to a dtype does; the dtype is an input.

    Args:
        data: Floating-point tensor.
        out_dtype: Integer scalar tensor, a value of `SQNN_DTYPE_TO_CODE`. 0 returns `data`.
        output_scale: Scales of the channels, shape (channels,) or ().
        output_zero_point: Zero points of the channels, shape (channels,) or ().
        axis: Channel axis.

    Returns:
        `clip(round(data / scale) + zero_point, min, max)`, in the dtype of `data`.

    Raises:
        DefinitionError: If the shapes do not match, or if scale or zero point is missing.
        TypeMismatchError: If `out_dtype` does not have an integer dtype.

    >>> A, code = te.placeholder((4, 8), name="A"), te.placeholder((), "int32", name="code")
    >>> s, z = te.placeholder((8,), name="s"), te.placeholder((8,), "int32", name="z")
    >>> simulated_quantize(A, code, s, z).shape
    (4, 8)
    """

    def quantized(value: te.Expr, scale: te.Expr, zero: te.Expr) -> te.Expr:
        shifted = te.round(value / scale) + zero
        result = value
        for name, (lower, upper) in _LIMITS.items():
            limits = [te.const(float(n), value.dtype) for n in (lower, upper)]
            clipped = te.max(te.min(shifted, limits[1]), limits[0])
            result = te.Select(code == SQNN_DTYPE_TO_CODE[name], clipped, result)
        return result

    where = "topi.nn.simulated_quantize"
    code = _code(out_dtype, where, "out_dtype")
    return _per_channel(data, output_scale, output_zero_point, axis, quantized, where, "output")


def simulated_dequantize(
    data: te.Tensor, in_dtype: te.Tensor, input_scale: te.Tensor | None = None,
    input_zero_point: te.Tensor | None = None, axis: int = -1,
) -> te.Tensor:
    """Scale values as dequantization from a dtype does; the dtype is an input.

    Args:
        data: Floating-point tensor.
        in_dtype: Integer scalar tensor, a value of `SQNN_DTYPE_TO_CODE`. 0 returns `data`.
        input_scale: Scales of the channels, shape (channels,) or ().
        input_zero_point: Zero points of the channels, shape (channels,) or ().
        axis: Channel axis.

    Returns:
        `(data - zero_point) * scale`, in the dtype of `data`.

    Raises:
        DefinitionError: If the shapes do not match, or if scale or zero point is missing.
        TypeMismatchError: If `in_dtype` does not have an integer dtype.

    >>> A, code = te.placeholder((4, 8), name="A"), te.placeholder((), "int32", name="code")
    >>> s, z = te.placeholder((1,), name="s"), te.placeholder((1,), "int32", name="z")
    >>> simulated_dequantize(A, code, s, z).shape
    (4, 8)
    """

    def dequantized(value: te.Expr, scale: te.Expr, zero: te.Expr) -> te.Expr:
        return te.Select(code == SQNN_DTYPE_TO_CODE["disable"], value, (value - zero) * scale)

    where = "topi.nn.simulated_dequantize"
    code = _code(in_dtype, where, "in_dtype")
    return _per_channel(data, input_scale, input_zero_point, axis, dequantized, where, "input")


def _code(dtype: te.Tensor, where: str, name: str) -> te.Expr:
    """Return the element of a scalar tensor with a dtype code.

    Raises:
        DefinitionError: If the tensor has more than one element.
        TypeMismatchError: If the tensor does not have an integer dtype.
    """
    code = tensor_of(dtype, where, name)
    check_integer(code, where, name)
    if any(differ(n, 1) for n in code.shape):
        raise DefinitionError(
            "{where}: {subject} has shape {shape}, expected a scalar tensor; pass "
            "te.placeholder((), "
            '"int32")',
            kind="shapes", where=where, subject=name, shape=shape_text(code.shape),
        )
    element: te.Expr = code[(0,) * code.ndim]
    return element


def _per_channel(
    data: te.Tensor, scale: te.Tensor | None, zero: te.Tensor | None, axis: int,
    function: Callable[[te.Expr, te.Expr, te.Expr], te.Expr], where: str, prefix: str,
) -> te.Tensor:
    """Apply a function to each element and the scale and zero point of its channel."""
    data = tensor_of(data, where)
    dim = axis_of(axis, data.ndim, where)
    if scale is None or zero is None:
        raise DefinitionError(
            "{where}: {prefix}_scale and {prefix}_zero_point are required; pass scalar tensors, "
            "or one number per channel",
            kind="missing-input", where=where, prefix=prefix,
        )
    for param, name in ((scale, "scale"), (zero, "zero_point")):
        shape = tensor_of(param, where, f"{prefix}_{name}").shape
        count = shape[0] if shape else 1
        if len(shape) > 1 or (differ(count, 1) and differ(count, data.shape[dim])):
            raise DefinitionError(
                "{where}: {prefix}_{subject} has shape {value_shape}, but {data} has shape "
                "{shape}; pass one number, or one per index of axis {axis}",
                kind="shapes", where=where, prefix=prefix, subject=name,
                value_shape=shape_text(shape),
                data=data.name, shape=shape_text(data.shape), axis=dim,
            )

    def of_channel(param: te.Tensor, i: te.Expr) -> te.Expr:
        element = param[()] if not param.ndim else param[0 if not differ(param.shape[0], 1) else i]
        return te.cast(element, data.dtype)

    result: te.Tensor = te.compute(
        data.shape,
        lambda *i: function(data[i], of_channel(scale, i[dim]), of_channel(zero, i[dim])),
        name=f"T_{where.rpartition('.')[2]}", tag="elemwise")
    return result
