"""The topi document lists all functions with their signatures."""

from __future__ import annotations

from tests.topi.table import DOCUMENT, GROUPS, NOTES, functions, written


def test_the_table_matches_the_functions() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")

    assert text == written(text), "run `python -m tests.topi.table`"


def test_notes_are_about_functions() -> None:
    names = {
        f"{prefix}.{name}".removeprefix("topi.")
        for _, module, prefix in GROUPS for name, _ in functions(module)
    }

    assert set(NOTES) <= names
