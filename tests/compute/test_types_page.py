"""The tables and the example of docs/types.md agree with the code."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tecomp import te
from tecomp.errors import TypeMismatchError
from tecomp.ir import SCALARS, DType, as_expr, match_types, promote

PAGE = Path(__file__).parents[2] / "docs" / "types.md"
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LITERALS = (True, 1, -1, 200, 2**31, 2**63, 0.1, 1e39)


def table(rows: list[list[str]]) -> str:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def of_types() -> str:
    rows = [["", *SCALARS]]
    for a in SCALARS:
        rows.append([f"**{a}**", *(promote(DType(a), DType(b)) or "none" for b in SCALARS)])
    return table(rows)


def of_literals() -> str:
    rows = [["literal", "counts as", *SCALARS]]
    for value in LITERALS:
        row = [f"`{value}`", str(as_expr(value).dtype)]
        for name in SCALARS:
            try:
                row.append(match_types(element(name), value, "")[1].dtype)
            except TypeMismatchError:
                row.append("refused")
        rows.append(row)
    return table(rows)


def element(dtype: str) -> Any:
    return te.placeholder((), dtype, name="A")()


def test_the_tables_follow_from_the_code(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    expected = [of_types(), of_literals()]
    if request.config.getoption("--update-golden"):
        result = iter(expected)
        text = TABLE.sub(lambda _: next(result), text)
        PAGE.write_text(text, encoding="utf-8")

    assert TABLE.findall(text) == expected


def test_the_page_example_matches() -> None:
    ((code, output),) = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(PAGE), "exec"), {})

    assert printed.getvalue() == output
