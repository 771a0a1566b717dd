"""Declarations of tensor intrinsics, and their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tecomp
from tecomp import te
from tecomp.compute import LOOP_KINDS
from tests.messages import Diagnostic, diagnostic


def doubled(shape: tuple[Any, ...] = (8,)) -> tuple[te.Tensor, te.Tensor]:
    a = te.placeholder(shape, name="a")
    return a, te.compute(shape, lambda *i: a(*i) * 2.0, name="b")


def refused(call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(tecomp.TecompError) as caught:
        call()
    return diagnostic(caught.value)


def store(ins: Any, outs: Any) -> Any:
    return outs[0].store(0, ins[0][0])


def test_operands_match_the_definition() -> None:
    a, b = doubled((4, 6))
    seen: list[te.Operand] = []

    def statement(ins: Any, outs: Any) -> Any:
        seen.extend([*ins, *outs])
        return outs[0].store((0, 1), ins[0][2, 3])

    intrin = te.decl_tensor_intrin(
        b, statement, "twice", binds={a: te.decl_buffer(a.shape, scope="local")},
        default_buffer_params={"scope": "global"}, check="never",
    )

    assert [(o.name, o.shape, o.dtype, o.scope) for o in seen] == [
        ("a", (4, 6), "float32", "local"), ("b", (4, 6), "float32", "global"),
    ]
    assert str(intrin.body) == "b[0, 1] = a[2, 3]"
    assert (intrin.reset, intrin.update, intrin.scopes) == (None, None, ("local", "global"))
    assert repr(intrin) == "TensorIntrin(twice: b[i0, i1] = a[i0, i1] * float32(2.0))"


def test_numbers_are_stored_in_the_type_of_the_operand() -> None:
    a = te.placeholder((2,), "int8", name="a")
    b = te.compute((2,), lambda i: a[i] + a[i], name="b")

    intrin = te.decl_tensor_intrin(
        b, lambda ins, outs: te.stmt_seq(
            outs[0].store(0, 1), outs[0].store(1, ins[0][0].astype("int32"))), "two",
        check="never",
    )

    assert str(intrin.body) == 'b[0] = int8(1)\nb[1] = cast("int8", cast("int32", a[0]))'


def test_loops() -> None:
    _, b = doubled()

    intrin = te.decl_tensor_intrin(
        b, lambda ins, outs: te.for_range(
            2, 8, lambda i: outs[0].store(i, ins[0][i]), "lane", "vectorized"), "part",
        check="never",
    )

    assert str(intrin.body) == "for lane in vectorized(2, extent=6):\n    b[lane] = a[lane]"


def test_invalid_definitions_of_intrinsics() -> None:
    a, b = doubled()
    n = te.var("n")
    assert refused(lambda: te.decl_tensor_intrin(a.op, store)) == (
        Diagnostic(
            "intrinsic", where="te.decl_tensor_intrin tensor_intrin",
            op='a = placeholder((8,), "float32")',
        )
    )
    chained = te.compute((8,), lambda i: b[i] + 1.0, name="c")
    assert refused(lambda: te.decl_tensor_intrin(chained, store, "x")) == (
        Diagnostic("intrinsic", where="te.decl_tensor_intrin x", compute="c", tensor="b")
    )
    assert refused(lambda: te.decl_tensor_intrin(doubled((0,))[1], store, "x")) == (
        Diagnostic("intrinsic", where="te.decl_tensor_intrin x", compute="b", extents=[0])
    )
    assert te.decl_tensor_intrin(doubled((n,))[1], store, "x").sizes == (n,)
    k = te.reduce_axis((0, 8), name="k")
    summed = te.compute((1,), lambda i: te.sum(a[k], axis=k, init=1.0), name="s")
    assert refused(lambda: te.decl_tensor_intrin(summed, store, "x")) == (
        Diagnostic("intrinsic", where="te.decl_tensor_intrin x")
    )
    pair = te.compute((8,), lambda i: (a[i], a[i]), name="p")
    assert refused(lambda: te.decl_tensor_intrin(pair[0], store, "x")) == (
        Diagnostic("intrinsic", where="te.decl_tensor_intrin x", compute="p", num_outputs=2)
    )
    twice = te.compute((4,), lambda i: a[i] + a[i + 4], name="t")
    assert refused(lambda: te.decl_tensor_intrin(twice, store, "x")) == (
        Diagnostic(
            "intrinsic", where="te.decl_tensor_intrin x", compute="t", tensor="a", found_count=2,
        )
    )


def test_invalid_statements_of_intrinsics() -> None:
    _, b = doubled()
    source: Any = 3
    assert refused(lambda: te.decl_tensor_intrin(b, lambda i, o: source, "x")) == (
        Diagnostic("intrinsic", where="te.decl_tensor_intrin x", value=3)
    )
    assert refused(lambda: te.decl_tensor_intrin(b, lambda i, o: (None, None, None), "x")) == (
        Diagnostic("intrinsic", where="te.decl_tensor_intrin x")
    )
    other = te.decl_tensor_intrin(doubled()[1], store, "y", check="never")
    foreign: Any = other.body
    assert refused(lambda: te.decl_tensor_intrin(b, lambda i, o: foreign, "x")) == (
        Diagnostic("statements", where="te.decl_tensor_intrin x", buffer="b")
    )
    n = te.var("n")
    assert refused(lambda: te.decl_tensor_intrin(b, lambda i, o: o[0].store(n, 1), "x")) == (
        Diagnostic(
            "unbound-variable", where="te.decl_tensor_intrin x", var="n",
            remedy="declare it in scalar_params",
        )
    )
    assert refused(lambda: te.decl_tensor_intrin(b, lambda i, o: o[0].store((0, 1), 1), "x")) == (
        Diagnostic("index-count", name="b", rank=1, given_count=2)
    )
    assert refused(lambda: te.for_range(0, 4, lambda i: te.stmt_seq(), "i", "spiral")) == (
        Diagnostic("unknown-choice", form="spiral", kinds=", ".join(LOOP_KINDS))
    )


def test_invalid_operand_requirements() -> None:
    a, b = doubled()
    strange = te.placeholder((8,), name="z")
    assert refused(
        lambda: te.decl_tensor_intrin(b, store, "x", default_buffer_params={"strides": "1"})
    ) == (
        Diagnostic("intrinsic", where="te.decl_tensor_intrin x", unknown="strides")
    )
    assert refused(
        lambda: te.decl_tensor_intrin(b, store, "x", binds={strange: te.decl_buffer((8,))})
    ) == Diagnostic("intrinsic", where="te.decl_tensor_intrin x", strange="z", owner="b")
    apart = te.decl_buffer((8,), name="apart", strides=[2])
    assert refused(lambda: te.decl_tensor_intrin(b, store, "x", binds={a: apart})) == (
        Diagnostic(
            "definition", where="te.decl_tensor_intrin x: binds: apart", axis=0, requested_stride=2, actual_stride="1",
        )
    )


def test_vectors_are_joined_elements() -> None:
    a = te.placeholder((2, 4), "int8", name="a")
    c = te.compute((2,), lambda i: a[i, 0].astype("int32"), name="c")
    seen: list[str | Diagnostic] = []

    def statement(ins: Any, outs: Any) -> Any:
        seen.append(str(ins[0].vload((1, 0), "int8x4")))
        seen.append(refused(lambda: ins[0].vload((1, 0), "int16x4")))
        seen.append(refused(lambda: ins[0].vload((1, 0), "int8x3")))
        return outs[0].store(0, 0)

    te.decl_tensor_intrin(c, statement, "x", check="never")

    assert seen == [
        "join(join(a[1, 0], a[1, 1]), join(a[1, 2], a[1, 3]))",
        Diagnostic("dtype", name="a", dtype="int16x4", subject_dtype="int8"),
        Diagnostic("dtype", name="a", dtype="int8x3", subject_dtype="int8"),
    ]


def product() -> te.Tensor:
    a, b = te.placeholder((3, 4), "int8", name="a"), te.placeholder((4, 2), "int8", name="b")
    k = te.reduce_axis((0, 4), name="k")
    return te.compute((3, 2), lambda i, j: te.sum(
        a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="c")


def statements_of_product(
    first: int = 0, start: int = 0, depth: int = 4, columns: int = 2
) -> Callable[[Any, Any], Any]:
    """Return the statements of `product`, with parts left out by the parameters."""

    def statements(ins: Any, outs: Any) -> Any:
        (a, b), (c,) = ins, outs

        def all_of(value: Callable[[Any, Any], Any]) -> Any:
            return te.for_range(0, 3, lambda i: te.for_range(0, columns, lambda j: c.store(
                (i, j), value(i, j))))

        def add(k: Any) -> Any:
            return all_of(lambda i, j: c[i, j] + a[i, k].astype("int32") * b[k, j].astype("int32"))

        reset = all_of(lambda i, j: start)
        update = te.for_range(first, depth, add)
        return te.stmt_seq(reset, update), reset, update

    return statements


@pytest.mark.parametrize(
    ("wrong", "stored"), [({"first": 1}, -10237), ({"depth": 3}, -21157), ({"start": 1}, -22236)]
)
def test_check_tensor_intrin_detects_wrong_statements(wrong: dict[str, int], stored: int) -> None:
    assert refused(
        lambda: te.decl_tensor_intrin(product(), statements_of_product(**wrong), "x")
    ) == (
        Diagnostic(
            "intrinsic", intrin="x",
            found=f"the body stores {stored} at c[0, 0], where the definition gives -22237, for "
            "a[0, :] = [100, -57, -62, -10], b[:, 0] = [-120,   41,  110,  108]",
        )
    )


@pytest.mark.parametrize(("part", "expected"), [("body", -20266), ("reset", 0), ("update", -19986)])
def test_each_part_is_run(part: str, expected: int) -> None:
    right, wrong = statements_of_product(), statements_of_product(columns=1)

    def statements(ins: Any, outs: Any) -> Any:
        chosen = zip(("body", "reset", "update"), right(ins, outs), wrong(ins, outs), strict=True)
        return tuple(b if name == part else a for name, a, b in chosen)

    te.decl_tensor_intrin(product(), right, "right")

    assert refused(lambda: te.decl_tensor_intrin(product(), statements, "x")) == (
        Diagnostic(
            "intrinsic", intrin="x",
            found=f"the {part} stores 280 at c[0, 1], where the definition gives {expected}, for "
            "a[0, :] = [100, -57, -62, -10], b[:, 1] = [-103,  124,   49,  -14]",
        )
    )


def test_a_body_that_multiplies_by_another_number() -> None:
    _, b = doubled()

    def times_5(ins: Any, outs: Any) -> Any:
        return te.for_range(0, 8, lambda i: outs[0].store(i, ins[0][i] * 5.0))

    expected = (Diagnostic(
        "intrinsic", intrin="tensor_intrin",
        found="the body stores -18.75 at b[0], where the definition gives -7.5, for a[0] = -3.75",
    ))
    assert refused(lambda: te.decl_tensor_intrin(b, times_5)) == expected
    later = te.decl_tensor_intrin(b, times_5, check="later")
    assert refused(lambda: te.check_tensor_intrin(later)) == expected
    assert te.decl_tensor_intrin(b, times_5, check="never").check == "never"


@pytest.mark.parametrize(
    ("dtype", "exact", "wrong"),
    [("float64", 1e-15, 1e-12), ("float64", 1e-15, 2e-6), ("float32", 2e-6, 2e-5),
     ("float16", 1e-3, 1e-2), ("bfloat16", 1e-2, 1e-1)],
)
def test_tolerance_depends_on_the_dtype(
    dtype: str, exact: float, wrong: float
) -> None:
    """Sums of four products may differ by rounding errors only."""
    a, k = te.placeholder((3, 4), dtype, name="a"), te.reduce_axis((0, 4), name="k")
    b = te.compute((3,), lambda i: te.sum(a[i, k] * a[i, k], axis=k), name="b")

    def off(by: float) -> Callable[[Any, Any], Any]:
        def statements(ins: Any, outs: Any) -> Any:
            def value(i: Any) -> Any:
                total = sum(ins[0][i, n] * ins[0][i, n] for n in range(4))
                return (total.astype("float64") * te.const(1 + by, "float64")).astype(dtype)

            return te.for_range(0, 3, lambda i: outs[0].store(i, value(i)))

        return statements

    te.decl_tensor_intrin(b, off(exact), "near")
    message = refused(lambda: te.decl_tensor_intrin(b, off(wrong), "far"))
    found = message.parameters["found"]
    assert message == Diagnostic("intrinsic", intrin="far", found=found)
    assert found.startswith("the body stores ")


def test_a_body_of_float64_that_is_wrong_in_the_sixth_digit() -> None:
    a = te.placeholder((2,), "float64", name="a")
    b = te.compute((2,), lambda i: a[i] / te.const(3.0, "float64"), name="b")

    def rough(ins: Any, outs: Any) -> Any:
        third = te.const(0.333333, "float64")
        return te.for_range(0, 2, lambda i: outs[0].store(i, ins[0][i] * third))

    assert refused(lambda: te.decl_tensor_intrin(b, rough, "x")) == (
        Diagnostic(
            "intrinsic", intrin="x",
            found="the body stores -1.24999875 at b[0], where the definition gives -1.25, for a[0] = -3.75",
        )
    )


def test_a_body_with_a_number_and_one_that_reaches_outside() -> None:
    a, n = te.placeholder((8,), "float16", name="a"), te.var("n", "float16")
    b = te.compute((8,), lambda i: a[i] * n, name="b")

    def moved(by: int) -> Callable[..., Any]:
        return lambda ins, outs, numbers: te.for_range(
            0, 8, lambda i: outs[0].store(i, ins[0][i + by] * numbers[0]))

    te.decl_tensor_intrin(b, moved(0), "x", scalar_params=[n])
    assert refused(lambda: te.decl_tensor_intrin(b, moved(1), "x", scalar_params=[n])) == (
        Diagnostic(
            "intrinsic", intrin="x",
            found="the body cannot be run: a[8] is out of bounds: shape (8,)",
        )
    )


def test_when_a_body_is_checked() -> None:
    source: Any = "soon"
    assert refused(lambda: te.decl_tensor_intrin(doubled()[1], store, "x", check=source)) == (
        Diagnostic("unknown-choice", where="te.decl_tensor_intrin x", check="soon")
    )
