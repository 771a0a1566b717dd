"""Select the LLVM passes for each function of a module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tecomp.codegen.llvm.ir_builder import Options, PassSelection
from tecomp.ir.arith.quasi_affine_conversion import TermTable
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Compare,
    Const,
    Expr,
    Not,
    Ramp,
    Var,
)
from tecomp.ir.nodes.stmt import Allocate, BufferStore, For, ForKind, IfThenElse, Let, Stmt
from tecomp.ir.traversal.rewrite import children, nodes_of, post_order, statements_in, walk

_DECIDING = (BufferLoad, Binary, Call)
_CONDITIONS = (Binary, Compare, Not)
_MAY_CHANGE = (BufferLoad, Call)
_BINDING = (For, Let, Allocate)


def has_loop_work(root: Stmt, *, is_outlined: bool = False) -> bool:
    """Return whether an innermost loop of `root` has hoistable code or divides indices.

    Memory that is only accessed at constant addresses does not count, because it becomes registers
    in any case.

    Args:
        root: Statement that becomes a function.
        is_outlined: Whether the function includes parallel loops, which are otherwise outlined.
    """
    allocated: set[Var] = set()
    varying: set[Var] = set()
    invariant: set[Var] = set()
    statements = list(innermost(root, is_outlined))
    named = {part.var: part.value for _, part in statements if isinstance(part, Let)}
    maps = _vector_maps(statements)
    for loop, statement in statements:
        if isinstance(statement, Allocate):
            allocated.add(statement.buffer.data)
        for node in _hoistable_parts(statement):
            if isinstance(node, BufferLoad | BufferStore):
                data = node.buffer.data
                if not all(map(_is_constant, node.indices)):
                    varying.add(data)
                if id(loop) in maps and isinstance(node, BufferLoad) and node.dtype.lanes == 1:
                    continue
                if loop is not None and data not in invariant:
                    # A stored value may vary; only the address of a store must be invariant.
                    parts = node.indices if isinstance(node, BufferStore) else (node,)
                    if not any(mentions(part, loop.loop_var, named) for part in parts):
                        invariant.add(data)
            elif loop is not None and _is_work(node, loop.loop_var, named):
                return True
    return bool(invariant - (allocated - varying))


def has_products_in_branches(root: Stmt, *, is_outlined: bool = False) -> bool:
    """Return whether a branch inside a loop multiplies variables that the loop does not change.

    LLVM hoists such products, which are parts of addresses for symbolic sizes, only in its loop
    passes: the code of a branch may not run.

    Args:
        root: Statement that becomes a function.
        is_outlined: Whether the function includes parallel loops, which are otherwise outlined.
    """
    named: dict[Var, Expr] = {}
    worklist: list[tuple[For | None, bool, Stmt]] = [(None, False, root)]
    while worklist:
        loop, is_branch, node = worklist.pop()
        if isinstance(node, For):
            if node.kind is ForKind.PARALLEL and not is_outlined:
                continue
            loop, is_branch = (None if node.kind is ForKind.PARALLEL else node), False
        elif isinstance(node, IfThenElse):
            is_branch = loop is not None
        elif isinstance(node, Let):
            named[node.var] = node.value
        if is_branch and loop is not None and any(
            _is_product(part) and not mentions(part, loop.loop_var, named)
            for child in children(node) if isinstance(child, Expr) for part in walk(child)
        ):
            return True
        worklist += [(loop, is_branch, part) for part in statements_in(node)]
    return False


def _is_product(node: Any) -> bool:
    return (
        isinstance(node, Binary) and node.op is BinOp.MUL and node.dtype == INT64
        and not isinstance(node.a, Const) and not isinstance(node.b, Const)
    )


def innermost(root: Stmt, is_outlined: bool) -> Iterator[tuple[For | None, Stmt]]:
    """Iterate over all statements except loops, with the innermost loop around each, if any.

    Args:
        root: Statement that becomes a function.
        is_outlined: Whether the function includes parallel loops, which are otherwise outlined.
    """
    found: list[tuple[For | None, Stmt]] = []
    outer: set[int] = set()
    worklist: list[tuple[For | None, Stmt]] = [(None, root)]
    while worklist:
        loop, node = worklist.pop()
        if isinstance(node, For):
            if node.kind is ForKind.PARALLEL and not is_outlined:
                continue
            outer.add(id(loop))
            loop = node
        else:
            found.append((loop, node))
        worklist += [(loop, part) for part in statements_in(node)]
    return ((None if id(loop) in outer else loop, node) for loop, node in found)


def _vector_maps(statements: Sequence[tuple[For | None, Stmt]]) -> set[int]:
    """Return the ids of innermost loops that store only vectors and read no stored memory."""
    written: dict[int, set[Var]] = {}
    read: dict[int, set[Var]] = {}
    others: set[int] = set()
    for loop, statement in statements:
        if loop is None:
            continue
        for node in _hoistable_parts(statement):
            if isinstance(node, BufferStore):
                written.setdefault(id(loop), set()).add(node.buffer.data)
                if node.value.dtype.lanes == 1:
                    others.add(id(loop))
            elif isinstance(node, BufferLoad):
                read.setdefault(id(loop), set()).add(node.buffer.data)
    return {
        loop for loop, data in written.items()
        if loop not in others and not data & read.get(loop, set())
    }


def _hoistable_parts(statement: Stmt) -> list[Any]:
    """Return the parts of a statement that could be hoisted out of a loop, each once."""
    direct = [part for part in children(statement) if not isinstance(part, Stmt)]
    parts = [node for node in walk(*direct) if type(node) in _DECIDING]
    return [statement, *parts] if isinstance(statement, BufferStore) else parts


def mentions(root: Any, var: Var, named: Mapping[Var, Expr] = MappingProxyType({})) -> bool:
    """Return whether `root` depends on `var`, directly or through let-bound values."""
    worklist = nodes_of(Var, root)
    expanded: set[Var] = set()
    while worklist:
        node = worklist.pop()
        if node is var:
            return True
        if node in named and node not in expanded:
            expanded.add(node)
            worklist += nodes_of(Var, named[node])
    return False


def _is_constant(index: Any) -> bool:
    match index:
        case Ramp(base, stride):
            return isinstance(base, Const) and isinstance(stride, Const)
        case Broadcast(value):
            return isinstance(value, Const)
    return isinstance(index, Const)


def _is_work(node: Any, var: Var, named: Mapping[Var, Expr]) -> bool:
    if isinstance(node, Call):
        return not mentions(node, var, named)
    if node.op not in (BinOp.FLOORDIV, BinOp.MOD):
        return False
    # The code generator hoists invariant code except divisions by variables.
    return not isinstance(node.b, Const) or mentions(node, var, named)


def invariant_conditions(loop: For) -> list[Expr]:
    """Return the maximal loop-invariant conditions of an innermost loop.

    The conditions read no memory and cannot fail, so they can be computed before the loop.
    """
    changing: set[Var] = {loop.loop_var}
    conditions: list[Expr] = []
    seen: set[int] = set()
    worklist: list[Any] = [loop.body]
    while worklist:
        node = worklist.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if type(node) is For:
            return []
        if type(node) is Let:
            changing.add(node.var)
        if type(node) in _CONDITIONS and node.dtype.is_bool:
            conditions.append(node)
        else:
            worklist += children(node)[::-1]
    return _invariant_terms(conditions, changing)


def staying_masks(loop: For) -> list[Expr]:
    """Return the loop-invariant masks that statements in a loop bind to variables.

    A mask of a remainder is the same in each iteration of the loops around the remainder.
    """
    statements = list(walk(loop.body, parts=statements_in))
    changing = {loop.loop_var}
    for node in statements:
        if isinstance(node, _BINDING):
            changing.update(node.bound())
    masks = [
        node.value for node in statements
        if type(node) is Let and type(node.value) is Compare and node.value.dtype.lanes > 1
    ]
    return [mask for mask in masks if not any(
        isinstance(node, _MAY_CHANGE) or node in changing
        for node in walk(mask) if isinstance(node, Var | BufferLoad | Call)
    )]


def _invariant_terms(conditions: list[Expr], changing: set[Var]) -> list[Expr]:
    """Return the invariant conditions, or the invariant terms of conditions that vary."""
    invariant: dict[int, bool] = {}
    for node in post_order(*conditions):
        changes = node in changing if isinstance(node, Var) else isinstance(node, _MAY_CHANGE)
        invariant[id(node)] = not changes and all(invariant[id(part)] for part in children(node))

    def terms(node: Expr) -> Sequence[Expr]:
        joins = isinstance(node, Binary) and node.op in (BinOp.AND, BinOp.OR)
        return children(node) if joins and not invariant[id(node)] else ()

    return [node for node in walk(*conditions, parts=terms) if invariant[id(node)]]


_MIN_VECTORIZED_TRIP_COUNT = 8
"""Minimum trip count for vectorization by LLVM: one or two vectors."""
_MAX_BODY_NODES = 4096
"""Maximum number of body nodes: the time of the LLVM vectorizer is quadratic in it."""
_ANY_ORDER = (BinOp.ADD, BinOp.MUL, BinOp.MIN, BinOp.MAX)


def has_plain_loops(root: Stmt, *, fast_math: bool = False, is_outlined: bool = False) -> bool:
    """Return whether LLVM can vectorize an innermost loop of `root`.

    Such a loop stores consecutive elements, or is a reduction in an arbitrary order.

    Args:
        root: Statement that becomes a function.
        fast_math: Whether floating-point sums may be reordered.
        is_outlined: Whether the function includes parallel loops, which are otherwise outlined.
    """
    eligible: dict[int, bool] = {}
    sizes: Counter[int] = Counter()
    for loop, statement in innermost(root, is_outlined):
        if loop is None or not isinstance(statement, BufferStore | Let):
            continue
        nodes = list(walk(*(part for part in children(statement) if isinstance(part, Expr))))
        sizes[id(loop)] += len(nodes)
        known = eligible.get(id(loop))
        if known is False or any(map(_is_one_at_a_time, nodes)):
            eligible[id(loop)] = False
        elif isinstance(statement, BufferStore):
            eligible[id(loop)] = _is_long(loop) and _is_scalar(statement) and (
                _goes_on(statement, loop.loop_var)
                or _folds(statement, loop.loop_var, fast_math=fast_math)
            )
    return any(is_simd and sizes[loop] <= _MAX_BODY_NODES for loop, is_simd in eligible.items())


def _is_long(loop: For) -> bool:
    return not isinstance(loop.extent, Const) or int(
        loop.extent.value) >= _MIN_VECTORIZED_TRIP_COUNT


def _is_scalar(store: BufferStore) -> bool:
    return store.value.dtype.lanes == 1 and store.indices[-1].dtype.lanes == 1


def _goes_on(store: BufferStore, var: Var) -> bool:
    """Return whether successive iterations store consecutive elements."""
    *outer, last = store.indices
    if any(mentions(index, var) for index in outer):
        return False
    terms = TermTable()
    varying = [(x, n) for x, n in terms.listed(terms.sum_of(last)) if mentions(x, var)]
    return len(varying) == 1 and varying[0][0] is var and varying[0][1] == 1


def _folds(store: BufferStore, var: Var, *, fast_math: bool) -> bool:
    """Return whether a store is a reduction into one element that may be reordered."""
    value = store.value
    if not isinstance(value, Binary) or value.op not in _ANY_ORDER:
        return False
    if value.dtype.is_float and not fast_math and value.op in (BinOp.ADD, BinOp.MUL):
        return False
    return not any(mentions(index, var) for index in store.indices) and any(
        isinstance(part, BufferLoad) and part.buffer.data is store.buffer.data
        for part in (value.a, value.b)
    )


def _is_one_at_a_time(node: Any) -> bool:
    """Return whether a node has no vector form: integer divisions and index checks."""
    if isinstance(node, Binary):
        return (
            node.op in (BinOp.FLOORDIV, BinOp.MOD) and node.dtype.is_integer
            and not isinstance(node.b, Const)
        )
    return isinstance(node, Call) and node.name == "check_index"


def passes_for(root: Stmt, options: Options, *, is_outlined: bool = False) -> PassSelection:
    """Return the passes that can improve a function.

    Args:
        root: Statement that becomes a function.
        options: Code generation options.
        is_outlined: Whether the function includes parallel loops, which are otherwise outlined.
    """
    if has_plain_loops(root, fast_math=options.fast_math, is_outlined=is_outlined):
        return PassSelection.ALL
    has_work = has_loop_work(root, is_outlined=is_outlined)
    if options.fast_math or has_work or has_products_in_branches(root, is_outlined=is_outlined):
        return PassSelection.LOOPS
    return PassSelection.FEW
