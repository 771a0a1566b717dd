"""`tecomp.tune`: results, resuming, failing candidates, programs, models and described machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import CallError, ScheduleError, knob, te, topi
from tecomp.driver import Knob, cost_text
from tecomp.progress import Progress
from tecomp.schedules import auto
from tecomp.tuning import SearchState, TuningDatabase
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_product
from tests.tuning.candidates import Faulty

N = 48
A, B = te.placeholder((N, N), name="A"), te.placeholder((N, N), name="B")
k = te.reduce_axis((0, N), name="k")
C = te.compute((N, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
ARGS = [A, B, C]
tuner: Any = import_module("tecomp.tuning.tuner")
# Typed as Any, so that type checkers accept the wrong argument.
WRONG: Any = "s"


def by_hand() -> te.Schedule:
    """Return a schedule that is slow unless the knobs say otherwise."""
    s = te.create_schedule(C)
    i, j = s[C].op.axis
    (r,) = s[C].op.reduce_axis
    order = knob("order", ["columns", "vectors"])
    if order == "columns":
        s[C].reorder(j, r, i)
    else:
        outer, lane = s[C].split(j, factor=knob("lanes", [8, 16]))
        s[C].reorder(i, outer, r, lane)
        s[C].vectorize(lane)
    return s


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "tuning.sqlite"


def test_a_schedule_function_is_tuned_and_built_with_its_record(database: Path) -> None:
    result = tecomp.tune(by_hand, ARGS, trials=2, database=database)

    (kernel,) = result.kernels
    assert kernel.choices["order"] == "vectors"
    assert kernel.gain == result.gain > 1.5
    # A knob that only some candidates request is part of the space.
    assert {one.name: one.values for one in kernel.space} == {
        "order": ("columns", "vectors"), "lanes": (8, 16)}
    assert len(kernel.trials) == 2
    assert f"{kernel.gain:.2f} times as fast" in str(result)
    built = tecomp.build(by_hand, ARGS, database=database)
    assert ".vectorize(" in str(built.schedule.trace)
    assert ".vectorize(" not in str(tecomp.build(by_hand, ARGS).schedule.trace)
    a, b = (np.random.default_rng(seed).random((N, N), np.float32) for seed in (0, 1))
    c = np.empty((N, N), np.float32)
    built(a, b, c)
    assert_product(c, a, b)


@pytest.mark.exhaustive
@pytest.mark.parametrize("search", ["evolution", "random"])
def test_tuned_outputs_equal_numpy_and_are_not_slower(database: Path, search: Any) -> None:
    result = tecomp.tune(C, ARGS, trials=3, database=database, search=search)

    assert result.gain >= 1.0
    kernel = tecomp.build(C, ARGS, database=database)
    a, b = (np.random.default_rng(seed).random((N, N), np.float32) for seed in (0, 1))
    c = np.empty((N, N), np.float32)
    kernel(a, b, c)
    assert_product(c, a, b)
    with TuningDatabase(database) as records:
        (record,) = records.records()
    assert dict(record.choices) == dict(result.choices)
    assert (record.first, record.cost) == (result.kernels[0].first, result.kernels[0].cost)


@pytest.mark.exhaustive
def test_the_search_resumes_where_it_was_interrupted(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare: Any = vars(tuner)["compare"]
    calls = iter((True, False))

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if not next(calls, True):
            raise KeyboardInterrupt
        return compare(*arguments, **options)

    monkeypatch.setattr(tuner, "compare", interrupted)
    first = tecomp.tune(by_hand, ARGS, trials=8, database=database)
    monkeypatch.setattr(tuner, "compare", compare)
    second = tecomp.tune(by_hand, ARGS, trials=8, database=database)

    assert first.is_interrupted
    assert not second.is_interrupted
    found = [str(trial.choices) for trial in first.kernels[0].trials]
    assert len(found) == 1
    # Only the best candidate of the record is measured again.
    again = [str(trial.choices) for trial in second.kernels[0].trials]
    assert len(set(again)) == len(again)
    assert set(found) & set(again) <= {str(dict(first.choices))}
    assert second.choices["order"] == "vectors"


@pytest.mark.exhaustive
def test_failed_candidates_are_recorded_and_do_not_end_the_search(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner, "_BUILD_SECONDS", 3.0)
    with TuningDatabase(database, create=True) as records:
        task: Any = Faulty()
        state = SearchState()
        end = time.monotonic() + 100
        bar: Any = Progress("tune", 10, None)
        one = tuner._KernelTuner(task, records, state, end, None, bar)
        (result,), is_interrupted = one.run()

    assert not is_interrupted
    assert result.choices == {}
    outcomes = {trial.choices["how"]: (trial.outcome, trial.message) for trial in result.trials}
    assert {how for how, (outcome, _) in outcomes.items() if outcome == "failed"} == {
        "crash", "hang", "exit", "memory", "error", "wrong"}
    assert "results differ" in outcomes["wrong"][1]
    assert "within 3 s" in outcomes["hang"][1] or "no answer" in outcomes["hang"][1]


def test_a_function_that_raises_for_some_values_is_tuned(database: Path) -> None:
    def make() -> te.Schedule:
        if knob("fails", [False, True]):
            raise RuntimeError("not this one")
        return te.create_schedule(C)

    result = tecomp.tune(make, ARGS, trials=2, database=database)

    (trial,) = result.kernels[0].trials
    assert (trial.outcome, trial.message) == ("failed", "RuntimeError: not this one")


@pytest.mark.exhaustive
def test_a_described_machine_is_tuned_by_its_model(database: Path) -> None:
    x = te.placeholder((256, 192), "float16", name="x")
    y = topi.nn.relu(x)

    result = tecomp.tune(y, [x, y], "stick128", trials=4, database=database)

    (kernel,) = result.kernels
    assert kernel.unit == "cycles"
    modelled = [
        tecomp.build(scheduled, [x, y], "stick128").report().makespan
        for scheduled in (
            auto(y, "stick128"), tecomp.Choices(kernel.choices).run(auto, y, "stick128"))
    ]
    assert [kernel.first, kernel.cost] == pytest.approx(modelled)
    assert kernel.cost <= kernel.first
    assert f"{kernel.cost:,.0f} cycles" in str(result)


@pytest.mark.exhaustive
def test_the_kernels_of_a_program_are_tuned(database: Path) -> None:
    x, w = te.placeholder((32, 40), name="x"), te.placeholder((24, 40), name="w")
    y = topi.nn.softmax(topi.nn.dense(x, w))
    program = tecomp.compile(y, [x], constants={w: np.ones((24, 40), np.float32)})

    result = tecomp.tune(program, trials=1, database=database)

    assert len(result.kernels) == len({id(call.kernel) for call in program.kernels})
    tuned = tecomp.compile(
        y, [x], constants={w: np.ones((24, 40), np.float32)}, database=database)
    array = np.random.default_rng(0).random((32, 40), np.float32)
    np.testing.assert_allclose(tuned(array), np.full((32, 24), 1 / 24), rtol=1e-6)


@pytest.mark.exhaustive
def test_symbolic_sizes_are_measured_with_a_value(database: Path) -> None:
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    y = te.compute((n,), lambda i: te.exp(x[i]), name="y")

    with pytest.raises(CallError) as error:
        tecomp.tune(y, [x, y], trials=1, database=database)
    result = tecomp.tune(y, [x, y], trials=1, database=database, sizes={"n": 1000})

    assert diagnostic(error.value) == Diagnostic("unbound-size", name="n")
    assert len(result.kernels[0].trials) <= 1


@pytest.mark.parametrize(("call", "expected"), [
    (lambda: tecomp.tune(C, ARGS, seconds=0), Diagnostic("invalid-value", seconds=0)),
    (lambda: tecomp.tune(C, ARGS, trials=0), Diagnostic("invalid-value", trials=0)),
    (lambda: tecomp.tune(C, ARGS, search=WRONG),
     Diagnostic("invalid-value", strategies="evolution, random", search="s")),
    (lambda: tecomp.tune(WRONG), Diagnostic("invalid-type", subject="s")),
    (lambda: tecomp.tune(C), Diagnostic(
        "invalid-type", what="tune: args", value=None,
        remedy="pass the tensors in the parameter order of the kernel")),
])  # fmt: skip
def test_wrong_arguments(
    call: Callable[[], object], expected: Diagnostic, database: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TECOMP_TUNING", str(database))
    with pytest.raises(CallError) as error:
        call()

    assert diagnostic(error.value).kind == expected.kind
    assert expected.parameters.items() <= {
        **expected.parameters, **diagnostic(error.value).parameters}.items()


def test_a_database_that_is_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TECOMP_TUNING", "off")
    with pytest.raises(CallError) as error:
        tecomp.tune(C, ARGS)

    assert diagnostic(error.value) == Diagnostic("conflicting-options")


def test_a_function_must_return_a_schedule(database: Path) -> None:
    with pytest.raises(ScheduleError) as error:
        tecomp.tune(lambda: 3, ARGS, database=database)

    assert diagnostic(error.value).parameters["schedule"] == 3


@pytest.mark.exhaustive
def test_a_default_that_cannot_be_built_is_an_error(database: Path) -> None:
    def make() -> te.Schedule:
        s = te.create_schedule(C)
        s[C].bind(s[C].op.axis[0], te.thread_axis("core.x"))
        return s

    with pytest.raises(tecomp.TecompError):
        tecomp.tune(make, ARGS, database=database)


def test_the_search_proposes_each_candidate_once() -> None:
    strategies: Any = ("evolution", "random")
    for strategy in strategies:
        state = SearchState(strategy)
        state.add_knobs((Knob("a", (1, 2, 3)),
                         Knob("b", (False, True))), {})
        state.add({}, 1.0)
        found = [str(sorted(one.items())) for _ in range(20) for one in state.propose(2)]

        assert len(found) == len(set(found)) == 5, strategy


def test_evolution_finds_the_best_values_of_a_space_sooner_than_random_search() -> None:
    knobs = [Knob(name, (0, 1, 2, 3)) for name in "abcdef"]

    def best_after(strategy: Any, seed: int, trials: int) -> float:
        def cost(choices: Any) -> float:
            return float(np.exp(sum(abs(choices.get(one.name, 0) - 2) for one in knobs) / 6))

        state = SearchState(strategy, seed)
        state.add_knobs(knobs, {})
        first = cost({})
        state.add({}, 1.0)
        for _ in range(trials):
            (choices,) = state.propose(1)
            state.add(choices, cost(choices) / first)
        return min(state.costs.values())

    wins = [best_after("evolution", seed, 24) < best_after("random", seed, 24) for seed in range(8)]
    assert sum(wins) >= 6


@pytest.mark.parametrize(("cost", "text"), [(2.5, "2.5 s"), (3e-3, "3 ms"), (4e-9, "4 ns")])
def test_costs_are_printed_with_units(cost: float, text: str) -> None:
    assert cost_text(cost, "seconds") == text
