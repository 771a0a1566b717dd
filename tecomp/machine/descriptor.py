"""Description of a target: data only, without code."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from tecomp.caches import memoize
from tecomp.drawing.drawable import Pictured
from tecomp.errors import CapacityError, TargetError, safe_str
from tecomp.ir.nodes.argument_checks import check_kind, is_one_of
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.printer import format_count
from tecomp.ir.nodes.stmt import Buffer
from tecomp.machine.components import Core, Link, Memory, Rates, Unit
from tecomp.machine.host import host_clock, host_cores
from tecomp.machine.operand_constraints import Rule
from tecomp.machine.registry import find_description
from tecomp.machine.schema import (
    MAX_CORES,
    CoreCount,
    Count,
    DTypeName,
    FromHost,
    KeyName,
    Matches,
    Rate,
    Source,
    TileExtent,
    TomlPosition,
    VectorBytes,
)
from tecomp.machine.toml_reader import check_fields, read_table, table_of

GridAxis = Annotated[str, Matches(r"core\.[A-Za-z_]\w*", "a name such as core.x")]
Extent = Annotated[CoreCount, FromHost(host_cores)]
_PLACE_BITS = 16  # bits per accumulator element; 32-bit dtypes occupy two
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Stick:
    """The unit of data movement and computation: bytes of one row.

    Attributes:
        bytes: Size and alignment of a stick in bytes.
        padding: Dimensions padded to whole sticks by default: `all`, or only the `stick` dimension.
        source: Source of the numbers.
    """

    bytes: VectorBytes
    padding: Literal["all", "stick"]
    source: Source


@dataclass(frozen=True, slots=True)
class Tile:
    """The matrix block that the hardware stores and computes with.

    Attributes:
        rows: Rows of a tile.
        columns: Columns of a tile.
        face_rows: Rows of a face; a tile is stored face by face.
        face_columns: Columns of a face.
        allowed: Other supported shapes, as (rows, columns).
        source: Source of the numbers.
    """

    rows: TileExtent
    columns: TileExtent
    face_rows: TileExtent
    face_columns: TileExtent
    source: Source
    allowed: tuple[tuple[TileExtent, TileExtent], ...] = ()

    def __post_init__(self) -> None:
        if self.rows % self.face_rows or self.columns % self.face_columns:
            raise TargetError(
                "a tile of {rows}x{columns} is not divisible into faces of "
                "{face_rows}x{face_columns}; use faces that divide it",
                rows=self.rows, columns=self.columns, face_rows=self.face_rows,
                face_columns=self.face_columns,
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def face(self) -> tuple[int, int]:
        """Rows and columns of a face."""
        return self.face_rows, self.face_columns

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """All supported shapes."""
        return (self.shape, *(shape for shape in self.allowed if shape != self.shape))


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of a core.

    Attributes:
        source: Source of the numbers.
        span_bytes: Maximum extent in bytes of the region of a tensor that a core addresses: whole
            indices of the outermost dimension in memory that varies for the core.
        circular_buffers: Number of queues between the threads of a core.
        accumulator_tiles: Number of tiles in the registers of the matrix engine.
    """

    source: Source
    span_bytes: Count | None = None
    circular_buffers: Count | None = None
    accumulator_tiles: Count | None = None

    def tiles_at_once(self, dtype: str, *, is_halved: bool = True) -> int | None:
        """Return the number of tiles of a dtype that fit into the accumulator simultaneously.

        Args:
            dtype: Dtype of the elements. 32-bit dtypes occupy two slots, wider ones do not fit.
            is_halved: Whether the accumulator is double-buffered: one half is computed while the
                other half is read. Default: True.

        Returns:
            The number of tiles; None if the target does not specify its accumulator.

        Raises:
            TypeMismatchError: If `dtype` does not exist.

        Source:
            tt-mlir, DST register: 16 tiles, half of them without full synchronization, half as many
            of 32 bits.

        >>> limits = Target.load("tensix_wh").limits
        >>> limits.tiles_at_once("bfloat16"), limits.tiles_at_once("float32")
        (8, 4)
        >>> limits.tiles_at_once("bfloat16", is_halved=False)
        16
        """
        if self.accumulator_tiles is None:
            return None
        bits = DType(dtype).bits
        if bits > 2 * _PLACE_BITS:
            return 0
        tiles = self.accumulator_tiles // (2 if bits > _PLACE_BITS else 1)
        return int(tiles // (2 if is_halved else 1))


@dataclass(frozen=True, slots=True)
class ExecutionSpec:
    """Execution mode of programs.

    Attributes:
        kind: `host`: the target is this processor; `functional`: the target is emulated on this
            host, in loops that follow the structure of the target.
    """

    kind: Literal["host", "functional"] = "functional"


@dataclass(frozen=True, slots=True)
class Target(Pictured):
    """A target for which code is generated.

    Attributes:
        name: Name for `Target.load`.
        description: Description in one sentence.
        memories: Memories by name, in the order of the file.
        core: Vectors and caches; None if not described.
        code: Execution mode of programs.
        clock_hz: Clock rate in Hz.
        grid: Number of cores along each named axis, such as `core.x`, the outermost first.
        stick: Sticks, or None.
        tile: Tiles, or None.
        formats: Names of the storage formats of each host dtype, the default first.
        engine: Compute units by name.
        links: Data paths between memories by name.
        rules: Operand constraints of operations.
        limits: Resource limits of a core.
        rates: Throughput of a processor core, from which rooflines are drawn; `tecomp.calibrate`
            measures them. Generated code does not depend on them.

    >>> machine = Target.load("stick128")
    >>> machine.name, machine.description
    ('stick128', '32 cores with scratchpads, that move and compute with sticks of 128 bytes')
    >>> list(machine.memories), dict(machine.grid), machine.stick_bytes, machine.stick.bytes
    (['global', 'ddr', 'lx'], {'core.x': 32}, 128, 128)
    >>> machine.formats["float16"], list(machine.engine), len(machine.rules)
    (('dlfloat16', 'float8_e4m3fn', 'float8_e5m2fnuz'), ['matmul', 'sfu'], 12)
    >>> list(machine.links)
    ['host_in', 'host_out', 'load', 'store', 'ring']
    >>> machine.clock_hz, machine.code.kind, machine.core, machine.tile, machine.limits is None
    (1500000000.0, 'functional', None, None, False)
    >>> machine.rates is None
    True
    """

    _drawn_by: ClassVar[str] = "target:draw_target"

    name: str
    description: str
    memories: Annotated[Mapping[str, Memory], KeyName("memory")]
    core: Core | None = None
    code: ExecutionSpec = ExecutionSpec()
    clock_hz: Annotated[Rate | None, FromHost(host_clock)] = None
    grid: Mapping[GridAxis, Extent] = field(default_factory=lambda: _NONE)
    stick: Stick | None = None
    tile: Tile | None = None
    formats: Mapping[DTypeName, tuple[str, ...]] = field(default_factory=lambda: _NONE)
    engine: Mapping[str, Unit] = field(default_factory=lambda: _NONE)
    links: Annotated[Mapping[str, Link], KeyName("link")] = field(default_factory=lambda: _NONE)
    rules: Annotated[tuple[Rule, ...], KeyName("rule")] = ()
    limits: Limits | None = None
    rates: Rates | None = None

    def __repr__(self) -> str:
        return f"<Target {self.name}: {self.description}>"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.cores > MAX_CORES:
            raise TargetError(
                "target {name} has {cores} cores; at most {most_cores} are supported",
                name=self.name, cores=self.cores, most_cores=MAX_CORES,
            )
        self._check_rates()
        for link in self.links.values():
            for port in link.ports:
                inside = len(port) == len(self.grid) and all(
                    coord < count for coord, count in zip(port, self.grid.values(), strict=True))
                if not inside:
                    axes = ", ".join(f"{name} ({count})" for name, count in self.grid.items())
                    raise TargetError(
                        "link `{link}` has a port at {port}, which is not a core; specify one "
                        "non-negative coordinate per axis of the grid: {axes}",
                        link=link.name, port=list(port), axes=axes or "none",
                    )

    def _check_rates(self) -> None:
        """Check that there is a read bandwidth for each cache and for memory."""
        if self.rates is None:
            return
        if self.core is None:
            raise TargetError(
                "target {name} has rates per core, but no [core] with its caches; specify rates of "
                "its memories instead, such as read_bytes_per_cycle",
                name=self.name,
            )
        actual, caches = len(self.rates.read_bytes_per_second), len(self.core.cache_bytes)
        if actual != caches + 1:
            raise TargetError(
                "target {name} has {caches} and {rate_count} read_bytes_per_second; specify "
                "{expected}: one per cache, and one for memory",
                name=self.name, caches=format_count(caches, "cache"), rate_count=actual,
                expected=caches
                + 1,
            )

    @classmethod
    def load(cls, name: str | Path, **overrides: Any) -> Target:
        """Load an installed target by name, or a target from a TOML file.

        Args:
            name: Name from `list_targets()`, or a path that ends in `.toml`.
            overrides: Keys and tables that replace those of the description; None removes a key.

        Raises:
            TargetError: If there is no such target, or its description is malformed.

        >>> Target.load("cpu").memory("global.texture").rank
        2
        >>> Target.load("cpu", core={"count": 4}).core.count
        4
        """
        path = find_description(name)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TargetError(
                "{path}: cannot be read ({reason}); pass a TOML file",
                path=path, reason=error,
            ) from error
        loaded = _read_once(text, path.name)
        return loaded.overridden(**overrides) if overrides else loaded

    @classmethod
    def of(cls, target: str | Path | Target) -> Target:
        """Return a target unchanged, or load it by name or path.

        Raises:
            TargetError: If there is no such target, or its description is malformed.

        >>> Target.of("cpu") is Target.of(Target.load("cpu"))
        True
        """
        return target if isinstance(target, Target) else cls.load(target)

    def overridden(self, **tables: Any) -> Target:
        """Return the target with some values replaced.

        Args:
            tables: Keys and tables of a description to replace; None removes a key.

        Raises:
            TargetError: If a key is unknown, or a value has the wrong type.

        >>> small = Target.load("stick128").overridden(memory={"lx": {"capacity_bytes": 131072}})
        >>> small.memory("lx").usable_bytes
        65536
        """
        merged = _merge(table_of(self), tables)
        return read_table(Target, merged, TomlPosition(f"target {self.name}, overridden", merged))

    @property
    def cores(self) -> int:
        """Number of cores.

        >>> Target.load("stick128").cores
        32
        """
        if self.grid:
            return prod(self.grid.values())
        return self.core.count if self.core is not None else 1

    @property
    def stick_bytes(self) -> int:
        """Size of a stick in bytes.

        Raises:
            TargetError: If the target has no sticks.
        """
        if self.stick is None:
            raise TargetError(
                "target {name} has no sticks; `target.stick` is None",
                kind="unsupported-by-target", name=self.name,
            )
        return self.stick.bytes

    def memory(self, scope: str) -> Memory:
        """Return the memory with a given name.

        Raises:
            TargetError: If the target has no such memory.

        >>> memory = Target.load("stick128").memory("lx")
        >>> memory.name, memory.capacity_bytes
        ('lx', 2097152)
        """
        if not is_one_of(scope, self.memories):
            raise TargetError(
                "{problem}", kind="unsupported-by-target", problem=self._no_memory(scope)
            )
        return self.memories[scope]

    def _no_memory(self, requested: object) -> str:
        scope = safe_str(requested)
        case_matches = [name for name in self.memories if name.lower() == scope.lower()]
        matches = case_matches or get_close_matches(scope, list(self.memories), n=1)
        hint = f"did you mean `{matches[0]}`? " if matches else ""
        return (
            f"target {self.name} has no memory `{scope}`; {hint}its memories are "
            f"{', '.join(self.memories)}"
        )

    def check_buffer(self, buffer: Buffer) -> Memory:
        """Return the memory of a buffer, after checking that the buffer fits its rank and capacity.

        The axis separators of a buffer split its axes into groups, each of which becomes one
        physical axis.

        Raises:
            TargetError: If the target has no such memory, or the memory has another rank.
            CapacityError: If the buffer alone exceeds the capacity of the memory.

        >>> from tecomp import te
        >>> buffer = te.decl_buffer((8, 64), "float32", "A", scope="global")
        >>> Target.load("cpu").check_buffer(buffer).name
        'global'
        """
        if buffer.scope not in self.memories:
            raise TargetError(
                "{buffer}: {problem}",
                kind="unsupported-by-target", buffer=buffer.name,
                problem=self._no_memory(buffer.scope),
            )
        memory = self.memories[buffer.scope]
        rank = len(buffer.axis_separators) + 1
        if memory.takes(rank):
            self._check_capacity(buffer, memory)
            return memory
        others = [m.name for m in self.memories.values() if m.takes(rank)]
        remedy = f"use {memory.rank - 1} AXIS_SEPARATOR in its layout instead of {rank - 1}"
        if others:
            remedy += f', or set_scope("{others[0]}")'
        raise TargetError(
            "{buffer}: has {rank}, but memory `{memory}` of target {name} takes {axes}; {remedy}",
            kind="unsupported-by-target", buffer=buffer.name, rank=_axes(rank), memory=memory.name,
            name=self.name, axes=memory.axes, remedy=remedy,
        )

    def _check_capacity(self, buffer: Buffer, memory: Memory) -> None:
        extents = [extent for extent in buffer.shape if isinstance(extent, int)]
        usable = memory.usable_bytes
        if usable is None or len(extents) < len(buffer.shape):
            return
        first = buffer.axis_separators[-1] + 1 if buffer.axis_separators else 0
        rows = memory.allocated_rows(buffer.name, prod(extents[:first]))
        size = rows * prod(extents[first:]) * buffer.dtype.bytes
        if size > usable:
            shape = ", ".join(map(str, extents))
            raise CapacityError(
                "{buffer}: {dtype}[{shape}] takes {size} bytes, but memory `{memory}` of target "
                "{name} holds {usable}; use smaller tiles, or compute it closer to where it is "
                "used",
                buffer=buffer.name, dtype=buffer.dtype, shape=shape, size=size,
                memory=memory.name, name=self.name, usable=usable,
            )

    def check_axis(self, axis: str, extent: int | None, loop: str) -> None:
        """Check that a loop can be distributed along a grid axis.

        Args:
            axis: Grid axis, such as `core.x`.
            extent: Extent of the loop; None if unknown.
            loop: Name of the loop for messages.

        Raises:
            TargetError: If there is no such axis, or the extent exceeds its cores or is unknown.

        >>> Target.load("tensix_wh").check_axis("core.x", 8, "s[C]")
        """
        if axis not in self.grid:
            matches = get_close_matches(axis, list(self.grid), n=1)
            hint = f"did you mean `{matches[0]}`? " if matches else ""
            axes = ", ".join(f"{name} ({count})" for name, count in self.grid.items())
            raise TargetError(
                "{loop}: target {name} has no grid axis `{axis}`; {hint}its axes are {axes}",
                kind="unsupported-by-target", loop=loop, name=self.name, axis=axis, hint=hint,
                axes=axes or "none",
            )
        cores = self.grid[axis]
        if extent is None:
            raise TargetError(
                "{loop}: grid axis `{axis}` of target {name} has {cores}, but the extent of the "
                "loop is not known before the call; split it with nparts={core_count} first",
                kind="cores", loop=loop, axis=axis, name=self.name, cores=_cores(cores),
                core_count=cores,
            )
        if extent > cores:
            raise TargetError(
                "{loop}: grid axis `{axis}` of target {name} has {cores}, but the loop has extent "
                "{extent}; split it with nparts={core_count} first",
                kind="cores", loop=loop, axis=axis, name=self.name, cores=_cores(cores),
                extent=extent, core_count=cores,
            )


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _axes(rank: int) -> str:
    return "1 physical axis" if rank == 1 else f"{rank} physical axes"


def read_target(text: str, source: str) -> Target:
    """Parse a target description in TOML; `source` names it in error messages.

    Raises:
        TargetError: If a key is missing, unknown or of the wrong type; the message names the key.
    """
    table = _parse(text, source)
    try:
        return read_table(Target, table, TomlPosition(source, table, text))
    except RecursionError:
        raise _too_deep(source) from None


def _parse(text: str, source: str) -> Mapping[str, Any]:
    """Parse the text of a description as TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, line = _split_toml_error(str(error))
        raise TargetError(
            "{source}{line}: not valid TOML ({subject}); see https://toml.io",
            source=source, line=line, subject=problem,
        ) from error
    except RecursionError:
        raise _too_deep(source) from None
    except ValueError:
        raise TargetError(
            "{source}{line}: a number has too many digits; integers have 64 bits",
            source=source, line=_line_of_digits(text),
        ) from None


def _too_deep(source: str) -> TargetError:
    return TargetError(
        "{source}: tables or lists are nested too deeply; write each table under its own [header]",
        source=source,
    )


def _line_of_digits(text: str) -> str:
    """Return the line of the first number that exceeds Python's digit limit, as `:line`."""
    max_digits = sys.get_int_max_str_digits()
    found = re.search(rf"[0-9_]{{{max_digits},}}", text)
    return f":{text.count(chr(10), 0, found.start()) + 1}" if found else ""


def _split_toml_error(message: str) -> tuple[str, str]:
    """Split a TOML error message into the problem and the line, as `:line`."""
    found = re.fullmatch(r"(.*) \(at line (\d+), (column \d+)\)", message)
    if found is None:
        return message, ""
    return f"{found[1]}, {found[3]}", f":{found[2]}"


@memoize("machine.targets")
def _read_once(text: str, source: str) -> Target:
    return read_target(text, source)


def _merge(table: Any, changes: Any) -> Any:
    if not isinstance(table, Mapping) or not isinstance(changes, Mapping):
        return changes
    for key in changes:
        check_kind(key, str, "target: a key", "keys of a description must be strings", TargetError)
    merged = {**table, **{k: _merge(table.get(k), value) for k, value in changes.items()}}
    return {key: value for key, value in merged.items() if value is not None}
