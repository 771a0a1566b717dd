"""Pages that show what their examples print tell the truth."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


PAGES = [
    "definitions", "functions", "port-from-tvm", "primitives", "tiled-tensors",
    *sorted(f"how-to/{path.stem}" for path in (DOCS / "how-to").glob("*.md")),
]


@pytest.mark.parametrize("name", PAGES)
def test_examples_print_what_the_page_shows(name: str) -> None:
    page = DOCS / f"{name}.md"
    text = page.read_text(encoding="utf-8") + "\n"
    names: dict[str, Any] = {}
    for example in EXAMPLE.finditer(text):
        code, shown = example[1], example[2] or ""
        # At its lines of the page, where functions find their source.
        before = "\n" * text.count("\n", 0, example.start(1))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(before + code, str(page), "exec"), names)

        assert printed.getvalue().rstrip("\n") == shown.rstrip("\n"), code
