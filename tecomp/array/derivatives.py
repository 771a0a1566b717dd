"""Derivatives of functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from math import prod
from operator import index
from threading import get_ident
from typing import Any, TypeVar

from tecomp.array import matrix_derivatives as matrix_derivatives  # registers its rules
from tecomp.array.array_object import Array, from_node
from tecomp.array.batching import vmap
from tecomp.array.derivative_rules import pull_back
from tecomp.array.function_traces import (
    CustomCall,
    cast,
    check_function,
    constant,
    hold,
    is_differentiated,
    leaves_of,
    map_leaves,
    record_custom,
    replace_leaves,
    reshape,
    trace_function,
    zeros,
)
from tecomp.array.functions.creation import eye
from tecomp.array.functions.data_types import asarray
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.types import COMPLEX, FLOATING

F = TypeVar("F", bound=Callable[..., Any])


class _Linearization:
    """Function at a point, with the cotangents of its inputs.

    Attributes:
        traced: Operations of the function.
        known: Nodes of its values at the point.
        result: Result of the function.
        outputs: Arrays in the result that are differentiated; the others are auxiliary.
    """

    def __init__(
        self, function: Callable[..., Any], leaves: Sequence[Array], where: str, has_aux: bool
    ) -> None:
        nodes = [leaf._node for leaf in leaves]
        types = [node.type for node in nodes]
        self.traced = trace_function(function, types, where, differentiates=True)
        self.known = self.traced.run(nodes)
        self.result = map_leaves(
            lambda k: from_node(self.known.get(self.traced.outputs[k], self.traced.outputs[k])),
            self.traced.result)
        if has_aux and not (isinstance(self.result, tuple) and len(self.result) == 2):
            raise ArrayTypeError(
                "{where}: with has_aux=True, the function must return a pair (value, aux), got "
                "{type}",
                where=where, type=type(self.result).__name__,
            )
        self.outputs: list[Array] = leaves_of(self.value(has_aux))

    def value(self, has_aux: bool) -> Any:
        """Return the result without the auxiliary part."""
        return self.result[0] if has_aux else self.result

    def pull_back(self, cotangents: Sequence[Array]) -> list[Array]:
        """Return the cotangents of the inputs, for those of the outputs."""
        rest = [None] * (len(self.traced.outputs) - len(cotangents))
        found = pull_back(self.traced, self.known, [*cotangents, *rest])
        return [
            zeros(node.type) if part is None else part
            for part, node in zip(found, self.traced.inputs, strict=True)
        ]


def _closure(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Any, argnums: Sequence[int],
    where: str,
) -> tuple[Callable[..., Any], list[Any], list[Array]]:
    """Return a function of the leaves of some arguments, these arguments, and the leaves."""
    for k in argnums:
        if not 0 <= k < len(args):
            raise ArrayValueError(
                "{where}: argnums has {argnum}, but the function is called with {count} "
                "positional arguments; pass numbers below {count}",
                where=where, argnum=k, count=len(args),
            )
    trees = [args[k] for k in argnums]
    leaves = [_inexact(leaf, where) for leaf in leaves_of(trees)]

    def call(*inputs: Array) -> Any:
        replaced = dict(zip(argnums, replace_leaves(trees, inputs), strict=True))
        return function(*[replaced.get(k, arg) for k, arg in enumerate(args)], **kwargs)

    return call, trees, leaves


def _inexact(leaf: Any, where: str) -> Array:
    """Return an input to differentiate by, as an array.

    Raises:
        ArrayTypeError: If it is not an array or a number, or its dtype is not floating-point.
    """
    array = asarray(leaf) if isinstance(leaf, bool | int | float | complex) else leaf
    if not isinstance(array, Array):
        raise ArrayTypeError(
            "{where}: arguments must be arrays, also in tuples, lists and dicts, got {type}; "
            "convert them with xp.asarray(...)",
            kind="not-an-array", where=where, type=type(leaf).__name__,
        )
    if array._node.type.dtype not in FLOATING:
        raise ArrayTypeError(
            "{where}: cannot differentiate by an argument of dtype {dtype}; convert it with "
            "xp.astype(x, xp.float64), or select other arguments with argnums",
            kind="not-differentiable", where=where, dtype=array.dtype,
        )
    return array


def _numbers(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Return positions of arguments; negative positions count from the end."""
    numbers = argnums if isinstance(argnums, tuple | list) else (argnums,)
    return tuple([k + count if k < 0 else k for k in map(index, numbers)])


def _seed(output: Any, where: str, holomorphic: bool) -> Array:
    """Return the cotangent 1 of the value of a function.

    Raises:
        ArrayTypeError: If the value is not a number of the required kind.
    """
    if not isinstance(output, Array) or output.shape or (
        output._node.type.dtype not in FLOATING
    ):
        described = output._node.type if isinstance(output, Array) else type(output).__name__
        raise ArrayTypeError(
            "{where}: the function must return one number, an array of floating-point dtype "
            "without axes, got {result}; reduce it with xp.sum(...), or use jacobian or vjp",
            kind="not-differentiable", where=where, result=described,
        )
    is_complex = output._node.type.dtype in COMPLEX
    if is_complex is not holomorphic:
        raise ArrayTypeError(
            "{where}: the function returns dtype {dtype} with holomorphic={holomorphic}; a real "
            "function needs holomorphic=False, and a complex one is differentiated if it is "
            "holomorphic, with holomorphic=True, or by vjp",
            kind="not-differentiable", where=where, dtype=output.dtype, holomorphic=holomorphic,
        )
    return constant(1, output._node.type)


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes a function and its gradient.

    Args:
        fun: Function that returns a number: a floating-point array without axes.
        argnums: Positions of the arguments to differentiate by. These may be numbers, arrays, and
            tuples, lists and dicts of arrays.
        has_aux: Whether `fun` returns a pair, of which the second part is not differentiated.
        holomorphic: Whether `fun` is a holomorphic function of complex numbers.

    Returns:
        Function of the same arguments that returns a pair: the result of `fun`, and the gradient in
        the structure of the argument, or a tuple of gradients if `argnums` is a tuple or list.

    >>> import tecomp.array as xp
    >>> xp.value_and_grad(lambda x: xp.sum(x * x))(xp.asarray([1.0, 2.0]))
    (Array(5., dtype=float64), Array([2., 4.], dtype=float64))
    """
    return _value_and_grad(fun, argnums, has_aux, holomorphic, "value_and_grad")


def _value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, holomorphic: bool,
    where: str,
) -> Callable[..., Any]:
    check_function(fun, where)

    def compute(*args: Any, **kwargs: Any) -> Any:
        numbers = _numbers(argnums, len(args))
        call, trees, leaves = _closure(fun, args, kwargs, numbers, where)
        found = _Linearization(call, leaves, where, has_aux)
        seed = _seed(found.value(has_aux), where, holomorphic)
        gradients = replace_leaves(trees, found.pull_back([seed]))
        several = isinstance(argnums, tuple | list)
        return found.result, tuple(gradients) if several else gradients[0]

    return update_wrapper(compute, fun, updated=())


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the gradient of a function.

    Args:
        fun: Function that returns a number: a floating-point array without axes.
        argnums: Positions of the arguments to differentiate by. These may be numbers, arrays, and
            tuples, lists and dicts of arrays.
        has_aux: Whether `fun` returns a pair, of which the second part is not differentiated.
        holomorphic: Whether `fun` is a holomorphic function of complex numbers.

    Returns:
        Function of the same arguments that returns the gradient in the structure of the argument,
        or a tuple of gradients if `argnums` is a tuple or list; with `has_aux`, a pair of this and
        the second part of the result of `fun`.

    >>> import tecomp.array as xp
    >>> xp.grad(lambda x: xp.sum(x * x))(xp.asarray([1.0, 2.0]))
    Array([2., 4.], dtype=float64)
    >>> slope = xp.grad(xp.tanh)
    >>> xp.grad(xp.grad(xp.sin))(0.5)
    Array(-0.47942554, dtype=float64)
    """
    both = _value_and_grad(fun, argnums, has_aux, holomorphic, "grad")

    def compute(*args: Any, **kwargs: Any) -> Any:
        result, gradient = both(*args, **kwargs)
        return (gradient, result[1]) if has_aux else gradient

    return update_wrapper(compute, fun, updated=())


def _check_alike(leaves: Sequence[Any], expected: Sequence[Array], where: str, name: str) -> None:
    """Check the types of cotangents or tangents."""
    found = [_type_of(leaf) for leaf in leaves]
    types = [_type_of(array) for array in expected]
    if found != types:
        raise ArrayTypeError(
            "{where}: {subject} are {found}, but must have the types {expected}",
            where=where, subject=name, found=tuple(found), expected=tuple(types),
        )


def _type_of(value: Any) -> str:
    """Return shape and dtype of an array, or the name of another type."""
    if not isinstance(value, Array):
        return type(value).__name__
    return "x".join([*map(str, value.shape), value._node.type.dtype])


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute a function, and return the function from cotangents of its result to its arguments.

    Args:
        fun: Function of arrays, also in tuples, lists and dicts.
        primals: Arguments of `fun`.
        has_aux: Whether `fun` returns a pair, of which the second part is not differentiated.

    Returns:
        Result of `fun`, and a function from a cotangent in the structure of the result to a tuple
        with a cotangent for each argument; with `has_aux` also the second part of the result.

    Raises:
        ArrayTypeError: If an argument is not a floating-point array, or an operation has no
            derivative.

    >>> import tecomp.array as xp
    >>> value, pull = xp.vjp(lambda x: 3.0 * x, xp.asarray([1.0, 2.0]))
    >>> pull(xp.asarray([1.0, 10.0]))
    (Array([ 3., 30.], dtype=float64),)
    """
    where = "vjp"
    check_function(fun, where)
    call, trees, leaves = _closure(fun, primals, {}, range(len(primals)), where)
    found = _Linearization(call, leaves, where, has_aux)

    def pull(cotangents: Any) -> tuple[Any, ...]:
        given = leaves_of(cotangents)
        _check_alike(given, found.outputs, where, "the cotangents")
        return tuple(replace_leaves(trees, found.pull_back(given)))

    if has_aux:
        return found.result[0], pull, found.result[1]
    return found.result, pull


def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Compute a function and its derivative along tangents of its arguments.

    Args:
        fun: Function of arrays, also in tuples, lists and dicts.
        primals: Arguments of `fun`.
        tangents: Tangent of each argument, in its structure.
        has_aux: Whether `fun` returns a pair, of which the second part is not differentiated.

    Returns:
        Result of `fun`, and its derivative; with `has_aux` also the second part of the result.

    Raises:
        ArrayTypeError: If an argument is not a floating-point array, the tangents have other types
            than the arguments, or an operation has no derivative.

    >>> import tecomp.array as xp
    >>> xp.jvp(xp.sin, (xp.asarray(0.0),), (xp.asarray(2.0),))
    (Array(0., dtype=float64), Array(2., dtype=float64))
    """
    where = "jvp"
    check_function(fun, where)
    call, _, leaves = _closure(fun, primals, {}, range(len(primals)), where)
    given = [_inexact(leaf, where) for leaf in leaves_of(list(tangents))]
    _check_alike(given, leaves, where, "the tangents")
    found = _Linearization(call, leaves, where, has_aux)
    # The cotangents of the inputs are a linear function of those of the outputs; the derivative is
    # the transpose of this function.
    back = _Linearization(
        lambda *cotangents: found.pull_back(cotangents),
        [zeros(y._node.type) for y in found.outputs], where, False)
    derivatives = replace_leaves(found.value(has_aux), back.pull_back(given))
    if has_aux:
        return found.result[0], derivatives, found.result[1]
    return found.result, derivatives


def jacobian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of a function.

    Args:
        fun: Function of arrays, also in tuples, lists and dicts.
        argnums: Positions of the arguments to differentiate by.
        has_aux: Whether `fun` returns a pair, of which the second part is not differentiated.
        holomorphic: Whether `fun` is a holomorphic function of complex numbers.

    Returns:
        Function of the same arguments that returns, in the structure of the result and within it in
        that of the arguments, arrays of shape `(*result.shape, *argument.shape)`.

    >>> import tecomp.array as xp
    >>> xp.jacobian(lambda x: x[:2] * x[2])(xp.asarray([1.0, 2.0, 3.0]))
    Array([[3., 0., 1.],
           [0., 3., 2.]], dtype=float64)
    """
    where = "jacobian"
    check_function(fun, where)

    def compute(*args: Any, **kwargs: Any) -> Any:
        numbers = _numbers(argnums, len(args))
        call, trees, leaves = _closure(fun, args, kwargs, numbers, where)
        found = _Linearization(call, leaves, where, has_aux)
        rows = []
        for k, output in enumerate(found.outputs):
            if (output._node.type.dtype in COMPLEX) is not holomorphic:
                _seed(output[(0,) * output.ndim], where, holomorphic)
            blocks = _rows_of_jacobian(found, k)
            gradients = replace_leaves(trees, [
                reshape(block, (*output.shape, *leaf.shape))
                for block, leaf in zip(blocks, leaves, strict=True)
            ])
            rows.append(tuple(gradients) if isinstance(argnums, tuple | list) else gradients[0])
        result = replace_leaves(found.value(has_aux), rows)
        return (result, found.result[1]) if has_aux else result

    return update_wrapper(compute, fun, updated=())


def _rows_of_jacobian(found: _Linearization, k: int) -> list[Array]:
    """Return the cotangents of the inputs for each element of an output."""
    output = found.outputs[k]
    size = prod(output.shape)

    def pull(row: Array) -> list[Array]:
        cotangents = [zeros(y._node.type) for y in found.outputs]
        cotangents[k] = reshape(row, output.shape)
        return found.pull_back(cotangents)

    rows = cast(eye(size, dtype=output.dtype, device=output.device), output._node.type.dtype)
    blocks: list[Array] = vmap(pull)(rows)
    return blocks


def hessian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the second derivatives of a function.

    Args:
        fun: Function of arrays, also in tuples, lists and dicts.
        argnums: Positions of the arguments to differentiate by.
        has_aux: Whether `fun` returns a pair, of which the second part is not differentiated.
        holomorphic: Whether `fun` is a holomorphic function of complex numbers.

    Returns:
        Function of the same arguments that returns the Jacobian of the Jacobian.

    >>> import tecomp.array as xp
    >>> xp.hessian(lambda x: x[0] * x[0] * x[1])(xp.asarray([1.0, 2.0]))
    Array([[4., 2.],
           [2., 0.]], dtype=float64)
    """
    first = jacobian(fun, argnums, has_aux, holomorphic)
    return jacobian(first, argnums, has_aux, holomorphic)


def stop_gradient(x: Any) -> Any:
    """Return a value whose derivative is 0.

    Args:
        x: Array, also in tuples, lists and dicts.

    >>> import tecomp.array as xp
    >>> xp.grad(lambda x: x * xp.stop_gradient(x))(3.0)
    Array(3., dtype=float64)
    """
    return map_leaves(lambda leaf: hold(leaf) if isinstance(leaf, Array) else leaf, x)


class custom_vjp:  # noqa: N801  a decorator, named as in JAX
    """Function of arrays with a derivative of the user.

    Attributes:
        fun: Function.

    Args:
        fun: Function of arrays, also in tuples, lists and dicts.
        nondiff_argnums: Positions of arguments that are not differentiated, and that the derivative
            takes before its other arguments.

    >>> import tecomp.array as xp
    >>> @xp.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda residuals, g: (xp.clip(g, -1.0, 1.0),))
    >>> xp.grad(lambda x: 5.0 * clipped(x))(2.0)
    Array(1., dtype=float64)
    """

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        check_function(fun, "custom_vjp")
        self.fun = fun
        self.nondiff_argnums = tuple(nondiff_argnums)
        self._rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._running: set[int] = set()
        update_wrapper(self, fun)

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Define the derivative.

        Args:
            fwd: Function of the same arguments that returns the result and residuals.
            bwd: Function of the residuals and of the cotangent of the result that returns a tuple
                with the cotangent of each argument; None means zeros.

        >>> import tecomp.array as xp
        >>> double = xp.custom_vjp(lambda x: 2.0 * x)
        >>> double.defvjp(lambda x: (2.0 * x, ()), lambda residuals, g: (7.0 * g,))
        >>> xp.grad(double)(1.0)
        Array(7., dtype=float64)
        """
        self._rules = fwd, bwd

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        thread = get_ident()
        if self._rules is None or not is_differentiated() or thread in self._running:
            return self.fun(*args)
        fwd, bwd = self._rules
        self._running.add(thread)  # `fwd` may call the function for its result
        try:
            result, residuals = fwd(*args)
        finally:
            self._running.discard(thread)
        fixed = [args[k] for k in self.nondiff_argnums]
        rest = [arg for k, arg in enumerate(args) if k not in self.nondiff_argnums]
        saved_leaves = leaves_of(residuals)
        outputs, inputs = leaves_of(result), leaves_of(rest)
        arrays = [leaf for leaf in inputs if isinstance(leaf, Array)]
        saved = [leaf for leaf in saved_leaves if isinstance(leaf, Array)]

        def back(values: Sequence[Array], gs: Sequence[Array]) -> list[Array | None]:
            remaining = iter(values)
            known = [next(remaining) if isinstance(leaf, Array) else leaf for leaf in saved_leaves]
            found = bwd(*fixed, replace_leaves(residuals, known), replace_leaves(result, gs))
            if not isinstance(found, tuple | list) or len(found) != len(rest):
                raise ArrayTypeError(
                    "custom_vjp: the derivative must return a tuple with a cotangent for each of "
                    "{count} arguments, got {found!r}",
                    count=len(rest), found=type(found).__name__,
                )
            parts: list[Array | None] = []
            for part, arg in zip(found, rest, strict=True):
                pairs = zip(_spread(part, arg), leaves_of(arg), strict=True)
                parts += [g for g, x in pairs if isinstance(x, Array)]
            return parts

        call = CustomCall(back, len(outputs), len(saved))
        nodes = [x._node for x in (*outputs, *saved, *arrays)]
        return replace_leaves(result, map(from_node, record_custom(call, nodes)))


def _spread(part: Any, tree: Any) -> list[Any]:
    """Return the cotangent of each leaf of an argument; None means zeros of a part."""
    if part is None:
        return [None] * len(leaves_of(tree))
    if isinstance(tree, dict):
        return [g for key, item in tree.items() for g in _spread(part[key], item)]
    if isinstance(tree, list | tuple):
        return [g for pair in zip(part, tree, strict=True) for g in _spread(*pair)]
    return [] if tree is None else [part]
