"""The demonstration: the filters, built and run for a target, explained, and checked."""

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
    Program,
    filter_bank,
    filtered,
    filtered_on,
    photograph,
    picture,
    with_numpy,
    with_scipy,
)
from tecomp.driver.build import ScheduledKernel
from tecomp.errors import TargetError
from tecomp.ir.nodes.stmt import Allocate, Buffer, BufferRealize, PrimFunc
from tecomp.ir.traversal.rewrite import walk
from tecomp.machine.descriptor import Target

_TEXTURE = "global.texture"
RTOL, ATOL = 1e-4, 1e-5  # 75 float32 products are summed, of values of order 1


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done.

    Attributes:
        target: the machine that the filters run on.
        output: where the picture goes.
        timeline: where the modelled timeline goes; None for nowhere.
    """

    target: Target
    output: Path
    timeline: Path | None = None


def run(job: Job, show: Callable[[str], None]) -> bool:
    """Run the demo, explain it through `show`, and write the picture.

    On the processor at hand, times stand beside those of NumPy and SciPy. Any other machine runs
    here as it would run there, and the report says what it would cost there.

    Returns:
        Whether the features agree with SciPy's.

    Raises:
        ModuleNotFoundError: the extra `demo` is not installed.
        TargetError: the target lacks what the program needs.
        CapacityError: its memories are too small.
    """
    for library in ("matplotlib", "scipy"):
        import_module(library)
    image, bank = photograph(), filter_bank()
    _section(show, "input", _input_text(image, bank))
    _, height, width, _ = image.shape
    size = height, width, len(bank.names)
    program = filtered_on(job.target, *size) or _without_scratchpads(job.target, *size)
    kernel = _compiled(program, job.target, show)

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
    agree, sentence = _compared(features, expected)
    show(sentence)

    picture(image, features, bank.names, job.output)
    show(f"picture written to {job.output}")
    return agree


def _without_scratchpads(target: Target, *size: int) -> Program:
    """The program of a processor, whose images are textures.

    Raises:
        TargetError: the target has neither scratchpads nor textures.
    """
    if _TEXTURE not in target.memories:
        raise TargetError(
            f"target {target.name} has no scratchpads; describe a memory with `capacity_bytes` "
            "that a [link] from the memory of whole tensors leads to"
        )
    return filtered(*size)


def _section(show: Callable[[str], None], title: str, text: str) -> None:
    show(f"\n--- {title} ".ljust(80, "-"))
    show(text)


def _compiled(program: Program, target: Target, show: Callable[[str], None]) -> ScheduledKernel:
    """Build the program, and show what becomes of it on the way."""
    s, args = program.schedule, program.args
    # Build first: an error must not follow pages of loops.
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
    """How long it takes here; on the processor at hand beside libraries."""
    flop = 2 * image[0, :, :, 0].size * bank.weights.size
    is_host = target.code.kind == "host"
    contenders: list[tuple[str, Callable[[], object], int]] = [
        ("tecomp" if is_host else f"the program of {target.name}, here, in loops",
         lambda: kernel(image, bank.weights, bank.bias, result), 20 if is_host else 1),
    ]
    if is_host:
        contenders += [
            ("NumPy, windows and one matrix product", lambda: with_numpy(image, bank), 5),
            ("SciPy, ndimage.correlate", lambda: with_scipy(image, bank), 2),
        ]
    lines = []
    for name, work, repeats in contenders:
        seconds = _best(work, repeats)
        lines.append(f"{name:<40}{1e3 * seconds:9.1f} ms{flop / seconds / 1e9:9.1f} GFLOP/s"
                     f"   best of {repeats}")
    return "\n".join(lines)


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
    lines = [f"{'buffer':<20}{'logical':<20}{'laid out':<24}{'in memory':<16}scope"]
    for name, buffer in flat.items():
        shapes = [
            "x".join(map(str, at[name].shape)) if name in at else "" for at in (written, laid_out)
        ]
        physical = "x".join(map(str, buffer.shape))
        lines.append(f"{name:<20}{shapes[0]:<20}{shapes[1]:<24}{physical:<16}{buffer.scope}")
    return "\n".join(lines)


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
