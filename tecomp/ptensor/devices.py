"""Devices of tensors, the CPU and described machines, with their dtypes."""

from __future__ import annotations

import typing
from functools import cache
from typing import Any

from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.types import ALL, INTEGERS, PART, PTensorType, ValueType

if typing.TYPE_CHECKING:
    from tecomp.machine.descriptor import Target

CPU = "cpu"
"""Default device of arrays."""

_given: dict[str, Target] = {}
"""User-defined targets that no package describes, by name."""

_NARROWER = {
    "float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32",
}


def known_devices() -> tuple[str, ...]:
    """Return the names of all devices."""
    # Import lazily: arrays on the CPU do not need machine descriptions.
    from tecomp.machine.registry import list_targets

    return (*list_targets(), *_given)


def _targets() -> Any:
    from tecomp.machine.descriptor import Target

    return Target


def device_name(device: object, where: str) -> str:
    """Return the name of a device; the CPU if None.

    Args:
        device: Device name, or a `tecomp.Target`.
        where: Function name for error messages.

    Raises:
        ArrayValueError: If the device is unknown.
    """
    if device is None or (isinstance(device, str) and device == CPU):
        return CPU
    known = known_devices()
    if isinstance(device, str):
        if device in known:
            return device
    elif isinstance(device, _targets()):
        return _register_target(device, where)
    raise ArrayValueError(
        "{where}: unknown device {device!r}; available devices: {known}",
        kind="unknown-choice", where=where, device=device, known=", ".join(known),
    )


def _register_target(target: Target, where: str) -> str:
    """Register a user-defined target and return its name."""
    name = target.name
    if name in known_devices():
        if target_of(name) != target:
            raise ArrayValueError(
                "{where}: device name {name!r} is already registered for a different target; "
                "rename the target",
                where=where, name=name,
            )
        return name
    _given[name] = target
    return name


def target_of(device: str) -> Target:
    """Return the target of a device."""
    return _given[device] if device in _given else _load(device)


@cache
def _load(device: str) -> Target:
    found: Target = _targets().load(device)
    return found


@cache
def is_apart(device: str | None) -> bool:
    """Return whether a device has separate memory with layouts of its own.

    >>> is_apart("cpu"), is_apart("stick128")
    (False, True)
    """
    return device not in (None, CPU) and target_of(str(device)).core is None


@cache
def dtypes_of(device: str | None) -> tuple[str, ...]:
    """Return the dtypes that a device stores without conversion.

    >>> "float64" in dtypes_of("cpu"), "float64" in dtypes_of("stick128")
    (True, False)
    """
    if not is_apart(device):
        return ALL
    formats = target_of(str(device)).formats
    return tuple([name for name in ALL if _is_kept(PART.get(name, name), formats)])


def _is_kept(dtype: str, formats: Any) -> bool:
    stored: list[str] = next((list(n) for key, n in formats.items() if str(key) == dtype), [])
    # A machine may store wide integers in a narrower format, which loses values.
    return bool(stored) and not (dtype in INTEGERS and _NARROWER.get(dtype) == stored[0])


def default_dtype(wide_dtype: str, device: str | None) -> str:
    """Return the dtype that a device uses as the default in place of a 64-bit dtype.

    >>> default_dtype("float64", "cpu"), default_dtype("float64", "stick128")
    ('float64', 'float32')
    """
    known = dtypes_of(device)
    for name in (wide_dtype, _NARROWER.get(wide_dtype, wide_dtype), _NARROWER["int64"]):
        if name in known:
            return name
    return wide_dtype


def check_dtype(dtype: str, device: str | None, where: str, prefix: str = "the array is") -> None:
    """Check that a device supports a dtype.

    Raises:
        ArrayTypeError: If the device does not support the dtype.
    """
    known = dtypes_of(device)
    if dtype in known:
        return
    nearest = default_dtype(dtype, device)
    remedy = f"xp.astype(x, xp.{nearest}) or dtype=xp.{nearest}" if nearest in known else "another"
    raise ArrayTypeError(
        "{where}: {subject} {dtype}, which is not supported on device {device!r}; supported "
        "dtypes: {known}; use {remedy}",
        where=where, subject=prefix, dtype=dtype, device=device, known=", ".join(known),
        remedy=remedy,
    )


def on_its_device(
    ptype: PTensorType, where: str, dtype: str | None, dtypes: set[str]
) -> PTensorType:
    """Return a result type on a device; default 64-bit integers become the device's integers.

    Args:
        ptype: Type of the result on a CPU.
        where: Operation name for error messages.
        dtype: dtype that the caller requested explicitly, or None.
        dtypes: dtypes of the operands.

    Raises:
        ArrayTypeError: If the device does not support the dtype.
    """
    adapted = _type_on_device(ptype, dtype, dtypes)
    if adapted is None:
        check_dtype(ptype.dtype, ptype.device, where, "the result is")
    return adapted or ptype


def _type_on_device(ptype: PTensorType, dtype: str | None, dtypes: set[str]) -> PTensorType | None:
    """Return a result type on a device; None if the device does not support the dtype."""
    if ptype.dtype in dtypes_of(ptype.device):
        return ptype
    if ptype.dtype not in INTEGERS or dtype is not None or ptype.dtype in dtypes:
        return None
    adapted = default_dtype(ptype.dtype, ptype.device)
    return ptype.like(ptype.shape, adapted) if adapted in dtypes_of(ptype.device) else None


def results_on_device(op: PTensorOp, *operands: Any) -> tuple[ValueType, ...]:
    """Return the result types of an operation, adapted to the device.

    On a machine without 64-bit integers, counts and indices have the default integer dtype of the
    device. Other unsupported dtypes are unchanged and are rejected when the operation runs.

    Args:
        op: Operation.
        operands: Types of the operands.

    Raises:
        ArrayTypeError: If the operation does not support the dtype of an operand.
        ArrayValueError: If the shapes do not match.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> from tecomp.ptensor.operations.reduction import FindIndex
    >>> [print(each) for each in results_on_device(
    ...     FindIndex("argmax"), PTensorType((4, 5), "int8", "stick128"))]
    ptensor<int32, device='stick128'>
    [None]
    """
    found = op.results(*operands)
    dtype = getattr(op, "dtype", None)
    dtypes = {t.dtype for t in operands if isinstance(t, PTensorType)}
    return tuple([_on_known_device(t, dtype, dtypes) for t in found])


def _on_known_device(ptype: ValueType, dtype: str | None, dtypes: set[str]) -> ValueType:
    if isinstance(ptype, str) or ptype.device in (None, CPU) or ptype.device not in known_devices():
        return ptype
    return _type_on_device(ptype, dtype, dtypes) or ptype
