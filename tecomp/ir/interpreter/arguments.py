"""Arguments of the interpreter: numbers and arrays, checked, as variables and views of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tecomp.errors import CallError
from tecomp.ir.interpreter.arithmetic import wrapping
from tecomp.ir.interpreter.expr import Environment, Scope, compile_expr
from tecomp.ir.interpreter.memory import View, compact, places_of
from tecomp.ir.language.expr import Var, index_value
from tecomp.ir.language.stmt import Buffer, Extent, PrimFunc

Extents: TypeAlias = "Callable[[Environment], tuple[int, ...]]"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A buffer among the parameters: where its view and its memory go, and what it must be.

    Attributes:
        buffer: the parameter.
        view: slot of the view that reads and writes go to.
        memory: slot of the array.
        shape: what its array has, without lanes.
        strides: likewise, in elements.
    """

    buffer: Buffer
    view: int
    memory: int
    shape: Extents
    strides: Extents


def parameters_of(scope: Scope, func: PrimFunc) -> list[Parameter | tuple[Var, int]]:
    """What each argument is bound to: a buffer's slots, or a variable and its slot."""
    for var in (*func.sizes, *(p for p in func.params if isinstance(p, Var))):
        scope.declare(var)
    found: list[Parameter | tuple[Var, int]] = []
    for param in func.params:
        if isinstance(param, Buffer):
            slots = scope.declare_view(param), scope.declare(param.data)
            shape, strides = extents_of(scope, param.shape), strides_of(scope, param)
            found.append(Parameter(param, *slots, shape, strides))
        else:
            found.append((param, scope.slot_of(param)))
    return found


def extents_of(scope: Scope, entries: Sequence[Extent]) -> Extents:
    """Extents or strides as a function of the values in the slots."""
    closures = [compile_expr(scope, index_value(entry)) for entry in entries]
    return lambda env: tuple([closure(env) for closure in closures])


def strides_of(scope: Scope, buffer: Buffer) -> Extents:
    """Strides in elements, as a function of the values in the slots."""
    if buffer.strides is not None:
        return extents_of(scope, buffer.strides)
    shape = extents_of(scope, buffer.shape)
    return lambda env: compact(shape(env))


def bind(
    scope: Scope,
    func: PrimFunc,
    params: list[Parameter | tuple[Var, int]],
    args: Sequence[Any],
    env: Environment,
) -> None:
    """Put the arguments of a call into their slots in `env`, and the sizes that they have.

    Raises:
        CallError: there are too many or too few, or one does not fit its parameter.
    """
    if len(args) != len(params):
        raise CallError(
            f"{func.name} takes {len(params)} arguments, not {len(args)}", kind="argument-count"
        )
    arrays: list[tuple[Parameter, NDArray[Any]]] = []
    for param, arg in zip(params, args, strict=True):
        if isinstance(param, Parameter):
            _check_array(func, param.buffer, arg)
            arrays.append((param, arg))
            env[param.memory] = arg
        else:
            env[param[1]] = _number(param[0], arg)
    for size in func.sizes:
        env[scope.slot_of(size)] = _size(func, size, arrays)
    for param, array in arrays:
        shape, name = param.shape(env), param.buffer.name
        if shape != array.shape[: len(shape)]:
            raise CallError(
                f"{func.name}: {name} has shape {shape}, not {array.shape}", kind="other-array"
            )
        _check_strides(func, param, array, env)
        flat = param.buffer.flat
        env[param.view] = places_of(name, array, len(shape)) if flat else View(
            name, array, (0,) * len(shape), shape)


def _check_array(func: PrimFunc, buffer: Buffer, arg: Any) -> None:
    if not isinstance(arg, np.ndarray) or arg.dtype != buffer.dtype.numpy:
        given = f"{arg.dtype} array" if isinstance(arg, np.ndarray) else type(arg).__name__
        raise CallError(
            f"{func.name}: {buffer.name} is {buffer.dtype}, not {given}", kind="other-array"
        )
    lanes = () if buffer.dtype.lanes == 1 else (buffer.dtype.lanes,)
    rank = len(buffer.shape) + len(lanes)
    if arg.ndim != rank or arg.shape[rank - len(lanes) :] != lanes:
        raise CallError(
            f"{func.name}: {buffer.name} of {buffer.dtype} has {rank} axes with the lanes, "
            f"not shape {arg.shape}",
            kind="other-array",
        )


def _check_strides(func: PrimFunc, param: Parameter, array: NDArray[Any], env: Environment) -> None:
    name, element = param.buffer.name, param.buffer.dtype
    wanted = param.strides(env)
    if element.lanes > 1:
        wanted = (*(step * element.lanes for step in wanted), 1)
    found = tuple(step // array.itemsize for step in array.strides)
    axes = zip(array.shape, wanted, array.strides, strict=True)
    if array.size and any(n > 1 and want * array.itemsize != step for n, want, step in axes):
        raise CallError(
            f"{func.name}: {name} has strides {wanted}, not {found}", kind="other-array"
        )


def _number(var: Var, arg: Any) -> Any:
    if var.dtype.is_float:
        return var.dtype.numpy.type(arg)
    return bool(arg) if var.dtype.is_bool else wrapping(var.dtype)(int(arg))


def _size(func: PrimFunc, size: Var, arrays: list[tuple[Parameter, NDArray[Any]]]) -> int:
    for param, array in arrays:
        for axis, extent in enumerate(param.buffer.shape):
            if extent is size:
                return int(array.shape[axis])
    found: list[int] = []
    for param, array in arrays:
        for axis, stride in enumerate(param.buffer.strides or ()):
            if stride is size:
                step = array.strides[axis] // (array.itemsize * param.buffer.dtype.lanes)
                # The stride of an axis of one index says nothing, but where there is no other.
                found.insert(0 if array.shape[axis] > 1 else len(found), step)
    if not found:
        raise CallError(
            f"{func.name}: no array has the size {size.name} as an axis", kind="unknown-size"
        )
    return found[0]
