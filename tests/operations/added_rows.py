"""Add a row to the source of each table, and use the new function, reduction and dtype everywhere.

`python -m tests.operations.added_rows` runs in a process of its own, as other modules derive names
from the tables when they are imported. No file but those of the tables differs from the product.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

FORMULA = '''
def sinc(m: Algebra, x: Any) -> Any:
    angle = m.constant(pi, x) * x
    return m.where(m.equal(x, 0.0), m.constant(1.0, x), m.function("sin", angle) / angle)
'''
ADDED = {
    "formulas": [
        ("from math import inf, nan\n", "from math import inf, nan, pi\n"),
        ("_LOG_2 = ", f"{FORMULA}\n\n_LOG_2 = "),
    ],
    "elementwise": [("UNARY = (\n", '''UNARY = (
    Op(
        "sinc", "Compute `sin(pi x) / (pi x)` element-wise; 1 at 0.", FLOATS, example="[0.0, 0.5]",
        shown="Array([1.        , 0.63661977], dtype=float64)", call="sinc", formula=formulas.sinc,
        ulps=(8.0, 8.0), cost=16, surfaces="te topi array",
    ),
''')],
    "reductions": [("_ROWS = (\n", '''_ROWS = (
    Reduction(
        "magnitude", "Compute the square root of the sum of squares.", FLOATS, "sum",
        "Array of magnitudes.", "[3.0, 4.0]", "Array(5., dtype=float64)",
        term=lambda m, x, center: m.squared_magnitude(x),
        finish=lambda m, total, count, center: m.sqrt(total), surfaces="topi array",
    ),
    Reduction(
        "sum_of_squares", "Compute the sum of squares.", FLOATS, "sum", "Array of sums.",
        "[3.0, 4.0]", "Array(25., dtype=float64)",
        term=lambda m, x, center: m.squared_magnitude(x), surfaces="topi array",
    ),
''')],
    "element_types": [("ELEMENT_TYPES = (\n", '''ELEMENT_TYPES = (
    ElementType("float8_e3m4", "float", 8, 4, 3, in_arrays=False),
''')],
}


def import_with_rows(name: str) -> None:
    """Import a table whose source has the added rows."""
    module = f"tecomp.operations.{name}"
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    for text, replacement in ADDED[name]:
        assert source.count(text) == 1, text
        source = source.replace(text, replacement)
    sys.modules[module] = table = module_from_spec(spec)
    exec(compile(source, spec.origin, "exec"), table.__dict__)


def load(*modules: str) -> list[Any]:
    """Return modules of the product, whose types lack the names of added rows."""
    return [import_module(f"tecomp{name}") for name in modules]


def use_function() -> None:
    """Compare the function with NumPy as intrinsic, expression, operator, array and statement."""
    tecomp, te, tir, topi, xp = load("", ".te", ".tir", ".topi", ".array")
    assert tir.sinc is te.sinc
    assert "sin(pi x)" in str(te.sinc.__doc__)
    assert "xp.sinc(" in str(xp.sinc.__doc__)
    for dtype in ("float32", "float16"):
        x = np.linspace(-3, 3, 61).astype(dtype)
        wanted, unit = np.sinc(x.astype("float64")), 16 * float(np.finfo(dtype).eps)
        A = te.placeholder(x.shape, dtype, name="A")
        B = te.compute(x.shape, lambda i, A=A: te.sinc(A[i]), name="B")
        func = tecomp.lower(te.create_schedule(B.op), [A, B])
        assert str(import_module("tecomp.ir").parse(str(func))) == str(func)
        interpreted = np.empty_like(x)
        tecomp.evaluate(func, [x, interpreted])
        total = xp.sum(xp.sinc(xp.astype(xp.asarray(x), dtype)) * 2 + 1, dtype=xp.float64)
        for result in (interpreted, *tecomp.compile([B, topi.sinc(A)], [A])(x)):
            np.testing.assert_allclose(result.astype("float64"), wanted, atol=unit)
        np.testing.assert_allclose(float(total), (wanted * 2 + 1).sum(), atol=61 * unit)


def use_reductions() -> None:
    """Compare the reductions with NumPy as operators of topi and as functions of arrays."""
    tecomp, te, topi, xp = load("", ".te", ".topi", ".array")
    values = np.arange(12.0).reshape(3, 4) - 3
    squares = values * values
    for dtype, axis in (("float16", 1), ("float64", None)):
        x = xp.astype(xp.asarray(values), dtype)
        A = te.placeholder((3, 4), dtype, name="A")
        wanted = [squares.sum(axis), np.sqrt(squares.sum(axis))]
        operators = [topi.sum_of_squares(A, axis), topi.magnitude(A, axis)]
        arrays = [xp.sum_of_squares(x, axis=axis), xp.magnitude(x, axis=axis)]
        compiled = tecomp.compile(operators, [A])(values.astype(dtype))
        for results in (compiled, map(np.asarray, arrays)):
            for result, exact in zip(results, wanted, strict=True):
                np.testing.assert_allclose(result.astype("float64"), exact, rtol=2e-3)


def use_dtype() -> None:
    """Compare conversions with those of ml_dtypes, compiled and interpreted, and the format."""
    tecomp, te = load("", ".te")
    name, kind = "float8_e3m4", np.dtype(ml_dtypes.float8_e3m4)
    x = np.random.default_rng(0).standard_normal(512).astype("float32") * 8
    with np.errstate(over="ignore"):
        wanted = x.astype(kind)
    A = te.placeholder(x.shape, name="A")
    B = te.compute(x.shape, lambda i: te.cast(A[i], name), name="B")
    C = te.compute(x.shape, lambda i: te.cast(B[i] * te.const(0.5, name), "float32"), name="C")
    found, halves = tecomp.compile([B, C], [A])(x)
    interpreted = np.empty_like(wanted)
    tecomp.evaluate(tecomp.lower(te.create_schedule(B.op), [A, B]), [x, interpreted])
    for result in (found, interpreted):
        assert np.array_equal(result.view(np.uint8), wanted.view(np.uint8))
    assert np.array_equal(halves, (wanted * kind.type(0.5)).astype("float32"))
    stored = tecomp.storage_format(name).encode_array(x)
    assert np.array_equal(stored, wanted.view(np.uint8))


if __name__ == "__main__":
    for table in ("element_types", "formulas", "elementwise", "reductions"):
        import_with_rows(table)
    use_function()
    use_reductions()
    use_dtype()
