"""Write the stubs of modules defined from tables: `python -m tests.operations.stubs`.

A stub declares the functions of a module with their signatures and docstrings, as they are at run
time. A comment above each function names the table that has its row.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]

TABLES = {
    "tecomp.array.functions.elementwise": "tecomp/operations/elementwise.py",
    "tecomp.array.functions.reductions": "tecomp/operations/reductions.py",
    "tecomp.compute.elementwise": "tecomp/operations/elementwise.py",
}
"""Table of the rows of each module that has a stub."""

ORIGINS = {
    "Any": "typing",
    "Array": "tecomp.array.array_object",
    "Axes": "tecomp.ptensor.types",
    "Expr": "tecomp.ir.nodes.expr",
    "SupportsIndex": "typing",
    "Scalar": "tecomp.array.weak_scalars",
    "Value": "tecomp.compute.expr_like",
}
"""Module of each name in the annotations of signatures."""

WIDTH = 100


def stub(module: ModuleType) -> str:
    """Return the text of the stub of a module."""
    parts = [declaration(module, name) for name in module.__all__]
    signatures = "\n".join(str(inspect.signature(getattr(module, name))) for name in module.__all__)
    found = [name for name in ORIGINS if re.search(rf"\b{name}\b", signatures)]
    imports = [
        f"from {origin} import {', '.join(name for name in found if ORIGINS[name] == origin)}\n"
        for origin in sorted({ORIGINS[name] for name in found} - {"typing"})
    ]
    if typing := [name for name in found if ORIGINS[name] == "typing"]:
        imports.insert(0, f"from typing import {', '.join(typing)}\n\n")
    head = f'"""{inspect.getdoc(module)}\n"""\n\n# Generated: `python -m tests.operations.stubs`.\n\n'
    names = "".join(f'    "{name}",\n' for name in module.__all__)
    return f"{head}{''.join(imports)}\n__all__ = [  # noqa: RUF022\n{names}]\n\n" + "\n".join(parts)


def declaration(module: ModuleType, name: str) -> str:
    """Return the declaration of a function of a module, with its docstring."""
    function = getattr(module, name)
    signature = str(inspect.signature(function)).replace("'", "")
    line = f"def {name}{signature}:"
    if len(line) > WIDTH:
        parameters, result = signature.removeprefix("(").rsplit(") -> ", 1)
        line = f"def {name}(\n    {parameters}\n) -> {result}:"
    text = (inspect.getdoc(function) or "").replace("\n", "\n    ").replace("\n    \n", "\n\n")
    return f'# {TABLES[module.__name__]}: "{name}"\n{line}\n    """{text}\n    """\n'


def path_of(name: str) -> Path:
    """Return the path of the stub of a module."""
    return ROOT / f"{name.replace('.', '/')}.pyi"


if __name__ == "__main__":
    for name in TABLES:
        path_of(name).write_text(stub(import_module(name)), encoding="utf-8")
