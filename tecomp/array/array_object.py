"""The `Array` class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np

from tecomp.array.graph.evaluate import MIN_OPERATIONS, SLICED, data_of, flush_if_long, flush_parts
from tecomp.array.graph.node import (
    Buffer,
    Node,
    is_created,
    local_type,
    materialized_node,
    record,
    traces,
)
from tecomp.array.graph.views import apply_view
from tecomp.array.indexing.aliasing import (
    IndexedView,
    MovedView,
    Place,
    ViewRelation,
    register_view,
    replace_node,
    write_through,
)
from tecomp.array.indexing.getitem import has_ellipsis, is_plain, select_at
from tecomp.array.indexing.keys import freeze_key
from tecomp.array.indexing.setitem import NodeHolder, assign
from tecomp.array.interop.exports import (
    COPIED_BYTES,
    as_numpy,
    device_buffer_of,
    dlpack_device_of,
    dlpack_of,
    html_of,
    namespace_of,
    on_device,
    text_of,
)
from tecomp.array.interop.numpy_dispatch import (
    METHODS,
    call_numpy_function,
    describe_method,
    ufunc_of,
    unsupported_method_error,
)
from tecomp.array.validation import check_of_one_process
from tecomp.array.weak_scalars import (
    POWER,
    Scalar,
    record_with_booleans,
    record_with_scalar,
    simplify_power,
    weak_scalar,
)
from tecomp.drawing.drawable import Drawable
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.lazy_imports import LazyMethod, load_upward
from tecomp.ptensor.devices import device_name, is_apart
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.elementwise import FUNCTIONS
from tecomp.ptensor.operations.linear_algebra import MatMul
from tecomp.ptensor.operations.manipulation import PermuteDims
from tecomp.ptensor.types import COMPLEX, PTensorType, Shape, numpy_dtype

Methods: TypeAlias = "tuple[Callable[[Array, Any], Array], ...]"


def _binary(op: PTensorOp) -> Methods:
    forward = _forward(op)
    return forward, _reflected(op), _inplace(op, forward)


def _forward(op: PTensorOp) -> Callable[[Array, Any], Any]:
    where = op.where

    def forward(self: Array, other: object) -> Any:
        try:
            if isinstance(other, Array):
                return from_node(record(op, self._node, other._node))
            node = record_with_scalar(op, self._node, other, where)
        except ArrayTypeError as error:
            second = node_or_weak_scalar(self._node.type, other, where, "x2")
            node = record_with_booleans(op, self._node, second, error)
        return _foreign(self, other, where, forward) if node is None else from_node(node)

    return forward


def _reflected(op: PTensorOp) -> Callable[[Array, Any], Any]:
    where = op.where

    def reflected(self: Array, other: object) -> Any:
        node = weak_scalar(self._node.type, other, where)
        if node is None:
            return _foreign(self, other, where, reflected)
        try:
            return from_node(record(op, node, self._node))
        except ArrayTypeError as error:
            return from_node(record_with_booleans(op, node, self._node, error))

    return reflected


def _inplace(op: PTensorOp, forward: Callable[[Array, Any], Any]) -> Callable[[Array, Any], Any]:
    where = op.where

    def inplace(self: Array, other: object) -> Any:
        while True:
            before = NodeHolder(self._node)  # drops its reference before memory is written
            result = forward(self, other)
            if not isinstance(result, Array):
                return NotImplemented
            new, old = result._node.type, before._node.type
            if new.shape != old.shape or new.dtype != old.dtype:
                raise ArrayTypeError(
                    "{where}: the in-place result has type {new}, but the array has type {old}; "
                    "write x = x + y instead of x += y",
                    where=where, new=new, old=old,
                )
            if not old.shape and self._place is None and is_created(self):
                return result  # a number: other names for it keep its value, as in NumPy
            if replace_node(self, before, result._node):  # False after a concurrent write
                return self

    return inplace


def _foreign(self: Array, other: object, where: str, operator: Callable[..., Any]) -> Any:
    """Apply an operator to a sequence; return NotImplemented for all other foreign operands.

    Raises:
        ArrayTypeError: If the operand is a NumPy array, which would otherwise compute the result.
    """
    if isinstance(other, np.ndarray):
        raise ArrayTypeError(
            "{where}: cannot combine a tecomp array with a NumPy array of dtype {dtype} and shape "
            "{shape}; convert it with xp.asarray(y), or use NumPy for both operands, np.asarray(x)",
            kind="not-an-array", where=where, dtype=other.dtype, shape=other.shape,
        )
    if isinstance(other, list | tuple):
        return operator(self, _like(self, other))
    return NotImplemented


def _like(array: Array, values: object) -> Array:
    """Convert a sequence or a NumPy array to an array on the device and the team of an array."""
    device, team = array._node.type.device, array._node.type.team
    converted: Array = namespace_of(None).asarray(values, device=device, team=team)
    return converted


def _unary(op: PTensorOp) -> Callable[[Array], Array]:
    def method(self: Array) -> Array:
        return from_node(record(op, self._node))

    return method


class Array(Drawable):
    """Array of the array-API standard.

    Shape, dtype and device are known immediately, so errors are raised at the call that causes
    them. Elements are computed on demand, with as few kernels as possible.

    `picture()` draws dtype, device and layout, shards, and pending kernels. Drawing evaluates
    nothing.

    Source:
        The Python array API standard, "array object".

    >>> import tecomp.array as xp
    >>> x = xp.reshape(xp.arange(6, dtype=xp.float32), (2, 3))
    >>> x.shape, x.ndim, x.size, x.dtype, x.device
    ((2, 3), 2, 6, dtype('float32'), 'cpu')
    >>> x.T.shape, xp.ones((5, 2, 3)).mT.shape
    ((3, 2), (5, 3, 2))
    >>> x.team, x.partition, x.layout
    (None, None, None)
    >>> x * 2 + 1
    Array([[ 1.,  3.,  5.],
           [ 7.,  9., 11.]], dtype=float32)
    >>> "Operations" in xp.sum(x + 1.0).picture()
    True
    """

    __slots__ = ("__weakref__", "_node", "_place")
    _drawn_by: ClassVar[str] = "array:draw_array"
    _node: Node
    _place: Place | None

    def __init__(self) -> None:
        raise ArrayTypeError(
            "Array() cannot be called directly; create arrays with xp.asarray, xp.zeros or other "
            "creation functions"
        )

    @property
    def shape(self) -> Shape:
        """Size of each axis."""
        return self._node.type.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._node.type.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._node.type.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return numpy_dtype(self._node.type.dtype)

    @property
    def device(self) -> str:
        """Name of the device that stores the elements."""
        return self._node.type.device or "cpu"

    @property
    def team(self) -> int | None:
        """Number of the team over which the array is distributed; None without a team."""
        return self._node.type.team

    @property
    def partition(self) -> Any:
        """Owner of each element, a `dist.Partition`; None without a team."""
        return None if self.team is None else on_teams().partition_of_node(self._node)

    def to_local(self) -> Array:
        """Return the shard of this process as an array without a team.

        Without a team, return the array itself.

        >>> import tecomp.array as xp
        >>> x = xp.ones(4)
        >>> x.to_local() is x
        True
        """
        return self if self.team is None else from_node(on_teams().local_part(self._node))

    @property
    def layout(self) -> Any:
        """Layout of the elements in device memory; None on a CPU.

        The layout is given at creation or derived by the operation: a `tecomp.StickLayout` on a
        machine with sticks. Complex numbers are pairs along a last axis of size 2. For a
        distributed array, this is the layout of the local shard. Pending operations are evaluated.
        """
        return device_buffer_of(self.to_local()._node).layout if is_apart(self.device) else None

    def device_tensor_layout(self) -> Any:
        """Return `layout`, under the name that torch-spyre gives to this method.

        >>> import tecomp.array as xp
        >>> x = xp.zeros((70, 100), dtype="float16", device="stick128")
        >>> layout = x.device_tensor_layout()
        >>> layout.device_size, layout.dim_map, layout.format.name, layout.device_dtype.name
        ([2, 128, 64], [1, 0, 1], 'Dense', 'SEN169_FP16')
        """
        return self.layout

    def _scalar(self, kind: str) -> Any:
        if self._node.type.shape:
            raise ArrayTypeError(
                "{function}(x): x has shape {shape}, but only an array with 0 axes converts to a "
                "scalar; select an element, x[0]",
                function=kind, shape=self.shape,
            )
        if kind in ("int", "float") and self._node.type.dtype in COMPLEX:
            raise ArrayTypeError(
                "{function}(x): cannot convert dtype {dtype}; extract a part with xp.real(x), or "
                "use complex(x)",
                function=kind, dtype=self.dtype,
            )
        return data_of(self._node)[()].item()

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise ArrayTypeError(
                "index(x): x must have an integer dtype, got {dtype}",
                dtype=self.dtype,
            )
        return int(self._scalar("index"))

    def __format__(self, spec: str) -> str:
        return format(self._scalar("format"), spec) if spec else str(self)

    def __hash__(self) -> int:
        if self.shape:
            raise TypeError(f"unhashable array of shape {self.shape}; convert it with x.tolist()")
        return hash(self._scalar("hash"))

    def __contains__(self, value: object) -> bool:
        found = self == value
        return bool(namespace_of(None).any(found)) if isinstance(found, Array) else found

    def __round__(self, digits: int = 0) -> Any:
        return self.round(digits)

    def __divmod__(self, other: Any) -> tuple[Array, Array]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Array, Array]:
        return other // self, other % self

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes that do not exist. NumPy probes `__array_interface__` and other
        # protocols on each conversion, so the names of the namespace are listed once.
        raise unsupported_method_error(name, _functions())

    def __len__(self) -> int:
        if not self.shape:
            raise ArrayTypeError("len(x): x has 0 axes and therefore no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise ArrayTypeError("iter(x): cannot iterate over an array with 0 axes")
        return (self[k] for k in range(self.shape[0]))

    def __getitem__(self, key: Any, /) -> Array:
        base_node = self._node
        if base_node.pending > SLICED:
            flush_parts(base_node)
        frozen_key = freeze_key(key, Array, base_node.type)
        node = select_at(base_node, frozen_key)
        if is_plain(frozen_key) and (node.type.shape or has_ellipsis(frozen_key)):
            return part_of(self, base_node, IndexedView(frozen_key, base_node.type), node)
        return from_node(node)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        if isinstance(value, list | tuple | np.ndarray):
            value = _like(self, value)
        value_node = node_or_weak_scalar(self._node.type, value, "x[...] = value", "value")
        frozen_key = freeze_key(key, Array, self._node.type)
        write_through(self, lambda holder: assign(holder, frozen_key, value_node))
        if self._node.pending > MIN_OPERATIONS:
            flush_if_long(self._node)

    @property
    def T(self) -> Array:  # noqa: N802  the standard's name
        """Array with its axes in reverse order, as a view."""
        return permuted_view(self, PermuteDims(tuple(range(self.ndim))[::-1]))

    @property
    def mT(self) -> Array:  # noqa: N802  the standard's name
        """Matrices with their last two axes exchanged, as a view."""
        if self.ndim < 2:
            raise ArrayValueError(
                "x.mT: x must have at least 2 axes, got shape {shape}",
                kind="array-shapes", shape=self.shape,
            )
        rank = self.ndim
        return permuted_view(self, PermuteDims((*range(rank - 2), rank - 1, rank - 2)))

    def to_device(self, device: Any, /, *, stream: Any = None, layout: Any = None) -> Array:
        """Return the array on a device, copied if device or layout differ.

        Args:
            device: Name of the device.
            stream: None; streams are not supported.
            layout: Layout in device memory, a `tecomp.Layout`. Default: the default layout of the
                device.

        Raises:
            ArrayTypeError: If `layout` is not a layout.
            ArrayValueError: If the device is unknown or does not support the layout, or a stream is
                given.

        >>> import tecomp.array as xp
        >>> xp.ones(3, dtype=xp.float32).to_device("stick128").device
        'stick128'
        """
        if stream is not None:
            raise ArrayValueError(
                "to_device: stream must be None, got {stream!r}; tecomp devices do not have "
                "streams",
                stream=stream,
            )
        target_device = device_name(device, "to_device")
        if layout is None and target_device == self.device:
            return self
        if layout is not None and self.team is not None:
            check_of_one_process(layout, "to_device")
        return from_node(on_device(self._node, target_device, layout))

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        return namespace_of(api_version)

    def __dlpack__(
        self, /, *, stream: Any = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> Any:
        return dlpack_of(self._node, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack_device_of(self.device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Buffer:
        if copy is None and self.size * self.dtype.itemsize <= COPIED_BYTES:
            copy = True
        return as_numpy(self._node, dtype, copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        for value in inputs:
            if isinstance(value, np.ndarray):
                _foreign(self, value, ufunc.__name__, ufunc)
        return ufunc_of(ufunc, method, options, namespace_of(None))(*inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: Any, options: Any
    ) -> Any:
        return call_numpy_function(function, args, options, namespace_of(None), Array)

    def __copy__(self) -> Array:
        return from_node(self._node)  # nodes are immutable, so writes do not affect the copy

    def __deepcopy__(self, _: object) -> Array:
        return from_node(self._node)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle all elements, because the reader may not belong to the team.
        ptype = self._node.type
        layout = None if ptype.team is not None or self._node.stored is None else self.layout
        return _restore, (data_of(self._node), local_type(ptype, ptype.shape), layout)

    def __repr__(self) -> str:
        return text_of(data_of(self._node), self.device)

    def __str__(self) -> str:
        return str(data_of(self._node))

    def _repr_html_(self) -> str:
        return html_of(data_of(self._node), self.device)

    __neg__ = _unary(FUNCTIONS["negative"])
    __pos__ = _unary(FUNCTIONS["positive"])
    __abs__ = _unary(FUNCTIONS["abs"])
    __invert__ = _unary(FUNCTIONS["bitwise_invert"])
    __add__, __radd__, __iadd__ = _binary(FUNCTIONS["add"])
    __sub__, __rsub__, __isub__ = _binary(FUNCTIONS["subtract"])
    __mul__, __rmul__, __imul__ = _binary(FUNCTIONS["multiply"])
    __truediv__, __rtruediv__, __itruediv__ = _binary(FUNCTIONS["divide"])
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary(FUNCTIONS["floor_divide"])
    __mod__, __rmod__, __imod__ = _binary(FUNCTIONS["remainder"])
    __matmul__, __rmatmul__, __imatmul__ = _binary(MatMul())
    __pow__, __rpow__, __ipow__ = _binary(FUNCTIONS["pow"])
    __and__, __rand__, __iand__ = _binary(FUNCTIONS["bitwise_and"])
    __or__, __ror__, __ior__ = _binary(FUNCTIONS["bitwise_or"])
    __xor__, __rxor__, __ixor__ = _binary(FUNCTIONS["bitwise_xor"])
    __lshift__, __rlshift__, __ilshift__ = _binary(FUNCTIONS["bitwise_left_shift"])
    __rshift__, __rrshift__, __irshift__ = _binary(FUNCTIONS["bitwise_right_shift"])
    __eq__ = _forward(FUNCTIONS["equal"])
    __ne__ = _forward(FUNCTIONS["not_equal"])
    __lt__ = _forward(FUNCTIONS["less"])
    __le__ = _forward(FUNCTIONS["less_equal"])
    __gt__ = _forward(FUNCTIONS["greater"])
    __ge__ = _forward(FUNCTIONS["greater_equal"])


for _name in METHODS:
    setattr(Array, _name, LazyMethod(
        _name, lambda name: load_upward("numpy.methods")(name), describe_method(_name)))


@cache
def _functions() -> frozenset[str]:
    """Return the names of the namespace."""
    return frozenset(dir(namespace_of(None)))


def on_teams() -> Any:
    """Return the module that creates distributed arrays.

    The import is lazy, because programs without a team do not need the communication packages.
    """
    import tecomp.array.distributed.creation as creation

    return creation


_new = Array.__new__


def from_node(node: Node) -> Array:
    """Return a new array for a node."""
    if node.pending > MIN_OPERATIONS:
        flush_if_long(node)
    array = _new(Array)
    array._node, array._place = node, None
    if traces:
        traces.note_array(array)
    return array


def part_of(base: Array, base_node: Node, view: ViewRelation, node: Node) -> Array:
    """Create an array that shares its elements with the array from which it is taken.

    Args:
        base: Array that is viewed.
        base_node: Node of `base` when the view was taken.
        view: View operation.
        node: Node of the new array.
    """
    part = from_node(node)
    register_view(part, base, view, base_node)
    return part


def permuted_view(array: Array, op: PTensorOp) -> Array:
    """Create a view of all elements with another shape or axis order."""
    base_node = array._node
    return part_of(array, base_node, MovedView(op, base_node.type), apply_view(op, base_node))


def _restore(data: Buffer, ptype: PTensorType, layout: Any = None) -> Array:
    """Restore an array from its pickled state."""
    node = materialized_node(data, ptype)
    return from_node(node if layout is None else on_device(node, ptype.device or "cpu", layout))


def node_of(array: object, where: str, arg_name: str = "x") -> Node:
    """Return the node of an array.

    Raises:
        ArrayTypeError: If the argument is not an array.
    """
    if isinstance(array, Array):
        return array._node
    raise ArrayTypeError(
        "{where}: {subject} must be an array of this namespace, got {type}; convert it with "
        "xp.asarray(...)",
        kind="not-an-array", where=where, subject=arg_name, type=type(array).__name__,
    )


def apply_binary(op: PTensorOp, x1: Array | Scalar, x2: Array | Scalar) -> Array:
    """Record an operation on two arrays, or on an array and a Python scalar.

    Raises:
        ArrayTypeError: If an operand is neither an array nor a number, or both are numbers.
    """
    if op is POWER and isinstance(x1, Array) and (shorter := simplify_power(x1._node, x2)):
        return from_node(shorter)
    nodes = nodes_of_pair(x1, x2, op.where)
    try:
        return from_node(record(op, *nodes))
    except ArrayTypeError as error:
        return from_node(record_with_booleans(op, *nodes, error))


def nodes_of_pair(x1: Array | Scalar, x2: Array | Scalar, where: str) -> tuple[Node, Node]:
    """Return the nodes of two operands, of which one may be a Python scalar.

    Raises:
        ArrayTypeError: If an operand is neither an array nor a number, or both are numbers.
    """
    if isinstance(x1, Array):
        return x1._node, node_or_weak_scalar(x1._node.type, x2, where, "x2")
    second = node_of(x2, where, "x2")
    return node_or_weak_scalar(second.type, x1, where, "x1"), second


def node_or_weak_scalar(ptype: PTensorType, value: object, where: str, arg_name: str) -> Node:
    """Return the node of an array, or of a Python scalar converted to the dtype of an array type.

    Raises:
        ArrayTypeError: If the value is neither an array nor a number.
    """
    if isinstance(value, Array):
        return value._node
    node = weak_scalar(ptype, value, where)
    if node is not None:
        return node
    raise ArrayTypeError(
        "{where}: {subject} must be an array of this namespace or a Python scalar, got {class_}; "
        "convert it with xp.asarray(...)",
        kind="not-an-array", where=where, subject=arg_name, class_=value.__class__.__name__,
    )
