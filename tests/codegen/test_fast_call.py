"""Fast path of calls, which bypasses Python: accepted arguments, fallback, and results."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from itertools import product
from statistics import median
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tecomp import build, lower, te
from tecomp.codegen import ArgumentStorage, Kernel, arrays_are_known, empty
from tecomp.errors import CallError
from tecomp.ir import PrimFunc, parse
from tecomp.layout import layout_tag
from tests.messages import Diagnostic, diagnostic

ADD = parse('''def add(A: Buffer("float32", (n,)), B: Buffer("float32", (8,)), C: Buffer("float32", (n,)), \
*, n: "int64"):
    for i in range(n):
        C[i] = B[i] + float32(1.0)
''')
MIXED = parse('''def mixed(i8: "int8", A: Buffer("int64", (9,)), u: "uint64", x: "float32", \
y: "float64", O: Buffer("float64", (n,)), b: "bool", n: "int64"):
    A[0] = cast("int64", i8)
    A[1] = cast("int64", u)
    O[0] = cast("float64", x)
    O[1] = y
    if b:
        A[2] = n
''')


class Watched(Kernel):
    """Kernel that counts the calls on the checked path."""

    __slots__ = ("careful",)

    def __init__(self, func: PrimFunc, **options: Any) -> None:
        self.careful = 0
        super().__init__(func, **options)

    def _careful(self, block: Any, arguments: Any) -> list[Any]:
        self.careful += 1
        return super()._careful(block, arguments)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


@pytest.fixture
def kernel() -> Watched:
    return Watched(ADD)


def test_numpy_is_as_expected() -> None:
    assert arrays_are_known()


def test_plain_arguments_need_no_care(kernel: Watched) -> None:
    for n in (0, 1, 8):
        out = f32(n)
        kernel(f32(n), f32(8), out)

        assert (out == 1).all()
    frozen = f32(8)
    frozen.flags.writeable = False
    kernel(frozen, frozen, f32(8))

    assert kernel.careful == 0


class Special(np.ndarray[Any, Any]):
    """Subclass of ndarray, which can override anything."""


class Exporter:
    """Memory that is shared through DLPack only."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)


ODD = {
    "subclass": f32(8).view(Special),
    "equal type": np.zeros(8, np.dtype(np.float32, metadata={"unit": "m"})),
    "another library": Exporter(f32(8)),
}
REFUSED: dict[str, tuple[Any, Diagnostic]] = {
    "type": (np.zeros(8), Diagnostic(
        "argument-mismatch", where="argument 1 (B) of add", parameter="float32[8]", shape="float64[8]",
        scalar="np.float32",
    )),
    "integer": (np.zeros(8, np.int32), Diagnostic(
        "argument-mismatch", where="argument 1 (B) of add", parameter="float32[8]", shape="int32[8]",
        scalar="np.float32",
    )),
    "extent": (f32(9), Diagnostic(
        "argument-mismatch", where="argument 1 (B) of add",
        problem="axis 0 is 9, expected 8; pass an array of float32[8]",
    )),
    "rank": (f32(8, 1), Diagnostic(
        "argument-mismatch", where="argument 1 (B) of add", rank=1, parameter="float32[8]", got_count=2,
        got="float32[8, 1]", remedy="reshape it",
    )),
    "no axes": (f32(), Diagnostic(
        "argument-mismatch", where="argument 1 (B) of add", rank=1, parameter="float32[8]", got_count=0,
        got="float32[]", remedy="reshape it",
    )),
    "strides": (f32(16)[::2], Diagnostic(
        "unsupported-memory", where="argument 1 (B) of add", parameter="float32[8]", strides=(2,),
        remedy="pass np.ascontiguousarray(...) of it",
    )),
    "backwards": (f32(8)[::-1], Diagnostic(
        "unsupported-memory", where="argument 1 (B) of add", parameter="float32[8]", strides=(-1,),
        remedy="pass np.ascontiguousarray(...) of it",
    )),
    "list": ([1.0] * 8, Diagnostic(
        "argument-mismatch", where="argument 1 (B) of add", parameter="float32[8]", got="list",
        advice="convert it with np.asarray(...)",
    )),
    "number": (np.float32(1), Diagnostic(
        "argument-mismatch", where="argument 1 (B) of add", parameter="float32[8]", got="float32",
        advice="convert it with np.asarray(...)",
    )),
    "none": (None, Diagnostic(
        "argument-mismatch", where="argument 1 (B) of add", parameter="float32[8]", got="None",
        advice="pass the array that the kernel reads",
    )),
    "class": (list, Diagnostic(
        "argument-mismatch", where="argument 1 (B) of add", parameter="float32[8]", got="type",
        advice="convert it with np.asarray(...)",
    )),
}


@pytest.mark.parametrize("name", ODD)
def test_unusual_arguments(kernel: Watched, name: str) -> None:
    out = f32(8)

    kernel(f32(8), ODD[name], out)

    assert (out == 1).all()


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_after_a_quick_call(kernel: Watched, name: str) -> None:
    out = f32(8)
    kernel(f32(8), f32(8), out)
    out[:] = 5
    argument, expected = REFUSED[name]

    with pytest.raises(CallError) as error:
        kernel(f32(8), argument, out)

    assert diagnostic(error.value) == expected
    assert (out == 5).all()
    kernel(f32(8), f32(8), out)
    assert (out == 1).all()


BASE = f32(24)
OVERLAPPING = {
    "same": (BASE[:8], f32(8), BASE[:8]),
    "before": (BASE[:8], f32(8), BASE[7:15]),
    "after": (BASE[7:15], f32(8), BASE[:8]),
    "one": (BASE[:1], f32(8), BASE[:1]),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_overlap(kernel: Watched, name: str) -> None:
    with pytest.raises(CallError) as error:
        kernel(*OVERLAPPING[name])

    assert diagnostic(error.value) == (
        Diagnostic("unsupported-memory", where="argument 2 (C) of add", position=0, buffer="A")
    )


def test_neighbours_do_not_overlap(kernel: Watched) -> None:
    base = f32(24)

    kernel(base[:8], base[:8], base[8:16])
    kernel(base[16:], base[:8], base[8:16])
    kernel(base[4:4], f32(8), base[8:8])

    assert kernel.careful == 0
    assert (base[8:16] == 1).all()


def test_read_only_output(kernel: Watched) -> None:
    out = f32(8)
    out.flags.writeable = False

    with pytest.raises(CallError) as error:
        kernel(f32(8), f32(8), out)

    assert diagnostic(error.value) == (
        Diagnostic(
            "unsupported-memory", where="argument 2 (C) of add", reason="the array is read-only",
            advice="pass a copy of it",
        )
    )


def test_misaligned(kernel: Watched) -> None:
    odd = np.zeros(33, np.uint8)[1:].view(np.float32)

    with pytest.raises(CallError) as error:
        kernel(f32(8), odd, f32(8))

    assert diagnostic(error.value) == Diagnostic(
        "unsupported-memory", where="argument 1 (B) of add", address=odd.ctypes.data, bytes=4,
        scalar="float32",
    )


def test_sizes_that_differ(kernel: Watched) -> None:
    with pytest.raises(CallError) as error:
        kernel(f32(7), f32(8), f32(8))

    assert diagnostic(error.value) == (
        Diagnostic(
            "argument-mismatch", where="argument 2 (C) of add",
            problem="axis 0 is 8, but n is 7 from axis 0 of A; pass an array of float32[7]",
        )
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [("bool", np.bool_), ("bfloat16", ml_dtypes.bfloat16), ("float16", np.float16),
     ("uint8", np.uint8), ("int64", np.int64), ("float64", np.float64)],
)
def test_types(name: str, kind: Any) -> None:
    kernel = Watched(parse(f'''def f(A: Buffer("{name}", (3,)), B: Buffer("{name}", ())):
    B[()] = A[2]
'''))
    b = np.zeros((), kind)

    kernel(np.array([0, 0, 1], kind), b)

    assert b == 1
    assert kernel.careful == 0


def test_vector_types() -> None:
    kernel = Watched(parse('''def f(A: Buffer("float32x4", (3,)), B: Buffer("float32x4", (3,))):
    B[2] = A[1]
'''))
    a, b = np.arange(12, dtype=np.float32).reshape(3, 4), f32(3, 4)

    kernel(a, b)

    assert (b[2] == a[1]).all()
    assert kernel.careful == 0


def test_numbers() -> None:
    kernel = Watched(MIXED)
    a, o = np.zeros(9, np.int64), np.zeros(5)

    kernel(-128, a, 2**63 - 1, 0.1, 0.1, o, True, 5)

    assert a[:3].tolist() == [-128, 2**63 - 1, 5]
    assert o[:2].tolist() == [float(np.float32(0.1)), 0.1]
    kernel(127, a, 0, 1e300, float("nan"), o, False, 5)
    assert a[:2].tolist() == [127, 0]
    assert o[0] == np.inf
    assert np.isnan(o[1])
    assert kernel.careful == 0
    kernel(np.int8(3), a, np.uint64(7), np.float32(2), 1, o, np.bool_(True), np.int64(5))
    assert a[:3].tolist() == [3, 7, 5]
    assert o[:2].tolist() == [2, 1]
    assert kernel.careful == 1


@pytest.mark.parametrize(
    ("position", "argument", "expected"),
    [
        (0, 128, Diagnostic(
            "argument-mismatch", where="argument 0 (i8) of mixed", value=128, dtype="int8", low=-128,
            high=127,
        )),
        (0, 2**70, Diagnostic(
            "argument-mismatch", where="argument 0 (i8) of mixed", value=2 ** 70, dtype="int8",
            low=-128, high=127,
        )),
        (0, True, Diagnostic(
            "argument-mismatch", where="argument 0 (i8) of mixed", article="an", noun="integer",
            dtype="int8", shown="bool",
        )),
        (2, -1, Diagnostic(
            "argument-mismatch", where="argument 2 (u) of mixed", value=-1, dtype="uint64", low=0,
            high=2 ** 64 - 1,
        )),
        (3, "1", Diagnostic(
            "argument-mismatch", where="argument 3 (x) of mixed", article="a", noun="number",
            dtype="float32", shown="'1'",
        )),
        (6, 1, Diagnostic(
            "argument-mismatch", where="argument 6 (b) of mixed", article="a", noun="truth value",
            dtype="bool", shown="int",
        )),
        (7, float("nan"), Diagnostic(
            "argument-mismatch", where="argument 7 (n) of mixed", article="an", noun="integer",
            dtype="int64", shown="nan",
        )),
        (7, 4, Diagnostic(
            "argument-mismatch", where="argument 5 (O) of mixed",
            problem="axis 0 is 5, but n is 4 from argument 7; pass an array of float64[4]",
        )),
    ],
)
def test_refused_numbers(position: int, argument: Any, expected: Diagnostic) -> None:
    arguments: list[Any] = [1, np.zeros(9, np.int64), 1, 1.0, 1.0, np.zeros(5), True, 5]
    arguments[position] = argument

    with pytest.raises(CallError) as error:
        Kernel(MIXED)(*arguments)

    assert diagnostic(error.value) == expected


def test_failures_are_reported() -> None:
    kernel = Watched(parse('''def f(A: Buffer("float32", (4,)), n: "int64"):
    A[n] = float32(1.0)
'''), check_bounds=True)
    for n in (4, -1, 2**40):
        with pytest.raises(CallError) as error:
            kernel(f32(4), n)

        assert diagnostic(error.value) == Diagnostic("out-of-bounds", value=n, text="axis 0 of A[4]")
    kernel(f32(4), 3)
    assert kernel.careful == 0


@pytest.mark.exhaustive
def test_arguments_are_released(kernel: Watched) -> None:
    array = f32(8)
    before = gc.get_referrers(array)
    for _ in range(1000):
        kernel(array, array, f32(8))

    assert len(gc.get_referrers(array)) == len(before)


def test_other_threads_run_meanwhile() -> None:
    kernel = Kernel(parse('''def f(A: Buffer("float32", (1,))):
    for i in range(400000000):
        A[0] = A[0] * float32(1.5) + float32(1.0)
'''))
    kernel_time: list[float] = []

    def work() -> None:
        start = time.perf_counter()
        kernel(f32(1))
        kernel_time.append(time.perf_counter() - start)

    thread = threading.Thread(target=work)
    thread.start()
    ticks = 0
    while thread.is_alive():
        time.sleep(0.001)
        ticks += 1
    thread.join()

    # If the GIL were held, there would be no tick before the end.
    assert ticks > 10 * kernel_time[0]


def test_a_call_is_quick(kernel: Watched) -> None:
    """The limit is several times the idle duration, and far below that of checks in Python."""
    arguments = f32(8), f32(8), f32(8)

    assert median(kernel.timeit(*arguments, seconds=0.05).median for _ in range(5)) < 5e-6
    assert kernel.careful == 0


def test_declared_bounds_need_no_care() -> None:
    n, k = te.var("n", minimum=16, maximum=96, multiple=16), te.var("k", maximum=4)
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + te.cast(k, "float32"), name="B")
    func = lower(te.create_schedule(B), [A, k, B])

    for size, scalar in product((0, 16, 24, 96, 112), (-1, 0, 4, 5)):
        kernel, out = Watched(func), np.full(size, 7, np.float32)
        if size in (16, 96) and scalar in (0, 4):
            kernel(f32(size), scalar, out)
            assert (out == scalar).all()
            assert kernel.careful == 0
        else:
            with pytest.raises(CallError):
                kernel(f32(size), scalar, out)
            assert (out == 7).all()
            assert kernel.careful == 1


SHAPES: dict[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "sums": lambda n, k: (n + 2, 3 * k - n),
    "quotients": lambda n, k: (n // 2, k % 3, (n - 7) // 4),
    "remainders": lambda n, k: ((n - 9) % 5, k),
    "products": lambda n, k: (n * n * k, k),
    "least": lambda n, k: (te.min(n, k), 4),
    "greatest": lambda n, k: (te.max(n - k, 2),),
}
NUMBERS: dict[str, Callable[[int, int], tuple[int, ...]]] = {
    **SHAPES, "least": lambda n, k: (min(n, k), 4), "greatest": lambda n, k: (max(n - k, 2),),
}


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """Return the kernels that were called on the checked path, in order."""
    calls: list[Kernel] = []
    run = Kernel._run

    def record(self: Kernel, arguments: Any) -> Any:
        calls.append(self)
        return run(self, arguments)

    monkeypatch.setattr(Kernel, "_run", record)
    return calls


def _symbolic(name: str) -> Kernel:
    """Return a kernel whose first array has computed extents; the last array determines sizes."""
    n, k = te.size_var("n"), te.size_var("k")
    A = te.placeholder(SHAPES[name](n, k), name="A")
    B = te.compute((n, k), lambda i, j: te.cast(10 * n + k, "float32"), name="B")
    return build(B, [A, B])


@pytest.mark.parametrize("name", SHAPES)
def test_computed_extents_need_no_care(name: str, checked: list[Kernel]) -> None:
    kernel, count = _symbolic(name), 0
    for n, k in product(range(13), range(5)):
        shape, out = NUMBERS[name](n, k), f32(n, k)
        if min(shape) >= 0:
            kernel(f32(*shape), out)
            assert (out == 10 * n + k).all()
            count += 1
    assert count > 5
    assert not checked


@pytest.mark.parametrize("name", SHAPES)
def test_computed_extents_that_differ(name: str, checked: list[Kernel]) -> None:
    kernel, out = _symbolic(name), f32(11, 4)
    shape = NUMBERS[name](11, 4)
    for axis, extent in enumerate(shape):
        with pytest.raises(CallError) as error:
            kernel(f32(*shape[:axis], extent + 1, *shape[axis + 1 :]), out)
        assert error.value.kind == "argument-mismatch"
    assert len(checked) == len(shape)
    assert (out == 0).all()
    kernel(f32(*shape), out)
    assert (out == 114).all()


def test_extents_without_a_value() -> None:
    """Divisions by 0 and values beyond 64 bits are left to the checked path, which reports them."""
    for extent, n, k in (("n // k", 3, 0), ("n % k", 3, 0), ("n * k * k", 3, 2**62)):
        kernel = Watched(parse(f'''def f(n: "int64", k: "int64", A: Buffer("float32", ({extent},))):
    A[0] = float32(1.0)
'''))
        with pytest.raises(CallError):
            kernel(n, k, f32(3))
        assert kernel.careful == 1
        a = f32(1)
        kernel(1, 2 if "%" in extent else 1, a)
        assert a[0] == 1
        assert kernel.careful == 1


def test_windows_of_symbolic_sizes_need_no_care(checked: list[Kernel]) -> None:
    n, k = te.size_var("n"), te.size_var("k")
    A, W = te.placeholder((n + k - 1,), name="A"), te.placeholder((k,), name="W")
    r = te.reduce_axis((0, k), name="r")
    B = te.compute((n,), lambda i: te.sum(A[i + r] * W[r], axis=r), name="B")
    kernel = build(B, [A, W, B])
    kernel(f32(5), f32(3), f32(3))  # the first parallel call of a process sets up threads
    checked.clear()

    for extent, taps in product((1, 5, 32), (1, 3, 8)):
        a, w = np.arange(extent + taps - 1, dtype=np.float32), np.arange(taps, dtype=np.float32)
        out = f32(extent)
        kernel(a, w, out)
        np.testing.assert_array_equal(out, np.correlate(a, w, "valid"))
    assert not checked


def test_marks_of_layouts_need_no_care() -> None:
    right, wrong = layout_tag("(i0) -> (i0 + 1)"), layout_tag("(i0) -> (i0 + 2)")
    kernel = Watched(ADD, stored={0: ArgumentStorage(right, (8,))})
    marked_out = empty((8,), np.float32, wrong)
    numbers = empty((8,), np.float32, wrong)
    numbers[...] = 0

    for argument in (f32(8), empty((8,), np.float32, right), numbers + 1):
        kernel(argument, f32(8), marked_out)
    assert kernel.careful == 0

    with pytest.raises(CallError) as error:
        kernel(empty((8,), np.float32, wrong), f32(8), f32(8))
    assert diagnostic(error.value) == Diagnostic(
        "packed", where="argument 0 (A) of add", formula="(i0) -> (i0 + 2)", name="A",
        wanted_formula="(i0) -> (i0 + 1)", advice="pass kernel.pack(A, a)",
    )
