"""docs/primitives.md tells the truth: each example prints what the page shows, and none is missing."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from tecomp.scheduling.replay import CALLS

PAGE = Path(__file__).parents[2] / "docs" / "primitives.md"
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_examples_print_what_the_page_shows() -> None:
    names: dict[str, Any] = {}
    for code, shown in EXAMPLE.findall(PAGE.read_text(encoding="utf-8") + "\n"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)

        assert printed.getvalue().rstrip("\n") == shown.rstrip("\n"), code


def test_every_primitive_has_its_section() -> None:
    headings = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    described = {name for heading in headings for name in heading.split(", ")}

    assert described == CALLS | {"te.extern", "te.scan", "trace"}
