"""Imports only go down the layers below, which docs/architecture.md explains."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from tecomp.lazy_imports import UPWARD_REFERENCES, load_upward

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tecomp"

# From the lowest layer up. Packages on one line do not import each other; `__init__` is the public
# interface of tecomp.
LAYERS = [
    {"atomic_writes", "fork_gate", "lazy_imports"},
    {"caches"},
    {"error_pages", "progress", "source_locations"},
    {"errors"},
    {"drawing", "operations"},
    {"ir"},
    {"compute", "machine", "poly"},
    {"layout"},
    {"codegen", "scheduling"},
    {"copy_schedule", "cost_model", "lowering"},
    {"export", "moves", "relayout_kernels"},
    {"driver"},
    {"constraints"},
    {"te"},
    {"tir"},
    {"plugin"},
    {"__init__"},
    {"schedules"},
    {"dist", "graph", "topi"},
    {"onnx", "torch"},
    {"ptensor"},
    {"array"},
    {"numpy", "tuning", "viz"},
    {"demo"},
    {"cli"},
]
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}

# Layers within large packages: sub-packages and modules.
INSIDE = {
    "ir": [
        {"nodes"},
        {"extern", "traversal"},
        {"arith", "interpreter", "parser"},
        {"__init__"},
    ],
    "poly": [
        {"sets"},
        {"loops", "maps"},
        {"accesses"},
        {"__init__"},
    ],
    "layout": [
        {"formats"},
        {"dma"},
        {"core"},
        {"hardware_tiles", "notations"},
        {"sharding"},
        {"__init__"},
    ],
    "codegen": [
        {"llvm"},
        {"math", "runtime"},
        {"ops"},
        {"memory"},
        {"emit"},
        {"dispatch"},
        {"__init__"},
    ],
    "lowering": [
        {"stages"},
        {"storage", "tensor_ops"},
        {"vectorize"},
        {"loops"},
        {"pipeline"},
        {"__init__"},
    ],
    "dist": [
        {"partition"},
        {"runtime"},
        {"fault_tolerance", "launch"},
        {"__init__"},
    ],
    "schedules": [
        {"common"},
        {"analysis", "intrinsics"},
        {"tiling"},
        {"attention", "cumsum", "elementwise", "scratchpad", "stencil", "transpose"},
        {"activations", "conv2d", "matmul", "reduce", "rowwise"},
        {"argreduce", "fusion", "norm", "pool", "softmax"},
        {"auto"},
        {"__init__"},
    ],
    "array": [
        {"constants", "statistics"},
        {"counters", "graph"},
        {"kernels", "validation"},
        {"single_controller", "weak_scalars"},
        {"library_fallback"},
        {"indexing"},
        {"distributed"},
        {"interop"},
        {"array_object"},
        {"executor", "functions", "jit", "reporting"},
        {"fft", "function_traces", "linalg", "random"},
        {"batching", "derivative_rules"},
        {"matrix_derivatives"},
        {"derivatives"},
        {"__init__"},
        {"v2025_12"},
    ],
    "ptensor": [
        {"types"},
        {"operation", "values"},
        {"devices", "operations"},
        {"formulas", "function", "library_functions", "parse_operands"},
        {"lowering", "parse", "te_definitions"},
        {"__init__"},
    ],
    "topi": [
        {"extents", "tag"},
        {"validation"},
        {"math", "scatter", "windows"},
        {"broadcast", "image", "signal", "sort"},
        {"row_functions"},
        {"elementwise"},
        {"creation"},
        {"generic", "transform"},
        {"contraction", "reduction", "scan"},
        {"nn", "reductions"},
        {"__init__"},
    ],
}

# The only packages that may import a library, which keeps it optional or lazily loaded.
OWNERS = {
    "click": {"cli"},
    "islpy": {"poly"},
    "llvmlite": {"codegen"},
    "matplotlib": {"demo"},
    "mpi4py": {"dist"},
    "rich": {"cli"},
    "networkx": {"graph"},
    "PIL": {"onnx"},
    "onnx": {"onnx"},
    "platformdirs": {"codegen", "driver"},
    "scipy": {"demo"},
    "torch": {"torch"},
}

SCHEDULES = sorted((ROOT / "schedules").rglob("*.py"))  # installed as `tecomp.schedules`
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
} | {
    f"tecomp.{'.'.join(path.relative_to(ROOT).with_suffix('').parts)}".removesuffix(".__init__"): path
    for path in SCHEDULES
}
ROOMS = sorted({name.split(".")[1] if "." in name else "__init__" for name in FILES})


@dataclass(frozen=True)
class Import:
    """Imported module, with the line of the import."""

    line: int
    module: str

    @property
    def package(self) -> str:
        """Package of tecomp that contains the module; `__init__` for `tecomp` itself."""
        return self.module.split(".")[1] if "." in self.module else "__init__"


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Return all imports of a file, including those in functions and for types only."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            assert node.level == 0, f"{where}: relative import; write the whole name"
            assert node.module is not None
            # `from package import module` imports the module if it exists.
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = {name if name in FILES else node.module for name in named}
        elif isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            inputs = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
            modules = {value for value in inputs if isinstance(value, str)}
        else:
            continue
        for module in sorted(modules):
            yield Import(node.lineno, module)


def inner_imports(path: Path) -> Iterator[Import]:
    """Return the imports of tecomp modules in a file."""
    return (entry for entry in imports(path) if entry.module.split(".")[0] == "tecomp")


def files_of(room: str) -> list[Path]:
    folder = ROOT / room if room == "schedules" else PACKAGE / room
    return sorted(folder.rglob("*.py")) or [PACKAGE / f"{room}.py"]


def test_every_package_has_a_layer() -> None:
    assert sorted(HEIGHT) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_imports_only_go_down(room: str) -> None:
    upward = [
        f"{path.relative_to(ROOT)}:{entry.line} imports {entry.module}"
        for path in files_of(room)
        for entry in inner_imports(path)
        if entry.package != room and HEIGHT[entry.package] >= HEIGHT[room]
    ]

    assert upward == []


def unit_of(module: str) -> str:
    """Return the sub-package or module of a large package to which a module belongs."""
    return [*module.split("."), "__init__"][2]


@pytest.mark.parametrize("room", sorted(INSIDE))
def test_every_subpackage_has_a_layer(room: str) -> None:
    units = {unit_of(module) for module in FILES if module.split(".")[1:2] == [room]}

    assert sorted(unit for layer in INSIDE[room] for unit in layer) == sorted(units)


@pytest.mark.parametrize("room", sorted(INSIDE))
def test_imports_within_a_package_point_downwards(room: str) -> None:
    height = {unit: height for height, units in enumerate(INSIDE[room]) for unit in units}
    upward = [
        f"{path.relative_to(ROOT)}:{entry.line} imports {entry.module}"
        for module, path in FILES.items() if module.split(".")[1:2] == [room]
        for entry in inner_imports(path)
        if entry.package == room and unit_of(entry.module) != unit_of(module)
        and height[unit_of(entry.module)] >= height[unit_of(module)]
    ]

    assert upward == []


@pytest.mark.parametrize("room", ROOMS)
def test_libraries_are_imported_in_their_package_only(room: str) -> None:
    foreign = [
        f"{path.relative_to(ROOT)}:{entry.line} imports {entry.module}"
        for path in files_of(room)
        for entry in imports(path)
        if room not in OWNERS.get(entry.module.split(".")[0], {room})
    ]

    assert foreign == []


@pytest.mark.parametrize("room", ROOMS)
def test_only_the_declared_packages_are_imported(room: str) -> None:
    """Only packages of pyproject.toml, its `demo` extra and the standard library are imported."""
    known = {"tecomp", "ml_dtypes", "numpy", *OWNERS, *sys.stdlib_module_names}
    unknown = {
        f"{path.relative_to(ROOT)}:{entry.line} imports {entry.module}"
        for path in files_of(room)
        for entry in imports(path)
        if entry.module.split(".")[0] not in known
    }

    assert unknown == set()


def test_no_module_waits_for_itself() -> None:
    """No import cycle exists between modules, including imports for types and in functions."""
    graph = {
        module: {
            entry.module
            for entry in inner_imports(path)
            if entry.module != module
        }
        for module, path in FILES.items()
    }
    cycle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]

    assert cycle == []


LIBRARIES = [*SCHEDULES, *sorted((ROOT / "targets").rglob("*.py"))]


@pytest.mark.exhaustive(keep=36)
@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: str(path.relative_to(ROOT)))
def test_libraries_use_the_public_interface_alone(path: Path) -> None:
    """Schedules and targets import the public interface, and the tables of operations."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = [
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    inside = [name for name in imported if name and name.partition(".")[0] == "tecomp"]

    # Packages list their names with `lazy_names`.
    listing = {"tecomp.lazy_imports"} if path.name == "__init__.py" else set()
    assert {name for name in inside if not name.startswith("tecomp.schedules")} <= {
        "tecomp", "tecomp.errors", "tecomp.operations", *listing}


def test_topi_is_written_with_te_and_the_library() -> None:
    """The package topi imports only the public interface, rows, and IR nodes to compare extents."""
    used = {
        entry.module for path in files_of("topi") for entry in inner_imports(path)
        if entry.package not in ("topi", "schedules")
    }

    free = ("tecomp.ir.nodes.", "tecomp.operations.")
    assert {module for module in used if not module.startswith(free)} <= {
        "tecomp", "tecomp.compute.intrinsics", "tecomp.compute.tvm_compat", "tecomp.errors",
        "tecomp.lazy_imports", "tecomp.te"}


# Modules that import by a computed name: submodules of a package, figures, and optional libraries.
BY_NAME = {
    "tecomp.cli.common", "tecomp.codegen.llvm.jit", "tecomp.demo.main", "tecomp.drawing.drawable",
    "tecomp.lazy_imports", "tecomp.poly.maps.index_map", "tecomp.ptensor.parse",
}
# Modules that read the entry points of installed distributions.
ENTRY_POINTS = {"tecomp.machine.registry", "tecomp.plugin.conformance"}


def nodes_of(path: Path, word: str) -> Iterator[ast.AST]:
    """Yield the syntax nodes of a file that contains a word; nothing for other files.

    Trees are not cached: each full garbage collection of later tests would traverse them.
    """
    text = path.read_text(encoding="utf-8")
    return ast.walk(ast.parse(text)) if word in text else iter(())


def calls_of(path: Path, function: str) -> Iterator[ast.Call]:
    """Yield the calls in a file of functions with a last name."""
    for node in nodes_of(path, function):
        if isinstance(node, ast.Call) and function == (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        ):
            yield node


def test_modules_are_imported_by_statements() -> None:
    calls = {name: list(calls_of(path, "import_module")) for name, path in FILES.items()}
    literals = [
        ast.literal_eval(call.args[0]) for found in calls.values() for call in found
        if isinstance(call.args[0], ast.Constant)
    ]
    entry_points = {
        name for name, path in FILES.items() for node in nodes_of(path, "EntryPoint")
        if isinstance(node, ast.ImportFrom) and "EntryPoint" in {alias.name for alias in node.names}
    }

    assert {name for name, found in calls.items() if found} == BY_NAME
    assert not [name for name in literals if name.startswith("tecomp")]
    assert entry_points == ENTRY_POINTS


def test_upward_references_resolve_and_are_used() -> None:
    used = {
        ast.literal_eval(call.args[0]) for name, path in FILES.items() if name != "tecomp.lazy_imports"
        for call in calls_of(path, "load_upward")
    }

    assert used == set(UPWARD_REFERENCES)
    for name in UPWARD_REFERENCES:
        assert load_upward(name) is not None


def test_figures_resolve() -> None:
    """Each class names its drawing function as `module:function` in `tecomp.viz`."""
    named = {
        ast.literal_eval(node.value) for path in FILES.values()
        for node in nodes_of(path, "_drawn_by")
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant)
        and ast.unparse(node.target) == "_drawn_by"
    }

    assert len(named) > 15
    for item in named:
        module, _, function = item.partition(":")
        assert callable(getattr(import_module(f"tecomp.viz.{module}"), function)), item
