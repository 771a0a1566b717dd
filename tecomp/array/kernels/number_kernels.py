"""Kernels that make arrays of numbers: any numbers, any length."""

from __future__ import annotations

from typing import Any

import numpy as np

import tecomp
from tecomp import te
from tecomp.array.counters import counters
from tecomp.array.graph.node import Buffer, type_of
from tecomp.array.kernels.kept import made_once
from tecomp.array.recent import Recent
from tecomp.ptensor.definitions.creation import element_of, numbers_of
from tecomp.ptensor.operations.creation import Creation
from tecomp.ptensor.promotion import PART
from tecomp.ptensor.values import Complex

_kernels: Recent[Any, Any] = Recent(512)


def fill(op: Creation, dtype: str, first: tuple[int, ...], result: Buffer) -> None:
    """Write what an operation makes of numbers.

    Args:
        op: the operation.
        dtype: of its elements.
        first: the index along each axis where what is written begins; nothing for 0 everywhere.
        result: to write; complex numbers as pairs.
    """
    numbers = [np.array(number) for number in numbers_of(op)]
    numbers += [np.array(index, np.int64) for index in first]
    counters.called += 1
    _kernel(op, dtype, numbers, len(first))(*numbers, result)


def _kernel(op: Creation, dtype: str, numbers: list[Any], n_first: int) -> Any:
    kinds = tuple([number.dtype.name for number in numbers])
    key = op.name, dtype, kinds, n_first
    return made_once(_kernels, key, _built, op, dtype, kinds, n_first)


def _built(op: Creation, dtype: str, kinds: tuple[str, ...], n_first: int) -> Any:
    sizes: list[Any] = [te.size_var(f"n{k}") for k in range(type_of(op).rank)]
    given = [te.placeholder((), kind, name=f"x{k}") for k, kind in enumerate(kinds)]

    n_numbers = len(given) - n_first
    numbers, first = given[:n_numbers], given[n_numbers:]

    def element(*index: te.Expr) -> Any:
        if first:
            index = tuple([
                te.cast(i, "int64") + start() for i, start in zip(index, first, strict=True)
            ])
        return element_of(op, [x() for x in numbers], index)

    def part(*index: te.Expr) -> te.Expr:
        whole = element(*index[:-1])
        assert isinstance(whole, Complex)
        return te.select(index[-1] == 0, whole.re, whole.im)

    is_complex = dtype in PART
    shape = [*sizes, 2] if is_complex else sizes
    result = te.compute(shape, part if is_complex else element, name=op.name)
    return tecomp.build([result], [*given, result], name=op.name)
