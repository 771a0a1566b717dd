"""Devices of tensors, the processor and described machines, with their dtypes."""

from __future__ import annotations

import typing
from functools import cache
from importlib import import_module
from typing import Any

from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import ALL, INTEGERS, PART, PTensorType, ValueType

if typing.TYPE_CHECKING:
    from tecomp.machine.descriptor import Target

CPU = "cpu"
"""The device on which arrays are made if nobody says where."""

_given: dict[str, Target] = {}
"""Targets that no package has a description of, by name."""

_NARROWER = {
    "float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32",
}


def known_devices() -> tuple[str, ...]:
    """Names of all devices."""
    # Loaded when somebody asks: arrays on the processor do not wait for descriptions of machines.
    return (*import_module("tecomp.machine.registry").list_targets(), *_given)


def _targets() -> Any:
    return import_module("tecomp.machine.descriptor").Target


def device_name(device: object, where: str) -> str:
    """The name of a device; the processor if None.

    Args:
        device: its name, or a `tecomp.Target`.
        where: the function, for messages.

    Raises:
        ArrayValueError: there is no such device.
    """
    if device is None or (isinstance(device, str) and device == CPU):
        return CPU
    known = known_devices()
    if isinstance(device, str):
        if device in known:
            return device
    elif isinstance(device, _targets()):
        return _named(device, where)
    raise ArrayValueError(
        f"{where}: there is no device {device!r}; these are {', '.join(known)}",
        kind="unknown-choice",
    )


def _named(target: Target, where: str) -> str:
    """The name of a target that a user made."""
    name = target.name
    if name in known_devices():
        if target_of(name) != target:
            raise ArrayValueError(
                f"{where}: device {name!r} is another machine than this target of that name; give "
                "the target a name of its own"
            )
        return name
    _given[name] = target
    return name


def target_of(device: str) -> Target:
    """The machine that a device is."""
    return _given[device] if device in _given else _loaded(device)


@cache
def _loaded(device: str) -> Target:
    found: Target = _targets().load(device)
    return found


@cache
def is_apart(device: str | None) -> bool:
    """Whether a device has memory of its own, in which arrays lie in its layouts.

    >>> is_apart("cpu"), is_apart("stick128")
    (False, True)
    """
    return device not in (None, CPU) and target_of(str(device)).core is None


@cache
def dtypes_of(device: str | None) -> tuple[str, ...]:
    """The element types of arrays on a device: those that it keeps as they are.

    >>> "float64" in dtypes_of("cpu"), "float64" in dtypes_of("stick128")
    (True, False)
    """
    if not is_apart(device):
        return ALL
    formats = target_of(str(device)).formats
    return tuple([name for name in ALL if _is_kept(PART.get(name, name), formats)])


def _is_kept(dtype: str, formats: Any) -> bool:
    kept: list[str] = next((list(n) for key, n in formats.items() if str(key) == dtype), [])
    # A machine may store wide integers as narrow ones, in which not all of them are.
    return bool(kept) and not (dtype in INTEGERS and _NARROWER.get(dtype) == kept[0])


def default_dtype(wide: str, device: str | None) -> str:
    """What stands on a device for a type of 64 bits that nobody asked for.

    >>> default_dtype("float64", "cpu"), default_dtype("float64", "stick128")
    ('float64', 'float32')
    """
    known = dtypes_of(device)
    for name in (wide, _NARROWER.get(wide, wide), _NARROWER["int64"]):
        if name in known:
            return name
    return wide


def check_dtype(dtype: str, device: str | None, where: str, what: str = "the array is") -> None:
    """Refuse elements that a device does not keep.

    Raises:
        ArrayTypeError: it does not.
    """
    known = dtypes_of(device)
    if dtype in known:
        return
    nearest = default_dtype(dtype, device)
    cure = f"xp.astype(x, xp.{nearest}) or dtype=xp.{nearest}" if nearest in known else "another"
    raise ArrayTypeError(
        f"{where}: {what} {dtype}, and device {device!r} has none of that type; its dtypes are "
        f"{', '.join(known)}: give {cure}"
    )


def on_its_device(type: PTensorType, where: str, asked: str | None, given: set[str]) -> PTensorType:
    """The type of a result on a device, whose own integers take the place of those of 64 bits.

    Args:
        type: of the result, as it is on a processor.
        where: the operation, for messages.
        asked: the element type that the operation was asked for, if it was.
        given: those of its operands.

    Raises:
        ArrayTypeError: the device has no such elements.
    """
    narrow = _narrowed(type, asked, given)
    if narrow is None:
        check_dtype(type.dtype, type.device, where, "the result is")
    return narrow or type


def _narrowed(type: PTensorType, asked: str | None, given: set[str]) -> PTensorType | None:
    """The type of a result on a device; None if the device has no such elements."""
    if type.dtype in dtypes_of(type.device):
        return type
    if type.dtype not in INTEGERS or asked is not None or type.dtype in given:
        return None
    narrow = default_dtype(type.dtype, type.device)
    return type.like(type.shape, narrow) if narrow in dtypes_of(type.device) else None


def results_on_device(op: Operation, *operands: Any) -> tuple[ValueType, ...]:
    """Return the types of the results of an operation, as the device of each has them.

    Where a described machine has no integers of 64 bits, counts and indices have its own. A dtype
    that the device has not at all is left as it is, and is refused when the operation runs.

    Args:
        op: the operation.
        operands: types of the operands.

    Raises:
        ArrayTypeError: If the operation does not support the dtype of an operand.
        ArrayValueError: If the shapes do not fit.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> from tecomp.ptensor.operations.reduction import FindIndex
    >>> [print(each) for each in results_on_device(
    ...     FindIndex("argmax"), PTensorType((4, 5), "int8", "stick128"))]
    ptensor<int32, device='stick128'>
    [None]
    """
    found = op.results(*operands)
    asked = getattr(op, "dtype", None)
    given = {each.dtype for each in operands if isinstance(each, PTensorType)}
    return tuple([_on_known_device(each, asked, given) for each in found])


def _on_known_device(type: ValueType, asked: str | None, given: set[str]) -> ValueType:
    if isinstance(type, str) or type.device in (None, CPU) or type.device not in known_devices():
        return type
    return _narrowed(type, asked, given) or type
