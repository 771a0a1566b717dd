"""Derivatives of products and decompositions of matrices, and of Fourier transforms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from tecomp.array.array_object import Array, from_node
from tecomp.array.derivative_rules import (
    MULTIPLE,
    Cotangents,
    by_equivalent,
    pull_back_through,
    rule_for,
)
from tecomp.array.function_traces import (
    apply,
    cast,
    conjugate,
    constant,
    expand,
    part_along,
    permute,
    reshape,
    run_operation,
    total,
    transpose,
    where,
    zeros,
)
from tecomp.ptensor.operations.creation import ExtractTriangle
from tecomp.ptensor.operations.elementwise import FUNCTIONS
from tecomp.ptensor.operations.library_ops import (
    FourierTransformOp,
    Matrices,
    PseudoInverse,
    Solve,
)
from tecomp.ptensor.operations.linear_algebra import (
    Cross,
    Diagonal,
    MatMul,
    Outer,
    TensorDot,
    TraceOp,
    VecDot,
)
from tecomp.ptensor.operations.manipulation import InsertSlice, Roll, Squeeze
from tecomp.ptensor.types import COMPLEX, axis_of


@rule_for(MatMul)
def _matmul(op: MatMul, g: Array, y: Array, a: Array, b: Array) -> Cotangents:
    first = expand(a, 0) if a.ndim == 1 else a
    second = expand(b, -1) if b.ndim == 1 else b
    if a.ndim == 1:
        g = expand(g, -1 if b.ndim == 1 else -2)
    if b.ndim == 1:
        g = expand(g, -1)
    of_first = apply(MatMul(), g, transpose(second))
    if second.ndim == 2 and g.ndim > 2:  # one product for the whole stack
        first, g = [reshape(x, (prod(x.shape[:-1]), x.shape[-1])) for x in (first, g)]
    of_second = apply(MatMul(), transpose(first), g)
    if a.ndim == 1:
        of_first = apply(Squeeze((of_first.ndim - 2,)), of_first)
    if b.ndim == 1:
        of_second = apply(Squeeze((of_second.ndim - 1,)), of_second)
    return of_first, of_second


@by_equivalent(VecDot)
def _vecdot(op: VecDot, x: Array, y: Array) -> Array:
    products = conjugate(x) * y
    return total(products, (products.ndim + op.axis,))


@by_equivalent(Outer)
def _outer(op: Outer, x: Array, y: Array) -> Array:
    return expand(x, 1) * expand(y, 0)


@by_equivalent(TensorDot)
def _tensordot(op: TensorDot, x: Array, y: Array) -> Array:
    first, second = op.places(x._node.type, y._node.type)
    free = [k for k in range(x.ndim) if k not in first]
    other = [k for k in range(y.ndim) if k not in second]
    count = prod([x.shape[k] for k in first])
    shape = tuple([x.shape[k] for k in free]), tuple([y.shape[k] for k in other])
    rows = reshape(permute(x, [*free, *first]), (prod(shape[0]), count))
    columns = reshape(permute(y, [*second, *other]), (count, prod(shape[1])))
    return reshape(apply(MatMul(), rows, columns), (*shape[0], *shape[1]))


@by_equivalent(TraceOp)
def _trace(op: TraceOp, x: Array) -> Array:
    diagonal = apply(Diagonal(op.offset), cast(x, op.dtype or x._node.type.dtype))
    return total(diagonal, (diagonal.ndim - 1,))


@by_equivalent(Cross)
def _cross(op: Cross, x: Array, y: Array) -> Array:
    def turned(z: Array, shift: int) -> Array:
        return apply(Roll((shift,), (z.ndim + op.axis,)), z)

    return turned(x, -1) * turned(y, -2) - turned(x, -2) * turned(y, -1)


def _adjoint(x: Array) -> Array:
    """Return conjugated transposes."""
    return conjugate(transpose(x))


def _lower(x: Array, k: int = 0) -> Array:
    return apply(ExtractTriangle("lower", k), x)


def _identity(x: Array, size: int) -> Array:
    return constant(np.eye(size), x._node.type)


def _on_diagonal(values: Array, template: Array) -> Array:
    """Return diagonal matrices of a dtype."""
    values = cast(values, template._node.type.dtype)
    return expand(values, -1) * _identity(template, values.shape[-1])


def _matrices_of(kind: str, x: Array, full: bool = False) -> list[Array]:
    return [from_node(node) for node in run_operation(Matrices(kind, full), x._node)]


def _inverse_differences(values: Array, template: Array) -> Array:
    """Return `1 / (values[j] - values[i])` beside the diagonal, and 0 on it."""
    differences = expand(values, -2) - expand(values, -1)
    is_diagonal = constant(np.eye(values.shape[-1]), values._node.type, "bool")
    one, none = constant(1, values._node.type), constant(0, values._node.type)
    inverse = where(is_diagonal, none, 1.0 / where(is_diagonal, one, differences))
    return cast(inverse, template._node.type.dtype)


def _of_triangle(full: Array) -> Array:
    """Return the cotangent of the lower triangle that a Hermitian matrix is read from."""
    both = full + _adjoint(full)
    return _lower(both) - both * 0.5 * _identity(full, full.shape[-1])


@rule_for(Matrices)
def _decomposition(op: Matrices, gs: Cotangents, ys: Mapping[int, Array], x: Array) -> Any:
    if op.kind in _HOLOMORPHIC:
        return _HOLOMORPHIC[op.kind](gs, ys, x)
    # The formulas hold for cotangents that are the conjugates of those of this module.
    found = _FORMULAS[op.kind](op, [g if g is None else conjugate(g) for g in gs], ys, x)
    return conjugate(found)


def _inv(gs: Cotangents, ys: Mapping[int, Array], x: Array) -> Array:
    (g,), inverse = gs, transpose(ys[0])
    return -(inverse @ g @ inverse)


def _det(gs: Cotangents, ys: Mapping[int, Array], x: Array) -> Array:
    (g,) = gs
    (inverse,) = _matrices_of("inv", x)
    return expand(g * ys[0], -2, -1) * transpose(inverse)


def _slogdet(gs: Cotangents, ys: Mapping[int, Array], x: Array) -> Array:
    of_sign, of_logarithm = gs
    (inverse,) = _matrices_of("inv", x)
    scale = zeros(x._node.type.like(x.shape[:-2])) if of_logarithm is None else of_logarithm
    if of_sign is not None and x._node.type.dtype in COMPLEX:
        sign = ys[0] if 0 in ys else _matrices_of("slogdet", x)[0]
        scale = scale + apply(FUNCTIONS["imag"], of_sign * sign) * 1j * constant(1, x._node.type)
    return expand(scale, -2, -1) * transpose(inverse)


_HOLOMORPHIC: Mapping[str, Any] = {"inv": _inv, "det": _det, "slogdet": _slogdet}


def _cholesky(op: Matrices, gs: Cotangents, ys: Mapping[int, Array], x: Array) -> Array:
    (g,), factor = gs, ys[0]
    assert g is not None
    if op.full:
        g, factor = _adjoint(g), _adjoint(factor)
    inner = _lower(_adjoint(factor) @ g)
    inner = inner - inner * 0.5 * _identity(x, x.shape[-1])
    above = _adjoint(factor)
    (half,) = run_operation(Solve(), above._node, inner._node)
    (found,) = run_operation(Solve(), above._node, _adjoint(from_node(half))._node)
    triangle = _of_triangle(_adjoint(from_node(found)))
    return _adjoint(triangle) if op.full else triangle


def _eigh(op: Matrices, gs: Cotangents, ys: Mapping[int, Array], x: Array) -> Array:
    values, vectors = _matrices_of("eigh", x)
    of_values, of_vectors = [*gs, None][:2]
    inner = None if of_values is None else _on_diagonal(of_values, x)
    if of_vectors is not None:
        turned = _adjoint(vectors) @ of_vectors * _inverse_differences(values, x)
        inner = turned if inner is None else inner + turned
    return _of_triangle(vectors @ inner @ _adjoint(vectors))


def _eig(op: Matrices, gs: Cotangents, ys: Mapping[int, Array], x: Array) -> Array:
    values, vectors = _matrices_of("eig", x)
    of_values, of_vectors = [*gs, None][:2]
    inner = None if of_values is None else _on_diagonal(of_values, vectors)
    if of_vectors is not None:
        gram = _adjoint(vectors) @ of_vectors
        diagonal = apply(FUNCTIONS["real"], apply(Diagonal(), gram))
        gram = gram - _adjoint(vectors) @ vectors * expand(cast(diagonal, "complex128"), -2)
        turned = gram * conjugate(_inverse_differences(values, vectors))
        inner = turned if inner is None else inner + turned
    (found,) = run_operation(Solve(), _adjoint(vectors)._node, (inner @ _adjoint(vectors))._node)
    return from_node(found)


def _qr(op: Matrices, gs: Cotangents, ys: Mapping[int, Array], x: Array) -> Array:
    rows, columns = x.shape[-2:]
    if op.full and rows > columns:
        raise NotImplementedError(op.kind)
    if rows < columns:
        return _of_wide_qr(gs, x)
    q, r = _matrices_of("qr", x)
    of_q, of_r = [zeros(y._node.type) if g is None else g for g, y in zip(gs, (q, r), strict=True)]
    inner = r @ _adjoint(of_r) - _adjoint(of_q) @ q
    below = _lower(inner, -1)
    diagonal = cast(apply(FUNCTIONS["real"], inner), x._node.type.dtype)
    symmetric = below + _adjoint(below) + diagonal * _identity(x, columns)
    (found,) = run_operation(Solve(), r._node, _adjoint(of_q + q @ symmetric)._node)
    return _adjoint(from_node(found))


def _of_wide_qr(gs: Cotangents, x: Array) -> Array:
    rows, columns = x.shape[-2:]
    q = _matrices_of("qr", part_along(x, -1, 0, rows))[0]
    rest = part_along(x, -1, rows, columns - rows)
    of_q, of_r = gs
    of_q = zeros(q._node.type) if of_q is None else of_q
    of_r = zeros(x._node.type) if of_r is None else of_r
    of_rest = part_along(of_r, -1, rows, columns - rows)
    # The other columns of R are the product of the adjoint of Q with those of the matrix.
    of_q = of_q + rest @ _adjoint(of_rest)
    of_first = _qr(Matrices("qr"), [of_q, part_along(of_r, -1, 0, rows)], {},
                   part_along(x, -1, 0, rows))
    template = zeros(x._node.type)
    outer = [(0, 1, n) for n in x.shape[:-1]]
    whole = apply(InsertSlice((*outer, (0, 1, rows))), template, of_first)
    return apply(InsertSlice((*outer, (rows, 1, columns - rows))), whole, q @ of_rest)


def _svd(op: Matrices, gs: Cotangents, ys: Mapping[int, Array], x: Array) -> Array:
    rows, columns = x.shape[-2:]
    of_u, of_s, of_vh = gs if op.kind == "svd" else (None, gs[0], None)
    if op.full and rows != columns and (of_u is not None or of_vh is not None):
        raise NotImplementedError(op.kind)
    u, s, vh = _matrices_of("svd", x)
    count = s.shape[-1]
    inner = zeros(x._node.type.like((*x.shape[:-2], count, count)))
    if of_s is not None:
        inner = inner + _on_diagonal(of_s, x)
    sizes = cast(s, x._node.type.dtype)
    factors = _inverse_differences(s * s, x)
    found = None
    if of_u is not None:
        gram = _adjoint(u) @ of_u
        turned = gram * factors
        inner = inner + (turned + _adjoint(turned)) * expand(sizes, -2)
        phases = apply(Diagonal(), gram)
        inner = inner + _on_diagonal((phases - conjugate(phases)) / sizes * 0.5, x)
        found = (of_u - u @ gram) / expand(sizes, -2) @ vh
    if of_vh is not None:
        gram = vh @ _adjoint(of_vh)
        turned = gram * factors
        inner = inner + expand(sizes, -1) * (turned + _adjoint(turned))
        of_rest = u / expand(sizes, -2) @ (of_vh - _adjoint(gram) @ vh)
        found = of_rest if found is None else found + of_rest
    product = u @ inner @ vh
    return product if found is None else product + found


_FORMULAS: Mapping[str, Any] = {
    "cholesky": _cholesky, "eig": _eig, "eigh": _eigh, "eigvals": _eig, "eigvalsh": _eigh,
    "qr": _qr, "svd": _svd, "svdvals": _svd,
}
MULTIPLE.append(Matrices)


@rule_for(Solve)
def _solve(op: Solve, g: Array, y: Array, a: Array, b: Array) -> Cotangents:
    (of_b,) = [from_node(n) for n in run_operation(op, transpose(a)._node, g._node)]
    if b.ndim == 1:
        return -(expand(of_b, -1) * expand(y, -2)), of_b
    return -(of_b @ transpose(y)), of_b


@rule_for(PseudoInverse)
def _pinv(op: PseudoInverse, g: Array, y: Array, x: Array, *tolerance: Array) -> Cotangents:
    g = conjugate(g)
    left = _identity(x, x.shape[-2]) - x @ y
    right = _identity(x, x.shape[-1]) - y @ x
    found = -(_adjoint(y) @ g @ _adjoint(y))
    found = found + left @ _adjoint(g) @ y @ _adjoint(y) + _adjoint(y) @ y @ _adjoint(g) @ right
    return conjugate(found), *[None] * len(tolerance)


_OTHER_NORM = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


@rule_for(FourierTransformOp)
def _fourier(op: FourierTransformOp, g: Array, y: Array, x: Array) -> Any:
    axis = axis_of(op.axes[-1], x.ndim, op.where)
    other = replace(op, norm=_OTHER_NORM[op.norm])
    if op.kind == "hfft":
        inverse = replace(other, kind="irfft")
        return pull_back_through(lambda z: apply(inverse, conjugate(z)), [x], g)
    if op.kind == "ihfft":
        forward = replace(other, kind="rfft")
        return pull_back_through(lambda z: conjugate(apply(forward, z)), [x], g)
    sizes = [y.shape[axis_of(k, x.ndim, op.where)] for k in op.axes]
    if op.kind in ("irfft", "irfftn"):
        g = _of_real_result(g, y.shape[axis], axis, other.norm)
        if len(op.axes) > 1:
            g = apply(FourierTransformOp(
                "ifftn", tuple(sizes[:-1]), op.axes[:-1], op.norm), g)
        return _resize(g, x, op)
    if op.kind in ("rfft", "rfftn"):
        sizes[-1] = op.sizes[-1] or x.shape[axis]
        g = _pad(g, axis, sizes[-1])
    kind = {"fft": "fft", "ifft": "ifft", "fftn": "fftn", "ifftn": "ifftn", "rfft": "fft",
            "rfftn": "fftn"}[op.kind]
    return _resize(apply(FourierTransformOp(kind, tuple(sizes), op.axes, op.norm), g), x, op)


def _of_real_result(g: Array, count: int, axis: int, norm: str) -> Array:
    """Return the cotangent of the half of the terms that a real transform is computed from."""
    halved = conjugate(apply(FourierTransformOp("rfft", (count,), (axis,), norm), g))
    weights = np.full(count // 2 + 1, 2.0)
    weights[0] = 1.0
    if count % 2 == 0:
        weights[-1] = 1.0
    shape = [-1 if k == axis else 1 for k in range(g.ndim)]
    return halved * constant(weights.reshape(shape), g._node.type)


def _pad(g: Array, axis: int, count: int) -> Array:
    """Append zeros along an axis, or drop its last elements."""
    extent = g.shape[axis]
    if count <= extent:
        return g if count == extent else part_along(g, axis, 0, count)
    shape = (*g.shape[:axis], count, *g.shape[axis + 1 :])
    spans = tuple([(0, 1, n) for n in g.shape])
    return apply(InsertSlice(spans), zeros(g._node.type.like(shape)), g)


def _resize(g: Array, x: Array, op: FourierTransformOp) -> Array:
    """Return a cotangent with the extents of the operand, which was padded or cut."""
    for k in op.axes:
        axis = axis_of(k, x.ndim, op.where)
        g = _pad(g, axis, x.shape[axis])
    return g
