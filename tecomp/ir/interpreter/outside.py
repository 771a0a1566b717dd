"""Calls of functions outside of the program, on views of the memory of the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tecomp.errors import InternalError
from tecomp.ir.interpreter.arguments import extents_of
from tecomp.ir.interpreter.expr import Environment, Scope, compile_expr
from tecomp.ir.interpreter.memory import View, memory_of
from tecomp.ir.language.expr import Expr
from tecomp.ir.language.outside_call import ArrayArgument, OutsideCall
from tecomp.ir.outside.callee import callee_of
from tecomp.ir.outside.invoke import invoker


def outside_call(scope: Scope, node: OutsideCall) -> Callable[[Environment], None]:
    """A call as a function of the values in the slots."""
    call = invoker(callee_of(node, "evaluate"))
    values = [_passed(scope, argument) for argument in node.arguments]

    def run(env: Environment) -> None:
        call([value(env) for value in values])

    return run


def _passed(scope: Scope, argument: Any) -> Callable[[Environment], Any]:
    if isinstance(argument, ArrayArgument):
        return _array(scope, argument)
    if isinstance(argument, Expr):
        return compile_expr(scope, argument)
    return lambda env: argument


def _array(scope: Scope, node: ArrayArgument) -> Callable[[Environment], Any]:
    """The array, whose strides follow from where its elements are."""
    extents = extents_of(scope, node.shape)
    slots = [scope.declare(var) for var in node.variables]
    indices = [compile_expr(scope, index) for index in node.place.indices]
    slot, dtype = scope.view_slot(node.place.buffer), node.place.buffer.dtype

    def offset(env: Environment, view: View, at: tuple[int, ...]) -> int:
        for each, value in zip(slots, at, strict=True):
            env[each] = value
        place = view.place([index(env) for index in indices])
        return sum(map(int.__mul__, place, view.array.strides))

    def array(env: Environment) -> Any:
        view: View = env[slot]
        shape = extents(env)
        full = shape if dtype.lanes == 1 else (*shape, dtype.lanes)
        if 0 in shape:
            return np.empty(full, dtype.numpy)
        rank = len(shape)
        start = offset(env, view, (0,) * rank)
        strides = [
            offset(env, view, tuple(int(k == axis) for k in range(rank))) - start
            if extent > 1 else dtype.bytes
            for axis, extent in enumerate(shape)
        ]
        last = tuple(extent - 1 for extent in shape)
        if offset(env, view, last) != start + sum(map(int.__mul__, last, strides)):
            raise InternalError(f"`{node}` is no array: its elements have no strides")
        lanes = () if dtype.lanes == 1 else (dtype.numpy.itemsize,)
        memory, first = memory_of(view.array)
        return np.ndarray(full, dtype.numpy, memory, first + start, (*strides, *lanes))

    return array
