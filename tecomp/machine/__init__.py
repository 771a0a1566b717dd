"""Hardware model: targets read from TOML descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.machine.components import Memory
    from tecomp.machine.descriptor import Target
    from tecomp.machine.registry import list_targets
else:
    __getattr__, __dir__ = lazy_names(__name__)
