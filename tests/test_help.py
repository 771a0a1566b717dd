"""`help()` of every public name shows an example.

Functions, classes and methods have an example in their own docstring. Properties, fields, enum
values and errors are named in the example of their class, or of one of its base classes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tecomp.codegen import Kernel
from tecomp.drawing import HtmlPage, Svg
from tecomp.driver import ScheduledKernel
from tecomp.errors import TecompError
from tecomp.ir import Buffer, PrimFunc
from tecomp.scheduling import ThreadAxis, Trace
from tecomp.scheduling.schedule import Group

MODULES = sorted(
    module
    for page in (Path(__file__).parents[1] / "docs" / "reference").glob("*.rst")
    for module in re.findall(r"automodule:: (\S+)", page.read_text(encoding="utf-8"))
)

FOR_THE_COMPILER = frozenset((
    # Nodes: printing, variable binding, and operands of arithmetic.
    "as_expr", "bound", "bound_fields", "combined", "is_value", "is_variable", "is_whole", "of_element",
    "operated", "precedence", "print_tokens", "takes_operators",
    # Index maps: construction from nodes, and properties for one shape.
    "lift", "on",
    # Operations: used by operators and passes.
    "elementwise", "known", "rewritten",
    # Errors: stored data; layouts: metadata of their arrays.
    "ends_at_user", "mark", "usual",
    # Traces: used by schedules to record themselves.
    "Trace.start", "Trace.then",
    # Partitions and teams: used by redistributions and calls.
    "Partition.cuts", "Partition.holders", "Partition.numbers", "Partition.part",
    "Team.along", "Team.began", "Team.call", "Team.check_mesh", "Team.revoke", "Team.wait_all",
    "Team.waiting",
))
"""Names without an underscore that other packages of tecomp use, but not users."""


def _public(module: ModuleType) -> dict[str, Any]:
    names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    return {name: getattr(module, name) for name in names}


def _own_classes(cls: type) -> list[type]:
    return [item for item in cls.__mro__ if item.__module__.startswith("tecomp")]


def _example(thing: Any) -> str:
    text = thing.__dict__.get("__doc__") if isinstance(thing, type) else inspect.getdoc(thing)
    _, prompt, example = (text or "").partition(">>> ")
    return prompt + example


def _members(cls: type) -> Iterator[str]:
    names = {name for own_class in _own_classes(cls) for name in vars(own_class)}
    names |= {name for own_class in _own_classes(cls) for name in inspect.get_annotations(own_class)}
    yield from sorted(
        n for n in names if n[0] != "_" and not FOR_THE_COMPILER & {n, f"{cls.__name__}.{n}"}
    )


def _is_shown(cls: type, name: str) -> bool:
    found = [vars(item)[name] for item in _own_classes(cls) if name in vars(item)]
    if any(_example(getattr(item, "__func__", item)) for item in found):
        return True
    if any(inspect.isfunction(getattr(item, "__func__", item)) for item in found):
        return False
    return any(re.search(rf"\b{name}\b", _example(item)) for item in _own_classes(cls))


def _without_example(names: dict[str, Any]) -> Iterator[str]:
    for name, value in names.items():
        if not isinstance(value, type):
            if callable(value) and not _example(value):
                yield name
            continue
        if issubclass(value, TecompError):
            shown = any(name in _example(item) for item in _own_classes(value))
            if not (shown or _example(value)):
                yield name
            continue
        if not _example(value):
            yield name
        yield from (f"{name}.{item}" for item in _members(value) if not _is_shown(value, item))


def test_public_objects_have_examples() -> None:
    inputs = [ScheduledKernel, Kernel, Trace, Group, ThreadAxis, Svg, HtmlPage, PrimFunc, Buffer]

    assert list(_without_example({cls.__name__: cls for cls in inputs})) == []


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_example(module: str) -> None:
    assert list(_without_example(_public(import_module(module)))) == []


ELSEWHERE = re.compile(
    r"\b(?:[Ss]ee `(?!numpy)|arguments? (?:and errors )?(?:as|see)\b|with its arguments\b|: as (?:for|of) `)|, as (?:for|of) `\w+`\."
)
"""Patterns that refer a reader of `help()` to another page for arguments or errors."""


def _texts(names: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in names.items():
        yield name, inspect.getdoc(value) or ""
        for item in _own_classes(value) if isinstance(value, type) else ():
            for member, thing in vars(item).items():
                if member[0] != "_" and member not in FOR_THE_COMPILER:
                    yield f"{name}.{member}", inspect.getdoc(getattr(thing, "__func__", thing)) or ""


@pytest.mark.parametrize("module", MODULES)
def test_public_docstrings_describe_their_arguments(module: str) -> None:
    texts = _texts(_public(import_module(module)))

    assert [(name, found[0]) for name, text in texts if (found := ELSEWHERE.search(text))] == []


@pytest.mark.parametrize("module", MODULES)
def test_completion_offers_public_names_alone(module: str) -> None:
    found = import_module(module)
    public = getattr(found, "__all__", None) or dir(found)
    offered = [name for name in dir(found) if name[0] != "_" and callable(getattr(found, name))]

    assert set(offered) <= set(public)


@pytest.mark.parametrize("name", ["array", "array.fft", "array.linalg"])
def test_functions_of_arrays_say_all_of_their_keywords(name: str) -> None:
    functions = {key: value for key, value in _public(import_module(f"tecomp.{name}")).items()
                 if inspect.isfunction(value)}
    keywords = {key: [item.name for item in inspect.signature(value).parameters.values()
                      if item.kind is item.KEYWORD_ONLY] for key, value in functions.items()}

    assert [(key, word) for key, words in keywords.items() for word in words
            if not re.search(rf"\b{word}\b", inspect.getdoc(functions[key]) or "")] == []
