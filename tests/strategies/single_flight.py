"""Build each kernel in one process; the others wait and read it from the shared kernel cache."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tecomp.codegen import current_store
from tecomp.driver import build_cache


def build_once() -> None:
    """Serialize builds of equal kernels in all processes with the same kernel cache.

    Ranks run the same program. Without the lock each of them builds each kernel at the same time.
    """
    builder = import_module("tecomp.driver.build")  # `tecomp.driver` exports a function `build`
    for name in ("build_unscheduled", "get_or_build"):
        setattr(builder, name, _locked(getattr(builder, name)))


def _locked(build: Callable[..., Any]) -> Callable[..., Any]:
    def build_locked(request: Any, *arguments: Any) -> Any:
        store = current_store()
        key = next(build_cache.program_keys(request), None)
        if store is None or key is None:
            return build(request, *arguments)
        folder = store.folder.parent / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / key).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return build(request, *arguments)

    return build_locked
