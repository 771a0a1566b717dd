"""Random calls of the operators of the library, with extents 0, 1 and such as calls bring: NumPy decides."""

from __future__ import annotations

from hypothesis import given, note

from tests.strategies.operators import Operation, operations


@given(operations())
def test_operators_compute_what_numpy_does(operation: Operation) -> None:
    note(operation.text)
    operation.check()
