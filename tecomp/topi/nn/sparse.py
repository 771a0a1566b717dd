"""Products and transposition of sparse matrices in CSR and BSR format.

Products are statements with loops over the stored elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tecomp import CallError, DefinitionError, register_func, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.extents import Size, differ, equal, minus, times
from tecomp.topi.validation import as_bool, check_integer, check_rank, tensor_of

Array = NDArray[Any]


@register_func("tecomp.topi.sparse_transpose", override=True)
def _transpose(
    data: Array, indices: Array, pointers: Array, values: Array, row_indices: Array, ends: Array
) -> None:
    columns, counts = np.asarray(indices), np.diff(np.asarray(pointers))
    n = len(counts)
    if np.any(counts < 0) or pointers[0] != 0 or pointers[-1] != len(columns):
        raise CallError(
            "topi.nn.sparse_transpose: sparse_indptr must increase from 0 to the number of "
            "elements, {column_count}; pass a matrix in CSR format",
            kind="call", column_count=len(columns),
        )
    if np.any((columns < 0) | (columns >= n)):
        raise CallError(
            "topi.nn.sparse_transpose: sparse_indices must be from 0 to {last}; pass a square "
            "matrix in CSR format",
            kind="call", last=n - 1,
        )
    order = np.argsort(columns, kind="stable")
    values[...] = np.asarray(data)[order]
    row_indices[...] = np.repeat(np.arange(n), counts)[order]
    ends[0] = 0
    ends[1:] = np.cumsum(np.bincount(columns, minlength=n))


def sparse_transpose(
    sparse_data: te.Tensor, sparse_indices: te.Tensor, sparse_indptr: te.Tensor
) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Transpose a square sparse matrix in CSR format.

    Args:
        sparse_data: Stored elements, shape (nnz,).
        sparse_indices: Column of each element, shape (nnz,).
        sparse_indptr: Position of the first element of each row, and the number of elements, shape
            (n + 1,).

    Returns:
        Elements, columns and row positions of the transposed matrix.

    Raises:
        DefinitionError: If the shapes do not match.
        TypeMismatchError: If indices do not have an integer dtype.
        CallError: If a call passes arrays that are not a square matrix in CSR format.

    >>> d, i = te.placeholder((5,), name="d"), te.placeholder((5,), "int32", name="i")
    >>> [x.shape for x in sparse_transpose(d, i, te.placeholder((4,), "int32", name="p"))]
    [(5,), (5,), (4,)]
    """
    where = "topi.nn.sparse_transpose"
    data = _check_sparse(sparse_data, sparse_indices, sparse_indptr, (1,), where)
    result: tuple[te.Tensor, te.Tensor, te.Tensor] = te.extern(
        [data.shape, sparse_indices.shape, sparse_indptr.shape],
        [data, sparse_indices, sparse_indptr],
        lambda ins, outs: te.call_packed("tecomp.topi.sparse_transpose", *ins, *outs),
        name="T_sparse_transpose",
        dtype=[data.dtype, sparse_indices.dtype, sparse_indptr.dtype],
    )
    return result


def sparse_dense(
    dense_data: te.Tensor, sparse_data: te.Tensor, sparse_indices: te.Tensor,
    sparse_indptr: te.Tensor, sparse_lhs: bool = False,
) -> te.Tensor:
    """Multiply a dense by a transposed sparse matrix, or a sparse by a transposed dense matrix.

    Args:
        dense_data: Dense matrix, shape (m, k); the right operand, shape (n, k), if `sparse_lhs`.
        sparse_data: Stored elements, shape (nnz,), for CSR; stored blocks, shape (blocks, bs_r,
            bs_c), for BSR.
        sparse_indices: Column of each element or block; columns out of bounds are skipped.
        sparse_indptr: Position of the first element or block of each row, and the number of
            elements or blocks.
        sparse_lhs: If True, the sparse matrix is the left operand.

    Returns:
        `dense @ sparse.T`, shape (m, n); `sparse @ dense.T` if `sparse_lhs`.

    Raises:
        DefinitionError: If the shapes or dtypes do not match.
        TypeMismatchError: If indices do not have an integer dtype.

    >>> d, i = te.placeholder((5,), name="d"), te.placeholder((5,), "int32", name="i")
    >>> x, p = te.placeholder((8, 16), name="x"), te.placeholder((4,), "int32", name="p")
    >>> sparse_dense(x, d, i, p).shape, sparse_dense(x, d, i, p, sparse_lhs=True).shape
    ((8, 3), (3, 8))
    """
    where = "topi.nn.sparse_dense"
    dense = tensor_of(dense_data, where, "dense_data")
    check_rank(dense, 2, where, "dense_data", "a matrix")
    data = _check_sparse(sparse_data, sparse_indices, sparse_indptr, (1, 3), where)
    is_left = as_bool(sparse_lhs, where, "sparse_lhs")
    if dense.dtype != data.dtype:
        raise DefinitionError(
            "{where}: dense_data has dtype {dtype}, but sparse_data has dtype {data_dtype}; "
            'convert one of them: topi.cast({data}, "{dtype}")',
            kind="dtype", where=where, dtype=dense.dtype, data_dtype=data.dtype,
            data=data.name,
        )
    block_rows, block_columns = data.shape[1:] if data.ndim == 3 else (1, 1)
    rows, (count, width) = minus(sparse_indptr.shape[0], 1), dense.shape
    sparse_rows = times(rows, block_rows)
    inputs = [dense, data, sparse_indices, sparse_indptr]

    def body(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        x, values, columns, pointers = ins

        def product(i: te.Expr, row: te.Expr, r: te.Expr) -> Any:
            """Build the sum over the stored elements or blocks of a row."""
            out_row = row * block_rows + r
            index = (out_row, i) if is_left else (i, out_row)

            def block(e: te.Expr) -> Any:
                def term(c: te.Expr) -> Any:
                    column = te.cast(columns[e], "int64") * block_columns + c
                    value = values[(e, r, c) if data.ndim == 3 else e]
                    total = outs[0][index] + te.cast(value * x[i, column], dense.dtype)
                    inside = te.all(column >= 0, column < width)
                    return te.if_stmt(inside, outs[0].store(index, total))

                return te.for_range(0, block_columns, term, name="c")

            first = te.max(te.cast(pointers[row], "int64"), te.const(0, "int64"))
            last = te.min(te.cast(pointers[row + 1], "int64"), _wide(data.shape[0]))
            return te.stmt_seq(
                outs[0].store(index, te.const(0, dense.dtype)),
                te.for_range(first, last, block, name="e"))

        return _loops((count, rows, block_rows), product)

    result: te.Tensor = te.extern(
        (sparse_rows, count) if is_left else (count, sparse_rows), inputs, body,
        name="T_sparse_dense", dtype=dense.dtype)
    return result


def _check_sparse(
    data: te.Tensor, indices: te.Tensor, pointers: te.Tensor, ranks: tuple[int, ...], where: str
) -> te.Tensor:
    """Return the element tensor after validating the tensors of a CSR or BSR matrix.

    Raises:
        DefinitionError: If the shapes do not match.
        TypeMismatchError: If an index tensor does not have an integer dtype.
    """
    data = tensor_of(data, where, "sparse_data")
    for tensor, name in ((indices, "sparse_indices"), (pointers, "sparse_indptr")):
        check_integer(tensor_of(tensor, where, name), where, name)
        check_rank(tensor, 1, where, name, "a row")
    known = pointers.shape[0]
    if data.ndim not in ranks or differ(data.shape[0], indices.shape[0]) or equal(known, 0):
        raise DefinitionError(
            "{where}: sparse_data has shape {shape}, sparse_indices {indices_shape} and "
            "sparse_indptr {pointers_shape}; pass one index per element, and one position per row "
            "plus the end position",
            kind="shapes", where=where, shape=shape_text(data.shape),
            indices_shape=shape_text(indices.shape), pointers_shape=shape_text(pointers.shape),
        )
    return data


def _wide(size: Size) -> te.Expr:
    return te.const(size, "int64") if isinstance(size, int) else te.cast(size, "int64")


def _loops(shape: Sequence[Size], body: Callable[..., Any], index: tuple[te.Expr, ...] = ()) -> Any:
    """Build a loop nest over all indices of a shape."""
    if len(index) == len(shape):
        return body(*index)
    return te.for_range(
        0, shape[len(index)], lambda i: _loops(shape, body, (*index, i)), name=f"i{len(index)}")
