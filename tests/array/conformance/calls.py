"""Random calls of each function of the standard, with NumPy references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tecomp.operations import elementwise_in, reductions_in
from tecomp.operations.parameters import CORRECTION, DTYPE
from tecomp.operations.rows import ALL, BITS, FLOATING, FLOATS, NUMERIC, REAL, TO_BOOL, TRUTH
from tests.array.conformance import draws
from tests.array.conformance.draws import Draw
from tests.operations import references
from tests.strategies.functions import reference

Oracle: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Call:
    """Call of a function.

    Attributes:
        name: Name of the function; names of extension functions contain a dot.
        args: Positional arguments, with NumPy arrays in place of our arrays.
        options: Keyword arguments.
        oracle: NumPy reference; None for the NumPy function with the same name.
        tolerance: Tolerance of the results in units in the last place.
    """

    name: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    oracle: Oracle | None = None
    tolerance: float = 64


Maker: TypeAlias = Callable[[Draw, str], Call]

MAKERS: dict[str, Maker] = {}
"""Makers by function; functions of tables without a maker of their own are drawn by their rows."""

ELEMENTWISE, REDUCTIONS = elementwise_in("array"), reductions_in("array")

GROUPS = {
    ALL: (("bool",), draws.INTEGERS, draws.FLOATING),
    TRUTH: (("bool",), draws.INTEGERS, draws.FLOATING),
    BITS: (("bool",), draws.INTEGERS),
    NUMERIC: (draws.INTEGERS, draws.FLOATING),
    REAL: (draws.INTEGERS, draws.FLOATS),
    FLOATS: (draws.FLOATS,),
}
"""Dtypes of operands, in groups that promote to each other, by the dtypes of a row."""


def _for(*names: str) -> Callable[[Maker], Maker]:
    def register(maker: Maker) -> Maker:
        for name in names:
            MAKERS[name] = maker
        return maker
    return register


def _unary(draw: Draw, name: str) -> Call:
    row = ELEMENTWISE[name]
    # Special values of complex functions have their own tests, by the rules of the standard.
    groups = (draws.FLOATS,) if row.takes is FLOATING else GROUPS[row.takes]
    takes = [dtype for group in groups for dtype in group]
    x = draw.data(draw.shape(), takes, special=True)
    return Call(name, (x,), {}, None if hasattr(np, name) else partial(reference, row))


def _binary(draw: Draw, name: str) -> Call:
    row = ELEMENTWISE[name]
    groups = (draws.FLOATS,) if row.takes is FLOATING else GROUPS[row.takes]
    return Call(name, _pair(draw, groups, row.takes is not NUMERIC or row.gives == TO_BOOL))


def _pair(draw: Draw, groups: tuple[tuple[str, ...], ...], special: bool = True) -> tuple[Any, Any]:
    group = draw.pick(groups)
    shape = draw.shape()
    one, two = (draw.data(draw.part(shape), group, special) for _ in range(2))
    if {one.dtype.kind, two.dtype.kind} == {"i", "u"} and "uint64" in (one.dtype, two.dtype):
        two = two.astype(one.dtype)  # the standard does not promote uint64 with int64
    kind = draw.number(0, 5)
    if kind > 1:
        return one, two
    number = {"b": True, "i": 3, "u": 3}.get(one.dtype.kind, draw.pick([2, 1.5, -0.5]))
    return (one, number) if kind else (number, one)


@_for("nextafter")
def _nextafter(draw: Draw, name: str) -> Call:
    one = draw.data(draw.shape(), draws.FLOATS, special=True)
    return Call(name, (one, draw.data(draw.part(one.shape), (one.dtype.name,), special=True)))


@_for("bitwise_left_shift", "bitwise_right_shift")
def _shifts(draw: Draw, name: str) -> Call:
    shape = draw.shape()
    one = draw.data(draw.part(shape), draws.INTEGERS)
    return Call(name, (one, np.asarray(np.abs(draw.data(draw.part(shape), (one.dtype.name,))))))


@_for("pow", "floor_divide", "remainder")
def _powers(draw: Draw, name: str) -> Call:
    one, two = _pair(draw, (draws.INTEGERS, draws.FLOATS), special=False)
    if not isinstance(two, np.ndarray):
        return Call(name, (one, 3))
    if not isinstance(one, np.ndarray):
        return Call(name, (3, np.asarray(np.abs(two) + two.dtype.type(1))))
    return Call(name, (np.asarray(np.abs(one)) if name == "pow" else one, np.asarray(np.abs(two) + two.dtype.type(1))))


@_for("clip")
def _clip(draw: Draw, name: str) -> Call:
    x = draw.data(draw.shape(), draws.REAL)
    kind = x.dtype.type
    bounds = [None, 1, np.asarray(kind(2)), draw.data(draw.part(x.shape), (x.dtype.name,))]
    return Call(name, (x, draw.pick(bounds), draw.pick(bounds)), {}, _clipped)


def _clipped(x: Any, least: Any, most: Any) -> Any:
    if least is not None:
        x = np.maximum(x, least)
    return x if most is None else np.minimum(x, most)


@_for("where")
def _where(draw: Draw, name: str) -> Call:
    shape = draw.shape()
    one, two = _pair(draw, (("bool",), draws.INTEGERS, draws.FLOATING))
    condition = draw.data(draw.part(shape), ("bool",))
    try:
        np.broadcast_shapes(np.shape(one), np.shape(two), condition.shape)
    except ValueError:
        condition = np.asarray(draw.chance())
    return Call(name, (condition, one, two))


def _reduced(draw: Draw, name: str) -> Call:
    row = REDUCTIONS[name]
    takes = [dtype for dtype in draws.ALL if references.takes(row, dtype)]
    x = draw.data(draw.full() if row.needs_elements or row.finish else draw.shape(), takes)
    options = {"axis": draw.axes(x.ndim), "keepdims": draw.chance()}
    if DTYPE in row.params and draw.chance(0.3):
        options["dtype"] = np.dtype("complex128" if x.dtype.kind == "c" else "float64")
    if CORRECTION in row.params and draw.chance(0.3):
        options["correction"] = 0.5
    oracle = None if hasattr(np, name) else references.numpy_reduction(row)
    return Call(name, (x,), options, oracle, tolerance=512)


@_for("argmax", "argmin")
def _places(draw: Draw, name: str) -> Call:
    x = draw.data(draw.full(), draws.REAL, special=True)
    axis = draw.axis(x.ndim) if x.ndim and draw.chance() else None
    return Call(name, (x,), {"axis": axis, "keepdims": draw.chance()})


@_for("cumulative_sum", "cumulative_prod")
def _cumulative(draw: Draw, name: str) -> Call:
    x = draw.data(draw.shape(1), draws.ALL)
    axis = None if x.ndim == 1 and draw.chance() else draw.axis(x.ndim)
    return Call(name, (x,), {"axis": axis, "include_initial": draw.chance()}, tolerance=512)


@_for("sort", "argsort")
def _sorted(draw: Draw, name: str) -> Call:
    x = draw.data(draw.shape(1), draws.REAL)
    options = {"axis": draw.axis(x.ndim), "descending": draw.chance(), "stable": True}
    return Call(name, (x,), options, _sort if name == "sort" else _argsort)


def _argsort(x: Any, axis: int, descending: bool, stable: bool) -> Any:
    if not descending:
        return np.argsort(x, axis=axis, stable=stable)
    flipped = np.flip(np.argsort(np.flip(x, axis), axis=axis, stable=True), axis)
    return x.shape[axis] - 1 - flipped


def _sort(x: Any, axis: int, descending: bool, stable: bool) -> Any:
    return np.take_along_axis(x, _argsort(x, axis, descending, stable), axis)


@_for("searchsorted")
def _searched(draw: Draw, name: str) -> Call:
    dtype = draw.pick(draws.REAL)
    x = draw.data((draw.number(0, 7),), (dtype,))
    options = {"side": draw.pick(["left", "right"])}
    if draw.chance():
        options["sorter"] = np.argsort(x)
    else:
        x = np.sort(x)
    return Call(name, (x, draw.data(draw.shape(), (dtype,))), options)


@_for("nonzero")
def _nonzero(draw: Draw, name: str) -> Call:
    return Call(name, (draw.data(draw.shape(1), draws.ALL),))


@_for("unique_all", "unique_counts", "unique_inverse", "unique_values")
def _unique(draw: Draw, name: str) -> Call:
    x = draw.data(draw.shape(), draws.REAL, special=name == "unique_values")
    if x.dtype.kind == "f":
        x = np.asarray(np.round(x))
    oracle = _unique_values if name == "unique_values" else None
    return Call(name, (np.asarray(x + x.dtype.type(0)),), {}, oracle)


def _unique_values(x: Any) -> Any:
    return np.unique(x, equal_nan=False)


@_for("isin")
def _isin(draw: Draw, name: str) -> Call:
    dtype = draw.pick(draws.INTEGERS)
    return Call(name, (draw.data(draw.shape(), (dtype,)), draw.data(draw.shape(), (dtype,))),
                {"invert": draw.chance()})


@_for("concat", "stack")
def _joined(draw: Draw, name: str) -> Call:
    shape, group = draw.shape(1), draw.pick([("bool",), draws.SIGNED, draws.FLOATING])
    axis = draw.axis(len(shape) + (name == "stack"))
    parts = []
    for _ in range(draw.number(1, 3)):
        result_shape = list(shape)
        if name == "concat":
            result_shape[axis] = draw.number(0, 3)
        parts.append(draw.data(tuple(result_shape), group))
    flat = name == "concat" and draw.chance(0.2)
    return Call(name, (parts,), {"axis": None if flat else axis})


@_for("expand_dims", "flip", "moveaxis", "permute_dims", "reshape", "roll", "squeeze", "unstack",
      "tile", "repeat", "broadcast_to", "diff", "tril", "triu", "matrix_transpose")
def _moved(draw: Draw, name: str) -> Call:
    matrix = name in ("tril", "triu", "matrix_transpose")
    plain = name in ("flip", "permute_dims", "reshape", "roll", "squeeze", "tile", "broadcast_to",
                     "expand_dims")
    takes = draws.NUMERIC if name == "diff" else draws.ALL
    x = draw.data(draw.shape(2 if matrix else 0 if plain else 1), takes)
    args, options = _MOVES[name](draw, x)
    return Call(name, (x, *args), options, _ORACLES.get(name))


def _difference(
    x: Any, axis: int, n: int, prepend: Any = None, append: Any = None
) -> Any:
    parts = [part for part in (prepend, x, append) if part is not None]
    return np.diff(np.concatenate(parts, axis), n, axis)


def _unstacked(x: Any, axis: int) -> Any:
    return tuple(np.moveaxis(x, axis, 0))


def _squeezed(draw: Draw, x: Any) -> Any:
    ones = [k for k, extent in enumerate(x.shape) if extent == 1]
    return (tuple(ones[: draw.number(0, len(ones))]),), {}


def _reshaped(draw: Draw, x: Any) -> Any:
    if x.size == 0:
        return ((0, draw.number(0, 3)),), {}
    factors, left = [], x.size
    while left > 1:
        divisor = draw.pick([k for k in range(2, left + 1) if left % k == 0])
        factors.append(divisor)
        left //= divisor
    if factors and draw.chance(0.3):
        factors[draw.number(0, len(factors) - 1)] = -1
    return (tuple(factors),), {"copy": draw.pick([None, True])}


def _rolled(draw: Draw, x: Any) -> Any:
    axes = draw.axes(x.ndim)
    if isinstance(axes, tuple) and draw.chance():
        return (tuple([draw.number(-7, 7) for _ in axes]),), {"axis": axes}
    return (draw.number(-7, 7),), {"axis": axes}


def _repeated(draw: Draw, x: Any) -> Any:
    axis = draw.axis(x.ndim)
    if draw.chance():
        return (draw.number(0, 3),), {"axis": axis if draw.chance() else None}
    return (draw.rng.integers(0, 3, x.shape[axis]),), {"axis": axis}


def _differed(draw: Draw, x: Any) -> Any:
    axis = draw.axis(x.ndim)
    options: dict[str, Any] = {"axis": axis, "n": draw.number(0, 2)}
    shape = list(x.shape)
    for name in ("prepend", "append"):
        if draw.chance(0.3):
            shape[axis] = draw.number(0, 2)
            options[name] = draw.data(tuple(shape), (x.dtype.name,))
    return (), options


_ORACLES: dict[str, Oracle] = {"unstack": _unstacked, "diff": _difference}

_MOVES: dict[str, Callable[[Draw, Any], Any]] = {
    "expand_dims": lambda d, x: ((), {"axis": d.axis(x.ndim + 1)}),
    "flip": lambda d, x: ((), {"axis": d.axes(x.ndim)}),
    "moveaxis": lambda d, x: ((d.axis(x.ndim), d.axis(x.ndim)), {}),
    "permute_dims": lambda d, x: ((tuple(int(k) for k in d.rng.permutation(x.ndim)),), {}),
    "reshape": _reshaped,
    "roll": _rolled,
    "squeeze": _squeezed,
    "unstack": lambda d, x: ((), {"axis": d.axis(x.ndim)}),
    "tile": lambda d, x: ((tuple(d.number(0, 2) for _ in range(d.number(0, 3))),), {}),
    "repeat": _repeated,
    "broadcast_to": lambda d, x: (((d.number(1, 3), *x.shape),), {}),
    "diff": _differed,
    "tril": lambda d, x: ((), {"k": d.number(-6, 6)}),
    "triu": lambda d, x: ((), {"k": d.number(-6, 6)}),
    "matrix_transpose": lambda d, x: ((), {}),
}


@_for("take", "take_along_axis")
def _taken(draw: Draw, name: str) -> Call:
    x = draw.data(draw.full(1), draws.ALL)
    axis = draw.axis(x.ndim)
    extent = x.shape[axis]
    if name == "take":
        return Call(name, (x, draw.rng.integers(-extent, extent, draw.number(0, 4))), {"axis": axis})
    shape = list(x.shape)
    shape[axis] = draw.number(0, 4)
    return Call(name, (x, draw.rng.integers(-extent, extent, shape)), {"axis": axis})


@_for("meshgrid", "broadcast_arrays")
def _several(draw: Draw, name: str) -> Call:
    if name == "meshgrid":
        dtype = draw.pick(draws.NUMERIC)
        parts = [draw.data((draw.number(0, 4),), (dtype,)) for _ in range(draw.number(0, 3))]
        return Call(name, tuple(parts), {"indexing": draw.pick(["xy", "ij"])})
    shape = draw.shape()
    parts = [draw.data(draw.part(shape), draws.ALL) for _ in range(draw.number(1, 3))]
    return Call(name, tuple(parts))


@_for("broadcast_shapes")
def _shapes(draw: Draw, name: str) -> Call:
    shape = draw.shape()
    return Call(name, tuple([draw.part(shape) for _ in range(draw.number(1, 3))]))


@_for("matmul", "vecdot", "tensordot", "linalg.outer", "linalg.cross")
def _products(draw: Draw, name: str) -> Call:
    group = draw.pick([draws.SIGNED, draws.FLOATING])
    m, n, k = (draw.number(0, 4) if draw.chance(0.1) else draw.number(1, 5) for _ in range(3))
    batch = draw.shape(0, 2)
    if name == "matmul":
        one = (k,) if draw.chance(0.2) else (*draw.part(batch), m, k)
        two = (k,) if draw.chance(0.2) else (*draw.part(batch), k, n)
        return Call(name, (draw.data(one, group), draw.data(two, group)), tolerance=512)
    if name == "linalg.outer":
        return Call(name, (draw.data((m,), group), draw.data((n,), group)))
    if name == "linalg.cross":
        shape = (*batch, 3)
        return Call(name, (draw.data(shape, group), draw.data(shape, group)), tolerance=512)
    if name == "vecdot":
        one, two = ((*draw.part(batch), k) for _ in range(2))
        return Call(name, (draw.data(one, group), draw.data(two, group)), tolerance=512)
    axes = draw.pick([0, 1, 2, ((0,), (1,)), ((-1, 0), (0, 1))])
    one, two = {0: ((m,), (n, k)), 1: ((m, k), (k, n)), 2: ((m, k, n), (k, n))}.get(
        axes if isinstance(axes, int) else -1, ((k, m), (n, k)))
    if axes == ((-1, 0), (0, 1)):
        one, two = (n, m, k), (k, n, m)
    return Call(name, (draw.data(one, group), draw.data(two, group)), {"axes": axes}, tolerance=512)


@_for("linalg.det", "linalg.inv", "linalg.solve", "linalg.cholesky", "linalg.eigvalsh",
      "linalg.svdvals", "linalg.slogdet", "linalg.matrix_rank", "linalg.matrix_power",
      "linalg.pinv", "linalg.trace", "linalg.diagonal", "linalg.matrix_norm", "linalg.vector_norm")
def _decomposed(draw: Draw, name: str) -> Call:
    n = draw.number(0, 4) if name not in ("linalg.svdvals", "linalg.matrix_norm") else draw.number(1, 4)
    batch = draw.shape(0, 1)
    x = draw.data((*batch, n, n), draws.FLOATING)
    near = 1e5
    if name == "linalg.solve":
        x = x + 8 * np.eye(n, dtype=x.dtype)
        return Call(name, (x, draw.data((n,) if draw.chance() else (*batch, n, 2), (x.dtype.name,))),
                    tolerance=near)
    if name in ("linalg.cholesky", "linalg.eigvalsh"):
        x = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(n, dtype=x.dtype)
        return Call(name, (x,), {"upper": draw.chance()} if name == "linalg.cholesky" else {}, tolerance=near)
    if name == "linalg.inv":
        return Call(name, (x + 8 * np.eye(n, dtype=x.dtype),), tolerance=near)
    if name == "linalg.matrix_power":
        return Call(name, (x, draw.number(0, 4)), tolerance=near)
    if name in ("linalg.trace", "linalg.diagonal"):
        return Call(name, (draw.data(draw.full(2), draws.NUMERIC),), {"offset": draw.number(-3, 3)})
    if name == "linalg.matrix_norm":
        return Call(name, (x,), {"keepdims": draw.chance(), "ord": draw.pick(
            [1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"])}, tolerance=near)
    if name == "linalg.vector_norm":
        y = draw.data(draw.full(), draws.FLOATING)
        return Call(name, (y,), {"axis": draw.axes(y.ndim), "keepdims": draw.chance(), "ord": draw.pick(
            [0, 1, 2, 3, np.inf, -np.inf])}, tolerance=near)
    return Call(name, (x,), tolerance=near)


@_for("fft.fft", "fft.ifft", "fft.fftn", "fft.ifftn", "fft.rfft", "fft.irfft", "fft.rfftn",
      "fft.irfftn", "fft.hfft", "fft.ihfft", "fft.fftshift", "fft.ifftshift")
def _fourier(draw: Draw, name: str) -> Call:
    real = name in ("fft.rfft", "fft.rfftn", "fft.ihfft")
    shift = name.endswith("shift")
    x = draw.data(tuple([draw.number(2, 5) for _ in range(draw.number(1, 3))]),
                  draws.FLOATS if real else draws.COMPLEX)
    if shift:
        return Call(name, (x,), {"axes": draw.axes(x.ndim)})
    options: dict[str, Any] = {"norm": draw.pick(["backward", "ortho", "forward"])}
    if name.endswith("n"):
        axes = draw.axes(x.ndim)
        if isinstance(axes, tuple):
            options["axes"] = axes
            if draw.chance():
                options["s"] = tuple([draw.number(2, 6) for _ in axes])
    else:
        options |= {"axis": draw.axis(x.ndim), "n": draw.pick([None, 2, 3, 6])}
    return Call(name, (x,), options, tolerance=4096)


@_for("fft.fftfreq", "fft.rfftfreq")
def _frequencies(draw: Draw, name: str) -> Call:
    return Call(name, (draw.number(1, 9),), {"d": draw.pick([1.0, 0.5, 3])})


@_for("arange")
def _arange(draw: Draw, name: str) -> Call:
    numbers: list[Any] = [draw.number(-5, 9) for _ in range(3)]
    if draw.chance():
        numbers = [x + draw.pick([0.0, 0.5]) for x in numbers]
    numbers[2] = numbers[2] or 1
    options = {"dtype": np.dtype(draw.pick(draws.FLOATS))} if draw.chance(0.3) else {}
    return Call(name, tuple(numbers[: draw.number(1, 3)]), options)


@_for("linspace")
def _linspace(draw: Draw, name: str) -> Call:
    ends = [draw.pick([draw.number(-5, 5), 1.5, 2 + 1j]) for _ in range(2)]
    return Call(name, (*ends, draw.number(0, 6)), {"endpoint": draw.chance()})


@_for("eye", "ones", "zeros", "full", "full_like", "ones_like", "zeros_like")
def _made(draw: Draw, name: str) -> Call:
    options = {"dtype": np.dtype(draw.pick(draws.ALL))} if draw.chance() else {}
    if name == "eye":
        return Call(name, (draw.number(0, 4), draw.pick([None, 0, 3, 5])),
                    {"k": draw.number(-5, 5), **options})
    value = (draw.pick([True, 3, 2.5, 1 + 2j]),) if name == "full" else ()
    if name == "full":
        return Call(name, (draw.shape(), *value))
    if name.endswith("_like"):
        return Call(name, (draw.data(draw.shape(), draws.ALL), *([1] if "full" in name else [])),
                    options)
    return Call(name, (draw.shape(),), options)


@_for("astype")
def _astype(draw: Draw, name: str) -> Call:
    x = np.asarray(np.abs(draw.data(draw.shape(), draws.ALL)))
    takes = draws.ALL if x.dtype.kind != "c" else ("bool", *draws.COMPLEX)
    return Call(name, (x, np.dtype(draw.pick(takes))), {"copy": draw.chance()})


@_for("can_cast", "result_type")
def _types(draw: Draw, name: str) -> Call:
    group = draw.pick([draws.SIGNED, draws.UNSIGNED, draws.FLOATING])
    if name == "can_cast":
        one = draw.pick([np.dtype(draw.pick(group)), draw.data((2,), group)])
        return Call(name, (one, np.dtype(draw.pick(draws.ALL))), {}, _castable)
    array = draw.data((2,), group)
    number: dict[str, list[Any]] = {"i": [1], "u": [1], "f": [1, 1.5], "c": [1, 1.5, 1j]}
    return Call(name, (array, np.dtype(draw.pick(group)), draw.pick(number[array.dtype.kind])))


def _castable(x: Any, to: Any) -> Any:
    return np.can_cast(getattr(x, "dtype", x), to)


for _name, _row in ELEMENTWISE.items():
    MAKERS.setdefault(_name, _unary if _row.arity == 1 else _binary)
for _name in REDUCTIONS:
    MAKERS.setdefault(_name, _reduced)
