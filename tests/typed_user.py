"""User program with `reveal_type` calls: type checkers read it; it is never run."""

from typing import reveal_type

import numpy as np

import tecomp
import tecomp.array as xp
import tecomp.schedules.tiling
from tecomp import dist, te, topi

A = te.placeholder((64, 64), name="A")
k = te.reduce_axis((0, 64), name="k")
C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * A[k, j], axis=k), name="C")
reveal_type(A)  # Tensor
reveal_type(k)  # IterVar
reveal_type(C)  # Tensor
reveal_type(C.shape)  # tuple[int | Expr, ...]
reveal_type(C.dtype)  # DType
reveal_type(C.op.tag)  # str
reveal_type(A[0, 0])  # Expr
reveal_type(te.exp(A[0, 0]))  # Expr
reveal_type(te.if_then_else(k < 3, A[0, k], 0.0))  # Expr
reveal_type(te.var("n"))  # Var
reveal_type(te.compute((4,), lambda i: (A[i, 0], A[i, 1])))  # tuple[Tensor, ...]
reveal_type(te.extern((4,), [A], lambda ins, outs: te.call_packed("f", ins[0], outs[0])))  # Tensor
reveal_type(topi.nn.softmax(C))  # Tensor
reveal_type(topi.add(A, 1.0))  # Tensor
reveal_type(topi.maximum(A[0, 0], 1.0))  # Expr
reveal_type(topi.logical_not(A))  # Tensor

s = te.create_schedule(C.op)
i, j = s[C].op.axis
reveal_type(s)  # Schedule
reveal_type(s["C"])  # Stage
reveal_type(i)  # IterVar
reveal_type(s[C].split(i, factor=8))  # tuple[IterVar, IterVar]
reveal_type(s[C].tile(i, j, 8, 8))  # tuple[IterVar, IterVar, IterVar, IterVar]
reveal_type(s[C].fuse(i, j))  # IterVar
reveal_type(s[C].transform_layout(lambda i, j: [j // 4, i, j % 4]))  # tuple[IterVar, ...]
reveal_type(s.cache_write(C, "local"))  # Tensor
reveal_type(s.cache_read(A, "local", [C]))  # Tensor
reveal_type(s.trace)  # Trace

reveal_type(tecomp.lower(s, [A, C]))  # PrimFunc
reveal_type(tecomp.parse("..."))  # PrimFunc
target = tecomp.Target.load("cpu")
reveal_type(target)  # Target
reveal_type(target.cores)  # int
reveal_type(target.memory("global"))  # Memory
kernel = tecomp.build(s, [A, C], target)
a, c = np.zeros((64, 64), np.float32), np.empty((64, 64), np.float32)
reveal_type(kernel)  # ScheduledKernel
reveal_type(kernel(a, c))  # None
reveal_type(kernel.timeit(a, c).min)  # float
reveal_type(kernel.report())  # CostReport
reveal_type(kernel.pack(A, a))  # ndarray[Any, Any]
reveal_type(kernel.lowered.final)  # PrimFunc
reveal_type(tecomp.check_constraints(s, target))  # tuple[Violation, ...]

program = tecomp.compile(C, [A])
reveal_type(program)  # CompiledProgram
reveal_type(program.inputs)  # tuple[Tensor, ...]
reveal_type(program.timeit(a).median)  # float
reveal_type(program.timeline())  # ChromeTrace
reveal_type(program.picture())  # Svg
reveal_type(tecomp.load("folder"))  # CompiledProgram

layout = tecomp.Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
reveal_type(layout)  # Layout
reveal_type(layout.physical_shape)  # tuple[int, ...]
reveal_type(layout.offset((3, 4)))  # int
reveal_type(layout.pack(a))  # ndarray[Any, Any]
reveal_type(tecomp.StickLayout((4, 64), "float16"))  # StickLayout
reveal_type(tecomp.ShardLayout((64, 64), "float32"))  # ShardLayout
reveal_type(tecomp.IndexMap.from_func(lambda i: [i // 4, i % 4]))  # IndexMap
reveal_type(tecomp.relayout(layout, layout)(a))  # ndarray[Any, Any]
reveal_type(dist.Mesh((2,)).coordinates(1))  # tuple[int, ...]


@xp.jit
def double(v: xp.Array) -> xp.Array:
    """Return twice the argument; the decorator records the function."""
    return v * 2


x = xp.asarray(a)
reveal_type(x)  # Array
reveal_type(x[0] @ x + 1)  # Array
reveal_type(xp.sum(x))  # Array
reveal_type(xp.linalg.solve(x, x))  # Array
reveal_type(double(x))  # Array
reveal_type(x.shape)  # tuple[int, ...]
reveal_type(x.picture())  # Svg
