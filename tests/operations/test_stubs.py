"""Stubs declare the functions that tables define."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.operations.stubs import ROOT, TABLES, path_of, stub


@pytest.mark.parametrize("name", TABLES)
def test_stubs_match_the_functions(name: str) -> None:
    """`python -m tests.operations.stubs` writes the files."""
    assert path_of(name).read_text(encoding="utf-8") == stub(import_module(name))


def test_every_stub_is_compared() -> None:
    found = {path for path in (ROOT / "tecomp").rglob("*.pyi")}

    assert found == {path_of(name) for name in TABLES}
