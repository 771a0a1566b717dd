"""docs/primitives.md has a section for each primitive."""

from __future__ import annotations

import re
from pathlib import Path

from tecomp.scheduling import CALLS

PAGE = Path(__file__).parents[2] / "docs" / "primitives.md"


def test_every_primitive_has_its_section() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    described = {name for heading in headings for name in heading.split(", ")}

    # Calls of a trace, and definitions with their own loops; the page may describe others too.
    assert described >= CALLS | {"te.extern", "te.hybrid.script", "te.scan", "trace"}
