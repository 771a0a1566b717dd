"""Rules of prose that linters do not know: docstrings, words, and subjects of commits."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Metaphors and paraphrases, with the terms of the field for which they stood.
TERMS = {
    "anew": "again",
    "ask(s|ed)? for": "request",
    "at hand": "current",
    "at one time": "simultaneously",
    "front door": "public interface",
    "goes on": "continues",
    "how long": "duration",
    "how often": "number of times, frequency",
    "in turns": "alternately",
    "laid out": "stored in a layout",
    "lets? go": "release",
    "lies?": "is stored",
    "mend(s|ed|ing)?": "fix",
    "mistakes?": "error",
    "nobody|somebody|whoever": "the caller, the user, a process",
    "of others": "of other ranks, stages, ...",
    "one after another": "sequentially",
    "people": "users",
    "piece by piece": "in blocks",
    "rooms?|storeys?": "package; free memory",
    "said|says": "specifies, reports",
    "shared among": "distributed over",
    "so many": "a given number of",
    "stands? for": "represents",
    "tells?|told": "reports, specifies",
    "things?": "the noun",
    "walks?|walked": "traverse",
    "way through": "pipeline",
    "whatever": "any, regardless of",
    "wish(es|ed)?": "hint",
    "worked out": "computed",
}
FORBIDDEN = re.compile(rf"\b(?:{'|'.join(TERMS)})\b", re.IGNORECASE)

QUOTED = re.compile(r"`[^`]*`|\"[^\"\n]*\"|^```.*?^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^ *(?:>>>|\.\.\.).*$", re.MULTILINE)
ENTRY = re.compile(r"^ +\*{0,2}\w+(?:, \*{0,2}\w+)*:", re.MULTILINE)
SECTION = re.compile(r"\n\n(?=(?:Args|Attributes|Raises|Returns|Yields|Source|Notes):\n)")


@dataclass(frozen=True)
class Docstring:
    """Docstring of a function, class, module or constant.

    Attributes:
        place: File and line.
        text: Text without indentation.
        parameters: Parameters of the function that is documented; None for others.
    """

    place: str
    text: str
    parameters: frozenset[str] | None

    def section(self, name: str) -> str:
        """Return the text of a section, or an empty string."""
        parts = SECTION.split(self.text)[1:]
        found = (part.removeprefix(f"{name}:\n") for part in parts if part.startswith(f"{name}:"))
        return next(found, "").partition("\n\n")[0]


@cache
def files() -> list[Path]:
    """Return the files of the product."""
    return [
        path for folder in ("tecomp", "schedules", "targets")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]


def docstrings(path: Path) -> Iterator[Docstring]:
    """Yield all docstrings of a file, including the texts that follow constants."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        for number, entry in enumerate(node.body):
            if not isinstance(entry, ast.Expr) or not isinstance(entry.value, ast.Constant):
                continue
            if isinstance(text := entry.value.value, str):
                parameters = None
                if isinstance(node, ast.FunctionDef) and number == 0:
                    parameters = parameters_of(node.args)
                yield Docstring(f"{path.relative_to(ROOT)}:{entry.lineno}", cleandoc(text), parameters)


def parameters_of(args: ast.arguments) -> frozenset[str]:
    """Return the names of the parameters of a function."""
    variadic = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return frozenset(
        arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, *variadic))


@cache
def documented() -> list[Docstring]:
    """Return all docstrings of the product."""
    return [docstring for path in files() for docstring in docstrings(path)]


def test_raises_entries_state_a_condition() -> None:
    raised = [
        (item.place, entry)
        for item in documented() if item.parameters is not None
        for entry in re.findall(r"^    (?! )\S.*$", item.section("Raises"), re.MULTILINE)
    ]
    wrong = [
        (place, entry) for place, entry in raised
        if not re.match(r"[\w., ]+: (If |Always\.)", entry)
    ]

    assert len(raised) > 900  # the entries were found
    assert wrong == []


def test_documented_arguments_are_parameters() -> None:
    """Ruff checks that each parameter of a list of arguments is described (D417)."""
    wrong, count = [], 0
    for item in documented():
        if item.parameters is None or not (text := item.section("Args")):
            continue
        names = {
            name.strip(" *")
            for entry in re.findall(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", text, re.MULTILINE)
            for name in entry.split(",")
        }
        wrong += [(item.place, sorted(names - item.parameters))] if names - item.parameters else []
        count += 1

    assert count > 800  # the sections were found
    assert wrong == []


def test_summaries_of_functions_are_one_sentence() -> None:
    found = [
        (item.place, item.text.partition("\n")[0])
        for item in documented() if item.parameters is not None
    ]
    wrong = [
        (place, summary) for place, summary in found
        if re.search(r"\w\. [A-Z]", QUOTED.sub("`", summary))
    ]

    assert len(found) > 4000
    assert wrong == []


def comments(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the comments of a file with their places."""
    text = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield f"{path.relative_to(ROOT)}:{token.start[0]}", token.string


def pages() -> list[Path]:
    """Return the documents, without the record of earlier versions."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tecomp" / "errors.md"]
    return sorted(path for path in found if path.name not in ("CHANGELOG.md", "THIRD_PARTY.md"))


def poor_words(text: str) -> list[str]:
    """Return the words of a text that have to be replaced."""
    plain = ENTRY.sub("", EXAMPLE.sub("", QUOTED.sub("`", text)))
    return [match[0] for match in FORBIDDEN.finditer(plain)]


def test_words_are_standard_terms() -> None:
    texts = [(item.place, item.text) for item in documented()]
    texts += [entry for path in files() for entry in comments(path)]
    texts += [(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in pages()]
    poor = [(place, words) for place, text in texts if (words := poor_words(text))]

    assert len(texts) > 8000
    assert poor == [], "use the terms that TERMS lists"


@pytest.mark.parametrize(("text", "words"), [
    ("Elements are computed anew.", ["anew"]),
    ("Elements whose place Nobody asked for.", ["Nobody", "asked for"]),
    ("`wish` is a word in code, and lists are not lies.", ["lies"]),
    ("Args:\n    told: Number of elements.", []),
])
def test_poor_words_are_found(text: str, words: list[str]) -> None:
    assert poor_words(text) == words


# Commits after this one follow the guide.
BASE = "c4e2f21e"
POOR_SUBJECT = re.compile(
    r"(?:[\w/, .-]+: )?(?:Ask|Bring|Give|Let|Look|Mend|Put|Say|Tell|Try)\b",
)
NOT_IMPERATIVE = re.compile(
    r"(?:[\w/, .-]+: |(?![\w/, .-]+: ))(?!(?:Embed|Feed|Need|Bring|String)\b)(?:\w+ed|\w+ing|Adds|Fixes|Removes|Renames)\b"
)


def subjects() -> list[str]:
    """Return the subjects of the commits since `BASE`; none without a repository."""
    try:
        done = subprocess.run(
            ["git", "log", "--no-merges", "--format=%s", f"{BASE}..HEAD"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def problem_of(subject: str) -> str:
    """Return the problem of the subject of a commit, or an empty string."""
    if len(subject) > 72:
        return "longer than 72 characters"
    if subject.endswith("."):
        return "ends with a full stop"
    if POOR_SUBJECT.match(subject):
        return "names the act of changing in place of the feature"
    if NOT_IMPERATIVE.match(subject):
        return "not imperative"
    found = poor_words(subject)
    return f"use the terms of the field in place of {found[0]}" if found else ""


def test_subjects_of_commits_follow_the_guide() -> None:
    assert [(problem, subject) for subject in subjects() if (problem := problem_of(subject))] == []


@pytest.mark.parametrize(("subject", "has_problem"), [
    ("array: Document the errors of reductions", False),
    ("Embed programs in other applications", False),
    ("Say all arguments of reductions where they stand", True),
    ("Mend two tests that could not fail", True),
    ("Added a test", True),
    ("Add a test.", True),
    ("codegen: Compute what loops divide by sizes " + "x" * 40, True),
])
def test_subjects_are_judged(subject: str, has_problem: bool) -> None:
    assert bool(problem_of(subject)) == has_problem
