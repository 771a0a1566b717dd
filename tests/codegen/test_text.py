"""Generated text is deterministic, keeps vectors, and supports other machines."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import LlvmSource, compile_function, emit_assembly, object_code
from tecomp.errors import InternalError
from tecomp.ir import parse
from tests.messages import Diagnostic, diagnostic

zen5 = partial(emit_assembly, triple="x86_64-unknown-linux-gnu", cpu="znver5")
AXPY = '''def axpy(A: Buffer("{name}", (1024,)), B: Buffer("{name}", (1024,))):
    for i in range({rounds}):
        {statement}
'''


def axpy(name: str, lanes: int, *, masked: bool = False) -> str:
    place = f"ramp({lanes} * i, 1, {lanes})"
    value = f"A[{place}] * broadcast({name}(2.0), {lanes}) + B[{place}]"
    statement = f"B[{place}] = {value}"
    if masked:
        mask = f"{place} < broadcast(1000, {lanes})"
        value = value.replace(f"[{place}]", f".load({place}, where={mask})")
        statement = f"store(B[{place}], {value}, where={mask})"
    return AXPY.format(name=name, rounds=1024 // lanes, statement=statement)


@pytest.mark.parametrize(
    ("name", "lanes", "instruction"),
    [
        ("float32", 16, r"vfmadd\w+ps\b.*%zmm"),
        ("float32", 8, r"vfmadd\w+ps\b.*%ymm"),
        ("float64", 8, r"vfmadd\w+pd\b.*%zmm"),
        ("float32", 32, r"vfmadd\w+ps\b.*%zmm"),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_vectors_stay_vectors(name: str, lanes: int, instruction: str, masked: bool) -> None:
    text = zen5(parse(axpy(name, lanes, masked=masked)))

    assert re.search(instruction, text)
    assert not re.search(r"vfmadd\w+s[sd]\b|vmuls[sd]\b|vadds[sd]\b|vpextr|vpinsr", text)
    assert bool(re.search(r"\{%k\d\}", text)) is masked


@pytest.mark.parametrize(
    ("name", "value", "instruction"),
    [
        ("float32", "max(x, broadcast(float32(0.0), 16))", "vmaxps"),
        ("float32", "select(x < y, x, y)", "vcmp|vminps"),
        ("float32", "sqrt(x) + floor(y)", "vsqrtps"),
        ("float16", "x * y", "vcvtps2ph"),
        ("bfloat16", "x + y", "vaddps"),
        ("int32", "min(x, y) // broadcast(int32(4), 16)", "vpsrad"),
        ("int8", "cast(\"int8x16\", cast(\"float32x16\", x) * cast(\"float32x16\", y))", "vmulps"),
        ("uint8", "x ^ y", "vxorps|vpxor"),
        ("bool", "x and not y", "vpand|vandnps|vpternlog|vptestnm|vptestm|kand"),
    ],
    ids=str.split("max select sqrt half bfloat int int8 xor bool"),
)
def test_operators_stay_vectors(name: str, value: str, instruction: str) -> None:
    func = parse(f'''def f(X: Buffer("{name}", (64,)), Y: Buffer("{name}", (64,)), \
O: Buffer("{name}", (64,))):
    for i in range(4):
        with Let(X[ramp(16 * i, 1, 16)]) as x:
            with Let(Y[ramp(16 * i, 1, 16)]) as y:
                O[ramp(16 * i, 1, 16)] = {value}
''')
    text = zen5(func)

    assert re.search(instruction, text)
    assert not re.search(r"vpextr|vpinsr|\bv(?!mov|broadcast|p)\w+s[sd]\s|callq\s+(?!f\.body)", text)


def test_contraction_can_be_switched_off() -> None:
    text = zen5(parse(axpy("float32", 16)), fp_contract=False)

    assert "vfmadd" not in text
    assert re.search(r"vaddps.*%zmm", text)


def test_fast_math_reorders_sums() -> None:
    func = parse('''def total(A: Buffer("float32", (4,)), B: Buffer("float32", (4,))):
    B[0] = A[0] / A[1] + float32(1.0) - A[0] / A[1]
''')

    assert "vdivss" in zen5(func)
    assert "vdivss" not in zen5(func, fast_math=True)


@pytest.mark.parametrize(
    ("triple", "cpu", "instruction"),
    [
        ("aarch64-linux-gnu", "neoverse-v1", r"fmla\s+v\d+\.4s"),
        ("riscv64-linux-gnu", "sifive-x280", r"vfmacc|vfmadd|vfmul"),
        ("x86_64-unknown-linux-gnu", "x86-64-v3", r"vfmadd\w+ps"),
    ],
)
def test_other_machines(triple: str, cpu: str, instruction: str) -> None:
    text = emit_assembly(parse(axpy("float32", 8)), triple=triple, cpu=cpu)

    assert re.search(instruction, text)


def test_unknown_machine() -> None:
    with pytest.raises(InternalError) as error:
        emit_assembly(parse(axpy("float32", 8)), triple="abacus-wood-none")

    assert diagnostic(error.value) == Diagnostic(
        "internal", triple="abacus-wood-none", reason=error.value.parameters["reason"],
    )


def test_text_is_deterministic() -> None:
    texts = {compile_function(parse(axpy("float32", 8, masked=True))).llvm_ir for _ in range(3)}

    assert len(texts) == 1


def test_text(golden: Callable[[object], None]) -> None:
    text = compile_function(parse(axpy("float32", 8))).llvm_ir

    assert text.startswith("define i32 @axpy.entry(ptr %arguments) #0 {\n")
    golden(text)


@pytest.mark.parametrize("length", [1020, 1024, 1025, 5000])
def test_names_of_any_length(length: int) -> None:
    A, B = (te.placeholder((8,), name="a" * length + end) for end in ("", "b"))
    first = te.compute((8,), lambda i: A[i] + B[i], name="c" * length)
    second = te.compute((8,), lambda i: first[i] * A[i], name="c" * length + "d")
    result = np.zeros(8, "float32")
    a, b = np.arange(8, dtype="float32"), np.ones(8, "float32")

    name = "f" * length
    tecomp.build(te.create_schedule(second), [A, B, second], name=name)(a, b, result)

    np.testing.assert_array_equal(result, (a + b) * a)


def test_broken_code_is_an_internal_error() -> None:
    text = "define i32 @f(ptr %x) {\n  ret i32 %y\n}\n"
    with pytest.raises(InternalError) as error:
        object_code(LlvmSource(text))

    reason = error.value.parameters["reason"]
    assert "use of undefined value '%y'" in reason
    assert diagnostic(error.value) == Diagnostic("internal", reason=reason, text=text)


def test_llvm_is_loaded_by_the_first_compilation() -> None:
    program = (
        "import sys, tecomp.codegen as c, tecomp.ir.parser.func_parser as p\n"
        "assert 'llvmlite' not in sys.modules\n"
        "c.compile_function(p.parse('def f():\\n    pass'))\n"
        "print('llvmlite' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(("kind", "functions"), [("parallel", 3), ("range", 1)])
def test_wrapper_functions_are_not_optimised(kind: str, functions: int) -> None:
    """A body that is one parallel loop only hands over work; a body with its own loop does not."""
    source = compile_function(parse(f'''def add(A: Buffer("float32", (64,))):
    for i in {kind}(64):
        A[i] = A[i] + float32(1.0)
''')).source
    assert len(source.handed_over) == functions
    assert not any(name.endswith(".parallel.1.body") for name in source.handed_over)


def test_llvm_reports_nothing_for_skipped_functions(capfd: pytest.CaptureFixture[str]) -> None:
    source = compile_function(parse(axpy("float32", 8))).source
    for _ in range(40):
        object_code(source)

    assert capfd.readouterr() == ("", "")
