"""Copies between the scratchpads of cores: results, bytes and hops of each link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.cost_model import sites_of, uses_of
from tecomp.driver import ScheduledKernel
from tecomp.errors import TargetError
from tecomp.ir import parse
from tecomp.machine import Target
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

COLUMNS = 64
ROWS = 3
ROW_BYTES = COLUMNS * 4


class Machine:
    """Target with its scratchpads, the link between them, and its cores in row-major order."""

    def __init__(self, name: str) -> None:
        self.target = Target.load(name)
        (self.link,) = (x for x in self.target.links.values() if x.from_ == x.to)
        self.memory = self.link.to
        self.grid = self.target.grid
        self.cores = list(np.ndindex(*self.grid.values()))

    def bind(self, s: Schedule, tensor: te.Tensor, rows: int) -> te.IterVar:
        """Bind `rows` rows to each core, and return the loop over the last axis of the grid."""
        rest, _ = s[tensor].split(s[tensor].op.axis[0], factor=rows)
        for axis, count in list(self.grid.items())[:0:-1]:
            rest, loop = s[tensor].split(rest, factor=count)
            s[tensor].bind(loop, te.thread_axis(axis))
            last = loop
        s[tensor].bind(rest, te.thread_axis(next(iter(self.grid))))
        return last if len(self.grid) > 1 else rest

    def hops(self, a: Sequence[int], b: Sequence[int]) -> int:
        """Return the number of hops between two cores, in the shorter direction along each axis."""
        return sum(
            min((p - q) % n, (q - p) % n)
            for p, q, n in zip(a, b, self.grid.values(), strict=True)
        )


@pytest.fixture(params=["stick128", "tensix_wh"])
def machine(request: pytest.FixtureRequest) -> Machine:
    return Machine(request.param)


def halo(machine: Machine, *, copied: bool = True) -> tuple[Schedule, list[te.Tensor]]:
    """Build C[i] = B[i - 1] + B[i] + B[i + 1], with the rows of B = 2 A divided among cores."""
    count = len(machine.cores) * ROWS
    A = te.placeholder((count, COLUMNS), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute(A.shape, lambda i, j: (
        te.if_then_else(i > 0, B[i - 1, j], 0.0) + B[i, j]
        + te.if_then_else(i < count - 1, B[i + 1, j], 0.0)
    ), name="C")
    s = te.create_schedule(C)
    s[B].set_scope(machine.memory)
    copy = s.cache_read(B, machine.memory, [C]) if copied else None
    machine.bind(s, B, ROWS)
    last = machine.bind(s, C, ROWS)
    if copy is not None:
        s[copy].compute_at(s[C], last)
    return s, [A, C]


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("check_bounds", [False, True])
def test_halo_of_rows(
    agrees: Callable[..., ScheduledKernel], machine: Machine, check_bounds: bool
) -> None:
    s, (A, C) = halo(machine)
    a = np.random.default_rng(1).random((len(machine.cores) * ROWS, COLUMNS), "float32")
    padded = np.pad(2 * a, ((1, 1), (0, 0)))
    expected = padded[:-2] + padded[1:-1] + padded[2:]

    kernel = agrees(s, [A, C], {A: a, C: expected}, target=machine.target,
                    check_bounds=check_bounds)

    report = kernel.report()
    neighbours = list(zip(machine.cores, machine.cores[1:], strict=False))
    (moved,) = report.links
    assert moved.link == machine.link.name
    assert moved.bytes == 2 * len(neighbours) * ROW_BYTES
    # Each neighbour sends one row.
    assert moved.transfers == moved.bursts == 2 * len(neighbours)
    assert moved.hops == max(machine.hops(a, b) for a, b in neighbours)
    rate = machine.link.bytes_per_cycle * machine.link.instances
    rows = [1, *[2] * (len(machine.cores) - 2), 1]
    assert [core.cycles[machine.link.name] for core in report.cores] == [
        row * ROW_BYTES / rate for row in rows
    ]


def test_exchange_reads_the_memory_of_the_producer(machine: Machine) -> None:
    """A core reads its rows, the rows that it sends, and up to three copied rows per result."""
    s, args = halo(machine)

    read = tecomp.build(s, args, target=machine.target).report().of(machine.memory, "read")

    assert read is not None
    ends = [ROWS - 1, *[0] * (len(machine.cores) - 2), ROWS - 1]
    sent = [1, *[2] * (len(machine.cores) - 2), 1]
    sums = [3 * ROWS - (end > 0) for end in ends]
    assert read.per_core == tuple(
        (ROWS + s + t) * ROW_BYTES for s, t in zip(sent, sums, strict=True)
    )


@pytest.mark.exhaustive(keep=1)
def test_a_row_for_all_cores(agrees: Callable[..., ScheduledKernel], machine: Machine) -> None:
    A = te.placeholder((len(machine.cores), COLUMNS), name="A")
    R = te.compute((COLUMNS,), lambda j: A[0, j] + 1.0, name="R")
    C = te.compute(A.shape, lambda i, j: A[i, j] * R[j], name="C")
    s = te.create_schedule(C)
    s[R].set_scope(machine.memory)
    copy = s.cache_read(R, machine.memory, [C])
    s[copy].compute_at(s[C], machine.bind(s, C, 1))
    a = np.random.default_rng(2).random((len(machine.cores), COLUMNS), "float32")

    kernel = agrees(s, [A, C], {A: a, C: a * (a[0] + 1)}, target=machine.target)

    report = kernel.report()
    others = len(machine.cores) - 1
    (moved,) = report.links
    assert (moved.bytes, moved.transfers, moved.bursts) == (others * ROW_BYTES, others, others)
    assert moved.hops == max(machine.hops(machine.cores[0], core) for core in machine.cores)
    reads = report.of(machine.memory, "read")
    assert reads is not None
    # Each core reads its own copy; all cores copy from the first core.
    assert reads.per_core == ((others + 2) * ROW_BYTES, *[ROW_BYTES] * others)
    far = {core: machine.hops(machine.cores[0], core) for core in machine.cores}
    memory = machine.target.memories[machine.memory].latency_cycles or 0
    assert [core.latency for core in report.cores] == [
        memory + (machine.link.latency_cycles + machine.link.hop_cycles * far[core.core]
                  if any(core.core) else 0)
        for core in report.cores
    ]


@pytest.mark.exhaustive(keep=1)
def test_a_tensor_that_is_a_copy(
    agrees: Callable[..., ScheduledKernel], machine: Machine
) -> None:
    """A separate stage sends each row to the core `count // 2` positions further."""
    count = len(machine.cores)
    A = te.placeholder((count, COLUMNS), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="B")
    T = te.compute(A.shape, lambda i, j: te.if_then_else(
        i < count // 2, B[i + count // 2, j], B[i - count // 2, j]), name="T")
    C = te.compute(A.shape, lambda i, j: T[i, j] + 1.0, name="C")
    s = te.create_schedule(C)
    for tensor in (B, T, C):
        machine.bind(s, tensor, 1)
    for tensor in (B, T):
        s[tensor].set_scope(machine.memory)
    a = np.random.default_rng(3).random((len(machine.cores), COLUMNS), "float32")
    expected = np.roll(2 * a, count // 2, axis=0) + np.float32(1)

    kernel = agrees(s, [A, C], {A: a, C: expected}, target=machine.target)

    (moved,) = kernel.report().links
    assert (moved.bytes, moved.bursts) == (count * ROW_BYTES, count)
    half = machine.cores[count // 2]
    assert moved.hops == machine.hops(machine.cores[0], half)


def test_columns_for_rows(agrees: Callable[..., ScheduledKernel]) -> None:
    """Each core has one element for each other core, and no two of them are adjacent."""
    target = Target.load("stick128")
    A = te.placeholder((32, 32), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="B")
    T = te.compute(A.shape, lambda i, j: B[j, i], name="T")
    C = te.compute(A.shape, lambda i, j: T[i, j] + 1.0, name="C")
    s = te.create_schedule(C)
    for tensor in (B, T, C):
        s[tensor].bind(s[tensor].op.axis[0], te.thread_axis("core.x"))
    for tensor in (B, T):
        s[tensor].set_scope("lx")
    a = np.arange(1024, dtype="float32").reshape(32, 32)

    kernel = agrees(s, [A, C], {A: a, C: 2 * a.T + 1}, target=target)

    (moved,) = kernel.report().links
    # Reads of this memory are whole sticks.
    assert (moved.bytes, moved.bursts, moved.hops) == (32 * 31 * 128, 32 * 31, 16)


def test_a_target_without_such_a_link() -> None:
    machine = Machine("stick128")
    s, args = halo(machine)
    target = machine.target
    alone = replace(
        target, links={name: each for name, each in target.links.items() if name != "ring"})

    with pytest.raises(TargetError) as error:
        tecomp.build(s, args, target=alone)

    assert diagnostic(error.value) == (
        Diagnostic(
            "cores", where="B: memory `lx` of target stick128 is private to each core",
            buffer="element [5, 0] of B is used by core.x=1 and by core.x=2",
            remedy="the target has no link from `lx` to `lx`; copy it to a memory of the chip first, or compute it inside the loop bound to core.x",
        )
    )


def test_exchange_requires_a_copy() -> None:
    machine = Machine("stick128")

    with pytest.raises(TargetError) as error:
        tecomp.build(*halo(machine, copied=False), target=machine.target)

    assert diagnostic(error.value) == (
        Diagnostic(
            "cores", where="B: memory `lx` of target stick128 is private to each core",
            buffer="element [2, 0] of B is used by core.x=0 and by core.x=1",
            remedy="copy it over link `ring` into `lx`, in a loop over cores after the one that computes it, or compute it inside the loop bound to core.x",
        )
    )


@pytest.mark.parametrize(
    ("value", "is_apart", "copies"),
    [
        ("X[(c + 1) % 4]", True, 1),
        # The other core may not have stored its element yet.
        ("X[(c + 1) % 4]", False, 0),
        ("if_then_else(c < 3, X[c + 1], float32(0.0))", True, 1),
        ("X[c] + float32(1.0)", True, 0),
        ("if_then_else(float32(0.0) < A[c], X[c], float32(0.0))", True, 0),
    ],
)
def test_reads_of_other_cores(value: str, is_apart: bool, copies: int) -> None:
    repeated = '            for c in parallel(4, thread="core.x"):\n' if is_apart else ""
    func = parse(f'''def main(A: Buffer("float32", (4,))):
    with Allocate(Buffer("float32", (4,), scope="lx")) as X:
        with Allocate(Buffer("float32", (4,), scope="lx")) as Y:
            for c in parallel(4, thread="core.x"):
                X[c] = A[c]
{repeated}                Y[c] = {value}
''')

    found = {data.name: uses for data, uses in uses_of(sites_of(func, {})).items()}

    assert len(found["X"].copies) == copies
    assert not found["Y"].copies
