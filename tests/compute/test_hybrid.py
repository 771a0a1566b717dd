"""Hybrid functions give the same results as in Python; invalid functions are rejected."""
# ruff: noqa: F821 (names in hybrid functions are not Python names)
# mypy: ignore-errors

from __future__ import annotations

import linecache
import re
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from scipy import special

import tecomp
from tecomp import te
from tecomp.compute import ExternOp
from tecomp.errors import DefinitionError, TypeMismatchError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

script = te.hybrid.script
rng = np.random.default_rng(0)


def arrays_for(args: list[Any], sizes: dict[Any, int]) -> list[Any]:
    """Return values for arguments: random arrays, sizes, and lists of these."""
    found: list[Any] = []
    for arg in args:
        if isinstance(arg, te.Tensor):
            shape = [sizes.get(n, n) for n in arg.shape]
            kind = arg.dtype.numpy
            found.append(rng.integers(0, 9, shape).astype(kind))
        elif isinstance(arg, list | tuple):
            found.append(arrays_for(list(arg), sizes))
        elif isinstance(arg, te.Var):
            found.append(sizes[arg])
        else:
            found.append(int(arg.value) if hasattr(arg, "value") else arg)
    return found


def flat(values: list[Any], kind: Any) -> list[Any]:
    return [x for v in values for x in (flat(v, kind) if isinstance(v, list | tuple) else [v])
            if isinstance(x, kind)]


def agrees(function: Any, args: list[Any], sizes: Any = None, s: Any = None) -> Any:
    """Check compiled and interpreted results against Python, and return the outputs."""
    sizes = sizes or {}
    outs = function(*args)
    results = list(outs) if isinstance(outs, list) else [outs]
    values = arrays_for(args, sizes)
    expected = function(*deepcopy(values))
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    schedule = te.create_schedule([results[0].op])
    symbols = flat(args, te.Tensor) + [v for v in args if isinstance(v, te.Var)]
    source = flat(values, np.ndarray) + [sizes[v] for v in args if isinstance(v, te.Var)]
    lowered = tecomp.lower(schedule, [*symbols, *results], stop_after="nest")
    for run in (
        tecomp.build(schedule, [*symbols, *results]),
        tecomp.build(schedule, [*symbols, *results], check_bounds=True),
        lambda *all: tecomp.evaluate(lowered, all),
    ):
        found = [np.zeros_like(w) for w in expected]
        run(*source, *found)
        for actual, right in zip(found, expected, strict=True):
            assert_close(actual, right, rtol=1e-5)
    return outs


def is_compute(result: Any) -> bool:
    return not isinstance(result.op, ExternOp)


@script
def outer_product(n, m, a, b):
    """Compute the outer product of two vectors.

    A docstring is not a statement.
    """
    c = output_tensor((n, m), a.dtype)
    for i in range(n):
        for j in range(m):
            assert i < n, "index out of range!"
            c[i, j] = a[i] * b[j]
    return c


def test_sizes_are_arguments() -> None:
    n, m = te.size_var("n"), te.size_var("m")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    c = agrees(outer_product, [n, m, a, b], {n: 9, m: 5})

    assert (c.name, [axis.name for axis in c.op.axis]) == ("c", ["i", "j"])
    assert str(c.op) == "c[i, j] = a[i] * b[j]"
    assert outer_product.__name__ == "outer_product"
    assert "output_tensor" not in outer_product.function.__globals__


def test_local_variables_and_sums() -> None:
    @script
    def fanout(n, a):
        three = 3.0
        b = output_tensor((a.shape[0] - 3,), a.dtype)
        for i in range(a.shape[0] - 3):
            sigma = 0.0
            for j in range(3):
                sigma += a[i + j]
            sigma = sigma / three
            b[i] = sigma
        return b

    n = te.size_var("n")
    assert not is_compute(agrees(fanout, [n, te.placeholder((n,), name="a")], {n: 10}))


def test_kinds_of_loops() -> None:
    @script
    def looptype(a, b, c):
        d = output_tensor((16,), "int32")
        e = output_tensor((16,), "int32")
        f = output_tensor((16,), "int32")
        for i in parallel(16):
            d[i] = a[i]
        for j in vectorize(16):
            e[j] = b[j]
        for k in unroll(16):
            f[k] = c[k]
        return d, e, f

    d, _, _ = agrees(looptype, [te.placeholder((16,), "int32", name=x) for x in "abc"])
    assert re.findall(r" in (\w+)\(", str(d.op.statement)) == [
        "parallel", "vectorized", "unrolled",
    ]


def test_conditions() -> None:
    @script
    def both(a):
        b = output_tensor((10,), "int32")
        c = output_tensor((10,), "int32")
        for i in range(10):
            if i % 2 == 0:
                c[i] = a[i]
            else:
                c[i] = b[i]
        for i in unroll(10):
            b[i] = -1 if i % 2 == 0 else 1
        return b, c

    @script
    def chained(a):
        b = output_tensor((10,), "int32")
        for i in range(10):
            if 0 <= i < 5 or not a[i] > 3:
                b[i] = a[i]
            else:
                b[i] = a[i] + 1
        return b

    a = te.placeholder((10,), "int32", name="a")
    agrees(both, [a])
    assert is_compute(agrees(chained, [a]))


def test_conditions_of_data() -> None:
    @script
    def logic(a):
        b = output_tensor(a.shape, a.dtype)
        b[0] = 1.2
        b[a.shape[0] - 1] = 0.0
        for i in range(1, a.shape[0] - 1):
            if a[i] * a[i - 1] < a[i] or a[i] * a[i - 1] < a[i - 1] or i * a[i] == a[i]:
                b[i] = a[i]
            else:
                b[i] = 0.0
        return b

    agrees(logic, [te.placeholder((10,), name="a")])


def test_memory_and_threads() -> None:
    @script
    def blur(a):
        b = output_tensor((10, 10), "float32")
        for i in bind("blockIdx.x", 10):
            ha = allocate((3, 10), "float32", "local")
            for j in range(3):
                for k in range(10):
                    ha[j, k] = a[i + j, k] + a[i + j, k + 1] + a[i + j, k + 2]
            for j in range(10):
                b[i, j] = (ha[0, j] + ha[1, j] + ha[2, j]) / 9.0
        return b

    @script
    def shares(a):
        c = output_tensor((a.shape[0],), a.dtype)
        total = allocate((1,), a.dtype, "local")
        len_i = a.shape[0]
        len_j = a.shape[1]
        m = max_num_threads(True)
        for i in bind("threadIdx.x", ceil_div(len_i, m)):
            total[0] = 0.0
            for k in const_range(len_j):
                total[0] += a[i, k]
            c[i] = total[0]
        return c

    agrees(blur, [te.placeholder((12, 12), name="a")])
    agrees(shares, [te.placeholder((8, 4), name="a")])


def test_functions_of_numbers() -> None:
    @script
    def real(a):
        b = output_tensor((10,), "float32")
        b[0] = sqrt(a[0])
        b[1] = log(a[1] + 1.0)
        b[2] = exp(a[2])
        b[3] = sigmoid(a[3])
        b[4] = power(a[4], a[5])
        b[5] = tanh(a[5])
        b[6] = min(a[4], a[5])
        b[7] = max(a[5], a[6])
        b[8] = float32(int32(a[6] / 2.0))
        b[9] = a[7] ** 2.0
        return b

    @script
    def whole(a):
        b = output_tensor((3,), "int32")
        b[0] = popcount(a[0])
        b[1] = a[1] // 3 + a[1] % 3
        b[2] = (a[2] << 2) | 1
        return b

    agrees(real, [te.placeholder((8,), name="a")])
    agrees(whole, [te.placeholder((3,), "int32", name="a")])


def test_hybrid_rejects_loops_of_other_functions() -> None:
    @script
    def blur(a):
        b = output_tensor((10, 10), "float32")
        for i in range(2, 12):
            for j in range(2, 12):
                s = 0.0
                for di in range(3):
                    for dj in range(3):
                        s += a[i - di, j - dj]
                b[i - 2, j - 2] = s / 9.0
        return b

    @script
    def triangle(a, b):
        c = output_tensor((10, 10), dtype="float32")
        for i in range(10):
            for j in range(i, 10):
                c[i, j] += a[i] * b[j]
        return c

    agrees(blur, [te.placeholder((12, 12), name="a")])
    agrees(triangle, [te.placeholder((10,), name="a"), te.placeholder((10,), name="b")])


def test_constants_lists_and_closures() -> None:
    n, entries, place = 8, [[1, 2], [3, 8]], 1

    @script
    def added(a, b, c):
        d = output_tensor((n,), "int32")
        for i in range(n):
            for j in const_range(len(c)):
                e = a[i] * c[j]
                e += entries[1][place] + b
                d[i] += e
        return d

    @script
    def summed(inputs):
        out = output_tensor((10,), inputs[0].dtype)
        for i in range(10):
            for j in const_range(len(inputs)):
                out[i] += inputs[j][i]
        return out

    @script
    def of_rows(a, b):
        c = output_tensor((2, 3), "int32")
        for i in const_range(len(b)):
            for j in const_range(len(b[0])):
                c[i, j] = a[i, j] + b[i, j]
        return c

    rows, t = [[1, 2, 3], [4, 5, 6]], te.placeholder((2, 3), "int32", name="t")
    result = of_rows(t, rows)
    source, actual = np.arange(6, dtype="int32").reshape(2, 3), np.zeros((2, 3), "int32")
    tecomp.build(te.create_schedule(result.op), [t, result])(source, actual)
    np.testing.assert_array_equal(actual, of_rows(source, np.array(rows)))
    a = te.placeholder((n,), "int32", name="a")
    agrees(added, [a, te.const(11), [1, 2, 3]])
    result = agrees(summed, [[te.placeholder((10,), name=f"t{k}") for k in range(5)]])
    assert len(result.op.input_tensors) == 5


def test_functions_may_call_hybrid_functions() -> None:
    @script
    def total(a, b):
        c = outer_product(10, 10, a, b)
        d = output_tensor((10, 10), c.dtype)
        for i in range(10):
            for j in range(10):
                d[i, j] = c[i, j] + i * j
        return d

    agrees(total, [te.placeholder((10,), name="a"), te.placeholder((10,), name="b")])


def test_results_of_several_shapes_are_read() -> None:
    @script
    def first(a):
        b = output_tensor((16,), "int32")
        c = output_tensor((4, 4), "int32")
        for i in range(16):
            b[i] = a[i] + 2
            c[i // 4, i % 4] = a[i] + 1
        return b, c

    @script
    def second(b, a):
        c = output_tensor((4, 4), "int32")
        for i in range(4):
            for j in range(4):
                c[i, j] = a[i * 4 + j] * b[i, j]
        return c

    a = te.placeholder((16,), "int32", name="a")
    b, c = first(a)
    d = second(c, b)
    e = te.compute((4, 4), lambda i, j: d[i, j] - 1, name="e")
    value, result = rng.integers(0, 9, 16).astype("int32"), np.zeros((4, 4), "int32")
    tecomp.build(te.create_schedule(e), [a, e])(value, result)
    x, y = first(value)
    np.testing.assert_array_equal(result, second(y, x) - 1)


def test_hybrid_variables_reread_modified_tensors() -> None:
    @script
    def swap(a):
        b = output_tensor((4,), "float32")
        for i in range(4):
            b[i] = a[i]
        for i in range(2):
            first = b[i]
            b[i] = b[3 - i]
            b[3 - i] = first
        return b

    agrees(swap, [te.placeholder((4,), name="a")])


@pytest.mark.parametrize("variant", range(4))
def test_loops_of_a_plain_definition_are_scheduled(variant: int) -> None:
    @script
    def product(a, b):
        c = output_tensor((64, 60), a.dtype)
        for i in range(64):
            for j in range(60):
                if i > j:
                    c[i, j] = a[i] * b[j] + i
                else:
                    c[i, j] = a[i] - b[j]
        return c

    a, b = te.placeholder((64,), name="a"), te.placeholder((60,), name="b")
    c = product(a, b)
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    if variant == 1:
        io, ii = s[c].split(i, 4)
        s[c].parallel(ii)
        jo, ji = s[c].split(j, 4)
        joo, joi = s[c].split(jo, 4)
        s[c].vectorize(ji)
        s[c].reorder(ii, io, joo, joi, ji)
    if variant == 2:
        s[c].fuse(i, j)
    if variant == 3:
        s[c].split(i, 3)
    x, y = rng.random(64, "float32"), rng.random(60, "float32")
    z = np.zeros((64, 60), "float32")
    tecomp.build(s, [a, b, c])(x, y, z)
    assert_close(z, product(x, y), rtol=1e-6)


A = te.placeholder((8,), name="A")


def refused(function: Any, *args: Any) -> Diagnostic:
    """Return the diagnostic, with the line relative to the decorator."""
    with pytest.raises(DefinitionError) as error:
        script(function)(*(args or (A,)))
    found = dict(error.value.parameters)
    if "line" in found:
        found["line"] -= function.__code__.co_firstlineno
    return Diagnostic(error.value.kind, **found)


def test_statements_outside_of_the_subset() -> None:
    def waits(a):
        b = output_tensor((8,), "float32")
        while True:
            b[0] = 1.0
        return b

    def over(a):
        b = output_tensor((8,), "float32")
        for x in a:
            b[0] = x
        return b

    def early(a):
        b = output_tensor((8,), "float32")
        if True:
            return b
        return b

    assert refused(waits) == (
        Diagnostic("hybrid", function="waits", line=2, source="while True:")
    )
    assert refused(over) == (
        Diagnostic("hybrid", function="over", line=2, source="for x in a:")
    )
    assert refused(early) == (
        Diagnostic("hybrid", function="early", line=3, source="return b")
    )


def test_expressions_outside_of_the_subset() -> None:
    def sliced(a):
        b = output_tensor((8,), "float32")
        b[0] = a[0:2]
        return b

    def named(a):
        b = output_tensor((8,), "float32")
        for i in range(8):
            t = a[i]
        b[0] = t
        return b

    def many(a):
        b = output_tensor((8,), "float32")
        b[0] = a[0, 1]
        return b

    def whole(a):
        b = output_tensor((8,), "float32")
        b[0] = a + 1.0
        return b

    def method(a):
        b = output_tensor((8,), "float32")
        b[0] = a.sum()
        return b

    assert refused(sliced) == (
        Diagnostic("hybrid", function="sliced", line=2, source="0:2")
    )
    assert refused(named) == (
        Diagnostic("hybrid", function="named", line=4, source="t", meant="")
    )
    assert refused(many) == (
        Diagnostic("hybrid", function="many", line=2, source="a[0, 1]", index_count=2, rank=1)
    )
    assert refused(whole) == (
        Diagnostic("hybrid", function="whole", line=2, source="a + 1.0")
    )
    assert refused(method) == (
        Diagnostic("hybrid", function="method", line=2, source="a.sum()")
    )


def refused_element(text: str) -> Diagnostic:
    """Return the diagnostic of an expression that is stored to an element."""
    name = f"<element {text}>"
    code = f"def f(a):\n    b = output_tensor((8,), 'float32')\n    b[0] = {text}\n    return b\n"
    linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name
    result: dict[str, Any] = {}
    exec(compile(code, name, "exec"), result)
    return refused(result["f"])


def of_element(text: str, **parameters: object) -> Diagnostic:
    return Diagnostic("hybrid", function="f", line=2, source=text, **parameters)


@pytest.mark.parametrize(("text", "takes", "argument"), [
    ("exp()", "1 argument", 0),
    ("exp(a[0], 2)", "1 argument", 2),
    ("float32()", "1 argument", 0),
    ("max(a.shape)", "2 arguments", 1),
    ("min(1, 2, 3)", "2 arguments", 3),
    ("max_num_threads(1, 2)", "1 argument", 2),
])  # fmt: skip
def test_functions_get_as_many_arguments_as_they_take(text: str, takes: str, argument: int) -> None:
    assert refused_element(text) == of_element(text, known_count=takes, arg_count=argument)


@pytest.mark.parametrize(("text", "why"), [
    ("1 // 0", "integer division or modulo by zero"),
    ("1 / 0", "division by zero"),
    ("ceil_div(1, 0)", "integer division or modulo by zero"),
    ("1 << -1", "negative shift count"),
    ("1.5 << 2", "unsupported operand type(s) for <<: 'float' and 'int'"),
    ("(1, 2) + 1", 'can only concatenate tuple (not "int") to tuple'),
    ("-'x'", "bad operand type for unary -: 'str'"),
    ("a.shape < 3", "'<' not supported between instances of 'tuple' and 'int'"),
])
def test_numbers_that_python_cannot_compute(text: str, why: str) -> None:
    assert refused_element(text) == of_element(text, reason=why)


@pytest.mark.parametrize("text", ["9 ** 9 ** 9", "1 << (1 << 40)", "3 ** 1100"])
def test_integers_that_are_too_long_are_not_computed(text: str) -> None:
    assert refused_element(text) == of_element(text, most_bits=1024)


def test_copies_of_a_body_and_calls_inside_of_calls_are_counted() -> None:
    def written_out(a):
        b = output_tensor((8,), "float32")
        for _ in const_range(10**7):
            b[0] = a[0]
        return b

    assert refused(written_out) == (
        Diagnostic(
            "hybrid", function="written_out", line=2, source="const_range(10**7)", detail=10**7,
            most_operations=65536,
        )
    )
    with pytest.raises(DefinitionError) as error:
        calls_itself(A)
    assert diagnostic(error.value) == (
        Diagnostic("hybrid", source="calls_itself", most_calls=32)
    )


@script
def calls_itself(a):
    b = calls_itself(a)
    return b


def test_misspelt_functions_suggest_the_nearest_name() -> None:
    def misspelt(a):
        b = output_tensor((8,), "float32")
        b[0] = sigmiod(a[0])
        return b

    assert refused(misspelt) == (
        Diagnostic(
            "hybrid", function="misspelt", line=2, source="sigmiod",
            meant="write `sigmoid` if that is meant; ",
        )
    )


def test_hybrid_lists_shapes_and_functions() -> None:
    known, plain = (1, 2), 3

    def chosen(a):
        b = output_tensor((8,), "float32")
        for i in range(2):
            b[i] = known[i]
        return b

    def indexed(a):
        b = output_tensor((8,), "float32")
        b[0] = plain[0]
        return b

    def field(a):
        b = output_tensor((8,), "float32")
        b[0] = a.ndim
        return b

    def called(a):
        b = output_tensor((8,), "float32")
        b[0] = plain(a)
        return b

    def measured(a):
        b = output_tensor((8,), "float32")
        b[0] = len(plain)
        return b

    def stored(a):
        b = output_tensor((8,), "float32")
        b[0] = known
        return b

    assert refused(chosen) == (
        Diagnostic("hybrid", function="chosen", line=3, source="known[i]")
    )
    assert refused(indexed) == (
        Diagnostic("hybrid", function="indexed", line=2, source="plain[0]")
    )
    assert refused(field) == (
        Diagnostic("hybrid", function="field", line=2, source="a.ndim")
    )
    assert refused(called) == (
        Diagnostic("hybrid", function="called", line=2, source="plain(a)")
    )
    assert refused(measured) == (
        Diagnostic("hybrid", function="measured", line=2, source="len(plain)")
    )
    assert refused(stored) == (
        Diagnostic("hybrid", function="stored", line=2, source="known")
    )


def test_modified_inputs_are_copied() -> None:
    @script
    def turned(a, n):
        for i in range(n // 2):
            first = a[i]
            a[i] = a[n - 1 - i]
            a[n - 1 - i] = first
        c = output_tensor(a.shape, a.dtype)
        for i in range(n):
            c[i] = a[i]
        return c

    @script
    def twice(a, b, n):
        a[0] = a[0] + b[0]
        c = turned(a, n)
        d = output_tensor((n,), a.dtype)
        for i in range(n):
            d[i] = a[i] + c[i] * b[i] + b[i]
        return d

    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    agrees(turned, [A, n], {n: 7})
    agrees(twice, [A, B, n], {n: 7})

    C = twice(A, B, n)
    a, c = np.arange(7, dtype="float32"), np.empty(7, "float32")
    tecomp.build(te.create_schedule(C.op), [n, A, B, C])(7, a, a, c)
    assert a.tolist() == [*range(7)]


def test_memory_of_sizes_of_the_call() -> None:
    @script
    def shifted(a, n):
        wide = allocate((n + 2, 3), a.dtype)
        for i in range(n):
            wide[i + 1, i % 3] = a[i]
        c = output_tensor((n,), a.dtype)
        for i in range(n):
            c[n - 1 - i] = wide[i + 1, i % 3] * 2
        return c

    n = te.var("n")
    agrees(shifted, [te.placeholder((n,), name="A"), n], {n: 5})


def test_hybrid_functions_run_as_python_without_tensors() -> None:
    @script
    def plus(a, b):
        c = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            c[i] = a[i] + b[i]
        return c

    for source, says in (
        ((), f"{plus.__qualname__}() missing 2 required positional arguments: 'a' and 'b'"),
        ((3, 4), "'int' object has no attribute 'shape'"),
    ):
        with pytest.raises(TypeMismatchError) as error:
            plus(*source)
        assert diagnostic(error.value) == (
            Diagnostic("hybrid", function="plus", arguments=', '.join(map(repr, source)), reason=says)
        )
    with pytest.raises(IndexError):
        plus(np.ones(3), np.ones(2))


def test_stores_and_results() -> None:
    def forgets(a):
        b = output_tensor((8,), "float32")
        c = output_tensor((8,), "float32")
        b[0] = 1.0
        c[0] = 1.0
        return b

    def returns(a):
        b = output_tensor((8,), "float32")
        b[0] = 1.0
        return b[0]

    def inside(a):
        b = allocate((8,), "float32")
        b[0] = 1.0
        return b

    def nothing(a):
        b = output_tensor((8,), "float32")
        b[0] = 1.0

    def types(a):
        b = output_tensor((8,), "float32")
        b[a[0]] = 1.0
        return b

    assert refused(forgets) == (
        Diagnostic("hybrid", source="forgets", missing="c")
    )
    assert refused(inside) == (
        Diagnostic("hybrid", source="inside")
    )
    assert refused(returns) == (
        Diagnostic("hybrid", function="returns", line=3, source="b[0]")
    )
    assert refused(nothing) == (
        Diagnostic("hybrid", function="nothing", line=2, source="b[0] = 1.0")
    )
    assert refused(types) == (
        Diagnostic(
            "hybrid", function="types", line=2, source="b[a[0]] = 1.0",
            reason="operand b[...]: index 0 is A[0] (float32); pass an integer, or convert it with "
            '.astype("int64") if that is intended',
        )
    )
    assert refused(nothing, A, A) == (
        Diagnostic(
            "count-mismatch", source="nothing", arguments="1 argument", names="a", argument_count=2,
        )
    )


def test_hybrid_script_requires_a_function() -> None:
    with pytest.raises(TypeMismatchError) as error:
        script(3)
    assert diagnostic(error.value) == (
        Diagnostic("hybrid", pyfunc=3)
    )
    assert refused(eval(compile("lambda a: a", "<nowhere>", "eval"))) == (
        Diagnostic("hybrid", function="<lambda>")
    )


def test_functions_with_formulas_run_in_python() -> None:
    @te.hybrid.script
    def gamma(x):  # type: ignore[no-untyped-def]
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = lgamma(x[i]) + digamma(x[i]) + erfinv(x[i] / 8.0)
        return y

    x = np.array([0.5, 1.0, 2.5, 7.0])
    expected = special.gammaln(x) + special.digamma(x) + special.erfinv(x / 8)
    np.testing.assert_allclose(gamma(x), expected, rtol=1e-14)
