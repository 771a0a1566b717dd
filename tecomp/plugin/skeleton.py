"""Write the skeleton of a target package."""

from __future__ import annotations

import re
from pathlib import Path

from tecomp.errors import TargetError
from tecomp.machine.registry import list_targets

_PROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "NAME-target"
version = "0.1.0"
description = "tecomp target NAME"
requires-python = ">=3.11"
dependencies = ["tecomp"]

# Entry point that tecomp loads: a function that returns the paths of the TOML files.
[project.entry-points."tecomp.targets"]
NAME = "NAME_target:descriptions"

[tool.setuptools]
packages = ["NAME_target"]
[tool.setuptools.package-data]
NAME_target = ["*.toml"]
"""

_CODE = '''\
"""Description of target NAME."""

from __future__ import annotations

from pathlib import Path


def descriptions() -> list[Path]:
    """Return the paths of the TOML files, for the entry point `tecomp.targets`."""
    return sorted(Path(__file__).parent.glob("*.toml"))
'''

_TARGET = """\
# Target NAME. State the origin of each number in `source` or in a comment, and mark guesses.

name = "NAME"
description = "one sentence about NAME"
clock_hz = 1_000_000_000          # guess

[code]
kind = "functional"               # programs for NAME run on the host CPU

[grid]
core.x = 4                        # cores along each axis that loops can be bound to

[formats]                         # storage formats of each host dtype
float32 = ["float32"]

[memory.global]
scope = "host"                    # the arrays of the caller
rank = 1
alignment_bytes = 64
source = "memory of the host"

[memory.scratch]
scope = "core"                    # each core has one
rank = 1                          # number of indices of an address
alignment_bytes = 64              # guess
capacity_bytes = 1_048_576        # guess
source = "guess"

[link.load]
from = "global"
to = "scratch"
scope = "core"
bytes_per_cycle = 32              # guess
source = "guess"

[link.store]
from = "scratch"
to = "global"
scope = "core"
bytes_per_cycle = 32              # guess
source = "guess"

[engine.lanes]
kind = "vector"
width_bytes = 64                  # guess
types = ["float32"]
cycles = { default = 1 }          # guess
memory = "scratch"
source = "guess"
"""

_TEST = '''\
"""Conformance test of target NAME."""

from __future__ import annotations

import tecomp


def test_conformance() -> None:
    checks = tecomp.check_target("NAME")

    assert [check for check in checks if not check.passed] == []
'''

_README = """\
# NAME

Target NAME for tecomp.

    pip install -e .
    tecomp check-target NAME

`NAME_target/NAME.toml` describes the machine. Page docs/targets.md of tecomp explains the keys.
"""


def write_skeleton(name: str, parent: Path) -> tuple[Path, ...]:
    """Write a package with a runnable target to a new directory.

    Args:
        name: Name of the target and of the directory: a lower-case letter, then lower-case
            letters, digits and underscores.
        parent: Directory in which the new directory is created.

    Returns:
        Paths of the written files.

    Raises:
        TargetError: If `name` is not a valid package name, a target with this name is installed,
            or the directory exists already or cannot be written.
    """
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) is None:
        raise TargetError(
            "new-target: `{name}` is not a valid package name; use lower-case letters, digits and "
            "_, beginning with a letter",
            kind="plugin", name=name,
        )
    if name in list_targets():
        raise TargetError(
            "new-target: target `{name}` is already installed; use another name",
            kind="plugin", name=name,
        )
    folder = parent / name
    files = {
        "pyproject.toml": _PROJECT,
        "README.md": _README,
        f"{name}_target/__init__.py": _CODE,
        f"{name}_target/{name}.toml": _TARGET,
        f"tests/test_{name}.py": _TEST,
    }
    try:
        folder.mkdir()
        for path, text in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text.replace("NAME", name), encoding="utf-8")
    except FileExistsError as error:
        raise TargetError(
            "new-target: {folder} already exists; remove it, or use another name",
            kind="plugin", folder=folder,
        ) from error
    except OSError as error:
        raise TargetError(
            "new-target: {folder} cannot be written ({reason})",
            kind="plugin", folder=folder, reason=error,
        ) from error
    return tuple(folder / path for path in files)
