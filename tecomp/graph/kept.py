"""Programs that were compiled before: found in the store by all that they are made of.

What constants are does not count: they are laid out anew whenever a program is made.
"""

from __future__ import annotations

from collections.abc import Iterator

from tecomp.codegen.llvm.store import current_store
from tecomp.driver.cached import keys_of
from tecomp.driver.sources import schedules
from tecomp.graph.asked import Asked
from tecomp.graph.native import Native
from tecomp.graph.written import native_from, native_text


def kept(asked: Asked) -> Native | None:
    """The machine code of a program that was compiled before, or None."""
    store = current_store()
    if store is None:
        return None
    for key in _keys(asked):
        content = store.get(key)
        native = None if content is None else native_from(content)
        if native is not None:
            return native
    return None


def keep(asked: Asked, native: Native) -> None:
    """Keep the machine code of a program for other processes."""
    store = current_store()
    keys = [] if store is None else list(_keys(asked))
    if store is not None and keys:
        # The last key has the places in the user's files in it, which errors at run time say.
        has_places = any(code.has_places for code in native.codes)
        store.put(keys[-1 if has_places else 0], native_text(native))


def _keys(asked: Asked) -> Iterator[str]:
    definitions = (
        asked.outputs, asked.inputs, tuple(asked.constants), asked.target, asked.name,
        dict(asked.layouts), asked.hints, asked.relayouts, asked.packed,
    )
    return keys_of(("program", definitions), schedules())
