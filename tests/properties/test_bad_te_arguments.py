"""`te` functions, primitives and kernels work or raise a TecompError for arbitrary arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import TecompError, te
from tecomp.driver import ScheduledKernel
from tecomp.operations import COMBINERS, ELEMENTWISE
from tests.messages import Diagnostic, diagnostic
from tests.strategies.bad_arguments import DEEP, WRONG, Right, failures, tried

A = te.placeholder((8, 16), name="A")
K = te.reduce_axis((0, 16), name="k")
B = te.compute((8,), lambda i: te.sum(A[i, K], axis=K), name="B")
C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
X, N = te.const(1.5), te.var("n")
THREE: Any = 3
UNARY = ("abs", "exp10", *(row.name for row in ELEMENTWISE if row.is_in("te") and row.arity == 1))
REDUCERS = [row.reducer for row in COMBINERS.values() if not row.is_logical]
OF_TWO = ("atan2", "pow", "power",
          *(row.name for row in ELEMENTWISE if row.is_in("te") and row.arity == 2))
DIVISIONS = ("div", "floordiv", "floormod", "indexdiv", "indexmod", "truncdiv", "truncmod")
NOTHING: Any = None
TEXT: Any = "q"
NUMBERS: Any = {"scope": 3}
STATE, INPUT = te.placeholder((9, 4), name="state"), te.placeholder((9, 4), name="X")
FIRST = te.compute((1, 4), lambda t, i: INPUT[t, i], name="first")
RULE = te.compute((9, 4), lambda t, i: STATE[t - 1, i] + INPUT[t, i], name="rule")
SINGLE = te.placeholder((4,), name="single")
DOUBLE = te.compute((4,), lambda i: SINGLE[i] * 2.0, name="double")
LANES = te.placeholder((4,), "int8x4", name="lanes")
MEMORY = te.Operand(te.decl_buffer((4,), name="m"))
STORE = MEMORY.store(0, 1.0)


def doubled(ins: Any, outs: Any, *_: object) -> Any:
    """Define an output as twice the first input, or as 2 without inputs."""
    (out,) = outs
    return te.for_range(0, 4, lambda i: out.store(i, (ins[0][i] if ins else 1.0) * 2.0))


@te.hybrid.script
def HYBRID(a: Any, b: Any) -> Any:
    c = output_tensor((4,), "float32")  # type: ignore[name-defined]  # noqa: F821
    for i in range(4):
        c[i] = a[i] + b
    return c


TWICE = te.decl_tensor_intrin(DOUBLE.op, doubled, "twice")
# Arguments of a valid call of each function.
OF_TE: dict[str, Right] = {
    **{name: {"x": X} for name in UNARY},
    **{name: {"x": X, "y": X} for name in OF_TWO},
    **{name: {"lhs": X, "rhs": X} for name in ("add", "subtract", "multiply", "divide")},
    **{name: {"a": te.const(7), "b": te.const(3)} for name in DIVISIONS},
    **{name: {"condition": N > 0, "then": X, "otherwise": X}
       for name in ("Select", "if_then_else", "select")},
    **{name: {"expr": A[0, K], "axis": K, "where": K > 0, "init": 1.0}
       for name in REDUCERS},
    **{name: {"dtype": "float32"} for name in (
        "infinity", "lower_bound", "max_value", "min_value", "upper_bound")},
    **{name: {"x1": X, "x2": X} for name in ("copysign", "nextafter")},
    "ldexp": {"x1": X, "x2": te.const(3)},
    "clz": {"x": te.const(3)},
    "cast": {"expr": X, "dtype": "int32"},
    "clip": {"x": X, "a_min": 0.0, "a_max": 1.0},
    "dot": {"a": LANES[0], "b": LANES[1]},
    "logical_not": {"condition": N > 0},
    "likely": {"cond": N > 0},
    "popcount": {"x": N},
    "reinterpret": {"dtype": "int32", "x": X},
    "placeholder": {"shape": (3,), "dtype": "float32", "name": "P"},
    "compute": {"shape": (3,), "fcompute": lambda i: i * 1.0, "name": "D", "tag": "",
                "attrs": {"a": 1}, "varargs_names": None},
    "reduce_axis": {"dom": (0, 3), "name": "k", "thread_tag": ""},
    "var": {"name": "n", "dtype": "int32"},
    "size_var": {"name": "n", "dtype": "int32"},
    "comm_reducer": {"fcombine": lambda x, y: x + y, "fidentity": lambda dtype: te.const(0, dtype),
                     "name": "added"},
    "scan": {"init": FIRST, "update": RULE, "state_placeholder": STATE, "inputs": [INPUT],
             "name": "S", "tag": "", "attrs": {"a": 1}},
    "extern": {"shape": (4,), "inputs": [SINGLE], "fcompute": doubled, "name": "E",
               "dtype": "float32", "in_buffers": None, "out_buffers": None, "tag": "",
               "attrs": {"a": 1}},
    "decl_buffer": {"shape": (4,), "dtype": "float32", "name": "b", "scope": "local"},
    "decl_tensor_intrin": {
        "op": DOUBLE.op, "fcompute": doubled, "name": "twice",
        "binds": {SINGLE: te.decl_buffer((4,), scope="local")}, "scalar_params": [te.var("q")],
        "default_buffer_params": {"scope": "local"}, "unit": "", "mode": "", "check": "later"},
    "check_tensor_intrin": {"intrin": TWICE},
    "for_range": {"begin": 0, "end": 4, "body": lambda i: MEMORY.store(i, 1.0), "name": "i",
                  "kind": "serial"},
    "if_stmt": {"condition": N > 0, "then": STORE, "otherwise": STORE},
    "allocate": {"shape": (4,), "dtype": "float32", "body": lambda m: m.store(0, 1.0), "name": "m",
                 "scope": "local"},
    "const": {"value": 1, "dtype": "int32"},
    "create_schedule": {"outputs": C.op},
    "thread_axis": {"dom": None, "tag": "core.x", "name": "x"},
    "tag_scope": {"tag": "conv"},
    "gradient": {"output": DOUBLE, "inputs": [SINGLE], "head": SINGLE},
}
PRIMITIVES: dict[str, Right] = {
    "Stage.bind": {"ivar": B.op.axis[0], "thread_ivar": te.thread_axis("core.x")},
    "Stage.compute_at": {"parent": C, "scope": C.op.axis[0]},
    "Stage.parallel": {"var": B.op.axis[0]},
    "Stage.pragma": {"var": K, "pragma_type": "auto_unroll_max_step", "pragma_value": 8},
    "Stage.prefetch": {"tensor": A, "var": K, "offset": 1},
    "Stage.set_scope": {"scope": "local"},
    "Stage.split": {"parent": K, "factor": 4, "nparts": None, "disable_predication": False,
                    "tail": "guard"},
    "Stage.set_store_predicate": {"predicate": B.op.axis[0] < 3},
    "Stage.env_threads": {"threads": te.thread_axis("threadIdx.x")},
    "Stage.storage_align": {"axis": B.op.axis[0], "factor": 4, "offset": 0},
    "Stage.tensorize": {"var": K, "tensor_intrin": None},
    "Stage.unroll_and_jam": {"axis": B.op.axis[0], "factor": 2, "tail": "guard"},
    "Stage.tile": {"x_parent": B.op.axis[0], "y_parent": K, "x_factor": 2, "y_factor": 2},
    "Stage.transform_layout": {
        "mapping_function": lambda i: [i // 2, i % 2], "pad_value": 0.0, "loops": "logical"},
    "Stage.unroll": {"var": K},
    "Stage.vectorize": {"var": B.op.axis[0]},
    "Schedule.cache_read": {"tensor": A, "scope": "local", "readers": [B]},
    "Schedule.cache_write": {"tensor": B, "scope": "local"},
    "Schedule.create_group": {"outputs": B, "inputs": [A], "include_inputs": True},
    "Schedule.place_group": {"group": None, "parent": C, "scope": C.op.axis[0]},
    "Schedule.cache_factor": {"tensor": B, "factors": [0], "scope": "local"},
    "Schedule.cache_terms": {"tensor": B, "scope": "local", "readers": [C]},
    "Schedule.step_picture": {"step": 0},
    "Schedule.merge_formula": {"tensor": B},
    "Schedule.cache_repeated": {"tensor": C, "axis": C.op.axis[0], "scope": "local"},
    "Schedule.merge_reduction": {"tensor": B},
    "Schedule.narrow_reduction": {"tensor": B, "dtype": "int32"},
    "Schedule.into_dots": {"tensor": B, "axis": K, "first": "int8x4", "second": "int8x4"},
    "Schedule.rfactor": {"tensor": B, "axis": K, "factor_axis": 0},
    "Schedule.size": {"name": "n"},
    "Schedule.tensor": {"name": "B", "output": 0},
}
# Calls with positional arguments only.
PLAIN: dict[str, Callable[[te.Schedule, Any], object]] = {
    "s[...]": lambda s, wrong: s[wrong],
    "reorder": lambda s, wrong: s[B].reorder(K, wrong),
    "fuse": lambda s, wrong: s[B].fuse(wrong, K),
    "A[...]": lambda _, wrong: A[wrong],
    "A(...)": lambda _, wrong: A(0, wrong),
    "expression": lambda _, wrong: X + wrong,
    "comparison": lambda _, wrong: wrong > N,
    "condition": lambda _, wrong: te.if_then_else(wrong, 1.0, 2.0),
    "choice": lambda _, wrong: te.if_then_else(N > 0, wrong, 2.0),
    "select": lambda _, wrong: te.Select(N > 0, 1.0, wrong),
    "maximum": lambda _, wrong: te.max(X, wrong),
    "power": lambda _, wrong: te.power(X, wrong),
    "all": lambda _, wrong: te.all(N > 0, wrong),
    "any": lambda _, wrong: te.any(N > 0, wrong),
    "axis of all": lambda _, wrong: te.all(N > 0, axis=wrong),
    "call_packed": lambda _, wrong: te.call_packed(wrong, wrong),
    "call_extern": lambda _, wrong: te.call_extern(wrong, "exp", wrong),
    "call_pure_extern": lambda _, wrong: te.call_pure_extern("float64", "exp", wrong),
    "type of call_pure_extern": lambda _, wrong: te.call_pure_extern(wrong, "exp", 1.0),
    "name of call_pure_extern": lambda _, wrong: te.call_pure_extern("float64", wrong, 1.0),
    "name of call_extern": lambda _, wrong: te.call_extern("float64", wrong, 1.0),
    "multiply_adds": lambda _, wrong: te.call_packed("f", MEMORY, multiply_adds=wrong),
    "access_ptr": lambda _, wrong: MEMORY.access_ptr(wrong),
    "offset of access_ptr": lambda _, wrong: MEMORY.access_ptr("r", offset=wrong),
    "extent of access_ptr": lambda _, wrong: MEMORY.access_ptr("r", extent=wrong),
    "hybrid.script": lambda _, wrong: te.hybrid.script(wrong),
    "hybrid function": lambda _, wrong: HYBRID(SINGLE, wrong),
    "ib.emit": lambda _, wrong: te.ir_builder.create().emit(wrong),
    "ib.let": lambda _, wrong: te.ir_builder.create().let(wrong, wrong),
    "ib.allocate": lambda _, wrong: te.ir_builder.create().allocate(wrong, wrong, wrong),
    "shape of ib.allocate": lambda _, wrong: te.ir_builder.create().allocate("int8", wrong),
    "ib.buffer_ptr": lambda _, wrong: te.ir_builder.create().buffer_ptr(wrong),
    "ib.scope_attr": lambda _, wrong: te.ir_builder.create().scope_attr(wrong, wrong, wrong),
    "thread_extent": lambda _, wrong: te.ir_builder.create().scope_attr(
        te.var("tx"), "thread_extent", wrong),
    "ib.for_range": lambda _, wrong: te.ir_builder.create().for_range(0, wrong).__enter__(),
    "kind of ib.for_range": lambda _, wrong: te.ir_builder.create().for_range(
        0, 4, kind=wrong).__enter__(),
    "ib.if_scope": lambda _, wrong: te.ir_builder.create().if_scope(wrong).__enter__(),
    "place of a buffer_ptr": lambda _, wrong: te.ir_builder.create().buffer_ptr(MEMORY)[wrong],
    "stmt_seq": lambda _, wrong: te.stmt_seq(STORE, wrong),
    "body of a loop": lambda _, wrong: te.for_range(0, 4, lambda i: wrong),
    "body of memory": lambda _, wrong: te.allocate((4,), "float32", lambda m: wrong),
    "body of te.extern": lambda _, wrong: te.extern((4,), [SINGLE], lambda ins, outs: wrong),
    "body of an intrinsic": lambda _, wrong: te.decl_tensor_intrin(
        DOUBLE.op, lambda ins, outs: wrong),
    "parts of an intrinsic": lambda _, wrong: te.decl_tensor_intrin(
        DOUBLE.op, lambda ins, outs: (wrong, wrong, wrong)),
    "fcombine": lambda _, wrong: te.comm_reducer(wrong, lambda t: 0)(A[0, K], axis=K),
    "what fcombine gives": lambda _, wrong: te.comm_reducer(
        lambda x, y: wrong, lambda t: 0)(A[0, K], axis=K),
    "fidentity": lambda _, wrong: te.comm_reducer(lambda x, y: x, wrong)(A[0, K], axis=K),
    "what fidentity gives": lambda _, wrong: te.comm_reducer(
        lambda x, y: x, lambda t: wrong)(A[0, K], axis=K),
    "reducer of two": lambda _, wrong: te.comm_reducer(
        lambda x, y: x, lambda s, t: (0, 0))((A[0, K], wrong), axis=K),
    "operand[...]": lambda _, wrong: MEMORY[wrong],
    "operand.vload": lambda _, wrong: MEMORY.vload(0, wrong),
    "place of operand.vload": lambda _, wrong: MEMORY.vload(wrong, "float32x4"),
    "operand.store": lambda _, wrong: MEMORY.store(0, wrong),
    "place of operand.store": lambda _, wrong: MEMORY.store(wrong, 1.0),
    "astype": lambda _, wrong: X.astype(wrong),
    "equal": lambda _, wrong: X.equal(wrong),
    "sum": lambda _, wrong: te.sum(wrong, axis=K),
    "axis of a sum": lambda _, wrong: te.sum(A[0, K], axis=wrong),
    "where of a sum": lambda _, wrong: te.sum(A[0, K], axis=K, where=wrong),
    "element": lambda _, wrong: te.compute((3,), lambda i: wrong),
    "result": lambda _, wrong: te.compute((3,), lambda i: (A[i, 0], wrong)),
}


@pytest.fixture(scope="module")
def kernel() -> ScheduledKernel:
    return tecomp.build(te.create_schedule(C.op), [A, C])


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("name", OF_TE)
def test_functions_of_te(name: str) -> None:
    function = getattr(te, name)
    names = [p.name for p in inspect.signature(function).parameters.values()
             if p.kind is not p.VAR_POSITIONAL]
    right = dict(zip(names, OF_TE[name].values(), strict=False))
    function(**right)

    assert failures(lambda source: function(**source), right) == []


def test_every_function_of_te_is_tried() -> None:
    functions = {name for name in te.__all__ if inspect.isfunction(getattr(te, name))}

    assert functions - set(PLAIN) <= set(OF_TE)


def primitive(name: str) -> Callable[[Right], object]:
    """Return a function that calls the primitive on a new schedule."""
    owner, _, method = name.partition(".")

    def call(source: Right) -> object:
        s = te.create_schedule(C.op)
        return getattr(s if owner == "Schedule" else s[B], method)(**source)

    return call


@pytest.mark.exhaustive(keep=14)
@pytest.mark.filterwarnings("ignore:.*unknown pragma")
@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives(name: str) -> None:
    assert failures(primitive(name), PRIMITIVES[name]) == []


def test_every_primitive_is_tried() -> None:
    s = te.create_schedule(C.op)
    named = {
        f"{owner.__name__}.{name}"
        for owner in (type(s), type(s[B]))
        for part in owner.__mro__ if part.__module__.startswith("tecomp.scheduling.")
        for name, member in vars(part).items()
        if not name.startswith("_") and inspect.isfunction(member)
        and any(p.kind is not p.VAR_POSITIONAL
                for p in list(inspect.signature(member).parameters.values())[1:])
    }
    assert named == set(PRIMITIVES)


@pytest.mark.exhaustive(keep=20)
@pytest.mark.parametrize("name", PLAIN)
def test_arguments_without_a_name(name: str) -> None:
    found = ((wrong, tried(partial(PLAIN[name], te.create_schedule(C.op), wrong)))
             for wrong in WRONG)

    assert [f"{wrong!r}: {subject}" for wrong, subject in found if subject] == []


@pytest.mark.parametrize(("call", "expected"), [
    (lambda s: te.compute((3,), lambda i: i, name="D", attrs=THREE),
     Diagnostic("invalid-type", where="te.compute D: attrs", value=3, remedy="pass a dictionary")),
    (lambda s: te.compute((3,), lambda *i: i[0], name="D", varargs_names=THREE),
     Diagnostic(
         "invalid-type", where="te.compute D: varargs_names", value=3,
         remedy="pass a list with the names of the axes in *indices",
     )),
    (lambda s: s.tensor("B", 1), Diagnostic("invalid-value", name="B", output=1, last=0)),
    (lambda s: s.tensor([]), Diagnostic("not-in-schedule", name=[], known="A, B, C")),
    (lambda s: s.size({}), Diagnostic("not-in-schedule", name="{}", names="none")),
    (lambda s: s[B].split(K, 4, disable_predication="x"),
     Diagnostic(
         "invalid-type", where="s[B].split(k): disable_predication", value="x",
         remedy="pass True or False",
     )),
    (lambda s: s[B].split(K, np.zeros((1, 2))),
     Diagnostic("invalid-value", where="s[B].split(k)", subject="factor", value="[[0. 0.]]")),
    (lambda s: s[B].transform_layout(lambda i: [i], loops=()),
     Diagnostic("unknown-choice", where="s[B].transform_layout", loops=())),
    (lambda s: te.scan(FIRST, RULE, STATE, name="S", attrs=THREE),
     Diagnostic("invalid-type", where="te.scan S: attrs", value=3, remedy="pass a dictionary")),
    (lambda s: te.extern((4,), [SINGLE], NOTHING, name="E"),
     Diagnostic(
         "invalid-type", where="te.extern E: fcompute", value=None,
         remedy="pass a function of the inputs and the outputs",
     )),
    (lambda s: te.comm_reducer(max, lambda t: t, "most"),
     Diagnostic(
         "invalid-type", where="te.comm_reducer most: fcombine",
         value="<built-in function max>",
         remedy="pass a function of two values, or of two tuples of values",
     )),
    (lambda s: te.comm_reducer(lambda x, y: x, NOTHING, "most"),
     Diagnostic(
         "reduction", where="te.comm_reducer most", fidentity=None,
         identity="pass a function of the dtype of each value",
     )),
    (lambda s: te.comm_reducer(lambda x, y: x, dict.fromkeys, "most")((A[0, K],) * 3, axis=K),
     Diagnostic(
         "invalid-type", where="most: the identity",
         value="<built-in method fromkeys of type object>",
         remedy="pass a function of the dtype of each value",
     )),
    (lambda s: te.decl_tensor_intrin(DOUBLE.op, NOTHING, "t"),
     Diagnostic(
         "invalid-type", where="te.decl_tensor_intrin t: fcompute", value=None,
         remedy="pass a function of the inputs and the outputs",
     )),
    (lambda s: te.decl_tensor_intrin(DOUBLE.op, doubled, "t", scalar_params=TEXT),
     Diagnostic(
         "invalid-type", where="te.decl_tensor_intrin t: scalar_params", value="q",
         remedy="pass a list of te.var variables",
     )),
    (lambda s: te.decl_tensor_intrin(DOUBLE.op, doubled, "t", binds={DOUBLE: THREE}),
     Diagnostic(
         "invalid-type", where="te.decl_tensor_intrin t: binds",
         value="{Tensor(double, shape=(4,), dtype=float32): 3}",
         remedy="pass a dictionary with a te.decl_buffer for each tensor",
     )),
    (lambda s: te.decl_tensor_intrin(DOUBLE.op, doubled, "t", default_buffer_params=NUMBERS),
     Diagnostic(
         "invalid-type", where="te.decl_tensor_intrin t: default_buffer_params: scope", value=3,
         remedy='pass the name of a memory, such as "local"',
     )),
    (lambda s: te.decl_tensor_intrin(DOUBLE.op, doubled, "t", unit=THREE),
     Diagnostic(
         "invalid-type", where="te.decl_tensor_intrin t: unit", value=3, remedy="give a text",
     )),
    (lambda s: te.check_tensor_intrin(NOTHING),
     Diagnostic(
         "invalid-type", where="te.check_tensor_intrin: the intrinsic", value=None,
         remedy="pass an intrinsic from te.decl_tensor_intrin",
     )),
    (lambda s: te.decl_buffer((4,), scope=THREE),
     Diagnostic(
         "invalid-type", where="te.decl_buffer buffer: scope", value=3,
         remedy='pass the name of a memory, such as "local"',
     )),
    (lambda s: te.for_range(0, 1.5, lambda i: STORE),
     Diagnostic("index-type", where="te.for_range: end", value="float32(1.5)", dtype="float32")),
    (lambda s: MEMORY[X],
     Diagnostic(
         "index-type", where="operand m[...]: index 0", value="float32(1.5)", dtype="float32",
     )),
    (lambda s: te.for_range(0, 4, NOTHING), Diagnostic(
        "invalid-type", where="te.for_range: the body", value=None,
        remedy="give a function of the variable",
    )),
    (lambda s: te.allocate((4,), "float32", lambda m: THREE, "m"),
     Diagnostic(
         "invalid-type", where="te.allocate m: what the body gives", value=3,
         remedy="pass a statement: store(index, value) of an operand, te.for_range, te.if_stmt, te.allocate or te.stmt_seq",
     )),
    (lambda s: te.stmt_seq(STORE, NOTHING),
     Diagnostic(
         "invalid-type", where="te.stmt_seq: statement 1", value=None,
         remedy="pass a statement: store(index, value) of an operand, te.for_range, te.if_stmt, te.allocate or te.stmt_seq",
     )),
    (lambda s: s[object()], Diagnostic("invalid-type", where="s[...]", handle="<object object>")),
    (lambda s: HYBRID(A, DEEP), Diagnostic("hybrid", source="HYBRID", max_depth=100)),
    (lambda s: te.const(10**400, "float64"),
     Diagnostic("literal", value=str(10**400), dtype="float64")),
])
def test_messages(call: Callable[[Any], object], expected: Diagnostic) -> None:
    with pytest.raises(TecompError) as caught:
        call(te.create_schedule(C.op))

    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize("method", ["call", "pack", "unpack", "empty", "report"])
def test_kernels(method: str, kernel: ScheduledKernel) -> None:
    a, c = np.zeros((8, 16), "float32"), np.zeros(8, "float32")
    calls: dict[str, tuple[Callable[..., object], Right]] = {
        "call": (lambda a, c: kernel(a, c), {"a": a, "c": c}),
        "pack": (kernel.pack, {"tensor": A, "array": a}),
        "unpack": (kernel.unpack, {"tensor": A, "array": a}),
        "empty": (kernel.empty, {"tensor": A}),
        "report": (kernel.report, {"n": 3}),
    }
    call, right = calls[method]

    assert failures(lambda source: call(**source), right) == []
