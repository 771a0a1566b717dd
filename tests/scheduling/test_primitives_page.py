"""docs/primitives.md has a section for each primitive."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import tecomp.scheduling
from tecomp.scheduling import CALLS

PAGE = Path(__file__).parents[2] / "docs" / "primitives.md"


def test_every_recorded_call_is_a_primitive() -> None:
    """A method that records a call has the decorator, so that its traces can be replayed."""
    folder = Path(tecomp.scheduling.__file__).parent / "schedule"
    recorded = set()
    for file in folder.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(ast.Attribute(_, "_apply" | "_mark"), args):
                    recorded |= {arg.value for arg in args if isinstance(arg, ast.Constant)}

    assert {name for name in recorded if name is not None} == CALLS


def test_every_primitive_has_its_section() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    described = {name for heading in headings for name in heading.split(", ")}

    # Calls of a trace, and definitions with their own loops; the page may describe others too.
    assert described >= CALLS | {"te.extern", "te.hybrid.script", "te.scan", "trace"}
