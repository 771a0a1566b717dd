"""Benchmark infrastructure: case selection, turns, comparison, ratios and the document."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError
from math import prod
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from llvmlite import binding

import tecomp
import tecomp.array as xp
from tecomp.array.statistics import counters
from tests.bench import contender, typical
from tests.bench.arrays_table import tables
from tests.bench.case import Array, BenchError, Case, Goal, NoFormError
from tests.bench.cases import drawn, functions, programs
from tests.bench.cases.programs import random_cases
from tests.bench.catalogue import CASES, FAMILIES, choose, find
from tests.bench.chains.in_numpy import IN_PLACE
from tests.bench.chains.written import CHAINS
from tests.bench.chart import chart
from tests.bench.command import command_text, listing, main
from tests.bench.contender import OURS, Contender, Peer, choose_peers
from tests.bench.machine import blas_core_types
from tests.bench.peers import ours_arrays
from tests.bench.peers.limit import instruction, loop_text
from tests.bench.programs.command import summary as programs_summary
from tests.bench.random_command import summary
from tests.bench.record import Record, Result, Row, duration, from_json, joined, misses, to_json
from tests.bench.report import document
from tests.bench.runner import Crew, crew, measure
from tests.bench.spellings.command import main as written_ways
from tests.bench.spellings.written import OPERATORS, Operator
from tests.bench.table import blas_cores, line, markdown
from tests.bench.teams import run as teams
from tests.bench.teams import scaling
from tests.bench.worker import Session, time_calls, together
from tests.numerics import assert_close

PRODUCT = Row(
    "matmul/8", "float32 8x8x8", 1000, 600, "fma", Goal(of_limit=0.9, of_best=1.0), 1,
    (
        Result("limit", minimum=4e-6, median=4e-6, runs=3),
        Result("tecomp", minimum=5e-6, median=6e-6, runs=3),
        Result("numpy", "Haswell", minimum=9e-6, median=9e-6, runs=3),
        Result("numpy", "Zen", minimum=8e-6, median=9e-6, runs=3),
        Result("torch", minimum=4e-6, median=4e-6, runs=3),
        Result("jax", note="it has no form of the case here"),
    ),
)
THREADS = Row(
    "threads/matmul-8", "float32 8x8x8, 2 threads", 1000, 600, "fma", Goal(of_one_thread=1.85), 2,
    (
        Result("tecomp", threads=2, minimum=5e-6, median=5e-6, runs=3),
        Result("tecomp", threads=1, minimum=9e-6, median=9e-6, runs=3),
    ),
)
BROKEN = Row(
    "reduce/sum", "sum", 0, 2000, "copy", Goal(), 1,
    (Result("tecomp", note="a wrong result", failed=True), Result("torch", minimum=1e-6)),
)
ROWS = (PRODUCT, THREADS, BROKEN)
TITLES = [
    "matmul 127x38x25", "5x5 convolution of 2x49x73x32 to 32 channels, depthwise",
    "sum over axis 0 of 736x15", "softmax of 7x191",
]
RECORD = Record(
    {
        "cpu": "A processor", "cores": 2, "vector_bytes": 32, "cache_bytes": [32768, 524288],
        "system": "Linux 6", "python": "3.12.0",
    },
    {"tecomp": "0.1.0", "numpy": "2.4"}, "python tests/bench/run.py matmul", "A note.", 3, 0.1, "wall", ROWS,
)


def test_records_are_joined() -> None:
    repeated = replace(PRODUCT, results=PRODUCT.results[:2])
    later = replace(
        RECORD, rows=(repeated,), versions={"torch": "2.12"},
        command="python tests/bench/run.py blur --write docs/performance.md",
    )

    both = joined([RECORD, later])

    assert joined([RECORD]) == RECORD
    assert both.rows == (repeated, THREADS, BROKEN)
    assert both.versions == {"tecomp": "0.1.0", "numpy": "2.4", "torch": "2.12"}
    assert both.command.splitlines() == [
        "python tests/bench/run.py matmul",
        "python tests/bench/run.py blur --json 1.json",
        "python tests/bench/run.py --read 0.json 1.json --write docs/performance.md",
    ]


def test_cases_are_chosen_by_name_family_and_pattern() -> None:
    assert choose([]) == list(CASES)
    assert [case.name for case in choose(["matmul/512"])] == ["matmul/512"]
    assert {case.family for case in choose(["blur", "matmul/51?"])} == {"blur", "matmul"}
    assert len({case.name for case in CASES}) == len(CASES)
    assert find("blur/3x3") in CASES


def test_random_shapes_are_always_the_same() -> None:
    assert len(drawn.CASES) == len({case.name for case in drawn.CASES}) == 160
    assert all(min(shape) >= 1 for case in drawn.CASES for shape in case.shapes)
    assert find("drawn/matmul-0") is drawn.CASES[0]
    assert [case.title for case in drawn.CASES[::40]] == TITLES
    assert not {case.name for case in drawn.CASES} & {case.name for case in CASES}


def test_the_summary_of_random_shapes() -> None:
    other = replace(PRODUCT, case="drawn/b", title="another", results=(
        Result("tecomp", minimum=1e-6), Result("torch", minimum=9e-6)))
    failed = replace(PRODUCT, case="drawn/c", results=(
        Result("tecomp", note="a wrong result", failed=True), Result("torch", minimum=1e-6)))
    assert summary([other, PRODUCT, failed]) == (
        "drawn/c: tecomp: a wrong result\n"
        "2 cases: 2.68 times as fast as torch at the geometric mean, 0.80 at least; the worst:\n"
        "  0.80x  matmul/8: float32 8x8x8\n"
        "  9.00x  drawn/b: another"
    )


def test_random_programs_are_always_the_same() -> None:
    case = find("random/gather-3")

    assert case == replace(find("random/gather-3"), oracle=case.oracle, make_inputs=case.make_inputs)
    assert all((a == b).all() for a, b in zip(case.inputs(), case.inputs(), strict=True))
    assert [x.name for x in random_cases(7, 17)][::16] == ["random/perceptron-7", "random/attention-8"]


@pytest.mark.parametrize("name", ["random/gather", "random/sorting-3", "random/scan-x"])
def test_an_unknown_program_is_refused(name: str) -> None:
    with pytest.raises(BenchError) as error:
        find(name)

    assert str(error.value) == (
        f"bench: no program is called {name!r}; say random/kind-seed with a kind of "
        "perceptron, attention, norm, convolution, distance, stencil, reduction, gather, scan, "
        "softmax, broadcast, moves, mask, mixed, contraction"
    )


def test_the_summary_of_random_programs() -> None:
    assert programs_summary([PRODUCT, BROKEN]) == (
        "reduce/sum: tecomp: a wrong result\n"
        "1 programs: 0.80 times as fast as the best peer at the geometric mean, 0.80 at least; the "
        "worst:\n"
        "  0.80x  matmul/8: float32 8x8x8"
    )


def test_networks_have_the_sizes_that_people_know() -> None:
    sizes = {case.name: sum(prod(shape) for shape in case.shapes) for case in programs.CASES}

    assert sizes["programs/mlp-1"] == 784 + 784 * 512 + 512 * 512 + 512 * 10 + 2 * 512 + 10
    assert 23_000_000 < sizes["programs/resnet-50"] - 224 * 224 * 3 < 24_000_000


def test_operator_variants_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    written_ways(["pool", "--rounds", "1", "--time", "0"])

    head, rule, *rows = capsys.readouterr().out.splitlines()
    assert (head, rule) == ("| operator | written | shortest | median |", "| --- | --- | ---: | ---: |")
    assert [row.split(" | ")[1] for row in rows] == [
        "scaled in the sum", "divided after", "written out"]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("operator", [x for x in OPERATORS if x.name.startswith(("norm", "softm"))])
def test_operator_variants_agree(operator: Operator) -> None:
    results = []
    for way in (operator.define, *operator.ways.values()):
        inputs, output = way()
        numbers = np.random.default_rng(0)
        arrays = [numbers.standard_normal(x.shape, np.float32) for x in inputs]
        results.append(np.empty(output.shape, np.float32))
        tecomp.build(output, [*inputs, output])(*arrays, results[-1])

    for other in results[1:]:
        assert_close(other, results[0], rtol=1e-4, atol=1e-4)


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["matmull"]) == 2
    assert capsys.readouterr().err == (
        f"bench: no case is called 'matmull'; families are {', '.join(FAMILIES)}, and --list shows "
        "what they hold\n"
    )


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(BenchError) as error:
        choose_peers(["numpy", "mkl"])

    assert str(error.value) == (
        "bench: no peer is called 'mkl'; peers are numpy, numexpr, torch, torch.compile, jax, numba, "
        "halide, tvm, onnxruntime"
    )


def test_a_peer_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package == "torch":
            raise PackageNotFoundError(package)
        return "1"

    monkeypatch.setattr(contender, "version", version)

    assert "torch" not in [peer.name for peer in choose_peers(None)]
    with pytest.raises(BenchError) as error:
        choose_peers(["torch"])
    assert str(error.value) == (
        "bench: torch needs the package torch, which is not installed; run "
        "`pip install -e '.[bench]'`"
    )


def test_more_threads_than_cores_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})

    with pytest.raises(BenchError) as error, crew([], 3):
        pass

    assert str(error.value) == (
        "bench: --threads 3 needs as many cores, and this process may use 2; ask for fewer, or "
        "start it without taskset"
    )


def test_the_time_of_several_threads_is_not_added_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "--threads", "2", "--clock", "cpu", "--peers"]) == 2
    assert capsys.readouterr().err == (
        "bench: --clock cpu adds up the time of all threads; leave it out, or ask for one thread\n"
    )


def test_a_case_with_threads_that_cannot_be_measured_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})

    def notes(clock: str) -> list[str]:
        row = measure(find("threads/matmul-2048"), Crew([], 1, tmp_path, clock), 1, 0.01)
        return [result.note for result in row.results]

    assert notes("wall") == ["it needs 2 cores, and this process may use 1"]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    assert notes("cpu") == ["the processor's time adds up that of all threads"]


@pytest.mark.parametrize("arguments", [["--threads", "0"], ["--rounds", "-1"], ["--rounds", "x"]])
def test_bad_numbers_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)

    assert error.value.code == 2


def test_the_list_names_every_case_and_peer() -> None:
    text = listing(CASES)

    assert all(f"{case.name} " in text and case.title in text for case in CASES)
    assert all(name in text for name in ("peers: numpy, ", "torch.compile", "halide", "tvm"))


def test_the_command_documented_with_the_tables() -> None:
    inputs = ["rows", "--json", "/tmp/a b.json", "--rounds", "3", "--note=x", "--write", "p.md"]

    assert command_text(inputs) == (
        "python tests/bench/run.py rows --rounds 3 --write docs/performance.md"
    )


def test_a_file_that_is_no_record_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.json"
    path.write_text("{}", encoding="utf-8")

    assert main(["--read", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"bench: {path} holds no record of a run; pass a file that --json wrote\n"
    )


def test_ratios() -> None:
    assert PRODUCT.rate() == pytest.approx(2e8)
    assert PRODUCT.of_limit() == pytest.approx(0.8)
    assert PRODUCT.against("numpy") == pytest.approx(1.6)
    assert PRODUCT.against("jax") is None
    assert PRODUCT.best_peer() == ("torch", 4e-6)
    assert THREADS.of_one_thread() == pytest.approx(1.8)
    assert THREADS.of_best() is None
    assert BROKEN.rate() is None


def test_misses() -> None:
    slow = replace(PRODUCT, case="matmul/7", goal=Goal(
        of_best=2.0, peers=("numpy", "jax"), seconds=1e-6, of_case=("matmul/8", 2.0),
        of_peers=(("torch", 1.0), ("numpy", 1.0)),
    ))

    assert misses(PRODUCT, ROWS) == [
        "0.80 of the limit, target 0.9", "0.80 x the best peer, target 1",
    ]
    assert misses(THREADS, ROWS) == ["1.80 x one thread, target 1.85"]
    assert misses(BROKEN, ROWS) == []
    assert misses(slow, ROWS) == [
        "1.60 x the best of numpy, jax, target 2", "0.80 x torch, target 1", "5 µs, target 1 µs",
        "1.00 of the rate of matmul/8, target 2",
    ]


def test_durations() -> None:
    assert [duration(t) for t in (2.5, 0.0123, 4.56e-5, 2.9e-7)] == [
        "2.5 s", "12.3 ms", "45.6 µs", "0.29 µs",
    ]


def test_the_table() -> None:
    assert markdown(ROWS) == """\
| case | tecomp | median | rate | of limit | of one thread | numpy | torch |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| float32 8x8x8 ▾ | 5 µs | 6 µs | 0.2 GFLOP/s | 0.80 | - | 1.60x | **0.80x** |
| float32 8x8x8, 2 threads ▾ | 5 µs | 5 µs | 0.2 GFLOP/s | - | 1.80x | - | - |
| sum | - | - | - | - | - | - | - |"""
    assert blas_cores(ROWS) == "Zen in 1"


def test_a_line_for_the_terminal() -> None:
    assert line(PRODUCT, ROWS, ["numpy"]) == (
        "matmul/8                        5 µs   0.2 GFLOP/s      0.80         1.60x\n"
        "    missed: 0.80 of the limit, target 0.9\n"
        "    missed: 0.80 x the best peer, target 1"
    )
    assert line(BROKEN, ROWS, []).endswith("\n    tecomp: a wrong result")


def test_the_document_follows_from_the_file() -> None:
    reloaded = from_json(json.loads(json.dumps(to_json(RECORD))))

    assert reloaded == RECORD
    text = document(reloaded, "performance.svg")
    assert text.startswith("# Performance\n")
    assert "A processor, 2 cores, vectors of 256 bits, caches of 32 KB / 512 KB; Linux 6" in text
    assert "```bash\npython tests/bench/run.py matmul\n```\n\n**A note.**" in text
    assert "- sum: not measured with tecomp: a wrong result." in text
    assert text.count("\n| case |") == 3


def test_reading_a_record_writes_the_same_documents(tmp_path: Path) -> None:
    source, page = tmp_path / "record.json", tmp_path / "performance.md"
    source.write_text(json.dumps(to_json(RECORD)), encoding="utf-8")

    # One of tecomp's results was wrong, so the exit status is 1.
    assert main(["--read", str(source), "--write", str(page)]) == 1
    assert page.read_text(encoding="utf-8") == document(RECORD, "performance.svg")
    assert (tmp_path / "performance.svg").read_text(encoding="utf-8") == chart(ROWS)

    assert main(["--read", str(source), "--write", str(page), "--note", "Another."]) == 1
    assert page.read_text(encoding="utf-8") == document(
        replace(RECORD, note="Another."), "performance.svg")


def test_the_figure_of_teams_matches_the_model() -> None:
    drawn = Path(__file__).parents[1] / "docs" / "teams-scaling.svg"

    assert drawn.read_text(encoding="utf-8") == scaling.picture()


def test_the_chart_is_a_picture_with_a_bar_for_each_ratio() -> None:
    far = replace(PRODUCT, results=(*PRODUCT.results[:2], Result("torch", minimum=1.0)))
    root = ElementTree.fromstring(chart([PRODUCT, far]))

    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"numpy", "torch", "matmul/8", "1.60", "0.80", "200000.00"} <= set(texts)
    widths = [float(r.get("width", 0)) for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert max(widths) <= float(root.get("width", 0))
    assert min(widths) > 0


def test_short_calls_are_timed_together_and_long_ones_alone() -> None:
    turns: list[int] = []
    calls: list[Callable[[], object]] = [partial(turns.append, k) for k in range(3)]

    short = time_calls(calls, 2_000_000)

    assert all(t > 0 for t in short)
    assert turns[:6] == [0, 1, 2, 0, 1, 2]
    assert len(turns) > 20 * len(short)


def session(makers: dict[str, Any]) -> Session:
    return Session(makers, lambda _, result: np.asarray(result))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two inputs of value 1 and the expected value 2."""
    for name, value in (("0", 1), ("1", 1), ("expected", 2)):
        np.save(tmp_path / f"{name}.npy", np.full(1, value, np.float32))
    return tmp_path


@pytest.mark.exhaustive
def test_results_are_compared_before_timing(folder: Path) -> None:
    case, out = find("call/three-arrays"), np.zeros(1, np.float32)
    right = session({"add": lambda _: lambda a, b: lambda: a + b})
    wrong = session({"add": lambda _: lambda a, b: lambda: a - b})
    written = session({"add": lambda _: lambda a, b: (lambda: np.add(a, b, out=out) and None, out)})

    assert right.prepare(case, folder, 2) == {"error": 0.0}
    assert wrong.prepare(case, folder, 2) == {"error": 1.0}
    assert written.prepare(case, folder, 1) == {"error": 0.0}
    assert len(right.time(0, "cpu")["times"]) == 1


@pytest.mark.exhaustive
def test_a_peer_may_have_no_form_of_a_case(folder: Path) -> None:
    with pytest.raises(NoFormError) as error:
        session({}).prepare(find("call/three-arrays"), folder, 1)

    assert str(error.value) == "it has no form of the case here"


def test_tolerances() -> None:
    case = find("matmul/1024")
    exact = np.full((2, 2), 100.0)

    assert case.tolerance == pytest.approx(4 * 33 * 2**-24)
    assert find("matmul/int8").tolerance == 0.0
    assert case.error(exact.astype(np.float32), exact) == 0.0
    assert case.error(exact + np.diag([0, 1]), exact) == pytest.approx(0.01)
    assert np.isnan(case.error(np.full((2, 2), np.nan), exact))
    with pytest.raises(BenchError) as error:
        case.error(exact[0], exact)
    assert str(error.value) == (
        "matmul/1024: the result has shape (2,) where (2, 2) is due"
    )


@pytest.mark.parametrize(("stride", "groups", "depth"), [(1, 1, 6), (2, 1, 6), (1, 2, 3), (2, 6, 1)])
def test_the_oracle_of_convolutions(stride: int, groups: int, depth: int) -> None:
    random = np.random.default_rng(0)
    x, w = random.standard_normal((1, 7, 8, 6)), random.standard_normal((3, 3, depth, 12))
    w = w[..., :6] if depth == 1 else w
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    per_group = w.shape[-1] // groups

    def value(_: int, i: int, j: int, k: int) -> float:
        seen = padded[0, i * stride : i * stride + 3, j * stride : j * stride + 3]
        first = k // per_group * depth
        return float((seen[..., first : first + depth] * w[..., k]).sum())

    found = functions.conv2d(x, w, stride=stride, padding=1, groups=groups)

    expected = np.array([value(*place) for place in np.ndindex(*found.shape)]).reshape(found.shape)
    assert found.shape == (1, -(-7 // stride), -(-8 // stride), w.shape[-1])
    assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_the_oracles_of_rows() -> None:
    x = np.random.default_rng(0).standard_normal((3, 50))
    normal = functions.layer_norm(x, np.ones(50), np.zeros(50))

    assert_close(functions.softmax(x).sum(axis=-1), 1.0)
    assert_close(normal.mean(axis=-1), 0.0, atol=1e-12)
    assert_close(normal.std(axis=-1), 1.0, atol=1e-4)
    assert_close((functions.rms_norm(x, np.ones(50)) ** 2).mean(axis=-1), 1.0, atol=1e-4)
    assert_close(functions.gelu(x) + functions.gelu(-x) * -1, x, atol=1e-12)
    same = np.ones((1, 4, 2))
    assert_close(functions.attention(same, same, same), same)
    assert_close(functions.blur(np.ones((5, 6))), np.ones((3, 4)))


def test_core_types_follow_from_the_instruction_sets() -> None:
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}

    assert blas_core_types(frozenset({"avx", "avx2", "fma"})) == ["Sandybridge", "Haswell", "Zen"]
    assert blas_core_types(frozenset({"avx", *wide})) == ["Sandybridge", "SkylakeX"]
    assert blas_core_types(frozenset()) == []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize(
    "have",
    [set(), {"avx2"}, {"avx2", "avx_vnni"}, {"avx2", "avx512f", "avx512_bf16", "avx512_vnni"}],
    ids=["none", "avx2", "avx-vnni", "avx512"],
)
def test_the_loop_that_measures_the_peak_is_valid(dtype: str, have: set[str]) -> None:
    step = instruction(dtype, frozenset(have))
    module = binding.parse_assembly(loop_text(step, 4))
    module.verify()

    assert [f.name for f in module.functions if not f.is_declaration] == ["peak"]
    assert step.operations >= 8


def test_a_process_that_ends_is_reported() -> None:
    nobody = Contender(Peer("nobody", "nobody", "numpy"), sorted(os.sched_getaffinity(0))[:1])

    assert nobody.ask(seconds=1) == {
        "skipped": "its process ended with status 1", "failed": True,
    }
    nobody.close()


@pytest.mark.exhaustive
def test_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "record.json"

    status = main(
        ["call", "--peers", "numpy", "--rounds", "2", "--time", "0.005", "--json", str(file)]
    )

    record = from_json(json.loads(file.read_text(encoding="utf-8")))
    (row,) = record.rows
    assert status == 0
    assert [result.peer for result in row.results] == ["tecomp", "numpy"]
    assert row.ours is not None
    assert 1e-8 < row.ours < 1e-3
    assert (row.against("numpy") or 0) > 0
    assert {"tecomp", "numpy"} == set(record.versions)
    assert "call/three-arrays" in capsys.readouterr().out


@pytest.mark.exhaustive
def test_a_wrong_result_is_not_timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def expected(self: Case, inputs: list[Array]) -> Array:
        return inputs[0] + inputs[1] + 1

    monkeypatch.setattr(Case, "expected", expected)
    with crew([], 1) as team:
        row = measure(find("call/three-arrays"), team, 1, 0.001)

    (result,) = row.of(OURS.name)
    assert result.failed
    assert result.minimum is None
    assert result.note.startswith("a wrong result: off by ")
    assert result.note.endswith(" of the largest value, where 4.8e-07 is allowed")


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", CHAINS)
def test_chain_variants_agree(name: str) -> None:
    case = find(f"array/{name}-1e2")
    inputs = case.inputs()
    expected = case.expected(inputs)

    for bound in (
        IN_PLACE[name](*inputs), ours_arrays.chain(case)(*inputs),
        ours_arrays.chain(find(f"{case.name}-jit"))(*inputs),
    ):
        assert callable(bound)
        for _ in range(2):  # the second call reuses the temporary memory
            assert case.error(together(case, bound()), expected) <= case.tolerance


def test_recording_cost_is_measured_with_and_without_kernels() -> None:
    for name, calls in (("record", 0), ("kernel", 3)):
        case = find(f"array/{name}")
        bound = ours_arrays.one_operation(case)(*case.inputs())
        assert callable(bound)
        bound()
        before = counters.called
        for _ in range(3):
            bound()
        assert counters.called - before == calls


def test_array_tables_separate_fixed_costs() -> None:
    chain = Row("array/gelu-4e6", "gelu, 4e6", 0, 0, "none", Goal(of_peers=(("numpy", 2.0),)), 1, (
        Result("tecomp", minimum=0.002, median=0.003), Result("numpy", minimum=0.003, median=0.003)))
    once = Row("array/import", "import", 0, 0, "none", Goal(seconds=0.3), 1, (
        Result("tecomp", minimum=0.2, median=0.25),))

    assert tables([once, chain]) == (
        "| case | tecomp | median | numpy |\n| --- | ---: | ---: | ---: |\n"
        "| gelu, 4e6 ▾ | 2 ms | 3 ms | **1.50x** |\n\n"
        "| case | tecomp | median |\n| --- | ---: | ---: |\n| import | 200 ms | 250 ms |\n\n"
        "* gelu, 4e6: 1.50 x numpy, target 2."
    )


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("case", typical.CASES, ids=lambda case: case.name)
def test_typical_programs_match_numpy(case: typical.Case) -> None:
    small = case.arrays(40)
    assert_close(
        np.asarray(case.program(xp, *map(xp.asarray, small))), case.program(np, *small),
        rtol=1e-4, atol=1e-4)


def test_cases_on_processes_are_called_as_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[Any] = []

    def tell(*source: Any) -> int:
        requested.append(source)
        return 0

    monkeypatch.setattr(teams, "tell", tell)

    assert main(["dist", "--threads", "2", "--peers"]) == 0
    assert main(["dist", "--threads", "4", "--peers", "torch", "numpy"]) == 0
    assert requested == [(2, sys.executable, []), (4, sys.executable, ["dtensor"])]
