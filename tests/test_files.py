"""Sizes of the files of the product, their docstrings, and the files that tests import."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_LINES = 600
MAX_FILES = 600
MAX_FILE_IMPORTS = 150
PUBLIC_FILES = {"tecomp.array.statistics", "tecomp.ptensor.parse"}
"""Files inside of packages that the documentation imports."""
DOCSTRING = re.compile(r'(?:#[^\n]*\n|\n)*(r?"""(?:[^"\\]|\\.|"(?!""))*""")(?=\s)')
IMPORT = re.compile(r"^ *(from tecomp[\w.]* import (?:\([^)]*\)|[\w, ]+))", re.MULTILINE)
"""Statement that imports names of the product, possibly in a string."""


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


def purpose_of(text: str) -> str:
    """Return the first line of the docstring of a file; an empty string without a docstring."""
    found = DOCSTRING.match(text)
    return str(ast.literal_eval(found[1])).strip().partition("\n")[0] if found else ""


def test_each_file_states_its_purpose_in_the_first_line() -> None:
    missing = {
        name for name, text in sources().items()
        if not (purpose := purpose_of(text)).endswith(".") or len(purpose) <= len("A file.")
    }

    assert missing == set()


def test_tests_import_packages_rather_than_files() -> None:
    private = [
        module
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
        # To parse all tests would take seconds.
        if any(map(private_modules, IMPORT.findall(text)))
        for module in private_modules(text)
    ]

    assert 0 < len(private) <= MAX_FILE_IMPORTS, "list the names in the __init__ of their package"


def private_modules(text: str) -> list[str]:
    """Return the modules of the product that a program imports from and that are not public."""
    return [
        module for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module
        for module in imported_files(node)
        if module not in PUBLIC_FILES and not is_operator(module)
    ]


def imported_files(node: ast.ImportFrom) -> set[str]:
    """Return the modules of the product, apart from packages, that a statement imports from."""
    assert node.module is not None
    submodules = {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in {node.module} | submodules if is_file(name)}


def is_file(module: str) -> bool:
    """Return whether `module` is a file inside of a package of the product."""
    path = module.replace(".", "/").replace("tecomp/schedules", "schedules", 1) + ".py"
    return module.count(".") > 1 and path in sources()


def is_operator(module: str) -> bool:
    """Return whether `module` is one of the modules that the library of schedules offers."""
    package, _, name = module.rpartition(".")
    return package == "tecomp.schedules" and name != "common"
