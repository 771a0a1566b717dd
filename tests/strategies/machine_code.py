"""Machine code in tests: full or minimal optimization, and a cache across test runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import cache

import pytest

from tecomp.codegen import LlvmSource, Store, compiler_fingerprint, digest, object_code
from tecomp.machine import Target, list_targets

MOST_BYTES = 400_000_000
Make = Callable[[LlvmSource, int], bytes]

# Directories of tests that check properties of the optimized machine code.
_ABOUT_CODE = {"codegen", "schedules"}


@dataclass
class Code:
    """Compiler from modules to machine code.

    Attributes:
        make: Function that compiles a module.
        is_shipped: If True, all LLVM passes run, as for users. If False, the results are the same
            and compilation takes a third of the time.
    """

    make: Make
    is_shipped: bool = True

    def __call__(self, source: LlvmSource, effort: int = 2) -> bytes:
        if self.is_shipped:
            return self.make(source, effort)
        return self.make(replace(source, plain_loops=(), loop_work=()), 0)


def ships(item: pytest.Item) -> bool:
    """Return whether a test checks machine code of the host.

    All other tests, and tests with the mark `numbers_alone`, check results only.
    """
    room = item.path.relative_to(item.config.rootpath).parts[1]
    callspec = getattr(item, "callspec", None)
    params = () if callspec is None else callspec.params.values()
    is_about_code = room in _ABOUT_CODE and item.get_closest_marker("numbers_alone") is None
    return is_about_code and not any(map(_is_other_machine, params))


def _is_other_machine(value: object) -> bool:
    if isinstance(value, Target):
        return value.name != "cpu"
    return isinstance(value, str) and value != "cpu" and value in _targets()


@cache
def _targets() -> frozenset[str]:
    return frozenset(list_targets())


def remembered(store: Store, make: Make = object_code) -> Make:
    """Wrap `make` with a store: each module is compiled once."""

    def code(source: LlvmSource, effort: int = 2) -> bytes:
        key = digest(astuple(source), effort, compiler_fingerprint())
        found = store.get(key)
        if found is None:
            found = make(source, effort)
            store.put(key, found)
        return found

    return code
