"""Intermediate representation shared by all passes: expressions, statements, functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.ir.arith.extents import start_and_strides
    from tecomp.ir.arith.intervals import Interval, interval_of_sum
    from tecomp.ir.arith.quasi_affine import MAX_DEPTH, Digit, OpaqueTerm, QuasiAffine, Term
    from tecomp.ir.arith.quasi_affine_conversion import TermTable
    from tecomp.ir.arith.rewrite_rules import floordiv, modulo, recombine_digits
    from tecomp.ir.arith.simplify import (
        Ranges,
        bounds,
        constant_upper_bound,
        join_branches,
        simplify,
    )
    from tecomp.ir.arith.symbolic_bounds import SymbolicBounds
    from tecomp.ir.extern.binding import RAISED
    from tecomp.ir.interpreter.arithmetic import (
        binary_function,
        call_function,
        cast_function,
        compare_function,
        constant,
        saturating_conversion,
        wrap_to_dtype,
    )
    from tecomp.ir.interpreter.evaluate import evaluate
    from tecomp.ir.interpreter.expr import SlotScope, compile_expr
    from tecomp.ir.nodes.buffer import Buffer, IndexMapNode, PadValue, Range
    from tecomp.ir.nodes.dtype import (
        BOOL,
        FLOAT32,
        HANDLE,
        INT32,
        INT64,
        SCALARS,
        DType,
        promote,
        represents_all,
    )
    from tecomp.ir.nodes.expr import (
        BufferLoad,
        Call,
        Ramp,
        Scalar,
        Select,
        condition_of,
        if_then_else,
        index_value,
        logical_and,
        logical_or,
        select,
    )
    from tecomp.ir.nodes.expr_nodes import (
        Binary,
        Broadcast,
        Cast,
        Compare,
        Const,
        Expr,
        Not,
        Var,
        as_expr,
        binary,
        cast,
        compare,
        const,
        match_types,
    )
    from tecomp.ir.nodes.graph_utils import post_order
    from tecomp.ir.nodes.operators import (
        INTRINSICS,
        BinOp,
        CmpOp,
        SizeBounds,
        holds,
        integer_range,
        result_type,
    )
    from tecomp.ir.nodes.printer import identifier
    from tecomp.ir.nodes.stmt import (
        CallingConvention,
        Extent,
        ExternCall,
        LayoutMaps,
        OperandTransfer,
        PrimFunc,
        TensorOp,
    )
    from tecomp.ir.nodes.stmt_nodes import (
        Allocate,
        BufferRealize,
        BufferStore,
        DeclBuffer,
        For,
        ForKind,
        IfThenElse,
        Let,
        Prefetch,
        SeqStmt,
        Stmt,
        seq,
    )
    from tecomp.ir.nodes.structural_equality import structural_equal
    from tecomp.ir.parser.func_parser import parse, parse_index_map, parse_pad_value
    from tecomp.ir.traversal.analyses import ValueNumbering, lines_of
    from tecomp.ir.traversal.rewrite import (
        bottom_up,
        children,
        free_variables,
        map_body,
        rebuild,
        statements_in,
        substitute,
        top_down,
        walk,
    )
    from tecomp.ir.traversal.serialization import NotSerializableError, decode, encode
    from tecomp.ir.traversal.verify import verify
else:
    __getattr__, __dir__ = lazy_names(__name__)
