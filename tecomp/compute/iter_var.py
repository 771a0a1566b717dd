"""Iteration variables, and integer extents with a `value` attribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from tecomp.ir.nodes.dtype import INT32, INT64, SCALARS, DType, represents_all
from tecomp.ir.nodes.expr import Const, Expr, Var, as_expr
from tecomp.ir.nodes.stmt import Extent, Range


class IterKind(Enum):
    """Kind of an axis: data, reduction, or steps of a scan."""

    DATA = "data"
    REDUCE = "reduce"
    SCAN = "scan"


# Dtypes of bounds whose values fit in int32.
_NARROW = frozenset(
    name for name in map(DType, SCALARS)
    if not name.is_float and represents_all(INT32, name)
)

# Values of TVM's enum IterVarType.
_ITER_TYPES = {IterKind.DATA: 0, IterKind.REDUCE: 2, IterKind.SCAN: 3}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IterVar(Var):
    """Iteration variable over the domain `dom`; compared by identity.

    Attributes:
        name: Name in printed text.
        dtype: int32, or int64 if the domain needs it.
        dom: Domain; the bounding interval if the domain depends on other axes.
        kind: Data axis, reduction axis, or step axis of a scan.
        thread_tag: Thread tag set by the user, without effect; schedules bind loops.
        inside: First value and end of a domain that depends on other axes; None for a bound that
            does not.

    >>> from tecomp import te
    >>> k = te.reduce_axis((2, 10), name="k")
    >>> k.name, k.dtype, k.low, k.extent, k.kind, k.iter_type == te.IterVar.CommReduce
    ('k', 'int32', 2, 8, <IterKind.REDUCE: 'reduce'>, True)
    >>> k.dom, k.var is k, k.thread_tag, k.inside
    ((int32(2), int32(8)), True, '', (None, None))
    >>> te.IterVar.DataPar, te.IterVar.Ordered, te.IterVar.Vectorized
    (0, 3, 6)
    """

    # Traversals must not treat the domain as an operand of the variable.
    bound_fields: ClassVar[tuple[str, ...]] = ("dom", "inside")

    dtype: DType = INT32
    dom: Range = field(kw_only=True)
    kind: IterKind = field(kw_only=True)
    thread_tag: str = field(kw_only=True, default="")
    inside: tuple[Expr | None, Expr | None] = field(kw_only=True, default=(None, None))

    # TVM's numbers. An axis has one of three kinds only, because schedules store loop annotations
    # separately from the axes.
    DataPar: ClassVar[int] = 0
    ThreadIndex: ClassVar[int] = 1
    CommReduce: ClassVar[int] = 2
    Ordered: ClassVar[int] = 3
    DimInfo: ClassVar[int] = 4
    Unrolled: ClassVar[int] = 5
    Vectorized: ClassVar[int] = 6
    Parallelized: ClassVar[int] = 7
    Tensorized: ClassVar[int] = 8

    @property
    def iter_type(self) -> int:
        """Kind as TVM's number: `DataPar`, `CommReduce`, or `Ordered` for a scan axis."""
        return _ITER_TYPES[self.kind]

    @property
    def var(self) -> IterVar:
        """The axis itself; provided because TVM distinguishes an axis from its variable."""
        return self

    @property
    def extent(self) -> Extent:
        """Extent of the domain: an int if it is constant."""
        extent = self.dom.extent
        return int(extent.value) if isinstance(extent, Const) else extent

    @property
    def low(self) -> Extent:
        """First value of the domain: an int if it is constant."""
        low = self.dom.min
        return int(low.value) if isinstance(low, Const) else low


def make_axis(
    name: str,
    low: Extent,
    extent: Extent,
    kind: IterKind,
    thread_tag: str = "",
    inside: tuple[Expr | None, Expr | None] = (None, None),
) -> IterVar:
    """Return an axis over `extent` values from `low`, of dtype int64 if a bound is wide."""
    first, count = as_expr(low), as_expr(extent)
    is_narrow = first.dtype in _NARROW and count.dtype in _NARROW
    dtype = INT32 if is_narrow else INT64
    domain = Range(
        Const(first.value, dtype) if isinstance(first, Const) else first,
        Const(count.value, dtype) if isinstance(count, Const) else count,
    )
    return IterVar(
        name, dtype, dom=domain, kind=kind, thread_tag=thread_tag, inside=inside)


class ConstantExtent(int):
    """Constant extent: an int with the attribute `value`, for compatibility with TVM's IntImm.

    >>> ConstantExtent(8), ConstantExtent(8).value
    (8, 8)
    """

    __slots__ = ()

    @property
    def value(self) -> int:
        """Value as a plain int."""
        return int(self)


def as_constant_extents(shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """Return the shape with constant extents as `ConstantExtent`."""
    return tuple([
        ConstantExtent(extent) if isinstance(extent, int) else extent for extent in shape
    ])
