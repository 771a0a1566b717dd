"""Iteration variables and IntImm-like extents."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from tecomp.ir.nodes.dtype import INT32, INT64, DType
from tecomp.ir.nodes.expr import Const, Expr, Var, as_expr
from tecomp.ir.nodes.stmt import Extent, Range


class IterKind(Enum):
    """What an axis runs through."""

    DATA = "data"
    REDUCE = "reduce"
    SCAN = "scan"


# As in TVM's enum IterVarType.
_ITER_TYPES = {IterKind.DATA: 0, IterKind.REDUCE: 2, IterKind.SCAN: 3}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IterVar(Var):
    """A variable that takes the values of `dom`, the same as itself only.

    Attributes:
        name: what it is called in printed text.
        dtype: int32, or int64 where the extent needs it.
        dom: its values.
        kind: whether each value gives an element, all together give one, or one follows from
            those before.
        thread_tag: what the user noted for threads; loops are bound by schedules.
        inside: of a domain that depends on other axes the first value and the end, where they do;
            `dom` has all values that there are anywhere.

    >>> from tecomp import te
    >>> k = te.reduce_axis((2, 10), name="k")
    >>> k.name, k.dtype, k.low, k.extent, k.kind, k.iter_type == te.IterVar.CommReduce
    ('k', 'int32', 2, 8, <IterKind.REDUCE: 'reduce'>, True)
    >>> k.dom, k.var is k, k.thread_tag, k.inside
    ((int32(2), int32(8)), True, '', (None, None))
    >>> te.IterVar.DataPar, te.IterVar.Ordered, te.IterVar.Vectorized
    (0, 3, 6)
    """

    # The domain is where the variable comes from, not something it computes with.
    binds: ClassVar[tuple[str, ...]] = ("dom", "inside")

    dtype: DType = INT32
    dom: Range = field(kw_only=True)
    kind: IterKind = field(kw_only=True)
    thread_tag: str = field(kw_only=True, default="")
    inside: tuple[Expr | None, Expr | None] = field(kw_only=True, default=(None, None))

    # TVM's numbers. Schedules keep how loops run beside the axes, so an axis has one of three.
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
        """The kind as TVM's number: `DataPar`, `CommReduce`, or `Ordered` for steps of a scan."""
        return _ITER_TYPES[self.kind]

    @property
    def var(self) -> IterVar:
        """Itself; TVM tells an axis from its variable."""
        return self

    @property
    def extent(self) -> Extent:
        """How many values it takes: an int where that is known."""
        extent = self.dom.extent
        return int(extent.value) if isinstance(extent, Const) else extent

    @property
    def low(self) -> Extent:
        """Its first value: an int where that is known."""
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
    """An axis of `extent` values from `low`."""
    first, count = as_expr(low), as_expr(extent)
    wide = any(_is_wide(bound.dtype) for bound in (first, count))
    dtype = INT64 if wide else INT32
    domain = Range(_typed(first, dtype), _typed(count, dtype))
    return IterVar(
        name, dtype, dom=domain, kind=kind, thread_tag=thread_tag, inside=inside)


def _is_wide(dtype: DType) -> bool:
    return dtype.bits > 32 or (dtype.kind == "uint" and dtype.bits == 32)


def _typed(bound: Expr, dtype: DType) -> Expr:
    return Const(bound.value, dtype) if isinstance(bound, Const) else bound


class Known(int):
    """An extent that is known; an int in all that it does.

    >>> Known(8), Known(8).value
    (8, 8)
    """

    __slots__ = ()

    @property
    def value(self) -> int:
        """The int."""
        return int(self)


def known(shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """The shape, of which all extents that are known say their value."""
    return tuple(Known(extent) if isinstance(extent, int) else extent for extent in shape)
