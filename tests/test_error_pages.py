"""All errors have a kind, and all kinds have a page whose example raises the error."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tecomp import errors
from tecomp.cli import main
from tecomp.error_pages import error_pages, page_of
from tecomp.errors import TecompError, TecompWarning

ROOT = Path(__file__).parents[1]
EXAMPLE = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLASSES = {
    name: each for name, each in vars(errors).items()
    if isinstance(each, type) and issubclass(each, TecompError)
}


@pytest.mark.exhaustive(keep=23)
@pytest.mark.usefixtures("unregistered_functions")
@pytest.mark.parametrize("kind", error_pages())
def test_first_example_raises_and_second_runs(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = error_pages()[kind]
    wrong, right = EXAMPLE.findall(page.text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TECOMP_CACHE", "off")
    file = tmp_path / "example.py"
    # Functions read their source from the file.
    file.write_text(wrong + right)
    names: dict[str, Any] = {}
    if "sys.modules" in wrong:
        # The example changes the interpreter that runs it.
        assert refused_alone(file, wrong) == page.code
        exec(compile(right, str(file), "exec"), names)
        return
    with pytest.raises((TecompError, TecompWarning)) as caught:
        exec(compile(wrong, str(file), "exec"), names)
    assert isinstance(caught.value, TecompError | TecompWarning)
    exec(compile("\n" * wrong.count("\n") + right, str(file), "exec"), names)

    assert (caught.value.kind, caught.value.code) == (kind, page.code)


def refused_alone(file: Path, program: str) -> str:
    """Return the error code with which a program ends in a new interpreter."""
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, check=False
    )
    return done.stderr.splitlines()[-1].strip().partition(":")[0]


def test_codes_are_unique_and_sorted() -> None:
    codes = [page.code for page in error_pages().values()]

    assert codes == sorted(set(codes))
    assert len(codes) == len((ROOT / "tecomp/errors.md").read_text().split("\n## ")), "a kind twice"


def test_docs_page_is_generated_from_the_pages() -> None:
    shown = CliRunner().invoke(main, ["explain", "--markdown"])

    assert shown.output == (ROOT / "docs/errors.md").read_text(), (
        "tecomp explain --markdown > docs/errors.md"
    )


def test_explain_accepts_codes_and_kinds() -> None:
    page = page_of("te0201")
    shown = CliRunner().invoke(main, ["explain", "TE0201"])
    listed = CliRunner().invoke(main, ["explain"])
    refused = CliRunner().invoke(main, ["explain", "TE9999"])

    assert page is not None
    assert page is page_of("unknown-loop")
    assert page is page_of("no-such-loop"), "the kind in earlier versions"
    assert shown.output == str(page)
    assert re.search(rf"^TE0201 +unknown-loop +{re.escape(page.title)}$", listed.output, re.MULTILINE)
    assert refused.exit_code == 1
    assert refused.output == (
        "Error: explain: unknown error code 'TE9999'; call tecomp explain to list all codes\n"
    )
    assert CliRunner().invoke(main, ["explain", "unknown-lop"]).output == (
        "Error: explain: unknown error code 'unknown-lop'; did you mean unknown-loop? call tecomp "
        "explain to list all codes\n"
    )


def raised() -> Iterator[tuple[str, ast.Call]]:
    """Yield all places that construct an error, by class or by a variable with the class."""
    for room in ("tecomp", "schedules", "targets"):
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, ast.Call):
                    continue
                name = ast.unparse(node.func).rpartition(".")[2]
                if name in CLASSES or any(word.arg == "kind" for word in node.keywords):
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", node


@pytest.mark.exhaustive
def test_every_raised_kind_has_a_page() -> None:
    wrong, used = [], {value.usual for value in CLASSES.values()}
    for place, call in raised():
        name = ast.unparse(call.func).rpartition(".")[2]
        kinds = [word.value for word in call.keywords if word.arg == "kind"]
        for kind in kinds:
            if isinstance(kind, ast.Constant) and name not in CLASSES and kind.value not in error_pages():
                continue
            if isinstance(kind, ast.Constant):
                used.add(str(kind.value))
            elif name in CLASSES and ast.unparse(kind) not in ("error.kind", "kind"):
                wrong.append(f"{place}: the kind is {ast.unparse(kind)}")
        wrong += [
            f"{place}: there is no page of {kind.value!r}" for kind in kinds
            if name in CLASSES and isinstance(kind, ast.Constant) and kind.value not in error_pages()
        ]

    assert wrong == []
    assert {value.usual for value in CLASSES.values()} <= set(error_pages())
    assert set(error_pages()) - used == set(), "pages of mistakes that nobody makes"
