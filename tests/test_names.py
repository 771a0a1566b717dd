"""Naming rules of the product: unique class names, and verbs or nouns for functions."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

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


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax trees of the product by module."""
    paths = [path for top in ("tecomp", "schedules", "targets") for path in (ROOT / top).rglob("*.py")]
    return {module_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(paths)}


@pytest.mark.exhaustive
def test_a_public_class_name_occurs_once() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)

    assert len(homes) > 500  # the files were found
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def functions() -> set[str]:
    """Return all module-level functions, with their modules."""
    return {
        f"{module}.{node.name}"
        for module, tree in trees().items() for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


LOCALS = frozenset((
    "asked", "cure", "each", "everyone", "gone", "held", "kept", "laid", "lay", "made", "mine",
    "own", "said", "seat", "seats", "todo", "told", "wanted",
))
"""Names that say nothing of a variable."""


def test_local_variables_and_parameters_have_names_of_the_field() -> None:
    poor = {
        (module, name)
        for module, tree in trees().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        for name in [
            node.arg if isinstance(node, ast.arg)
            else node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            else ""
        ]
        if name in LOCALS
    }

    assert poor == set()


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
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for name in (target.id.lstrip("_") for target in targets if isinstance(target, ast.Name)):
                    if name in HARDWARE and isinstance(node.value.value, int):
                        found[name].append(module)

    assert found == {name: [module] for name, module in HARDWARE.items() if module}
