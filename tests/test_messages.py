"""Messages of mistakes that no other test makes, in full; and that no message is without a test."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tecomp
import tecomp.array as xp
from tecomp import errors, te, tir, topi
from tecomp.layout.notations.blocked import blocked
from tecomp.ptensor.parse import parse as parse_p

ROOT = Path(__file__).parents[1]
A = te.placeholder((8,), name="A")
M = te.placeholder((8, 8), name="M")
I4 = te.placeholder((4, 4, 4, 4), name="I4")
B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
# Of no type that a checker could refuse.
WRONG: Any = 3
TEXT: Any = "s"
x4, x44 = xp.zeros(4), xp.zeros((4, 4))


def extern(fcompute: Callable[..., Any]) -> Any:
    return te.extern((8,), [A], fcompute, dtype="float32", name="E")


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
    "nosched": (
        lambda: tecomp.lower(TEXT, [A, B]),
        "LowerError",
        "lower: expected a schedule, got 's'",
    ),
    "p1": (
        lambda: parse_p("func @f(x) -> ptensor<4xfloat32> {\n  return %x\n}"),
        "ParseError",
        'a parameter is `%x: ptensor<4xfloat32>`, and this is `x`',
    ),
    "p2": (
        lambda: parse_p("func @f(%x: tensor<4>) -> ptensor<4xfloat32> {\n  return %x\n}"),
        "ParseError",
        "a type is `ptensor<4x5xfloat32, device='cpu'>`, and this is `tensor<4>`",
    ),
    "p3": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32, place='a'>) -> ptensor<4xfloat32> {\n  return %x\n}"),
        "ParseError",
        "`ptensor<4xfloat32, place='a'>`: place is no mark of a type; these are ('device', 'team', 'gid')",
    ),
    "p4": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  %y = x\n  return %y\n}"),
        "ParseError",
        "an operation is `%y = ptensor.name{'kind'}(%x, attribute=...): (type) -> type`, and this is `%y = x`",
    ),
    "p5": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  %y = ptensor.nothing(%x): (ptensor<4xfloat32>) -> ptensor<4xfloat32>\n  return %y\n}"),
        "ParseError",
        '`%y = ptensor.nothing(%x): (ptensor<4xfloat32>) -> ptensor<4xfloat32>`: there is no operation nothing',
    ),
    "p6": (
        lambda: parse_p("func @f(%x: ptensor<4xfloat32>) -> ptensor<4xfloat32> {\n  give %x\n}"),
        "ParseError",
        'a function ends with `return %y`, and this one with `give %x`',
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
    """What is fixed in it is in a string of the tests; contradictions of ours are left out.

    `untested_messages.txt` lists those that are still to be tested, and only gets shorter.
    """
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "tutorials").rglob("*.py")]
    told = "\n".join(
        text for file in files for text in strings_of(ast.parse(file.read_text()))
    )
    untested = {
        where for where, text in messages().items()
        if not all(part in told for part in re.split(f"{HOLE}+", text) if len(part.strip()) >= 6)
    }
    listed = set((Path(__file__).with_name("untested_messages.txt")).read_text().splitlines())

    assert untested - listed == set(), "compare these messages in full in a test"
    assert listed - untested == set(), "these are tested, or gone: take them out of the list"
