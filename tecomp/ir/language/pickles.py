"""Read-only mappings through pickle, which Python leaves out."""

from __future__ import annotations

import copyreg
from types import MappingProxyType
from typing import Any


def frozen(items: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    """A read-only mapping: what a pickle names, as the type itself has no name in a module."""
    return MappingProxyType(items)


def register() -> None:
    """Let `pickle` and `copy` take read-only mappings: states, targets and operations hold some."""
    copyreg.pickle(MappingProxyType, lambda mapping: (frozen, (dict(mapping),)))
