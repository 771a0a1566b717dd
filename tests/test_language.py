"""The grammars in docs/language.md cover the printed IR, and its examples use all constructs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from tecomp.ir import (
    BinOp,
    Buffer,
    CallingConvention,
    CmpOp,
    Expr,
    ForKind,
    IndexMapNode,
    PadValue,
    PrimFunc,
    Range,
    Stmt,
    parse,
)
from tecomp.ptensor import ALL, SCALARS, parse_module
from tests.ir.test_round_trip import Maker
from tests.strategies.grammar import Grammar, python_tokens, tensor_tokens

TEXT = (Path(__file__).parents[1] / "docs" / "language.md").read_text(encoding="utf-8")


def fenced(language: str) -> list[str]:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)\n```$", TEXT, re.MULTILINE | re.DOTALL)
    return found


FUNCTIONS, TENSORS = map(Grammar, fenced("ebnf"))


def classes(root: type) -> set[str]:
    """Return the names of subclasses within the IR nodes, without those of other packages."""
    found: list[type] = root.__subclasses__()
    derived = [item for item in found if item.__module__.startswith("tecomp.ir.nodes.")]
    return {item.__name__ for item in derived}.union(*map(classes, derived))


def parts_of(node: Any) -> Iterator[Any]:
    """Yield a node, all nodes within, and their keywords."""
    yield node
    if is_dataclass(node):
        for field in fields(node):
            yield from parts_of(getattr(node, field.name))
    elif isinstance(node, tuple):
        for part in node:
            yield from parts_of(part)


@pytest.mark.parametrize("text", fenced("te"))
def test_examples_match_the_printer(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize("text", fenced("ptensor"))
def test_ptensor_examples_match_the_printer(text: str) -> None:
    assert str(parse_module(text)) == text


def test_the_examples_use_every_production() -> None:
    for grammar, texts in (
        (FUNCTIONS, map(python_tokens, fenced("te"))),
        (TENSORS, map(list, map(tensor_tokens, fenced("ptensor")))),
    ):
        used = [grammar.used(tokens) for tokens in texts]

        assert None not in used
        assert set().union(*filter(None, used)) == set(grammar.rules)


def test_the_examples_have_every_part_of_the_language() -> None:
    parts = [part for text in fenced("te") for part in parts_of(parse(text))]
    words = [word for kind in (BinOp, CmpOp, ForKind, CallingConvention) for word in kind]

    others = {tensor.__name__ for tensor in (Buffer, IndexMapNode, PadValue, PrimFunc, Range)}
    assert classes(Expr) | classes(Stmt) | others <= {type(part).__name__ for part in parts}
    assert [word for word in words if not any(part is word for part in parts)] == []


@pytest.mark.parametrize("type", [*SCALARS, *(f"ptensor<?x0x{dtype}, device='cpu', team=1>" for dtype in ALL)])
def test_the_grammar_covers_every_ptensor_type(type: str) -> None:
    text = str(parse_module(f"func @f(%x: {type}) -> {type} {{\n  return %x\n}}"))

    assert TENSORS.used(list(tensor_tokens(text))) is not None, text


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("seed", range(40))
def test_random_functions_are_printed_by_the_grammar(seed: int) -> None:
    text = str(Maker(seed).function())

    assert FUNCTIONS.used(python_tokens(text)) is not None, text


@pytest.mark.parametrize("text", [
    'def f(A: Buffer("float32", (4,))):\n    A[0] =',
    'def f(A: Buffer("float32", (4,))):\n    A[0] = 1 2',
    'def f(A: Buffer("float32", (4,))):\n    while A[0] > 1:\n        pass',
    'def f(A: Buffer("float32", [4])):\n    pass',
    "def f():\n    return",
])
def test_grammar_generates_printable_programs_only(text: str) -> None:
    assert FUNCTIONS.used(python_tokens(text)) is None
