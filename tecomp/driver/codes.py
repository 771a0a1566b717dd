"""Machine code of kernels, made by a thread: LLVM works while Python lowers the next ones."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from tecomp.codegen.functions.function import ModuleText
from tecomp.codegen.llvm.cached import cached_object


@dataclass(frozen=True, slots=True)
class Codes:
    """Machine code of modules, which may still be in the making.

    Attributes:
        pool: one thread. LLVM asks nothing of Python, so it runs beside it; more would wait for
            each other, as its binding lets one of them in at a time.
    """

    pool: ThreadPoolExecutor
    _found: dict[str, Future[bytes]] = field(default_factory=dict)

    def add(self, module: ModuleText) -> None:
        """Begin to make the code of a module."""
        self._found[module.entry] = self.pool.submit(cached_object, module.source)

    def image(self, module: ModuleText) -> bytes:
        """The code of a module that was added.

        Raises:
            InternalError: LLVM refuses the module.
        """
        return self._found[module.entry].result()


@contextmanager
def codes() -> Iterator[Codes]:
    """A thread that makes machine code; what is not begun when an error ends this is forgotten."""
    pool = ThreadPoolExecutor(1, "tecomp-code")
    try:
        yield Codes(pool)
    finally:
        pool.shutdown(cancel_futures=True)
