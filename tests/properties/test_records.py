"""Dataclasses of `tecomp.records` behave as those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from tecomp import records

MAKERS = {"standard": dataclasses.dataclass, "records": records.dataclass}
ROUNDS = 150
_HOW: tuple[dict[str, Any], ...] = (
    {}, {"default": 3}, {"default": ()}, {"default_factory": list}, {"init": False},
    {"init": False, "default": 5}, {"init": False, "default_factory": dict},
    {"compare": False, "default": 1}, {"repr": False, "default": None}, {"hash": False, "default": 2},
    {"kw_only": True}, {"kw_only": True, "default": 4}, {"kw_only": True, "default_factory": list},
)
_OPTIONS = ("init", "repr", "eq", "frozen", "slots")


def _drawn_body(random: np.random.Generator, letters: str) -> tuple[dict[str, Any], ...]:
    """What `field` is called with for each letter; what has a default comes last."""
    drawn = [_HOW[random.integers(len(_HOW))] for _ in letters]
    plain = [how for how in drawn if not how or how == {"init": False}]
    return (*plain, *(how for how in drawn if how not in plain))


def _drawn_options(random: np.random.Generator, *, is_frozen: bool) -> dict[str, bool]:
    options = {name: bool(random.random() < 0.7) for name in _OPTIONS}
    return options | {"frozen": is_frozen}


def _written(random: np.random.Generator) -> dict[str, Callable[..., Any]]:
    """Some methods that a body has itself."""
    methods: dict[str, Callable[..., Any]] = {
        "__repr__": lambda self: "itself",
        "__hash__": lambda self: 7,
        "__eq__": lambda self, other: True,
        "__post_init__": lambda self: object.__setattr__(self, "a", "after"),
    }
    return {name: method for name, method in methods.items() if random.random() < 0.12}


def _class(make: Any, bases: tuple[type, ...], body: Any, letters: str, options: Any,
           methods: Any) -> Any:
    fields = {letter: dataclasses.field(**how) for letter, how in zip(letters, body, strict=True)}
    annotations = {**dict.fromkeys(letters, "object"), "shared": "ClassVar[int]"}
    given = {letter: field for letter, field in fields.items()}
    name = f"Drawn{len(bases)}"
    cls = type(name, bases, {
        "__annotations__": annotations, "__module__": __name__, "__doc__": "Drawn.", "shared": 9,
        **given, **methods,
    })
    return make(**options)(cls)


def _said(act: Callable[[], Any]) -> object:
    """What something gives, or the kind of error that it raises."""
    try:
        return act()
    except (TypeError, AttributeError, dataclasses.FrozenInstanceError) as error:
        kind = type(error)
        is_frozen = kind is dataclasses.FrozenInstanceError
        return (kind.__name__, str(error) if is_frozen else "")


def _told(cls: Any) -> dict[str, object]:
    """What can be seen of a class and its objects."""
    taken = [field for field in dataclasses.fields(cls) if field.init]
    values = {field.name: (field.name, 1) for field in taken}
    told: dict[str, object] = {
        "fields": [(f.name, f.type, f.init, f.kw_only) for f in dataclasses.fields(cls)],
        "signature": _said(lambda: str(inspect.signature(cls))),
        "match": cls.__match_args__, "shared": cls.shared,
        "hashable": cls.__hash__ is None,
        "positions": _said(lambda: cls(*([1] * sum(not f.kw_only for f in taken))) and "made"),
        "slots": cls.__dict__.get("__slots__"),
        "given": {name: cls.__dict__.get(name, "-") for name in "abcdefgh"
                  if "__slots__" not in cls.__dict__},
        "params": {name: getattr(cls.__dataclass_params__, name) for name in _OPTIONS[:4]},
    }
    try:
        first, second, third = cls(**values), cls(**values), cls(**{**values, **dict.fromkeys(values, 0)})
    except TypeError:
        return {**told, "made": "not"}
    named = cls.__repr__ is not object.__repr__
    return told | {
        "repr": _said(lambda: repr(first)) if named else None,
        "state": [getattr(first, field.name, "none") for field in dataclasses.fields(cls)],
        "equal": [_said(lambda: first == second), _said(lambda: first == third),
                  _said(lambda: first == 3)],
        "hash": _said(lambda: hash(first)) if cls.__hash__ is not object.__hash__ else None,
        "set": _said(lambda: setattr(first, "a", "set")), "delete": _said(lambda: delattr(second, "b")),
        # The standard library raises a TypeError by mistake where there are slots.
        "other": isinstance(_said(lambda: setattr(third, "none", 1)), tuple),
        "replaced": _said(lambda: repr(dataclasses.replace(third, **values))) if named else None,
        "dict": _said(lambda: dataclasses.asdict(third)),
        "copied": _said(lambda: repr(copy.copy(third))) if named else None,
    }


@pytest.mark.parametrize("seed", range(4))
def test_drawn_classes_are_as_the_standard_library_makes_them(seed: int) -> None:
    made = 0
    for number in range(ROUNDS):
        random = np.random.default_rng([seed, number])
        is_frozen = bool(random.random() < 0.6)
        body, more = _drawn_body(random, "abcd"), _drawn_body(random, "def")
        options = [_drawn_options(random, is_frozen=is_frozen) for _ in range(2)]
        methods = [_written(random) for _ in range(2)]
        told: dict[str, object] = {}
        for name, make in MAKERS.items():
            try:
                above = _class(make, (), body, "abcd", options[0], methods[0])
                below = _class(make, (above,), more, "def", options[1], methods[1])
            except (TypeError, ValueError, SyntaxError):
                told[name] = "refused"
                continue
            told[name] = [_told(above), _told(below)]
            made += 1
        assert told["records"] == told["standard"], (seed, number, body, more, options, methods)

    assert made > ROUNDS  # of each maker, more than half


@records.dataclass(frozen=True, slots=True)
class Point:
    """A point, for pickles, which find classes by their names."""

    x: int
    y: list[int] = dataclasses.field(default_factory=list)
    count: ClassVar[int] = 2


def test_objects_travel() -> None:
    point = Point(1, [2])

    assert pickle.loads(pickle.dumps(point)) == point
    assert copy.deepcopy(point) == point
    assert copy.deepcopy(point).y is not point.y


def test_a_dataclass_of_the_standard_library_may_stand_below() -> None:
    @dataclasses.dataclass(frozen=True)
    class Lower(Point):
        z: int = 3

    assert repr(Lower(1)).endswith("Lower(x=1, y=[], z=3)")


def test_an_object_that_holds_itself_is_shown() -> None:
    point = Point(1)
    point.y.append(point)  # type: ignore[arg-type]

    assert repr(point) == "Point(x=1, y=[...])"


def test_two_words_for_slots_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^Both has __slots__; leave slots=True out$"):
        @records.dataclass(slots=True)
        class Both:  # type: ignore[misc]
            __slots__ = ("x",)
            x: int


def test_a_frozen_class_that_sets_is_refused() -> None:
    message = r"^Sets is frozen and has __setattr__; leave one of them out$"
    with pytest.raises(TypeError, match=message):
        @records.dataclass(frozen=True)
        class Sets:
            x: int

            def __setattr__(self, name: str, value: object) -> None:
                """Do nothing."""
