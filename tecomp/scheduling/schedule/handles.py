"""How users name stages and what they compute: by operations and tensors."""

from __future__ import annotations

from typing import TypeAlias

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.errors import ScheduleError

Handle: TypeAlias = Tensor | Operation
"""How a stage is named: by its operation or by a tensor that the operation makes."""


def operation_of(handle: object, where: str) -> Operation:
    """The operation that computes what users name a stage by.

    Raises:
        ScheduleError: it is no tensor and no operation.
    """
    if isinstance(handle, Tensor):
        return handle.op
    if isinstance(handle, Operation):
        return handle
    raise ScheduleError(
        f"{where}: expected a tensor or an operation, got {handle!r}", kind="wrong-argument"
    )


def tensor_of(value: object, where: str) -> Tensor:
    """The value, which has to be a tensor.

    Raises:
        ScheduleError: it is none.
    """
    if isinstance(value, Tensor):
        return value
    raise ScheduleError(f"{where}: expected a tensor, got {value!r}", kind="wrong-argument")
