"""Machine code that an earlier run of the tests has made, found by the module it was made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple

from tecomp.codegen.llvm.cached import digest, made_by
from tecomp.codegen.llvm.jit import object_code
from tecomp.codegen.llvm.source import Source
from tecomp.codegen.llvm.store import Store

MOST_BYTES = 400_000_000


def remembered(
    store: Store, make: Callable[[Source, int], bytes] = object_code
) -> Callable[[Source, int], bytes]:
    """`make`, which is asked once for a module; afterwards its code comes from the store."""

    def code(source: Source, effort: int = 2) -> bytes:
        key = digest(astuple(source), effort, made_by())
        found = store.get(key)
        if found is None:
            found = make(source, effort)
            store.put(key, found)
        return found

    return code
