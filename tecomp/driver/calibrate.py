"""`calibrate`: measure compute and bandwidth rates of the host with small kernels."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np

from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.codegen.llvm.code_cache import current_store
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.codegen.llvm.jit import host
from tecomp.compute.define import compute, placeholder, reduce_axis, var
from tecomp.compute.iter_var import IterVar
from tecomp.compute.reduce import sum as sum_of
from tecomp.compute.tensor import Tensor
from tecomp.driver.build_cache import BuildRequest, build_kernel, keys_of
from tecomp.errors import TargetError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.machine.components import Core, Rates
from tecomp.machine.descriptor import Target
from tecomp.machine.schema import TomlPosition
from tecomp.machine.toml_reader import read_table, table_of
from tecomp.progress import log_duration
from tecomp.scheduling.schedule import Schedule, create_schedule

_TYPES = ("float32", "float64", "int32")
_SCALARS = ("float32", "float64")
"""Dtypes with a scalar measurement; LLVM vectorizes scalar integer sums in any case."""
_TERMS, _TILES = 128, 64
"""Terms per sum, and tiles of sums per call; a call takes about 10 microseconds."""
_VECTORS = 4
"""Vectors read per row: independent accumulators that hide the latency of the addition."""
_UNROLLED = 8
"""Rows per loop iteration; unrolling makes the result insensitive to code alignment."""
_READ = 8 << 20
"""Minimum number of bytes read per call; arrays in a cache are read repeatedly."""
_MIN_MEMORY, _MAX_MEMORY = 64 << 20, 256 << 20
"""Bounds of the array size for the memory measurement in bytes: larger than all caches, but with
limited memory consumption."""
_SECONDS, _MIN_ROUNDS = 0.75, 3
"""Maximum measurement time in seconds, and minimum number of rounds."""
_STEADY_ROUNDS, _GAIN = 8, 0.01
"""Number of rounds without a relative improvement of `_GAIN` after which measurement ends."""
_CALLS = 3
"""Consecutive calls of each kernel per round; the first call refills the caches."""

_KNOWN: dict[str, Rates] = {}
"""Rates measured or loaded by this process, by machine key."""

Array = np.ndarray[Any, Any]


def calibrate(target: str | Path | Target = "cpu", *, again: bool = False) -> Target:
    """Measure the compute and bandwidth rates of one core of the host, for rooflines.

    Small kernels measure operations per second by dtype, vectorized and scalar, and bytes per
    second read from each cache and from memory. Calibration takes half a second, once per machine;
    the rates are stored in the kernel cache. The fastest run counts, because other work can only
    slow a run down. A cache level is assumed to be at least as fast as the next level.

    Args:
        target: Processor target: its name, a description, or a path to a description. Rates stated
            by the target are kept.
        again: If True, measure even if rates are known or stated.

    Returns:
        The target with `rates`. Kernels for this target and the target without rates are the same.

    Raises:
        TargetError: If the target cannot run here, so that nothing can be measured.

    Source:
        Williams, Waterman, Patterson: Roofline, Communications of the ACM 52 (4), 2009. The
        measured ceilings follow the Empirical Roofline Toolkit.

    >>> import tecomp
    >>> rates = calibrate("cpu").rates
    >>> len(rates.read_bytes_per_second) == len(tecomp.Target.load("cpu").core.cache_bytes) + 1
    True
    >>> rates.flops["float32"] >= rates.scalar_flops["float32"] > 0
    True
    """
    machine = Target.of(target)
    check_kind(again, bool | np.bool_, "calibrate: again", "pass True or False", TargetError)
    core = machine.core
    if core is None or machine.code.kind != "host":
        raise TargetError(
            "calibrate: target {machine} is a modelled target and cannot be measured; specify "
            "read_bytes_per_cycle of its memories and cycles of its units",
            kind="conflicting-options", machine=machine.name,
        )
    if machine.rates is not None and not again:
        return machine
    key = _key(core)
    found = None if again else _KNOWN.get(key) or _load_rates(key)
    if found is None or len(found.read_bytes_per_second) != len(core.cache_bytes) + 1:
        with log_duration("calibrate"):
            found = measure_rates(core)
        if (store := current_store()) is not None:
            store.put(key, json.dumps(table_of(found)).encode())
    _KNOWN[key] = found
    return replace(machine, rates=found)


def measure_rates(core: Core) -> Rates:
    """Measure the rates of one core of the host; see `calibrate`."""
    probes = [*_compute_probes(core), *_read_probes(core)]
    best = dict.fromkeys((probe.name for probe in probes), float("inf"))
    deadline, rounds, steady = time.perf_counter() + _SECONDS, 0, 0
    # Interleave the kernels, so that a disturbance does not affect all calls of one kernel.
    while rounds < _MIN_ROUNDS or (steady < _STEADY_ROUNDS and time.perf_counter() < deadline):
        rounds, steady = rounds + 1, steady + 1
        for probe in probes:
            found = min(probe.seconds() for _ in range(_CALLS))
            if found < best[probe.name] * (1 - _GAIN):
                steady = 0
            best[probe.name] = min(best[probe.name], found)
    return rates_of({probe.name: probe.work / best[probe.name] for probe in probes})


def rates_of(found: Mapping[tuple[str, str], float]) -> Rates:
    """Return consistent rates from measured rates by `(kind, name)`.

    A measurement can only underestimate a rate. Therefore each cache level is at least as fast as
    the next level, and vector operations are at least as fast as scalar operations.

    >>> rates = rates_of({
    ...     ("vectors", "float32"): 3.0, ("scalars", "float32"): 4.0,
    ...     ("read", "0"): 5.0, ("read", "1"): 7.0, ("read", "2"): 2.0,
    ... })
    >>> rates.flops, rates.scalar_flops, rates.read_bytes_per_second
    ({'float32': 4.0}, {'float32': 4.0}, (7.0, 7.0, 2.0))
    """
    of = {
        kind: {name: rate for (group, name), rate in found.items() if group == kind}
        for kind in ("vectors", "scalars", "read")
    }
    reads = tuple(accumulate(reversed(list(of["read"].values())), max))[::-1]
    flops = {name: max(rate, of["scalars"].get(name, rate)) for name, rate in of["vectors"].items()}
    return Rates(reads, flops, of["scalars"], "measured on the host, on one core")


@dataclass(frozen=True, slots=True)
class _Probe:
    """Measured kernel.

    Attributes:
        name: Kind (`vectors`, `scalars` or `read`), and dtype or memory level.
        call: Function that runs the kernel.
        work: Operations or bytes per call.
    """

    name: tuple[str, str]
    call: Callable[[], object]
    work: int

    def seconds(self) -> float:
        """Return the time of one call in seconds."""
        start = time.perf_counter_ns()
        self.call()
        return max(time.perf_counter_ns() - start, 1) / 1e9


def _compute_probes(core: Core) -> Iterator[_Probe]:
    """Yield the compute kernels: products of small matrices whose tiles stay in registers."""
    rows = max(3 * core.vector_registers // 8, 1)
    vectors = [("vectors", dtype, core.lanes(dtype)) for dtype in _TYPES]
    for kind, dtype, lanes in (*vectors, *(("scalars", dtype, 1) for dtype in _SCALARS)):
        kernel, tensors = _product(dtype, rows, 2 * lanes, is_vector=lanes > 1)
        arrays = [_ones([int(n) for n in tensor.shape], dtype) for tensor in tensors]
        yield _Probe((kind, dtype), _bind_arguments(kernel, *arrays), 2 * arrays[-1].size * _TERMS)


def _product(
    dtype: str, rows: int, columns: int, *, is_vector: bool
) -> tuple[Kernel, Sequence[Tensor]]:
    x, y = placeholder((rows, _TERMS), dtype, "x"), placeholder((_TERMS, columns), dtype, "y")
    k = reduce_axis((0, _TERMS), "k")
    tiles = _tensor(compute(
        (_TILES, rows, columns), lambda t, i, j: sum_of(x[i, k] * y[k, j], axis=k), "tiles"))
    s = create_schedule(tiles)
    tile = _tensor(s.cache_write(tiles, "local"))
    for tensor in (tile, tiles):
        _, i, j = _axes(tensor)
        s[tensor].unroll(i)
        (s[tensor].vectorize if is_vector else s[tensor].unroll)(j)
    return _in_registers(s, tile, tiles, [x, y, tiles])


def _read_probes(core: Core) -> Iterator[_Probe]:
    """Yield the read kernels: sums of arrays of half of each cache size, and of a larger array."""
    numbers = _VECTORS * core.lanes("int32")
    rows, times = var("rows"), var("times")
    x = placeholder((rows, _UNROLLED, numbers), "int32", "x")
    k, u = reduce_axis((0, rows), "k"), reduce_axis((0, _UNROLLED), "u")
    total = _tensor(compute((times, numbers), lambda t, j: sum_of(x[k, u, j], axis=[k, u]), "sums"))
    s = create_schedule(total)
    sums = _tensor(s.cache_write(total, "local"))
    for tensor in (sums, total):
        s[tensor].vectorize(_axes(tensor)[-1])
    s[sums].unroll(cast(Any, sums.op).reduce_axis[1])
    kernel, _ = _in_registers(s, sums, total, [x, total])
    row = 4 * numbers * _UNROLLED
    memory_bytes = min(max(2 * core.cache_bytes[-1], _MIN_MEMORY), _MAX_MEMORY)
    space = _ones((memory_bytes // row, _UNROLLED, numbers), "int32")
    for level, size in enumerate((*(cache // 2 for cache in core.cache_bytes), memory_bytes)):
        part = space[: max(size // row, 1)]
        result = _ones((max(_READ // part.nbytes, 1), numbers), "int32")
        work = part.nbytes * len(result)
        yield _Probe(("read", str(level)), _bind_arguments(kernel, part, result), work)


def _in_registers(
    s: Schedule, tile: Tensor, result: Tensor, args: list[Tensor]
) -> tuple[Kernel, Sequence[Tensor]]:
    """Build a kernel that keeps the tile of each outermost iteration in registers."""
    s[tile].compute_at(s[result], _axes(result)[0])
    s[tile].reorder(*cast(Any, tile.op).reduce_axis, *_axes(tile)[1:])
    request = BuildRequest(s, args, "calibrate", None, Options())
    return build_kernel(request, lambda compiled, _: Kernel(compiled)), args


def _ones(shape: Sequence[int], dtype: str) -> Array:
    """Return an array of ones aligned to a cache line, so that no vector crosses a line."""
    count = prod(shape) * np.dtype(dtype).itemsize
    space = np.empty(count + Core.LINE_BYTES, np.uint8)
    start = -space.ctypes.data % Core.LINE_BYTES
    array = space[start : start + count].view(dtype).reshape(shape)
    array[...] = 1
    return array


def _axes(tensor: Tensor) -> Sequence[IterVar]:
    return cast(Any, tensor.op).axis  # type: ignore[no-any-return]


def _tensor(value: object) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def _bind_arguments(kernel: Kernel, *arrays: Array) -> Callable[[], object]:
    return lambda: kernel(*arrays)


def _key(core: Core) -> str:
    """Return the cache key of the rates: host name, processor, core description and compiler."""
    single_core = replace(core, count=1)
    facts = ("rates", platform.node(), host().cpu, host().features, single_core)
    return f"rates-{next(iter(keys_of(facts)))}"


def _load_rates(key: str) -> Rates | None:
    """Return the stored rates, or None if they are missing or corrupt."""
    store = current_store()
    return None if store is None else store.read(key, _decode_rates)


def _decode_rates(content: bytes) -> Rates:
    table = json.loads(content)
    return read_table(Rates, table, TomlPosition("kept rates", table))
