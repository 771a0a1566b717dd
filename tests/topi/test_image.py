"""Image resizing agrees with matrices of pixel weights."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.topi import image, nn
from tests.messages import Diagnostic
from tests.numerics import assert_close
from tests.topi.refusals import refused
from tests.topi.running import Array, assert_results, compiled, given, values

NEAREST: dict[str, Any] = {
    "round": lambda x: np.floor(x + 0.5), "floor": lambda x: np.floor(x + 1e-5),
    "ceil": lambda x: np.ceil(x - 1e-5), "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def places(extent: int, size: int, mode: str, roi: tuple[float, float] = (0, 0)) -> Array:
    x = np.arange(size)
    return {
        "half_pixel": (x + 0.5) * extent / size - 0.5,
        "pytorch_half_pixel": (x + 0.5) * extent / size - 0.5 if size > 1 else x * 0.0,
        "asymmetric": x * extent / size,
        "tf_half_pixel_for_nn": (x + 0.5) * extent / size,
        "align_corners": x * (extent - 1) / max(size - 1, 1),
        "tf_crop_and_resize": (
            roi[0] * (extent - 1) + x * (roi[1] - roi[0]) * (extent - 1) / (size - 1) if size > 1
            else x + (roi[0] + roi[1]) / 2 * (extent - 1)),
    }[mode]


def cubic(t: float, a: float) -> list[float]:
    def far(x: float) -> float:
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a

    def near(x: float) -> float:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def weights(
    extent: int, size: int, method: str, mode: str, rounding: str = "",
    roi: tuple[float, float] = (0, 0), alpha: float = -0.75, exclude: bool = False,
) -> Array:
    """Return a matrix with the weights of all pixels in a row per result position."""
    matrix = np.zeros((size, extent))
    kind = rounding or ("round" if mode == "align_corners" else "floor")
    for row, place in enumerate(places(extent, size, mode, roi)):
        base, t = int(np.floor(place)), place - np.floor(place)
        taps = [(base, 1 - t), (base + 1, t)]
        if method == "nearest_neighbor":
            taps = [(int(NEAREST[kind](place)), 1.0)]
        if method == "cubic":
            taps = list(zip(range(base - 1, base + 3), cubic(t, alpha), strict=True))
        if exclude and method == "cubic":
            taps = [(k, w if 0 <= k < extent else 0.0) for k, w in taps]
            taps = [(k, w / sum(w for _, w in taps)) for k, w in taps]
        for k, weight in taps:
            matrix[row, min(max(k, 0), extent - 1)] += weight
    return matrix


@pytest.mark.parametrize("mode", [
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_rows(method: str, mode: str) -> None:
    a = values((2, 3, 6), "float32")
    A = given(a)
    expected = {}
    for size in (1, 4, 6, 11):
        matrix = weights(6, size, method, mode)
        expected[image.resize1d(A, [0.0, 0.0], [size], "NCW", method, mode)] = a @ matrix.T
    for rounding in NEAREST if method == "nearest_neighbor" else ():
        matrix = weights(6, 5, method, mode, rounding)
        expected[image.resize1d(A, [], 5, "NCW", method, mode, rounding)] = a @ matrix.T
    if method == "cubic":
        matrix = weights(6, 9, method, mode, alpha=-0.5, exclude=True)
        expected[image.resize1d(
            A, [], 9, "NCW", method, mode, bicubic_alpha=-0.5, bicubic_exclude=1)] = a @ matrix.T

    assert_results({x: y.astype("float32") for x, y in expected.items()}, {A: a}, rtol=1e-4)


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_images_and_volumes(method: str) -> None:
    a, v = values((1, 4, 3, 2), "float32"), values((1, 1, 2, 3, 4), "float32")
    A, V = given(a), given(v, "V")
    rows, columns = weights(4, 6, method, "half_pixel"), weights(3, 2, method, "half_pixel")
    two = np.einsum("nhwc,yh,xw->nyxc", a, rows, columns).astype("float32")
    assert_results({image.resize2d(A, [], (6, 2), "NHWC", method): two,
                    image.resize2d(A, [], (6, 2), "NHWC", method, out_dtype="float64"):
                        two.astype("float64")}, {A: a}, rtol=1e-4)
    deep = weights(2, 3, method, "asymmetric"), weights(3, 3, method, "asymmetric"), weights(
        4, 2, method, "asymmetric")
    assert_results({image.resize3d(V, [], (3, 3, 2), "NCDHW", method, "asymmetric"):
                    np.einsum("ncdhw,zd,yh,xw->nczyx", v, *deep).astype("float32")}, {V: v}, rtol=1e-4)


def test_bytes_keep_their_type() -> None:
    a = values((1, 1, 4, 4), "uint8", high=200)
    A = given(a)
    matrix = weights(4, 8, "nearest_neighbor", "asymmetric")

    assert_results({nn.upsampling(A, 2, 2): (matrix @ a @ matrix.T).astype("uint8")}, {A: a})


def test_parts_of_images() -> None:
    a = values((1, 2, 5, 5), "float32")
    A = given(a)
    roi = [0.25, 0.5, 1.0, 1.5]
    rows = weights(5, 4, "linear", "tf_crop_and_resize", roi=(0.25, 1.0))
    columns = weights(5, 3, "linear", "tf_crop_and_resize", roi=(0.5, 1.5))
    expected = np.einsum("nchw,yh,xw->ncyx", a, rows, columns)
    expected[..., places(5, 3, "tf_crop_and_resize", (0.5, 1.5)) > 4] = -9
    boxes = np.array([roi, [0, 0, 1, 1]], "float32")
    B, Index = given(boxes, "B"), te.placeholder((2,), "int32", name="i")

    assert_results({image.resize2d(A, roi, (4, 3), "NCHW", "linear", "tf_crop_and_resize",
                                   extrapolation_value=-9.0): expected.astype("float32")}, {A: a},
                   rtol=1e-4)
    whole = weights(5, 4, "linear", "align_corners"), weights(5, 3, "linear", "align_corners")
    both = np.concatenate([expected, np.einsum("nchw,yh,xw->ncyx", a, *whole)])
    assert_results(
        {image.crop_and_resize(A, B, Index, (4, 3), extrapolation_value=-9.0): both.astype(
            "float32")}, {A: a, B: boxes, Index: np.zeros(2, "int32")}, rtol=1e-4)


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align", [True, False])
def test_larger_images(method: str, align: bool) -> None:
    a = values((1, 1, 3, 4), "float32")
    A = given(a)
    kind, mode = method.removeprefix("bi"), "align_corners" if align else "asymmetric"
    rows, columns = weights(3, 6, kind, mode), weights(4, 6, kind, mode)

    assert_results({nn.upsampling(A, 2, 1.5, "NCHW", method, align): (
        rows @ a @ columns.T).astype("float32")}, {A: a}, rtol=1e-4)


def test_larger_volumes() -> None:
    v = values((1, 1, 2, 3, 2), "float32")
    V = given(v, "V")
    way = ("linear", "half_pixel")
    matrices = weights(2, 4, *way), weights(3, 3, *way), weights(2, 6, *way)

    assert_results({nn.upsampling3d(V, 2, 1, 3, "NCDHW", "trilinear"): np.einsum(
        "ncdhw,zd,yh,xw->nczyx", v, *matrices).astype("float32")}, {V: v}, rtol=1e-4)


def sampled(a: Array, grid: Array, method: str, border: bool, align: bool) -> Array:
    n, c, h, w = a.shape
    result = np.zeros((n, c, *grid.shape[2:]))
    for k, y, x in product(range(n), *map(range, grid.shape[2:])):
        place = []
        for at, extent in zip(grid[k, ::-1, y, x], (h, w), strict=True):
            found = (at + 1) / 2 * (extent - 1) if align else ((at + 1) * extent - 1) / 2
            place.append(min(max(found, 0), extent - 1) if border else found)
        low = [int(np.floor(p)) for p in place]
        taps = [[(low[d], low[d] + 1 - place[d]), (low[d] + 1, place[d] - low[d])] for d in (0, 1)]
        if method == "nearest":
            taps = [[(int(np.rint(p)), 1.0)] for p in place]
        for (row, one), (column, other) in product(*taps):
            if 0 <= row < h and 0 <= column < w:
                result[k, :, y, x] += a[k, :, row, column] * one * other
    return result


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("align", [True, False])
def test_images_through_grids(method: str, align: bool) -> None:
    a = values((2, 2, 4, 5), "float32")
    grid = (np.random.default_rng(0).random((2, 2, 3, 4)) * 2.6 - 1.3).astype("float32")
    A, G = given(a), given(grid, "G")

    assert_results({
        image.grid_sample(A, G, method, "NCHW", "border" if border else "zeros", align): sampled(
            a, grid, method, border, align).astype("float32") for border in (False, True)
    }, {A: a, G: grid}, rtol=1e-4)


@pytest.mark.parametrize("align", [True, False])
def test_affine_maps(align: bool) -> None:
    maps = values((2, 2, 3), "float32")
    M = given(maps, "M")
    y, x = (np.linspace(-1, 1, n) if align else (np.arange(n) * 2 + 1) / n - 1 for n in (3, 4))
    plane = np.stack([*reversed(np.meshgrid(y, x, indexing="ij")), np.ones((3, 4))])

    assert_results({image.affine_grid(M, (3, 4), align): np.einsum(
        "nij,jyx->niyx", maps, plane).astype("float32")}, {M: maps})


def test_compiled_with_sizes_at_the_call() -> None:
    n, h = te.var("n"), te.var("h")
    A = te.placeholder((n, 2, h, 4), name="A")
    B = nn.upsampling(A, 2, 2, method="bilinear")
    kernel = tecomp.build(B, [A, B])
    for batch, rows in [(1, 2), (2, 5)]:
        a = values((batch, 2, rows, 4), "float32")
        result = np.full((batch, 2, 2 * rows, 8), 77, "float32")
        kernel(a, result)
        expected = weights(rows, 2 * rows, "linear", "asymmetric") @ a @ weights(
            4, 8, "linear", "asymmetric").T
        assert_close(result, expected, rtol=1e-4, atol=1e-5)
    a = values((1, 1, 4, 4), "float32")
    S = given(a)
    matrix = weights(4, 7, "cubic", "half_pixel")
    assert_results({image.resize2d(S, [], (7, 7), method="cubic"): (
        matrix @ a @ matrix.T).astype("float32")}, {S: a}, run=compiled, rtol=1e-4)


@pytest.mark.parametrize("mode", [
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize"])
def test_images_without_pixels(mode: str) -> None:
    a = values((1, 3, 4, 4), "float32")
    A = given(a)
    result = image.resize2d(A, [0.0, 0.0, 1.0, 1.0], (0, 5), coordinate_transformation_mode=mode)

    assert_results({result: np.zeros((1, 3, 0, 5), "float32")}, {A: a}, run=compiled)


def test_refusals() -> None:
    A, M = te.placeholder((1, 3, 4, 4), name="A"), te.placeholder((2, 3, 3), name="M")

    assert refused(lambda: image.resize2d(A, [], (8, 8), method="area")) == (
        Diagnostic(
            "unknown-choice", where="topi.image.resize2d", subject="method", value="area",
            known="'nearest_neighbor', 'linear', 'bilinear', 'trilinear', 'cubic', 'bicubic'",
        )
    )
    assert refused(lambda: image.resize2d(A, [], (8,))) == (
        Diagnostic("count-mismatch", where="topi.image.resize2d", subject="size", value_count=1, count=2)
    )
    assert refused(lambda: image.resize1d(A, [], 8)) == (
        Diagnostic(
            "shapes", where="topi.image.resize1d", subject="data", shape="(1, 3, 4, 4)", rank=3,
            named=", NCW",
        )
    )
    assert refused(lambda: image.resize2d(
        A, [], 8, coordinate_transformation_mode="tf_crop_and_resize")) == (
        Diagnostic("count-mismatch", where="topi.image.resize2d", roi_count=0, expected=4)
    )
    assert refused(lambda: image.affine_grid(M, (3, 4))) == (
        Diagnostic("shapes", where="topi.image.affine_grid", data="M", shape="(2, 3, 3)")
    )
    assert refused(lambda: image.grid_sample(A, A)) == (
        Diagnostic(
            "shapes", where="topi.image.grid_sample", data="A", shape="(1, 3, 4, 4)",
            grid_shape="(1, 3, 4, 4)",
        )
    )
    assert refused(lambda: nn.upsampling(A, 0, 1)) == (
        Diagnostic("invalid-value", where="topi.nn.upsampling", scale=0)
    )


def dilated(
    x: Array, w: Array, stride: int, pad: tuple[int, int], gap: int
) -> Array:
    """Compute the dilation of (n, c, h, w) with a structuring element (c, h, w) with NumPy."""
    wide = np.pad(x, [(0, 0), (0, 0), pad, pad])
    sizes = [(n - gap * (k - 1) - 1) // stride + 1
             for n, k in zip(wide.shape[2:], w.shape[1:], strict=True)]  # fmt: skip
    rows, columns = sizes
    sums = [
        wide[:, :, a * gap : a * gap + stride * (rows - 1) + 1 : stride,
             b * gap : b * gap + stride * (columns - 1) + 1 : stride] + w[:, a, b, None, None]
        for a in range(w.shape[1]) for b in range(w.shape[2])
    ]
    result: Array = np.max(sums, 0)
    return result


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("stride", "padding", "gap"), [
    (1, 0, 1), (2, 1, 1), (1, "SAME", 2), (2, "VALID", 2), (1, (1, 1, 1, 1), 1)])
def test_dilations(stride: int, padding: Any, gap: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, (2, 3, 9, 8)).astype("float32")
    w = rng.integers(-9, 9, (3, 3, 3)).astype("float32")
    pad = {"SAME": (gap, gap), "VALID": (0, 0), 0: (0, 0)}.get(padding, (1, 1))
    expected = dilated(x, w, stride, pad, gap)
    last, relief = x.transpose(0, 2, 3, 1).copy(), w.transpose(1, 2, 0).copy()
    X, W = te.placeholder(x.shape, name="X"), te.placeholder(w.shape, name="W")
    L, R = te.placeholder(last.shape, name="L"), te.placeholder(relief.shape, name="R")

    assert_results(
        {image.dilation2d_nchw(X, W, stride, padding, gap): expected}, {X: x, W: w})
    assert_results(
        {image.dilation2d_nhwc(L, R, stride, padding, gap): expected.transpose(0, 2, 3, 1)},
        {L: last, R: relief})
    whole = image.dilation2d_nchw(X, W, stride, padding, gap, "int32")
    assert_results({whole: expected.astype("int32")}, {X: x, W: w})


def test_dilations_that_are_refused() -> None:
    X, W = te.placeholder((1, 3, 8, 8), name="X"), te.placeholder((4, 3, 3), name="W")

    assert refused(lambda: image.dilation2d_nchw(X, W, 1, 0, 1)) == (
        Diagnostic(
            "shapes", where="topi.image.dilation2d_nchw", data="X", shape="(1, 3, 8, 8)",
            layout="NCHW", channel_count="3", relief="W", relief_shape="(4, 3, 3)", relief_layout="CHW",
            relief_count="4",
        )
    )
