"""All examples in the documents run, and all links resolve."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tecomp.lowering import STAGES

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "tutorials" / "README.md",
]

CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def examples(text: str) -> str:
    """Return all examples of a document as one program with the line numbers of the document."""
    program = ""
    for match in CODE.finditer(text):
        start = text.count("\n", 0, match.start(1))
        program += "\n" * (start - program.count("\n")) + match.group(1)
    return program


def anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_readme_examples_run() -> None:
    assert len(CODE.findall(text_of(ROOT / "README.md"))) >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "document", [path for path in DOCUMENTS if CODE.search(text_of(path))], ids=name_of
)
def test_examples_run(document: Path, tmp_path: Path) -> None:
    """Examples run as a file of their own, since error messages show the user's source."""
    if document.name == "torch.md":
        pytest.importorskip("torch")
    program = tmp_path / "example.py"
    program.write_text(examples(text_of(document)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", program.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, f"{name_of(document)}:\n{done.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_between_files_resolve(document: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", text_of(document))):
        if "://" in link:
            continue
        file, _, place = link.partition("#")
        target = document.parent / file if file else document
        anchors = (
            {anchor(heading) for heading in HEADING.findall(text_of(target))}
            if place and target.is_file()
            else {place}
        )
        if not target.exists() or place not in anchors:
            broken.append(link)

    assert broken == []


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    titles = [text_of(path).partition("\n")[0] for path in sorted(folder.glob("[0-9]*.md"))]
    listed = re.findall(r"^(\d+)\. \[(.*)\]\((.*)\)$", text_of(folder / "README.md"), re.MULTILINE)

    assert [f"# {number}. {title}" for number, title, _ in listed] == titles


def test_decisions_are_numbered_without_gaps() -> None:
    names = [path.name for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))]

    assert [name[:5] for name in names] == [f"{number:04}-" for number in range(1, len(names) + 1)]


def test_comments_in_examples_tell_the_truth(tmp_path: Path) -> None:
    """The comments on the padded layout in the README begin with the printed values."""
    program = tmp_path / "layout.py"
    lines = [
        line
        for line in examples(text_of(ROOT / "README.md")).splitlines()
        if line.startswith(("import tecomp", "layout =", "print(layout"))
    ]
    program.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    promised = [line.partition("# ")[2] for line in lines if "# " in line]

    assert len(promised) == 2
    for message, shown in zip(promised, done.stdout.splitlines(), strict=True):
        assert message.startswith(shown)


def passes() -> set[str]:
    """Return functions of lowering and code generation that map an IR function to another."""
    found = set()
    for path in [*(ROOT / "tecomp/lowering").rglob("*.py"), *(ROOT / "tecomp/codegen").rglob("*.py")]:
        for node in ast.parse(text_of(path)).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            ends = [*(argument.annotation for argument in node.args.args[:1]), node.returns]
            if [ast.unparse(end) for end in ends if end is not None] == ["PrimFunc", "PrimFunc"]:
                found.add(node.name)
    return found


def test_the_architecture_lists_every_pass_in_order() -> None:
    text = text_of(ROOT / "docs" / "architecture.md")
    section = text.partition("## Passes")[2].partition("\n## ")[0]
    listed = re.findall(r"\*([a-z_]+)\*", section)

    assert listed[: len(STAGES)] == list(STAGES)
    # Helper functions of passes are not passes.
    assert passes() - {*listed, "hoist_loop_carried"} == set()
    assert {*listed} - {*STAGES} <= passes()


def test_the_glossary_is_sorted_and_linked_from_each_page() -> None:
    glossary = ROOT / "docs" / "glossary.md"
    terms = re.findall(r"^\| (?!term |---)(.*?) \|", text_of(glossary), re.MULTILINE)
    generated = {"errors.md", "glossary.md", "performance.md"}
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name not in generated]

    assert len(terms) > 60
    assert terms == sorted(set(terms), key=str.lower)
    assert [name_of(path) for path in pages if "glossary.md" not in text_of(path)] == []


def test_the_architecture_has_its_sections() -> None:
    headings = re.findall(r"^## (.*)$", text_of(ROOT / "docs" / "architecture.md"), re.MULTILINE)
    named = re.findall(r"`([a-z_]+/[\w/]+\.py)`", text_of(ROOT / "docs" / "architecture.md"))

    assert headings == ["Compilation pipeline", "Packages and layers", "Passes", "Rules", "Words"]
    assert [
        name for name in named
        if not (ROOT / name).exists() and not (ROOT / "tecomp" / name).exists()
    ] == []
