"""Collect the memory accesses and operations of a function, and the units that execute them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, TypeAlias

from tecomp.cost_model.iteration_counting import Frame, GuardCondition, Loop
from tecomp.errors import TargetError
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Const,
    Expr,
    Not,
    Ramp,
    Select,
    Var,
    index_value,
)
from tecomp.ir.nodes.operators import outside_function
from tecomp.ir.nodes.stmt import (
    Buffer,
    BufferStore,
    ExternCall,
    For,
    ForKind,
    IfThenElse,
    Let,
    OperandTransfer,
    PrimFunc,
    Stmt,
    TensorOp,
)
from tecomp.ir.traversal.rewrite import (
    Task,
    children,
    conjuncts,
    contains,
    fold,
    nodes_of,
    run_trampoline,
    statements_in,
    substitute,
    walk,
)
from tecomp.machine.components import MatmulUnit, Unit


def unit_of(op: TensorOp, engine: Mapping[str, Unit]) -> Unit | None:
    """Return the unit that executes `op`; None if no unit of that name supports its dtype.

    Raises:
        TargetError: If the unit does not have the mode of `op`.
    """
    unit = engine.get(op.unit)
    if unit is None or _type(op) not in (
        unit.inputs if isinstance(unit, MatmulUnit) else unit.types
    ):
        return None
    if op.mode and op.mode not in unit.cycles:
        raise TargetError(
            "operation {op}: unit `{unit}` has no mode `{mode}`; available modes: {cycles}",
            kind="unsupported-by-target", op=op.name, unit=unit.name, mode=op.mode,
            cycles=", ".join(unit.cycles),
        )
    return unit


def cycles_of(op: TensorOp, unit: Unit) -> float:
    """Return the cycles of one operation, with all instances of the unit in use.

    A tile larger than the tile of a matrix unit is split into tiles of the unit; partial tiles
    count as full tiles.
    """
    if isinstance(unit, MatmulUnit):
        mode = op.mode or unit.modes.get(_type(op)) or next(iter(unit.cycles))
        return _tiles(op.tile, unit) * unit.cycles[mode] / unit.instances
    op_cycles = unit.cycles.get(op.mode or op.name, unit.cycles.get("default", 1.0))
    return ceil_div(prod(op.tile), unit.lanes(_type(op))) * op_cycles / unit.instances


def _tiles(tile: tuple[int, ...], unit: MatmulUnit) -> int:
    unit_tile = unit.m, unit.n, unit.k
    if len(tile) != len(unit_tile):
        return ceil_div(prod(tile), prod(unit_tile))
    return prod(ceil_div(extent, limit) for extent, limit in zip(tile, unit_tile, strict=True))


def _type(op: TensorOp) -> DType:
    """Return the dtype of the first input, or of the output if there is no input."""
    transfers = nodes_of(OperandTransfer, op.operands)
    reads = [node for node in transfers if not node.is_written]
    return (reads or transfers)[0].element.dtype


_LOGIC = (BinOp.AND, BinOp.OR)


def contains_load(node: Expr) -> bool:
    """Return whether an expression depends on data."""
    return contains(BufferLoad, node)


def is_copy(value: Expr) -> bool:
    """Return whether a value is a constant or an element selected by loops and conditions only."""
    def chosen(node: Expr) -> Sequence[Expr]:
        match node:
            case Call("if_then_else", (condition, a, b)) | Select(condition, a, b) if (
                not contains_load(condition)
            ):
                return a, b
        return ()

    def is_element(node: Expr) -> bool:
        if isinstance(node, BufferLoad):
            return not any(map(contains_load, node.indices))
        return isinstance(node, Const)

    return all(chosen(node) or is_element(node) for node in walk(value, parts=chosen))


def operations(
    root: Expr, frames: tuple[Frame, ...], where: Callable[[Expr], tuple[Frame, ...]]
) -> Iterator[tuple[tuple[Frame, ...], Counter[tuple[str, str]]]]:
    """Yield the operations of an expression on elements, grouped by the guards around them."""
    groups: list[tuple[Expr, tuple[Frame, ...]]] = [(root, frames)]
    while groups:
        start, enclosing = groups.pop()
        counts: Counter[tuple[str, str]] = Counter()
        for node in walk(start, parts=_computed_operands):
            match node:
                case Call("if_then_else", (condition, then, other)):
                    groups += [
                        (then, (*enclosing, *where(condition))),
                        (other, (*enclosing, *where(Not(condition)))),
                    ]
                case Binary(op) if op not in _LOGIC:
                    counts[op.name.lower(), str(node.dtype.scalar)] += node.dtype.lanes
                case Call(name) if name not in ("check_index", "reinterpret") and (
                    outside_function(name) is None
                ):
                    counts[name, str(node.dtype.scalar)] += node.dtype.lanes
        if counts:
            yield enclosing, counts


def _computed_operands(node: Expr) -> Sequence[Expr]:
    """Return the operands of `node` that are computed on elements without a further guard."""
    match node:
        case Call("if_then_else", (condition, _, _)):
            return (condition,) if contains_load(condition) else ()
        case BufferLoad() | Const() | Var():
            return ()
        case Select(condition, a, b) if not contains_load(condition):
            return a, b
    return children(node)


_Inside: TypeAlias = "tuple[Stmt, tuple[Frame, ...], dict[Var, Expr]]"
_Guarded: TypeAlias = "tuple[Expr, tuple[Frame, ...]]"


@dataclass(frozen=True, slots=True)
class Site:
    """Read or write of one element, as a site in the program text.

    Attributes:
        direction: `read` or `write`.
        buffer: Accessed buffer.
        indices: Indices of the accessed element.
        frames: Enclosing loops and conditions, outermost first.
        statement: Number of the statement, in program order.
        target: Buffer that the statement writes; None if the statement writes none.
        target_indices: Indices of the written element.
        is_copy: Whether the value is stored unchanged and its selection does not depend on data.
    """

    direction: Literal["read", "write"]
    buffer: Buffer
    indices: tuple[Expr, ...]
    frames: tuple[Frame, ...]
    statement: int
    target: Buffer | None
    target_indices: tuple[Expr, ...] = ()
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class ComputeSite:
    """Operations on elements of one execution of a statement.

    Attributes:
        operations: Number of operations of each kind, by name and dtype.
        frames: Enclosing loops and conditions, outermost first.
        statement: Number of the statement, in program order.
        name: Name of the result.
    """

    operations: tuple[tuple[tuple[str, str], int], ...]
    frames: tuple[Frame, ...]
    statement: int
    name: str


@dataclass(frozen=True, slots=True)
class TileWork:
    """Tensor operation of the machine.

    Attributes:
        operation: Tensor operation.
        unit: Unit that executes the operation; None if its statements are counted instead.
        frames: Enclosing loops and conditions, outermost first.
        statement: Number of the statement, in program order.
    """

    operation: TensorOp
    unit: Unit | None
    frames: tuple[Frame, ...]
    statement: int


@dataclass(frozen=True, slots=True)
class AccessSites:
    """All sites of a function.

    Attributes:
        sites: Reads and writes.
        works: Computations.
        tiles: Tensor operations.
        axes: Axes of the core grid that loops are bound to.
        unknown: Conditions, bounds and indices that depend on data, as text; conditions are assumed
            to be true.
        calls: External functions without a declared amount of work.
    """

    sites: tuple[Site, ...]
    works: tuple[ComputeSite, ...]
    tiles: tuple[TileWork, ...]
    axes: tuple[str, ...]
    unknown: tuple[str, ...]
    calls: tuple[str, ...] = ()


def sites_of(func: PrimFunc, engine: Mapping[str, Unit]) -> AccessSites:
    """Return the sites of a flat function before vectorization, one for each access as written.

    An operation of a unit in `engine` reads and writes each element of its operands once.

    Raises:
        TargetError: If an operation requests a mode that its unit does not have.
    """
    finder = _Finder(engine)
    finder.run(func.body)
    return AccessSites(tuple(finder.sites), tuple(finder.works), tuple(finder.tiles),
                 tuple(finder.axes), tuple(dict.fromkeys(finder.unknown)),
                 tuple(dict.fromkeys(finder.calls)))


@dataclass(slots=True)
class DataSources:
    """Statements that a statement depends on.

    Attributes:
        iterations: Number of common iterations, by statement that writes data read here: those of
            the loops around both statements, except loops bound to cores.
        everywhere: Statements whose data may come from other cores.
    """

    iterations: dict[int, int] = field(default_factory=dict)
    everywhere: dict[int, None] = field(default_factory=dict)


def sources_of(sites: AccessSites, exchanged: Collection[int] = ()) -> dict[int, DataSources]:
    """Return, for each statement, the statements that write the data it reads.

    Args:
        sites: Sites of the program.
        exchanged: Ids of the sites that read the memory of other cores.
    """
    loops: dict[int, tuple[Loop, ...]] = {}
    writers: dict[Var, dict[int, None]] = {}
    found: dict[int, DataSources] = {}
    for site in sorted(sites.sites, key=lambda site: (site.statement, site.direction)):
        enclosing = tuple(frame for frame in site.frames if isinstance(frame, Loop))
        loops.setdefault(site.statement, enclosing)
        if site.direction == "write":
            writers.setdefault(site.buffer.data, {}).setdefault(site.statement)
            continue
        for writer in writers.get(site.buffer.data, ()):
            if writer != site.statement:
                sources = found.setdefault(site.statement, DataSources())
                sources.iterations[writer] = _shared_iterations(loops[writer], enclosing)
                if id(site) in exchanged or _threads(loops[writer]) != _threads(enclosing):
                    sources.everywhere[writer] = None
    return found


def _threads(loops: tuple[Loop, ...]) -> list[Var]:
    """Return the variables of the loops that are bound to cores."""
    return [loop.var for loop in loops if loop.thread]


def _shared_iterations(a: tuple[Loop, ...], b: tuple[Loop, ...]) -> int:
    iterations = 1
    for x, y in zip(a, b, strict=False):
        if x.var is not y.var:
            break
        if not x.thread:
            iterations *= max(int(x.extent.value), 1) if isinstance(x.extent, Const) else 1
    return iterations


class _Finder:
    """Collector of sites that visits statements in program order."""

    def __init__(self, engine: Mapping[str, Unit]) -> None:
        self.engine = engine
        self.sites: list[Site] = []
        self.works: list[ComputeSite] = []
        self.tiles: list[TileWork] = []
        self.axes: dict[str, None] = {}
        self.unknown: list[str] = []
        self.calls: list[str] = []
        self.count = 0
        self.statement = 0
        self.owners: dict[int, int] = {}
        self.alone: set[int] = set()
        self.read: set[Var] = set()

    def run(self, root: Stmt) -> None:
        """Collect all sites in `root`."""
        fold(root, self._statements, statements_in)
        run_trampoline(self._visit(root, (), {}))

    def _visit(self, node: Stmt, frames: tuple[Frame, ...], values: dict[Var, Expr]) -> Task:
        owner = self.owners.get(id(node))
        if owner is None:
            self.count += 1
        self.statement = owner or self.count
        inner = self._inner(node, frames, values)
        if owner is not None or isinstance(node, TensorOp):
            # Accesses inside a tensor operation belong to the statement of the operation.
            self.owners.update((id(child), self.statement) for child, _, _ in inner)
        for part in inner:
            yield self._visit(*part)

    def _inner(
        self, node: Stmt, frames: tuple[Frame, ...], values: dict[Var, Expr]
    ) -> list[_Inside]:
        """Record the sites of one statement and return its children with their context."""
        match node:
            case For():
                return self._loop(node, frames, values)
            case IfThenElse():
                return self._branches(node, frames, values)
            case Let():
                return self._let(node, frames, values)
            case TensorOp():
                return [(self._operation(node, frames), frames, values)]
            case BufferStore():
                self._store(node, frames, values)
            case OperandTransfer():
                self._touched(node, frames, values)
            case ExternCall():
                self._called(substitute(node, values), frames)
                return []
        return [(child, frames, values) for child in statements_in(node)]

    def _loop(
        self, node: For, frames: tuple[Frame, ...], values: dict[Var, Expr]
    ) -> list[_Inside]:
        low, extent = (substitute(e, values) for e in (node.min, node.extent))
        self._reads((low, extent), frames, None)
        if node.thread:
            self.axes.setdefault(node.thread)
        frame = Loop(node.loop_var, self._known(low), self._known(extent), node.thread,
                      id(node) in self.alone, node.kind is ForKind.PARALLEL)
        return [(node.body, (*frames, frame), values)]

    def _branches(
        self, node: IfThenElse, frames: tuple[Frame, ...], values: dict[Var, Expr]
    ) -> list[_Inside]:
        condition = substitute(node.condition, values)
        self._reads((condition,), frames, None)
        inner: list[_Inside] = [
            (node.then_case, (*frames, *self._where(condition)), values)]
        if node.else_case is not None:
            inner.append((node.else_case, (*frames, *self._where(Not(condition))), values))
        return inner

    def _let(
        self, node: Let, frames: tuple[Frame, ...], values: dict[Var, Expr]
    ) -> list[_Inside]:
        if node.var.dtype != INT64:  # int64 values are index arithmetic, which is not counted
            self._computed(node.value, frames, values, node.var.name)
        value = substitute(node.value, values)
        self._reads((value,), frames, None)
        # A loaded value is read once, so only index arithmetic is substituted.
        if any(isinstance(part, BufferLoad) or part in self.read for part in walk(value)
               if isinstance(part, BufferLoad | Var)):
            self.read.add(node.var)
            return [(node.body, frames, values)]
        return [(node.body, frames, {**values, node.var: value})]

    def _store(
        self, node: BufferStore, frames: tuple[Frame, ...], values: dict[Var, Expr]
    ) -> None:
        parts = [substitute(part, values) for part in (node.value, *node.indices)]
        if node.predicate is not None:
            predicate = substitute(node.predicate, values)
            self._reads((predicate,), frames, node.buffer)
            frames = (*frames, *self._where(predicate))
        self._reads(parts, frames, node.buffer, tuple(parts[1:]), is_copy=is_copy(parts[0]))
        indices, lanes = _scalars(tuple(map(self._known, parts[1:])))
        self.sites.append(
            Site("write", node.buffer, indices, (*frames, *lanes), self.statement, node.buffer))
        self._computed(node.value, frames, values, node.buffer.name)

    def _operation(self, node: TensorOp, frames: tuple[Frame, ...]) -> Stmt:
        """Record a tensor operation and return the statement to count: operands or body."""
        unit = unit_of(node, self.engine)
        self.tiles.append(TileWork(node, unit, frames, self.statement))
        return node.body if unit is None else node.operands

    def _touched(
        self, node: OperandTransfer, frames: tuple[Frame, ...], values: dict[Var, Expr]
    ) -> None:
        load = substitute(node.element, values)
        assert isinstance(load, BufferLoad)
        if not node.is_written:
            self._reads((load,), frames, None)
            return
        enclosing = frames if load.predicate is None else (*frames, *self._where(load.predicate))
        self.sites.append(
            Site("write", load.buffer, load.indices, enclosing, self.statement, load.buffer))

    def _called(self, node: ExternCall, frames: tuple[Frame, ...]) -> None:
        """Record each array element once: as written if the array may be written, else as read."""
        numbers = [argument for argument in node.arguments if isinstance(argument, Expr)]
        self._reads(numbers, frames, None)
        for array in node.arrays:
            element = array.element
            loops = tuple(
                Loop(var, index_value(0), self._known(extent), "")
                for var, extent in zip(array.variables, array.shape, strict=True)
            )
            self.sites.append(Site(
                "write" if array.is_written else "read", element.buffer, element.indices,
                (*frames, *loops), self.statement, element.buffer if array.is_written else None))
        if node.multiply_adds is None:
            self.calls.append(node.function)
            return
        output = next((a.element.buffer for a in node.arrays if a.is_written), None)
        dtype = str(output.dtype.scalar) if output is not None else "float32"
        times = Loop(Var("work"), index_value(0), self._known(node.multiply_adds), "")
        self.works.append(ComputeSite(
            ((("add", dtype), 1), (("mul", dtype), 1)), (*frames, times), self.statement,
            node.function))

    def _computed(
        self, value: Expr, frames: tuple[Frame, ...], values: dict[Var, Expr], name: str
    ) -> None:
        """Record the operations of a value; the operations of a `Let` are counted at the `Let`."""

        def where(condition: Expr) -> tuple[Frame, ...]:
            return self._where(substitute(condition, values))

        called = (outside_function(node.name) for node in nodes_of(Call, value))
        self.calls += [function for function in called if function is not None]
        for enclosing, counts in operations(value, frames, where):
            self.works.append(
                ComputeSite(tuple(sorted(counts.items())), enclosing, self.statement, name))

    def _statements(self, node: Stmt, inside: list[int]) -> int:
        """Return the number of accessing statements; mark loops around a single one."""
        count = sum(inside) + isinstance(node, BufferStore | OperandTransfer)
        if isinstance(node, TensorOp):
            operands, body = inside
            count = body if unit_of(node, self.engine) is None else operands
        if isinstance(node, For) and count == 1:
            self.alone.add(id(node))
        return count

    def _reads(
        self,
        roots: Any,
        frames: tuple[Frame, ...],
        target: Buffer | None,
        index: tuple[Expr, ...] = (),
        *,
        is_copy: bool = False,
    ) -> None:
        starts = [(root, frames) for root in roots]
        for node, enclosing in walk(*starts, parts=self._guarded_parts, key=_at):
            if isinstance(node, BufferLoad):
                known, lanes = _scalars(tuple(map(self._known, node.indices)))
                if node.predicate is not None:
                    enclosing = (*enclosing, *self._where(node.predicate))
                self.sites.append(Site(
                    "read", node.buffer, known, (*enclosing, *lanes), self.statement, target, index,
                    is_copy))

    def _guarded_parts(self, item: _Guarded) -> list[_Guarded]:
        """Return the operands of an expression with the frames around them."""
        node, enclosing = item
        match node:
            case Call("if_then_else", (condition, then, other)):
                return [
                    (condition, enclosing), (then, (*enclosing, *self._where(condition))),
                    (other, (*enclosing, *self._where(Not(condition)))),
                ]
            case BufferLoad(_, indices, predicate) if predicate is not None:
                inside = (*enclosing, *self._where(predicate))
                return [(predicate, enclosing), *((index, inside) for index in indices)]
        return [(child, enclosing) for child in children(node)]

    def _where(self, condition: Expr) -> tuple[Frame, ...]:
        """Return the condition as frames; data-dependent parts and bounds checks are dropped."""
        frames = []
        for part in conjuncts(condition):
            if isinstance(part, Call) and part.name == "check_index":
                continue
            if contains_load(part):
                self.unknown.append(str(part))
            else:
                frames.append(GuardCondition(part))
        return tuple(frames)

    def _known(self, expr: Expr) -> Expr:
        """Return an index or a bound unchanged, and record it if it depends on data."""
        if contains_load(expr):
            self.unknown.append(str(expr))
        return expr


def _at(item: _Guarded) -> tuple[int, int]:
    return id(item[0]), id(item[1])


def _scalars(indices: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], tuple[Frame, ...]]:
    """Return indices without lanes, and a loop over the lanes of the last index."""
    if not indices or indices[-1].dtype.lanes == 1:
        return indices, ()
    last, lane = indices[-1], Var("lane", INT64)
    lanes = Loop(lane, Const(0, INT64), Const(last.dtype.lanes, INT64), "")
    match last:
        case Ramp(base, stride):
            return (*indices[:-1], base + stride * lane), (lanes,)
        case Broadcast(value):
            return (*indices[:-1], value), (lanes,)
    return (*indices[:-1], Const(0, INT64)), (lanes,)
