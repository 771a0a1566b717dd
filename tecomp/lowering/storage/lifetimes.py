"""When the contents of allocated memory matter: from the first access to the last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tecomp.ir.language.expr import BufferLoad, Var
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    PrimFunc,
    Stmt,
)
from tecomp.ir.traversal.rewrite import children, statements_in, walk
from tecomp.ir.traversal.tasks import Task, run


@dataclass(slots=True)
class Activation:
    """A part of a program that runs as one: a function, or one iteration of a parallel loop.

    Attributes:
        loop: the parallel loop; None for the function.
        outer: the activation around it; None for the function.
        first: its first statement, counted in program order.
        last: its last one.
        held: what is allocated in it, and in no activation inside of it.
    """

    loop: For | None
    outer: Activation | None
    first: int = 0
    last: int = 0
    held: list[Held] = field(default_factory=list)

    @property
    def cores(self) -> tuple[For, ...]:
        """The loops over cores that it is inside of, outermost first."""
        around = () if self.outer is None else self.outer.cores
        return (*around, self.loop) if self.loop is not None and self.loop.thread else around


@dataclass(slots=True)
class Held:
    """Memory that is allocated.

    Attributes:
        buffer: as it is allocated.
        views: other buffers in the same memory.
        first: the first statement that needs it, counted in program order.
        last: the last one.
        depth: how many loops it is inside of.
        crosses: the outermost loop over cores between the allocation and an access, if any.
    """

    buffer: Buffer
    depth: int
    views: list[Buffer] = field(default_factory=list)
    first: int | None = None
    last: int = -1
    crosses: For | None = None

    def used(self, first: int, last: int) -> None:
        """Note that statements `first` to `last` need it."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = max(self.last, last)


@dataclass(slots=True)
class _Loop:
    node: For
    start: int
    needed: dict[Var, Held] = field(default_factory=dict)


def activations_of(func: PrimFunc) -> list[Activation]:
    """The activations of a function that allocate something, outer before inner.

    What is needed in a loop that is inside of its allocation is needed in all iterations of it.
    """
    walker = _Walker()
    walker.run(func.body)
    return [activation for activation in walker.activations if activation.held]


class _Walker:
    """Statements in program order, with the loops around."""

    def __init__(self) -> None:
        self.activations = [Activation(None, None)]
        self.open = [self.activations[0]]
        self.loops: list[_Loop] = []
        self.live: dict[Var, Held] = {}
        self.position = 0

    def run(self, root: Stmt) -> None:
        """Visit everything."""
        run(self._visit(root))

    def _visit(self, node: Stmt) -> Task:
        self._enter(node)
        for child in statements_in(node):
            yield self._visit(child)
        self._leave(node)

    def _enter(self, node: Stmt) -> None:
        self.position += 1
        for buffer in _accessed(node):
            self._access(buffer.data)
        match node:
            case For():
                self.loops.append(_Loop(node, self.position))
                if node.kind is ForKind.PARALLEL:
                    self.activations.append(Activation(node, self.open[-1], self.position))
                    self.open.append(self.activations[-1])
            case Allocate(buffer):
                self.live[buffer.data] = held = Held(buffer, len(self.loops))
                self.open[-1].held.append(held)
            case DeclBuffer(buffer) if buffer.data in self.live:
                self.live[buffer.data].views.append(buffer)

    def _leave(self, node: Stmt) -> None:
        match node:
            case For():
                loop = self.loops.pop()
                for held in loop.needed.values():
                    held.used(loop.start, self.position)
                if node.kind is ForKind.PARALLEL:
                    self.open.pop().last = self.position
            case Allocate(buffer):
                del self.live[buffer.data]

    def _access(self, data: Var) -> None:
        held = self.live.get(data)
        if held is None:
            return
        inside = self.loops[held.depth:]
        if inside:
            inside[0].needed[data] = held
        held.used(self.position, self.position)
        if held.crosses is None:
            held.crosses = next((loop.node for loop in inside if loop.node.thread), None)


def _accessed(node: Stmt) -> Iterator[Buffer]:
    """The buffers that a statement itself reads or writes."""
    if isinstance(node, BufferStore):
        yield node.buffer
    for child in children(node):
        if not isinstance(child, Stmt):
            yield from (part.buffer for part in walk(child) if isinstance(part, BufferLoad))
