"""Access relations of operations, free variables and index footprints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tecomp.compute.affine_index import Affine, added, affine_of, axes_of, key_of, shortest
from tecomp.compute.expression_analysis import Factor, factors_of, is_selection, written_factors
from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import CommReducer, Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import DefinitionError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import Binary, BinOp, Call, Cast, Const, Expr, Var, index_value, is_const
from tecomp.ir.nodes.operators import integer_range
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import children, fold, free_variables, post_order, walk


def reach(index: Expr, sizes: Mapping[IterVar, int]) -> int | None:
    """The greatest value less the least one, at most.

    Args:
        index: of whole numbers.
        sizes: how many values each axis runs through; the others have one.

    Returns:
        It; None if that cannot be said, as of what is read from a tensor.

    >>> from tecomp.compute.iter_var import make_axis, IterKind
    >>> i, j = (make_axis(name, 0, 100, IterKind.DATA) for name in "ij")
    >>> reach(i * 3 + j, {i: 4, j: 2}), reach(i // 8, {i: 8}), reach(i % 8, {j: 5})
    (10, 1, 0)
    """
    def own(node: Any, parts: list[int | None]) -> int | None:
        if isinstance(node, IterVar):
            return sizes.get(node, 1) - 1
        if isinstance(node, Const | Var):
            return 0
        if isinstance(node, Binary) and None not in parts:
            return _of_both(node, [part for part in parts if part is not None])
        if isinstance(node, Cast) and node.dtype.is_integer and node.value.dtype.is_integer:
            return parts[0]
        return None if any(part != 0 for part in parts) else 0

    return fold(index, own)


def _of_both(node: Binary, parts: list[int]) -> int | None:
    a, b = parts
    if node.op in (BinOp.ADD, BinOp.SUB):
        return a + b
    if a == b == 0:
        return 0
    # What changes no value of the other is a number, or the same for all.
    if node.op is BinOp.MUL and isinstance(node.b, Const):
        return a * abs(int(node.b.value))
    if node.op is BinOp.MUL and isinstance(node.a, Const):
        return b * abs(int(node.a.value))
    if isinstance(node.b, Const) and node.b.value > 0:
        if node.op is BinOp.FLOORDIV:
            return -(-a // int(node.b.value))
        if node.op is BinOp.MOD:
            return int(node.b.value) - 1
    return max(a, b) if node.op in (BinOp.MIN, BinOp.MAX) and min(a, b) == 0 else None


def reads_tensors(index: Expr) -> bool:
    """Whether an index depends on elements of tensors."""
    return bool(fold(index, lambda node, parts: isinstance(node, TensorLoad) or any(parts)))


def variables_of(op: Operation) -> list[Var]:
    """Those of its shapes, its reductions and its body, as often as they are there."""
    found = [var for shape in op.shapes for n in shape for var in variables_in(n)]
    if isinstance(op, ComputeOp):
        for axis in op.reduce_axis:
            found += [*variables_in(axis.extent), *variables_in(axis.dom.min)]
        bound = {*op.axis, *op.reduce_axis, *_bound_by_reducer(op)}
        start = op.start if isinstance(op, ScanOp) else ()
        nodes = walk(*op.body, *start)
        found += [node for node in nodes if type(node) is Var and node not in bound]
    if isinstance(op, ExternOp):
        found += free_variables(op.statement)
    return found


def variables_in(extent: Extent) -> list[Var]:
    """Those of an extent."""
    return [] if isinstance(extent, int) else [n for n in walk(extent) if isinstance(n, Var)]


def _bound_by_reducer(op: ComputeOp) -> set[Var]:
    first = op.body[0]
    return set(first.combiner.bound()) if isinstance(first, Reduce) else set()


Reducer = Literal["sum", "prod", "min", "max"]

_REDUCERS: dict[BinOp, Reducer] = {
    BinOp.ADD: "sum", BinOp.MUL: "prod", BinOp.MIN: "min", BinOp.MAX: "max",
}


_FUNCTION = 10
"""Operations that a function takes, such as `exp`."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One read of a tensor.

    Attributes:
        tensor: what is read.
        index: which element.
        times: how often that is written.

    >>> import tecomp
    >>> from tecomp import te
    >>> A = te.placeholder((8, 10), name="A")
    >>> B = te.compute((8, 9), lambda i, j: A[i, j + 1] * 2.0, name="B")
    >>> (read,) = tecomp.accesses(B).reads
    >>> read.tensor.name, [str(index.value) for index in read.index], read.axes
    ('A', ['0 + cast("int64", i)', '1 + cast("int64", j)'], (i, None))
    >>> read.times, read.follows_data
    (1, False)
    """

    tensor: Tensor
    index: tuple[Affine, ...]
    times: int = 1

    @property
    def axes(self) -> tuple[IterVar | None, ...]:
        """For each index the axis that it is; None where it is anything else."""
        return tuple(index.axis for index in self.index)

    @property
    def follows_data(self) -> bool:
        """Whether which element it is depends on elements of tensors, as in a gather."""
        return any(reads_tensors(term) for index in self.index for term, _ in index.terms)

    @property
    def offset(self) -> Affine | None:
        """How many elements lie before it in memory; None where that depends on sizes.

        Example:
            >>> import tecomp
            >>> from tecomp import te
            >>> A = te.placeholder((6, 8), name="A")
            >>> B = te.compute((48,), lambda i: A[i // 8, i % 8], name="B")
            >>> tecomp.accesses(B).reads[0].offset.axis.name
            'i'
        """
        if not all(isinstance(extent, int) for extent in self.tensor.shape):
            return None
        if all(index.is_affine for index in self.index):
            moved, step = Affine(), 1
            for index, extent in zip(self.index[::-1], self.tensor.shape[::-1], strict=True):
                moved, step = added(moved, index, step), step * int(extent)
            return moved
        total: Expr = index_value(0)
        for index, extent in zip(self.index, self.tensor.shape, strict=True):
            total = total * extent + index.value
        return shortest(total)

    def at(self, places: Mapping[IterVar, Affine]) -> Access:
        """The same read where each axis is a sum over other axes, as where its reader is inlined.

        Example:
            >>> import tecomp
            >>> from tecomp import te
            >>> A = te.placeholder((8, 6), name="A")
            >>> B = te.compute((48,), lambda i: A[i % 8, i // 8], name="B")
            >>> C = te.compute((6, 8), lambda i, j: B[i * 8 + j], name="C")
            >>> (outer,), (inner,) = tecomp.accesses(C).reads, tecomp.accesses(B).reads
            >>> found = inner.at(dict(zip(B.op.axis, outer.index, strict=True)))
            >>> [axis.name for axis in found.axes]
            ['j', 'i']
        """
        return replace(self, index=tuple(index.at(places) for index in self.index))

    def footprint(self, sizes: Mapping[IterVar, int]) -> tuple[int, ...]:
        """Extents of a box that has all that is read in a part of the axes, wherever that begins.

        Args:
            sizes: how many values in a row each axis runs through; the others have one.

        Raises:
            DefinitionError: an extent of the tensor is no number.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((20,), name="A")
        >>> B = te.compute((4, 6), lambda i, j: A[i * 2 + j], name="B")
        >>> i, j = B.op.axis
        >>> tecomp.accesses(B).reads[0].footprint({i: 2, j: 3})
        (5,)
        """
        found = []
        for index, extent in zip(self.index, self.tensor.shape, strict=True):
            if not isinstance(extent, int):
                raise DefinitionError(
                    f"footprint: {self.tensor.name} has the extent `{extent}`, which is only known "
                    "at the call; give numbers",
                    kind="unknown-size",
                )
            steps = [(reach(term, sizes), abs(factor)) for term, factor in index.terms]
            known = [step * factor for step, factor in steps if step is not None]
            found.append(min(sum(known) + 1, extent) if len(known) == len(steps) else extent)
        return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What is multiplied with something else.

    Attributes:
        axes: those that it depends on.
        element: the element of a tensor that it is; None if it is anything else.
    """

    axes: frozenset[IterVar]
    element: Access | None


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """What an operation reads for each element, and how it combines that.

    Attributes:
        axis: one variable for each axis of the result.
        reduce_axis: the axes that it reduces over.
        reducer: how; None if there is no reduction, or one of another kind.
        reads: all that it reads, each place once.
        factors: what is multiplied to give the element, or what is reduced for it, if that is a
            product of elements of tensors alone, maybe converted to a wider type.
        written: what is multiplied to give that, as it is written, if it is more than one.
        is_plain: whether the reduction takes every element, and starts from its identity.
        has_start: whether it starts from something else.
        repeated: for each axis of the result the operations that give the same for every value of
            it, but not for every element.
        is_scan: whether its rows follow from one another; then it reads what its steps read.
        work: operations for each element, or for each term of it; a function counts as ten.
        paths: for each tensor that is read the operations that follow one upon the other from its
            element to the result, at most; those of the whole formula at None.
        rising: of a reducer that takes one of two tuples whole the number of a value that is
            greater with each step along its one axis; None if there is none.
        is_apart: whether several values are reduced, each by a common reducer of its own.
        counted: the axes of the result whose numbers are values, not only indices.

    >>> import tecomp
    >>> from tecomp import te
    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((5, 8), name="B")
    >>> k = te.reduce_axis((0, 8), name="k")
    >>> C = te.compute((4, 5), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    >>> found = tecomp.accesses(C)
    >>> found.axis, found.reduce_axis, found.reducer, found.work
    ((i, j), (k,), 'sum', 1)
    >>> [read.tensor.name for read in found.reads], [x.tensor.name for x in found.factors]
    (['A', 'B'], ['A', 'B'])
    >>> [part.element.tensor.name for part in found.written], found.repeated
    (['A', 'B'], (0, 0))
    >>> found.is_plain, found.has_start, found.is_scan, found.is_apart, found.rising
    (True, False, False, False, None)
    >>> E = te.compute((4, 5), lambda i, j: te.exp(A[i, j] * 2.0) + B[j, i], name="E")
    >>> paths = tecomp.accesses(E).paths  # a function counts as ten here too
    >>> paths[A], paths[B], paths[None]
    (12, 1, 12)
    >>> D = te.compute((4, 5), lambda i, j: A[i, j] + i.astype("float32"), name="D")
    >>> tecomp.accesses(D).counted
    frozenset({i})
    """

    axis: tuple[IterVar, ...]
    reduce_axis: tuple[IterVar, ...]
    reducer: Reducer | None
    reads: tuple[Access, ...]
    factors: tuple[Access, ...]
    is_plain: bool
    has_start: bool = False
    work: int = 0
    paths: Mapping[Tensor | None, int] = field(default_factory=dict)
    is_scan: bool = False
    written: tuple[Part, ...] = ()
    repeated: tuple[int, ...] = ()
    rising: int | None = None
    is_apart: bool = False
    counted: frozenset[IterVar] = frozenset()


def accesses(tensor: Tensor) -> Accesses:
    """What the operation of a tensor reads for each element, whatever it is called or made by.

    Args:
        tensor: any; a placeholder and what is no formula of its elements read nothing.

    Raises:
        DefinitionError: it is no tensor.

    Example:
        >>> import tecomp
        >>> from tecomp import te
        >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((5, 8), name="B")
        >>> k = te.reduce_axis((0, 8), name="k")
        >>> C = te.compute((4, 5), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
        >>> found = tecomp.accesses(C)
        >>> found.reducer, [(x.tensor.name, [axis.name for axis in x.axes]) for x in found.factors]
        ('sum', [('A', ['i', 'k']), ('B', ['j', 'k'])])
    """
    check_kind(
        tensor, Tensor, "accesses: the tensor", "give what te.compute makes", DefinitionError)
    op = tensor.op
    if not isinstance(op, ComputeOp) or isinstance(op, ScanOp | ExternOp):
        is_scan = isinstance(op, ScanOp)
        return Accesses(op.axis, op.reduce_axis, None, (), (), True, is_scan=is_scan)
    key = accesses, tensor.value_index
    if key not in op.known:
        op.known[key] = _accesses(op, op.body[tensor.value_index])
    found: Accesses = op.known[key]
    return found


def _accesses(op: ComputeOp, body: Expr) -> Accesses:
    # Of a reduction of several values each has all that any of them is made of.
    bodies = op.body[:1] if isinstance(body, Reduce) else op.body
    loads = (node for node in walk(*bodies) if isinstance(node, TensorLoad))
    reads: dict[object, Access] = {}
    for read in (_named(access_of(load), op.axis) for load in loads):
        key = read.tensor, tuple(key_of(index) for index in read.index)
        times = reads[key].times + 1 if key in reads else 1
        reads[key] = replace(read, times=times)
    reducer, value, is_plain, has_start = None, body, True, False
    if isinstance(body, Reduce):
        reducer = _kind(body.combiner)
        value = body.source[body.value_index]
        has_start = bool(body.init)
        is_plain = is_const(body.condition, True) and not has_start
    factors = tuple(_named(access_of(load), op.axis) for load in factors_of(value))
    written = written_factors(value)
    parts = tuple(_part(factor, op.axis) for factor in written) if len(written) > 1 else ()
    every = tuple(reads.values())
    return Accesses(
        op.axis, op.reduce_axis, reducer, every, factors, is_plain, has_start, _work(bodies),
        _paths(bodies),
        written=parts, repeated=_repeated(op),
        rising=_rising(body) if isinstance(body, Reduce) else None,
        is_apart=isinstance(body, Reduce) and _are_apart(body.combiner),
        counted=frozenset(_outside_of_indices(bodies)) & frozenset(op.axis),
    )


def _rising(reduce: Reduce) -> int | None:
    """The value of a tuple that is greater with each step, if its reducer takes tuples whole.

    It says which of two partial results comes first, whichever elements they are made of.
    """
    if len(reduce.axis) != 1 or not is_selection(reduce.combiner):
        return None
    (axis,) = reduce.axis
    return next((k for k, value in enumerate(reduce.source) if _rises(value, axis)), None)


def _rises(value: Expr, axis: IterVar) -> bool:
    """Whether a value is a multiple of an axis and some more, and its types hold all of them."""
    kinds = [value.dtype]
    while isinstance(value, Cast):
        value = value.value
        kinds.append(value.dtype)
    if not all(kind.is_integer for kind in kinds):
        return False
    place, first = affine_of(value), axis.dom.min
    step = place.coefficient(axis)
    if step is None or step <= 0 or len(place.terms) != 1:
        return False
    if all(kind == axis.dtype for kind in kinds):
        return True
    if not isinstance(first, Const):
        return False
    least = place.const + step * int(first.value)
    if isinstance(axis.extent, int):
        most = least + step * max(axis.extent - 1, 0)
    else:
        most = place.const + step * integer_range(axis.dtype)[1]
    ranges = [integer_range(kind) for kind in kinds]
    return all(low <= least and most <= high for low, high in ranges)


def _repeated(op: ComputeOp) -> tuple[int, ...]:
    """For each axis the work on values that do not depend on it, but on another one."""
    loads = [node for node in walk(*op.body) if isinstance(node, TensorLoad)]
    places = {id(node) for load in loads for node in walk(*load.indices)}
    used: dict[int, frozenset[IterVar]] = {}
    found = dict.fromkeys(op.axis, 0)
    for node in post_order(*op.body):
        own = frozenset({node}) if isinstance(node, IterVar) else frozenset[IterVar]()
        used[id(node)] = own.union(*(used[id(part)] for part in children(node)))
        cost = _cost(node)
        if cost and used[id(node)] and id(node) not in places:
            for axis in found:
                found[axis] += 0 if axis in used[id(node)] else cost
    return tuple(found.values())


def _cost(node: Any) -> int:
    """Operations that a node stands for itself."""
    if not isinstance(node, Expr) or isinstance(node, TensorLoad | Const | Var | Reduce | Cast):
        return 0
    return _FUNCTION if isinstance(node, Call) else 1


def _work(body: tuple[Expr, ...]) -> int:
    """Operations on elements; those of indices are not counted."""
    return sum(map(_cost, _outside_of_indices(body)))


def _paths(body: tuple[Expr, ...]) -> Mapping[Tensor | None, int]:
    """From each tensor to the result, and at None of all that is computed; see `Accesses`."""
    behind = dict.fromkeys(map(id, body), 0)
    found: dict[Tensor | None, int] = {None: 0}
    for node in reversed([*post_order(*body)]):
        if id(node) not in behind:
            continue
        if isinstance(node, TensorLoad):
            found[node.tensor] = max(found.get(node.tensor, 0), behind[id(node)])
            continue
        length = behind[id(node)] + _cost(node)
        found[None] = max(found[None], length)
        for part in children(node):
            behind[id(part)] = max(behind.get(id(part), 0), length)
    return found


def _outside_of_indices(body: tuple[Expr, ...]) -> Iterator[Any]:
    """What is computed of elements, and not to find them."""
    return walk(*body, parts=lambda node: () if isinstance(node, TensorLoad) else children(node))


def _kind(combiner: CommReducer) -> Reducer | None:
    """Which of the common reducers it is."""
    return _kind_of(combiner, 0) if len(combiner.result) == 1 else None


def _are_apart(combiner: CommReducer) -> bool:
    """Whether each of several values is combined by a common reducer, without the others."""
    count = len(combiner.result)
    return count > 1 and all(_kind_of(combiner, k) is not None for k in range(count))


def _kind_of(combiner: CommReducer, k: int) -> Reducer | None:
    result, ends = combiner.result[k], {combiner.lhs[k], combiner.rhs[k]}
    if not isinstance(result, Binary) or {result.a, result.b} != ends:
        return None
    return _REDUCERS.get(result.op)


def _named(read: Access, axes: tuple[IterVar, ...]) -> Access:
    """A read in which an index 0 is the axis at its place, if that has no other value either."""
    if len(read.index) != len(axes):
        return read
    index = tuple(
        Affine(((axis, 1),)) if _is_zero(place) and _is_one(axis.extent) and _is_one(extent)
        and is_const(axis.dom.min, 0) else place
        for place, axis, extent in zip(read.index, axes, read.tensor.shape, strict=True)
    )
    return replace(read, index=index)


def _is_zero(place: Affine) -> bool:
    return not place.terms and place.const == 0


def _is_one(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 1


def _part(factor: Factor, axes: tuple[IterVar, ...]) -> Part:
    value, element = factor.value, None
    if isinstance(value, TensorLoad) and not factor.divides:
        element = _named(access_of(value), axes)
    return Part(frozenset(axes_of(value)), element)


def access_of(load: TensorLoad) -> Access:
    """Which element a read is of."""
    return Access(load.tensor, tuple(map(affine_of, load.indices)))
