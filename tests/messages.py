"""Templates of all errors and warnings in the source, and the comparison of errors in tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from tecomp import errors
from tecomp.error_pages import error_pages

ROOT = Path(__file__).parents[1]
SETTINGS = {"kind", "location"}
"""Keywords of errors that are not parameters of the template."""
FORWARDED = "template"
"""Name of template parameters; functions with such a parameter raise errors."""


@dataclass(frozen=True, init=False)
class Diagnostic:
    """Error or warning as structured data: its kind, and the parameters of its message."""

    kind: str
    parameters: Mapping[str, Any]

    def __init__(self, kind: str, /, **parameters: Any) -> None:
        object.__setattr__(self, "kind", kind)
        # Normalized like the parameters of errors: nan becomes a string, which is equal to itself.
        plain = {name: errors._plain(value) for name, value in parameters.items()}
        object.__setattr__(self, "parameters", plain)


def diagnostic(error: BaseException | Warning | str) -> Diagnostic:
    """Return the kind and the parameters of an error or of a warning of tecomp."""
    assert isinstance(error, errors.TecompError | errors.TecompWarning), repr(error)
    return Diagnostic(error.kind, **error.parameters)


@dataclass(frozen=True)
class Template:
    """Message of one raised error in the source.

    Attributes:
        error: Name of the class.
        kind: Kind of the error; the expression, if it is computed.
        text: Template, including the text that the raising function adds around it.
    """

    error: str
    kind: str
    text: str


@dataclass(frozen=True)
class Raiser:
    """Class of errors, or function that raises errors with a given template.

    Attributes:
        error: Name of the class.
        index: Position of the template among the arguments.
        kind: Kind without an explicit one.
        before: Text before the template.
        after: Text after the template.
        names: Names of parameters that the function itself passes.
    """

    error: str
    index: int
    kind: str
    before: str = ""
    after: str = ""
    names: frozenset[str] = frozenset()


def fields_of(text: str) -> frozenset[str]:
    """Return the names of the parameters in a template."""
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


@cache
def templates() -> tuple[Template, ...]:
    """Return the templates of all errors and warnings in the source.

    Raises:
        AssertionError: If a message is not a literal, or does not use exactly the given parameters.
    """
    files = [
        (file, ast.parse(file.read_text()))
        for folder in ("tecomp", "schedules", "targets")
        for file in sorted((ROOT / folder).rglob("*.py"))
    ]
    classes = _classes(tree for _, tree in files)
    functions: dict[Path, dict[str, Raiser]] = {file.parent: {} for file, _ in files}
    for file, tree in files:
        functions[file.parent] |= _raisers(tree, classes)
    return tuple(
        item for file, tree in files
        for item in _raised(file, tree, classes | functions[file.parent])
    )


def catalogue() -> str:
    """Return all messages, by code, kind and class."""
    lines: list[str] = []
    heading = ""
    for code, kind, error, text in sorted({
        (_code(template.kind), template.kind, template.error, template.text) for template in templates()
    }):
        if heading != f"{code} {kind}":
            heading = f"{code} {kind}"
            lines += ["", heading]
        lines.append(f"  {error}: {text}".replace("\n", "\\n"))
    return "\n".join(lines[1:])


def _code(kind: str) -> str:
    page = error_pages().get(kind)
    return page.code if page else "computed"


def _classes(trees: Iterator[ast.Module]) -> dict[str, Raiser]:
    """Return the classes of errors and of warnings, and `warn`."""
    found = {
        name: Raiser(name, 0, each.usual) for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, errors.TecompError)
    }
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for base in map(ast.unparse, node.bases):
                    if base in found:
                        found.setdefault(node.name, Raiser(node.name, 0, found[base].kind))
    return found | {"warn": Raiser("TecompWarning", 0, "")}


def _raisers(tree: ast.Module, classes: Mapping[str, Raiser]) -> dict[str, Raiser]:
    """Return the functions of a file that raise errors with a given template, by name."""
    found: dict[str, Raiser] = {}
    for function in _functions(tree):
        if not _takes_template(function):
            continue
        names = _parameters(function)
        call = next(
            node for node in ast.walk(function)
            if isinstance(node, ast.Call) and _last(node.func) in classes
        )
        before, after = _around(call.args[0])
        raiser = classes[_last(call.func)]
        fields = {keyword.arg for keyword in call.keywords if keyword.arg} - SETTINGS
        index = names.index(FORWARDED) - (names[0] == "self")
        kind = _kind(call, raiser.kind)
        found[function.name] = Raiser(raiser.error, index, kind, before, after, frozenset(fields))
    return found


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]


def _takes_template(function: ast.FunctionDef) -> bool:
    """Return whether a function raises errors with a template of its caller."""
    excluded = ("__init__", "warn", "_fill_template")
    forwards = any(
        arg.arg == FORWARDED and arg.annotation and ast.unparse(arg.annotation) == "str"
        for arg in (*function.args.posonlyargs, *function.args.args)
    )
    return forwards and function.name not in excluded


def _around(node: ast.expr) -> tuple[str, str]:
    """Return the texts before and after the template that a function forwards."""
    parts: list[ast.expr] = []
    while isinstance(node, ast.BinOp):
        parts.insert(0, node.right)
        node = node.left
    texts = [part.value if isinstance(part, ast.Constant) else None for part in (node, *parts)]
    place = texts.index(None)
    return "".join(map(str, texts[:place])), "".join(map(str, texts[place + 1 :]))


def _raised(file: Path, tree: ast.Module, raisers: Mapping[str, Raiser]) -> Iterator[Template]:
    constants = {
        target.id: node.value.value
        for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets if isinstance(target, ast.Name)
    }
    functions = _functions(tree)
    others = {item.name for item in functions if not _takes_template(item)}
    source = {
        item.arg: Raiser("TecompError", 0, "") for function in functions
        for item in function.args.args
        if item.arg == "error" and ast.unparse(item.annotation or item) == "type[TecompError]"
    }
    raisers = {name: item for name, item in raisers.items() if name not in others} | source
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        raiser = raisers.get(_last(node.func))
        if raiser is None or len(node.args) <= raiser.index or "warnings" in ast.unparse(node.func):
            continue
        yield from _template(file.relative_to(ROOT), node, raiser, constants)


def _template(
    file: Path, node: ast.Call, raiser: Raiser, constants: Mapping[str, Any]
) -> Iterator[Template]:
    where = f"{file}:{node.lineno}: {ast.unparse(node)}"
    source = node.args[raiser.index]
    if any(isinstance(part, ast.Name) and part.id == FORWARDED for part in ast.walk(source)):
        return
    if file == Path("tecomp/errors.py") and ast.unparse(source) == "message":
        return  # an error of another process, with its formatted message
    text = constants.get(source.id) if isinstance(source, ast.Name) else getattr(source, "value", None)
    assert isinstance(text, str), f"{where}: the message is no literal"
    passed = {keyword.arg for keyword in node.keywords if keyword.arg} - SETTINGS
    is_open = any(keyword.arg is None for keyword in node.keywords)
    names = passed | raiser.names
    assert not passed & raiser.names, f"{where}: {passed & raiser.names} are passed twice"
    is_filled = bool(names) or is_open
    used = fields_of(raiser.before + text + raiser.after) if is_filled else frozenset()
    assert names == used or (is_open and names <= used), f"{where}: {names ^ used}"
    yield Template(
        raiser.error, _kind(node, raiser.kind), raiser.before + text + raiser.after
    )


def _kind(node: ast.Call, default: str) -> str:
    source = next((keyword.value for keyword in node.keywords if keyword.arg == "kind"), None)
    if source is None:
        return default
    return str(source.value) if isinstance(source, ast.Constant) else ast.unparse(source)


def _last(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]
