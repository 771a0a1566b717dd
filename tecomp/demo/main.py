"""Demonstration: build, run, explain and check the filters for a target."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tecomp
from tecomp.demo.filters import (
    Array,
    Bank,
    FilterProgram,
    filter_bank,
    photograph,
    picture,
    schedule_on_cpu,
    schedule_on_target,
    with_numpy,
    with_scipy,
)
from tecomp.driver.build import ScheduledKernel
from tecomp.errors import TargetError
from tecomp.ir.nodes.stmt import Allocate, Buffer, BufferRealize, PrimFunc
from tecomp.ir.traversal.rewrite import walk
from tecomp.machine.descriptor import Target

_TEXTURE = "global.texture"
RTOL, ATOL = 1e-4, 1e-5  # error of a sum of 75 float32 products of order 1


@dataclass(frozen=True, slots=True)
class DemoRun:
    """Options of the demonstration.

    Attributes:
        target: Target of the filters.
        output: Path of the PNG file.
        timeline: Path of the modelled timeline; None to omit it.
    """

    target: Target
    output: Path
    timeline: Path | None = None


def run(job: DemoRun, show: Callable[[str], None]) -> bool:
    """Run the demo, explain it through `show`, and write the PNG file.

    On the host CPU, times are compared with NumPy and SciPy. For any other target, the program for
    that target runs on the host, and the report gives the modelled cost.

    Returns:
        Whether the features agree with SciPy.

    Raises:
        ModuleNotFoundError: If the extra `demo` is not installed.
        TargetError: If the target lacks a required component.
        CapacityError: If the memories of the target are too small.
    """
    for library in ("matplotlib", "scipy"):
        import_module(library)
    image, bank = photograph(), filter_bank()
    _section(show, "input", _input_text(image, bank))
    _, height, width, _ = image.shape
    size = height, width, len(bank.names)
    program = schedule_on_target(job.target, *size) or _without_scratchpads(job.target, *size)
    kernel = _build_program(program, job.target, show)

    result = kernel.empty(program.args[-1])
    _section(show, "run", _times(kernel, image, bank, result, job.target))
    if job.target.code.kind != "host":
        _section(show, "report", str(kernel.report()))
    if job.timeline is not None:
        job.timeline.write_text(kernel.report().trace(), encoding="utf-8")
        show(f"timeline written to {job.timeline}; open it with https://ui.perfetto.dev")

    _section(show, "check", "computing the features with SciPy in float64 ...")
    expected = with_scipy(image.astype(np.float64), bank)
    features = np.asarray(kernel.unpack(program.args[-1], result))
    agree, sentence = _compare_features(features, expected)
    show(sentence)

    picture(image, features, bank.names, job.output)
    show(f"picture written to {job.output}")
    return agree


def _without_scratchpads(target: Target, *size: int) -> FilterProgram:
    """Return the program for a CPU, which stores images as textures.

    Raises:
        TargetError: If the target has neither scratchpads nor textures.
    """
    if _TEXTURE not in target.memories:
        raise TargetError(
            "target {target} has no scratchpads; describe a memory with `capacity_bytes` that a "
            "[link] connects to the memory of whole tensors",
            target=target.name,
        )
    return schedule_on_cpu(*size)


def _section(show: Callable[[str], None], title: str, text: str) -> None:
    show(f"\n--- {title} ".ljust(80, "-"))
    show(text)


def _build_program(
    program: FilterProgram, target: Target, show: Callable[[str], None]
) -> ScheduledKernel:
    """Build the program, and show the intermediate results."""
    s, args = program.schedule, program.args
    # Build before printing, so that an error does not follow pages of loops.
    start = time.perf_counter()
    kernel = tecomp.build(s, args, target=target, name="filters")
    seconds = time.perf_counter() - start
    _section(show, "schedule", str(s.trace))
    _section(show, "lowered function", str(tecomp.lower(s, args, name="filters")))
    _section(show, "shapes", _shape_table(program))
    _section(show, "compile", f"schedule to native code: {1e3 * seconds:.0f} ms")
    return kernel


def _times(
    kernel: ScheduledKernel, image: Array, bank: Bank, result: Array, target: Target
) -> str:
    """Measure the run time on the host, compared with libraries if the host is the target."""
    flop = 2 * image[0, :, :, 0].size * bank.weights.size
    is_host = target.code.kind == "host"
    contenders: list[tuple[str, Callable[[], object], int]] = [
        ("tecomp" if is_host else f"program for {target.name}, run on the host",
         lambda: kernel(image, bank.weights, bank.bias, result), 20 if is_host else 1),
    ]
    if is_host:
        contenders += [
            ("NumPy, im2col and matrix product", lambda: with_numpy(image, bank), 5),
            ("SciPy, ndimage.correlate", lambda: with_scipy(image, bank), 2),
        ]
    lines = []
    for name, work, repeats in contenders:
        seconds = _best(work, repeats)
        lines.append(f"{name:<40}{1e3 * seconds:9.1f} ms{flop / seconds / 1e9:9.1f} GFLOP/s"
                     f"   best of {repeats}")
    return "\n".join(lines)


def _best(work: Callable[[], object], repeats: int) -> float:
    """Return the minimum time of `repeats` runs in seconds, after a warm-up run."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _buffers(func: PrimFunc) -> dict[str, Buffer]:
    """Return all buffers of a function by name: parameters, then allocations."""
    params = [param for param in func.params if isinstance(param, Buffer)]
    inner = [node.buffer for node in walk(func.body) if isinstance(node, Allocate | BufferRealize)]
    return {buffer.name: buffer for buffer in (*params, *inner)}


def _shape_table(program: FilterProgram) -> str:
    """Return a table of the logical, transformed and physical shape of each buffer."""
    stages = ("nest", "apply_buffer_transforms", "flatten_buffer")
    original, laid_out, flat = (
        _buffers(tecomp.lower(program.schedule, program.args, stop_after=stage)) for stage in stages
    )
    lines = [f"{'buffer':<20}{'logical':<20}{'transformed':<24}{'physical':<16}scope"]
    for name, buffer in flat.items():
        shapes = [
            "x".join(map(str, at[name].shape)) if name in at else "" for at in (original, laid_out)
        ]
        physical = "x".join(map(str, buffer.shape))
        lines.append(f"{name:<20}{shapes[0]:<20}{shapes[1]:<24}{physical:<16}{buffer.scope}")
    return "\n".join(lines)


def _input_text(image: Array, bank: Bank) -> str:
    """Describe the image and the filters."""
    _, height, width, _ = image.shape
    lines = [
        f"photograph  {height} x {width} x 3, float32: Grace Hopper, by James S. Davis, U.S. Navy",
        "            (public domain; grace_hopper.jpg of Matplotlib's sample data)",
        f"filters     {len(bank.names)} of 5 x 5 x 3, then bias and ReLU",
    ]
    for first in range(0, len(bank.names), 4):
        lines.append(f"            {', '.join(bank.names[first : first + 4])}")
    return "\n".join(lines)


def _compare_features(features: Array, expected: NDArray[np.floating]) -> tuple[bool, str]:
    """Return whether the features match the expected ones, and a sentence about the difference."""
    error = np.abs(features - expected)
    agree = bool(np.all(error <= ATOL + RTOL * np.abs(expected)))
    verdict = "the results agree" if agree else "THE RESULTS DISAGREE"
    return agree, (
        f"maximum difference {error.max():.2e}, tolerance {ATOL:g} + {RTOL:g} |x|: {verdict}"
    )
