"""The main job from end to end: a bank of image filters, written, scheduled, laid out and run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.ir.rewrite import walk
from tecomp.ir.stmt import Allocate, Buffer, BufferRealize, PrimFunc

Array = NDArray[np.float32]

LUMA = np.array([0.299, 0.587, 0.114])  # Rec. ITU-R BT.601, weights of red, green and blue
LANES = 16  # channels in one block of the layout
COLUMNS = 8  # pixels that one register tile covers
RTOL, ATOL = 1e-4, 1e-5  # 75 float32 products are summed, of values of order 1


@dataclass(frozen=True, slots=True)
class Bank:
    """Filters `weights[5, 5, 3, k]`, one `bias[k]` and one name each."""

    names: tuple[str, ...]
    weights: Array
    bias: Array


@dataclass(frozen=True, slots=True)
class Program:
    """The tensors of one computation and its schedule."""

    schedule: te.Schedule
    args: list[te.Tensor]


def photograph() -> Array:
    """A portrait `[1, height, width, 3]`, values from 0 to 1.

    Source:
        `grace_hopper.jpg` of Matplotlib's sample data: Grace Hopper, by James S. Davis, U.S. Navy;
        public domain.
    """
    from matplotlib.cbook import get_sample_data
    from matplotlib.image import imread

    pixels = imread(get_sample_data("grace_hopper.jpg", asfileobj=False))
    return np.ascontiguousarray(pixels[None], dtype=np.float32) / np.float32(255)


def _gabor(angle: float, phase: float) -> NDArray[np.float64]:
    """A wave of 4 pixels under a Gaussian window, without response to a flat image."""
    y, x = np.mgrid[-2:3, -2:3]
    along = x * math.cos(angle) + y * math.sin(angle)
    window = np.exp(-(x**2 + y**2) / (2 * 1.4**2))
    wave = window * np.cos(2 * math.pi * along / 4 + phase)
    return np.asarray(wave - window * (wave.sum() / window.sum()))


def _gaussian(sigma: float) -> NDArray[np.float64]:
    y, x = np.mgrid[-2:3, -2:3]
    bell = np.exp(-(x**2 + y**2) / (2 * sigma**2))
    return np.asarray(bell / bell.sum())


def _grey_filters() -> dict[str, NDArray[np.float64]]:
    """Filters of the brightness, 5x5 each."""
    filters = {
        f"Gabor {22.5 * turn:g}° {name}": _gabor(math.pi * turn / 8, phase)
        for name, phase in (("even", 0.0), ("odd", math.pi / 2))
        for turn in range(8)
    }
    sobel = np.outer([1, 4, 6, 4, 1], [-1, -2, 0, 2, 1])
    # Farid and Simoncelli, "Differentiation of Discrete Multidimensional Signals", 5 taps.
    farid = np.outer(
        [0.037659, 0.249153, 0.426375, 0.249153, 0.037659],
        [-0.109604, -0.276691, 0.0, 0.276691, 0.109604],
    )
    dot = np.zeros((5, 5))
    dot[2, 2] = 1.0
    laplacian = np.zeros((5, 5))
    laplacian[1:4, 1:4] = [[0, 1, 0], [1, -4, 1], [0, 1, 0]]
    narrow, wide = _gaussian(0.8), _gaussian(1.6)
    log = np.array(
        [[0, 0, 1, 0, 0], [0, 1, 2, 1, 0], [1, 2, -16, 2, 1], [0, 1, 2, 1, 0], [0, 0, 1, 0, 0]]
    )
    return filters | {
        "Sobel x": sobel,
        "Sobel y": sobel.T,
        "Farid x": farid,
        "Farid y": farid.T,
        "Gaussian": _gaussian(1.0),
        "Box": np.full((5, 5), 1 / 25),
        "Sharpen": 2 * dot - wide,
        "Laplacian": laplacian,
        "Laplacian of Gaussian": log,
        "Difference of Gaussians": narrow - wide,
        "Emboss": np.diag([-2.0, -1.0, 0.0, 1.0, 2.0]),
        "Corner": np.outer([-1, -1, 0, 1, 1], [-1, -1, 0, 1, 1]),
    }


def filter_bank() -> Bank:
    """32 filters: 28 of the brightness, and 4 that set one colour against another."""
    filters = {
        name: grey[:, :, None] * LUMA for name, grey in _grey_filters().items()
    }
    narrow, wide = _gaussian(0.8), _gaussian(1.6)
    red, green, blue = np.eye(3)
    colours = {"red": red, "green": green, "blue": blue, "yellow": (red + green) / 2}
    for centre, surround in (("red", "green"), ("green", "red"), ("blue", "yellow"),
                             ("yellow", "blue")):
        filters[f"{centre} against {surround}"] = (
            narrow[:, :, None] * colours[centre] - wide[:, :, None] * colours[surround]
        )
    stacked = np.stack([each / np.abs(each).sum() for each in filters.values()], axis=-1)
    # A filter that answers to flat regions passes; the others have to pass a threshold.
    bias = np.where(stacked.sum(axis=(0, 1, 2)) > 0.1, 0.0, -0.01)
    return Bank(tuple(filters), stacked.astype(np.float32), bias.astype(np.float32))


def filtered(height: int, width: int, n_filters: int) -> Program:
    """The filters over a photograph of this size, written with `te` and scheduled."""
    image = te.placeholder((1, height, width, 3), name="image")
    weights = te.placeholder((5, 5, 3, n_filters), name="weights")
    bias = te.placeholder((n_filters,), name="bias")

    padded = te.compute(
        (1, height + 4, width + 4, 3),
        lambda n, y, x, c: te.if_then_else(
            te.all(y >= 2, y < height + 2, x >= 2, x < width + 2), image[n, y - 2, x - 2, c], 0.0
        ),
        name="padded",
    )
    ry = te.reduce_axis((0, 5), name="ry")
    rx = te.reduce_axis((0, 5), name="rx")
    rc = te.reduce_axis((0, 3), name="rc")
    response = te.compute(
        (1, height, width, n_filters),
        lambda n, y, x, k: te.sum(
            padded[n, y + ry, x + rx, rc] * weights[ry, rx, rc, k], axis=[ry, rx, rc]
        ),
        name="response",
    )
    features = te.compute(
        response.shape,
        lambda n, y, x, k: te.max(response[n, y, x, k] + bias[k], 0.0),
        name="features",
    )

    return Program(
        _scheduled(weights, padded, response, features), [image, weights, bias, features]
    )


def _scheduled(
    weights: te.Tensor, padded: te.Tensor, response: te.Tensor, features: te.Tensor
) -> te.Schedule:
    """When, where and in which order the filters are computed."""
    s = te.create_schedule(features.op)
    total = s.cache_write(response, "local")
    packed = s.cache_read(weights, "global", [total])
    s[response].compute_inline()

    # The padded picture is a texture: one physical axis of rows, one of pixels.
    s[padded].set_scope("global.texture")
    _, row, _, _ = s[padded].transform_layout(
        lambda n, y, x, c: [n, y, te.AXIS_SEPARATOR, x, c]
    )
    s[padded].parallel(row)

    # Sixteen filters lie side by side, as the vectors of `total` want them.
    *_, lane = s[packed].transform_layout(lambda y, x, c, k: [k // LANES, y, x, c, k % LANES])
    s[packed].vectorize(lane)

    # NHWC in blocks of sixteen channels, one row of blocks after the other.
    n, y, block, x, lane = s[features].transform_layout(
        lambda n, y, x, k: [n, y, k // LANES, x, k % LANES]
    )
    x_outer, x_inner = s[features].split(x, factor=COLUMNS)
    s[features].reorder(n, y, block, x_outer, x_inner, lane)
    s[features].parallel(y)
    s[features].vectorize(lane)

    # One tile of sums stays in registers while all 75 products are added.
    s[total].compute_at(s[features], x_outer)
    n, y, x, k = s[total].op.axis
    ry, rx, rc = s[total].op.reduce_axis
    s[total].reorder(n, y, ry, rx, rc, x, k)
    s[total].unroll(x)
    s[total].vectorize(k)
    return s


def with_numpy(image: Array, bank: Bank) -> Array:
    """The same features by one matrix product over all 5x5x3 windows."""
    border = np.pad(image[0], ((2, 2), (2, 2), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(border, (5, 5), axis=(0, 1))
    height, width = windows.shape[:2]
    # A window comes as (channel, y, x).
    weights = bank.weights.transpose(2, 0, 1, 3).reshape(75, -1)
    response = windows.reshape(height * width, 75) @ weights
    features = np.maximum(response + bank.bias, np.float32(0.0))
    return np.asarray(features.reshape(1, height, width, -1))


def with_scipy(image: NDArray[np.floating], bank: Bank) -> NDArray[np.floating]:
    """The same features, one plane and one filter at a time, in the type of `image`."""
    from scipy.ndimage import correlate

    weights, bias = bank.weights.astype(image.dtype), bank.bias.astype(image.dtype)
    planes = [np.ascontiguousarray(image[0, :, :, c]) for c in range(3)]
    features = np.empty((*image.shape[:3], bias.size), image.dtype)
    for k in range(bias.size):
        features[0, :, :, k] = sum(
            correlate(plane, weights[:, :, c, k], mode="constant")
            for c, plane in enumerate(planes)
        )
    return np.asarray(np.maximum(features + bias, 0.0))


def picture(image: Array, features: Array, names: tuple[str, ...], output: Path) -> None:
    """Write the input beside its feature maps as a PNG."""
    from matplotlib.figure import Figure

    columns = len(names) // 4
    figure = Figure(figsize=(4.5 + 1.5 * columns, 7.6), layout="constrained")
    grid = figure.add_gridspec(4, 3 + columns)
    panels = [("input", image[0], grid[:, :3])]
    for k, name in enumerate(names):
        panels.append((name, features[0, :, :, k], grid[k // columns, 3 + k % columns]))
    for title, pixels, place in panels:
        axes = figure.add_subplot(place)
        # A few strong edges would leave everything else black.
        axes.imshow(pixels, cmap="gray", vmin=0, vmax=np.percentile(pixels, 99.5))
        axes.set_title(title, fontsize=7)
        axes.set_axis_off()
    figure.savefig(output, format="png", dpi=120)


def _best(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the quickest of `repeats` runs, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _buffers(func: PrimFunc) -> dict[str, Buffer]:
    """All buffers of a function by name: its parameters, then what it allocates."""
    params = [param for param in func.params if isinstance(param, Buffer)]
    inner = [node.buffer for node in walk(func.body) if isinstance(node, Allocate | BufferRealize)]
    return {buffer.name: buffer for buffer in (*params, *inner)}


def _shape_table(program: Program) -> str:
    """For each buffer its shape as written, as laid out, and as it is in memory."""
    stages = ("nest", "apply_buffer_transforms", "flatten_buffer")
    written, laid_out, flat = (
        _buffers(tecomp.lower(program.schedule, program.args, stop_after=stage)) for stage in stages
    )
    lines = [f"{'buffer':<16}{'logical':<20}{'laid out':<24}{'in memory':<16}scope"]
    for name, buffer in flat.items():
        shapes = [
            "x".join(map(str, at[name].shape)) if name in at else "" for at in (written, laid_out)
        ]
        physical = "x".join(map(str, buffer.shape))
        lines.append(f"{name:<16}{shapes[0]:<20}{shapes[1]:<24}{physical:<16}{buffer.scope}")
    return "\n".join(lines)


def run(output: Path, show: Callable[[str], None]) -> bool:
    """Run the demo, explain it through `show`, and write the picture to `output`.

    Returns:
        Whether the features agree with SciPy's.

    Raises:
        ModuleNotFoundError: the extra `demo` is not installed.
    """
    for library in ("matplotlib", "scipy"):
        import_module(library)

    def section(title: str) -> None:
        show(f"\n--- {title} ".ljust(80, "-"))

    image, bank = photograph(), filter_bank()
    _, height, width, _ = image.shape
    n_filters = len(bank.names)
    section("input")
    show(_input_text(image, bank))

    program = filtered(height, width, n_filters)
    section("schedule")
    show(str(program.schedule.trace))
    section("lowered function")
    show(str(tecomp.lower(program.schedule, program.args, name="filters")))
    section("shapes")
    show(_shape_table(program))

    section("compile")
    start = time.perf_counter()
    kernel = tecomp.build(program.schedule, program.args, target="cpu", name="filters")
    show(f"schedule to native code: {1e3 * (time.perf_counter() - start):.0f} ms")

    section("run")
    blocked = np.empty((1, height, n_filters // LANES, width, LANES), np.float32)
    flop = 2 * image[0, :, :, 0].size * bank.weights.size
    contenders: dict[str, tuple[Callable[[], object], int]] = {
        "tecomp": (lambda: kernel(image, bank.weights, bank.bias, blocked), 20),
        "NumPy, windows and one matrix product": (lambda: with_numpy(image, bank), 5),
        "SciPy, ndimage.correlate": (lambda: with_scipy(image, bank), 2),
    }
    for name, (work, repeats) in contenders.items():
        seconds = _best(work, repeats)
        show(f"{name:<40}{1e3 * seconds:9.1f} ms{flop / seconds / 1e9:9.1f} GFLOP/s"
             f"   best of {repeats}")

    section("check")
    show("computing the features with SciPy in float64 ...")
    expected = with_scipy(image.astype(np.float64), bank)
    features = np.asarray(kernel.unpack(program.args[-1], blocked))
    agree, sentence = _compared(features, expected)
    show(sentence)

    picture(image, features, bank.names, output)
    show(f"picture written to {output}")
    return agree


def _input_text(image: Array, bank: Bank) -> str:
    """What is filtered, and with what."""
    _, height, width, _ = image.shape
    lines = [
        f"photograph  {height} x {width} x 3, float32: Grace Hopper, by James S. Davis, U.S. Navy",
        "            (public domain; grace_hopper.jpg of Matplotlib's sample data)",
        f"filters     {len(bank.names)} of 5 x 5 x 3, then bias and ReLU",
    ]
    for first in range(0, len(bank.names), 4):
        lines.append(f"            {', '.join(bank.names[first : first + 4])}")
    return "\n".join(lines)


def _compared(features: Array, expected: NDArray[np.floating]) -> tuple[bool, str]:
    """Whether the features are those expected, and that as a sentence."""
    error = np.abs(features - expected)
    agree = bool(np.all(error <= ATOL + RTOL * np.abs(expected)))
    verdict = "the numbers agree" if agree else "THE NUMBERS DO NOT AGREE"
    return agree, (
        f"largest difference {error.max():.2e}, allowed {ATOL:g} + {RTOL:g} |x|: {verdict}"
    )
