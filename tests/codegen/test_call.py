"""Kernel calls: accepted arguments, and the complete text of every error."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

from tecomp.codegen import Kernel
from tecomp.errors import CallError, LowerError
from tecomp.ir import Buffer, parse
from tests.messages import Diagnostic, diagnostic

ADD = '''def add(A: Buffer("float32", (4, 6), axis_separators=(0,)), \
B: Buffer("float32", (4, 6), axis_separators=(0,)), C: Buffer("float32", (24,))):
    for i in range(4):
        for j in range(6):
            C[6 * i + j] = A[i, j] + B[i, j]
'''
SCALE = '''def scale(A: Buffer("float32", (n,)), \
B: Buffer("float32", (m, n), axis_separators=(0,)), C: Buffer("float32", (2 * n + m,)), \
k: "int8", *, n: "int64", m: "int64"):
    for i in range(n):
        C[i] = A[i] * cast("float32", k)
    for j in range(m):
        B[j, 0] = C[0]
'''
ADDER, SCALER = Kernel(parse(ADD)), Kernel(parse(SCALE))
Array = np.ndarray[Any, Any]


def f32(*shape: int) -> Array:
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def misaligned(count: int) -> Array:
    return np.zeros(4 * count + 1, np.uint8)[1:].view(np.float32)


A, B, C = f32(4, 6), f32(4, 6), f32(24)
WHOLE = "float32[4, 6]"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((A, B), Diagnostic(
            "argument-count", name="add", signature_count=3, names="A, B, C", count=2,
            note="; C must also be passed, to be written in place",
        )),
        ((A, B, C, C), Diagnostic(
            "argument-count", name="add", signature_count=3, names="A, B, C", count=4,
            note="; C must also be passed, to be written in place",
        )),
        ((A, [[1.0]], C), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of add", parameter=WHOLE, got="list",
            advice="convert it with np.asarray(...)",
        )),
        ((A, "B", C), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of add", parameter=WHOLE, got="str",
            advice="convert it with np.asarray(...)",
        )),
        ((None, B, C), Diagnostic(
            "argument-mismatch", where="argument 0 (A) of add", parameter=WHOLE, got="None",
            advice="pass the array that the kernel reads",
        )),
        ((A, B, None), Diagnostic(
            "argument-mismatch", where="argument 2 (C) of add", parameter="float32[24]", got="None",
            advice="pass np.empty((24,), np.float32) for the output",
        )),
        ((A, np.float32(1), C), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of add", parameter=WHOLE, got="float32",
            advice="convert it with np.asarray(...)",
        )),
        ((A.astype(np.float64), B, C), Diagnostic(
            "argument-mismatch", where="argument 0 (A) of add", parameter=WHOLE, shape="float64[4, 6]",
            scalar="np.float32",
        )),
        ((A, B.astype(">f4"), C), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of add", scalar="float32", str=">f4",
            parameter_scalar="np.float32",
        )),
        ((A, f32(24), C), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of add", rank=2, parameter=WHOLE, got_count=1,
            got="float32[24]", remedy="reshape it",
        )),
        ((A, f32(4, 5), C), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of add",
            problem="axis 1 is 5, expected 6; pass an array of float32[4, 6]",
        )),
        ((A, f32(6, 4).T, C), Diagnostic(
            "unsupported-memory", where="argument 1 (B) of add", parameter=WHOLE, strides=(1, 4),
            remedy="pass np.ascontiguousarray(...) of it",
        )),
        ((A, B, f32(48)[::2]), Diagnostic(
            "unsupported-memory", where="argument 2 (C) of add", parameter="float32[24]",
            strides=(2,), remedy="pass a new array, and copy the result from it",
        )),
        ((A, B, read_only(f32(24))), Diagnostic(
            "unsupported-memory", where="argument 2 (C) of add", reason="the array is read-only",
            advice="pass a copy of it",
        )),
        ((C.reshape(4, 6), B, C), Diagnostic(
            "unsupported-memory", where="argument 2 (C) of add", position=0, buffer="A",
        )),
    ],
    ids=str.split("few many list text none no-output number type order rank shape strides "
                  "output-strides read-only overlap"),
)
def test_refusals(arguments: tuple[Any, ...], expected: Diagnostic) -> None:
    before = C.copy()

    with pytest.raises(CallError) as error:
        ADDER(*arguments)

    assert diagnostic(error.value) == expected
    assert (before == C).all()


def test_misaligned() -> None:
    odd = misaligned(24).reshape(4, 6)

    with pytest.raises(CallError) as error:
        ADDER(odd, B, C)

    assert diagnostic(error.value) == Diagnostic(
        "unsupported-memory", where="argument 0 (A) of add", address=odd.ctypes.data, bytes=4,
        scalar="float32",
    )


def test_refusal_shows_the_call() -> None:
    with pytest.raises(CallError) as error:
        ADDER(A, B, "C")

    lines = str(error.value).splitlines()
    assert lines[2].strip() == lines[2][lines[3].index("^") : lines[3].rindex("^") + 1] == (
        'ADDER(A, B, "C")'
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((f32(4), f32(2, 5), f32(10), 1), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of scale",
            problem="axis 1 is 5, but n is 4 from axis 0 of A; pass an array of float32[2, 4]",
        )),
        ((f32(4), f32(2, 4), f32(11), 1), Diagnostic(
            "argument-mismatch", where="argument 2 (C) of scale",
            problem="axis 0 is 11, but 2 * n + m is 10; pass an array of float32[10]",
        )),
        ((f32(4), f32(2, 4), f32(10), 1.0), Diagnostic(
            "argument-mismatch", where="argument 3 (k) of scale", article="an", noun="integer",
            dtype="int8", shown="1.0",
        )),
        ((f32(4), f32(2, 4), f32(10), float("nan")), Diagnostic(
            "argument-mismatch", where="argument 3 (k) of scale", article="an", noun="integer",
            dtype="int8", shown="nan",
        )),
        ((f32(4), f32(2, 4), f32(10), None), Diagnostic(
            "argument-mismatch", where="argument 3 (k) of scale", article="an", noun="integer",
            dtype="int8", shown="None",
        )),
        ((f32(4), f32(2, 4), f32(10), True), Diagnostic(
            "argument-mismatch", where="argument 3 (k) of scale", article="an", noun="integer",
            dtype="int8", shown="bool",
        )),
        ((f32(4), f32(2, 4), f32(10), 128), Diagnostic(
            "argument-mismatch", where="argument 3 (k) of scale", value=128, dtype="int8", low=-128,
            high=127,
        )),
        ((f32(4), None, f32(10), 1), Diagnostic(
            "argument-mismatch", where="argument 1 (B) of scale", parameter="float32[m, n]", got="None",
            advice="pass np.empty(shape, np.float32) for the output",
        )),
    ],
    ids=str.split("shape sum float nan none bool range output"),
)
def test_refusals_of_sizes_and_numbers(arguments: tuple[Any, ...], expected: Diagnostic) -> None:
    with pytest.raises(CallError) as error:
        SCALER(*arguments)

    assert diagnostic(error.value) == expected


def test_other_kinds_of_numbers() -> None:
    kernel = Kernel(parse('''def f(O: Buffer("float32", (1,)), x: "float32", b: "bool"):
    if b:
        O[0] = x
'''))
    with pytest.raises(CallError) as error:
        kernel(f32(1), "1", True)
    assert diagnostic(error.value) == (
        Diagnostic(
            "argument-mismatch", where="argument 1 (x) of f", article="a", noun="number",
            dtype="float32", shown="'1'",
        )
    )
    with pytest.raises(CallError) as error:
        kernel(f32(1), 1, 1)
    assert diagnostic(error.value) == (
        Diagnostic(
            "argument-mismatch", where="argument 2 (b) of f", article="a", noun="truth value",
            dtype="bool", shown="int",
        )
    )


def test_sizes_that_no_array_tells() -> None:
    text = '''def f(A: Buffer("float32", (2 * n,)), *, n: "int64"):
    A[n] = float32(1.0)
'''
    with pytest.raises(LowerError) as error:
        Kernel(parse(text))

    assert diagnostic(error.value) == (
        Diagnostic("unbound-size", func="f", var="n")
    )


def test_results() -> None:
    c, d = f32(24), f32(10)

    ADDER(A, read_only(B.copy()), c)
    SCALER(f32(4), f32(2, 4), d, np.int8(3))

    assert (c == 2 * np.arange(24)).all()
    assert (d == [0, 3, 6, 9, 4, 5, 6, 7, 8, 9]).all()


def test_inputs_may_be_the_same_array() -> None:
    c = f32(24)

    ADDER(A, A, c)

    assert (c == 2 * np.arange(24)).all()


def test_empty_and_axisless_arrays() -> None:
    empty = Kernel(parse('''def f(A: Buffer("float32", (0, 4), axis_separators=(0,)), \
B: Buffer("float32", (0,)), C: Buffer("float32", ())):
    C[()] = C[()] + float32(1.0)
'''))
    c = np.zeros((), np.float32)

    empty(f32(0, 4), f32(0), c)
    SCALER(f32(0), f32(0, 0), f32(0), 1)

    assert c == 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [("bool", np.bool_), ("bfloat16", ml_dtypes.bfloat16), ("float16", np.float16),
     ("uint64", np.uint64)],
)
def test_types_of_arrays(name: str, kind: Any) -> None:
    kernel = Kernel(parse(f'''def f(A: Buffer("{name}", (3,)), B: Buffer("{name}", (3,))):
    for i in range(3):
        B[i] = A[2 - i]
'''))
    a, b = np.array([0, 1, 1], kind), np.zeros(3, kind)

    kernel(a, b)

    assert (b == a[::-1]).all()
    with pytest.raises(CallError) as error:
        kernel(np.zeros(3, np.int32), b)
    module = "ml_dtypes" if name == "bfloat16" else "np"
    expected = f"{module}.{name}{'_' if name == 'bool' else ''}"
    assert diagnostic(error.value) == Diagnostic(
        "argument-mismatch", where="argument 0 (A) of f", parameter=f"{name}[3]", shape="int32[3]",
        scalar=expected,
    )


def test_arrays_in_the_shape_of_the_layout() -> None:
    flat = parse('''def f(A: Buffer("float32", (24,)), B: Buffer("float32", (4, 6), \
axis_separators=(0,))):
    for i in range(4):
        for j in range(6):
            B[i, j] = A[6 * i + j]
''')
    shapes = (Buffer("A", (2, 3, 4)), Buffer("B", (4, 2, 3), axis_separators=(0,)))
    kernel = Kernel(flat, shapes)
    for source in (f32(2, 3, 4), f32(24)):
        for target in (np.zeros((4, 2, 3), np.float32), np.zeros((4, 6), np.float32)):
            kernel(source, target)

            assert (target.ravel() == np.arange(24)).all()
    with pytest.raises(CallError) as error:
        kernel(f32(2, 3, 5), np.zeros((4, 6), np.float32))
    assert diagnostic(error.value) == (
        Diagnostic(
            "argument-mismatch", where="argument 0 (A) of f",
            problem="axis 2 is 5, expected 4; pass an array of float32[2, 3, 4]",
        )
    )


def test_declared_strides() -> None:
    flat = parse('''def f(A: Buffer("float32", (11,)), B: Buffer("float32", (2, 3), \
axis_separators=(0,))):
    for i in range(2):
        for j in range(3):
            B[i, j] = A[6 * i + 2 * j]
''')
    kernel = Kernel(flat, (Buffer("A", (2, 3), strides=(6, 2)), flat.params[1]))
    out = np.zeros((2, 3), np.float32)

    kernel(f32(2, 6)[:, ::2], out)

    assert (out == [[0, 2, 4], [6, 8, 10]]).all()
    with pytest.raises(CallError) as error:
        kernel(f32(2, 3), out)
    assert diagnostic(error.value) == (
        Diagnostic("unsupported-memory", where="argument 0 (A) of f", expected=(6, 2), got=(3, 1))
    )


def test_kernel_repr() -> None:
    assert repr(ADDER) == (
        "<Kernel add(A: float32[4, 6], B: float32[4, 6], C: float32[24]), writes C>"
    )
    assert repr(SCALER) == (
        "<Kernel scale(A: float32[n], B: float32[m, n], C: float32[2 * n + m], k: int8), "
        "writes B, C>"
    )
    assert ADDER.shapes == {"A": (4, 6), "B": (4, 6), "C": (24,)}
    assert ADDER.outputs == ("C",)
    assert ADDER.source("ir") == str(parse(ADD))
    assert ADDER.source("llvm").startswith("define i32 @add.entry(ptr %arguments)")
    assert "add.entry:" in ADDER.source("asm")
    with pytest.raises(CallError) as error:
        ADDER.source(cast(Any, "c"))
    assert diagnostic(error.value) == Diagnostic("unknown-choice", form="c")


def test_extents_that_overflow_64_bits() -> None:
    """An extent that wraps around to 0 does not match an empty array."""
    kernel = Kernel(parse('''def f(A: Buffer("float32", (n * n,)), O: Buffer("float32", (1,)), n: "int64"):
    O[0] = A[0]
'''))
    with pytest.raises(CallError) as error:
        kernel(f32(0), f32(1), 2**32)

    assert diagnostic(error.value) == (
        Diagnostic("unbound-size", extent="n * n", sizes="n = 4294967296")
    )
