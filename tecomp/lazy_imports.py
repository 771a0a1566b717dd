"""Load public names of packages on first use, and modules that are above their users.

Three tables replace import statements: the `if TYPE_CHECKING:` block of a package, the deprecated
names that a package passes to `lazy_names`, and `UPWARD_REFERENCES`.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

UPWARD_REFERENCES: Mapping[str, str] = MappingProxyType({
    "array.controlled": "tecomp.array.distributed.creation",
    "array.kernels": "tecomp.array.kernels.execution_plan",
    "array.namespace_2025": "tecomp.array.v2025_12",
    "codegen.emitter": "tecomp.codegen.emit.compile:module_text",
    "driver.scheduler": "tecomp.schedules.auto:auto",
    "driver.tune": "tecomp.tuning.tuner:tune_subject",
    "driver.tuning": "tecomp.tuning.database",
    "export.kernel": "tecomp.export.kernel_export:export_kernel",
    "graph.compile": "tecomp.graph.compile:compile_program",
    "graph.load": "tecomp.graph.compile:load_program",
    "layout.copies": "tecomp.driver.relayout",
    "numpy.methods": "tecomp.numpy:array_method",
})
"""Modules, and functions `module:name`, that modules of lower layers load when they call them."""


def load_upward(name: str) -> Any:
    """Return the module or function of an entry of `UPWARD_REFERENCES`.

    >>> load_upward("graph.compile").__module__
    'tecomp.graph.compile'
    """
    module, _, attribute = UPWARD_REFERENCES[name].partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


class LazyMethod:
    """Method or property of a class that is loaded on first use, and then replaces this object.

    Args:
        name: Name of the method.
        load: Function that returns the method for a name.
        doc: Docstring of the method.
    """

    def __init__(self, name: str, load: Callable[[str], Any], doc: str) -> None:
        self.name, self.load, self.__doc__ = name, load, doc

    def __get__(self, instance: object, owner: type) -> Any:
        setattr(owner, self.name, self.load(self.name))
        return getattr(owner if instance is None else instance, self.name)


def lazy_names(
    package: str,
    *,
    submodules: frozenset[str] = frozenset(),
    renamed: Mapping[str, str] = MappingProxyType({}),
    missing: Callable[[str], AttributeError] | None = None,
    public: Callable[[], list[str]] | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are loaded on first use.

    The names are those that the `if TYPE_CHECKING:` block of the package imports, so that the
    interpreter and type checkers read one list. Code inside of tecomp imports the modules.

    Args:
        package: Full name of the package, `__name__`.
        submodules: Names of submodules that are imported on first use.
        renamed: Full name of the module that replaced each deprecated submodule; its use warns.
        missing: Function that returns the error for a name that the package does not have.
            Default: the error of the interpreter.
        public: Function that returns `__all__`. Default: the names that are loaded on first use.

    >>> getattr_, dir_ = lazy_names("tecomp.constraints")
    >>> "Hint" in dir_(), getattr_("Hint").__module__
    (True, 'tecomp.constraints.user_hints')
    >>> getattr_("Hints")
    Traceback (most recent call last):
    AttributeError: module 'tecomp.constraints' has no attribute 'Hints'
    """

    def load(name: str) -> object:
        if name in renamed:
            message = f"{package}.{name} was renamed: use {renamed[name]}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return import_module(renamed[name])
        if name in submodules:
            return import_module(f"{package}.{name}")
        if name == "__all__":
            return sorted(_modules(package)) if public is None else public()
        # Names such as `__path__` are requested during imports; no package exports one.
        module = None if name.startswith("_") else _modules(package).get(name)
        if module is not None:
            found = getattr(import_module(module), name)
            setattr(sys.modules[package], name, found)
            return found
        if missing is not None:
            raise missing(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted(
        {*vars(sys.modules[package]), *submodules, *_modules(package)})


@cache
def _modules(package: str) -> dict[str, str]:
    """Return the module of each name that the `if TYPE_CHECKING:` block of a package imports."""
    spec = find_spec(package)
    source = spec.loader.get_source(package)  # type: ignore[union-attr]
    return {
        alias.name: node.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        and ast.unparse(block.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for node in block.body if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
