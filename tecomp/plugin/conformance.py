"""Tensor intrinsics of installed packages, and conformance checks of plug-ins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tecomp import te
from tecomp.compute.tensor import Tensor
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.driver.build import build
from tecomp.errors import CapacityError, TargetError, TecompError
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.stmt import Buffer
from tecomp.layout.formats.registry import format_named
from tecomp.machine.components import MatmulUnit, Memory
from tecomp.machine.descriptor import Target, read_target
from tecomp.machine.registry import find_description
from tecomp.scheduling.schedule import Schedule

GROUP = "tecomp.intrinsics"


def intrinsics(target: str | Target) -> Mapping[str, TensorIntrin]:
    """Return the intrinsics of a target for `s[T].tensorize`, by name.

    Args:
        target: Target, or its name.

    Returns:
        Read-only mapping from names to intrinsics.

    Raises:
        TargetError: If the target is not found, an entry point fails or returns an object that is
            not an intrinsic, or two entry points provide intrinsics of the same name.

    >>> intrinsics("stick128")["load_copy_float16"]
    TensorIntrin(load_copy_float16: c[i0] = a[i0])
    """
    machine = Target.of(target)
    found: dict[str, TensorIntrin] = {}
    owners: dict[str, str] = {}
    for entry in sorted(entry_points(group=GROUP, name=machine.name), key=lambda e: e.value):
        owner = entry.dist.name if entry.dist is not None else entry.name
        for intrin in _load_intrinsics(entry, owner, machine):
            if intrin.name in found:
                providers = " and by ".join(f"`{name}`" for name in (owners[intrin.name], owner))
                raise TargetError(
                    "operation `{intrin}` of target {machine} is provided by {both}; uninstall one "
                    "of them",
                    kind="plugin", intrin=intrin.name, machine=machine.name, both=providers,
                )
            found[intrin.name], owners[intrin.name] = intrin, owner
    return MappingProxyType(found)


def _load_intrinsics(entry: EntryPoint, owner: str, target: Target) -> tuple[TensorIntrin, ...]:
    where = f"operations of target {target.name}: plug-in `{entry.name}` of `{owner}`"
    try:
        offered = tuple(entry.load()(target))
    # The code of a package may raise any exception, or call `sys.exit`.
    except (Exception, SystemExit) as error:
        reason = error.message if isinstance(error, TecompError) else str(error)
        raise TargetError(
            "{where} cannot be loaded ({type}: {reason}); fix or uninstall it",
            kind="plugin", where=where, type=type(error).__name__, reason=reason,
        ) from error
    for intrin in offered:
        if not isinstance(intrin, TensorIntrin):
            raise TargetError(
                "{where} returned {value!r}; return results of te.decl_tensor_intrin",
                kind="plugin", where=where, value=intrin,
            )
    return offered


_MAX_NAMES = 8
"""Maximum number of names in the detail of a check."""

LOADS_IN = 0.010
"""Seconds of processor time within which a target description must load."""

_MAX_CORES = 1024
"""Maximum number of cores for which the check without a schedule runs."""

_ROWS = 64
"""Rows per core, and columns, of the program without a schedule."""

_MAX_BYTES = 1 << 28
"""Maximum bytes of the operands of an intrinsic that is checked."""


@dataclass(frozen=True, slots=True)
class ConformanceCheck:
    """Result of one conformance check of a target.

    Attributes:
        title: Requirement.
        detail: Measured value, or the reason of the failure.
        passed: Whether the target meets the requirement.
    """

    title: str
    detail: str
    passed: bool


def check_target(name: str | Path) -> tuple[ConformanceCheck, ...]:
    """Check the description of a target, and build and run small programs on it.

    Args:
        name: Name of an installed target, or path of a TOML file.

    Returns:
        Results of all checks; a target conforms if all have passed.

    Raises:
        TargetError: If the target is not found, or its description is malformed.

    >>> all(check.passed for check in check_target("cpu"))
    True
    """
    path = find_description(name)
    target = Target.load(path)
    return (
        _ran("description loads in less than 10 ms", partial(_speed, path)),
        _ran("name matches the file name", partial(_name, target, path)),
        _ran("description can be overridden", partial(_change, target)),
        *(
            _ran(f"{title} `{memory.name}`", partial(run, target, memory))
            for memory in target.memories.values()
            for title, run in (
                ("kernel stores a tensor in", _memory), ("capacity is enforced for", _capacity),
            )
        ),
        *(
            _ran(f"loop binds to grid axis `{axis}`", partial(_axis, target, axis))
            for axis in target.grid
        ),
        _ran("loops bind to all grid axes", partial(_grid, target)),
        _ran("automatic schedule uses the cores", partial(_automatic, target)),
        _ran("storage formats are known", partial(_formats, target)),
        _ran("operands of the units fit", partial(_engine, target)),
        _ran("intrinsics match their definitions", partial(_operations, target)),
    )


class _FailedError(Exception):
    """Error raised for a failed check; the argument is the reason."""


def _ran(title: str, run: Callable[[], str]) -> ConformanceCheck:
    try:
        return ConformanceCheck(title, run(), passed=True)
    except _FailedError as error:
        return ConformanceCheck(title, str(error), passed=False)
    except TecompError as error:
        return ConformanceCheck(title, error.message, passed=False)


def _speed(path: Path) -> str:
    """Check the load time: minimum processor time of ten runs, which excludes other processes."""
    best = float("inf")
    for _ in range(10):
        start = time.process_time()
        read_target(path.read_text(encoding="utf-8"), path.name)
        best = min(best, time.process_time() - start)
    if best >= LOADS_IN:
        raise _FailedError(f"{best * 1e3:.1f} ms; remove entries that no program needs")
    return f"{best * 1e3:.1f} ms"


def _name(target: Target, path: Path) -> str:
    if target.name != path.stem:
        raise _FailedError(f"`name` is `{target.name}`, the file {path.name}; rename one of them")
    return path.name


def _change(target: Target) -> str:
    if target.overridden() != target:
        raise _FailedError("values read differ from the description; report this to tecomp")
    return f"{len(target.rules)} rules, {len(target.engine)} units, {len(target.links)} links"


def _dtype(target: Target) -> str:
    return next(iter(target.formats), "float32")


def _increments(shape: tuple[int, ...], dtype: str) -> tuple[Tensor, Tensor]:
    A = te.placeholder(shape, dtype, name="A")  # noqa: N806  (tensors, as in the literature)
    B = te.compute(shape, lambda *i: A[i] + te.const(1, dtype), name="B")  # noqa: N806
    return A, B


def _runs(target: Target, s: Schedule, tensors: tuple[Tensor, Tensor]) -> None:
    """Build a program that adds 1, run it on the target and compare the result with NumPy."""
    source, result = tensors
    kernel = build(s, list(tensors), target=target, name="conformance")
    shape = _shape(source)
    kind = DType(source.dtype).numpy
    a = (np.arange(prod(shape)) % 7).reshape(shape).astype(kind)
    b = np.zeros(shape, kind)
    kernel(a, b)
    mismatches = np.argwhere(b != (a + np.ones((), kind)).astype(kind))
    if mismatches.size:
        where = tuple(map(int, mismatches[0]))
        raise _FailedError(f"{result.name}{list(where)} is {b[where]}, NumPy has {a[where] + 1}")


def _memory(target: Target, memory: Memory) -> str:
    """Check that a program reads a copy of its argument from a memory, for each address rank."""
    for rank in {memory.rank, *([1] if memory.takes_flat else [])}:
        tensors = _increments((4,) * rank, _dtype(target))
        s = te.create_schedule(tensors[1].op)
        copied = s.cache_read(tensors[0], memory.name, [tensors[1]])
        if rank > 1:
            _lay_out_addresses(target, s, copied, memory.name)
        _runs(target, s, tensors)
    return memory.axes


def _lay_out_addresses(target: Target, s: Schedule, tensor: Tensor, scope: str) -> None:
    """Lay out a tensor for a memory with multi-axis addresses, which are its last axes."""
    rank = target.memory(scope).rank

    def separated(*index: object) -> Iterator[object]:
        indices = (*[te.const(0, "int64")] * (rank - len(index)), *index)
        for k, idx in enumerate(indices):
            if k > len(indices) - rank:
                yield te.AXIS_SEPARATOR
            yield idx

    if rank > 1:
        s[tensor].transform_layout(lambda *i: list(separated(*i)), loops="logical")


def _capacity(target: Target, memory: Memory) -> str:
    capacity = memory.usable_bytes
    if capacity is None:
        return "no capacity specified"
    separators = tuple(range(memory.rank - 1))
    rows = (*[1] * (memory.rank - 2), memory.rows or 1) if memory.rank > 1 else ()
    byte, row = DType("int8"), capacity // (memory.rows or 1)
    target.check_buffer(Buffer("full", (*rows, row), byte, memory.name, separators))
    try:
        target.check_buffer(Buffer("larger", (*rows, row + 1), byte, memory.name, separators))
    except CapacityError:
        return f"{capacity} bytes"
    raise _FailedError(f"{capacity + 1} bytes were accepted in {capacity}; report this to tecomp")


def _axis(target: Target, axis: str) -> str:
    cores = target.grid[axis]
    for iterations in (cores, cores + 1):
        tensors = _increments((iterations,), _dtype(target))
        s = te.create_schedule(tensors[1].op)
        s[tensors[1]].bind(s[tensors[1]].op.axis[0], te.thread_axis(axis))
        if iterations == cores:
            _runs(target, s, tensors)
            continue
        try:
            build(s, list(tensors), target=target)
        except TargetError:
            return f"{cores} cores"
    raise _FailedError(f"{cores + 1} iterations were bound to {cores} cores; report this to tecomp")


def _grid(target: Target) -> str:
    tensors = _increments(tuple(n + 1 for n in target.grid.values()) or (3,), _dtype(target))
    s = te.create_schedule(tensors[1].op)
    stage = s[tensors[1]]
    parts = [
        stage.split(loop, nparts=cores)
        for loop, cores in zip(stage.op.axis, target.grid.values(), strict=False)
    ]
    stage.reorder(*(outer for outer, _ in parts), *(inner for _, inner in parts))
    for (outer, _), axis in zip(parts, target.grid, strict=True):
        stage.bind(outer, te.thread_axis(axis))
    _runs(target, s, tensors)
    return f"{target.cores} cores"


def _automatic(target: Target) -> str:
    """Check that a program that `build` schedules uses most cores and their scratchpads."""
    if target.core is not None or not target.grid:
        return "no core grid with scratchpads"
    if target.cores > _MAX_CORES:
        return f"more than {_MAX_CORES} cores; not checked"
    source, result = _increments((_ROWS * target.cores, _ROWS), _dtype(target))
    report = build(result, [source, result], target=target, name="conformance").report()
    used = len(report.cores)
    memories = [target.memory(usage.memory) for usage in report.memories]
    limited = [memory for memory in memories if memory.usable_bytes is not None]
    pads = [memory for memory in limited if memory.scope == "core"] or limited
    found = f"{used} of {target.cores} cores, in " + (
        ", ".join(f"`{memory.name}`" for memory in pads) or "no scratchpad"
    )
    if 2 * used > target.cores and pads:
        return found
    raise _FailedError(
        f"{found}; describe a memory with `capacity_bytes`, and a [link] to it from the memory of "
        "whole tensors"
    )


def _formats(target: Target) -> str:
    names = sorted({name for names in target.formats.values() for name in names})
    for name in names:
        format_named(name)
    return ", ".join(names) or "none"


def _first_names(names: Sequence[str]) -> str:
    """Return the first `_MAX_NAMES` names and the number of the others."""
    if not names:
        return "none"
    suffix = [f"and {len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES else []
    return ", ".join([*names[:_MAX_NAMES], *suffix])


def _operations(target: Target) -> str:
    """Compare each intrinsic with the loops of its definition, unless it runs on hardware only."""
    checked = intrinsics(target)
    for name, intrin in checked.items():
        if intrin.check == "never":
            continue
        reference, actual = (_operation(target, intrin, is_native=flag) for flag in (False, True))
        close = np.isclose(reference, actual, 1e-2, 1e-2, equal_nan=True)
        if not close.all():
            where = tuple(map(int, np.argwhere(~close)[0]))
            raise _FailedError(
                f"`{name}` gives {actual[where]} at {list(where)}, but its definition gives "
                f"{reference[where]}"
            )
    return _first_names(list(checked))


def _operation(target: Target, intrin: TensorIntrin, *, is_native: bool) -> np.ndarray[Any, Any]:
    """Run an intrinsic, or its definition, on small integers and return the result.

    Scalar parameters are kernel arguments, because a constant could be folded into other code.

    Args:
        target: Target of the intrinsic.
        intrin: Intrinsic.
        is_native: If True, run the intrinsic; if False, run the loops of its definition.

    Returns:
        Result as float64.
    """
    result = intrin.op.output(0)
    s = te.create_schedule(intrin.op)
    stage = s[result]
    if is_native:
        *ins, out = intrin.scopes or ("",) * len(intrin.buffers)
        reader = s.cache_write(result, out) if out else result
        if out:
            _lay_out_addresses(target, s, reader, out)
        for tensor, scope in zip(intrin.inputs, ins, strict=True):
            if scope:
                _lay_out_addresses(target, s, s.cache_read(tensor, scope, [reader]), scope)
        stage = s[reader]
        stage.tensorize(stage.op.axis[0], intrin)
    tensors = (*intrin.inputs, result)
    size = sum(prod(_shape(tensor)) * DType(tensor.dtype).bytes for tensor in tensors)
    if size > _MAX_BYTES:
        raise _FailedError(
            f"`{intrin.name}` has {size} bytes of operands, too many to check it here; make them "
            f"at most {_MAX_BYTES}"
        )
    arrays = [np.zeros(_shape(tensor), DType(tensor.dtype).numpy) for tensor in tensors]
    for k, array in enumerate(arrays[:-1]):
        array[...] = (np.arange(array.size) % (5 + k)).reshape(array.shape)
    scalars = intrin.scalar_params
    kernel = build(s, [*scalars, *intrin.inputs, result], target=target, name="operation")
    kernel(*(2 + k for k in range(len(scalars))), *arrays)
    return arrays[-1].astype("float64")


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(n) for n in tensor.shape if isinstance(n, int))


def _engine(target: Target) -> str:
    for unit in target.engine.values():
        memory = target.memory(unit.memory)
        if not isinstance(unit, MatmulUnit) or memory.usable_bytes is None:
            continue
        factors = (unit.m * unit.k + unit.k * unit.n) * max(DType(t).bytes for t in unit.inputs)
        size = factors + unit.m * unit.n * DType(unit.accumulator).bytes
        if size > memory.usable_bytes:
            raise _FailedError(
                f"a tile operation of `{unit.name}` has {size} bytes of operands, memory "
                f"`{memory.name}` {memory.usable_bytes}; make the tile smaller"
            )
    return ", ".join(target.engine) or "none"
