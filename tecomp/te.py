"""Tensor-expression API under the names of TVM's `te`; import it with `from tecomp import te`."""

from __future__ import annotations

import typing
from types import SimpleNamespace as _Names

from tecomp.compute import elementwise as _elementwise
from tecomp.compute.define import compute, placeholder, reduce_axis, size_var, var
from tecomp.compute.elementwise import *  # noqa: F403
from tecomp.compute.extern import (
    ExternOp,
    call_extern,
    call_packed,
    call_pure_extern,
    decl_buffer,
    extern,
)
from tecomp.compute.float_bits import (
    clz,
    copysign,
    exp10,
    infinity,
    ldexp,
    lower_bound,
    max_value,
    min_value,
    nextafter,
    upper_bound,
)
from tecomp.compute.intrinsics import (
    abs,
    atan2,
    cast,
    clip,
    dot,
    popcount,
    pow,
    power,
    reinterpret,
)
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation, PlaceholderOp
from tecomp.compute.operators import (
    Select,
    add,
    all,
    any,
    div,
    divide,
    floordiv,
    floormod,
    if_then_else,
    indexdiv,
    indexmod,
    likely,
    logical_not,
    multiply,
    select,
    subtract,
    truncdiv,
    truncmod,
)
from tecomp.compute.reduce import comm_reducer, max, min, prod, sum
from tecomp.compute.scan import ScanOp, scan
from tecomp.compute.statement_builder import Operand, allocate, for_range, if_stmt, stmt_seq
from tecomp.compute.tensor import Tensor, TensorSlice
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.compute.tensor_intrin import TensorIntrin, check_tensor_intrin, decl_tensor_intrin
from tecomp.compute.tvm_compat import tag_scope
from tecomp.compute.tvm_compat import unsupported_name_message as _absent
from tecomp.ir.nodes.expr import Expr, Var, const
from tecomp.ir.nodes.stmt import Stmt
from tecomp.lazy_imports import lazy_names as _lazy_names
from tecomp.poly.maps.index_map import AXIS_SEPARATOR, IndexMap
from tecomp.scheduling.schedule import Schedule, Stage, create_schedule
from tecomp.scheduling.threads import thread_axis

if typing.TYPE_CHECKING:
    from tecomp.compute import hybrid as hybrid
    from tecomp.compute import ir_builder as ir_builder
    from tecomp.compute.gradient import gradient

tensor = _Names(
    ComputeOp=ComputeOp, ExternOp=ExternOp, Operation=Operation, PlaceholderOp=PlaceholderOp,
    ScanOp=ScanOp, Tensor=Tensor, TensorSlice=TensorSlice,
)
"""Classes under the names of TVM's `te.tensor`."""

schedule = _Names(
    IterVar=IterVar, Schedule=Schedule, Stage=Stage, create_schedule=create_schedule,
)
"""Classes and functions under the names of TVM's `te.schedule`."""

__all__ = [
    "AXIS_SEPARATOR",
    "ComputeOp",
    "Expr",
    "ExternOp",
    "IndexMap",
    "IterVar",
    "Operand",
    "Operation",
    "PlaceholderOp",
    "ScanOp",
    "Schedule",
    "Select",
    "Stage",
    "Stmt",
    "Tensor",
    "TensorComputeOp",
    "TensorIntrin",
    "TensorSlice",
    "Var",
    "abs",
    "add",
    "all",
    "allocate",
    "any",
    "atan2",
    "call_extern",
    "call_packed",
    "call_pure_extern",
    "cast",
    "check_tensor_intrin",
    "clip",
    "clz",
    "comm_reducer",
    "compute",
    "const",
    "copysign",
    "create_schedule",
    "decl_buffer",
    "decl_tensor_intrin",
    "div",
    "divide",
    "dot",
    "exp10",
    "extern",
    "floordiv",
    "floormod",
    "for_range",
    "gradient",
    "if_stmt",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "ldexp",
    "likely",
    "logical_not",
    "lower_bound",
    "max",
    "max_value",
    "min",
    "min_value",
    "multiply",
    "nextafter",
    "placeholder",
    "popcount",
    "pow",
    "power",
    "prod",
    "reduce_axis",
    "reinterpret",
    "scan",
    "schedule",
    "select",
    "size_var",
    "stmt_seq",
    "subtract",
    "sum",
    "tag_scope",
    "tensor",
    "thread_axis",
    "truncdiv",
    "truncmod",
    "upper_bound",
    "var",
]
__all__ += _elementwise.__all__


if not typing.TYPE_CHECKING:
    __getattr__, __dir__ = _lazy_names(
        __name__, missing=lambda name: _absent(__name__, name))
