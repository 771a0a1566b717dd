"""How tests get machine code: as it ships or for numbers alone, and what earlier runs have made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import cache

import pytest

from tecomp.codegen.llvm.code_cache import Store, digest, made_by
from tecomp.codegen.llvm.ir_builder import Source
from tecomp.codegen.llvm.jit import object_code
from tecomp.machine.descriptor import Target
from tecomp.machine.registry import list_targets

MOST_BYTES = 400_000_000
Make = Callable[[Source, int], bytes]

# Where tests are about the code that LLVM makes of ours.
_ABOUT_CODE = {"codegen", "schedules"}


@dataclass
class Code:
    """Machine code of modules.

    Attributes:
        make: makes it.
        is_shipped: whether all of LLVM's passes run as for users. Else the numbers are the same,
            and it takes a third of the time.
    """

    make: Make
    is_shipped: bool = True

    def __call__(self, source: Source, effort: int = 2) -> bytes:
        if self.is_shipped:
            return self.make(source, effort)
        return self.make(replace(source, plain_loops=(), loop_work=()), 0)


def ships(item: pytest.Item) -> bool:
    """Whether a test is about code for the machine at hand.

    On all others numbers matter alone, and where a mark says so.
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
    """`make`, which is asked once for a module; afterwards its code comes from the store."""

    def code(source: Source, effort: int = 2) -> bytes:
        key = digest(astuple(source), effort, made_by())
        found = store.get(key)
        if found is None:
            found = make(source, effort)
            store.put(key, found)
        return found

    return code
