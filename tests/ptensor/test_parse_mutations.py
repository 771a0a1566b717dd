"""Mutated texts are parsed, or rejected with the line of the error."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from random import Random

import pytest

from tecomp.errors import ParseError, TecompError
from tecomp.ptensor import lower_ptensor, parse_module, parse_type
from tecomp.ptensor.parse import parse
from tests.ptensor.drawn import cases
from tests.ptensor.team_functions import CHAIN, PRODUCT, RANGE, SEVERAL
from tests.ptensor.test_operations import PLACES, applied

DOCUMENT = [
    """func @f(%s: shape.shape, %v: int64, %t: type, %device: str, %dist: int64) -> ptensor<?x?xf32> {
  %r = ptensor.create(%s, %v, %t, %device, dist): (shape.shape, int64, type, str, int64) -> ptensor.ptensor<?x?xf32>
  return %r
}""",
    """func @f(%x: ptensor<2x3xf32>, %1: int64, %t: type) -> (ptensor<3x2xf64>, ptensor<?x?xi8>) {
  %y = ptensor.cast(%x, 'f64', True): (ptensor<2x3xf32>, type, bool) -> ptensor<2x3xf64>
  %z = ptensor.reshape(%y, (3, 2), None): (ptensor<2x3xf64>, shape.shape, bool) -> ptensor<3x2xf64>
  %e = ptensor.eye(%1, %1, 0, %t): (int64, int64, int64, type) -> ptensor<?x?xi8>
  return %z, %e
}""",
]
TEXTS = [
    *[str(applied(op, types)) for place in PLACES for op, types in cases(*place)],
    CHAIN, PRODUCT, RANGE, SEVERAL, *DOCUMENT,
]
TOKEN = re.compile(r"->|[%@]?\w+|'[^'\n]*'|\s+|\S")
TOKENS = sorted({token for text in TEXTS for token in TOKEN.findall(text)})
NEW = [
    *TOKENS, "", "-1", "-0", "1e999", "9" * 30, "9" * 5000, "inf", "nan", "nanj", "1_0", "0x1", "1if", "\u0663", "\u0661x",
    "((((((((((", "[", "[0]", "{}", "{[]: 1}", "b''", "'", '"', "'''", "\\", "'\\x0'", "'\\U00110000'", "'\\d'",
    "\0", "\n", "\r", "\u2028", "\x85", "None", "True", "lambda: 0", "__import__('os')", "%", "@", "=", "==", "->",
    "()", "(0,)", "(0, 0)", "((0, 0, 0),)", "0.5", "2j", "(1-2j)", "%x0", "%n", "?x", "0x", "(None,)", "'xy'",
    "-9223372036854775808", "18446744073709551616", "-" * 300, "(" * 3000, "-" * 3000, "1" * 3000,
]  # fmt: skip
PLACE = re.compile(r"line \d+(, column \d+)?: ")


def mutated(dice: Random, text: str) -> str:
    """Return the text with one to three edits of tokens, characters or lines."""
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        parts: list[str] = TOKEN.findall(text) if dice.random() < 0.8 else list(text)
        if dice.random() < 0.1:
            parts = text.splitlines(keepends=True)
        if not parts:
            return ""
        k, j = dice.randrange(len(parts)), dice.randrange(len(parts))
        edit = dice.randrange(5)
        if edit == 0:
            del parts[k]
        elif edit == 1:
            parts.insert(k, dice.choice(NEW))
        elif edit == 2:
            parts[k] = dice.choice(NEW)
        elif edit == 3:
            parts[k], parts[j] = parts[j], parts[k]
        else:
            del parts[k:]
        text = "".join(parts)
    return text


def refused(call: Callable[[str], object], text: str) -> TecompError | None:
    """Return the tecomp error of a call, if any; other exceptions propagate."""
    try:
        call(text)
    except TecompError as error:
        return error
    return None


def check(text: str) -> bool:
    """Check that a text round-trips, or is rejected with its line."""
    error = refused(parse_module, text)
    if isinstance(error, ParseError):
        assert error.kind == "ptensor"
        assert {"line", "column"} <= set(error.parameters), text
    elif error is not None:
        # Calls are checked after all functions are known, so their errors name the function
        # instead.
        assert PLACE.match(error.message) or "@" in error.message, (text, error.message)
    if error is not None:
        return False
    module = parse_module(text)
    assert str(parse_module(str(module))) == str(module), text
    with suppress(TecompError):
        lower_ptensor(module)
    return True


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("seed", range(20))
def test_mutated_functions_are_read_or_refused_with_the_line(seed: int) -> None:
    dice = Random(seed)
    read = sum(check(mutated(dice, dice.choice(TEXTS))) for _ in range(300))
    assert 0 < read < 300


def test_every_cut_of_a_text_is_refused_with_the_line() -> None:
    for text in (CHAIN, RANGE):
        for k in range(len(text)):
            with pytest.raises(ParseError) as error:
                parse(text[:k])
            assert error.value.kind == "ptensor"
            assert {"line", "column"} <= set(error.value.parameters)


@pytest.mark.parametrize(("seed", "base"), [*product(range(4), ["ptensor<4x?xfloat32, device='cpu', team=1, gid=2>"])])
def test_mutated_types_are_read_or_refused_with_the_place(seed: int, base: str) -> None:
    dice = Random(seed)
    for _ in range(500):
        text = mutated(dice, base)
        error = refused(parse_type, text)
        if error is not None:
            assert isinstance(error, ParseError)
            assert {"line", "column"} <= set(error.parameters), text
            continue
        found = parse_type(text)
        assert parse_type(str(found)) == found
        assert isinstance(found.device, str | None), text
        assert isinstance(found.team, int | None), text


INTEGERS = ["0", "-1", "1", "2", "3", "7", "-9223372036854775808", "9223372036854775807", "18446744073709551616"]
VALUES = [
    *INTEGERS, "None", "True", "False", "nan", "inf", "-inf", "0.0", "1e308", "(1+infj)", "'int8'", "'bfloat16'",
    "'complex64'", "'x'", "''", "()", *[f"({k},)" for k in [*INTEGERS, "None"]],
    *[f"({j}, {k})" for j, k in product([*INTEGERS, "None"], repeat=2)], "((), ())", "((0,), (0,))", "((5, 0), (1,))",
    "((0, 1, 2),)", "((0, 0, 9223372036854775807),)", "((9, -3, 4), (0, 1, 1))", "%x0",
]  # fmt: skip
ATTRIBUTE = re.compile(r"(?<=[(,] )?(\w+)=(\((?:[^()]|\([^()]*\))*\)|'[^']*'|[^,()]+)")
OPERAND = re.compile(r"(?<=[<x])(\d+|\?)(?=x)|ptensor<\w+>")


def other_values(dice: Random, text: str) -> str:
    """Return the text with other attribute values, operand extents and dtypes."""
    head, line, *rest = text.split("\n")
    for pattern, new in ((ATTRIBUTE, VALUES), (OPERAND, ["0", "1", "2", "3", "4", "5", "?", "9223372036854775807"])):
        found = [match for match in pattern.finditer(line) if match[1] not in ("device", "team")]
        for match in dice.sample(found, min(len(found), dice.choice([0, 1, 1, 2]))):
            value = dice.choice(new)
            line = line.replace(match[0], f"{match[1]}={value}" if pattern is ATTRIBUTE else value, dice.choice([1, -1]))
    return "\n".join([head, line, *rest])


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("seed", range(20))
def test_other_values_of_attributes_are_read_or_refused_with_the_line(seed: int) -> None:
    """Changed attributes that contradict the declared type are rejected with the line."""
    dice = Random(seed)
    for _ in range(300):
        check(other_values(dice, dice.choice(TEXTS)))
