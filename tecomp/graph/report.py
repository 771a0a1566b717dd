"""What a program is made of and what it costs: kernels, memory, and times by model and by clock."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tecomp.graph.spills import Resident, Spill
from tecomp.ir.language.text import counted

Kind: TypeAlias = Literal["input", "constant", "value", "copy", "output"]


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One call of a kernel.

    Attributes:
        name: of its result, with a number where several kernels have results of that name.
        operations: that it computes, by name.
        reads: bytes of the values that it reads.
        writes: bytes of the values that it makes.
        bound: seconds that it takes at least, by the model; None where the machine has no clock.
        bound_by: the resource that is busy for longest.
        seconds: that it took, the least of some calls; None if that was not measured.
        cycles: that it takes at least, by the model.
        cores: of a grid with scratchpads that have a part of it; 0 on processors.
        imbalance: cycles of computing of the core that has most, as a multiple of the average.
        tiles: operations of the machine on tiles and vectors of operands.
        copied: seconds in which the machine copies as many bytes as it reads and writes; None if
            that was not measured, or caches have room for them.
        calls: functions outside of the program that nobody said the work of: it is not counted.
    """

    name: str
    operations: tuple[str, ...]
    reads: int
    writes: int
    bound: float | None
    bound_by: str
    seconds: float | None = None
    cycles: float = 0.0
    cores: int = 0
    imbalance: float = 1.0
    tiles: int = 0
    copied: float | None = None
    calls: tuple[str, ...] = ()

    @property
    def rate(self) -> float | None:
        """Bytes of a second that it read and wrote; None if that was not measured."""
        return (self.reads + self.writes) / self.seconds if self.seconds else None

    @property
    def limit(self) -> tuple[str, float] | None:
        """The resource that binds and the seconds that it takes, as far as these are known."""
        found = [] if self.bound is None else [(self.bound_by, self.bound)]
        found += [] if self.copied is None else [("memory", self.copied)]
        return max(found, key=lambda each: each[1], default=None)

    @property
    def achieved(self) -> float | None:
        """The part of the time that it took for which the resource that binds was busy.

        None if that is not known, or is one of a machine that only stands for another here.
        """
        if self.limit is None or not self.seconds or self.cores:
            return None
        return self.limit[1] / self.seconds


@dataclass(frozen=True, slots=True)
class EdgeReport:
    """A value that kernels read or make.

    Attributes:
        name: of it.
        kind: what it is; a copy is of a value in another layout.
        made_by: the kernel that makes it; empty for what there is before.
        read_by: the kernels that read it; none of a result.
        bytes: with padding.
        layout: the place of an element, by its index.
        is_spread: whether there is one element to a stick, or to a row of a tile.
    """

    name: str
    kind: Kind
    made_by: str
    read_by: tuple[str, ...]
    bytes: int
    layout: str
    is_spread: bool = False


@dataclass(frozen=True, slots=True)
class RelayoutReport:
    """A value that is brought to another layout.

    Attributes:
        name: of the value.
        readers: the operations that read the copy.
        source: the layout that it has.
        layout: that of the copy.
        elements: that are moved, or places of padding that are filled; 0 of constants.
        bytes: that are written, padding included.
    """

    name: str
    readers: tuple[str, ...]
    source: str
    layout: str
    elements: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """What a program costs; `print` shows a table.

    Attributes:
        program: its name.
        target: the machine.
        kernels: the calls, in order.
        distinct: how many kernels there are; equal ones are the same.
        held: bytes of the memory between kernels.
        least_held: bytes of the values that are needed at one time, where these are most.
        constants: bytes.
        edges: the values that kernels read and make.
        relayouts: copies of values in other layouts.
        residents: values that stay in scratchpads, and are neither stored nor loaded.
        spills: why the others do not, on a machine with scratchpads.
        copy_rate: bytes of a second that a copy by all threads reads and writes, past all caches;
            None if that was not measured.
    """

    program: str
    target: str
    kernels: tuple[KernelReport, ...]
    distinct: int
    held: int
    least_held: int
    constants: int
    edges: tuple[EdgeReport, ...] = ()
    relayouts: tuple[RelayoutReport, ...] = ()
    residents: tuple[Resident, ...] = ()
    spills: tuple[Spill, ...] = ()
    copy_rate: float | None = None

    @property
    def bound(self) -> float | None:
        """Seconds that all kernels take at least, one after the other."""
        bounds = [each.bound for each in self.kernels if each.bound is not None]
        return sum(bounds) if len(bounds) == len(self.kernels) else None

    @property
    def cycles(self) -> float:
        """Cycles that all kernels take at least, one after the other."""
        return sum(each.cycles for each in self.kernels)

    @property
    def seconds(self) -> float | None:
        """Seconds that all kernels took."""
        found = [each.seconds for each in self.kernels if each.seconds is not None]
        return sum(found) if found and len(found) == len(self.kernels) else None

    @property
    def _head(self) -> str:
        calls, kernels = counted(len(self.kernels), "call"), counted(self.distinct, "kernel")
        return f"{self.program} on {self.target}: {calls} of {kernels}"

    def __repr__(self) -> str:
        return f"<ProgramReport of {self._head}>"

    def __str__(self) -> str:
        head = self._head
        if self.bound is not None:
            head += f", at least {_time(self.bound)}"
        if self.seconds is not None:
            head += f", measured {_time(self.seconds)}"
        memory = (
            f"{self.held:_} bytes between kernels, of which {self.least_held:_} are needed at one "
            f"time; {self.constants:_} bytes of constants"
        )
        said = (*self._moved(), *self._stay(), *self._spread(), *self._not_counted())
        lines = [head, memory, *said, ""]
        lines += _table(self._rows(), (0, 1, 5))
        lines += ["", *_table(self._edge_rows(), (0, 1, 2, 3, 5))]
        if self.residents or self.spills:
            lines += ["", *_table(self._near_rows(), (0, 1, 3))]
        return "\n".join(lines)

    def _not_counted(self) -> list[str]:
        names = dict.fromkeys(name for kernel in self.kernels for name in kernel.calls)
        return [f"not counted, as nobody said what they compute: {', '.join(names)}"] * bool(names)

    def _moved(self) -> list[str]:
        if not self.relayouts:
            return []
        count = counted(len(self.relayouts), "relayout")
        moved = sum(each.elements for each in self.relayouts)
        written = sum(each.bytes for each in self.relayouts)
        return [f"{count}: {moved:_} elements are moved, {written:_} bytes written"]

    def _stay(self) -> list[str]:
        if not self.residents:
            return []
        count = counted(len(self.residents), "value")
        verb = "stays" if len(self.residents) == 1 else "stay"
        saved = sum(each.bytes for each in self.residents)
        return [f"{count} {verb} in scratchpads: {saved:_} bytes are neither stored nor loaded"]

    def _spread(self) -> list[str]:
        found = [f"{each.name} ({each.bytes:_} bytes)" for each in self.edges if each.is_spread]
        what = "with one element to a stick, or to a row of a tile"
        return [f"{what}: {', '.join(found)}"] * bool(found)

    def _rows(self) -> list[list[str]]:
        is_measured = self.seconds is not None
        rows = [["kernel", "operations", "reads", "writes", "least", "bound by", "share"]]
        rows[0] += ["measured", "achieved"] * is_measured
        has_grid = any(each.cores for each in self.kernels)
        rows[0] += ["cycles", "cores", "imbalance", "tiles"] * has_grid
        total = self.seconds or self.bound or 0.0
        for each in self.kernels:
            own = each.seconds if is_measured else each.bound
            share = f"{100 * own / total:.0f}%" if own is not None and total else "-"
            least = "-" if each.bound is None else _time(each.bound)
            row = [each.name, " ".join(each.operations), f"{each.reads:_}", f"{each.writes:_}"]
            row += [least, each.limit[0] if each.limit else each.bound_by, share]
            if is_measured and each.seconds is not None:
                achieved = "-" if each.achieved is None else f"{100 * each.achieved:.0f}%"
                row += [_time(each.seconds), achieved]
            if has_grid:
                row += [f"{each.cycles:_.0f}", f"{each.cores}", f"{each.imbalance:.2f}"]
                row.append(f"{each.tiles:_}")
            rows.append(row)
        return rows

    def _edge_rows(self) -> list[list[str]]:
        rows = [["value", "kind", "from", "to", "bytes", "layout"]]
        for each in self.edges:
            to = " ".join(each.read_by)
            rows.append([each.name, each.kind, each.made_by, to, f"{each.bytes:_}", each.layout])
        return rows


    def _near_rows(self) -> list[list[str]]:
        rows = [["value", "is in", "bytes", "since"]]
        for each in self.residents:
            rows.append([each.tensor.name, "scratchpads", f"{each.bytes:_}", each.reason])
        for spill in self.spills:
            rows.append([
                spill.tensor.name, "memory", f"{spill.bytes:_}", f"{spill.kind}: {spill.reason}"
            ])
        return rows


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _table(rows: Sequence[Sequence[str]], left: Container[int]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
