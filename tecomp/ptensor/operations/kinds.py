"""Kinds of operations that are one operation for the document."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.errors import ArrayTypeError


def check_kind(kind: str, known: Sequence[str], where: str) -> None:
    """Refuse a kind that there is not.

    Raises:
        ArrayTypeError: it is none of them.
    """
    if kind not in known:
        raise ArrayTypeError(f"{where}: {kind!r} is no such kind; these are {', '.join(known)}")
