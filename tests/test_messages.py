"""Messages of mistakes that no other test makes, in full; and that no message is without a test."""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
import tecomp.array as xp
from tecomp import errors, te, tir, topi
from tecomp.array.executor import execute
from tecomp.dist import protect
from tecomp.layout.core.layout import FixedTiledLayout
from tecomp.layout.notations.onednn_blocked import blocked
from tecomp.ptensor.lowering.device_regions import verify_lowered
from tecomp.ptensor.lowering.lower import lower_ptensor
from tecomp.ptensor.operations.base import Call as CallOp
from tecomp.ptensor.operations.elementwise import ElementwiseUnaryTest
from tecomp.ptensor.parse import parse as parse_p
from tecomp.schedules import matmul
from tecomp.schedules.analysis.convolution import need_windows

ROOT = Path(__file__).parents[1]
A = te.placeholder((8,), name="A")
M = te.placeholder((8, 8), name="M")
I4 = te.placeholder((4, 4, 4, 4), name="I4")
B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
# Of no type that a checker could refuse.
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
WRITE_IT = "write it for one element, te.compute(shape, lambda i: ...), and make arrays inputs: X = te.placeholder(array.shape, str(array.dtype))"
PRAGMAS = "; the pragmas are auto_unroll_max_step, unroll_explicit, unroll, vectorize, parallel_launch_point, parallel_stride_pattern, parallel_barrier_when_finish"


def stored_in_pairs() -> Any:
    """A kernel whose result is stored in pairs."""
    s = te.create_schedule(B)
    s[B].transform_layout(PAIRS)
    return tecomp.build(s, [A, B])


def four() -> Any:
    """An intrinsic that computes four elements."""
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
    given = te.placeholder((4, n), name="X")
    Y = te.compute((4, n), lambda i, j: given[i, j] + 1.0, name="Y")
    s = te.create_schedule(Y)
    s[Y].tensorize(s[Y].split(s[Y].fuse(*Y.op.axis), factor=4)[1], four())
    tecomp.lower(s, [given, Y])


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
    """A sequence whose elements take more memory than there is."""

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


CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "array_class": (
        lambda: type(x4)(),
        "ArrayTypeError",
        'Array(): arrays are made by xp.asarray, xp.zeros and alike',
    ),
    "float": (
        lambda: float(x4),
        "ArrayTypeError",
        'float(x): x has shape (4,); a number is made of an array without axes: take an element, x[0]',
    ),
    "index": (
        lambda: operator.index(xp.asarray(1.5)),
        "ArrayTypeError",
        'index(x): the elements are float64; an index is made of integers',
    ),
    "dots": (
        lambda: x44[...,...],
        "ArrayIndexError",
        'x[...]: the index has `...` 2 times; write it once',
    ),
    "floatindex": (
        lambda: x44[xp.asarray([1.0])],
        "ArrayIndexError",
        'x[...]: an index is an array of float64; give integers, slices, `...`, None, or arrays of this namespace: of integers, or a mask',
    ),
    "mask": (
        lambda: x44[xp.asarray([True,False])],
        "ArrayIndexError",
        'x[...]: a mask of shape (2,) stands for axes of extents (4,); give a mask of these extents',
    ),
    "axes": (
        lambda: xp.tensordot(x44,x44,axes=TEXT),
        "ArrayTypeError",
        "tensordot: axes is 's'; give a number of axes, or (axes of x1, axes of x2)",
    ),
    "rtol": (
        lambda: xp.linalg.pinv(x44, rtol=TEXT),
        "ArrayTypeError",
        "pinv: rtol is 's'; give a number of Python, or an array",
    ),
    "solve": (
        lambda: xp.linalg.solve(xp.zeros((3,4)), x4),
        "ArrayValueError",
        'solve: x1 has shape (3, 4); give square matrices, as many rows as columns',
    ),
    "hybrid": (
        lambda: te.hybrid.script(lambda a: a)(A),
        "DefinitionError",
        "te.hybrid <lambda>: it is no `def`; write a function with statements",
    ),
    "intrin0": (
        lambda: te.decl_tensor_intrin(B.op, lambda ins, outs: WRONG),
        "TypeMismatchError",
        'te.decl_tensor_intrin tensor_intrin: fcompute gives a statement, or (body, reset, update), not 3',
    ),
    "intrin1": (
        lambda: te.decl_tensor_intrin(B.op, lambda ins, outs: (None,None,None)),
        "DefinitionError",
        'te.decl_tensor_intrin tensor_intrin: fcompute gives neither a body nor an update',
    ),
    "cfun": (
        lambda: tecomp.CFunction("/none/lib.so","f"),
        "DefinitionError",
        'CFunction f: /none/lib.so is no library that can be loaded (/none/lib.so: cannot open shared object file: No such file or directory); give the path of one',
    ),
    "blocks": (
        lambda: blocked((8,8),"float32","AB8c8c"),
        "LayoutError",
        'blocked: `AB8c8c` cuts the axis c into blocks, but the axes are ab; name one of them',
    ),
    "nopass": (
        lambda: tecomp.lower(te.create_schedule(B),[A,B],stop_after="none"),
        "LowerError",
        "lower: there is no pass 'none'; the passes are nest, apply_buffer_transforms, fill_padding, roll_buffers, double_buffers, lower_storage, flatten_buffer, expand_tensor_ops, pack_reads, vectorize_loops, unroll_loops, simplify",
    ),
    "tvmpass": (
        lambda: tecomp.lower(te.create_schedule(B),[A,B],stop_after="FlattenBuffer"),
        "LowerError",
        "lower: there is no pass 'FlattenBuffer'; use 'flatten_buffer', as that pass of TVM is called here; the passes are nest, apply_buffer_transforms, fill_padding, roll_buffers, double_buffers, lower_storage, flatten_buffer, expand_tensor_ops, pack_reads, vectorize_loops, unroll_loops, simplify",
    ),
    "tvmpass2": (
        lambda: tecomp.lower(te.create_schedule(B),[A,B],stop_after="StorageFlatten"),
        "LowerError",
        "lower: there is no pass 'StorageFlatten'; use 'flatten_buffer', as that pass of TVM is called here; the passes are nest, apply_buffer_transforms, fill_padding, roll_buffers, double_buffers, lower_storage, flatten_buffer, expand_tensor_ops, pack_reads, vectorize_loops, unroll_loops, simplify",
    ),
    "nosched": (
        lambda: tecomp.lower(TEXT, [A, B]),
        "LowerError",
        "lower: expected a schedule, got 's'",
    ),
    "p1": (
        lambda: parse_p("func @f(x) -> ptensor<4xfloat32> {\n  return %x\n}"),
        "ParseError",
        "line 1, column 9: expected a parameter such as `%x: ptensor<4xfloat32>`, got `x`",
    ),
    "p2": (
        lambda: parse_p("func @f(%x: tensor<4>) -> ptensor<4xfloat32> {\n  return %x\n}"),
        "ParseError",
        "line 1, column 13: expected a type, `ptensor<4x5xfloat32, device='cpu'>` or one of bool, float64, int64, ptr, shape.shape, str, type, got `tensor`",
    ),
    "p3": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32, place='a'>) -> ptensor<4xfloat32> {\n  return %x\n}"),
        "ParseError",
        "line 1, column 32: a type has only device=, team= and gid=, got `place`",
    ),
    "p4": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  %y = x\n  return %y\n}"),
        "ParseError",
        "line 2, column 8: expected `ptensor.` or `func.call` or `return`, as in `%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`, got `x`",
    ),
    "p5": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  %y = ptensor.nothing(%x): (ptensor<4xfloat32>) -> ptensor<4xfloat32>\n  return %y\n}"),
        "ParseError",
        "line 2, column 16: expected the name of an operation, got `nothing`",
    ),
    "p6": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  give %x\n}"),
        "ParseError",
        "line 2, column 3: expected `ptensor.` or `func.call` or `return`, as in `%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`, got `give`",
    ),
    "thread": (
        lambda: te.thread_axis(dom=(0, 4), tag="threadIdx.x", name=WRONG),
        "ScheduleError",
        'te.thread_axis: the name is 3; write a text',
    ),
    "flatten": (
        lambda: topi.nn.flatten(te.placeholder((),name="S")),
        "DefinitionError",
        'topi.nn.flatten: S has no axes; give it one at least',
    ),
    "nll": (
        lambda: topi.nn.nll_loss(te.placeholder((4,3),name="P"), te.placeholder((5,),"int32",name="T"), te.placeholder((3,),name="w"), "mean", -100),
        "DefinitionError",
        'topi.nn.nll_loss: predictions has shape (4, 3) and targets (5,); give one target for each prediction: (4,)',
    ),
    "lnorm": (
        lambda: topi.nn.layer_norm(M, te.placeholder((8,),name="g"), te.placeholder((8,),name="b"), []),
        "DefinitionError",
        'topi.nn.layer_norm: axis is []; give one axis at least',
    ),
    "ups": (
        lambda: topi.nn.upsampling(te.placeholder((1,2,te.var("n"),4),name="D"), 1.5, 2.0),
        "DefinitionError",
        'topi.nn.upsampling: a scale is 1.5, and an extent is n; sizes that come at the call are taken whole times',
    ),
    "layout": (
        lambda: topi.layout_transform(I4,"NCHW","NHWD"),
        "DefinitionError",
        'topi.layout_transform: NCHW and NHWD have not the same axes; write the same capitals in both',
    ),
    "dynslice": (
        lambda: topi.expand_like(A, M, [0,1]),
        "DefinitionError",
        'topi.expand_like: A has shape (8,), and axes () of M (); name the axes of M that A lacks',
    ),
    "resize": (
        lambda: topi.image.crop_and_resize(I4, te.placeholder((2,4),name="bx"), te.placeholder((3,),"int32",name="bi"), (2,2)),
        "DefinitionError",
        'topi.image.crop_and_resize: boxes has shape (2, 4) and box_indices (3,); give four numbers and an image for each box',
    ),
    "b2s": (
        lambda: topi.nn.batch_to_space_nd(M,[2,2,2],[0,0],[0,0]),
        "DefinitionError",
        'topi.nn.batch_to_space_nd: block_shape is (2, 2, 2), and M has shape (8, 8); give numbers for axes after the first',
    ),
    "attr": (
        lambda: tir.ir_builder.create().scope_attr(3,"thread_extent",4),
        "TypeMismatchError",
        'ir_builder.scope_attr: thread_extent is of an axis, not of 3; give what te.thread_axis makes',
    ),
    "callargs": (
        lambda: extern(lambda ins, outs: te.call_packed("f", [ins[0]])),
        "TypeMismatchError",
        'te.call_packed f: argument 0 is [Operand(buffer=A: Buffer("float32", (8,), scope=""), is_input=True)] (list); give operands, operand.access_ptr(...), numbers and texts one by one',
    ),
    "save_nul": (
        lambda: tecomp.compile(B,[A]).save("a\0b"),
        "CacheError",
        "save: the path 'a\\x00b' has a NUL character; leave it out",
    ),
}

HELD: list[Any] = []
HELD.append(HELD)
CASES |= {
    "held": (
        lambda: xp.jit(lambda a: a[0])(HELD),
        "ArrayTypeError",
        "jit <lambda>: arguments are lists, tuples or dicts of which one holds itself, or is in more than 100 others; give the arrays in fewer of them",
    ),
    "device": (
        lambda: xp.zeros(4, device=replace(tecomp.Target.load("stick128"), clock_hz=1.0)),
        "ArrayValueError",
        "zeros: device 'stick128' is another machine than this target of that name; give the target a name of its own",
    ),
    "modes": (
        lambda: replace(tecomp.Target.load("stick128").engine["matmul"], modes={"float64": "x"}),  # type: ignore[arg-type]
        "TargetError",
        'unit `matmul` has `float64 = "x"` in modes; they are for its inputs float16, bfloat16 and among its cycles exact',
    ),
    "no_memory": (
        lambda: xp.asarray(np.broadcast_to(np.float64(1.0), (2**50,)), copy=True),
        "ArrayMemoryError",
        "xp: elements of shape (1125899906842624,) and type float64 take 9007199254740992 bytes, which the system does not give; compute them in parts",
    ),
    "as_numbers": (
        lambda: np.asarray(A, "float32"),
        "TypeMismatchError",
        f"`Tensor(A, shape=(8,), dtype=float32)` has no elements before the kernel runs, and cannot be an array of float32; {WRITE_IT}",
    ),
    "as_index": (
        lambda: np.zeros(8)[A],
        "TypeMismatchError",
        f"`Tensor(A, shape=(8,), dtype=float32)` has no elements before the kernel runs, and cannot index an array; {WRITE_IT}",
    ),
    "as_count": (
        lambda: range(A),
        "TypeMismatchError",
        f"`Tensor(A, shape=(8,), dtype=float32)` has no elements before the kernel runs, and cannot count or index things; {WRITE_IT}",
    ),
    "relayout_marked": (
        lambda: tecomp.relayout(COLUMNS, ROWS)(PAIRS.pack(ELEMENTS), ROWS.pack(ELEMENTS)),
        "CallError",
        "relayout: the array is packed as (i0) -> (i0 // 2, i0 % 2), but it is to be as (i0) -> (i0 % 4, i0 // 4); pass one of that layout, or np.asarray(...) of it if it is right",
    ),
    "save_nowhere": (
        lambda: te.create_schedule(B).save("/none/x.svg"),
        "CallError",
        "save: '/none/x.svg' cannot be written (No such file or directory); give a file in a folder that exists",
    ),
    "packed": (
        lambda: stored_in_pairs().pack(A, COLUMNS.pack(ELEMENTS)),
        "CallError",
        "pack: the array is packed as (i0) -> (i0 % 4, i0 // 4), but A is given as (i0) -> (i0); unpack it with what packed it, or np.asarray(...) of it if it is right",
    ),
    "unpacked": (
        lambda: stored_in_pairs().unpack(B, COLUMNS.pack(ELEMENTS)),
        "CallError",
        "unpack: the array is packed as (i0) -> (i0 % 4, i0 // 4), but B is stored as (i0) -> (i0 // 2, i0 % 2); unpack it with what packed it, or np.asarray(...) of it if it is right",
    ),
    "numpy_gcd": (
        lambda: te.compute((8,), lambda i: ANY.gcd(A[i], 1)),
        "TypeMismatchError",
        "np.gcd of `A[i]`: NumPy computes with numbers that are there, and this has a value only when the kernel runs; make it of the operators and functions of te",
    ),
    "numpy_reduce": (
        lambda: te.compute((8,), lambda i: np.add.reduce(A[i])),
        "TypeMismatchError",
        "np.add.reduce of `A[i]`: NumPy computes with numbers that are there, and this has a value only when the kernel runs; reduce with te.sum, te.prod, te.min or te.max over a te.reduce_axis",
    ),
    "numpy_option": (
        lambda: te.compute((8,), lambda i: ANY.add(A[i], 1.0, dtype="float32")),
        "TypeMismatchError",
        "np.add of `A[i]`: NumPy computes with numbers that are there, and this has a value only when the kernel runs; write the operator, without further arguments",
    ),
    "fixed_tiled": (
        lambda: FixedTiledLayout((8, 8), (1,), tecomp.Layout.row_major((8, 8), "float32")),
        "LayoutError",
        "FixedTiledLayout: size [8, 8] has 2 dimensions, stride [1] has 1; give one for each",
    ),
    "dma_nests": (
        lambda: tecomp.Layout.of((4096, 4096), "float16", lambda i, j: [i ^ j, j]).dma(),
        "LayoutError",
        "layout.dma: lambda i, j: [i ^ j, j] on [4096, 4096] falls into more than 1024 nests, and 16777216 elements are more than the 4194304 that are looked at one by one; copy parts of it, with start= and extents=",
    ),
    "no_inverse": (
        lambda: te.create_schedule(B)[B].transform_layout(lambda i: [(i * 3 ^ 5) % 16]),
        "ScheduleError",
        "s[B].transform_layout: no expression for the inverse of this map was found, so loops cannot follow it; keep them with loops='logical'",
    ),
    "call_infer": (
        lambda: CallOp("f", ()).infer(),
        "ArrayTypeError",
        "@f: it does not give one tensor; ask for the types of its results",
    ),
    "no_function": (
        lambda: ElementwiseUnaryTest("iszero"),
        "ArrayTypeError",
        f"elementwise_unary_test: 'iszero' is no such function; these are {', '.join(sorted(ElementwiseUnaryTest.functions))}",
    ),
    "p7": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  %y = ptensor.roll(%x, shift=[1, axis=0): (ptensor<4xfloat32>) -> ptensor<4xfloat32>\n  return %y\n}"),
        "ParseError",
        "line 2, column 31: expected a number, a string, True, False, None, %name or a tuple, got `[`",
    ),
    "nothing_to_return": (
        lambda: verify_lowered(replace(lower_ptensor(parse_p("func @f(%x: ptensor<3xint64>) -> ptensor<3xint64> {\n  return %x\n}")), results=("y",))),
        "ArrayValueError",
        "@f: there is no %y to return",
    ),
    "too_few": (
        lambda: execute(lower_ptensor(parse_p("func @f(%x: ptensor<3xint64>) -> ptensor<3xint64> {\n  return %x\n}"))),
        "ArrayValueError",
        "@f: 0 arguments for 1 parameters; give one for each",
    ),
    "pragma_number": (
        lambda: te.create_schedule(B)[B].pragma(B.op.axis[0], WRONG),
        "ScheduleError",
        f"s[B].pragma(i, 3): there is no pragma 3 here; write a text{PRAGMAS}",
    ),
    "pragma_code": (
        lambda: te.create_schedule(B)[B].pragma(B.op.axis[0], "import_c", WRONG),
        "ScheduleError",
        f"s[B].pragma(i, 'import_c'): there is no pragma 'import_c' here; compile the code to a shared library, and call its functions with te.call_extern{PRAGMAS}",
    ),
    "predicate_of_extern": (
        store_predicate_of_extern,
        "ScheduleError",
        "s[E].set_store_predicate: E is a te.extern; say under which condition with te.if_then_else",
    ),
    "no_pixel": (
        lambda: topi.image.resize2d(te.placeholder((1, 0, 4, 3), name="Z"), [0.0] * 4, (2, 2), layout="NHWC"),
        "DefinitionError",
        "topi.image.resize2d: Z has shape (1, 0, 4, 3) as NHWC, and no pixel to take; give it one at least",
    ),
    "unravel": (
        lambda: topi.unravel_index(te.placeholder((4,), "int32", name="i"), te.placeholder((te.var("n"),), "int32", name="sh")),
        "DefinitionError",
        "topi.unravel_index: shape has n entries; give it a number of them that is known",
    ),
    "blocks_of_16": (
        lambda: topi.layout_transform(te.placeholder((1, 2, 4, 4, 8), name="D"), "NCHW16c", "NCHW"),
        "DefinitionError",
        "topi.layout_transform: NCHW16c has blocks of 16 of C, and D 8 there; give a tensor of that layout",
    ),
    "scattered": (
        lambda: topi.slice_scatter(M, te.placeholder((3, 7), name="V"), 1, 7, 2, 0),
        "DefinitionError",
        "topi.slice_scatter: src has shape (3, 7), and the slice (3, 8); give a src of that shape",
    ),
    "dynamic": (
        lambda: topi.dynamic_strided_slice(M, I2, I2, I2, (3,)),
        "DefinitionError",
        "topi.dynamic_strided_slice: the result has shape (3,), and M (8, 8); both have as many axes",
    ),
    "cache_of_tensorized": (
        cache_of_tensorized,
        "ScheduleError",
        "s.cache_write(B, 'local'): B is tensorized at i.inner, and what it computes moves to the cache; call cache_write first and tensorize the cache",
    ),
    "not_affine": (
        tensorize_of_fused,
        "LowerError",
        "s[Y].tensorize(i.j.fused.inner, four): the loops are no affine functions of the axes; fuse axes of constant extent only",
    ),
    "itself": (
        lambda: matmul.schedule(SQUARE, tecomp.Target.load("stick128")),
        "ScheduleError",
        "matmul.schedule: C multiplies X by itself, and scratchpads have rows and columns in different layouts; multiply by a copy: te.compute(X.shape, lambda *i: X(*i))",
    ),
    "windows": (
        lambda: need_windows(B, "pool"),
        "ScheduleError",
        "pool: B reduces no windows that step along another axis than the last, nor is it made of such a reduction element by element",
    ),
    "unknown_size": (
        with_an_unknown_size,
        "DefinitionError",
        "te.compute Z: neither the operands nor the result say what n of times is; make it an extent of one of them",
    ),
    "products_of_axes": (
        with_products_of_axes,
        "LayoutError",
        "layouts: `i * j` in Y or a layout of its operands is no affine function, so lanes cannot be compared; write indices and conditions as sums of axes times numbers, or build the operation alone with tecomp.build",
    ),
    "no_name": (
        lambda: tecomp.ShardLayout((64, 64), "float32", element="int4").text(),
        "LayoutError",
        "shard layout: int4 has no name in #tt.layout<...>; the types are bfloat16, bool, float16, float32, float64, int16, int32, int64, int8, uint16, uint32, uint64, uint8",
    ),
    "no_memory_for_elements": (
        lambda: xp.asarray([Endless(), Endless()]),
        "ArrayValueError",
        "asarray: there is no memory for elements of list; give fewer",
    ),
    "no_memory_for_numpy": (
        lambda: np.asarray(xp.fft.fft(xp.zeros(4, dtype="complex128"), n=2**42)),
        "ArrayMemoryError",
        "fft: numpy.fft.fft of ptensor<4xcomplex128, device='cpu'> takes more memory than the system gives (Unable to allocate 64.0 TiB for an array with shape (4398046511104,) and data type complex128); compute it in parts",
    ),
    "lost_at_once": (
        lambda: protect(3, every=2)._last_of_all(),
        "TeamError",
        "protect: a rank was lost before there were copies of what it had; start again",
    ),
    "trace_variable": (
        replayed_with_a_number,
        "ParseError",
        "replay: the trace is malformed: [3] are no variables",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_message_is(case: str) -> None:
    action, kind, message = CASES[case]
    with pytest.raises(tecomp.TecompError) as caught:
        action()

    assert type(caught.value).__name__ == kind
    assert caught.value.message == message


HOLE = "\0"


def text_of(node: ast.AST) -> str:
    """What a string is made of, with holes for what is put in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(text_of(value) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
    return HOLE


def strings_of(tree: ast.AST) -> list[str]:
    """All strings of a file, those that are put together as one."""
    found: list[str] = []
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) and id(node) not in inside:
            inside.update(id(part) for part in ast.walk(node))
            found.append(text_of(node))
    return found


def messages() -> dict[str, str]:
    """The text of each error that is raised with its own, by file and text."""
    classes = {
        name for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, tecomp.TecompError)
    } - {"InternalError"}
    found = {}
    for room in ("tecomp", "schedules"):
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                if ast.unparse(node.func).rpartition(".")[2] in classes:
                    text = text_of(node.args[0])
                    shown = text.replace(HOLE, "{}").replace("\n", "\\n")
                    found[f"{file.relative_to(ROOT)}: {shown}"] = text
    return found


def test_every_message_is_compared_in_full_by_a_test() -> None:
    """What is fixed in it is in a string of the tests; contradictions of ours are left out."""
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "tutorials").rglob("*.py")]
    told = "\n".join(
        text for file in files for text in strings_of(ast.parse(file.read_text()))
    )
    untested = {
        where for where, text in messages().items()
        if not all(part in told for part in re.split(f"{HOLE}+", text) if len(part.strip()) >= 6)
    }

    assert untested == set(), "compare these messages in full in a test"
