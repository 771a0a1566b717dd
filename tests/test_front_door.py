"""Names of `import tecomp`: for type checkers, in `__all__`, and loaded lazily."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import tecomp

TREE = ast.parse(Path(tecomp.__file__).read_text(encoding="utf-8"))


def seen_by_type_checkers() -> dict[str, str]:
    """Return the module from which each name is imported under `TYPE_CHECKING`."""
    (block,) = [
        item for item in TREE.body
        if isinstance(item, ast.If) and ast.unparse(item.test) == "typing.TYPE_CHECKING"
    ]
    return {
        alias.asname or alias.name: str(line.module)
        for line in block.body if isinstance(line, ast.ImportFrom) for alias in line.names
    }


def test_names_match_type_checkers() -> None:
    for name, module in seen_by_type_checkers().items():
        expected = import_module(f"tecomp.{name}" if module == "tecomp" else module)
        found = getattr(tecomp, name)
        assert found is (expected if module == "tecomp" else getattr(expected, name))


def test_all_documented_names_exist() -> None:
    assert tecomp.__all__ == sorted(tecomp.__all__)
    assert {*tecomp.__all__} == {*seen_by_type_checkers(), "__version__"}
    assert all(hasattr(tecomp, name) for name in tecomp.__all__)
    assert {*tecomp.__all__, *tecomp._SUBMODULES} == {*dir(tecomp)}


def test_rooms_are_modules() -> None:
    assert all(find_spec(f"tecomp.{name}") is not None for name in tecomp._SUBMODULES)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("old", "new"), [
    ("tecomp.moves", "tecomp.copy_schedule"),
    ("tecomp.array.counters", "tecomp.array.statistics"),
])
def test_deprecated_module_paths_are_aliases(old: str, new: str) -> None:
    """Deprecated module paths work in imports and as attributes, with a warning at the caller."""
    package, _, name = old.rpartition(".")
    run = f"""
import sys, warnings
import {new}
import {package} as package
def imported():
    import {old} as found
    return found
def imported_name():
    from {package} import {name}
    return {name}
for found in (imported, imported_name, lambda: package.{name}):
    sys.modules.pop("{old}", None)
    vars(package).pop("{name}", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert found() is {new}
    assert caught  # `from package import name` asks the package twice
    assert all("{new}" in str(warning.message) for warning in caught)
    assert {{warning.category for warning in caught}} == {{DeprecationWarning}}
    assert {{warning.filename for warning in caught}} == {{"<string>"}}
"""
    subprocess.run([sys.executable, "-c", run], check=True)
