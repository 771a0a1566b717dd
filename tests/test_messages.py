"""Errors that no other test raises, and the catalogue of all messages."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
import tecomp.array as xp
from tecomp import te, tir, topi
from tecomp.array.executor import execute
from tecomp.dist import protect
from tecomp.layout import FixedTiledLayout, blocked
from tecomp.ptensor import SCALARS, CallOp, ElementwiseUnaryTest, lower_ptensor, verify_lowered
from tecomp.ptensor.parse import parse as parse_p
from tecomp.schedules import matmul
from tecomp.schedules.analysis import need_windows
from tests.messages import Diagnostic, catalogue, diagnostic

ROOT = Path(__file__).parents[1]
A = te.placeholder((8,), name="A")
M = te.placeholder((8, 8), name="M")
I4 = te.placeholder((4, 4, 4, 4), name="I4")
B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
# Typed as Any, so that type checkers accept the wrong argument.
WRONG: Any = 3
TEXT: Any = "s"
ANY: Any = np
x4, x44 = xp.zeros(4), xp.zeros((4, 4))


def extern(fcompute: Callable[..., Any]) -> Any:
    return te.extern((8,), [A], fcompute, dtype="float32", name="E")


I2 = te.placeholder((2,), "int64", name="i")
ELEMENTS = np.zeros(8, "float32")
ROWS = tecomp.Layout.row_major((8,), "float32")
PAIRS = tecomp.Layout.of((8,), "float32", lambda i: [i // 2, i % 2])
COLUMNS = tecomp.Layout.of((8,), "float32", lambda i: [i % 4, i // 4])
X = te.placeholder((64, 64), "float16", name="X")
k = te.reduce_axis((0, 64), name="k")
SQUARE = te.compute((64, 64), lambda i, j: te.sum(X[i, k] * X[k, j], axis=k), name="C")
WRITE_IT = "write it per element, te.compute(shape, lambda i: ...), and declare arrays as inputs: X = te.placeholder(array.shape, str(array.dtype))"
PRAGMAS = "; the pragmas are auto_unroll_max_step, unroll_explicit, unroll, vectorize, parallel_launch_point, parallel_stride_pattern, parallel_barrier_when_finish"


def stored_in_pairs() -> Any:
    """Return a kernel whose result is stored in pairs."""
    s = te.create_schedule(B)
    s[B].transform_layout(PAIRS)
    return tecomp.build(s, [A, B])


def four() -> Any:
    """Return an intrinsic that computes four elements."""
    a = te.placeholder((4,), name="a")
    c = te.compute((4,), lambda i: a[i] + 1.0, name="c")
    return te.decl_tensor_intrin(
        c.op, lambda ins, outs: te.call_packed("four", ins[0], outs[0]), name="four"
    )


def cache_of_tensorized() -> None:
    s = te.create_schedule(B)
    s[B].tensorize(s[B].split(B.op.axis[0], factor=4)[1], four())
    s.cache_write(B, "local")


def tensorize_of_fused() -> None:
    n = te.var("n")
    source = te.placeholder((4, n), name="X")
    Y = te.compute((4, n), lambda i, j: source[i, j] + 1.0, name="Y")
    s = te.create_schedule(Y)
    s[Y].tensorize(s[Y].split(s[Y].fuse(*Y.op.axis), factor=4)[1], four())
    tecomp.lower(s, [source, Y])


def store_predicate_of_extern() -> None:
    E = extern(lambda ins, outs: te.call_packed("f", ins[0], outs[0]))
    te.create_schedule(E)[E].set_store_predicate(te.thread_axis("threadIdx.x").var.equal(0))


def with_an_unknown_size() -> None:
    n, rows = te.var("n"), te.placeholder((8, 4), name="Y")
    k, a = te.reduce_axis((0, n), name="k"), te.placeholder((4,), name="a")
    c = te.compute((4,), lambda i: te.sum(a[i] * 1.0, axis=k), name="c")
    times = te.decl_tensor_intrin(
        c.op, lambda ins, outs: te.call_packed("times", ins[0], outs[0]), name="times"
    )
    te.compute((8, 4), lambda i: times(rows[i, 0:4]), name="Z")


def with_products_of_axes() -> None:
    X = te.placeholder((64,), "float16", name="X")
    Y = te.compute((8, 8), lambda i, j: X[i * j % 64] + X[i], name="Y")
    tecomp.compile(Y, [X], target="stick128")


class Endless:
    """Sequence whose elements exceed the memory."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> float:
        raise MemoryError


def replayed_with_a_number() -> None:
    s = te.create_schedule(B)
    thread = te.thread_axis("threadIdx.x")
    s[B].bind(s[B].split(B.op.axis[0], 4)[1], thread)
    s[B].set_store_predicate(thread.var.equal(0))
    trace = json.loads(s.trace.to_json())
    trace["steps"][-1]["args"][0]["of"] = [3]
    tecomp.replay(json.dumps(trace), B)


CASES: dict[str, tuple[Callable[[], Any], str, Diagnostic]] = {
    "array_class": (
        lambda: type(x4)(),
        "ArrayTypeError",
        Diagnostic("array-type"),
    ),
    "float": (
        lambda: float(x4),
        "ArrayTypeError",
        Diagnostic("array-type", function="float", shape=(4,)),
    ),
    "index": (
        lambda: operator.index(xp.asarray(1.5)),
        "ArrayTypeError",
        Diagnostic("array-type", dtype="float64"),
    ),
    "dots": (
        lambda: x44[...,...],
        "ArrayIndexError",
        Diagnostic("array-index", where="x[...]", dot_count=2),
    ),
    "floatindex": (
        lambda: x44[xp.asarray([1.0])],
        "ArrayIndexError",
        Diagnostic(
            "array-index", where="x[...]", dtype="float64",
            forms="use integers, slices, `...`, None, or integer or boolean arrays of this namespace",
        ),
    ),
    "mask": (
        lambda: x44[xp.asarray([True,False])],
        "ArrayIndexError",
        Diagnostic("array-index", where="x[...]", shape=(2,), axes_shape=(4,)),
    ),
    "axes": (
        lambda: xp.tensordot(x44,x44,axes=TEXT),
        "ArrayTypeError",
        Diagnostic("array-type", where="tensordot", axes="s"),
    ),
    "rtol": (
        lambda: xp.linalg.pinv(x44, rtol=TEXT),
        "ArrayTypeError",
        Diagnostic("array-type", where="pinv", rtol="s"),
    ),
    "solve": (
        lambda: xp.linalg.solve(xp.zeros((3,4)), x4),
        "ArrayValueError",
        Diagnostic("array-shapes", shape=(3, 4)),
    ),
    "hybrid": (
        lambda: te.hybrid.script(lambda a: a)(A),
        "DefinitionError",
        Diagnostic("hybrid", function="<lambda>"),
    ),
    "intrin0": (
        lambda: te.decl_tensor_intrin(B.op, lambda ins, outs: WRONG),
        "TypeMismatchError",
        Diagnostic("intrinsic", where="te.decl_tensor_intrin tensor_intrin", value=3),
    ),
    "intrin1": (
        lambda: te.decl_tensor_intrin(B.op, lambda ins, outs: (None,None,None)),
        "DefinitionError",
        Diagnostic("intrinsic", where="te.decl_tensor_intrin tensor_intrin"),
    ),
    "cfun": (
        lambda: tecomp.CFunction("/none/lib.so","f"),
        "DefinitionError",
        Diagnostic(
            "external-function", symbol="f", path="/none/lib.so",
            reason="/none/lib.so: cannot open shared object file: No such file or directory",
        ),
    ),
    "blocks": (
        lambda: blocked((8,8),"float32","AB8c8c"),
        "LayoutError",
        Diagnostic("layout-text", tag="AB8c8c", strange="c", order="ab"),
    ),
    "nopass": (
        lambda: tecomp.lower(te.create_schedule(B),[A,B],stop_after="none"),
        "LowerError",
        Diagnostic(
            "unknown-choice", stop_after="none", remedy="",
            stages="nest, apply_buffer_transforms, fill_padding, roll_buffers, double_buffers, lower_storage, flatten_buffer, expand_tensor_ops, pack_reads, vectorize_loops, unroll_loops, simplify",
        ),
    ),
    "tvmpass": (
        lambda: tecomp.lower(te.create_schedule(B),[A,B],stop_after="FlattenBuffer"),
        "LowerError",
        Diagnostic(
            "unknown-choice", stop_after="FlattenBuffer",
            remedy="use 'flatten_buffer', as that pass of TVM is called here; ",
            stages="nest, apply_buffer_transforms, fill_padding, roll_buffers, double_buffers, lower_storage, flatten_buffer, expand_tensor_ops, pack_reads, vectorize_loops, unroll_loops, simplify",
        ),
    ),
    "tvmpass2": (
        lambda: tecomp.lower(te.create_schedule(B),[A,B],stop_after="StorageFlatten"),
        "LowerError",
        Diagnostic(
            "unknown-choice", stop_after="StorageFlatten",
            remedy="use 'flatten_buffer', as that pass of TVM is called here; ",
            stages="nest, apply_buffer_transforms, fill_padding, roll_buffers, double_buffers, lower_storage, flatten_buffer, expand_tensor_ops, pack_reads, vectorize_loops, unroll_loops, simplify",
        ),
    ),
    "nosched": (
        lambda: tecomp.lower(TEXT, [A, B]),
        "LowerError",
        Diagnostic("invalid-type", schedule="s"),
    ),
    "p1": (
        lambda: parse_p("func @f(x) -> ptensor<4xfloat32> {\n  return %x\n}"),
        "ParseError",
        Diagnostic(
            "ptensor", line=1, column=9, found="got `x`",
            subject="a parameter such as `%x: ptensor<4xfloat32>`",
        ),
    ),
    "p2": (
        lambda: parse_p("func @f(%x: tensor<4>) -> ptensor<4xfloat32> {\n  return %x\n}"),
        "ParseError",
        Diagnostic(
            "ptensor", line=1, column=13, found="got `tensor`",
            type="ptensor<4x5xfloat32, device='cpu'>",
            scalars=", ".join(SCALARS),
        ),
    ),
    "p3": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32, place='a'>) -> ptensor<4xfloat32> {\n  return %x\n}"),
        "ParseError",
        Diagnostic("ptensor", line=1, column=32, found="got `place`"),
    ),
    "p4": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  %y = x\n  return %y\n}"),
        "ParseError",
        Diagnostic(
            "ptensor", line=2, column=8, found="got `x`", token="ptensor.",
            subject="or `func.call` or `return`, as in `%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`",
        ),
    ),
    "p5": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  %y = ptensor.nothing(%x): (ptensor<4xfloat32>) -> ptensor<4xfloat32>\n  return %y\n}"),
        "ParseError",
        Diagnostic("ptensor", line=2, column=16, found="got `nothing`", hint=""),
    ),
    "p6": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  give %x\n}"),
        "ParseError",
        Diagnostic(
            "ptensor", line=2, column=3, found="got `give`", token="ptensor.",
            subject="or `func.call` or `return`, as in `%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`",
        ),
    ),
    "thread": (
        lambda: te.thread_axis(dom=(0, 4), tag="threadIdx.x", name=WRONG),
        "ScheduleError",
        Diagnostic("invalid-type", name=3),
    ),
    "flatten": (
        lambda: topi.nn.flatten(te.placeholder((),name="S")),
        "DefinitionError",
        Diagnostic("invalid-value", data="S"),
    ),
    "nll": (
        lambda: topi.nn.nll_loss(te.placeholder((4,3),name="P"), te.placeholder((5,),"int32",name="T"), te.placeholder((3,),name="w"), "mean", -100),
        "DefinitionError",
        Diagnostic(
            "shapes", where="topi.nn.nll_loss", shape="(4, 3)", targets_shape="(5,)", rest="(4,)",
        ),
    ),
    "lnorm": (
        lambda: topi.nn.layer_norm(M, te.placeholder((8,),name="g"), te.placeholder((8,),name="b"), []),
        "DefinitionError",
        Diagnostic("missing-input", where="topi.nn.layer_norm", axis=[]),
    ),
    "ups": (
        lambda: topi.nn.upsampling(te.placeholder((1,2,te.var("n"),4),name="D"), 1.5, 2.0),
        "DefinitionError",
        Diagnostic("shapes", where="topi.nn.upsampling", scale=1.5, extent="n"),
    ),
    "layout": (
        lambda: topi.layout_transform(I4,"NCHW","NHWD"),
        "DefinitionError",
        Diagnostic(
            "layout-text", where="topi.layout_transform", src_layout="NCHW", dst_layout="NHWD",
        ),
    ),
    "dynslice": (
        lambda: topi.expand_like(A, M, [0,1]),
        "DefinitionError",
        Diagnostic(
            "shapes", where="topi.expand_like", a="A", shape="(8,)", axes=(), other="M",
            extents="()",
        ),
    ),
    "resize": (
        lambda: topi.image.crop_and_resize(I4, te.placeholder((2,4),name="bx"), te.placeholder((3,),"int32",name="bi"), (2,2)),
        "DefinitionError",
        Diagnostic(
            "shapes", where="topi.image.crop_and_resize", shape="(2, 4)", indices_shape="(3,)",
        ),
    ),
    "b2s": (
        lambda: topi.nn.batch_to_space_nd(M,[2,2,2],[0,0],[0,0]),
        "DefinitionError",
        Diagnostic(
            "shapes", where="topi.nn.batch_to_space_nd", sizes=(2, 2, 2), data="M",
            shape="(8, 8)",
        ),
    ),
    "attr": (
        lambda: tir.ir_builder.create().scope_attr(3,"thread_extent",4),
        "TypeMismatchError",
        Diagnostic("statements", attr_key="thread_extent", node=3),
    ),
    "callargs": (
        lambda: extern(lambda ins, outs: te.call_packed("f", [ins[0]])),
        "TypeMismatchError",
        Diagnostic(
            "external-function", where="te.call_packed f: argument 0",
            value='[Operand(buffer=A: Buffer("float32", (8,), scope=""), is_input=True)]',
            type="list",
        ),
    ),
    "save_nul": (
        lambda: tecomp.compile(B,[A]).save("a\0b"),
        "CacheError",
        Diagnostic("saved-program", where="save", path="a\x00b"),
    ),
}

HELD: list[Any] = []
HELD.append(HELD)
CASES |= {
    "held": (
        lambda: xp.jit(lambda a: a[0])(HELD),
        "ArrayTypeError",
        Diagnostic("array-type", where="jit <lambda>: arguments", deepest=100),
    ),
    "device": (
        lambda: xp.zeros(4, device=replace(tecomp.Target.load("stick128"), clock_hz=1.0)),
        "ArrayValueError",
        Diagnostic("array-value", where="zeros", name="stick128"),
    ),
    "modes": (
        lambda: replace(tecomp.Target.load("stick128").engine["matmul"], modes={"float64": "x"}),  # type: ignore[arg-type]
        "TargetError",
        Diagnostic(
            "target", name="matmul", dtype="float64", mode="x", inputs="float16, bfloat16",
            cycles="exact",
        ),
    ),
    "no_memory": (
        lambda: xp.asarray(np.broadcast_to(np.float64(1.0), (2**50,)), copy=True),
        "ArrayMemoryError",
        Diagnostic("out-of-memory", shape=(1125899906842624,), dtype="float64", bytes=9007199254740992),
    ),
    "as_numbers": (
        lambda: np.asarray(A, "float32"),
        "TypeMismatchError",
        Diagnostic(
            "symbolic-value", subject="Tensor(A, shape=(8,), dtype=float32)",
            use="be an array of float32", instead=WRITE_IT,
        ),
    ),
    "as_index": (
        lambda: np.zeros(8)[A],
        "TypeMismatchError",
        Diagnostic(
            "symbolic-value", subject="Tensor(A, shape=(8,), dtype=float32)", use="index an array",
            instead=WRITE_IT,
        ),
    ),
    "as_count": (
        lambda: range(A),
        "TypeMismatchError",
        Diagnostic("symbolic-value", subject="Tensor(A, shape=(8,), dtype=float32)", instead=WRITE_IT),
    ),
    "relayout_marked": (
        lambda: tecomp.relayout(COLUMNS, ROWS)(PAIRS.pack(ELEMENTS), ROWS.pack(ELEMENTS)),
        "CallError",
        Diagnostic(
            "packed", subject="relayout: the array", formula="(i0) -> (i0 // 2, i0 % 2)",
            mark_formula="(i0) -> (i0 % 4, i0 // 4)",
        ),
    ),
    "save_nowhere": (
        lambda: te.create_schedule(B).save("/none/x.svg"),
        "CallError",
        Diagnostic("invalid-type", path="/none/x.svg", reason="No such file or directory"),
    ),
    "packed": (
        lambda: stored_in_pairs().pack(A, COLUMNS.pack(ELEMENTS)),
        "CallError",
        Diagnostic(
            "packed", caller="pack", formula="(i0) -> (i0 % 4, i0 // 4)", tensor="A", how="given",
            wanted_formula="(i0) -> (i0)",
        ),
    ),
    "unpacked": (
        lambda: stored_in_pairs().unpack(B, COLUMNS.pack(ELEMENTS)),
        "CallError",
        Diagnostic(
            "packed", caller="unpack", formula="(i0) -> (i0 % 4, i0 // 4)", tensor="B", how="stored",
            wanted_formula="(i0) -> (i0 // 2, i0 % 2)",
        ),
    ),
    "numpy_gcd": (
        lambda: te.compute((8,), lambda i: ANY.gcd(A[i], 1)),
        "TypeMismatchError",
        Diagnostic(
            "symbolic-value", where="np.gcd", value="A[i]",
            instead="use the operators and functions of te",
        ),
    ),
    "numpy_reduce": (
        lambda: te.compute((8,), lambda i: np.add.reduce(A[i])),
        "TypeMismatchError",
        Diagnostic(
            "symbolic-value", where="np.add.reduce", value="A[i]",
            instead="reduce with te.sum, te.prod, te.min or te.max over a te.reduce_axis",
        ),
    ),
    "numpy_option": (
        lambda: te.compute((8,), lambda i: ANY.add(A[i], 1.0, dtype="float32")),
        "TypeMismatchError",
        Diagnostic(
            "symbolic-value", where="np.add", value="A[i]",
            instead="use the operator, without further arguments",
        ),
    ),
    "fixed_tiled": (
        lambda: FixedTiledLayout((8, 8), (1,), tecomp.Layout.row_major((8, 8), "float32")),
        "LayoutError",
        Diagnostic("count-mismatch", size=[8, 8], size_count=2, stride=[1], stride_count=1),
    ),
    "dma_nests": (
        lambda: tecomp.Layout.of((4096, 4096), "float16", lambda i, j: [i ^ j, j]).dma(),
        "LayoutError",
        Diagnostic(
            "limit-exceeded", subject="layout.dma: lambda i, j: [i ^ j, j] on [4096, 4096]",
            most_nests=1024, count=16777216, limit=4194304,
        ),
    ),
    "no_inverse": (
        lambda: te.create_schedule(B)[B].transform_layout(lambda i: [(i * 3 ^ 5) % 16]),
        "ScheduleError",
        Diagnostic("not-invertible", where="s[B].transform_layout"),
    ),
    "call_infer": (
        lambda: CallOp("f", ()).infer(),
        "ArrayTypeError",
        Diagnostic("array-type", function="f"),
    ),
    "no_function": (
        lambda: ElementwiseUnaryTest("iszero"),
        "ArrayTypeError",
        Diagnostic(
            "unknown-choice", name="elementwise_unary_test", form="iszero",
            functions=', '.join(sorted(ElementwiseUnaryTest.functions)),
        ),
    ),
    "p7": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  %y = ptensor.roll(%x, shift=[1, axis=0): (ptensor<4xfloat32>) -> ptensor<4xfloat32>\n  return %y\n}"),
        "ParseError",
        Diagnostic("ptensor", line=2, column=31, found="got `[`"),
    ),
    "nothing_to_return": (
        lambda: verify_lowered(replace(lower_ptensor(parse_p("func @f(%x: ptensor<3xint64>) -> ptensor<3xint64> {\n  return %x\n}")), results=("y",))),
        "ArrayValueError",
        Diagnostic("ptensor", function="f", name="y"),
    ),
    "too_few": (
        lambda: execute(lower_ptensor(parse_p("func @f(%x: ptensor<3xint64>) -> ptensor<3xint64> {\n  return %x\n}"))),
        "ArrayValueError",
        Diagnostic("argument-count", function="f", argument_count=0, parameter_count=1),
    ),
    "pragma_number": (
        lambda: te.create_schedule(B)[B].pragma(B.op.axis[0], WRONG),
        "ScheduleError",
        Diagnostic(
            "unknown-choice", where="s[B].pragma(i, 3)", form=3, instead="write a text",
            known="auto_unroll_max_step, unroll_explicit, unroll, vectorize, parallel_launch_point, parallel_stride_pattern, parallel_barrier_when_finish",
        ),
    ),
    "pragma_code": (
        lambda: te.create_schedule(B)[B].pragma(B.op.axis[0], "import_c", WRONG),
        "ScheduleError",
        Diagnostic(
            "unknown-choice", where="s[B].pragma(i, 'import_c')", form="import_c",
            instead="compile the code to a shared library, and call its functions with te.call_extern",
            known="auto_unroll_max_step, unroll_explicit, unroll, vectorize, parallel_launch_point, parallel_stride_pattern, parallel_barrier_when_finish",
        ),
    ),
    "predicate_of_extern": (
        store_predicate_of_extern,
        "ScheduleError",
        Diagnostic("pattern-mismatch", where="s[E].set_store_predicate", stage="E", subject="a te.extern"),
    ),
    "no_pixel": (
        lambda: topi.image.resize2d(te.placeholder((1, 0, 4, 3), name="Z"), [0.0] * 4, (2, 2), layout="NHWC"),
        "DefinitionError",
        Diagnostic(
            "shapes", where="topi.image.resize2d", data="Z", shape="(1, 0, 4, 3)", layout="NHWC",
        ),
    ),
    "unravel": (
        lambda: topi.unravel_index(te.placeholder((4,), "int32", name="i"), te.placeholder((te.var("n"),), "int32", name="sh")),
        "DefinitionError",
        Diagnostic("shapes", where="topi.unravel_index", count="n"),
    ),
    "blocks_of_16": (
        lambda: topi.layout_transform(te.placeholder((1, 2, 4, 4, 8), name="D"), "NCHW16c", "NCHW"),
        "DefinitionError",
        Diagnostic(
            "shapes", where="topi.layout_transform", layout="NCHW16c", block=16, axis="C",
            array="D", extent="8",
        ),
    ),
    "scattered": (
        lambda: topi.slice_scatter(M, te.placeholder((3, 7), name="V"), 1, 7, 2, 0),
        "DefinitionError",
        Diagnostic("shapes", where="topi.slice_scatter", shape="(3, 7)", expected="(3, 8)"),
    ),
    "dynamic": (
        lambda: topi.dynamic_strided_slice(M, I2, I2, I2, (3,)),
        "DefinitionError",
        Diagnostic(
            "shapes", where="topi.dynamic_strided_slice", shape="(3,)", a="M", a_shape="(8, 8)",
        ),
    ),
    "cache_of_tensorized": (
        cache_of_tensorized,
        "ScheduleError",
        Diagnostic("primitive-order", where="s.cache_write(B, 'local')", stage="B", axis="i.inner"),
    ),
    "not_affine": (
        tensorize_of_fused,
        "LowerError",
        Diagnostic("tensorize", where="s[Y].tensorize(i.j.fused.inner, four)"),
    ),
    "itself": (
        lambda: matmul.schedule(SQUARE, tecomp.Target.load("stick128")),
        "ScheduleError",
        Diagnostic("pattern-mismatch", total="C", name="X"),
    ),
    "windows": (
        lambda: need_windows(B, "pool"),
        "ScheduleError",
        Diagnostic("pattern-mismatch", caller="pool", op="B"),
    ),
    "unknown_size": (
        with_an_unknown_size,
        "DefinitionError",
        Diagnostic("intrinsic", where="te.compute Z", unknown="n", intrin="times"),
    ),
    "products_of_axes": (
        with_products_of_axes,
        "LayoutError",
        Diagnostic("layout-requirement", reason="i * j", op="Y"),
    ),
    "no_name": (
        lambda: tecomp.ShardLayout((64, 64), "float32", element="int4").text(),
        "LayoutError",
        Diagnostic(
            "shards", dtype="int4",
            names="bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8",
        ),
    ),
    "no_memory_for_elements": (
        lambda: xp.asarray([Endless(), Endless()]),
        "ArrayValueError",
        Diagnostic("array-value", where="asarray", type="list"),
    ),
    "no_memory_for_numpy": (
        lambda: np.asarray(xp.fft.fft(xp.zeros(4, dtype="complex128"), n=2**42)),
        "ArrayMemoryError",
        Diagnostic(
            "out-of-memory", where="fft", library="numpy.fft.fft",
            operands="ptensor<4xcomplex128, device='cpu'>",
            reason="Unable to allocate 64.0 TiB for an array with shape (4398046511104,) and data type complex128",
        ),
    ),
    "lost_at_once": (
        lambda: protect(3, every=2)._last_of_all(),
        "TeamError",
        Diagnostic("process-failure"),
    ),
    "trace_variable": (
        replayed_with_a_number,
        "ParseError",
        Diagnostic("trace-text", of=[3]),
    ),
}


@pytest.mark.exhaustive(keep=63)
@pytest.mark.parametrize("case", CASES)
def test_the_message_is(case: str) -> None:
    action, error, expected = CASES[case]
    with pytest.raises(tecomp.TecompError) as caught:
        action()

    assert type(caught.value).__name__ == error
    assert diagnostic(caught.value) == expected


@pytest.mark.exhaustive
def test_messages_are_literal_templates(golden: Callable[[object], None]) -> None:
    """The golden file lists all messages: each is a literal and uses all of its parameters."""
    golden(catalogue())
