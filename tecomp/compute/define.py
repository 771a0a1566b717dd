"""Functions that define tensors and variables: placeholder, compute, reduce_axis, var."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

from tecomp.compute.affine_index import dependent_axis
from tecomp.compute.expr_like import MAX_OPERATIONS, ExprLike, Value, operations, value_of
from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp, PlaceholderOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.shape_validation import attributes_of, dtype_of, extent_of, name_of, shape_of
from tecomp.compute.tensor import Tensor
from tecomp.compute.tensor_compute import tensor_compute
from tecomp.compute.tensor_intrin_call import TensorIntrinCall
from tecomp.compute.tvm_compat import tag_of
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import as_int, check_kind, check_list
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.operators import SizeBounds, holds
from tecomp.ir.nodes.stmt import Extent, Range
from tecomp.ir.traversal.rewrite import contains, walk
from tecomp.source_locations import user_location

Shape: TypeAlias = "Extent | Sequence[Extent]"


def placeholder(
    shape: Shape, dtype: str | None = None, name: str = "placeholder"
) -> Tensor:
    """Return an input tensor, which the caller of the kernel passes in.

    Args:
        shape: Extents in elements: ints or integer expressions of `te.var` sizes.
        dtype: Element dtype. Default: float32.
        name: Name in printed text.

    Raises:
        DefinitionError: If an extent is negative.
        TypeMismatchError: If an extent is not an integer, or the dtype does not exist.

    Example:
        >>> from tecomp import te
        >>> te.placeholder((4, 5), name="A")
        Tensor(A, shape=(4, 5), dtype=float32)
    """
    name = name_of(name, "te.placeholder")
    where = f"te.placeholder {name}"
    kind = dtype_of("float32" if dtype is None else dtype, where)
    op = PlaceholderOp(name, shape_of(shape, where), kind, user_location())
    return op.outputs[0]


@overload
def compute(
    shape: Shape,
    fcompute: Callable[..., Value | TensorIntrinCall],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor: ...


@overload
def compute(
    shape: Shape,
    fcompute: Callable[..., Sequence[Value]],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> tuple[Tensor, ...]: ...


def compute(
    shape: Shape,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """Define a tensor by an expression of its index.

    Args:
        shape: Extents in elements: ints or integer expressions of `te.var` sizes.
        fcompute: Function that is called once with one variable per axis and returns the element,
            or a tuple of elements for several tensors of this shape. Its parameters name the axes;
            a parameter with a default value is not an axis. A function of the leading axes only
            must return a call of an intrinsic, which computes tiles of the other axes.
        name: Name of the tensor in printed text.
        tag: Text stored with the operation. Default: the tag of the enclosing `te.tag_scope`.
        attrs: Attributes stored with the operation; they have no effect on compilation.
        varargs_names: Names of the axes passed to a `*indices` parameter.

    Returns:
        The tensor, or a tuple of tensors if `fcompute` returns several elements.

    Raises:
        DefinitionError: If the parameters of `fcompute` do not match the shape, the element is
            neither an element-wise expression nor a reduction, or has too many operations.
        TypeMismatchError: If `fcompute` does not return expressions, or an element contains a
            literal that its dtype cannot hold.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((4, 5), name="A")
        >>> te.compute((5, 4), lambda i, j: A[j, i] * 2, name="B").op.axis
        (i, j)
    """
    name = name_of(name, "te.compute")
    where = f"te.compute {name}"
    extents = shape_of(shape, where)
    tag, values = tag_of(tag, where), attributes_of(attrs, where)
    parameters = _parameters(fcompute, where)
    call = _tile(fcompute, parameters, extents)
    if call is not None:
        axis, intrin_call = call
        inside = extents[len(axis) :]
        return tensor_compute(name, tag, values, axis, inside, intrin_call).outputs[0]
    names = _axis_names(parameters, len(extents), varargs_names, where)
    axis = _axes(names, extents)
    body = _body(fcompute(*axis), where)
    nodes = list(walk(*body))
    _check_size(body, nodes, where)
    _check_reductions(body, nodes, where)
    _check_axes(body, nodes, axis, where)
    _check_literals(nodes, where)
    outputs = ComputeOp(name, axis, body, tag, values, user_location()).outputs
    return outputs[0] if len(outputs) == 1 else outputs


def copy_of(
    x: Tensor, name: str = "copy", attrs: Mapping[str, object] | None = None
) -> Tensor:
    """Define a tensor with the elements of `x`.

    Args:
        x: Tensor.
        name: Name of the copy.
        attrs: Attributes of the operation.

    >>> copy_of(placeholder((2, 3), name="A"), "B").shape
    (2, 3)
    """
    copy = compute(x.shape, lambda *i: x[i if i else ()], name=name, attrs=attrs)
    assert isinstance(copy, Tensor)
    return copy


def _axes(names: Sequence[str], extents: Sequence[Extent]) -> tuple[IterVar, ...]:
    return tuple([
        make_axis(n, 0, extent, IterKind.DATA) for n, extent in zip(names, extents, strict=True)
    ])


def _tile(
    fcompute: Callable[..., object], parameters: Sequence[inspect.Parameter],
    extents: Sequence[Extent],
) -> tuple[tuple[IterVar, ...], TensorIntrinCall] | None:
    """Return the outer axes and the intrinsic call of a function that computes tiles.

    The result is None if the function has a parameter for each axis, or returns something else.
    """
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind not in _POSITIONAL:
            return None
        if parameter.default is parameter.empty:
            names.append(parameter.name)
    if len(names) >= len(extents):
        return None
    axis = _axes(names, extents[: len(names)])
    result = fcompute(*axis)
    return (axis, result) if isinstance(result, TensorIntrinCall) else None


def reduce_axis(dom: object, name: str = "rv", thread_tag: str = "") -> IterVar:
    """Return a reduction axis.

    Args:
        dom: Half-open interval `(low, high)`, a `Range`, or an extent. `low` and `high` may depend
            on axes of the result or on other reduction axes. The domain of the axis is then the
            bounding interval, and reductions over the axis mask the values outside `(low, high)`.
        name: Name in printed text.
        thread_tag: Tag stored with the axis, without effect; use `s[T].bind` to bind loops.

    Raises:
        DefinitionError: If the domain ends before it begins.
        TypeMismatchError: If a bound is not an integer.

    Example:
        >>> from tecomp import te
        >>> te.reduce_axis((0, 16), name="k").extent
        16
    """
    if isinstance(name, int) and isinstance(dom, int):
        raise TypeMismatchError(
            "te.reduce_axis: name is {name}; pass both bounds as one domain, "
            "te.reduce_axis(({dom}, {name}))",
            kind="invalid-type", name=name, dom=dom,
        )
    name = name_of(name, "te.reduce_axis")
    where = f"te.reduce_axis {name}"
    check_kind(thread_tag, str, f"{where}: thread_tag", "give a text", DefinitionError)
    if isinstance(dom, list | tuple) and len(dom) == 2:
        axis = dependent_axis(name, dom[0], dom[1], where, thread_tag)
        if axis is not None:
            return axis
    low, extent = _domain(dom, where)
    return make_axis(name, low, extent, IterKind.REDUCE, thread_tag)


def _domain(dom: object, where: str) -> tuple[Extent, Extent]:
    """Return the first value and the extent of a domain."""
    if isinstance(dom, Range):
        low = extent_of(dom.min, f"{where}: the first value", least=-(2**63))
        return low, extent_of(dom.extent, f"{where}: the extent")
    if not isinstance(dom, list | tuple):
        return 0, extent_of(dom, f"{where}: the extent")
    if len(dom) != 2:
        raise DefinitionError(
            "{where}: domain must have two bounds, got {dom!r}; pass (low, high)",
            kind="extent", where=where, dom=dom,
        )
    low = extent_of(dom[0], f"{where}: the low end", least=-(2**63))
    high = extent_of(dom[1], f"{where}: the high end", least=-(2**63))
    extent = high if isinstance(low, int) and low == 0 else high - low
    if isinstance(extent, int) and extent < 0:
        raise DefinitionError(
            "{where}: domain ({low}, {high}) has a negative extent; pass (low, high) with low <= "
            "high",
            kind="extent", where=where, low=low, high=high,
        )
    return low, extent


def var(
    name: str = "tindex", dtype: str = "int32", *, minimum: int | None = None,
    maximum: int | None = None, multiple: int = 1,
) -> Var:
    """Return a variable whose value is known when the kernel is called.

    A variable in a shape is a size, bound to the shape of the array passed for the tensor. Any
    other variable is a scalar argument of the kernel.

    The compiler relies on the declared bounds: loops over a multiple of a split factor have no
    tail, for example. Each call checks them.

    Args:
        name: Name of the variable.
        dtype: Scalar dtype. Default: int32.
        minimum: Minimum. Default: 0 for variables with other bounds.
        maximum: Maximum. Default: unlimited.
        multiple: Divisor of all values.

    Raises:
        DefinitionError: If no value satisfies the bounds, or the dtype is not an integer.
        TypeMismatchError: If the dtype does not exist or has several lanes, or a bound is not an
            integer.

    >>> from tecomp import te
    >>> te.var("n"), te.var("x", "float32").dtype
    (n, 'float32')
    >>> te.var("n", minimum=1, maximum=4096, multiple=16)
    n
    """
    name = name_of(name, "te.var")
    kind = dtype_of(dtype, f"te.var {name}")
    if kind.lanes != 1:
        raise TypeMismatchError(
            "te.var {name}: dtype must be a scalar, got {dtype}",
            kind="invalid-type", name=name, dtype=kind,
        )
    if minimum is None and maximum is None and multiple == 1:
        return Var(name, kind)
    return Var(name, kind, bounds=_bounds_of(name, kind, minimum, maximum, multiple))


def _bounds_of(
    name: str, dtype: DType, minimum: object, maximum: object, multiple: object
) -> SizeBounds:
    """Return the checked bounds of a size variable."""
    where = f"te.var {name}"
    low, high, step = (
        _check_integer(f"{where}: {side}", value) for side, value in (
            ("minimum", 0 if minimum is None else minimum),
            ("maximum", _UNLIMITED if maximum is None else maximum), ("multiple", multiple))
    )
    if not dtype.is_integer:
        raise DefinitionError(
            "{where}: values of dtype {dtype} have no bounds; use int32 or int64",
            kind="invalid-value", where=where, dtype=dtype,
        )
    if low < 0 or step < 1 or -(-low // step) * step > high:
        raise DefinitionError(
            "{where}: no size is >= {minimum}, at most {maximum} and a multiple of {multiple}; "
            "give bounds with 0 <= minimum <= maximum and multiple >= 1",
            kind="invalid-value", where=where, minimum=low,
            maximum=high, multiple=step,
        )
    return SizeBounds(low, None if maximum is None else high, step)


_UNLIMITED = 2**63 - 1
"""Maximum of sizes without a declared one."""


def _check_integer(where: str, value: object) -> int:
    found = as_int(value)
    if found is None:
        raise TypeMismatchError(
            "{where} must be an integer, got {value!r}",
            kind="invalid-type", where=where, value=value,
        )
    return found


def size_var(
    name: str = "size", dtype: str = "int32", *, minimum: int | None = None,
    maximum: int | None = None, multiple: int = 1,
) -> Var:
    """Return a `te.var` for a size; as in TVM, the dtype may be any scalar dtype.

    Args:
        name: Name of the variable.
        dtype: Scalar dtype. Default: int32.
        minimum: Minimum. Default: 0 for variables with other bounds.
        maximum: Maximum. Default: unlimited.
        multiple: Divisor of all values.

    Raises:
        DefinitionError: If no value satisfies the bounds, or the dtype is not an integer.
        TypeMismatchError: If the dtype does not exist or has several lanes, or a bound is not an
            integer.

    >>> size_var("n")
    n
    """
    return var(name, dtype, minimum=minimum, maximum=maximum, multiple=multiple)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(fcompute: Callable[..., object], where: str) -> Sequence[inspect.Parameter]:
    """Return the parameters of an index function.

    Raises:
        TypeMismatchError: If `fcompute` is not callable, or its signature cannot be inspected.
    """
    # `signature` formats an object that is not callable with `repr`, which may raise any error.
    if not callable(fcompute):
        raise TypeMismatchError(
            "{where}: index function is {fcompute!r} ({type}); pass a function of the indices, "
            "such as lambda i, j: A[i, j]",
            kind="invalid-index-function", where=where, fcompute=fcompute,
            type=type(fcompute).__name__,
        )
    try:
        return list(inspect.signature(fcompute).parameters.values())
    except (TypeError, ValueError) as error:
        raise TypeMismatchError(
            "{where}: cannot inspect the parameters of {fcompute!r}; wrap it: lambda i: f(i)",
            kind="invalid-index-function", where=where, fcompute=fcompute,
        ) from error


def _axis_names(
    parameters: Sequence[inspect.Parameter],
    rank: int,
    varargs_names: Sequence[str] | None,
    where: str,
) -> tuple[str, ...]:
    """Return a name for each axis, taken from the parameters of the index function.

    Raises:
        DefinitionError: If the number of parameters does not match the number of axes.
    """
    names: list[str] = []
    takes_rest = False
    for parameter in parameters:
        takes_rest = takes_rest or parameter.kind is parameter.VAR_POSITIONAL
        # A parameter with a default captures a value, as in `lambda i, n=n: ...`.
        if parameter.default is not parameter.empty:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            raise DefinitionError(
                "{where}: the index function has the keyword-only parameter {forced}; indices are "
                "passed by position",
                kind="invalid-index-function", where=where, forced=parameter.name,
            )
        if parameter.kind in _POSITIONAL:
            names.append(parameter.name)
    if len(names) > rank or (len(names) < rank and not takes_rest):
        axes = "1 axis" if rank == 1 else f"{rank} axes"
        raise DefinitionError(
            "{where}: shape has {axes}, but the index function takes {name_count} ({names}); "
            "define one parameter per axis, or *indices",
            kind="invalid-index-function", where=where, axes=axes, name_count=len(names),
            names=", ".join(names) or "none",
        )
    if varargs_names is None:
        return (*names, *(f"i{k}" for k in range(len(names), rank)))
    return (*names, *_check_names(varargs_names, rank - len(names), where))


def _check_names(names: Sequence[str], count: int, where: str) -> Sequence[str]:
    """Return the given names of the `count` axes passed to `*indices`.

    Raises:
        DefinitionError: If the number of given names does not match the number of axes.
    """
    check_list(
        names, str, f"{where}: varargs_names",
        "pass a list with the names of the axes in *indices", DefinitionError,
    )
    if len(names) != count:
        raise DefinitionError(
            "{where}: varargs_names has {given_count} names ({varargs}), expected {free_count}, "
            "one per axis",
            kind="count-mismatch", where=where, given_count=len(names), varargs=", ".join(names),
            free_count=count,
        )
    return names


def _body(result: object, where: str) -> tuple[Expr, ...]:
    if isinstance(result, TensorIntrinCall):
        raise DefinitionError(
            "{where}: the index function returns a call of {intrin}, but takes an index for every "
            "axis; take one index for each axis outside the tiles, whose axes are the last of the "
            "shape",
            kind="intrinsic", where=where, intrin=result.intrin.name,
        )
    elements: Sequence[Any] = result if isinstance(result, list | tuple) else (result,)
    if not elements:
        raise DefinitionError(
            "{where}: index function returned no element; return at least one",
            kind="invalid-index-function", where=where,
        )
    body = []
    for value in elements:
        if not isinstance(value, Expr | ExprLike | int | float) and not hasattr(value, "dtype"):
            raise TypeMismatchError(
                "{where}: index function returned {value!r} ({type}); return an expression, a "
                "number, or a tuple of them",
                kind="invalid-index-function", where=where, value=value, type=type(value).__name__,
            )
        body.append(value_of(value))
    return tuple(body)


def _check_size(body: tuple[Expr, ...], nodes: list[Any], where: str) -> None:
    """Raise if the elements have more operations than the compiler supports.

    Raises:
        DefinitionError: If the number of operations exceeds `MAX_OPERATIONS`.
    """
    # The operations are some of the nodes, so most elements need no second traversal.
    if len(nodes) > MAX_OPERATIONS and (count := operations(*body)) > MAX_OPERATIONS:
        raise DefinitionError(
            "{where}: element has {count} operations (shared subexpressions counted once), which "
            "exceeds the limit of {most_operations} per expression; move parts to separate "
            "te.compute calls",
            kind="limit-exceeded", where=where, count=count, most_operations=MAX_OPERATIONS,
        )


def _check_reductions(body: tuple[Expr, ...], nodes: list[Any], where: str) -> None:
    """Raise if a reduction is nested in an element, or if outputs mix different reductions.

    Raises:
        DefinitionError: If a reduction is not a whole element, or the outputs are not exactly the
            values of one reduction.
    """
    if Reduce not in map(type, nodes):
        return
    reduces = [expr for expr in body if isinstance(expr, Reduce)]
    inner: list[Expr] = []
    for expr in body:
        if isinstance(expr, Reduce):
            inner += (*expr.source, expr.condition, *expr.init)
        else:
            inner.append(expr)
    if contains(Reduce, *inner):
        raise DefinitionError(
            "{where}: a reduction inside a larger expression is not supported; compute the "
            "reduction in its own te.compute, and read its tensor here",
            kind="nested-reduction", where=where,
        )
    values = len(reduces[0].source)
    if len(body) == 1 and values > 1:
        raise DefinitionError(
            "{where}: the element is value {value_index} of a reduction of {values}; return the "
            "whole tuple, and use the tensor that you need",
            kind="nested-reduction", where=where, value_index=reduces[0].value_index, values=values,
        )
    expected = [(id(reduces[0].combiner), k) for k in range(values)]
    if [(id(top.combiner), top.value_index) for top in reduces] != expected or len(body) != values:
        raise DefinitionError(
            "{where}: several outputs must be one reduction of a tuple; compute each reduction in "
            "its own te.compute, or combine a tuple with te.comm_reducer",
            kind="nested-reduction", where=where,
        )


def _check_axes(
    body: tuple[Expr, ...], nodes: list[Any], axis: tuple[IterVar, ...], where: str
) -> None:
    """Raise if the elements use axes other than their own axes and reduction axes.

    Raises:
        DefinitionError: If an element uses a foreign axis, or a reduction axis outside a reduction.
    """
    allowed = set(axis)
    for expr in body:
        if isinstance(expr, Reduce):
            allowed.update(expr.axis)
    for node in nodes:
        if not isinstance(node, IterVar) or node in allowed:
            continue
        if node.kind is IterKind.REDUCE:
            raise DefinitionError(
                "{where}: the reduction axis {node} is used outside a reduction over it; write "
                "te.sum(..., axis={node})",
                kind="unbound-variable", where=where, node=node.name,
            )
        raise DefinitionError(
            "{where}: {node} is an axis of another te.compute; use the parameters of this index "
            "function",
            kind="unbound-variable", where=where, node=node.name,
        )


def _check_literals(nodes: list[Any], where: str) -> None:
    """Raise if a literal that was not promoted does not fit its default dtype.

    Raises:
        TypeMismatchError: If the dtype of a literal cannot hold its value.
    """
    for node in nodes:
        if isinstance(node, Const) and not holds(node.dtype, node.value):
            raise TypeMismatchError(
                "{where}: the literal {node} is not representable as {dtype}; write "
                'te.const({node}, "float64")',
                kind="literal", where=where, node=node.value, dtype=node.dtype,
            )
