"""Naming rules of the product: unique class names, and verbs or nouns for functions."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOP = ("tecomp", "schedules", "targets")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef

# Words that do not name an operation or a result on their own.
_PARTICIPLES = """\
    added agreed aligned alike alone along apart asked beside bound bounded brought built called
    cached checked chosen collapsed combined compiled completed composed computed converted copied
    counted created damaged declared decoded defined described divided encoded evaluated filled
    filtered fitted flattened found fused gathered given guarded held inlined inserted installed
    joined kept known laid limited listed located lowered made mapped marked masked measured mended
    merged mixed moved named narrowed needed nested numbered opened ordered outlined packed padded
    paired passed placed propagated pushed reached realized rebased rebuilt reduced relaid
    renamed replaced rounded said sampled scaled scanned scheduled seen selected settled shared
    shifted shown simplified sized sliced sorted squared stored summed taken timed told
    touched transposed turned united unpacked unpaired used viewed walked wanted whole widened
    within without written"""
_PRONOUNS = """\
    each everyone it nobody one others somebody someone that them these they this those what which
    who whose"""
POOR = frozenset(f"{_PARTICIPLES} {_PRONOUNS}".split())
# Names of NumPy, the array-API standard and TVM, and layout notations.
STANDARD = frozenset({
    "tecomp.topi.transform.concatenate.split", "tecomp.scheduling.loops.split",
    "tecomp.schedules.pool.whole",
})


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    return name if name.startswith("tecomp") else f"tecomp.{name}"


def trees_with(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield modules of the product and their syntax trees, if the text has one of the words.

    Trees are not cached: each full garbage collection of later tests would traverse them.
    """
    for path in sorted(path for top in TOP for path in (ROOT / top).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in words):
            yield module_of(path), ast.parse(text)


@dataclass
class Names:
    """Names that a module defines.

    Attributes:
        classes: Public classes, also inside of functions.
        functions: Functions of the module itself.
        poor: Local variables and parameters whose names are in `LOCALS`.
        constants: Constants of the hardware that are bound to integers.
    """

    classes: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    poor: set[str] = field(default_factory=set)
    constants: list[str] = field(default_factory=list)


@cache
def names() -> dict[str, Names]:
    """Return the names of all modules of the product."""
    return {module: names_of(tree) for module, tree in trees_with("")}


def names_of(tree: ast.Module) -> Names:
    found = Names(functions=[node.name for node in tree.body if isinstance(node, FUNCTION)])
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found.classes.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = (target.id.lstrip("_") for target in targets if isinstance(target, ast.Name))
            is_integer = isinstance(node.value.value, int)
            found.constants += [name for name in bound if name in HARDWARE and is_integer]
        elif isinstance(node, FUNCTION):
            found.poor |= {name for part in ast.walk(node) if (name := bound_by(part)) in LOCALS}
    return found


def bound_by(node: ast.AST) -> str:
    """Return the name of a parameter or of a variable that is assigned to, or an empty string."""
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""


@pytest.mark.exhaustive
def test_a_public_class_name_occurs_once() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module, found in names().items():
        for name in found.classes:
            homes[name].append(module)

    assert len(homes) > 500  # the files were found
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def functions() -> set[str]:
    """Return all module-level functions, with their modules."""
    return {f"{module}.{name}" for module, found in names().items() for name in found.functions}


LOCALS = frozenset((
    "asked", "cure", "each", "everyone", "gone", "held", "kept", "laid", "lay", "made", "mine",
    "own", "said", "seat", "seats", "todo", "told", "wanted",
))
"""Names that say nothing of a variable."""


def test_local_variables_and_parameters_have_names_of_the_field() -> None:
    assert {module: found.poor for module, found in names().items() if found.poor} == {}


def test_no_function_is_called_by_a_participle_or_pronoun() -> None:
    named = functions()
    poor = {
        name for name in named - STANDARD
        if name.rpartition(".")[2].strip("_") in POOR
    }

    assert len(named) > 3000  # the files were found
    assert poor == set()
    assert named >= STANDARD  # an exception that is no longer required must be removed


# Names of constants that describe the hardware, with the class or module that defines each.
HARDWARE = {
    "LINE": None, "LINE_BYTES": "tecomp.machine.components", "CACHE_LINE": None,
    "PAGE": None, "PAGE_BYTES": "tecomp.machine.components", "ALIAS_BYTES": None,
    "FUNCTION": None, "FUNCTION_COST": "tecomp.compute.access_relations",
    "WIDEST_VECTOR_BYTES": "tecomp.codegen.llvm.ir_builder", "VECTOR_BYTES": None,
    "REGISTER_BITS": None, "OPEN_EXTENT": "tecomp.schedules.tiling.register_blocking",
    "MAX_FACTORS": "tecomp.ir.arith.quasi_affine_conversion",
}


def test_constants_of_the_hardware_are_defined_once() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for module, item in names().items():
        for name in item.constants:
            found[name].append(module)

    assert found == {name: [module] for name, module in HARDWARE.items() if module}
