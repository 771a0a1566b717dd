"""All operation classes by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from tecomp.ptensor import operations
from tecomp.ptensor.operation import PTensorOp


@cache
def operation_classes() -> Mapping[str, type[PTensorOp]]:
    """Return the classes of operations on parallel tensors, by printed name."""
    for module in iter_modules(operations.__path__, f"{operations.__name__}."):
        import_module(module.name)
    return {
        kind.name: kind for kind in _below(PTensorOp)
        if hasattr(kind, "name") and kind.dialect == PTensorOp.dialect
        and kind.__module__.startswith(operations.__name__)  # excludes operations defined elsewhere
    }


def _below(kind: type[PTensorOp]) -> Iterator[type[PTensorOp]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _below(sub)
