"""Write the stubs of modules defined from tables: `python -m tests.operations.stubs`.

A stub declares the functions of a module with their signatures and docstrings, as they are at run
time. A comment above each function names the table that has its row.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tecomp.operations import ELEMENTWISE, REDUCTIONS

ROOT = Path(__file__).parents[2]

TABLES = {
    "tecomp.array.functions.table_functions": "tecomp/operations/elementwise.py",
    "tecomp.compute.elementwise": "tecomp/operations/elementwise.py",
    "tecomp.topi.elementwise": "tecomp/operations/elementwise.py",
    "tecomp.topi.reductions": "tecomp/operations/reductions.py",
}
"""Table of the rows of each module that has a stub; reductions have their own table."""

ORIGINS = {
    "Any": "typing",
    "Array": "tecomp.array.array_object",
    "Axes": "tecomp.ptensor.types",
    "Expr": "tecomp.ir.nodes.expr",
    "Operand": "tecomp.topi.validation",
    "SupportsIndex": "typing",
    "Scalar": "tecomp.array.weak_scalars",
    "Tensor": "tecomp.compute.tensor",
    "Value": "tecomp.compute.expr_like",
}
"""Module of each name in the annotations of signatures."""

ORIGINS_IN = {"tecomp.topi.reductions": {"Axes": "tecomp.topi.validation"}}
"""Modules of names that differ from `ORIGINS`, for each module with a stub."""

OVERLOADS = {
    "(data: Operand) -> Tensor | Expr": (
        "(data: Tensor) -> Tensor", "(data: Expr | float) -> Expr",
    ),
    "(lhs: Operand, rhs: Operand) -> Tensor | Expr": (
        "(lhs: Tensor, rhs: Operand) -> Tensor", "(lhs: Operand, rhs: Tensor) -> Tensor",
        "(lhs: Expr | float, rhs: Expr | float) -> Expr",
    ),
}
"""Signatures whose result depends on the operands, and their cases."""

WIDTH = 100


def stub(module: ModuleType) -> str:
    """Return the text of the stub of a module."""
    parts = [declaration(module, name) for name in module.__all__]
    signatures = "\n".join(signature_of(getattr(module, name)) for name in module.__all__)
    origins = ORIGINS | ORIGINS_IN.get(module.__name__, {})
    found = [name for name in origins if re.search(rf"\b{name}\b", signatures)]
    imports = [
        f"from {origin} import {', '.join(name for name in found if origins[name] == origin)}\n"
        for origin in sorted({origins[name] for name in found} - {"typing"})
    ]
    typing = [name for name in found if origins[name] == "typing"]
    if any(signature in signatures for signature in OVERLOADS):
        typing.append("overload")
    if typing:
        imports.insert(0, f"from typing import {', '.join(typing)}\n\n")
    head = f'"""{inspect.getdoc(module)}\n"""\n\n# Generated: `python -m tests.operations.stubs`.\n\n'
    names = "".join(f'    "{name}",\n' for name in module.__all__)
    return f"{head}{''.join(imports)}\n__all__ = [  # noqa: RUF022\n{names}]\n\n" + "\n".join(parts)


def declaration(module: ModuleType, name: str) -> str:
    """Return the declaration of a function of a module, with its docstring."""
    function = getattr(module, name)
    signature = signature_of(function)
    cases = OVERLOADS.get(signature, (signature,))
    mark = "@overload\n" if len(cases) > 1 else ""
    row = row_name(name)
    table = "tecomp/operations/reductions.py" if row in REDUCTIONS else TABLES[module.__name__]
    head = f'# {table}: "{row}"\n{mark}{line_of(name, cases[0])}'
    text = (inspect.getdoc(function) or "").replace("\n", "\n    ").replace("\n    \n", "\n\n")
    others = "".join(f"{mark}{line_of(name, case)} ...\n" for case in cases[1:])
    return f'{head}\n    """{text}\n    """\n{others}'


def row_name(name: str) -> str:
    """Return the name of the row of a function, which differs for some functions of topi."""
    name = re.sub("^cum(ulative_)?", "", name)
    return next((row.name for row in ELEMENTWISE if f"topi:{name}" in row.surfaces.split()), name)


def signature_of(function: Callable[..., object]) -> str:
    """Return the signature of a function with its annotations."""
    return str(inspect.signature(function)).replace("'", "")


def line_of(name: str, signature: str) -> str:
    """Return the `def` of a function, in several lines if it is long."""
    line = f"def {name}{signature}:"
    if len(line) > WIDTH:
        parameters, result = signature.removeprefix("(").rsplit(") -> ", 1)
        line = f"def {name}(\n    {parameters}\n) -> {result}:"
        if len(parameters) + 4 > WIDTH:
            line = line.replace(parameters, parameters.replace(", ", ",\n    ") + ",")
    return line


def path_of(name: str) -> Path:
    """Return the path of the stub of a module."""
    return ROOT / f"{name.replace('.', '/')}.pyi"


if __name__ == "__main__":
    for name in TABLES:
        path_of(name).write_text(stub(import_module(name)), encoding="utf-8")
