"""Dataclasses that are made quickly: imports make hundreds of them before anything is compiled.

`dataclasses.dataclass` compiles up to six functions for a class, one by one, which takes half a
millisecond. Here those that have to be fast are compiled together, and all others are closures.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as standard
from inspect import get_annotations
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

_Fields = Mapping[str, Field[Any]]


class _Made:
    """Stands in signatures for what a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()


def _record(cls: type, options: Mapping[str, bool]) -> type:
    own = _own_fields(cls)
    _say_what_it_is(cls, own, options)
    every = fields(cls)
    has_hash = _says_hash(cls, options)
    if options["slots"]:
        cls = _with_slots(cls, tuple(field.name for field in every), options["weakref_slot"])
    else:
        _without_fields(cls, own.__dict__["__dataclass_fields__"])
    _compile(cls, every, options, has_hash=has_hash is True)
    if has_hash is None:
        cls.__hash__ = None  # type: ignore[assignment]
    if options["repr"]:
        _put(cls, "__repr__", _named(cls, "__repr__", _repr_of(every)))
    if options["frozen"]:
        _freeze(cls, frozenset(field.name for field in every))
    if options["frozen"] and options["slots"]:
        _put(cls, "__getstate__", _state)
        _put(cls, "__setstate__", _restore)
    return abc.update_abstractmethods(cls)


def _own_fields(cls: type) -> type:
    """A class with the fields that a class itself writes, and nothing else.

    The standard library reads them.
    """
    written = get_annotations(cls)
    given = {name: cls.__dict__[name] for name in written if name in cls.__dict__}
    known = {"__annotations__": written, "__module__": cls.__module__, "__doc__": cls.__name__}
    return standard(init=False, repr=False, eq=False)(type(cls.__name__, (), {**known, **given}))


def _say_what_it_is(cls: Any, own: type, options: Mapping[str, bool]) -> None:
    """Set what makes a class a dataclass for the standard library."""
    found: dict[str, Field[Any]] = {}
    for base in (*cls.__mro__[-1:0:-1], own):
        found.update(getattr(base, "__dataclass_fields__", {}))
    params = own.__dict__["__dataclass_params__"]
    for option in ("init", "repr", "eq", "frozen"):
        setattr(params, option, options[option])
    cls.__dataclass_fields__, cls.__dataclass_params__ = found, params
    taken = tuple(field.name for field in fields(cls) if field.init and not field.kw_only)
    _put(cls, "__match_args__", taken)


def _says_hash(cls: type, options: Mapping[str, bool]) -> bool | None:
    """Whether objects get a hash; None if they must have none: they change, and are compared."""
    known = cls.__dict__
    has_own = "__hash__" in known and not (known["__hash__"] is None and "__eq__" in known)
    if not options["eq"] or has_own:
        return False
    return True if options["frozen"] else None


def _with_slots(cls: type, names: Sequence[str], has_weakref: bool) -> type:
    """The class again, with slots for the fields that its bases have none for."""
    if "__slots__" in cls.__dict__:
        raise TypeError(f"{cls.__name__} has __slots__; leave slots=True out")
    bases = cls.__mro__[1:-1]
    inherited = {slot for base in bases for slot in base.__dict__.get("__slots__", ())}
    wanted = (*names, "__weakref__") if has_weakref else names
    left_out = {"__dict__", "__weakref__", *names}
    body = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    body["__slots__"] = tuple(name for name in wanted if name not in inherited)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _without_fields(cls: type, own: _Fields) -> None:
    """Leave defaults in the class where `field(...)` was written."""
    for name, field in own.items():
        if not isinstance(cls.__dict__.get(name), Field):
            continue
        if field.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, field.default)


def _compile(
    cls: type, every: Sequence[Field[Any]], options: Mapping[str, bool], *, has_hash: bool,
) -> None:
    """Give a class the methods that have to be fast."""
    init = _Init(cls, every, options)
    text = init.text() if options["init"] else ""
    text += _equality(every) if options["eq"] else ""
    text += _hash(every) if has_hash else ""
    made: dict[str, Any] = {}
    exec(text, init.names, made)
    if options["init"]:
        taken = {field.name: field.type for field in every if field.init}
        made["__init__"].__annotations__ = {**taken, "return": None}
    for name, method in made.items():
        _put(cls, name, _named(cls, name, method))


class _Init:
    """The text of an `__init__`, and the names that it uses."""

    def __init__(self, cls: type, every: Sequence[Field[Any]], options: Mapping[str, bool]) -> None:
        self.cls, self.fields, self.options = cls, every, options
        self.names: dict[str, Any] = {"record_made": _MADE, "record_set": object.__setattr__}

    def text(self) -> str:
        taken = [field for field in self.fields if field.init]
        plain = [self._parameter(field) for field in taken if not field.kw_only]
        named = [self._parameter(field) for field in taken if field.kw_only]
        parameters = ", ".join(["self", *plain, *["*"] * bool(named), *named])
        body = [line for field in self.fields for line in self._assignment(field)]
        if hasattr(self.cls, "__post_init__"):
            body.append("self.__post_init__()")
        return f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]) + "\n"

    def _parameter(self, field: Field[Any]) -> str:
        if field.default_factory is not MISSING:
            return f"{field.name}=record_made"
        if field.default is MISSING:
            return field.name
        return f"{field.name}={self._default(field)}"

    def _default(self, field: Field[Any]) -> str:
        name = f"record_default_{field.name}"
        self.names[name] = field.default
        return name

    def _assignment(self, field: Field[Any]) -> Iterator[str]:
        name = field.name
        slot = getattr(self.cls, name, None)
        if field.default_factory is not MISSING:
            self.names[f"record_factory_{name}"] = field.default_factory
            made = f"record_factory_{name}()"
            value = f"{made} if {name} is record_made else {name}" if field.init else made
        elif field.init:
            value = name
        elif field.default is not MISSING and self.options["slots"]:
            value = self._default(field)
        else:
            return  # somebody else sets it, or the class has it
        if not self.options["frozen"]:
            yield f"self.{name} = {value}"
        elif isinstance(slot, MemberDescriptorType):
            self.names[f"record_set_{name}"] = slot.__set__
            yield f"record_set_{name}(self, {value})"
        else:
            yield f"record_set(self, {name!r}, {value})"


def _equality(every: Sequence[Field[Any]]) -> str:
    names = [field.name for field in every if field.compare]
    return (
        "def __eq__(self, other):\n if other.__class__ is self.__class__:\n"
        f"  return {_values('self', names)} == {_values('other', names)}\n return NotImplemented\n"
    )


def _hash(every: Sequence[Field[Any]]) -> str:
    names = [field.name for field in every
             if (field.compare if field.hash is None else field.hash)]
    return f"def __hash__(self):\n return hash({_values('self', names)})\n"


def _values(of: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _repr_of(every: Sequence[Field[Any]]) -> Callable[[Any], str]:
    names = [field.name for field in every if field.repr]

    def shown(self: Any) -> str:
        values = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({values})"

    return recursive_repr("...")(shown)


def _freeze(cls: type, names: frozenset[str]) -> None:
    for name in ("__setattr__", "__delattr__"):
        if name in cls.__dict__:
            raise TypeError(f"{cls.__name__} is frozen and has {name}; leave one of them out")
    above: Any = super

    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        above(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        above(cls, self).__delattr__(name)

    _put(cls, "__setattr__", _named(cls, "__setattr__", assign))
    _put(cls, "__delattr__", _named(cls, "__delattr__", delete))


def _state(self: Any) -> list[Any]:
    """What copies and pickles ask objects for that have slots and refuse assignments."""
    return [getattr(self, field.name) for field in fields(self)]


def _restore(self: Any, kept: list[Any]) -> None:
    for field, value in zip(fields(self), kept, strict=True):
        object.__setattr__(self, field.name, value)


def _put(cls: type, name: str, made: Any) -> None:
    """Give a class something, unless it has written that itself."""
    # Bodies with `__eq__` alone have a `__hash__` of None, which Python put there.
    if cls.__dict__.get(name) is not None:
        return
    setattr(cls, name, made)


def _named(cls: type, name: str, method: Any) -> Any:
    """A function that was made for a class, called as if it stood there."""
    method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    method.__module__ = cls.__module__
    return method


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, init: bool = True, repr: bool = True, eq: bool = True,
        frozen: bool = False, slots: bool = False, weakref_slot: bool = False,
    ) -> Any:
        """`dataclasses.dataclass` of the standard library, in a third of the time.

        What it makes is a dataclass for `fields`, `replace` and everybody else. `InitVar` is not
        read, and a class without a docstring gets none.

        >>> @dataclass(frozen=True, slots=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(3)
        Point(x=3, y=0)
        """
        options = {
            "init": init, "repr": repr, "eq": eq, "frozen": frozen, "slots": slots,
            "weakref_slot": weakref_slot,
        }
        return (lambda found: _record(found, options)) if cls is None else _record(cls, options)
