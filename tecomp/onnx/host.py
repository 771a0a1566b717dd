"""Operators whose result shapes data decides, and operators on strings: NumPy computes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from tecomp.errors import MissingLibraryError
from tecomp.onnx.control_flow import numpy_dtype
from tecomp.onnx.node import KERNEL_DTYPES, Array, OpNode, Types, host_operator

_SMALL_FLOATS = {"float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"}


def _shape(node: OpNode, position: int) -> tuple[Any, ...]:
    return tuple(getattr(node.inputs[position], "shape", ()))


def _dtype(node: OpNode, position: int) -> str:
    return str(getattr(node.inputs[position], "dtype", "float32"))


def _ranked(
    position: int, rank: Callable[[OpNode], int | None]
) -> Callable[[OpNode], Types | None]:
    """Return the types of one result with the dtype of an input and unknown sizes."""
    def types(node: OpNode) -> Types | None:
        count = rank(node)
        return None if count is None else [(_dtype(node, position), (None,) * count)]

    return types


def _length(node: OpNode, position: int) -> int | None:
    shape = _shape(node, position)
    return shape[0] if len(shape) == 1 and isinstance(shape[0], int) else None


# Results with sizes that data decides

@host_operator("NonZero", types=lambda node: [("int64", (len(_shape(node, 0)) or 1, None))])
def _nonzero(node: OpNode, inputs: Sequence[Any]) -> Array:
    del node
    return np.array(np.nonzero(np.atleast_1d(inputs[0])), np.int64)


@host_operator("Range", types=lambda node: [(_dtype(node, 0), (None,))])
def _range(node: OpNode, inputs: Sequence[Any]) -> Array:
    start, limit, delta = (np.asarray(x).reshape(()) for x in inputs)
    if not delta:
        raise node.error("the step is zero")
    wide = (float(start), float(limit), float(delta)) if start.dtype.kind not in "iu" else (
        int(start), int(limit), int(delta))
    count = max(int(np.ceil((wide[1] - wide[0]) / wide[2])), 0)
    return (wide[0] + np.arange(count) * wide[2]).astype(start.dtype)


@host_operator("Compress", types=_ranked(0, lambda node: (
    len(_shape(node, 0)) if node.attribute("axis") is not None else 1)))
def _compress(node: OpNode, inputs: Sequence[Any]) -> Array:
    x, condition = inputs
    return np.compress(condition, x, axis=node.attribute("axis"))


def _unique_types(node: OpNode) -> Types:
    rank = len(_shape(node, 0)) if node.attribute("axis") is not None else 1
    return [(_dtype(node, 0), (None,) * rank), *[("int64", (None,))] * 3]


@host_operator("Unique", types=_unique_types)
def _unique(node: OpNode, inputs: Sequence[Any]) -> tuple[Array, ...]:
    x, axis = inputs[0], node.attribute("axis")
    wide = x.astype(np.float32) if x.dtype.kind == "V" else x
    values, first, inverse, counts = np.unique(
        wide, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not node.attribute("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return values.astype(x.dtype), *(y.astype(np.int64) for y in (first, inverse, counts))


def _fill_inputs(inputs: Sequence[Any], count: int) -> list[Any]:
    """Return inputs, with None for those at the end that are absent."""
    return [*inputs, *[None] * (count - len(inputs))]


@host_operator("NonMaxSuppression", types=lambda _: [("int64", (None, 3))])
def _suppress(node: OpNode, inputs: Sequence[Any]) -> Array:
    boxes, scores, *limits = _fill_inputs(inputs, 5)
    most, overlap, least = (None if x is None else np.asarray(x).reshape(-1)[0] for x in limits)
    most = 0 if most is None else int(most)
    overlap = 0.0 if overlap is None else overlap
    if node.attribute("center_point_box", 0):
        x, y, width, height = np.moveaxis(boxes, -1, 0)
        corners = np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], -1)
    else:
        a, b = boxes[..., :2], boxes[..., 2:]
        corners = np.concatenate([np.minimum(a, b), np.maximum(a, b)], -1)
    areas = (corners[..., 2:] - corners[..., :2]).prod(-1)
    found = []
    for batch, classes in enumerate(scores):
        for kind, row in enumerate(classes):
            order = np.argsort(-row, kind="stable")
            if least is not None:
                order = order[row[order] > least]
            chosen: list[int] = []
            for k in order:
                if len(chosen) >= most:
                    break
                others = corners[batch, chosen]
                low = np.maximum(others[:, :2], corners[batch, k, :2])
                high = np.minimum(others[:, 2:], corners[batch, k, 2:])
                common = np.maximum(high - low, 0).prod(-1)
                union = areas[batch, chosen] + areas[batch, k] - common
                if not (common > overlap * union).any():
                    chosen.append(int(k))
            found += [(batch, kind, k) for k in chosen]
    return np.array(found, np.int64).reshape(-1, 3)


# Shapes that are inputs

@host_operator("Reshape", types=_ranked(0, lambda node: _length(node, 1)))
def _reshape(node: OpNode, inputs: Sequence[Any]) -> Array:
    x, shape = inputs
    if not node.attribute("allowzero", 0):
        shape = [x.shape[k] if n == 0 else n for k, n in enumerate(shape)]
    return np.reshape(x, [int(n) for n in shape])


@host_operator("Expand", types=_ranked(0, lambda node: (
    None if (n := _length(node, 1)) is None else max(n, len(_shape(node, 0))))))
def _expand(node: OpNode, inputs: Sequence[Any]) -> Array:
    del node
    x, shape = inputs
    return np.ascontiguousarray(np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(shape))))


@host_operator("Tile", types=_ranked(0, lambda node: len(_shape(node, 0))))
def _tile(node: OpNode, inputs: Sequence[Any]) -> Array:
    del node
    return np.tile(inputs[0], inputs[1])


def _filled_types(node: OpNode) -> Types | None:
    count = _length(node, 0)
    value = node.attribute("value")
    dtype = "float32" if value is None else str(numpy_helper.to_array(value).dtype)
    return None if count is None else [(dtype, (None,) * count)]


@host_operator("ConstantOfShape", types=_filled_types)
def _fill(node: OpNode, inputs: Sequence[Any]) -> Array:
    value = node.attribute("value")
    number = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return np.full([int(n) for n in inputs[0]], number.reshape(-1)[0], number.dtype)


@host_operator("Slice", types=_ranked(0, lambda node: len(_shape(node, 0))))
def _slice(node: OpNode, inputs: Sequence[Any]) -> Array:
    x, begins, ends, axes, steps = _fill_inputs(inputs, 5)
    axes = range(len(begins)) if axes is None else axes
    steps = [1] * len(begins) if steps is None else steps
    places = [slice(None)] * x.ndim
    for axis, first, last, step in zip(axes, begins, ends, steps, strict=True):
        last = None if step < 0 and last < -x.shape[axis] else int(last)
        places[axis] = slice(int(first), last, int(step))
    del node
    return np.ascontiguousarray(x[tuple(places)])


@host_operator("Pad", types=_ranked(0, lambda node: len(_shape(node, 0))))
def _pad(node: OpNode, inputs: Sequence[Any]) -> Array:
    x, pads, value, axes = _fill_inputs(inputs, 4)
    axes = range(x.ndim) if axes is None else [int(k) % x.ndim for k in axes]
    widths = [(0, 0)] * x.ndim
    for position, axis in enumerate(axes):
        widths[axis] = (int(pads[position]), int(pads[position + len(axes)]))
    inner = tuple(slice(max(-low, 0), n - max(-high, 0) or None)
                 for (low, high), n in zip(widths, x.shape, strict=True))
    widths = [(max(low, 0), max(high, 0)) for low, high in widths]
    mode = node.attribute("mode", "constant")
    if mode == "constant":
        return np.pad(x[inner], widths, constant_values=(
            x.dtype.type(0) if value is None else np.asarray(value).reshape(-1)[0]))
    return np.pad(x[inner], widths, mode=mode)


# Random numbers

def _generator(node: OpNode) -> np.random.RandomState:
    seed = node.attribute("seed")
    return np.random.RandomState(None if seed is None else int(seed))


def _random_types(node: OpNode) -> Types:
    dtype = _dtype(node, 0) if node.inputs else "float32"
    shape = tuple(node.attribute("shape", ())) if not node.inputs else _shape(node, 0)
    result = node.dtype_attribute("dtype", dtype)
    return [(result, tuple(n if isinstance(n, int) else None for n in shape))]


@host_operator("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
               "Bernoulli", types=_random_types)
def _draw(node: OpNode, inputs: Sequence[Any]) -> Array:
    shape = inputs[0].shape if inputs else node.attribute("shape")
    dtype = node.dtype_attribute("dtype", str(inputs[0].dtype) if inputs else "float32")
    random = _generator(node)
    if node.kind == "Bernoulli":
        return np.asarray(random.binomial(1, p=inputs[0]), dtype)
    if node.kind.startswith("RandomNormal"):
        found = random.normal(node.attribute("mean", 0.0), node.attribute("scale", 1.0), shape)
    else:
        found = random.uniform(node.attribute("low", 0.0), node.attribute("high", 1.0), shape)
    return np.asarray(found).astype(numpy_dtype(dtype))


@host_operator("Multinomial", types=lambda node: [(
    node.dtype_attribute("dtype", "int32"), (None, node.attribute("sample_size", 1)))])
def _sample(node: OpNode, inputs: Sequence[Any]) -> Array:
    odds = np.exp(inputs[0].astype(float) - inputs[0].max(1, keepdims=True))
    limits = np.cumsum(odds / odds.sum(1, keepdims=True), 1)
    draws = _generator(node).random_sample((len(odds), node.attribute("sample_size", 1)))
    found = [np.searchsorted(row, draw) for row, draw in zip(limits, draws, strict=True)]
    chosen = np.minimum(found, odds.shape[1] - 1)
    return np.asarray(chosen, node.dtype_attribute("dtype", "int32"))


def _dropout_types(node: OpNode) -> Types:
    shape = tuple(n if isinstance(n, int) else None for n in _shape(node, 0))
    return [(_dtype(node, 0), shape), ("bool", shape)]


@host_operator("Dropout", types=_dropout_types)
def _dropout(node: OpNode, inputs: Sequence[Any]) -> tuple[Array, Array]:
    x, ratio, training = _fill_inputs(inputs, 3)
    ratio = 0.5 if ratio is None else float(ratio)
    if training is None or not training or ratio == 0:
        return x, np.ones(x.shape, bool)
    mask = _generator(node).uniform(0, 1, x.shape) >= ratio
    return (mask * x / (1 - ratio)).astype(x.dtype), mask


# Dtypes that kernels lack

def _cast_types(node: OpNode) -> Types:
    dtype = _dtype(node, 1) if node.kind == "CastLike" else _target_dtype(node)
    return [(dtype, tuple(n if isinstance(n, int) else None for n in _shape(node, 0)))]


def _target_dtype(node: OpNode) -> str:
    to = node.attribute("to")
    return "str" if to == 8 else str(helper.tensor_dtype_to_np_dtype(to))


@host_operator("Cast", "CastLike", types=_cast_types)
def _cast(node: OpNode, inputs: Sequence[Any]) -> Array:
    x = inputs[0]
    dtype = str(inputs[1].dtype) if node.kind == "CastLike" else _target_dtype(node)
    if dtype == "str" or dtype.startswith("<U"):
        return np.array([_text_of(value) for value in x.flat], str).reshape(x.shape)
    if x.dtype.kind == "U":
        wide = x.astype(float)
        return np.asarray(wide, numpy_dtype(dtype)) if dtype in KERNEL_DTYPES else wide
    if dtype not in _SMALL_FLOATS:
        return np.asarray(x, numpy_dtype(dtype))
    return _cast_to_float8(x.astype(np.float32), dtype, node)


def _text_of(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "NaN" if np.isnan(value) else "INF" if value == np.inf else (
            "-INF" if value == -np.inf else f"{value:.9g}")
    return str(value)


def _cast_to_float8(x: Array, dtype: str, node: OpNode) -> Array:
    """Convert to a small float as the table of the operator Cast specifies."""
    kind = numpy_dtype(dtype)
    saturates = bool(node.attribute("saturate", 1))
    if dtype == "float8_e8m0fnu":
        data = onnx_e8m0(x, saturates, node.attribute("round_mode", "up"))
        return data.view(kind)
    import ml_dtypes

    limit = float(ml_dtypes.finfo(kind).max)  # type: ignore[no-untyped-call]
    # NaN is the only special value of these types.
    bounded = np.where(np.isnan(x), x, np.clip(x, -limit, limit)) if saturates else x
    return bounded.astype(kind)


def onnx_e8m0(x: Array, saturates: bool, mode: str) -> Array:
    """Return the bytes of powers of two: the exponents of float32 numbers, rounded by `mode`."""
    helper_function: Any = numpy_helper.to_float8e8m0
    return np.asarray(helper_function(x, saturates, mode)).view(np.uint8)


@host_operator("BitCast", types=lambda node: [(
    node.dtype_attribute("to", "float32"),
    tuple(n if isinstance(n, int) else None for n in _shape(node, 0)))])
def _reinterpret(node: OpNode, inputs: Sequence[Any]) -> Array:
    dtype = numpy_dtype(node.dtype_attribute("to", "float32"))
    x = np.ascontiguousarray(inputs[0])
    return x.view(dtype) if x.dtype.itemsize == dtype.itemsize else x.astype(dtype)


# Strings

def _string_types(node: OpNode) -> Types:
    rank = max(len(_shape(node, k)) for k in range(len(node.inputs)))
    return [("str", (None,) * rank)]


@host_operator("StringConcat", types=_string_types)
def _concat_strings(node: OpNode, inputs: Sequence[Any]) -> Array:
    del node
    return np.asarray(np.strings.add(inputs[0], inputs[1]))


@host_operator("Equal", types=lambda node: [("bool", (None,) * max(
    len(_shape(node, 0)), len(_shape(node, 1))))])
def _equal(node: OpNode, inputs: Sequence[Any]) -> Array:
    del node
    return np.asarray(inputs[0] == inputs[1])


@host_operator("RegexFullMatch", types=lambda node: [("bool", (None,) * len(_shape(node, 0)))])
def _match(node: OpNode, inputs: Sequence[Any]) -> Array:
    try:
        pattern = re.compile(node.attribute("pattern"))
    except re.error as error:
        raise node.error("the pattern is malformed: {text}", text=error) from None
    x = inputs[0]
    return np.array([pattern.fullmatch(text) is not None for text in x.flat], bool).reshape(x.shape)


@host_operator("StringSplit")
def _split_strings(node: OpNode, inputs: Sequence[Any]) -> tuple[Array, Array]:
    x, delimiter = inputs[0], node.attribute("delimiter") or None
    most = node.attribute("maxsplit", -1)
    rows = [text.split(delimiter, most) for text in x.flat]
    width = max(map(len, rows), default=0)
    padded = [[*row, *[""] * (width - len(row))] for row in rows]
    return (np.array(padded, str).reshape(*x.shape, width),
            np.array([len(row) for row in rows], np.int64).reshape(x.shape))


@host_operator("StringNormalizer")
def _normalize_strings(node: OpNode, inputs: Sequence[Any]) -> Array:
    x = inputs[0]
    is_sensitive = bool(node.attribute("is_case_sensitive", 0))
    action = node.attribute("case_change_action", "NONE")
    stopwords = {str(word) if is_sensitive else str(word).lower()
                 for word in node.attribute("stopwords", [])}
    words = [text for text in x.reshape(-1).tolist()
             if (text if is_sensitive else text.lower()) not in stopwords]
    change = {"UPPER": str.upper, "LOWER": str.lower}.get(action, str)
    found = np.array([change(text) for text in words] or [""], str)
    return found.reshape(1, -1) if x.ndim == 2 else found


def _grams(node: OpNode, row: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the subsequences of equidistant elements that are counted."""
    for length in range(node.attribute("min_gram_length"), node.attribute("max_gram_length") + 1):
        # Grams of one element have no gaps.
        for step in range(1, (node.attribute("max_skip_count") if length > 1 else 0) + 2):
            for begin in range(len(row) - (length - 1) * step):
                yield tuple(row[begin:begin + (length - 1) * step + 1:step])


@host_operator("TfIdfVectorizer", types=lambda node: [("float32", (
    *(n if isinstance(n, int) else None for n in _shape(node, 0)[:-1]),
    max(node.attribute("ngram_indexes"), default=-1) + 1))])
def _count_ngrams(node: OpNode, inputs: Sequence[Any]) -> Array:
    x = inputs[0]
    pool = node.attribute("pool_strings") or node.attribute("pool_int64s")
    starts, columns = [*node.attribute("ngram_counts"), len(pool)], node.attribute("ngram_indexes")
    places: dict[tuple[Any, ...], int] = {}
    for length, (begin, end) in enumerate(pairwise(starts), 1):
        for k in range(begin, end, length):
            places[tuple(pool[k:k + length])] = len(places)
    rows = x.reshape(-1, x.shape[-1]).tolist()
    counts = np.zeros((len(rows), max(columns) + 1), np.float32)
    for row, count in zip(rows, counts, strict=True):
        for gram in _grams(node, row):
            if gram in places:
                count[columns[places[gram]]] += 1
    weights = np.ones(counts.shape[1], np.float32)
    if node.attribute("weights"):
        for k, weight in enumerate(node.attribute("weights")):
            weights[columns[k]] = weight
    mode = node.attribute("mode")
    if mode != "TF":
        counts = np.minimum(counts, 1) * weights if mode == "IDF" else counts * weights
    return counts.reshape(*x.shape[:-1], counts.shape[1])


@host_operator("MelWeightMatrix", types=lambda node: [(
    node.dtype_attribute("output_datatype", "float32"), (None, None))])
def _mel_weights(node: OpNode, inputs: Sequence[Any]) -> Array:
    bands, length, rate, low, high = (np.asarray(x).reshape(()).item() for x in inputs)
    ends = [2595 * np.log10(1 + hertz / 700) for hertz in (low, high)]
    steps = np.arange(bands + 2) * (ends[1] - ends[0]) / (bands + 2) + ends[0]
    places = ((length + 1) * (700 * np.expm1(steps / 2595 * np.log(10))) // rate).astype(int)
    found, rows = np.zeros((length // 2 + 1, bands)), np.arange(length // 2 + 1)
    for k, (first, center, last) in enumerate(zip(places, places[1:], places[2:], strict=False)):
        rising, falling = (rows >= first) & (rows <= center), (rows >= center) & (rows < last)
        found[rising, k] = (rows[rising] - first) / max(center - first, 1)
        found[center, k] = 1
        found[falling, k] = (last - rows[falling]) / max(last - center, 1)
    return found.astype(numpy_dtype(node.dtype_attribute("output_datatype", "float32")))


@host_operator("Det", types=lambda node: [(
    _dtype(node, 0), tuple(n if isinstance(n, int) else None for n in _shape(node, 0)[:-2]))])
def _determinant(node: OpNode, inputs: Sequence[Any]) -> Array:
    del node
    return np.asarray(np.linalg.det(inputs[0])).astype(inputs[0].dtype)


@host_operator("ImageDecoder", types=lambda _: [("uint8", (None, None, None))])
def _decode_image(node: OpNode, inputs: Sequence[Any]) -> Array:
    try:
        from PIL import Image
    except ImportError:
        raise MissingLibraryError(
            "onnx: node {node} (ImageDecoder): the package pillow is not installed; install it: "
            "pip install pillow", kind="missing-library", node=node.name) from None
    layout = node.attribute("pixel_format", "RGB")
    try:
        image = Image.open(BytesIO(inputs[0].tobytes()))
        if layout == "Grayscale":
            return np.asarray(image.convert("L"))[..., None]
        pixels = np.asarray(image.convert("RGB"))
    except OSError as error:
        raise node.error("the image cannot be decoded: {text}", text=error) from None
    return np.ascontiguousarray(pixels[..., ::-1] if layout == "BGR" else pixels)


