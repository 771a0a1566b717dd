"""Compatibility with TVM: class names, tag scopes, and messages for unsupported names."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from tecomp.compute.expr_like import Value, value_of
from tecomp.compute.intrinsics import cast
from tecomp.compute.operators import (
    add,
    all,
    any,
    div,
    floordiv,
    floormod,
    logical_not,
    multiply,
    subtract,
    truncmod,
)
from tecomp.compute.reduce import max, min
from tecomp.compute.shape_validation import name_of
from tecomp.errors import DefinitionError, MissingError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.expr_nodes import compare
from tecomp.ir.nodes.operators import CmpOp

_LOOPS = (
    "TensorIR is not supported; define loops with te.create_schedule, and print, read or evaluate "
    "them with tecomp.lower"
)
_STATEMENTS = "TensorIR is not supported; write statements in te.extern, with te.ir_builder"
_ELEMENTS = (
    "elements are computed by functions of te, and by C functions with te.call_pure_extern; call "
    "other functions on tensors, with te.call_packed or te.call_extern in te.extern or an "
    "intrinsic"
)
_TRACE = (
    "kernels cannot print; make the value an output, or run tecomp.evaluate of tecomp.lower step "
    "by step"
)
_FIXED_POINT = (
    "topi.fixed_point_multiply multiplies tensors by a number; in an expression widen with "
    ".astype, multiply and shift"
)
_TUNERS = (
    "tune schedules with tecomp.tune; tecomp.build and tecomp.compile use what it has recorded"
)
_PLACES = (
    "a kernel runs on the machine that calls it; select the target with target= of tecomp.build"
)
_PASSES = (
    "passes cannot be replaced; use tecomp.lower(..., stop_after=) to get the function after "
    "any pass"
)

_SCHEDULES = "use tecomp.schedules.auto or topi.generic, which schedule for all targets"
_PACKED = "pack channels with topi.layout_transform, or with transform_layout in a schedule"
_HELPERS = (
    "these are internal to TVM's operators; use shape, which has ints for static extents, and te "
    "and tir for other extents"
)
_FORMULAS = "write it with te.compute, or call a function on tensors with te.call_packed"

ABSENT: Mapping[str, Mapping[str, str]] = MappingProxyType({
    "tecomp.te": {
        "create_prim_func": _LOOPS,
        "create_relax_prim_func": _LOOPS,
        "extern_primfunc": _STATEMENTS,
        "trace": _TRACE,
        "q_multiply_shift": _FIXED_POINT,
        "SpecializedCondition":
            "specialization conditions are not supported; build a kernel for frequent constant "
            "sizes",
    },
    "tecomp.compute.hybrid": {
        **dict.fromkeys(("build", "HybridModule"),
                        "build a kernel with tecomp.build, and show it with kernel.source()"),
        **dict.fromkeys(("parse", "source_to_op"),
                        "call the result of te.hybrid.script with tensors"),
    },
    "tecomp.tir": {
        **dict.fromkeys(("PrimFunc", "Schedule", "For", "BufferLoad", "BufferStore", "Evaluate"),
                        _LOOPS),
        **dict.fromkeys(("stmt_functor", "transform", "analysis"), _PASSES),
        **dict.fromkeys(("call_intrin", "call_pure_intrin", "call_llvm_intrin",
                         "call_llvm_pure_intrin"), _ELEMENTS),
        "trace": _TRACE,
        **dict.fromkeys(("q_multiply_shift", "q_multiply_shift_per_axis"), _FIXED_POINT),
        "vscale": "scalable vectors are not supported; split by a constant",
    },
    "tecomp": {
        "nd": "kernels take NumPy arrays, and write to them: use numpy.array, numpy.empty",
        **dict.fromkeys(("cpu", "cuda", "device", "context", "runtime"), _PLACES),
        **dict.fromkeys(("autotvm", "auto_scheduler", "meta_schedule"), _TUNERS),
        **dict.fromkeys(("transform", "IRModule", "script"), _PASSES),
        **dict.fromkeys(("relay", "relax"), "compile programs of te tensors with tecomp.compile"),
        "contrib": "call libraries by name: tecomp.register_func and te.call_packed",
        "testing": "compare arrays with numpy.testing",
    },
    "tecomp.topi": {
        **dict.fromkeys(("x86", "cuda", "gpu", "arm_cpu", "mali", "rocm", "hexagon"), _SCHEDULES),
        **dict.fromkeys(("vision", "stft"), _FORMULAS),
        "random": "create random numbers with np.random.default_rng(seed), and pass them as inputs",
        "sparse": "use topi.nn.sparse_dense to multiply by CSR and BSR matrices, "
                  "topi.nn.sparse_transpose to transpose",
        **dict.fromkeys(("utils", "get_const_tuple"), _HELPERS),
    },
    "tecomp.topi.nn": {
        **dict.fromkeys(("conv2d_NCHWc_int8", "depthwise_conv2d_NCHWc",
                         "group_conv2d_NCHWc_int8"), _PACKED),
        **dict.fromkeys(("deformable_conv2d_nchw", "bitserial_conv2d_nchw", "bitserial_dense",
                         "correlation_nchw"), _FORMULAS),
        **dict.fromkeys(("sparse_conv2d", "sparse_add", "sparse_dense_alter_layout"),
                        "use topi.nn.sparse_dense to multiply by CSR and BSR matrices, "
                        "topi.sparse_to_dense to convert to dense"),
        **dict.fromkeys(("utils", "get_pad_tuple", "get_pad_tuple1d", "get_pad_tuple3d"),
                        "use padding= of topi's operators: one number, one per axis, one per end, "
                        "or 'SAME'"),
        "lstm": "write its steps with te.scan",
    },
})


def unsupported_name_message(module: str, name: str) -> AttributeError:
    """Return the error for a missing name of a module, with an alternative for TVM names.

    Args:
        module: Name of the module.
        name: Missing name.
    """
    called = module.removeprefix("tecomp.compute.").removeprefix("tecomp.")
    return MissingError.of(module, called, name, ABSENT[module])


def _comparison(op: CmpOp) -> Callable[[Value, Value], Expr]:
    def made(a: Value, b: Value) -> Expr:
        """Compare `a` and `b`, and return the condition."""
        return compare(op, value_of(a), value_of(b))

    return made


def _conversion(dtype: str, value: Value) -> Expr:
    """Cast `value` to `dtype`, the same as `value.astype(dtype)`."""
    return cast(value, dtype)


And, Or, Not = all, any, logical_not
EQ, NE = _comparison(CmpOp.EQ), _comparison(CmpOp.NE)
LT, LE = _comparison(CmpOp.LT), _comparison(CmpOp.LE)
GT, GE = _comparison(CmpOp.GT), _comparison(CmpOp.GE)
Add, Sub, Mul, Div, Mod = add, subtract, multiply, div, truncmod
FloorDiv, FloorMod, Min, Max = floordiv, floormod, min, max
Cast = _conversion


_P = ParamSpec("_P")
_R = TypeVar("_R")
_CURRENT: ContextVar[TagScope | None] = ContextVar("tag_scope", default=None)


class TagScope:
    """Context manager and decorator that tags the operations defined inside."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._is_used = False
        self._token: Token[TagScope | None] | None = None

    def __enter__(self) -> TagScope:
        if (outer := _CURRENT.get()) is not None:
            raise DefinitionError(
                "te.tag_scope {tag}: nested in te.tag_scope {outer_tag}, but an operation has one "
                "tag; leave that scope first",
                tag=self.tag, outer_tag=outer.tag,
            )
        self._is_used = False
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _CURRENT.reset(self._token)
        if not self._is_used:
            warnings.warn(
                f"te.tag_scope {self.tag}: nothing was defined in it, so no operation has the tag",
                stacklevel=2,
            )

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Wrap a function so that the operations which the function defines get the tag."""

        @functools.wraps(function)
        def tagged(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with TagScope(self.tag):
                return function(*args, **kwargs)

        return tagged

    def used(self) -> str:
        """Return the tag, and record that an operation uses the scope."""
        self._is_used = True
        return self.tag


def tag_scope(tag: str) -> TagScope:
    """Return a scope that tags the operations of a `with` block or of a decorated function.

    Tags have no effect on compilation; code that inspects programs, such as a schedule library, can
    read them.

    Args:
        tag: Tag of each `te.compute`, `te.scan` and `te.extern` defined inside.

    Raises:
        DefinitionError: If scopes are nested, or an operation inside has its own tag.
        TypeMismatchError: If the tag is not a non-empty string.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((4,), name="A")
        >>> with te.tag_scope(tag="elemwise"):
        ...     B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> B.op.tag
        'elemwise'
    """
    return TagScope(name_of(tag, "te.tag_scope"))


def tag_of(tag: Any, where: str) -> str:
    """Return the tag of a new operation: its own tag, or the tag of the enclosing scope.

    Raises:
        DefinitionError: If the operation has a tag inside a tag scope, or the tag is not a string.
    """
    check_kind(tag, str, f"{where}: tag", "give a text", DefinitionError)
    scope = _CURRENT.get()
    if scope is None:
        return str(tag)
    if tag:
        raise DefinitionError(
            "{where}: tag is {tag!r}, but the enclosing te.tag_scope sets {scope_tag!r}; remove "
            "one of them",
            where=where, tag=tag, scope_tag=scope.tag,
        )
    return scope.used()
