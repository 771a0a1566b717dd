"""The faster constructor does what the one of `dataclass` does."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from tecomp.ir.quick import quick


@quick
@dataclass(frozen=True, slots=True)
class Point:
    """With every kind of field."""

    x: int
    y: int = 7
    names: list[str] = field(default_factory=list)
    total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.x + self.y)


def test_arguments_defaults_and_derived_fields() -> None:
    assert Point(1) == Point(x=1, y=7, names=[])
    assert Point(2, names=["a"]).total == 9
    assert Point(1).names is not Point(1).names
    assert replace(Point(1), y=3).total == 4
    assert [each.name for each in fields(Point)] == ["x", "y", "names", "total"]


def test_it_stays_frozen() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]


def test_arguments_are_still_checked() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=3)  # type: ignore[call-arg]
