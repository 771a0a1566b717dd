"""EBNF grammars without left recursion, parsed from text and matched against token lists."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterator
from typing import TypeAlias

Token: TypeAlias = "tuple[str, str]"
"""Kind of a token, such as NAME, and its text."""
Ends: TypeAlias = "dict[int, frozenset[str]]"
"""Possible ends of a match, with the productions used by the first match for each end."""
Rule: TypeAlias = "Callable[[Matcher, int], Ends]"

_PART = re.compile(r'\s*("[^"]*"|\w+|[][(){}|;=])')


class Grammar:
    """Productions by name; the first one is the start symbol."""

    def __init__(self, text: str) -> None:
        self._parts = _PART.findall(text)
        self.rules: dict[str, Rule] = {}
        while self._parts:
            name, equals = self._parts.pop(0), self._parts.pop(0)
            assert equals == "=", f"{name} {equals}"
            self.rules[name] = self._choice()
            assert self._parts.pop(0) == ";", name

    def used(self, tokens: list[Token]) -> frozenset[str] | None:
        """Return the productions that derive the tokens; None if the grammar does not match."""
        start = next(iter(self.rules))
        return Matcher(self.rules, tokens).named(start, 0).get(len(tokens))

    def _choice(self) -> Rule:
        options = [self._sequence()]
        while self._parts[0] == "|":
            self._parts.pop(0)
            options.append(self._sequence())
        return options[0] if len(options) == 1 else lambda m, k: m.choice(options, k)

    def _sequence(self) -> Rule:
        parts: list[Rule] = []
        while self._parts[0] not in ("|", ";", ")", "]", "}"):
            parts.append(self._term())
        return lambda m, k: m.sequence(parts, k)

    def _term(self) -> Rule:
        part = self._parts.pop(0)
        if part in "([{":
            inner = self._choice()
            self._parts.pop(0)
            if part == "(":
                return inner
            repeats = part == "{"
            return lambda m, k: m.repeated(inner, k, once=not repeats)
        if part.startswith('"'):
            return lambda m, k: m.token(part[1:-1], k, by_text=True)
        if part.isupper():
            return lambda m, k: m.token(part, k, by_text=False)
        return lambda m, k: m.named(part, k)


class Matcher:
    """Matcher of grammar rules at positions of a token list."""

    def __init__(self, rules: dict[str, Rule], tokens: list[Token]) -> None:
        self.rules, self.tokens = rules, tokens
        self._known: dict[tuple[str, int], Ends] = {}

    def named(self, name: str, start: int) -> Ends:
        """Return the ends of a production that starts at a position."""
        key = name, start
        if key not in self._known:
            found = self.rules[name](self, start)
            self._known[key] = {end: used | {name} for end, used in found.items()}
        return self._known[key]

    def token(self, text: str, start: int, *, by_text: bool) -> Ends:
        """Return the position after one token, if the token matches."""
        fits = start < len(self.tokens) and self.tokens[start][by_text] == text
        return {start + 1: frozenset()} if fits else {}

    def choice(self, options: list[Rule], start: int) -> Ends:
        """Match any of several rules."""
        found: Ends = {}
        for option in options:
            found = {**option(self, start), **found}
        return found

    def sequence(self, parts: list[Rule], start: int) -> Ends:
        """Match rules in sequence."""
        found: Ends = {start: frozenset()}
        for part in parts:
            found = self._followed(found, part)
        return found

    def repeated(self, part: Rule, start: int, *, once: bool) -> Ends:
        """Match a rule any number of times, or at most once."""
        last: Ends = {start: frozenset()}
        found = dict(last)
        while last:
            last = {end: x for end, x in self._followed(last, part).items() if end not in found}
            found |= last
            if once:
                break
        return found

    def _followed(self, before: Ends, part: Rule) -> Ends:
        found: Ends = {}
        for middle, used in before.items():
            for end, more in part(self, middle).items():
                found.setdefault(end, used | more)
        return found


def python_tokens(text: str) -> list[Token]:
    """Return the tokens of Python text without comments and empty lines."""
    left_out = (tokenize.NL, tokenize.COMMENT, tokenize.ENDMARKER)
    result = tokenize.generate_tokens(io.StringIO(text.rstrip() + "\n").readline)
    tokens = (token for token in result if token.type not in left_out)
    return [(tokenize.tok_name[token.type], token.string) for token in tokens]


_TENSORS = {
    "VALUE": r"%\w+", "FUNCTION": r"@\w+", "EXTENT": r"(?:\d+|\?)x", "NUMBER": r"\d+(?:\.\d*)?(?:e[+-]?\d+)?",
    "NAME": r"[A-Za-z_]\w*", "STRING": r"'[^']*'|\"[^\"]*\"", "OP": r"->|[^\s\w]",
}


def tensor_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of functions on arrays."""
    pattern = "|".join(f"(?P<{name}>{each})" for name, each in _TENSORS.items())
    for match in re.finditer(pattern, text):
        assert match.lastgroup is not None
        yield match.lastgroup, match.group()
