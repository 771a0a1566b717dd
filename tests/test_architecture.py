"""docs/architecture.svg shows the current packages and imports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture import imported_by, packages, picture

PICTURE = Path(__file__).parents[1] / "docs" / "architecture.svg"


@pytest.mark.exhaustive
def test_the_picture_is_in_step_with_the_code(request: pytest.FixtureRequest) -> None:
    """`pytest --update-golden tests/test_architecture.py` updates the picture."""
    if request.config.getoption("--update-golden"):
        picture().save(PICTURE)

    assert PICTURE.read_text(encoding="utf-8") == str(picture())


def test_the_picture_has_every_package_and_import() -> None:
    text = PICTURE.read_text(encoding="utf-8")
    names = [room for _, room in packages()]

    assert [name for name in names if f">{name}</text>" not in text] == []
    imports = {(room, item) for room in names for item in imported_by(room)}
    assert {*re.findall(r"<title>(\w+) imports (\w+)</title>", text)} == imports
