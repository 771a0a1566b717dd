"""Example output in the pages equals the printed output."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tecomp import te
from tecomp.drawing import Pictured

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


PAGES = [
    "definitions", "functions", "language", "port-from-tvm", "primitives", "tiled-tensors", "torch",
    *sorted(f"how-to/{path.stem}" for path in (DOCS / "how-to").glob("*.md")),
]


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # PyTorch's own
@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", PAGES)
def test_page_examples_match(name: str) -> None:
    if name == "torch":
        pytest.importorskip("torch")
    page = DOCS / f"{name}.md"
    text = page.read_text(encoding="utf-8") + "\n"
    names: dict[str, Any] = {}
    for example in EXAMPLE.finditer(text):
        code, shown = example[1], example[2] or ""
        # Keep the line numbers of the page, where functions read their source.
        before = "\n" * text.count("\n", 0, example.start(1))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(before + code, str(page), "exec"), names)

        assert printed.getvalue().rstrip("\n") == shown.rstrip("\n"), code


def test_every_method_of_schedules_and_stages_has_a_section_with_loops() -> None:
    """All methods of schedules and stages have a section with loops; queries do not."""
    text = (DOCS / "primitives.md").read_text(encoding="utf-8")
    sections = {
        name: section for section in text.split("\n## ")[1:]
        for name in section.partition("\n")[0].split(", ")
    }
    kinds = te.Schedule, type(te.create_schedule(te.compute((2,), lambda i: i, name="T")).stages[0])
    methods = {
        name for kind in kinds for name in dir(kind)
        if not name.startswith("_") and not name.endswith("picture") and callable(getattr(kind, name))
    }

    assert methods - {*dir(Pictured)} <= {*sections}
    for name in methods & {*sections}:
        assert re.search(r"^```text\n(?:(?!```).*\n)*? *for \w+ in ", sections[name], re.MULTILINE), name
