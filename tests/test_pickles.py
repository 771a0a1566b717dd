"""Pickle and copy of schedules, kernels, tensors, targets and layouts, also across processes."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel
from tecomp.driver import ScheduledKernel
from tecomp.layout.core import stick_layout
from tecomp.layout.sharding import shard_layout
from tecomp.scheduling.replay import replay
from tecomp.source_locations import user_location

n = te.var("n")
A = te.placeholder((n, 8), name="A")
k = te.reduce_axis((0, 8), name="k")
B = te.compute((n,), lambda i: te.sum(A[i, k] * 2.0, axis=k), name="B")
C = te.compute((n, 8), lambda i, j: A[i, j] + B[i], name="C", attrs={"note": 3})


def scheduled() -> te.Schedule:
    s = te.create_schedule(C.op)
    s[C].transform_layout(lambda i, j: [j // 4, i, j % 4])
    local = s.cache_write(B, "local")
    s[local].split(s[local].op.reduce_axis[0], factor=4)
    return s


def loaded(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def run(kernel: ScheduledKernel, tensors: tuple[te.Tensor, ...]) -> Any:
    """Return the results of a kernel for fixed inputs."""
    a = np.arange(40, dtype="float32").reshape(5, 8)
    b, c = np.zeros(5, "float32"), kernel.empty(tensors[2], n=5)
    kernel(a, b, c)
    return b, kernel.unpack(tensors[2], c, n=5)


def run_pickled(data: bytes) -> tuple[Any, str, list[bool]]:
    """Return results, trace and object identities of a pickled kernel in another process."""
    a, b, c, s, kernel, size = pickle.loads(data)
    own = tecomp.build(s, [a, b, c])
    same = [s[b].op.name == "B", s.size("n") is size, a in s[c].op.input_tensors]
    assert all((x == y).all() for x, y in zip(run(own, (a, b, c)), run(kernel, (a, b, c)),
                                              strict=True))
    return run(kernel, (a, b, c)), s.trace.to_json(), same


PROGRAM = """
import pickle, sys
from tests.test_pickles import run_pickled
sys.stdout.buffer.write(pickle.dumps(run_pickled(sys.stdin.buffer.read())))
"""


@pytest.mark.exhaustive
def test_a_new_process_computes_the_same() -> None:
    s = scheduled()
    kernel = tecomp.build(s, [A, B, C])
    data = pickle.dumps((A, B, C, s, kernel, n))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=data, cwd=Path(__file__).parents[1],
        capture_output=True, check=False, timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    (b, c), trace, same = pickle.loads(done.stdout)

    a = np.arange(40, dtype="float32").reshape(5, 8)
    np.testing.assert_array_equal(b, a.sum(1) * 2)
    np.testing.assert_array_equal(c, a + b[:, None])
    assert trace == s.trace.to_json()
    assert same == [True, True, True]


def test_an_unpickled_schedule_continues() -> None:
    s = scheduled()
    other, tensors = loaded((s, (A, B, C)))
    a, b, c = tensors

    for schedule, x in ((s, C), (other, c)):
        schedule[x].split(schedule[x].leaf_iter_vars[1], factor=2)

    assert other.trace.to_json() == s.trace.to_json()
    assert str(tecomp.lower(other, [a, b, c])) == str(tecomp.lower(s, [A, B, C]))
    assert replay(other.trace.to_json(), c).trace.to_json() == s.trace.to_json()


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_schedule_is_of_the_same_tensors(how: Callable[[Any], Any]) -> None:
    s = scheduled()
    before = s.trace.to_json()
    other = how(s)

    other[C].split(other[C].leaf_iter_vars[1], factor=2)

    assert s.trace.to_json() == before != other.trace.to_json()


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("value", [n, A, B.op, k, A[0, 1] + 1.0], ids=str)
def test_identity_types_are_copied_as_themselves(how: Callable[[Any], Any], value: Any) -> None:
    assert how(value) is value


def test_one_tensor_stays_one() -> None:
    first, second, op, size = loaded((A, A, A.op, n))

    assert first == second
    assert first.op is op
    assert first.shape[0] is size
    assert first != A


@pytest.mark.exhaustive
def test_a_deep_expression() -> None:
    def added(i: Any) -> Any:
        total = A[i, 0]
        for _ in range(5000):
            total = total + A[i, 1]
        return total

    T = te.compute((4,), added, name="T")

    assert str(loaded(T).op) == str(T.op)
    assert str(loaded(te.create_schedule(T.op)).outputs[0]) == str(T.op)


def test_a_kernel_of_a_function() -> None:
    func = tecomp.lower(te.create_schedule(B.op), [A, B])
    for kernel in (loaded(Kernel(func)), copy.deepcopy(Kernel(func))):
        a, b = np.ones(24, "float32"), np.zeros(3, "float32")
        kernel(a, b)
        assert b.tolist() == [16, 16, 16]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("name", tecomp.list_targets())
def test_targets_and_their_operations(name: str) -> None:
    target = tecomp.Target.load(name)

    assert loaded(target) == target == copy.deepcopy(target)
    for intrin in list(tecomp.intrinsics(target).values())[:5]:
        assert repr(loaded(intrin)) == repr(intrin)


@pytest.mark.parametrize(
    "layout",
    [
        stick_layout.StickLayout((8, 64), "float16"),
        shard_layout.ShardLayout((64, 64), "float32", grid=(2, 2)),
        te.IndexMap.from_func(lambda i, j: [i // 4, j, i % 4]),
    ],
    ids=lambda layout: type(layout).__name__,
)
def test_layouts(layout: Any) -> None:
    for other in (loaded(layout), copy.copy(layout), copy.deepcopy(layout)):
        assert str(other) == str(layout)
        if hasattr(layout, "shape"):
            assert other == layout


def test_places_keep_their_line() -> None:
    here = user_location()
    assert here is not None

    assert (loaded(here).file, loaded(here).line) == (here.file, here.line)
    assert Path(here.file) == Path(__file__)


def test_layout_caches_are_not_pickled() -> None:
    """Cached layout queries are not pickled: their keys are ids of the process."""
    there = tecomp.IndexMap.from_func(lambda i: [i // 4, i % 4])
    index_map = there.then(tecomp.IndexMap.from_func(lambda a, b: [a * 4 + b]))
    assert index_map.map_shape((6,)) == (8,)

    reloaded = loaded(index_map)

    assert reloaded.formula == index_map.formula
    assert reloaded._answers == {}
    assert reloaded.map_shape((6,)) == (8,)
