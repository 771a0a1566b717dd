"""Sizes of the files of the product, and their docstrings."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_LINES = 600
MAX_FILES = 600


@cache
def sources() -> dict[str, str]:
    """Return the text of each file of the product by its path."""
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for folder in ("tecomp", "schedules", "targets")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def test_no_file_has_more_than_600_lines() -> None:
    long = {name for name, text in sources().items() if text.count("\n") > MAX_LINES}

    assert long == set(), "split these files along an idea, or remove duplication"


def test_the_product_has_at_most_600_files() -> None:
    assert 300 < len(sources()) <= MAX_FILES, "merge files that hold parts of one idea"


def test_each_file_states_its_purpose_in_the_first_line() -> None:
    missing = {
        name for name, text in sources().items()
        if not (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0].endswith((".", ":"))
    }

    assert missing == set()
