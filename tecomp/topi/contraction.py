"""Contractions: matrix products, tensordot and einsum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp import DefinitionError, te
from tecomp.errors import safe_str
from tecomp.ir.nodes.argument_checks import broadcast_shape, shape_text
from tecomp.schedules import matmul as library
from tecomp.schedules.common import wide_type
from tecomp.topi.extents import Size, equal, product
from tecomp.topi.transform.views import reshape
from tecomp.topi.validation import as_bool, as_list, axis_of, integer_of, tensor_of


def matmul(
    a: te.Tensor, b: te.Tensor, transp_a: bool = False, transp_b: bool = False
) -> te.Tensor:
    """Compute the matrix product in the dtype of `a`; leading axes are broadcast.

    float16 and bfloat16 products are accumulated in float32.

    Args:
        a: Matrices, shape (..., m, k), or (..., k, m) if transposed.
        b: Matrices, shape (..., k, n), or (..., n, k) if transposed.
        transp_a: If True, transpose the last two axes of `a`.
        transp_b: If True, transpose the last two axes of `b`.

    Raises:
        DefinitionError: If the shapes do not match.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((6, 8), name="B")
    >>> matmul(A, B, transp_b=True).shape
    (4, 6)
    """
    return define_matmul(a, b, transp_a, transp_b, None, "topi.matmul", "T_matmul")


def define_matmul(
    a: te.Tensor, b: te.Tensor, transpose_a: bool, transpose_b: bool, dtype: str | None,
    where: str, name: str, bias: te.Tensor | None = None,
) -> te.Tensor:
    """Define a matrix product with `tecomp.schedules.matmul`, which requires equal batch shapes."""
    a, b = tensor_of(a, where, "a"), tensor_of(b, where, "b")
    transpose_a = as_bool(transpose_a, where, "the flag transpose_a")
    transpose_b = as_bool(transpose_b, where, "the flag transpose_b")
    if a.ndim < 2 or b.ndim < 2:
        raise DefinitionError(
            "{where}: operands must have at least 2 axes, got shapes {shape} and {b_shape}",
            kind="shapes", where=where, shape=shape_text(a.shape), b_shape=shape_text(b.shape),
        )
    depth = a.shape[-2 if transpose_a else -1]
    other = b.shape[-1 if transpose_b else -2]
    if not equal(depth, other):
        raise DefinitionError(
            "{where}: {a} has shape {shape}{a_transposed} and {b} has shape "
            "{b_shape}{b_transposed}: the contracted extents {depth} and {other} differ; make "
            "them equal",
            kind="shapes", where=where, a=a.name, shape=shape_text(a.shape),
            a_transposed=", transposed," if transpose_a else "", b=b.name,
            b_shape=shape_text(b.shape), b_transposed=", transposed" if transpose_b else "",
            depth=depth, other=other,
        )
    kind = dtype or _sum_type(a.dtype)
    if a.ndim > 2 and b.ndim == 2 and not transpose_a:
        # `b` is shared by all batches, so the batches of `a` merge into one matrix.
        rows = reshape(a, (product(a.shape[:-1]), a.shape[-1]))
        done = define_matmul(rows, b, False, transpose_b, kind, where, name, bias)
        return reshape(done, (*a.shape[:-1], done.shape[-1]))
    outer = broadcast_shape([a.shape[:-2], b.shape[:-2]], where)
    a, b = (_batches(x, outer) for x in (a, b))
    a, b = (_as_number(x, kind) for x in (a, b))
    result: te.Tensor = library.define(
        a, b, transpose_a=transpose_a, transpose_b=transpose_b, bias=bias,
        out_dtype=kind, name=name)
    return result


def _sum_type(dtype: str) -> str:
    return "int32" if dtype == "bool" else dtype


def _batches(x: te.Tensor, outer: Sequence[Size]) -> te.Tensor:
    """Broadcast the leading axes of `x` to `outer`."""
    if x.ndim - 2 == len(outer) and all(map(equal, x.shape, outer)):
        return x
    shape = (*outer, *x.shape[-2:])

    def value(*i: te.Expr) -> te.Expr:
        outer_index = i[len(outer) + 2 - x.ndim : len(outer)]
        index: list[Any] = [
            0 if equal(n, 1) else axis for n, axis in zip(x.shape, outer_index, strict=False)]
        return x(*index, *i[-2:])

    return te.compute(shape, value, name=f"{x.name}_batches")


def _as_number(x: te.Tensor, dtype: str) -> te.Tensor:
    """Cast a bool tensor to numbers; the library converts other dtypes itself."""
    if not x.dtype.is_bool:
        return x
    return te.compute(x.shape, lambda *i: te.cast(x(*i), dtype), name=f"{x.name}_counted")


def tensordot(
    a: te.Tensor, b: te.Tensor, axes: int | Sequence[int] | Sequence[Sequence[int]]
) -> te.Tensor:
    """Contract the given axes of two tensors, as `numpy.tensordot`.

    Args:
        a: Input tensor.
        b: Input tensor.
        axes: Number of last axes of `a` and first axes of `b` to contract, or a pair of axis lists,
            one for each tensor.

    Raises:
        DefinitionError: If an axis is out of bounds, or if the extents of contracted axes differ.

    >>> A, B = te.placeholder((3, 4, 5), name="A"), te.placeholder((5, 4, 6), name="B")
    >>> tensordot(A, B, 1).shape, tensordot(A, B, ((1, 2), (1, 0))).shape
    ((3, 4, 4, 6), (3, 6))
    """
    where = "topi.tensordot"
    a, b = tensor_of(a, where, "a"), tensor_of(b, where, "b")
    of_a, of_b = _axes(a, b, axes, where)
    letters = iter(_LETTERS)
    first = [next(letters) for _ in a.shape]
    second = [next(letters) for _ in b.shape]
    for k, j in zip(of_a, of_b, strict=True):
        if not equal(a.shape[k], b.shape[j]):
            raise DefinitionError(
                "{where}: axis {k} of {a}, shape {shape}, and axis {j} of {b}, shape {b_shape}, "
                "have different extents {extent} and {other_extent}; make them equal",
                kind="shapes", where=where, k=k, a=a.name, shape=shape_text(a.shape), j=j,
                b=b.name, b_shape=shape_text(b.shape), extent=a.shape[k], other_extent=b.shape[j],
            )
        second[j] = first[k]
    shared = {first[k] for k in of_a}
    free = [letter for letter in (*first, *second) if letter not in shared]
    return _contract([_Term(a, first), _Term(b, second)], free, where, "T_tensordot")


def _axes(a: te.Tensor, b: te.Tensor, axes: Any, where: str) -> tuple[list[int], list[int]]:
    if not isinstance(axes, list | tuple):
        count = integer_of(axes, where, "axes", least=0)
        if count > min(a.ndim, b.ndim):
            raise DefinitionError(
                "{where}: axes={count!r} exceeds the rank of an operand: the tensors have {ndim} "
                "and {b_ndim} axes; pass at most the smaller rank",
                kind="count-mismatch", where=where, count=count, ndim=a.ndim, b_ndim=b.ndim,
            )
        return list(range(a.ndim - count, a.ndim)), list(range(count))
    pairs = [[item] if isinstance(item, int) else as_list(item, where, f"axes[{k}]")
             for k, item in enumerate(axes)]
    if len(pairs) != 2 or len(pairs[0]) != len(pairs[1]):
        raise DefinitionError(
            "{where}: axes={axes!r} is not a pair of equally long lists; pass (axes of a, axes of "
            "b)",
            kind="count-mismatch", where=where, axes=axes,
        )
    return (
        [axis_of(k, a.ndim, where, "an axis of a") for k in pairs[0]],
        [axis_of(k, b.ndim, where, "an axis of b") for k in pairs[1]],
    )


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class _Term:
    """Tensor with a subscript letter for each axis."""

    tensor: te.Tensor
    letters: Sequence[str]


def einsum(subscripts: str, *operand: te.Tensor | Sequence[te.Tensor]) -> te.Tensor:
    """Contract tensors by Einstein summation, as `numpy.einsum`.

    Several operands are contracted pairwise from the left.

    Args:
        subscripts: Letters for the axes of each operand, as in `ij,jk->ik`; `...` represents the
            remaining axes, which are broadcast. Without `->`, the result has the broadcast axes and
            then the letters that occur once, in alphabetical order.
        operand: Input tensors.

    Raises:
        DefinitionError: If the subscripts are malformed, or if the extents of a letter differ.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 6), name="B")
    >>> einsum("ij,jk->ki", A, B).shape
    (6, 4)
    """
    where = "topi.einsum"
    operands = operand[0] if len(operand) == 1 and isinstance(operand[0], list | tuple) else operand
    tensors = [tensor_of(x, where, f"operand {k}") for k, x in enumerate(operands)]
    terms, result = _read(subscripts, tensors, where)
    while len(terms) > 2:
        later = {letter for term in terms[2:] for letter in term.letters} | set(result)
        retained = list(dict.fromkeys(
            letter for term in terms[:2] for letter in term.letters if letter in later))
        pair = _contract(terms[:2], retained, where, "T_einsum_pair")
        terms = [_Term(pair, retained), *terms[2:]]
    return _contract(terms, result, where, "T_einsum")


def _read(
    subscripts: str, tensors: Sequence[te.Tensor], where: str
) -> tuple[list[_Term], list[str]]:
    """Parse subscripts into terms and result letters; `...` becomes numbered letters."""
    text = safe_str(subscripts).replace(" ", "")
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    text_letters = text.replace("->", "").replace(",", "").replace("...", "")
    well_formed = all(letter in _LETTERS for letter in text_letters) and len(parts) == len(tensors)
    if not well_formed or any(part.count("...") > 1 for part in (*parts, output)):
        raise DefinitionError(
            "{where}: subscripts {subscripts!r} do not match {tensor_count} operands; write "
            "comma-separated letters for each operand, as in 'ij,jk->ik'",
            kind="count-mismatch", where=where, subscripts=subscripts, tensor_count=len(tensors),
        )
    terms = [_term(part, x, where) for part, x in zip(parts, tensors, strict=True)]
    ellipsis_axes = sorted(
        {letter for term in terms for letter in term.letters if len(letter) > 1}, reverse=True)
    letters = [letter for term in terms for letter in term.letters if len(letter) == 1]
    if not arrow:
        once = sorted(letter for letter in letters if letters.count(letter) == 1)
        return terms, [*ellipsis_axes, *once]
    before, dots, after = output.partition("...")
    if ellipsis_axes and not dots:
        raise DefinitionError(
            "{where}: the output of {subscripts!r} lacks `...`, which stands for axes of the "
            "operands; write `...` in the output too, or write letters for the axes that are "
            "summed",
            kind="index-count", where=where, subscripts=subscripts,
        )
    result = [*before, *ellipsis_axes, *after]
    unknown = [letter for letter in result if len(letter) == 1 and letter not in letters]
    if unknown or len(set(result)) < len(result):
        raise DefinitionError(
            "{where}: the output of {subscripts!r} contains {unknown}; it must contain only "
            "letters of the operands, each once",
            kind="duplicate-argument", where=where, subscripts=subscripts,
            unknown="".join(unknown) or output,
        )
    return terms, result


def _term(part: str, x: te.Tensor, where: str) -> _Term:
    before, dots, after = part.partition("...")
    n_ellipsis = x.ndim - len(before) - len(after)
    if n_ellipsis < 0 or (n_ellipsis and not dots):
        raise DefinitionError(
            "{where}: subscript {part!r} has {count} letters for {x}, shape {shape}; write one "
            "letter per axis",
            kind="count-mismatch", where=where, part=part, count=len(before) + len(after), x=x.name,
            shape=shape_text(x.shape),
        )
    # Axes of `...` are numbered from the last axis, so that they align across operands.
    return _Term(x, [*before, *(f"...{k:03}" for k in reversed(range(n_ellipsis))), *after])


def _extents(terms: Sequence[_Term], where: str) -> Mapping[str, Size]:
    """Return the extent of each letter; letters of `...` broadcast extents of 1."""
    extents: dict[str, Size] = {}
    for term in terms:
        for letter, extent in zip(term.letters, term.tensor.shape, strict=True):
            known = extents.setdefault(letter, extent)
            if equal(known, 1) and len(letter) > 1:
                extents[letter] = extent
            elif not equal(known, extent) and not (equal(extent, 1) and len(letter) > 1):
                named = "`...`" if len(letter) > 1 else letter
                raise DefinitionError(
                    "{where}: {named} has extent {known}, but extent {extent} in {tensor}, shape "
                    "{shape}; make them equal",
                    kind="shapes", where=where, named=named, known=known, extent=extent,
                    tensor=term.tensor.name, shape=shape_text(term.tensor.shape),
                )
    return extents


def _contract(
    terms: Sequence[_Term], result: Sequence[str], where: str, name: str
) -> te.Tensor:
    """Define the product of the terms, summed over all letters that the result does not have."""
    extents = _extents(terms, where)
    summed = [letter for letter in extents if letter not in result]
    runs = {
        letter: te.reduce_axis((0, extents[letter]), name=f"k{k}")
        for k, letter in enumerate(summed)
    }
    dtype = terms[0].tensor.dtype if len(terms) == 1 else _common_dtype(terms)
    kind = _sum_type(dtype)
    wide_dtype = wide_type(kind)

    def total(*i: te.Expr) -> te.Expr:
        index_of: dict[str, Any] = dict(zip(result, i, strict=True)) | runs
        value: Any = None
        for term in terms:
            index = (
                0 if equal(n, 1) else index_of[letter]
                for letter, n in zip(term.letters, term.tensor.shape, strict=True)
            )
            factor = te.cast(term.tensor(*index), wide_dtype)
            value = factor if value is None else value * factor
        return te.sum(value, axis=list(runs.values())) if runs else value

    shape = tuple(extents[letter] for letter in result)
    if wide_dtype == kind:
        return te.compute(shape, total, name=name)
    inner = te.compute(shape, total, name=f"{name}_wide")
    return te.compute(shape, lambda *i: te.cast(inner(*i), kind), name=name)


def _common_dtype(terms: Sequence[_Term]) -> str:
    """Return the common dtype of the tensors."""
    zeros = [te.const(0, term.tensor.dtype) for term in terms]
    met: Any = zeros[0]
    for zero in zeros[1:]:
        met = met + zero
    return str(met.dtype)
