"""Tags that a `with` statement gives to operations: `te.tag_scope`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, ParamSpec, TypeVar

from tecomp.compute.shape import name_of
from tecomp.errors import DefinitionError
from tecomp.ir.language.given import check_kind

_P = ParamSpec("_P")
_R = TypeVar("_R")
_CURRENT: ContextVar[TagScope | None] = ContextVar("tag_scope", default=None)


class TagScope:
    """Gives its tag to what is defined inside; a context manager and a decorator."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._is_used = False
        self._token: Token[TagScope | None] | None = None

    def __enter__(self) -> TagScope:
        if (outer := _CURRENT.get()) is not None:
            raise DefinitionError(
                f"te.tag_scope {self.tag}: it is inside of te.tag_scope {outer.tag}, and an "
                "operation has one tag; leave that one first"
            )
        self._is_used = False
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _CURRENT.reset(self._token)
        if not self._is_used:
            warnings.warn(
                f"te.tag_scope {self.tag}: nothing was defined in it, so no operation has the tag",
                stacklevel=2,
            )

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """The function, whose operations have the tag."""

        @functools.wraps(function)
        def tagged(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with TagScope(self.tag):
                return function(*args, **kwargs)

        return tagged

    def used(self) -> str:
        """The tag, of which an operation is made."""
        self._is_used = True
        return self.tag


def tag_scope(tag: str) -> TagScope:
    """What is defined in a `with` block, or by the function decorated with this, has a tag.

    Tags are for those who read programs, such as libraries of schedules; they change nothing here.

    Args:
        tag: of each `te.compute`, `te.scan` and `te.extern` that is defined inside.

    Raises:
        DefinitionError: one scope is inside another, or an operation inside has a tag of its own.
        TypeMismatchError: the tag is no text.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((4,), name="A")
        >>> with te.tag_scope(tag="elemwise"):
        ...     B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> B.op.tag
        'elemwise'
    """
    return TagScope(name_of(tag, "te.tag_scope"))


def tag_of(tag: Any, where: str) -> str:
    """The tag of a new operation: its own, or that of the scope around.

    Raises:
        DefinitionError: it has both.
        TypeMismatchError: it is no text.
    """
    check_kind(tag, str, f"{where}: tag", "give a text", DefinitionError)
    scope = _CURRENT.get()
    if scope is None:
        return str(tag)
    if tag:
        raise DefinitionError(
            f"{where}: the tag is {tag!r}, and te.tag_scope around gives it {scope.tag!r}; leave "
            "out one of them"
        )
    return scope.used()
