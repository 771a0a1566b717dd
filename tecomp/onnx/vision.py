"""Operators of images and signals that topi lacks: regions, deformed convolutions, transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as combinations
from math import floor, prod
from typing import Any

import numpy as np

from tecomp import te, topi
from tecomp.onnx.node import Array, OpNode, operator

# Interpolation with weights that are known when the model is loaded

def _cubic(distance: Array, a: float) -> Array:
    """Return the weights of cubic convolution (Keys, 1981)."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _source_positions(node: OpNode, size: int, count: int, scale: float, transform: str) -> Array:
    """Return the position in the input of each element of the output."""
    at = np.arange(count)
    exact = size * scale
    match transform:
        case "align_corners":
            return at * ((size - 1) / (exact - 1)) if count > 1 else np.zeros(count)
        case "asymmetric":
            return at / scale
        case "half_pixel":
            return (at + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (at + 0.5) / scale - 0.5 if count > 1 else np.full(1, -0.5)
        case "half_pixel_symmetric":
            center = size / 2
            return center * (1 - count / exact) + (at + 0.5) / scale - 0.5
    raise node.error("the coordinate transformation {name} is not supported", name=transform)


def _taps(node: OpNode, size: Any, count: int, scale: float, transform: str) -> tuple[Array, Array]:
    """Return positions in the input and their weights, (count, taps), along one axis."""
    mode = node.attribute("mode", "nearest")
    at = _source_positions(node, size, count, scale, transform)
    if mode == "nearest":
        rounding: dict[str, Callable[[Array], Array]] = {
            "round_prefer_floor": lambda x: np.ceil(x - 0.5),
            "round_prefer_ceil": lambda x: np.floor(x + 0.5), "floor": np.floor, "ceil": np.ceil}
        nearest = rounding[node.attribute("nearest_mode", "round_prefer_floor")](at)
        return np.clip(nearest, 0, size - 1).astype(np.int64)[:, None], np.ones((count, 1))
    stretch = min(scale, 1.0) if node.attribute("antialias", 0) else 1.0
    width = (2 if mode == "cubic" else 1) / stretch
    first = np.floor(at - width).astype(np.int64) + 1
    places = first[:, None] + np.arange(floor(2 * width) + 1)
    distance = (places - at[:, None]) * stretch
    if mode == "cubic":
        weights = _cubic(distance, node.attribute("cubic_coeff_a", -0.75))
    else:
        weights = np.maximum(1 - np.abs(distance), 0)
    is_cut = bool(node.attribute("exclude_outside", 0))
    if is_cut:
        weights = np.where((places < 0) | (places >= size), 0, weights)
    if is_cut or stretch != 1:
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(places, 0, size - 1), weights


def resample(
    node: OpNode, x: te.Tensor, extents: Sequence[int], scales: Sequence[float], transform: str
) -> te.Tensor:
    """Return an image of other extents, interpolated along one axis after the other."""
    for axis, (count, scale) in enumerate(zip(extents, scales, strict=True)):
        if count != x.shape[axis] or scale != 1:
            x = _resample_axis(node, x, axis, count, scale, transform)
    return x


def _resample_axis(
    node: OpNode, x: te.Tensor, axis: int, count: int, scale: float, transform: str
) -> te.Tensor:
    places, weights = _taps(node, x.shape[axis], count, scale, transform)
    positions = node.as_tensor(np.ascontiguousarray(places))
    shape = [*x.shape]
    shape[axis] = count

    def source(index: Sequence[te.Expr], k: Any) -> te.Expr:
        return x(*index[:axis], positions(index[axis], k), *index[axis + 1:])

    if places.shape[1] == 1:
        nearest: te.Tensor = te.compute(shape, lambda *i: source(i, 0), name="nearest")
        return nearest
    dtype = str(x.dtype)
    is_float = dtype.startswith(("float", "bfloat"))
    kind = dtype if is_float else "float32"
    factors = node.as_tensor(weights.astype(np.float32 if kind != "float64" else np.float64))
    k = te.reduce_axis((0, places.shape[1]), name="k")
    found: te.Tensor = te.compute(shape, lambda *i: te.sum(
        te.cast(source(i, k), str(factors.dtype)) * factors(i[axis], k), axis=k), name="resampled")
    return topi.cast(found, dtype)


# Sampling at computed positions

def _reflected(at: te.Expr, size: Any, aligned: bool) -> te.Expr:
    """Return a position reflected into the image."""
    low = te.const(0.0 if aligned else -0.5, at.dtype)
    span = te.const(float(size - 1 if aligned else size), at.dtype)
    if aligned and size == 1:
        return te.const(0.0, at.dtype)
    away = te.abs(at - low)
    turns = te.floor(away / span)
    rest = away - turns * span
    is_even = (te.cast(turns, "int64") % 2).equal(0)
    return te.select(is_even, rest, span - rest) + low


def sample_grid(node: OpNode, x: te.Tensor, grid: te.Tensor, mode: str) -> te.Tensor:
    """Return elements of (batch, channels, ...) at normalized positions (batch, ..., axes)."""
    sizes = [*x.shape[2:]]
    count, dtype = len(sizes), str(x.dtype)
    aligned = bool(node.attribute("align_corners", 0))
    padding = node.attribute("padding_mode", "zeros")

    def position(axis: int) -> te.Tensor:
        size = sizes[axis]

        def element(n: te.Expr, *outer: te.Expr) -> te.Expr:
            # The last axis of the grid begins with the last axis of the image.
            value = grid(n, *outer, count - 1 - axis)
            half, one = te.const(0.5, dtype), te.const(1.0, dtype)
            at = (value + one) * half * te.const(float(size - 1), dtype) if aligned else (
                (value + one) * te.const(float(size), dtype) - one) * half
            if mode == "nearest":
                at = te.nearbyint(at)
            if padding == "border":
                at = te.max(te.min(at, te.const(float(size - 1), dtype)), te.const(0.0, dtype))
            elif padding == "reflection":
                at = _reflected(at, size, aligned)
            return at

        tensor: te.Tensor = te.compute(grid.shape[:-1], element, name="position")
        return tensor

    positions = [position(axis) for axis in range(count)]
    offsets = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}[mode]

    def element(n: te.Expr, c: te.Expr, *outer: te.Expr) -> te.Expr:
        at = [p(n, *outer) for p in positions]
        base = [te.nearbyint(a) if mode == "nearest" else te.floor(a) for a in at]
        total: te.Expr = te.const(0, dtype)
        for steps in combinations(offsets, repeat=count):
            total = total + _tap(x, n, c, at, base, steps, mode, padding, aligned)
        return total

    result: te.Tensor = te.compute(
        (*x.shape[:2], *grid.shape[1:-1]), element, name="grid_sample")
    return result


def _tap(
    x: te.Tensor, n: te.Expr, c: te.Expr, at: Sequence[te.Expr], base: Sequence[te.Expr],
    steps: Sequence[int], mode: str, padding: str, aligned: bool,
) -> te.Expr:
    """Return one weighted neighbour of a position."""
    dtype = x.dtype
    weight: te.Expr = te.const(1, dtype)
    inside, index = [], []
    for a, b, step, size in zip(at, base, steps, x.shape[2:], strict=True):
        place = b + te.const(float(step), dtype)
        distance = te.abs(a - place)
        one = te.const(1, dtype)
        if mode == "linear":
            weight = weight * (one - distance)
        elif mode == "cubic":
            weight = weight * _cubic_weight(distance)
        if padding == "reflection":
            place = te.nearbyint(_reflected(place, size, aligned))
        whole = te.cast(place, "int64")
        inside.append(te.all(whole >= 0, whole < size))
        index.append(te.max(te.min(whole, size - 1), 0))
    value = x(n, c, *index) * weight
    return te.select(te.all(*inside), value, te.const(0, dtype)) if padding == "zeros" else value


def _cubic_weight(d: te.Expr, a: float = -0.75) -> te.Expr:
    def number(value: float) -> te.Expr:
        return te.const(value, d.dtype)

    near = (number(a + 2) * d - number(a + 3)) * d * d + number(1)
    far = ((number(a) * d - number(5 * a)) * d + number(8 * a)) * d - number(4 * a)
    return te.select(d <= number(1), near, te.select(d < number(2), far, number(0)))


def _bilinear(
    read: Callable[[te.Expr, te.Expr], te.Expr], y: te.Expr, x: te.Expr, height: Any, width: Any
) -> te.Expr:
    """Return the bilinear interpolation of an image that is zero outside."""
    dtype = y.dtype
    total: te.Expr = te.const(0, dtype)
    low = te.floor(y), te.floor(x)
    one = te.const(1, dtype)
    for dy, dx in combinations((0, 1), repeat=2):
        at = [b + te.const(float(step), dtype) for b, step in zip(low, (dy, dx), strict=True)]
        weight = (one - te.abs(y - at[0])) * (one - te.abs(x - at[1]))
        i, j = (te.cast(place, "int64") for place in at)
        inside = te.all(i >= 0, i < height, j >= 0, j < width)
        safe = (te.max(te.min(k, n - 1), 0) for k, n in ((i, height), (j, width)))
        total = total + te.select(inside, weight * read(*safe), te.const(0, dtype))
    return total


@operator("RoiAlign")
def _roi_align(node: OpNode) -> te.Tensor:
    x, rois, batches = node.tensors()
    rows, columns = node.attribute("output_height", 1), node.attribute("output_width", 1)
    ratio, dtype = node.attribute("sampling_ratio", 0), str(x.dtype)
    scale = te.const(node.attribute("spatial_scale", 1.0), dtype)
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    is_half = node.attribute("coordinate_transformation_mode", default) == "half_pixel"
    if ratio <= 0:
        raise node.error("a sampling ratio that depends on the regions is not supported")
    height, width = x.shape[2:]
    half, one = te.const(0.5 if is_half else 0.0, dtype), te.const(1, dtype)

    def bin_of(r: te.Expr, axis: int, count: int) -> tuple[te.Expr, te.Expr]:
        begin = rois(r, 1 - axis) * scale - half
        size = rois(r, 3 - axis) * scale - half - begin
        size = size if is_half else te.max(size, one)
        return begin, size / te.const(float(count), dtype)

    def coordinate(r: te.Expr, axis: int, count: int, p: te.Expr, s: te.Expr) -> te.Expr:
        begin, size = bin_of(r, axis, count)
        step = (te.cast(s, dtype) + te.const(0.5, dtype)) / te.const(float(ratio), dtype)
        return begin + te.cast(p, dtype) * size + step * size

    def corners(r: te.Expr, c: te.Expr, y: te.Expr, z: te.Expr) -> list[te.Expr]:
        """Return the weighted corners; positions just outside count as on the border."""
        inside = te.all(y >= -one, y <= te.const(float(height), dtype),
                        z >= -one, z <= te.const(float(width), dtype))
        at = [te.max(v, te.const(0, dtype)) for v in (y, z)]
        low = [te.min(te.cast(te.floor(v), "int64"), n - 1)
               for v, n in zip(at, (height, width), strict=True)]
        high = [te.min(v + 1, n - 1) for v, n in zip(low, (height, width), strict=True)]
        part = [te.min(v - te.cast(b, dtype), one) * te.select(b >= n - 1, te.const(0, dtype), one)
                for v, b, n in zip(at, low, (height, width), strict=True)]
        found = []
        for pick in combinations((0, 1), repeat=2):
            place = [high[k] if p else low[k] for k, p in enumerate(pick)]
            weight = [part[k] if p else one - part[k] for k, p in enumerate(pick)]
            value = x(te.cast(batches(r), "int64"), c, *place) * weight[0] * weight[1]
            found.append(te.select(inside, value, te.const(0, dtype)))
        return found

    sy, sx = (te.reduce_axis((0, ratio), name=name) for name in ("sy", "sx"))
    is_max = node.attribute("mode", "avg") == "max"

    def element(r: te.Expr, c: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        parts = corners(
            r, c, coordinate(r, 0, rows, i, sy), coordinate(r, 1, columns, j, sx))
        if is_max:
            best = te.max(te.max(parts[0], parts[1]), te.max(parts[2], parts[3]))
            return te.max(best, axis=[sy, sx])
        return te.sum(parts[0] + parts[1] + parts[2] + parts[3], axis=[sy, sx])

    found: te.Tensor = te.compute(
        (rois.shape[0], x.shape[1], rows, columns), element, name="regions")
    return found if is_max else topi.divide(found, te.const(float(ratio**2), dtype))


@operator("DeformConv")
def _deformed_convolution(node: OpNode) -> te.Tensor:
    x, w, offset = (node.tensor(k) for k in range(3))
    mask = node.tensor(4) if node.has(4) else None
    if len(x.shape) != 4:
        raise node.error("only images with two axes are supported")
    batch, channels, height, width = x.shape
    kh, kw = w.shape[2:]
    sh, sw = node.attribute("strides", [1, 1])
    dh, dw = node.attribute("dilations", [1, 1])
    top, left = node.attribute("pads", [0] * 4)[:2]
    groups, parts = node.attribute("group", 1), node.attribute("offset_group", 1)
    rows, columns = offset.shape[2:]
    dtype = str(x.dtype)

    def sample(n: te.Expr, c: te.Expr, a: te.Expr, b: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        place = (c // (channels // parts) * kh + a) * kw + b
        y = te.cast(i * sh - top + a * dh, dtype) + offset(n, 2 * place, i, j)
        z = te.cast(j * sw - left + b * dw, dtype) + offset(n, 2 * place + 1, i, j)
        value = _bilinear(lambda p, q: x(n, c, p, q), y, z, height, width)
        return value if mask is None else value * mask(n, place, i, j)

    samples: te.Tensor = te.compute(
        (batch, channels, kh, kw, rows, columns), sample, name="samples")
    local, filters = channels // groups, w.shape[0] // groups
    c, a, b = (te.reduce_axis((0, n), name=name)
               for n, name in ((local, "c"), (kh, "a"), (kw, "b")))
    found: te.Tensor = te.compute(
        (batch, w.shape[0], rows, columns),
        lambda n, f, i, j: te.sum(
            samples(n, f // filters * local + c, a, b, i, j) * w(f, c, a, b), axis=[c, a, b]),
        name="deformed")
    return topi.nn.bias_add(found, node.tensor(3), 1) if node.has(3) else found


@operator("Col2Im")
def _image_of_columns(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    image, block = ([int(n) for n in node.numbers(k)] for k in (1, 2))
    count, dtype = len(image), str(x.dtype)
    strides, dilations = (node.attribute(name, [1] * count) for name in ("strides", "dilations"))
    pads = node.attribute("pads", [0] * 2 * count)
    blocks = [
        (n + pads[k] + pads[count + k] - dilations[k] * (block[k] - 1) - 1) // strides[k] + 1
        for k, n in enumerate(image)]
    channels = x.shape[1] // prod(block)
    taps = [te.reduce_axis((0, n), name=f"k{k}") for k, n in enumerate(block)]

    def element(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
        row, column = te.cast(c, "int64"), te.const(0, "int64")
        inside = []
        for k, i in enumerate(at):
            place = te.cast(i, "int64") + pads[k] - taps[k] * dilations[k]
            inside += [place >= 0, (place % strides[k]).equal(0), place // strides[k] < blocks[k]]
            row = row * block[k] + taps[k]
            column = column * blocks[k] + te.max(te.min(place // strides[k], blocks[k] - 1), 0)
        value = te.if_then_else(te.all(*inside), x(n, row, column), te.const(0, dtype))
        return te.sum(value, axis=taps)

    result: te.Tensor = te.compute((x.shape[0], channels, *image), element, name="image")
    return result


@operator("MaxUnpool")
def _unpool(node: OpNode) -> te.Tensor:
    x, indices = node.tensor(0), node.tensor(1)
    kernel = node.attribute("kernel_shape")
    count = len(kernel)
    strides, pads = node.attribute("strides", [1] * count), node.attribute("pads", [0] * 2 * count)
    natural = [
        (n - 1) * s - pads[k] - pads[count + k] + kernel[k]
        for k, (n, s) in enumerate(zip(x.shape[2:], strides, strict=True))]
    shape = [int(n) for n in node.numbers(2)] if node.has(2) else [*x.shape[:2], *natural]
    flat, values = topi.reshape(indices, (prod(x.shape),)), topi.reshape(x, (prod(x.shape),))
    # Indices count elements of the natural shape.
    local = [*x.shape[:2], *natural]

    def moved(i: te.Expr) -> te.Expr:
        rest, place = flat(i), te.const(0, "int64")
        for axis, n in enumerate(local):
            inner = prod(local[axis + 1:])
            place = place * shape[axis] + (rest // inner) % n
        return place

    places = flat if shape == local else te.compute((prod(x.shape),), moved, name="places")
    zeros = topi.full((prod(shape),), str(x.dtype), te.const(0, str(x.dtype)))
    return topi.reshape(topi.scatter_elements(zeros, places, values, 0, "update"), shape)


def pool_with_indices(node: OpNode, x: te.Tensor, pads: Sequence[int]) -> list[te.Tensor]:
    """Return the maxima of windows and their positions in the flattened input."""
    kernel = node.attribute("kernel_shape")
    count = len(kernel)
    strides = node.attribute("strides", [1] * count)
    dilations = node.attribute("dilations", [1] * count)
    sizes, dtype = [*x.shape[2:]], str(x.dtype)
    extra = [n + pads[k] + pads[count + k] - dilations[k] * (kernel[k] - 1) - 1
             for k, n in enumerate(sizes)]
    rounds_up = bool(node.attribute("ceil_mode", 0))
    rows = [(-(-n // s) if rounds_up else n // s) + 1 for n, s in zip(extra, strides, strict=True)]
    window = prod(kernel)

    def place(at: Sequence[te.Expr], k: Any) -> tuple[list[te.Expr], te.Expr]:
        index, inside = [], []
        for axis, i in enumerate(at):
            inner = prod(kernel[axis + 1:])
            tap = k // inner % kernel[axis]
            p = i * strides[axis] + tap * dilations[axis] - pads[axis]
            inside += [p >= 0, p < sizes[axis]]
            index.append(te.max(te.min(p, sizes[axis] - 1), 0))
        return index, te.all(*inside)

    lowest = te.min_value(dtype)

    def element(n: te.Expr, c: te.Expr, *rest: te.Expr) -> te.Expr:
        *at, k = rest
        index, inside = place(at, k)
        return te.if_then_else(inside, x(n, c, *index), lowest)

    windows: te.Tensor = te.compute(
        (*x.shape[:2], *rows, window), element, name="windows")
    best = topi.argmax(windows, len(rows) + 2, False)
    is_column_major = bool(node.attribute("storage_order", 0))

    def position(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
        index, _ = place(at, best(n, c, *at))
        total = te.cast(n, "int64") * x.shape[1] + te.cast(c, "int64")
        inner: te.Expr = te.const(0, "int64")
        order = [*zip(index, sizes, strict=True)]
        for i, size in reversed(order) if is_column_major else order:
            inner = inner * size + te.cast(i, "int64")
        return total * prod(sizes) + inner

    shape = (*x.shape[:2], *rows)
    return [topi.max(windows, len(rows) + 2, False),
            te.compute(shape, position, name="indices")]


# Fourier transforms

def _complex_parts(x: te.Tensor) -> tuple[te.Tensor, te.Tensor]:
    """Return the real and imaginary parts, which the last axis holds."""
    shape, dtype = x.shape[:-1], str(x.dtype)
    real: te.Tensor = te.compute(shape, lambda *i: x(*i, 0), name="real")
    if x.shape[-1] == 1:
        return real, topi.full(shape, dtype, te.const(0, dtype))
    return real, te.compute(shape, lambda *i: x(*i, 1), name="imaginary")


def _resized(x: te.Tensor, length: int) -> te.Tensor:
    """Return elements along the last axis, cut or padded with zeros."""
    size = x.shape[-1]
    if size == length:
        return x
    zero = te.const(0, str(x.dtype))
    result: te.Tensor = te.compute(
        (*x.shape[:-1], length),
        lambda *i: te.if_then_else(i[-1] < size, x(*i), zero), name="padded")
    return result


@operator("DFT")
def _fourier(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    rank = len(x.shape)
    axis = node.attribute("axis", 1) if node.opset < 20 else int(node.number(2, -2))
    axis %= rank
    is_inverse, is_half = (bool(node.attribute(name, 0)) for name in ("inverse", "onesided"))
    order = [k for k in range(rank - 1) if k != axis] + [axis]
    parts = [topi.transpose(part, order) for part in _complex_parts(x)]
    size = parts[0].shape[-1]
    is_real_result = is_inverse and is_half
    length = int(node.number(1, 2 * (size - 1) if is_real_result else size))
    if is_real_result:
        parts = [_mirrored(part, length, sign) for part, sign in zip(parts, (1, -1), strict=True)]
    else:
        parts = [_resized(part, length) for part in parts]
    real, imaginary = topi.dft(parts[0], parts[1], is_inverse)
    rows = length // 2 + 1 if is_half and not is_inverse else length
    back = [order.index(k) for k in range(rank - 1)]
    shape = [parts[0].shape[k] if order[k] != axis else rows for k in back]

    def element(*index: te.Expr) -> te.Expr:
        *outer, part = index
        at = [outer[k] for k in order]
        return real(*at) if is_real_result else te.select(
            te.all(part < 1), real(*at), imaginary(*at))

    result: te.Tensor = te.compute(
        (*shape, 1 if is_real_result else 2), element, name="spectrum")
    return result


def _mirrored(x: te.Tensor, length: int, sign: int) -> te.Tensor:
    """Return a spectrum with the conjugates of its first half."""
    size = x.shape[-1]
    factor, zero = te.const(sign, str(x.dtype)), te.const(0, str(x.dtype))

    def element(*index: te.Expr) -> te.Expr:
        *outer, k = index
        local = te.all(k <= length // 2, k < size)
        other = te.all(k > length // 2, length - k < size)
        return te.if_then_else(local, x(*outer, k), te.if_then_else(
            other, factor * x(*outer, length - k), zero))

    result: te.Tensor = te.compute((*x.shape[:-1], length), element, name="mirrored")
    return result


@operator("STFT")
def _short_time_fourier(node: OpNode) -> te.Tensor:
    x, step = node.tensor(0), int(node.number(1))
    window = node.tensor(2) if node.has(2) else None
    length = int(node.number(3, x.shape[1] if window is None else window.shape[0]))
    frames = (x.shape[1] - length) // step + 1
    parts = []
    for part in _complex_parts(x if len(x.shape) == 3 else topi.expand_dims(x, 2)):
        parts.append(te.compute(
            (x.shape[0], frames, length), lambda n, f, k, part=part: part(
                n, f * step + k) * (window(k) if window is not None else te.const(
                    1, str(x.dtype))), name="frames"))
    real, imaginary = topi.dft(parts[0], parts[1], False)
    rows = length // 2 + 1 if node.attribute("onesided", 1) else length
    result: te.Tensor = te.compute(
        (x.shape[0], frames, rows, 2),
        lambda n, f, k, part: te.select(te.all(part < 1), real(n, f, k), imaginary(n, f, k)),
        name="spectrum")
    return result
