"""Functions on tensors of a team, lowered to runtime calls, agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from tecomp import TecompError, dist
from tecomp.array.executor import execute
from tecomp.ptensor import (
    Binding,
    Dist,
    Literal,
    LoweredFunction,
    ValueName,
    dist_to_runtime,
    lower_ptensor,
    parse_module,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.ptensor.drawn import cases
from tests.ptensor.rows import check_row
from tests.ptensor.team_functions import FUNCTIONS, SEVERAL, drawn_function

TEAM = dist.world()


def given(whole: Any) -> Any:
    """Return an argument: the shard of this process for an array, other values unchanged."""
    if not isinstance(whole, np.ndarray):
        return whole
    gid = dist.init_dtensor(TEAM, whole.shape, whole.dtype)
    return whole[dist.local_slice(TEAM, gid)].copy(), None, TEAM.id, gid


def of_all(result: Any) -> Any:
    """Gather a result on every process."""
    local, device, team, gid = result
    assert (device, team) == (None, TEAM.id)
    return dist.gather(TEAM, dist.partition_of(TEAM, gid), np.array(local, order="C"))


def check(name: str, lowered: LoweredFunction, arguments: list[Any], reference: list[Any]) -> None:
    results = execute(dist_to_runtime(lowered), *map(given, arguments))
    for result, expected in zip(results, reference, strict=True):
        found = of_all(result)
        assert found.dtype == np.asarray(expected).dtype, (name, found.dtype)
        assert_close(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)
    numbers = dist.allgather(TEAM, np.array([[result[3] for result in results]]))
    assert (numbers == numbers[0]).all()
    assert len(set(numbers[0])) == len(results)


def refused(call: Callable[..., Any], *arguments: Any) -> Diagnostic:
    try:
        call(*arguments)
    except TecompError as error:
        return diagnostic(error)
    raise AssertionError(call)


for name, (text, arguments, numpy) in FUNCTIONS.items():
    check(name, lower_ptensor(parse(text)), arguments, numpy(*arguments))
table = np.arange(12.0).reshape(3, 4)
module = dist_to_runtime(lower_ptensor(parse_module(SEVERAL)))
row, half = execute(module.functions[1], given(table), among=module)
np.testing.assert_array_equal(of_all(row), table.sum(axis=0))
np.testing.assert_array_equal(of_all(half), table.sum(axis=0)[::2])
for seed in range(25):
    function, arguments = drawn_function(Random(seed))
    alone = [(data, None, None, None) for data in arguments]
    one = execute(lower_ptensor(function, ignore_team=True), *alone)
    check(f"seed {seed}", lower_ptensor(function), arguments, [result[0] for result in one])

if TEAM.size > 1:
    # Each number of processes runs a third of the rows.
    for case in [*cases(None, TEAM.id), *cases("stick128", TEAM.id)][TEAM.size - 2 :: 3]:
        check_row(case, TEAM)

lowered = lower_ptensor(parse(FUNCTIONS["chain"][0]))
end = Binding(None, Dist("fini_dtensor", (ValueName("x", 3),), Literal(TEAM.id)))
once = LoweredFunction("f", lowered.parameters, (*lowered.body, end), lowered.results)
argument = given(np.ones((7, 3)))
execute(dist_to_runtime(once), argument)
ended = refused(execute, dist_to_runtime(lowered), argument)
assert ended == Diagnostic("team", where="partition_of", dtensor_id=argument[3]), ended
other = given(np.ones((3, 2)))
assert refused(execute, dist_to_runtime(lowered), other) == Diagnostic(
    "array-value", where="@f: %x is", dtype="float64", shape=[3, 2],
    expected="ptensor<7x3xfloat64, team=1>",
)
cyclic = dist.init_dtensor(TEAM, (7, 3), placements=[dist.Shard(0, block=1)])
part = np.ones(dist.local_shape(TEAM, cyclic))
if TEAM.size > 1:
    assert refused(execute, dist_to_runtime(lowered), (part, None, 1, cyclic)) == Diagnostic(
        "team", where="@f: %x is", placements="[Shard(0, block=1)]", usual_placements="[Shard(0)]",
    )
if TEAM.rank == 0:
    print("as with NumPy")
