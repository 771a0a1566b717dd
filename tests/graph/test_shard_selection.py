"""Values that the compiler keeps in scratchpads from kernel to kernel, by modelled cycles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tecomp
from tecomp import ShardLayout, te, topi
from tecomp.graph import details_from, plan_program, validate_request
from tests.numerics import assert_close


def two_readers(shape: tuple[int, int]) -> tuple[te.Tensor, te.Tensor, list[te.Tensor]]:
    A = te.placeholder(shape, name="A")
    E = te.compute(shape, lambda i, j: te.exp(A[i, j]), name="E")
    S = te.compute(shape, lambda i, j: E[i, j] * 0.5, name="S")
    T = te.compute(shape, lambda i, j: te.sqrt(E[i, j]), name="T")
    return A, E, [S, T]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("machine", "shape"), [("tensix_wh", (160, 96)), ("tensix_bh", (64, 192))])
def test_a_value_of_two_kernels_stays(machine: str, shape: tuple[int, int]) -> None:
    A, E, outputs = two_readers(shape)
    program = tecomp.compile(outputs, [A], machine)
    stored = tecomp.compile(outputs, [A], machine, layouts={E: "default"})

    a = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    s, t = program(a)
    assert_close(s, np.exp(a) * 0.5, 1e-5)
    assert_close(t, np.sqrt(np.exp(a)), 1e-5)
    assert program.report().cycles < stored.report().cycles
    (value,) = program.memory.residents
    assert (value.tensor.name, value.is_between) == ("E", True)
    layout = program.layouts[E].device_layout
    assert isinstance(layout, ShardLayout)
    assert layout.grid == value.parts
    assert "E: " in str(program.report().residents[0])
    assert not stored.memory.residents
    assert {spill.kind for spill in stored.memory.spills if spill.tensor.name == "E"} == {"requested"}


@pytest.mark.exhaustive
def test_a_value_spilled_for_its_cost() -> None:
    """Columns and rows of one value are reduced: whichever shards it has, one reader needs a copy."""
    A = te.placeholder((256, 256), name="A")
    E = te.compute(A.shape, lambda i, j: te.exp(A[i, j]), name="E")
    k, r = te.reduce_axis((0, 256), name="k"), te.reduce_axis((0, 256), name="r")
    columns = te.compute((256,), lambda j: te.max(E[k, j], axis=k), name="columns")
    rows = te.compute((256,), lambda i: te.max(E[i, r], axis=r), name="rows")
    S = te.compute(A.shape, lambda i, j: E[i, j] * rows[i], name="S")
    T = te.compute(A.shape, lambda i, j: te.sqrt(E[i, j]) + columns[j], name="T")
    program = tecomp.compile([S, T], [A], "tensix_wh")

    (spill,) = (item for item in program.memory.spills if item.tensor.name == "E")
    assert spill.kind == "cost"
    assert "cycles more" in spill.reason
    a = np.random.default_rng(1).uniform(-1, 1, A.shape).astype("float32")
    s, t = program(a)
    e = np.exp(a)
    assert_close(s, e * e.max(1)[:, None], 1e-5)
    assert_close(t, np.sqrt(e) + e.max(0), 1e-5)


def random_program(random: np.random.Generator) -> tuple[list[te.Tensor], list[te.Tensor]]:
    """Return a random program whose values have several readers."""
    shape = tuple(int(32 * n) for n in random.integers(1, 7, 2))
    inputs = [te.placeholder(shape, name=name) for name in "AB"]
    values = [*inputs]
    outputs = []
    for number in range(int(random.integers(3, 6))):
        x, y = (values[int(random.integers(len(values)))] for _ in range(2))
        r = te.reduce_axis((0, shape[1]), name="r")
        match int(random.integers(3)):
            case 0:
                result = te.compute(shape, lambda *i, x=x: te.exp(x[i] * 0.25), name=f"v{number}")
            case 1:
                result = te.compute(shape, lambda *i, x=x, y=y: x[i] - y[i], name=f"v{number}")
            case _:
                row = te.compute(
                    (shape[0],), lambda i, x=x, r=r: te.max(x[i, r], axis=r), name=f"r{number}"
                )
                result = te.compute(
                    shape, lambda i, j, y=y, row=row: y[i, j] - row[i], name=f"v{number}"
                )
        values.append(result)
        if random.random() < 0.6:
            outputs.append(result)
    return inputs, outputs if values[-1] in outputs else [*outputs, values[-1]]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(4))
def test_no_program_becomes_slower(seed: int) -> None:
    random = np.random.default_rng(seed)
    inputs, outputs = random_program(random)
    target = tecomp.Target.load("tensix_wh")
    requested = validate_request(outputs, inputs, target, {}, "program", {}, [], relayouts=True)
    plan = plan_program(requested)
    before = details_from(plan, is_final=True).report("program", target, 0, measured=False)
    program = tecomp.compile(outputs, inputs, target)
    assert program.report().cycles <= before.cycles

    arrays = [random.standard_normal(x.shape, dtype=np.float32) for x in inputs]
    expected = [np.empty(x.shape, np.float32) for x in outputs]
    loops = tecomp.lower(te.create_schedule([x.op for x in outputs]), [*inputs, *outputs],
                         stop_after="nest")
    tecomp.evaluate(loops, [*arrays, *expected])
    found = program(*arrays)
    for one, right in zip(found if len(outputs) > 1 else [found], expected, strict=True):
        assert_close(one, right, 1e-5, magnitude=np.abs(right).max())


@pytest.mark.exhaustive
def test_readers_of_other_parts_read_over_links_between_cores() -> None:
    """Readers that reduce different axes have different parts, which cores exchange."""
    target = replace(tecomp.Target.load("tensix_wh"), grid={"core.y": 4, "core.x": 4})
    apart = replace(target, links={k: v for k, v in target.links.items() if k != "noc"})
    A = te.placeholder((64, 64, 256), name="A")
    E = te.compute(A.shape, lambda *i: te.exp(A[i]), name="E")
    q, r = te.reduce_axis((0, 64), name="q"), te.reduce_axis((0, 64), name="r")
    P = te.compute((64, 256), lambda j, k: te.max(E[q, j, k], axis=q), name="P")
    Q = te.compute((64, 256), lambda i, k: te.max(E[i, r, k], axis=r), name="Q")
    program = tecomp.compile([P, Q], [A], target)

    a = np.random.default_rng(2).uniform(-1, 1, A.shape).astype("float32")
    columns, rows = program(a)
    assert_close(columns, np.exp(a).max(0), 1e-5)
    assert_close(rows, np.exp(a).max(1), 1e-5)
    assert {value.tensor.name for value in program.memory.residents} == {"E", "E_copy"}
    (reshard,) = program.layouts.reshards
    assert isinstance(reshard.source, ShardLayout)
    assert isinstance(reshard.layout, ShardLayout)
    assert reshard.source.grid != reshard.layout.grid
    (copy,) = (call for call in program.kernels if call.group.result.name == "E_copy")
    assert {transfer.link for transfer in copy.kernel.report().links} == {"noc"}
    assert program.report().cycles < tecomp.compile([P, Q], [A], apart).report().cycles


@pytest.mark.exhaustive
def test_values_in_requested_shards_are_sent_to_readers_of_other_parts() -> None:
    """A softmax needs whole rows, which cores get over the NoC instead of from device memory."""
    shape = 128, 128
    A = te.placeholder(shape, name="A")
    E = te.compute(shape, lambda i, j: A[i, j] * 0.5, name="E")
    P = topi.nn.softmax(E)
    Q = te.compute(shape, lambda i, j: te.exp(E[i, j]), name="Q")
    shards = ShardLayout(shape, "float32", grid=(2, 4), tile=(32, 32))
    program = tecomp.compile([P, Q], [A], "tensix_wh", layouts={E: shards})

    assert program.layouts is not None
    (copy,) = program.layouts.reshards
    assert copy.tensor.name == "E"
    assert isinstance(copy.layout, ShardLayout)
    assert copy.layout.grid == (4, 1)
    assert [k.bound_by for k in program.report().kernels if k.name == "E_copy"] == ["noc"]
    a = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    p, q = program(a)
    powers = np.exp(a * 0.5)
    assert_close(q, powers, 1e-5)
    assert_close(p, powers / powers.sum(1, keepdims=True), 1e-5)
