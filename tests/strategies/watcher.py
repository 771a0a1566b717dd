"""Record the memory accesses of each core, in order, while the interpreter runs a function."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tecomp.cost_model import CostReport
from tecomp.ir import (
    Binary,
    BinOp,
    Buffer,
    BufferLoad,
    BufferStore,
    Call,
    Const,
    Expr,
    TensorOp,
    children,
)


@dataclass
class Runs:
    """Accesses of one statement by one core."""

    size: int
    block: int | None
    lengths: list[int] = field(default_factory=list)
    transactions: int = 0
    count: int = 0
    _before: Any = None
    _touched: set[int] = field(default_factory=set)

    def see(self, place: tuple[int, ...]) -> None:
        *row, column = place
        start = column * self.size
        here = (row, start)
        self.count += 1
        if here == self._before:
            return
        if self._before == (row, start - self.size):
            self.lengths[-1] += 1
        else:
            self.lengths.append(1)
            self._touched = set()
        if self.block is not None:
            last = (start + self.size - 1) // self.block
            blocks = set(range(start // self.block, last + 1)) - self._touched
            self.transactions += len(blocks)
            self._touched |= blocks
        self._before = here


class Watcher:
    """Recorder of memory accesses and of operations of compute units.

    Attributes:
        where: Coordinates of the current core on each axis of the grid.
        places: Buffer and direction of every access in the code, with its accesses by each core.
        operations: Number of element operations by kind and dtype.
        tiles: Operations of the units by core.
        is_bound: Whether the schedule binds a loop to the cores.
    """

    def __init__(
        self, axes: tuple[str, ...], blocks: Mapping[str, int | None], units: Iterable[str] = ()
    ) -> None:
        self.blocks = blocks
        self.units = set(units)
        self.tiles: Counter[tuple[int, ...]] = Counter()
        self.where = dict.fromkeys(axes, 0)
        self.places: list[tuple[Buffer, str, dict[tuple[int, ...], Runs]]] = []
        self.operations: Counter[str] = Counter()
        self.is_bound = False

    def reader(self, node: BufferLoad) -> Callable[[tuple[int, ...]], None]:
        return self._follow(node.buffer, "read")

    def writer(self, node: BufferStore) -> Callable[[tuple[int, ...]], None]:
        follow = self._follow(node.buffer, "write")
        counts = operations(node.value)

        def seen(place: tuple[int, ...]) -> None:
            follow(place)
            self.operations.update(counts)

        return seen

    def _follow(self, buffer: Buffer, direction: str) -> Callable[[tuple[int, ...]], None]:
        found: dict[tuple[int, ...], Runs] = {}
        self.places.append((buffer, direction, found))

        def seen(place: tuple[int, ...]) -> None:
            core = tuple(self.where.values())
            if core not in found:
                found[core] = Runs(buffer.dtype.bytes, self.blocks[buffer.scope])
            found[core].see(place)

        return seen

    def operation(self, node: TensorOp) -> Callable[[], None] | None:
        if node.unit not in self.units:
            return None

        def done() -> None:
            self.tiles[tuple(self.where.values())] += 1

        return done

    def core(self, thread: str, value: int | None) -> None:
        self.where[thread] = value or 0
        self.is_bound = True


def operations(value: Expr) -> Counter[str]:
    """Count the operations of an expression, except in indices and conditions of reads."""
    found: Counter[str] = Counter()
    worklist = [value]
    while worklist:
        node = worklist.pop()
        if isinstance(node, Binary) and node.op not in (BinOp.AND, BinOp.OR):
            found[f"{node.op.name.lower()} {node.dtype}"] += 1
        elif isinstance(node, Call) and node.name not in ("if_then_else", "check_index"):
            found[f"{node.name} {node.dtype}"] += 1
        worklist += () if isinstance(node, BufferLoad | Const) else children(node)
    return found


def assert_counted(report: CostReport, watcher: Watcher) -> None:
    """Check the accesses of each memory and core in a report against the recorded accesses."""
    cores = [core.core for core in report.cores]
    expected: dict[tuple[str, str], Any] = defaultdict(lambda: [0, 0, 0, 0, Counter()])
    for buffer, direction, found in watcher.places:
        total = expected[buffer.scope, direction]
        for core, runs in found.items():
            total[0] += runs.count * runs.size
            total[1] += len(runs.lengths)
            total[2] = max(total[2], max(runs.lengths) * runs.size)
            total[3] += runs.transactions
            total[4][core] += runs.count * runs.size
    assert {(t.memory, t.direction): t.bytes for t in report.traffic} == {
        key: total[0] for key, total in expected.items() if total[0]
    }
    for traffic in report.traffic:
        _, runs, longest, transactions, by_core = expected[traffic.memory, traffic.direction]
        assert (traffic.runs, traffic.longest_run_bytes) == (runs, longest)
        assert traffic.transactions == (
            None if watcher.blocks[traffic.memory] is None else transactions
        )
        if watcher.is_bound or not report.axes:
            assert dict(zip(cores, traffic.per_core, strict=True)) == {c: by_core[c] for c in cores}
        else:
            # The interpreter runs parallel loops on one core; a report divides them among the cores.
            assert sum(traffic.per_core) == sum(by_core.values())
