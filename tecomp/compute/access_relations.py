"""Access relations of operations: reads, factors, work, footprints and free variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from tecomp.compute.affine_index import (
    Affine,
    add_scaled,
    affine_of,
    axes_of,
    key_of,
    simplify_affine,
)
from tecomp.compute.expression_analysis import (
    ProductFactor,
    explicit_factors,
    factors_of,
    is_selection,
)
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
from tecomp.ir.traversal.rewrite import children, fold, free_variables, nodes_of, post_order, walk
from tecomp.operations.reductions import COMBINERS


def index_extent(index: Expr, sizes: Mapping[IterVar, int]) -> int | None:
    """Return an upper bound of the difference between the maximum and the minimum of an index.

    Args:
        index: Integer expression.
        sizes: Number of values of each axis in the region; other axes have one value.

    Returns:
        The bound, or None if it is unknown, as for an element of a tensor.

    >>> from tecomp.compute.iter_var import make_axis, IterKind
    >>> i, j = (make_axis(name, 0, 100, IterKind.DATA) for name in "ij")
    >>> index_extent(i * 3 + j, {i: 4, j: 2}), index_extent(i // 8, {i: 8}), index_extent(i % 8,
    ...     {j: 5})
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
    # An operand with reach 0 is constant within the region.
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
    """Return whether an index depends on elements of tensors."""
    return bool(fold(index, lambda node, parts: isinstance(node, TensorLoad) or any(parts)))


def variables_of(op: Operation) -> list[Var]:
    """Return the free variables of the shapes, reduction axes and bodies, with duplicates."""
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
    """Return the variables of an extent."""
    return [] if isinstance(extent, int) else nodes_of(Var, extent)


def _bound_by_reducer(op: ComputeOp) -> set[Var]:
    first = op.body[0]
    return set(first.combiner.bound()) if isinstance(first, Reduce) else set()


_REDUCERS = {
    BinOp(row.operator): row.name for row in COMBINERS.values() if not row.is_logical
}
"""Name of the standard reducer that applies a binary operator."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Read access to a tensor.

    Attributes:
        tensor: Tensor that is read.
        index: Index of the element, one linear combination per axis.
        times: Number of occurrences of the access in the definition.

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
        """Axis that each index equals, or None for other indices."""
        return tuple([index.axis for index in self.index])

    @property
    def follows_data(self) -> bool:
        """Whether the index depends on elements of tensors, as in a gather."""
        return any(reads_tensors(term) for index in self.index for term, _ in index.terms)

    @property
    def offset(self) -> Affine | None:
        """Row-major offset of the element, or None if the shape contains size variables.

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
            result, step = Affine(), 1
            for index, extent in zip(self.index[::-1], self.tensor.shape[::-1], strict=True):
                result, step = add_scaled(result, index, step), step * int(extent)
            return result
        total: Expr = index_value(0)
        for index, extent in zip(self.index, self.tensor.shape, strict=True):
            total = total * extent + index.value
        return simplify_affine(total)

    def at(self, places: Mapping[IterVar, Affine]) -> Access:
        """Substitute linear combinations for axes, as for inlining the reader.

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
        """Return the extents of a box that contains all elements read in a tile at any position.

        Args:
            sizes: Extent of the tile along each axis; 1 for other axes.

        Raises:
            DefinitionError: If an extent of the tensor is symbolic.

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
                    "footprint: {tensor} has the dynamic extent `{extent}`, which is known only at "
                    "call time; use constant sizes",
                    kind="unbound-size", tensor=self.tensor.name, extent=extent,
                )
            steps = [(index_extent(term, sizes), abs(factor)) for term, factor in index.terms]
            known = [step * factor for step, factor in steps if step is not None]
            found.append(min(sum(known) + 1, extent) if len(known) == len(steps) else extent)
        return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class ProductTerm:
    """Factor of a product.

    Attributes:
        axes: Axes that the factor depends on.
        element: Access, if the factor is an element of a tensor and no divisor; otherwise None.
    """

    axes: frozenset[IterVar]
    element: Access | None


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """Access relations and operation counts of one operation, per element of the result.

    Attributes:
        axis: Axes of the result.
        reduce_axis: Reduction axes.
        reducer: Standard reducer; None without a reduction, or for a custom reducer.
        reads: Read accesses, without duplicates.
        factors: Factors of the element, or of the reduced term, if all of them are elements of
            tensors up to lossless casts; otherwise empty.
        written: Factors of the element or term in textual order; empty for a single factor.
        is_plain: Whether the reduction has neither a condition nor an initial value.
        has_start: Whether the reduction has an initial value.
        repeated: For each axis of the result, the number of operations that are invariant along the
            axis but depend on another axis.
        is_scan: Whether the operation is a scan; its steps then define the reads.
        work: Operations per element, or per reduced term; a mathematical function counts as 10.
        paths: Length in operations of the longest dependence chain from each read tensor to the
            result. The key None has the longest chain of the whole expression.
        rising: For a reducer that selects one of two tuples, the index of a value that increases
            along the only reduction axis; None if there is none.
        is_apart: Whether several values are reduced, each independently by a standard reducer.
        counted: Axes of the result that occur as values, and not only in indices.

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

    FUNCTION_COST: ClassVar[int] = 10
    """Cost of a mathematical function such as `exp`, in operations."""

    axis: tuple[IterVar, ...]
    reduce_axis: tuple[IterVar, ...]
    reducer: str | None
    reads: tuple[Access, ...]
    factors: tuple[Access, ...]
    is_plain: bool
    has_start: bool = False
    work: int = 0
    paths: Mapping[Tensor | None, int] = field(default_factory=dict)
    is_scan: bool = False
    written: tuple[ProductTerm, ...] = ()
    repeated: tuple[int, ...] = ()
    rising: int | None = None
    is_apart: bool = False
    counted: frozenset[IterVar] = frozenset()


def accesses(tensor: Tensor) -> Accesses:
    """Return the access relations of the operation that computes a tensor.

    The result depends on the definition only, not on names or on the function that made it.

    Args:
        tensor: Tensor. For placeholders, scans and `te.extern`, the result has no reads.

    Raises:
        DefinitionError: If `tensor` is not a tensor.

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
    if not isinstance(tensor, Tensor):
        check_kind(tensor, Tensor, "accesses: the tensor", "pass a tensor from te.compute",
                   DefinitionError)
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
    # Every component of a tuple reduction is attributed the reads of all components.
    bodies = op.body[:1] if isinstance(body, Reduce) else op.body
    loads = nodes_of(TensorLoad, *bodies)
    reads: dict[object, Access] = {}
    for read in (_rename_unit_axes(access_of(load), op.axis) for load in loads):
        key = read.tensor, tuple([key_of(index) for index in read.index])
        times = reads[key].times + 1 if key in reads else 1
        reads[key] = replace(read, times=times)
    reducer, value, is_plain, has_start = None, body, True, False
    if isinstance(body, Reduce):
        reducer = _kind(body.combiner)
        value = body.source[body.value_index]
        has_start = bool(body.init)
        is_plain = is_const(body.condition, True) and not has_start
    factors = tuple([_rename_unit_axes(access_of(load), op.axis) for load in factors_of(value)])
    written = explicit_factors(value)
    parts = tuple([_part(factor, op.axis) for factor in written]) if len(written) > 1 else ()
    all_reads = tuple(reads.values())
    return Accesses(
        op.axis, op.reduce_axis, reducer, all_reads, factors, is_plain, has_start,
        sum(map(_cost, _outside_of_indices(bodies))),
        _paths(bodies),
        written=parts, repeated=_repeated_work(op),
        rising=_monotonic_index(body) if isinstance(body, Reduce) else None,
        is_apart=isinstance(body, Reduce) and _are_apart(body.combiner),
        counted=frozenset(_outside_of_indices(bodies)) & frozenset(op.axis),
    )


def _monotonic_index(reduce: Reduce) -> int | None:
    """Return the index of a value that increases along the reduction axis of a selecting reducer.

    This value gives the order of two partial results, independently of their elements.
    """
    if len(reduce.axis) != 1 or not is_selection(reduce.combiner):
        return None
    (axis,) = reduce.axis
    return next((k for k, value in enumerate(reduce.source) if _rises(value, axis)), None)


def _rises(value: Expr, axis: IterVar) -> bool:
    """Return whether a value is `c * axis + d` with `c > 0` and does not overflow its dtypes."""
    kinds = [value.dtype]
    while isinstance(value, Cast):
        value = value.value
        kinds.append(value.dtype)
    if not all(kind.is_integer for kind in kinds):
        return False
    affine, first = affine_of(value), axis.dom.min
    step = affine.coefficient(axis)
    if step is None or step <= 0 or len(affine.terms) != 1:
        return False
    if all(kind == axis.dtype for kind in kinds):
        return True
    if not isinstance(first, Const):
        return False
    lower = affine.const + step * int(first.value)
    if isinstance(axis.extent, int):
        upper = lower + step * max(axis.extent - 1, 0)
    else:
        upper = affine.const + step * integer_range(axis.dtype)[1]
    ranges = [integer_range(kind) for kind in kinds]
    return all(low <= lower and upper <= high for low, high in ranges)


def _repeated_work(op: ComputeOp) -> tuple[int, ...]:
    """Return for each axis the work on values that depend on other axes only."""
    loads = nodes_of(TensorLoad, *op.body)
    index_nodes = {id(node) for load in loads for node in walk(*load.indices)}
    used: dict[int, frozenset[IterVar]] = {}
    found = dict.fromkeys(op.axis, 0)
    for node in post_order(*op.body):
        node_axes = frozenset({node}) if isinstance(node, IterVar) else frozenset[IterVar]()
        used[id(node)] = node_axes.union(*(used[id(part)] for part in children(node)))
        cost = _cost(node)
        if cost and used[id(node)] and id(node) not in index_nodes:
            for axis in found:
                found[axis] += 0 if axis in used[id(node)] else cost
    return tuple(found.values())


def _cost(node: Any) -> int:
    """Return the cost of a node without its operands, in operations."""
    if not isinstance(node, Expr) or isinstance(node, TensorLoad | Const | Var | Reduce | Cast):
        return 0
    return Accesses.FUNCTION_COST if isinstance(node, Call) else 1


def _paths(body: tuple[Expr, ...]) -> Mapping[Tensor | None, int]:
    """Return the longest dependence chains; see `Accesses.paths`."""
    depths = dict.fromkeys(map(id, body), 0)
    found: dict[Tensor | None, int] = {None: 0}
    for node in reversed([*post_order(*body)]):
        if id(node) not in depths:
            continue
        if isinstance(node, TensorLoad):
            found[node.tensor] = max(found.get(node.tensor, 0), depths[id(node)])
            continue
        length = depths[id(node)] + _cost(node)
        found[None] = max(found[None], length)
        for part in children(node):
            depths[id(part)] = max(depths.get(id(part), 0), length)
    return found


def _outside_of_indices(body: tuple[Expr, ...]) -> Iterator[Any]:
    """Yield the nodes of bodies, without the indices of loads."""
    return walk(*body, parts=lambda node: () if isinstance(node, TensorLoad) else children(node))


def _kind(combiner: CommReducer) -> str | None:
    """Return the standard reducer that a combiner of one value equals, or None."""
    return _kind_of(combiner, 0) if len(combiner.result) == 1 else None


def _are_apart(combiner: CommReducer) -> bool:
    """Return whether each of several values is combined independently by a standard reducer."""
    count = len(combiner.result)
    return count > 1 and all(_kind_of(combiner, k) is not None for k in range(count))


def _kind_of(combiner: CommReducer, k: int) -> str | None:
    result, ends = combiner.result[k], {combiner.lhs[k], combiner.rhs[k]}
    if not isinstance(result, Binary) or {result.a, result.b} != ends:
        return None
    return _REDUCERS.get(result.op)


def _rename_unit_axes(read: Access, axes: tuple[IterVar, ...]) -> Access:
    """Replace index 0 by the axis at the same position if both extents are 1."""
    if len(read.index) != len(axes):
        return read
    index = tuple([
        Affine(((axis, 1),)) if _is_zero(affine) and _is_one(axis.extent) and _is_one(extent)
        and is_const(axis.dom.min, 0) else affine
        for affine, axis, extent in zip(read.index, axes, read.tensor.shape, strict=True)
    ])
    return replace(read, index=index)


def _is_zero(affine: Affine) -> bool:
    return not affine.terms and affine.const == 0


def _is_one(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 1


def _part(factor: ProductFactor, axes: tuple[IterVar, ...]) -> ProductTerm:
    value, element = factor.value, None
    if isinstance(value, TensorLoad) and not factor.divides:
        element = _rename_unit_axes(access_of(value), axes)
    return ProductTerm(frozenset(axes_of(value)), element)


def access_of(load: TensorLoad) -> Access:
    """Return the access of a load."""
    return Access(load.tensor, tuple(map(affine_of, load.indices)))
