"""The command-line interface `tecomp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.cli.main import main as main
from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.cli.common import show

__getattr__, __dir__ = lazy_names(__name__)
