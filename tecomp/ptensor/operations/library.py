"""Operations that a function of a library computes."""

from __future__ import annotations

from typing import ClassVar

from tecomp.ptensor.operation import Several


class LibraryOperation(Several):
    """An operation that no loops are made for: a library has better ones.

    Where the shape of a result depends on values, its extents are None before they are known.
    """

    library: ClassVar[str]
