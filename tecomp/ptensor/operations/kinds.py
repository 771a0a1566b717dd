"""Kinds of operations that are one operation for the document."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.operation import Operation


@dataclass(frozen=True)
class Kinded(Operation):
    """An operation of several kinds, which messages call by the kind.

    Attributes:
        kinds: that there are.
        kind: which one.

    Raises:
        ArrayTypeError: there is no such kind.
    """

    kinds: ClassVar[Collection[str]]

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in self.kinds:
            raise ArrayTypeError(
                f"{self.name}: {self.kind!r} is no such kind; these are {', '.join(self.kinds)}"
            )

    @property
    def where(self) -> str:
        """What messages call it."""
        return self.kind
