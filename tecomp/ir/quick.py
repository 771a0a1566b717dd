"""`quick`: frozen dataclasses with slots that take less time to make."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

C = TypeVar("C", bound=type)


def quick(cls: C) -> C:
    """`cls`, a frozen dataclass with slots, with a constructor that does the same in half the time.

    The one that `dataclass` writes looks each slot up by its name. A tree has thousands of nodes,
    and every pass makes some of them anew.

    >>> from dataclasses import dataclass
    >>> @quick
    ... @dataclass(frozen=True, slots=True)
    ... class Pair:
    ...     a: int
    ...     b: int = 2
    >>> Pair(1), Pair(b=3, a=1)
    (Pair(a=1, b=2), Pair(a=1, b=3))
    """
    known: dict[str, Any] = {"make_": {}, "missing_": MISSING}
    arguments, steps = ["self"], []
    for each in fields(cls):
        if not each.init:
            continue
        known[f"set_{each.name}"] = getattr(cls, each.name).__set__
        value = each.name
        if each.default is not MISSING:
            known[f"default_{each.name}"] = each.default
            arguments.append(f"{each.name}=default_{each.name}")
        elif each.default_factory is not MISSING:
            known["make_"][each.name] = each.default_factory
            arguments.append(f"{each.name}=missing_")
            value = f"make_[{each.name!r}]() if {each.name} is missing_ else {each.name}"
        else:
            arguments.append(each.name)
        steps.append(f"set_{each.name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        steps.append("self.__post_init__()")
    lines = "".join(f"    {step}\n" for step in steps)
    exec(f"def __init__({', '.join(arguments)}):\n{lines}", known)
    kind: Any = cls
    made, written = known["__init__"], kind.__init__
    made.__annotations__, made.__qualname__ = written.__annotations__, written.__qualname__
    made.__module__ = cls.__module__
    kind.__init__ = made
    return cls
