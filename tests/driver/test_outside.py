"""Kernels that call external functions: arguments, exceptions, and the choice of the function."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen.llvm import code_cache as cached_code
from tecomp.compute import LOOP_KINDS
from tecomp.driver import build_cache
from tecomp.errors import CallError, DefinitionError
from tecomp.ir import RAISED, SCALARS, integer_range
from tecomp.lowering import pipeline
from tecomp.operations import element_type
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

NAME = "test.driver.function"
N = 24
A = te.placeholder((N, 8), name="A")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Remove the functions that a test registers."""
    yield
    for name in tecomp.list_global_func_names():
        if name.startswith("test.driver."):
            tecomp.remove_global_func(name)


def called(name: str, *rest: Any) -> te.Tensor:
    """Build a stage that an external function computes from A and further arguments."""
    result: te.Tensor = te.extern(
        (N, 8), A, lambda ins, outs: te.call_packed(name, ins[0], *rest, outs[0]), name="C")
    return result


def by_rows(name: str, kind: str = "serial") -> te.Tensor:
    """Build a stage that an external function computes row by row, through a heap buffer."""

    def rows(ins: Any, outs: Any) -> Any:
        def row(i: Any) -> Any:
            def through(room: Any) -> Any:
                take = te.for_range(0, 8, lambda j: room.store((0, j), ins[0][i, j] + 1.0))
                give = te.for_range(0, 8, lambda j: outs[0].store((i, j), room[0, j]))
                return te.stmt_seq(take, te.call_packed(name, i, room), give)

            return te.allocate((2000, 8), "float32", through)

        return te.for_range(0, N, row, kind=kind)

    result: te.Tensor = te.extern((N, 8), A, rows, name="C")
    return result


def build(C: te.Tensor, function: Any = None) -> Any:
    """Build a kernel of C; register `function` first, if there is one."""
    if function is not None:
        tecomp.register_func(NAME, function, override=True)
    return tecomp.build(te.create_schedule(C), [A, C])


a = np.random.default_rng(0).random((N, 8), "float32")


@pytest.mark.parametrize("dtype", SCALARS)
def test_numbers_of_every_type(dtype: str) -> None:
    X = te.placeholder((2,), dtype, name="X")
    Y = te.extern((2,), X, lambda ins, outs: te.stmt_seq(
        te.call_packed(NAME, ins[0][0], ins[0][1], outs[0])), name="Y")
    seen: list[Any] = []

    def note(x: Any, y: Any, out: Any) -> None:
        seen.append((x, y))
        out[...] = 0

    tecomp.register_func(NAME, note, override=True)
    kernel = tecomp.build(te.create_schedule(Y), [X, Y])
    kind = X.dtype.numpy
    values = [True, False] if dtype == "bool" else (
        [*integer_range(X.dtype)] if X.dtype.is_integer else [element_type(dtype).lowest, 0.5])
    x = np.array(values, kind)
    kernel(x, np.zeros_like(x))

    assert seen == [tuple(values)]
    assert {type(value) for value in seen[0]} == {type(values[0])} or X.dtype.is_integer


def test_an_exception_propagates_unchanged() -> None:
    error = ArithmeticError("no result")
    before = set(RAISED._exceptions)

    def fails(x: Any, y: Any) -> None:
        raise error

    kernel = build(called(NAME), fails)
    c = np.zeros_like(a)
    for _ in range(3):
        with pytest.raises(ArithmeticError) as caught:
            kernel(a, c)
        assert caught.value is error
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert names[-1] == "fails"
        error.__traceback__ = None
    assert set(RAISED._exceptions) == before


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_base_exceptions_propagate(kind: type[BaseException]) -> None:
    def fails(x: Any, y: Any) -> None:
        raise kind

    with pytest.raises(kind):
        build(called(NAME), fails)(a, np.zeros_like(a))


@pytest.mark.parametrize("kind", [kind for kind in LOOP_KINDS if not kind.startswith("vector")])
def test_the_kernel_stops_and_the_next_call_is_whole(kind: str) -> None:
    seen: list[int] = []
    bad = [5]

    def check(i: int, room: Any) -> None:
        seen.append(i)
        if i in bad:
            raise LookupError(i)
        room[0] *= 2

    kernel = build(by_rows(NAME, kind), check)
    c = np.zeros_like(a)
    for _ in range(50):
        with pytest.raises(LookupError):
            kernel(a, c)
    if kind != "parallel":
        assert seen == [0, 1, 2, 3, 4, 5] * 50
    seen.clear()
    bad.clear()
    kernel(a, c)

    assert sorted(seen) == list(range(N))
    assert_close(c, 2 * (a + 1))


def test_every_thread_may_fail() -> None:
    def fails(i: int, room: Any) -> None:
        raise LookupError(i)

    kernel = build(by_rows(NAME, "parallel"), fails)
    for _ in range(400):
        with pytest.raises(LookupError):
            kernel(a, np.zeros_like(a))
    assert len(RAISED._exceptions) <= 256


def test_functions_may_call_kernels_and_kernels_run_in_threads() -> None:
    X = te.placeholder((8,), name="X")
    inner = te.compute((8,), lambda j: X[j] * 3.0, name="inner")
    s = te.create_schedule(inner)
    s[inner].parallel(inner.op.axis[0])
    triple = tecomp.build(s, [X, inner])

    def through(i: int, room: Any) -> None:
        result = np.empty(8, "float32")
        triple(np.array(room[0]), result)
        room[0] = result

    kernel = build(by_rows(NAME, "parallel"), through)
    results = [np.zeros_like(a) for _ in range(4)]
    threads = [threading.Thread(target=kernel, args=(a, c)) for c in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    for c in results:
        assert_close(c, 3 * (a + 1), rtol=1e-6)


def test_inputs_cannot_be_written_to() -> None:
    def writes(x: Any, y: Any) -> None:
        x[0] = 1

    kernel = build(called(NAME), writes)
    with pytest.raises(ValueError, match="read-only"):
        kernel(a, np.zeros_like(a))


def test_arrays_answer_to_words_of_tvm() -> None:
    def words(x: Any, y: Any) -> None:
        assert x.numpy().flags.writeable
        assert type(x.asnumpy()) is np.ndarray
        assert x.copyto(y) is y
        y.copyfrom(x.numpy() + 1)

    c = np.zeros_like(a)
    build(called(NAME), words)(a, c)
    np.testing.assert_array_equal(c, a + 1)


def refused(C: te.Tensor) -> Diagnostic:
    with pytest.raises(DefinitionError) as error:
        build(C)
    return diagnostic(error.value)


def test_functions_are_there_when_a_kernel_is_built() -> None:
    tecomp.register_func("test.driver.known", print, override=True)

    assert refused(called("test.driver.knwon")) == (
        Diagnostic(
            "external-function", where="main",
            remedy="no function is registered as 'test.driver.knwon'; write 'test.driver.known' if that is meant, or call tecomp.register_func('test.driver.knwon', f) first",
        )
    )
    tecomp.register_func("test.driver.two", lambda x, y, z: None, override=True)
    later = called("test.driver.later")
    tecomp.register_func("test.driver.later", lambda x, y, z: None, override=True)
    assert refused(later) == (
        Diagnostic(
            "external-function", where="main", name="test.driver.later", plain="(x, y, z)",
            count=2, plural="s",
        )
    )


@pytest.mark.parametrize(("offset", "extent", "index"), [
    (0, 8 * N + 1, 8 * N), (8 * N - 3, 4, 8 * N), (-2, 4, -2), (8 * N - 4, 4, None), (500, 0, None),
])
def test_arrays_are_checked_where_indices_are(offset: int, extent: int, index: int | None) -> None:
    """Bounds of an array are checked at the call, unless they are known at the definition."""
    seen: list[Any] = []
    first, count = te.var("first"), te.var("count")
    tecomp.register_func(NAME, lambda x, y: seen.append(x.shape), override=True)
    C = te.extern((N, 8), A, lambda ins, outs: te.call_packed(
        NAME, ins[0].access_ptr("r", offset=first, extent=count), outs[0]), name="C")
    kernel = tecomp.build(te.create_schedule(C), [first, count, A, C], check_bounds=True)
    if index is None:
        kernel(offset, extent, a, np.zeros_like(a))
        assert seen == [(extent,)]
        return
    with pytest.raises(CallError) as error:
        kernel(offset, extent, a, np.zeros_like(a))
    assert diagnostic(error.value) == Diagnostic("out-of-bounds", value=index, text="axis 0 of A[192]")
    assert not seen


def test_index_checks_precede_the_access() -> None:
    Place = te.placeholder((N,), "int32", name="Place")
    G = te.compute((N, 8), lambda i, j: A[Place[i], j], name="G")
    C = te.extern((N, 8), G, lambda ins, outs: te.call_packed(NAME, ins[0], outs[0]), name="C")
    seen: list[int] = []
    tecomp.register_func(NAME, lambda x, y: seen.append(1), override=True)
    kernel = tecomp.build(te.create_schedule(C), [A, Place, C])

    with pytest.raises(CallError) as error:
        kernel(a, np.full(N, N, "int32"), np.zeros_like(a))
    line = test_index_checks_precede_the_access.__code__.co_firstlineno + 2
    assert diagnostic(error.value) == Diagnostic(
        "out-of-bounds", value=N, text=f"{__file__}:{line}: A[Place[i], j] (axis 0 of A[24, 8])",
    )
    assert not seen


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Store kernels on disk, and return a function that clears the caches of the process."""
    monkeypatch.setenv("TECOMP_CACHE", "on")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path / "kept"))

    def forget() -> None:
        build_cache.COMPILED.clear()
        cached_code.LINKED.clear()

    forget()
    return forget


def test_registered_functions_are_resolved_at_each_build(store: Callable[[], None], monkeypatch: Any) -> None:
    c = np.zeros_like(a)
    first = build(called(NAME), lambda x, y: np.copyto(y, x + 1))
    first(a, c)
    np.testing.assert_array_equal(c, a + 1)
    # From here on nothing is lowered: the code is found, with another function of that name.
    monkeypatch.setattr(pipeline, "lower_all", None)
    second = build(called(NAME), lambda x, y: np.copyto(y, x + 2))
    second(a, c)
    np.testing.assert_array_equal(c, a + 2)
    first(a, c)
    np.testing.assert_array_equal(c, a + 1)
    store()
    build(called(NAME), lambda x, y: np.copyto(y, x + 3))(a, c)
    np.testing.assert_array_equal(c, a + 3)
    monkeypatch.undo()


PROGRAM = '''
import sys, numpy as np, tecomp
from tecomp import te
from tecomp.codegen.llvm import code_cache as cached
if sys.argv[1:] != ["first"]:
    cached.object_code = None
if sys.argv[1:] != ["none"]:
    tecomp.register_func("doubled", lambda x, y: np.multiply(x, 2, out=y))
A = te.placeholder((64,), name="A")
B = te.extern((64,), A, lambda ins, outs: te.call_packed("doubled", ins[0], outs[0]), name="B")
try:
    kernel = tecomp.build(te.create_schedule(B), [A, B])
    a, b = np.linspace(0, 1, 64, dtype="float32"), np.zeros(64, "float32")
    kernel(a, b)
    np.testing.assert_array_equal(b, 2 * a)
except tecomp.DefinitionError as error:
    print(error.message, end="", file=sys.stderr)
'''


@pytest.mark.exhaustive
def test_other_processes_have_functions_of_their_own(store: Callable[[], None]) -> None:
    def run(word: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, word], stderr=subprocess.PIPE, text=True, check=False)
        return done.stderr

    assert run("first") == ""
    assert run("again") == ""
    assert run("none") == (
        "main: no function is registered as 'doubled'; call tecomp.register_func('doubled', f) "
        "first"
    )


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", ["cpu", "stick128"])
def test_reports_list_unknown_costs(target: str) -> None:
    C = called("test.driver.matmul")
    D = te.compute((N, 8), lambda i, j: C[i, j] + 1.0, name="D")
    tecomp.register_func("test.driver.matmul", lambda x, y: None)
    report = tecomp.build(te.create_schedule(D), [A, D], target).report()

    assert report.calls == ("test.driver.matmul",)
    assert str(report).endswith(
        "\n\nnot counted (unknown cost): test.driver.matmul")
    assert report.operations == {"add float32": N * 8}
    # Each element of the function's arrays counts once, and each element of the next stage.
    assert [t.bytes for t in report.traffic] == [2 * 4 * N * 8] * 2
    text = str(tecomp.compile(D, [A], target=target).report())
    assert "\nnot counted (unknown cost): test.driver.matmul\n" in text


def test_reports_count_known_costs() -> None:
    n = te.var("n")
    X, Y = te.placeholder((n, 8), name="X"), te.placeholder((8, 16), name="Y")
    Z = te.extern((n, 16), [X, Y], lambda ins, outs: te.call_packed(
        "test.driver.matmul", *ins, *outs, multiply_adds=n * 8 * 16), name="Z")
    tecomp.register_func("test.driver.matmul", lambda x, y, z: None)
    kernel = tecomp.build(te.create_schedule(Z), [X, Y, Z])
    report = kernel.report(n=10)

    assert report.calls == ()
    assert report.operations == {"add float32": 1280, "mul float32": 1280}
    assert "multiply_adds=n * 128)" in str(kernel.lowered.final)
    assert tecomp.parse(str(kernel.lowered.final)) == kernel.lowered.final


C_CODE = """
#include <stdbool.h>
#include <stdint.h>
void scale(float a, const float *x, float *y, int32_t n)
{ for (int32_t i = 0; i < n; i++) y[i] = a * x[i]; }
bool odd(int8_t x) { return x & 1; }
uint16_t half(uint8_t x) { return x / 2 + 300; }
int8_t minus(int16_t x, bool really) { return really ? -x : x; }
void kinds(int8_t a, bool b, double c, int16_t d, uint64_t e, float f, uint8_t g, double *out)
{ out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f; out[6] = g; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a shared library in C."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("library")
    (folder / "code.c").write_text(C_CODE)
    result = folder / "code.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", result, folder / "code.c"], check=True)
    return result


def scale_of(library: Path) -> tecomp.CFunction:
    return tecomp.CFunction(library, "scale", ["float32", "const float32*", "float32*", "int32"])


@pytest.mark.parametrize("mark", ["unroll", "vectorize"])
def test_numbers_that_c_gives(library: Path, mark: str) -> None:
    for symbol, selected, source in (
        ("odd", ["int8"], "bool"), ("half", ["uint8"], "uint16"), ("minus", ["int16", "bool"], "int8"),
    ):
        tecomp.register_func(
            f"test.driver.{symbol}", tecomp.CFunction(str(library), symbol, selected, source))
    X = te.placeholder((9,), "int8", name="X")

    def value(dtype: str, symbol: str, *args: Any) -> Any:
        return te.call_pure_extern(dtype, f"test.driver.{symbol}", *args)

    Y = te.compute((9,), lambda i: te.if_then_else(
        value("bool", "odd", X[i]), value("uint16", "half", X[i].astype("uint8")).astype("int32"),
        value("int8", "minus", X[i].astype("int16"), X[i] > 0).astype("int32")), name="Y")
    s = te.create_schedule(Y)
    getattr(s[Y], mark)(Y.op.axis[0])
    x = np.array([-128, -3, -2, -1, 0, 1, 2, 3, 127], "int8")
    y, repeated = np.zeros(9, "int32"), np.zeros(9, "int32")
    tecomp.build(s, [X, Y])(x, y)
    tecomp.evaluate(tecomp.lower(s, [X, Y]), [x, repeated])
    halves = x.view("uint8").astype("int32") // 2 + 300
    expected = np.where(x % 2 == 1, halves, np.where(x > 0, -1, 1) * x.astype("int32"))

    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(repeated, expected)


def test_numbers_of_c(library: Path) -> None:
    tecomp.register_func("test.driver.kinds", tecomp.CFunction(
        str(library), "kinds",
        ["int8", "bool", "float64", "int16", "uint64", "float32", "uint8", "float64*"],
    ), override=True)
    E = te.extern((7,), [], lambda ins, outs: te.call_extern(
        "void", "test.driver.kinds", -3, True, 1e300, -300, 2**64 - 2**11, 0.5, 255, outs[0],
    ), dtype="float64", name="E")
    e = np.zeros(7)
    tecomp.build(te.create_schedule(E), [E])(e)

    np.testing.assert_array_equal(e, [-3, 1, 1e300, -300, 2**64 - 2**11, 0.5, 255])


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", ["cpu", "stick128", "tensix_wh"])
def test_c_numpy_and_python_in_one_kernel(library: Path, target: str) -> None:
    """A C function for each row in parallel, a product by NumPy's BLAS, and a Python function."""
    tecomp.register_func("test.driver.scale", scale_of(library), override=True)
    tecomp.register_func("test.driver.gemm", lambda x, y, z: np.matmul(x, y, out=z), override=True)
    seen: list[float] = []

    def note(x: Any, y: Any) -> None:
        seen.append(float(x.sum()))
        y[...] = np.sort(x)

    tecomp.register_func("test.driver.note", note, override=True)
    B = te.placeholder((8, 16), name="B")

    def steps(ins: Any, outs: Any) -> Any:
        (x, y), (out,) = ins, outs

        def inside(room: Any) -> Any:
            def row(i: Any) -> Any:
                return te.call_extern(
                    "void", "test.driver.scale", 2.0, x.access_ptr("r", offset=i * 8),
                    room.access_ptr("w", offset=i * 8), 8,
                )

            def product(z: Any) -> Any:
                return te.stmt_seq(
                    te.call_packed("test.driver.gemm", room, y, z),
                    te.call_packed("test.driver.note", z, out),
                )

            return te.stmt_seq(
                te.for_range(0, N, row, kind="parallel"),
                te.allocate((N, 16), "float32", product, scope="global"),
            )

        return te.allocate((N, 8), "float32", inside, scope="global")

    P = te.compute((N, 8), lambda i, j: A[i, j] + 1.0, name="P")
    C = te.extern((N, 16), [P, B], steps, name="C")
    D = te.compute((N, 16), lambda i, j: C[i, j] - 1.0, name="D")
    b = np.random.default_rng(1).random((8, 16), "float32")
    program = tecomp.compile(D, [A, B], target=target)
    expected = (2 * (a + 1)) @ b

    assert_close(program(a, b), np.sort(expected) - 1, rtol=1e-5)
    assert_close(seen, [expected.sum()], rtol=1e-5)


def test_kernels_are_pickled_and_find_their_functions() -> None:
    kernel = build(called(NAME), lambda x, y: np.copyto(y, x + 1))
    text = pickle.dumps(kernel)
    tecomp.register_func(NAME, lambda x, y: np.copyto(y, x + 5), override=True)
    c = np.zeros_like(a)
    pickle.loads(text)(a, c)

    np.testing.assert_array_equal(c, a + 5)
    assert copy.copy(kernel) is kernel


def test_programs_are_saved_and_raise(tmp_path: Path) -> None:
    tecomp.register_func(NAME, lambda x, y: np.copyto(y, x + 1), override=True)
    C = called(NAME)
    D = te.compute((N, 8), lambda i, j: C[i, j] * 2.0, name="D")
    tecomp.compile(D, [A]).save(tmp_path / "program")
    np.testing.assert_array_equal(tecomp.load(tmp_path / "program")(a), (a + 1) * 2)

    def fails(x: Any, y: Any) -> None:
        raise LookupError("later")

    tecomp.register_func(NAME, fails, override=True)
    program = tecomp.load(tmp_path / "program")
    with pytest.raises(LookupError, match="later"):
        program(a)
    tecomp.remove_global_func(NAME)
    with pytest.raises(DefinitionError) as error:
        tecomp.load(tmp_path / "program")
    assert diagnostic(error.value) == (
        Diagnostic(
            "external-function", where="C_0",
            remedy="no function is registered as 'test.driver.function'; call tecomp.register_func('test.driver.function', f) first",
        )
    )
