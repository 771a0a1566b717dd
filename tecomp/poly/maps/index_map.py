"""Index maps from the indices of a tensor's elements to physical indices in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tecomp.drawing.drawable import Pictured
from tecomp.errors import LayoutError, safe_str
from tecomp.ir.arith.extents import constant_shape, plus, product, simplify_extent, times
from tecomp.ir.arith.simplify import Ranges, simplify
from tecomp.ir.nodes.argument_checks import check_list
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Const, Expr, Var, index_value, is_const
from tecomp.ir.nodes.stmt import Extent, IndexMapNode, Range
from tecomp.ir.traversal.rewrite import substitute
from tecomp.poly.maps.tracing import AXIS_SEPARATOR, AxisSeparator, check_index_expression, trace

if TYPE_CHECKING:
    from tecomp.poly.maps.analysis import Analysis, Index

_REMEDY = "use IndexMap.from_func, which takes a function of the indices"

__all__ = ["AXIS_SEPARATOR", "AxisSeparator", "IndexMap", "image_box"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IndexMap(IndexMapNode, Pictured):
    """Layout as an index map `lambda initial_indices: final_indices`, with layout queries.

    The queries take the shape of the tensor; an extent may be an expression such as `n`, and the
    answer then holds for every size. Answers are cached, so a repeated query is free.

    Attributes:
        initial_indices: Variable for each axis of the tensor.
        final_indices: Expression of these variables for each axis after the map.
        axis_separators: Positions of the final indices after which a new memory axis begins.

    Raises:
        LayoutError: If a result contains an operation that layouts do not support.

    Source:
        transform_layout RFC, IndexMapNode; extents as in `tecomp.poly.maps.image_extents`.

    >>> tiles = IndexMap.from_func(lambda i, j: [i // 4, AXIS_SEPARATOR, j, i % 4])
    >>> tiles.initial_indices, tiles.final_indices, tiles.axis_separators
    ((i, j), (i // 4, j, i % 4), (0,))
    >>> tiles.plain, len(tiles.then(IndexMap.from_func(lambda a, b, c: [b, a, c])).parts)
    (lambda i, j: [i // 4, AXIS_SEPARATOR, j, i % 4], 2)
    """

    _drawn_by: ClassVar[str] = "copies:draw_index_map"

    _answers: dict[tuple[int, ...], Analysis] = field(default_factory=dict, init=False)
    _parts: tuple[IndexMap, ...] = field(default=(), init=False, metadata={"is_kept": True})

    def __post_init__(self) -> None:
        check_list(self.initial_indices, Var, "index map: initial_indices", _REMEDY, LayoutError)
        check_list(self.final_indices, Expr, "index map: final_indices", _REMEDY, LayoutError)
        check_list(self.axis_separators, int, "index map: axis_separators", _REMEDY, LayoutError)
        for expr in self.final_indices:
            check_index_expression(expr)

    def __reduce__(self) -> tuple[Any, ...]:
        # Cached answers use object ids of this process as keys and are recomputed after unpickling.
        return _again, (self.initial_indices, self.final_indices, self.axis_separators, self._parts)

    @classmethod
    def from_func(cls, function: Callable[..., Any], ndim: int | None = None) -> IndexMap:
        """Return the index map defined by `function`.

        Args:
            function: Function that is called once with an index for each of its parameters. `*i`
                represents all axes without a parameter of their own, and parameters after `*i` for
                the last axes. Returns a list of index expressions and integers, with
                `AXIS_SEPARATOR` where a new physical axis begins.
            ndim: Number of indices, which is checked. Required for `*i`.

        Raises:
            LayoutError: If the parameters or the results of `function` are invalid.

        >>> IndexMap.from_func(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
        lambda n, h, w, c: [n, c // 4, h, w, c % 4]
        """
        return cls(*trace(function, ndim))

    @classmethod
    def lift(cls, index_map: IndexMapNode) -> IndexMap:
        """Convert an index map of the IR to this class."""
        if isinstance(index_map, cls):
            return index_map
        if not isinstance(index_map, IndexMapNode):
            raise LayoutError(
                "index map: expected an index map, got {plain!r}; make one with "
                "IndexMap.from_func",
                kind="invalid-type", plain=index_map,
            )
        return cls(index_map.initial_indices, index_map.final_indices, index_map.axis_separators)

    @property
    def plain(self) -> IndexMapNode:
        """Index map as an IR node, equal to the node that its text parses to."""
        return IndexMapNode(self.initial_indices, self.final_indices, self.axis_separators)

    @property
    def formula(self) -> str:
        """Text of the map that is independent of the names of its indices.

        >>> IndexMap.from_func(lambda i, j: [j, i // 4, i % 4]).formula
        '(i0, i1) -> (i1, i0 // 4, i0 % 4)'
        """
        axes = [Var(f"i{k}") for k in range(len(self.initial_indices))]
        return f"({', '.join(map(str, axes))}) -> ({', '.join(map(str, self.map_indices(axes)))})"

    def map_indices(self, indices: Sequence[Expr | int]) -> list[Expr]:
        """Return the simplified physical index of the element at `indices`.

        Raises:
            LayoutError: If the number of indices differs from the number that the map takes.

        >>> from tecomp.ir.nodes.expr import Var
        >>> i, j = Var("i"), Var("j")
        >>> IndexMap.from_func(lambda x, y: [x // 4, y, x % 4]).map_indices([i * 4, j])
        [i, j, 0]
        """
        _check_list(indices, "indices")
        if len(indices) != len(self.initial_indices):
            raise LayoutError(
                "index map: {subject} takes {count} indices, got {index_count}: {indices}",
                kind="layout-shape-mismatch", subject=self, count=len(self.initial_indices),
                index_count=len(indices), indices=_list(indices),
            )
        return [simplify(expr) for expr in self.at([index_value(index) for index in indices])]

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the physical index of the element at `indices` without simplification.

        >>> from tecomp.ir.nodes.expr import Var
        >>> i = Var("i")
        >>> IndexMap.from_func(lambda x: [x // 4, x % 4]).at([i * 4])
        (i * 4 // 4, i * 4 % 4)
        """
        values = dict(zip(self.initial_indices, indices, strict=True))
        return tuple(substitute(expr, values) for expr in self.final_indices)

    def then(self, after: IndexMapNode) -> IndexMap:
        """Compose this map with `after`, which is applied last and gives the separators.

        The physical shape of the result is that of the maps applied one after the other: `after`
        sees all extents that this map declares and all padding that it adds.

        >>> tiles = IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
        >>> tiles.then(IndexMap.from_func(lambda a, b, c: [b, a, c]))
        lambda i, j: [j, i // 4, i % 4]
        >>> halves = IndexMap.from_func(lambda i: [i // 4, i % 4])
        >>> halves.then(IndexMap.from_func(lambda a, b: [a * 4 + b])).map_shape([14])
        (16,)
        """
        last = IndexMap.lift(after)
        results = last.map_indices(self.final_indices)
        composed = IndexMap(self.initial_indices, tuple(results), last.axis_separators)
        first = tuple(IndexMap(m.initial_indices, m.final_indices) for m in self.parts)
        object.__setattr__(composed, "_parts", (*first, *last.parts))
        return composed

    @property
    def parts(self) -> tuple[IndexMap, ...]:
        """Maps that are applied one after the other; the map itself if it is not composed."""
        return self._parts or (self,)

    def map_shape(self, shape: Sequence[Extent]) -> tuple[Extent, ...]:
        """Return the extent of each result for a tensor of `shape`.

        `% c` has the full period `c`, and `// c` the ceiling of the quotient; any other result has
        the least extent that holds all its values. The parts of a composed map are applied to the
        shape one after the other.

        Raises:
            LayoutError: If a result is negative for some index.

        >>> IndexMap.from_func(lambda i: [i // 4, i % 4]).map_shape([14])
        (4, 4)
        """
        return self.on(shape).ends

    def is_injective(self, shape: Sequence[Extent]) -> bool:
        """Return whether all elements of a tensor of `shape` have different physical indices.

        Raises:
            LayoutError: If `shape` is invalid or has another rank than the map.

        >>> IndexMap.from_func(lambda i: [i // 4, i % 4]).is_injective([14])
        True
        >>> IndexMap.from_func(lambda i: [i % 4]).is_injective([14])
        False
        """
        return self.on(shape).collision is None

    def is_bijective(self, shape: Sequence[Extent]) -> bool:
        """Return whether every physical index in `map_shape(shape)` has exactly one element.

        For symbolic extents, the answer holds for all their values.

        Raises:
            LayoutError: If `shape` is invalid or has another rank than the map.

        >>> halves = IndexMap.from_func(lambda i: [i // 4, i % 4])
        >>> halves.is_bijective([16]), halves.is_bijective([14])
        (True, False)
        """
        return self.on(shape).is_bijective

    def collision(self, shape: Sequence[Extent]) -> tuple[Index, Index] | None:
        """Return the first two elements with the same physical index, or None if there are none.

        >>> IndexMap.from_func(lambda i, j: [i % 2, j]).collision([4, 4])
        ((0, 0), (2, 0))
        """
        return self.on(shape).collision

    def padding_count(self, shape: Sequence[Extent]) -> Extent:
        """Return the number of physical indices in `map_shape(shape)` without an element.

        Raises:
            LayoutError: If an extent is symbolic and the map is not injective.

        >>> IndexMap.from_func(lambda i: [i // 4, i % 4]).padding_count([14])
        2
        """
        analysis = self.on(shape)
        if constant_shape((*analysis.shape, *analysis.ends)) is None:
            self._refuse_collision(analysis, "the padding depends on the sizes; ")
            unused = plus(product(analysis.ends), times(product(analysis.shape), -1))
            return simplify_extent(unused)
        num_places = product(analysis.ends)
        assert isinstance(num_places, int)
        return num_places - analysis.n_places

    def inverse(self, shape: Sequence[Extent]) -> IndexMap:
        """Return the map from physical indices to the elements of a tensor of `shape`.

        Raises:
            LayoutError: If two elements have the same physical index, a physical index has no
                element, or no expression for the inverse was found.

        >>> IndexMap.from_func(lambda i: [(i + 3) % 16]).inverse([16])
        lambda p0: [(p0 - 3) % 16]
        """
        analysis = self.on(shape)
        self._refuse_collision(analysis)
        if not analysis.is_bijective:
            unused = self.padding_count(shape)
            count = f"{safe_str(unused)} of the {safe_str(product(analysis.ends))}"
            raise LayoutError(
                "index map: {unused} addresses of {ends} hold no element of {shape} under "
                "{subject}, so it has no inverse; use non_surjective_inverse, which also returns "
                "the padding condition",
                kind="not-invertible",
                unused=count if isinstance(unused, int) else "for some sizes,",
                ends=_list(analysis.ends), shape=_list(analysis.shape), subject=self,
            )
        return self.non_surjective_inverse(shape)[0]

    def non_surjective_inverse(self, shape: Sequence[Extent]) -> tuple[IndexMap, Expr]:
        """Return the inverse map and the condition under which a physical index is padding.

        Returns:
            The inverse, valid for every physical index with an element, and a condition on its
            `initial_indices` that is true for those in `map_shape(shape)` without an element.

        Raises:
            LayoutError: If two elements have the same physical index, or no expression was found.

        >>> IndexMap.from_func(lambda i: [i // 4, i % 4]).non_surjective_inverse([14])
        (lambda p0, p1: [4 * p0 + p1], 4 * p0 + p1 >= 14)
        """
        analysis = self.on(shape)
        self._refuse_collision(analysis)
        if analysis.inverse is None:
            raise LayoutError(
                "index map: {subject} is injective on {shape}, but no expression for its inverse "
                "was found; restrict the bit operations to + without carry, ^, shifts and masks by "
                "constants, and give each index at least one result",
                kind="not-invertible", subject=self, shape=_list(analysis.shape),
            )
        indices, is_padding = analysis.inverse
        return IndexMap(analysis.places, indices), is_padding

    def inverse_or_none(self, shape: Sequence[Extent]) -> IndexMap | None:
        """Return the map from physical indices to elements, or None if no expression was found.

        Raises:
            LayoutError: If two elements have the same physical index.

        >>> IndexMap.from_func(lambda i: [i // 4, i % 4]).inverse_or_none([14])
        lambda p0, p1: [4 * p0 + p1]
        """
        analysis = self.on(shape)
        self._refuse_collision(analysis)
        return IndexMap(analysis.places, analysis.inverse[0]) if analysis.inverse else None

    def is_equivalent_to(
        self, other: IndexMapNode, shape: Sequence[Extent] | None = None
    ) -> bool:
        """Return whether both maps agree on every element of a tensor of `shape`.

        Without a shape, the maps are compared for all indices, including negative ones. Separators
        are ignored.

        >>> wrapped = IndexMap.from_func(lambda i: [i // 4 % 4, i % 4])
        >>> wrapped.is_equivalent_to(IndexMap.from_func(lambda i: [i // 4, i % 4]), [16])
        True
        """
        if not isinstance(other, IndexMapNode):
            raise LayoutError(
                "index map: expected an index map to compare with, got {other!r}",
                kind="invalid-type", other=other,
            )
        axes, other_axes = self.initial_indices, other.initial_indices
        if len(axes) != len(other_axes) or len(self.final_indices) != len(other.final_indices):
            return False
        values = dict(zip(other_axes, axes, strict=True))
        exprs = [substitute(expr, values) for expr in other.final_indices]
        sizes = None if shape is None else self.on(shape).shape
        equivalence = _query_module("analysis")
        return bool(equivalence.are_equal(self.final_indices, exprs, axes, sizes))

    def on(self, shape: Sequence[Extent]) -> Analysis:
        """Return the analysis for one shape; it keeps the extents alive, whose ids are the key."""
        _check_list(shape, "extents")
        key = tuple(n if isinstance(n, int) else -1 - id(n) for n in shape)
        found = self._answers.get(key)
        if found is None:
            sizes = self._checked(shape)
            analysis: Analysis = _query_module("analysis").Analysis(
                self.initial_indices, self.final_indices, sizes, self._ends_of_parts(sizes)
            )
            found = analysis
            if all(isinstance(b, int) or a is b for a, b in zip(sizes, shape, strict=True)):
                self._answers[key] = found
        return found

    def _ends_of_parts(self, shape: tuple[Extent, ...]) -> tuple[Extent, ...] | None:
        """Return the shape after all parts of a composed map, or None if it is not composed."""
        if not self._parts:
            return None
        for part in self._parts:
            shape = part.map_shape(shape)
        return shape

    def _checked(self, shape: Sequence[Extent]) -> tuple[Extent, ...]:
        if len(shape) != len(self.initial_indices):
            raise LayoutError(
                "index map: {subject} takes {count} indices, but the shape {shape} has another "
                "number of axes",
                kind="layout-shape-mismatch", subject=self, count=len(self.initial_indices),
                shape=_list(shape),
            )
        sizes: list[Extent] = []
        for extent in shape:
            size = extent.value if isinstance(extent, Const) else extent
            if isinstance(size, Expr):
                sizes.append(index_value(size))
            elif isinstance(size, int | np.integer) and size >= 0:
                sizes.append(int(size))
            else:
                raise LayoutError(
                    "index map: shape {shape} contains the invalid extent {extent!r}; extents must "
                    "be non-negative integers or expressions of sizes",
                    kind="layout-shape-mismatch", extent=extent, shape=_list(shape),
                )
        return tuple(sizes)

    def _refuse_collision(
        self, analysis: Analysis, so: str = "it has no inverse; "
    ) -> None:
        if analysis.collision is not None:
            first, second = analysis.collision
            raise LayoutError(
                "index map: {subject} is not injective on {shape}: elements {first} and {second} "
                "map to the same address, so {so}keep every index in the map, e.g. both i // 4 and "
                "i % 4",
                kind="not-injective", first=first, second=second, shape=_list(analysis.shape),
                subject=self, so=so,
            )


def _again(
    initial: tuple[Var, ...],
    final: tuple[Expr, ...],
    separators: tuple[int, ...],
    parts: tuple[IndexMap, ...],
) -> IndexMap:
    """Rebuild an unpickled map."""
    index_map = IndexMap(initial, final, separators)
    object.__setattr__(index_map, "_parts", parts)
    return index_map


def image_box(
    index_map: IndexMapNode,
    bounds: Sequence[Range],
    outer: Ranges,
    shape: Sequence[Extent] | None = None,
) -> tuple[Range, ...]:
    """Return the box of physical indices that the indices in `bounds` are mapped to.

    Bounds that start at 0 give the extents of `map_shape`, including full periods.

    Args:
        index_map: Index map.
        bounds: Start, in terms of outer variables, and extent of each index.
        outer: Least and greatest value of the outer variables; None where unbounded.
        shape: Shape of the indexed tensor. If given, a result with unknown bounds gets all values
            that it has for this shape.

    Returns:
        For each result the start of its values, in terms of the outer variables, and an upper bound
        of their number for all values of these variables.

    Raises:
        LayoutError: If a result is negative, or its bounds are unknown and `shape` is not given.

    >>> from tecomp.ir.nodes.expr import Var
    >>> io = Var("io")
    >>> tile = Range(io * 8, index_value(8))
    >>> image_box(IndexMap.from_func(lambda i: [i // 4, i % 4]), [tile], {io: (0, 9)})
    ((io * 2, 2), (0, 4))
    """
    lifted = IndexMap.lift(index_map)
    if all(is_const(part.min, 0) for part in bounds):
        shape = lifted.map_shape([simplify_extent(part.extent) for part in bounds])
        return tuple(Range(Const(0, INT64), index_value(extent)) for extent in shape)
    full_extents = None if shape is None else partial(lifted.map_shape, shape)
    box: tuple[Range, ...] = _query_module("image_extents").box_of(
        lifted.final_indices, lifted.initial_indices, bounds, outer, full_extents
    )
    return box


def _query_module(module: str) -> Any:
    # Import lazily: definitions and schedules need isl only when the first query is made.
    return import_module(f"tecomp.poly.maps.{module}")


def _check_list(value: object, subject: str) -> None:
    if not isinstance(value, Sequence | np.ndarray):
        raise LayoutError(
            "index map: expected a list of {subject}, got {value!r}",
            kind="invalid-type", subject=subject, value=value,
        )


def _list(shape: Sequence[Extent]) -> str:
    return f"[{', '.join(map(safe_str, shape))}]"
