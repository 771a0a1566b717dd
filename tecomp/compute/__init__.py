"""Tensor expressions: tensors, operations, reductions and expressions of indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.compute.access_relations import accesses
    from tecomp.compute.expression_analysis import post_order
    from tecomp.compute.extern import ExternOp
    from tecomp.compute.iter_var import IterKind, IterVar
    from tecomp.compute.operation import ComputeOp, PlaceholderOp
    from tecomp.compute.reduce import CommReducer, Reduce
    from tecomp.compute.scan import ScanOp
    from tecomp.compute.statement_builder import LOOP_KINDS
    from tecomp.compute.tensor import Operation, Tensor, TensorLoad
    from tecomp.compute.tvm_compat import ABSENT
else:
    __getattr__, __dir__ = lazy_names(__name__, submodules=frozenset({"hybrid", "ir_builder"}))
