"""The address span of a tensor on one core stays within the limit of the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

import tecomp
from tecomp import Target, TargetError, te
from tecomp.ir import Buffer, BufferLoad, BufferStore, TensorOp, evaluate
from tecomp.schedules import auto
from tecomp.schedules.matmul import contraction_of, describe
from tecomp.schedules.scratchpad import Placement, contraction, placement_of
from tests.messages import Diagnostic, diagnostic

STICKS = Target.load("stick128")


@dataclass
class Spans:
    """Recorder of the first and last byte of each argument that each core accesses."""

    cores: set[int] = field(default_factory=set)
    found: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    own: int = 0

    def reader(self, node: BufferLoad) -> Callable[[tuple[int, ...]], None]:
        return self._follow(node.buffer)

    def writer(self, node: BufferStore) -> Callable[[tuple[int, ...]], None]:
        return self._follow(node.buffer)

    def operation(self, node: TensorOp) -> Callable[[], None]:
        return lambda: None  # The body is skipped: its operands are in scratchpads.

    def core(self, thread: str, value: int | None) -> None:
        self.own = value or 0
        self.cores.add(self.own)

    def _follow(self, buffer: Buffer) -> Callable[[tuple[int, ...]], None]:
        def seen(place: tuple[int, ...]) -> None:
            first, last = place[0] * buffer.dtype.bytes, (place[0] + 1) * buffer.dtype.bytes
            low, high = self.found.get((buffer.name, self.own), (first, last))
            self.found[buffer.name, self.own] = min(low, first), max(high, last)

        return seen


def spans_of(output: te.Tensor, args: list[te.Tensor], target: Target) -> tuple[Spans, int]:
    """Return the recorded accesses of the arguments of a kernel, and the longest span in bytes."""
    kernel = tecomp.build(auto(output, target), args, target)
    func = kernel.lowered.functions["flatten_buffer"]
    watch = Spans()
    buffers = [p for p in func.params if isinstance(p, Buffer)]
    evaluate(func, [np.zeros([int(str(n)) for n in p.shape], p.dtype.numpy) for p in buffers], watch)
    names = {p.name for p in buffers}
    return watch, max(b - a for (name, _), (a, b) in watch.found.items() if name in names)


def product(m: int, k: int, n: int) -> tuple[te.Tensor, list[te.Tensor]]:
    A, B = te.placeholder((m, k), "float16", "A"), te.placeholder((k, n), "float16", "B")
    r, wide = te.reduce_axis((0, k), "r"), "float32"
    total = te.compute(
        (m, n), lambda i, j: te.sum(te.cast(A[i, r], wide) * te.cast(B[r, j], wide), axis=r))
    C = te.compute((m, n), lambda i, j: te.cast(total[i, j], "float16"), name="C")
    return C, [A, B, C]


def near(target: Target) -> Placement:
    where = placement_of(target)
    assert where is not None
    return where


def limited(size: int) -> Target:
    return STICKS.overridden(limits={"span_bytes": size})


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("shape", "limit"),
    [
        ((8, 128, 64), 8192),  # reduction axis in two parts
        ((16, 64, 128), 8192),  # the columns
    ],
)
def test_a_product_partially_reachable_by_cores(
    shape: tuple[int, int, int], limit: int
) -> None:
    C, args = product(*shape)

    watch, span = spans_of(C, args, limited(limit))

    assert span <= limit
    assert len(watch.cores) > 1


def test_a_product_in_parts_has_the_same_values() -> None:
    C, args = product(64, 512, 64)
    assert contraction.parts_of_depth(contraction_of(describe(C)), C, near(STICKS)) == []
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, x.shape).astype("float16") for x in args[:2])

    program = tecomp.compile(C, args[:2], limited(16_384))
    (kernel,) = (item for item in program.report().kernels if item.tiles)

    assert kernel.tiles == 64 // 8 * (512 // 64)  # computed by the matrix unit
    np.testing.assert_array_equal(program(a, b), (a.astype(float) @ b).astype("float16"))
    assert "its reduction axis r is split over cores" in [value.reason for value in program.memory.spills]


def test_a_product_as_large_as_the_published_one() -> None:
    """A core reaches half of A, over 256 MiB, so the reduction is split in 4 and columns in 2."""
    C, _ = product(8192, 32_768, 4096)
    where, c = near(STICKS), contraction_of(describe(C))

    assert contraction.parts_of_depth(c, C, where) == [2, 4, 8, 16, 32]
    refusal = contraction.plan(c, C, where).refusal
    assert refusal is not None
    assert diagnostic(refusal) == Diagnostic(
        "indivisible", output="C", target="stick128", limit=268431360, core="1024 x 1024",
        subject=536870912, far="A",
    )
    s = auto(C, STICKS)
    (partial,) = (x.op.output(0) for x in s.stages if x.op.name.endswith(".rf"))
    assert partial.shape == (4, 8192, 4096)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(15))
def test_random_products_and_formulas(seed: int) -> None:
    """Random programs are within the span, or are rejected with the tensor that exceeds it."""
    random = np.random.default_rng(seed)
    m, k, n = (int(x) for x in random.choice([4, 33, 64], 3))
    C, args = product(m, k, n)
    if seed % 3:
        A = te.placeholder((m, k, 2), "float16", "A")
        C = te.compute((k, m), lambda i, j: A[j, i, 0] + A[j, i, 1], name="C")
        args = [A, C]
    limit = int(random.choice([1024, 2048, 8192, 16_384]))
    span, refusal = 0, None
    try:
        _, span = spans_of(C, args, limited(limit))
    except TargetError as error:
        refusal = diagnostic(error)

    assert span <= limit
    assert bool(span) == (refusal is None)
    if refusal is not None:
        names = {"output", "target", "limit", "core", "subject", "far"}
        assert (refusal.kind, set(refusal.parameters)) == ("indivisible", names)
        assert refusal.parameters["limit"] == limit


@dataclass
class Touched(Spans):
    """Recorder of the first and last index along each axis that each core accesses."""

    ends: dict[tuple[Buffer, int], tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)

    def _follow(self, buffer: Buffer) -> Callable[[tuple[int, ...]], None]:
        def seen(place: tuple[int, ...]) -> None:
            low, high = self.ends.get((buffer, self.own), (place, place))
            self.ends[buffer, self.own] = (
                tuple(map(min, low, place)), tuple(map(max, high, place)))

        return seen

    def span(self, params: list[Buffer]) -> int:
        """Return the longest span of a parameter on a core, in indices of the outermost axis."""
        found = [0]
        for (buffer, _), (low, high) in self.ends.items():
            widths = [b - a + 1 for a, b in zip(low, high, strict=True)]
            outer = next((k for k, width in enumerate(widths) if width > 1), len(widths) - 1)
            inner = math.prod(int(str(n)) for n in buffer.shape[outer + 1 :])
            if any(buffer is param for param in params):
                found.append(widths[outer] * inner * buffer.dtype.bytes)
        return max(found)


def by_hand(random: np.random.Generator) -> tuple[te.Schedule, list[te.Tensor]]:
    """Return a schedule with random splits, loop order, cores and layout."""
    shape = tuple(int(n) for n in random.choice([3, 8, 12], 2))
    A = te.placeholder((*shape[::-1], 2), "float16", "A")
    a, b = (int(n) for n in random.integers(0, 3, 2))
    B = te.compute(
        shape, lambda i, j: A[j, i, 0] + A[te.max(j - a, 0), te.min(i + b, shape[0] - 1), 1], name="B")
    s = te.create_schedule(B)
    for x in (A, B):
        s[x].set_scope("ddr")
        if random.random() < 0.7:
            s[x].transform_layout(
                lambda i, j, *k: [j // 4, i, *k, j % 4], loops="logical")
    parts = [s[B].split(axis, factor=int(random.choice([1, 2, 4, 5]))) for axis in B.op.axis]
    loops = [loop for pair in parts for loop in pair]
    s[B].reorder(*(loops[k] for k in random.permutation(4)))
    if random.random() < 0.8:
        s[B].bind(loops[int(random.integers(4))], te.thread_axis("core.x"))
    return s, [A, B]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("seed", range(40))
def test_random_manual_schedules(seed: int) -> None:
    """A schedule is rejected exactly where a core accesses elements beyond the span limit."""
    random = np.random.default_rng(seed)
    s, args = by_hand(random)
    func = tecomp.lower_all(s, args).functions["lower_storage"]
    params = [p for p in func.params if isinstance(p, Buffer)]
    watch = Touched()
    evaluate(func, [np.zeros([int(str(n)) for n in p.shape], p.dtype.numpy) for p in params], watch)
    span = watch.span(params)

    tecomp.build(s, args, limited(span))
    with pytest.raises(TargetError) as error:
        tecomp.build(s, args, limited(span - 1))
    found = error.value.parameters
    assert (error.value.kind, found["limit"], found["span"]) == ("cores", span - 1, span)


def test_manual_schedule_beyond_the_span() -> None:
    A = te.placeholder((8192, 32_768), "float16", "A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2, name="B")
    s = te.create_schedule(B)
    for x in (A, B):
        s[x].set_scope("ddr")
        s[x].transform_layout(lambda i, j: [j // 64, i, j % 64], loops="logical")
    rows, columns = (s[B].split(axis, nparts=4)[0] for axis in B.op.axis)
    s[B].reorder(columns, rows)
    s[B].bind(rows, te.thread_axis("core.x"))

    with pytest.raises(TargetError) as error:
        tecomp.build(s, [A, B], STICKS)
    assert diagnostic(error.value) == (
        Diagnostic(
            "cores", func="main", target="stick128", limit=268431360, buffer="A", span=536870912,
            scalar="float16", shape="512, 8192, 64", scope="ddr",
        )
    )


def test_sizes_of_a_call_beyond_the_span() -> None:
    n = te.size_var("n")
    A = te.placeholder((n, 8), "float16", "A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2, name="B")
    s = te.create_schedule(B)
    for x in (A, B):
        s[x].set_scope("ddr")
    kernel = tecomp.build(s, [A, B], limited(64))
    kernel(np.ones((4, 8), "float16"), np.ones((4, 8), "float16"))

    with pytest.raises(TargetError) as error:
        kernel(np.ones((5, 8), "float16"), np.ones((5, 8), "float16"))
    found = error.value.parameters
    assert (error.value.kind, found["buffer"], found["limit"], found["span"]) == ("cores", "A", 64, 80)
