"""The functions that a `Call` may name: how many arguments each takes, and the type it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from tecomp.ir.language.dtype import BOOL, FLOAT32, INT32, DType


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function that a `Call` may name.

    Attributes:
        arguments: how many it takes.
        takes: what they are: `float` (all of one floating type), `int` (of one type of integers),
            `number` (of one type of either), `groups` (see `dot_type`), `bits` (as many bits as the
            result), `alike` (of one type), or `special` (the two that are no arithmetic, which the
            verifier knows by name).
        gives: the argument whose type is the type of the result, `bool`, `sums` (see `dot_type`),
            `joined` (as many lanes as all arguments have), or None where each call says it.
    """

    arguments: int
    takes: Literal["float", "int", "number", "groups", "bits", "alike", "special"]
    gives: int | Literal["bool", "sums", "joined"] | None = 0


_UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt tanh sigmoid erf sin cos tan asin acos atan "
    "sinh cosh asinh acosh atanh floor ceil round nearbyint trunc fabs"
)
INTRINSICS: MappingProxyType[str, Intrinsic] = MappingProxyType(
    {
        **{name: Intrinsic(1, "float") for name in _UNARY.split()},
        **{name: Intrinsic(2, "float") for name in ("atan2", "hypot", "fmod")},
        "pow": Intrinsic(2, "number"),
        **{name: Intrinsic(1, "float", "bool") for name in ("isnan", "isinf", "isfinite")},
        **{name: Intrinsic(1, "int") for name in ("popcount", "abs")},
        "dot": Intrinsic(2, "groups", "sums"),
        "join": Intrinsic(2, "alike", "joined"),
        "reinterpret": Intrinsic(1, "bits", None),
        "if_then_else": Intrinsic(3, "special", 1),
        "check_index": Intrinsic(3, "special", "bool"),
    }
)

_OUTSIDE = "outside."
"""How the names of calls begin that give the value of a C function of numbers."""


def outside_call(function: str) -> str:
    """The name of a `Call` of a C function that was registered: its value, and no effect."""
    return f"{_OUTSIDE}{function}"


def outside_function(name: str) -> str | None:
    """The C function that a `Call` of this name is of; None if it is of a function of ours."""
    return name.removeprefix(_OUTSIDE) if name.startswith(_OUTSIDE) else None


def result_type(name: str, arguments: Sequence[DType]) -> DType | None:
    """The type of a call; None if there is no such function of so many, or the call says it."""
    kind = INTRINSICS.get(name)
    if kind is None or kind.gives is None or kind.arguments != len(arguments):
        return None
    if kind.gives == "bool":
        return BOOL.with_lanes(arguments[0].lanes)
    if kind.gives == "sums":
        return dot_type(*arguments)
    if kind.gives == "joined":
        return arguments[0].with_lanes(sum(dtype.lanes for dtype in arguments))
    return arguments[kind.gives]


def dot_type(a: DType, b: DType) -> DType | None:
    """The type of `dot(a, b)`: for each 32 bits of either, the sum of the products in them.

    Both are int8 or uint8, one or each; or both int16; or both bfloat16. None if they are not, or
    do not fill lanes of 32 bits.

    >>> dot_type(DType("uint8x4"), DType("int8x4")), dot_type(DType("bfloat16x16"),
    ...     DType("bfloat16x16"))
    ('int32', 'float32x8')
    """
    group = 32 // a.bits
    if a.lanes != b.lanes or a.bits != b.bits or group < 2 or a.lanes % group:
        return None
    scalars = {str(a.scalar), str(b.scalar)}
    if scalars == {"bfloat16"}:
        return FLOAT32.with_lanes(a.lanes // group)
    known = scalars <= {"int8", "uint8"} or scalars == {"int16"}
    return INT32.with_lanes(a.lanes // group) if known else None
