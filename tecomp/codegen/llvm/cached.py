"""Machine code that was made before: in memory for this process, in the store for all."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import astuple
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

from tecomp.codegen.llvm import jit
from tecomp.codegen.llvm.jit import Linked, host, link, llvm_version, object_code
from tecomp.codegen.llvm.source import Source
from tecomp.codegen.llvm.store import Store, current_store
from tecomp.ir.outside.bind import NOTHING, Outside
from tecomp.work import tell

T = TypeVar("T")
_IN_MEMORY = 256


class Recent(Generic[T]):
    """The last values that were used, by key; calls from several threads at once are safe.

    Attributes:
        limit: how many are kept.
    """

    def __init__(self, limit: int = _IN_MEMORY) -> None:
        self.limit = limit
        self._values: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        """The value under `key`, or None."""
        found = self._values.pop(key, None)
        if found is not None:
            self._values[key] = found
        return found

    def put(self, key: str, value: T) -> T:
        """Keep `value` under `key`, and forget what was not used for longest; returns `value`."""
        self._values[key] = value
        while len(self._values) > self.limit:
            try:
                self._values.popitem(last=False)
            except KeyError:
                break
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()


LINKED: Recent[Linked] = Recent()


def digest(*parts: object) -> str:
    """A name for plain values that no others have."""
    return sha256(json.dumps(parts).encode()).hexdigest()


def code_key(source: Source, entry: str) -> str:
    """The name under which the code of a module is kept: all that it depends on."""
    return digest(astuple(source), entry, made_by())


@cache
def made_by() -> list[str]:
    """What code depends on besides its text: the machine at hand, and how it is generated."""
    machine = host()
    passes = sha256(Path(jit.__file__).read_bytes()).hexdigest()
    return [machine.triple, machine.cpu, machine.features, llvm_version(), passes]


def cached_code(key: str, entry: str, outside: Outside = NOTHING) -> Linked | None:
    """The code that was made under this key, ready to be called, or None."""
    store = current_store()
    if store is None:
        return None
    found = LINKED.get(key)
    if found is None and (image := store.get(key)) is not None:
        found = _linked(key, image, entry, outside)
    return found


def _linked(key: str, image: bytes, entry: str, outside: Outside) -> Linked:
    """Code in memory; what calls functions outside of the program may call others next time."""
    made = link([image], entry, outside)
    return made if outside.addresses else LINKED.put(key, made)


def cached_object(source: Source) -> bytes:
    """Machine code of a module for the machine at hand, to be linked.

    Raises:
        InternalError: LLVM refuses the module.
    """
    store = current_store()
    if store is None:
        return object_code(source)
    return _kept(store, code_key(source, ""), source)


def machine_code(
    source: Source,
    entry: str,
    key: str | None = None,
    effort: int = 2,
    outside: Outside = NOTHING,
) -> Linked:
    """Machine code of a module for the machine at hand, ready to be called.

    Args:
        source: the module.
        entry: name of the function that is called.
        key: `code_key` of these, if it is known.
        effort: of LLVM's code generator; the same for one text at any time.
        outside: functions outside of the program that it calls.

    Raises:
        InternalError: LLVM refuses the module, or it calls a function that does not exist.
    """
    store = current_store()
    if store is None:
        return link([object_code(source, effort)], entry, outside)
    key = key or code_key(source, entry)
    found = LINKED.get(key)
    return found or _linked(key, _kept(store, key, source, effort), entry, outside)


def _kept(store: Store, key: str, source: Source, effort: int = 2) -> bytes:
    """Machine code of a module, from the store, or made and put there."""
    found = store.get(key)
    if found is None:
        found = object_code(source, effort)
        store.put(key, found)
    else:
        tell("machine code: found in %s", store.folder)
    return found
