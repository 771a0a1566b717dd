"""Sets as rooms above see them: they hold them and ask about them; only this room looks inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from islpy import Set

Points: TypeAlias = "Set"
"""Points of loops, indices or elements, with the variables around them as parameters."""
