"""Load the public names of a package from its modules on first use."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are loaded on first use.

    The names are those that the `if TYPE_CHECKING:` block of the package imports, so that the
    interpreter and type checkers read one list. Code inside of tecomp imports the modules.

    Args:
        package: Full name of the package, `__name__`.

    >>> getattr_, dir_ = lazy_names("tecomp.constraints")
    >>> "Hint" in dir_(), getattr_("Hint").__module__
    (True, 'tecomp.constraints.user_hints')
    >>> getattr_("Hints")
    Traceback (most recent call last):
    AttributeError: module 'tecomp.constraints' has no attribute 'Hints'
    """

    def load(name: str) -> object:
        if name == "__all__":
            return sorted(_modules(package))
        # Names such as `__path__` are asked for during imports; no package exports one.
        module = None if name.startswith("_") else _modules(package).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(module), name)
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: sorted({*vars(sys.modules[package]), *_modules(package)})


@cache
def _modules(package: str) -> dict[str, str]:
    """Return the module of each name that the `if TYPE_CHECKING:` block of a package imports."""
    spec = find_spec(package)
    source = spec.loader.get_source(package)  # type: ignore[union-attr]
    return {
        alias.name: node.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
