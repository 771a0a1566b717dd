"""Generate loops over integer sets, with isl's AST builder for sets that are not boxes or tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import islpy as isl

from tecomp.errors import InternalError
from tecomp.ir.nodes.expr import Binary, BinOp, CmpOp, Compare, Const, Expr, Var, binary
from tecomp.ir.nodes.stmt import For, ForKind, IfThenElse, Range, SeqStmt, Stmt, seq
from tecomp.ir.traversal.rewrite import conjuncts, free_variables
from tecomp.poly.loops.box_loops import Body, Ends, box_loops, ends_of
from tecomp.poly.loops.tile_loops import Tiles, tile_loops, tiles_of
from tecomp.poly.sets.from_isl import ast_expr, set_to_condition
from tecomp.poly.sets.isl_context import CONTEXT, Undecided, cached_set_question, within_budget
from tecomp.poly.sets.to_isl import NotAffine, Space, condition

MAX_PIECES = 16
"""Maximum number of pieces of a set that is tested by a condition inside loops over its hull."""

# The islpy type stubs omit members whose names contain Python keywords.
_BLOCK, _IF, _FOR = (getattr(isl.ast_node_type, name) for name in ("block", "if_", "for_"))


def scan(
    points: isl.Set,
    space: Space,
    body: Body,
    *,
    kinds: Mapping[Var, ForKind] | None = None,
    threads: Mapping[Var, str] | None = None,
    isolated: isl.Set | None = None,
    context: isl.Set | None = None,
) -> Stmt:
    """Return loops over `points` of `space`, with the first dimension outermost.

    Args:
        points: Points to visit, for given values of the parameters of `space`.
        space: Space of `points`; each loop variable is named after its dimension.
        body: Function from the value of each dimension and the set of points of this copy of the
            statement to the innermost statement.
        kinds: Kind of the loop of each dimension. Default: serial.
        threads: Grid axis that the loop of a dimension is bound to. Default: none.
        isolated: Points to separate into loops of their own.
        context: Facts about the parameters, as a set of the parameters only.

    Raises:
        Undecided: If isl exceeds its share of the budget.
    """
    if not space.dims:
        return _guard_point(points, space, body, context)
    if isolated is not None and _depends_on_parameters_alone(isolated, points):
        return _multi_version(points, space, body, kinds, threads, isolated, context)
    attempt = within_budget(lambda: [_find_loops(points, space, isolated, context)])
    found = attempt[0] if attempt is not None else None
    if isinstance(found, list):
        return box_loops(found, points, space, body, kinds or {}, threads or {})
    if isinstance(found, Tiles):
        return tile_loops(found, space, body, kinds or {}, threads or {}, context)
    if found is None and (hull := _hull(points)) is not None:
        return _guard_hull_loops(points, hull, space, body, kinds, threads, context)
    if attempt is None:
        raise Undecided
    if found is None:
        raise InternalError(
            "the loops that isl generates for {points} do not cover all of the set",
            points=points,
        )
    tree, copies = found
    return _Emitter(space, body, kinds or {}, threads or {}, copies).emit(tree, {})


Ast: TypeAlias = tuple[isl.AstNode, list[isl.Set]]
"""AST of isl, and the points for each copy of the statement in the AST."""


def _find_loops(
    points: isl.Set, space: Space, isolated: isl.Set | None, context: isl.Set | None
) -> Ends | Tiles | Ast | None:
    """Return a description of loops that visit all points, or None if none was found."""
    if isolated is None and (box := ends_of(points, space, context)) is not None:
        return box
    if (tiles := tiles_of(points, isolated, context)) is not None:
        return tiles
    return _build_ast(points, isolated, context)


@cached_set_question
def _build_ast(points: isl.Set, isolated: isl.Set | None, context: isl.Set | None) -> Ast | None:
    """Return an AST that visits all points, or None if isl fails, takes too long or omits points.

    The definitions that isl knows for the existential variables of a set depend on the history of
    the set, and some forms make isl fail. The printed form defines all of them, and is tried next.
    """
    for is_printed in (False, True):
        form = isl.Set.read_from_str(CONTEXT, str(points)) if is_printed else points
        try:
            tree, copies = _generate(form, isolated, context)
        except isl.Error:
            continue
        if _is_visited(points, copies, context):
            return tree, copies
    return None


def _hull(points: isl.Set) -> isl.Set | None:
    """Return a convex superset without existential variables, or None if that is no different."""
    hull = points.remove_divs().simple_hull().to_set()
    return None if hull.plain_is_equal(points) or not hull.is_bounded() else hull


def _guard_hull_loops(
    points: isl.Set,
    hull: isl.Set,
    space: Space,
    body: Body,
    kinds: Mapping[Var, ForKind] | None,
    threads: Mapping[Var, str] | None,
    context: isl.Set | None,
) -> Stmt:
    """Return loops over a hull with a condition inside that selects `points`."""
    known = within_budget(lambda: points.gist(hull).compute_divs())
    if known is None or known.n_basic_set() > MAX_PIECES:
        raise Undecided

    def tested(values: Mapping[Var, Expr], copy: isl.Set) -> Stmt:
        del copy
        coordinates = {f"d{k}": values[dim] for k, dim in enumerate(space.dims)}
        condition = set_to_condition(known, {**space.names, **coordinates})
        return IfThenElse(condition, body(values, points))

    return scan(hull, space, tested, kinds=kinds, threads=threads, context=context)


def _generate(points: isl.Set, isolated: isl.Set | None, context: isl.Set | None) -> Ast:
    statement = points.set_tuple_name("S")
    identity = isl.MultiPwAff.identity(statement.get_space().map_from_set())
    order = isl.MultiUnionPwAff.from_multi_pw_aff(identity.reset_tuple_id(isl.dim_type.out))
    node = isl.Schedule.from_domain(statement.to_union_set()).get_root().child(0)
    node = node.insert_partial_schedule(order)
    if isolated is not None:
        node = node.band_set_ast_build_options(_isolate_option(isolated))
    build = isl.AstBuild.alloc(CONTEXT)
    if context is not None:
        build = isl.AstBuild.from_context(context)
    copies: list[isl.Set] = []

    failures: list[BaseException] = []

    def remember(leaf: isl.AstNode, inner: isl.AstBuild) -> isl.AstNode:
        # An exception that escapes from the callback, e.g. KeyboardInterrupt, makes isl leak
        # objects, and the process then crashes at exit.
        try:
            name = isl.Id.read_from_str(CONTEXT, f"u{len(copies)}")
            copies.append(isl.Set.from_union_set(inner.get_schedule().domain()).reset_tuple_id())
            return leaf.set_annotation(name)
        except BaseException as error:
            failures.append(error)
            return leaf

    # The second value keeps a reference to the callback.
    build, _keep = build.set_at_each_domain(remember)
    tree = build.node_from_schedule(node.get_schedule())
    if failures:
        raise failures[0]
    return tree, copies


def _is_visited(points: isl.Set, copies: list[isl.Set], context: isl.Set | None) -> bool:
    """Return whether the copies cover all points; for some forms of a set, isl omits points."""
    known = points if context is None else points.intersect_params(context)
    if not copies:
        return bool(known.is_empty())
    visited = copies[0]
    for copy in copies[1:]:
        visited = visited.union(copy)
    return bool(known.plain_is_equal(visited) or known.is_subset(visited))


def _isolate_option(isolated: isl.Set) -> isl.UnionSet:
    outer = isl.Set.universe(isolated.get_space().params().set_from_params())
    option: isl.Map = isl.Map.from_domain_and_range(outer, isolated.reset_tuple_id())
    return option.wrap().set_tuple_name("isolate").to_union_set()


def _depends_on_parameters_alone(isolated: isl.Set, points: isl.Set) -> bool:
    result = within_budget(lambda: points.intersect_params(isolated.params()).is_subset(isolated))
    return bool(result)


def _multi_version(
    points: isl.Set,
    space: Space,
    body: Body,
    kinds: Mapping[Var, ForKind] | None,
    threads: Mapping[Var, str] | None,
    isolated: isl.Set,
    context: isl.Set | None,
) -> Stmt:
    """Return two versions of the loops under one condition that depends on parameters only.

    With an isolated part in a single set, isl would take several times as long for equal code.
    """
    known = points.params() if context is None else context
    where = isolated.params().gist(known)

    def form(inside: isl.Set) -> Stmt:
        def copy(values: Mapping[Var, Expr], piece: isl.Set) -> Stmt:
            return body(values, piece.intersect_params(inside))

        return scan(points, space, copy, kinds=kinds, threads=threads, context=inside)

    condition = set_to_condition(where.from_params(), space.names)
    return IfThenElse(condition, form(known.intersect(where)), form(known.subtract(where)))


def _guard_point(
    points: isl.Set, space: Space, body: Body, context: isl.Set | None
) -> Stmt:
    """Return the body of a set without dimensions, guarded by a condition on its parameters."""
    known = points if context is None else points.gist(context.from_params())
    statement = body({}, points)
    condition = set_to_condition(known, space.names)
    if isinstance(condition, Const):
        return statement if condition.value else SeqStmt(())
    return IfThenElse(condition, statement)


class _Emitter:
    """Converter of one AST to statements."""

    def __init__(
        self,
        space: Space,
        body: Body,
        kinds: Mapping[Var, ForKind],
        threads: Mapping[Var, str],
        copies: list[isl.Set],
    ) -> None:
        self.space = space
        self.body = body
        self.kinds = kinds
        self.threads = threads
        self.copies = copies
        self.params = {k: v for k, v in space.names.items() if k.startswith("p")}

    def emit(self, node: isl.AstNode, values: Mapping[str, Expr]) -> Stmt:
        """Return the statement for `node`, inside loops with the given values."""
        kind: Any = node.get_type()
        if kind is _BLOCK:
            parts = node.block_get_children()
            return seq(*(self.emit(parts.get_at(k), values) for k in range(parts.n_ast_node())))
        if kind is _IF:
            condition = self._expr(node.if_get_cond(), values)
            then = self.emit(node.if_get_then_node(), values)
            otherwise = None
            if node.if_has_else_node():
                otherwise = self.emit(node.if_get_else_node(), values)
            return IfThenElse(condition, then, otherwise)
        if kind is _FOR:
            return self._loop(node, values)
        call = node.user_get_expr()
        arguments = [
            self._expr(call.get_op_arg(k + 1), values) for k in range(len(self.space.dims))
        ]
        point = dict(zip(self.space.dims, arguments, strict=True))
        copy = int(node.get_annotation().get_name()[1:])
        return self.body(point, self.copies[copy])

    def _loop(self, node: isl.AstNode, values: Mapping[str, Expr]) -> Stmt:
        iterator = node.for_get_iterator().get_id().get_name()
        first = self._expr(node.for_get_init(), values)
        # isl names the iterator of dimension k `ck`.
        dim = self.space.dims[int(iterator[1:])]
        thread = self.threads.get(dim, "")
        if node.for_is_degenerate():
            return self.emit(node.for_get_body(), {**values, iterator: first})
        var = Var(dim.name)
        step = self._expr(node.for_get_inc(), values)
        assert isinstance(step, Const)
        inside = {**values, iterator: var}
        count = _count(self._expr(node.for_get_cond(), inside), var, first)
        minimum: Expr = first
        if step.value != 1:
            inside = {**values, iterator: first + var * step}
            count, minimum = (count + (step - 1)) // step, Const(0)
        body = self.emit(node.for_get_body(), inside)
        return For(var, minimum, count, self.kinds.get(dim, ForKind.SERIAL), body, thread)

    def _expr(self, expr: isl.AstExpr, values: Mapping[str, Expr]) -> Expr:
        return ast_expr(expr, {**self.params, **values})


def _count(condition: Expr, var: Var, first: Expr) -> Expr:
    """Return the number of values from `first` on that satisfy the upper bounds in `condition`."""
    bounds: list[Expr] = []
    for part in conjuncts(condition):
        match part:
            case Compare(op, a, b) if a is var and op in (CmpOp.LE, CmpOp.LT):
                bounds.append(_exclusive(b) if op is CmpOp.LE else b)
            case other:
                raise AssertionError(f"`{other}` is no bound of {var}")
    count = _minus(bounds[0], first)
    for bound in bounds[1:]:
        count = binary(BinOp.MIN, count, _minus(bound, first))
    return count


def _exclusive(bound: Expr) -> Expr:
    """Return `bound + 1`, distributed over min and max and folded into constants."""
    match bound:
        case Binary(BinOp.MIN | BinOp.MAX as op, a, b):
            return binary(op, _exclusive(a), _exclusive(b))
        case Binary(BinOp.SUB, a, Const(1)):
            return a
        case Binary(BinOp.ADD, a, Const(value)):
            return a + (value + 1) if value != -1 else a
        case Binary(BinOp.SUB, a, Const(value)):
            return a - (value - 1)
    return bound + 1


def _minus(bound: Expr, first: Expr) -> Expr:
    if isinstance(first, Const) and first.value == 0:
        return bound
    if isinstance(bound, Binary) and bound.op is BinOp.MIN:
        return binary(BinOp.MIN, _minus(bound.a, first), _minus(bound.b, first))
    return bound - first


def padding_loops(
    where: Expr,
    indices: Sequence[Var],
    bounds: Sequence[Range],
    body: Callable[[tuple[Expr, ...]], Stmt],
) -> Stmt:
    """Run `body` for each place in `bounds` that satisfies `where`, in row-major order.

    The loops visit only these places. If the condition is not affine, as for a swizzle with XOR,
    the loops visit all of `bounds` and test the condition.

    Args:
        where: Condition on `indices`.
        indices: One variable for each axis; the loops are named after these variables.
        bounds: First place and extent of each axis.
        body: Function from the index expressions of a place to its statement.
    """
    box = [(part.min, part.extent) for part in bounds]
    variables: dict[Var, None] = {}
    for expr in (where, *(end for pair in box for end in pair)):
        variables.update(free_variables(expr))
    space = Space(tuple(indices), tuple(var for var in variables if var not in set(indices)))
    try:
        points = condition(where, space).intersect(space.box(box)).coalesce()
    except NotAffine:
        return _wrap_in_condition(where, indices, bounds, body)
    return scan(points, space, lambda point, _: body(tuple(point[index] for index in indices)))


def _wrap_in_condition(
    where: Expr,
    indices: Sequence[Var],
    bounds: Sequence[Range],
    body: Callable[[tuple[Expr, ...]], Stmt],
) -> Stmt:
    result: Stmt = IfThenElse(where, body(tuple(indices)))
    for index, part in reversed(list(zip(indices, bounds, strict=True))):
        result = For(index, part.min, part.extent, ForKind.SERIAL, result)
    return result
