"""The pictures in docs/pictures.md equal the output of its examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.test_docs import examples
from tests.viz.figure import check_figure

PAGE = Path(__file__).parents[2] / "docs" / "pictures.md"
SHOWN = re.compile(r"!\[`([^`]+)`\]\((pictures/[\w-]+\.svg)\)")


@pytest.mark.exhaustive
def test_page_examples_match_their_output(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The page shows the output of its examples; `pytest --update-golden` updates the files."""
    text = PAGE.read_text(encoding="utf-8")
    program = tmp_path / "page.py"
    program.write_text(examples(text), encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(examples(text), str(program), "exec"), names)
    output = SHOWN.findall(text)
    assert len(output) >= 10

    for line, where in output:
        picture, path = eval(line, names), PAGE.parent / where
        check_figure(picture)
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(picture + "\n", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == picture + "\n", where
    files = {f"pictures/{path.name}" for path in (PAGE.parent / "pictures").iterdir()}
    assert files == {where for _, where in output}
