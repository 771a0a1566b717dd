"""Every tutorial runs, its exercise has a solution, and its notebook equals its script."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tecomp import te

FOLDER = Path(__file__).parents[1] / "tutorials"
TUTORIALS = sorted(FOLDER.glob("[0-9]*.py"))
SOLUTIONS = sorted((FOLDER / "solutions").glob("*.py"))

PROGRAM = """
import runpy, sys
tutorial = runpy.run_path(sys.argv[1], run_name="__main__")
try:
    tutorial["check"](tutorial["answer"])
except AssertionError:
    pass
else:
    raise SystemExit("the exercise is solved already")
tutorial["check"](runpy.run_path(sys.argv[2])["answer"])
"""
"""Program that runs a tutorial and then its exercise, which only the solution passes."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run_and_solutions_pass(path: Path, tmp_path: Path) -> None:
    solution = FOLDER / "solutions" / path.name
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, str(path), str(solution)],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )

    assert done.returncode == 0, done.stderr


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def percent_form(cell: dict[str, Any]) -> str:
    """Return a notebook cell in the percent format of its script."""
    lines = "".join(cell["source"]).splitlines()
    if cell["cell_type"] == "code":
        return "\n".join(["# %%", *lines])
    return "\n".join(["# %% [markdown]", *(f"# {line}".rstrip() for line in lines)])


def squeezed(script: str) -> str:
    """Return a script without the empty lines at the ends of its cells."""
    parts = ("# %%" + part.rstrip() for part in script.split("# %%")[1:])
    return "\n\n".join(parts)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_notebooks_match_their_scripts(path: Path) -> None:
    """A notebook equals its script; `python tutorials/make_notebooks.py` updates it."""
    stored = cells(path.with_suffix(".ipynb"))

    assert "\n\n".join(map(percent_form, stored)) == squeezed(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_notebook_was_run_from_end_to_end(path: Path) -> None:
    code = [cell for cell in cells(path.with_suffix(".ipynb")) if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]

    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert "error" not in {output["output_type"] for output in outputs}
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs), "no picture"


def style_of(picture: str) -> str:
    return picture.partition("<style>")[2].partition("</style>")[0]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_pictures_of_a_notebook_are_drawn_as_today(path: Path) -> None:
    """Notebook pictures have the current style; `tutorials/make_notebooks.py` redraws them."""
    A = te.placeholder((8,), name="A")
    today = style_of(te.create_schedule(te.compute((8,), lambda i: A[i], name="B")).picture())
    outputs = [output for cell in cells(path.with_suffix(".ipynb")) for output in cell.get("outputs", [])]
    pictures = ["".join(output["data"]["image/svg+xml"]) for output in outputs
                if "image/svg+xml" in output.get("data", {})]

    assert {style_of(picture) for picture in pictures} == {today}


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_have_all_required_parts(path: Path) -> None:
    script = path.read_text(encoding="utf-8")
    code = [part for part in script.split("# %%")[1:] if not part.startswith(" [markdown]")]

    assert len(code) <= 12
    assert "except " in script
    words = script.replace("\n# ", " ")
    assert [words.count(part) for part in ("Prerequisites: ", "**Predict.**", "**Exercise.**")] == [1] * 3
    assert script.endswith("# check(answer)\n")


def test_the_list_names_every_notebook() -> None:
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert re.findall(r"\((\d\d_\w+)\.ipynb\)", listed) == [path.stem for path in TUTORIALS]


def test_every_tutorial_has_one_solution() -> None:
    assert [path.name for path in SOLUTIONS] == [path.name for path in TUTORIALS]
    assert sorted(FOLDER.glob("*.ipynb")) == [path.with_suffix(".ipynb") for path in TUTORIALS]
