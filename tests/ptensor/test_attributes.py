"""Scalars, shapes, extern values and grids: print-parse round trip and lowering."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tecomp.array.executor import execute
from tecomp.errors import (
    ArrayTypeError,
    ArrayValueError,
    DeviceMismatchError,
    TeamMismatchError,
    TecompError,
)
from tecomp.ptensor import (
    AsArray,
    CreateLike,
    MeshGrid,
    Nonzero,
    PTensorType,
    RankOf,
    ResultType,
    ShapeOf,
    lower_ptensor,
)
from tecomp.ptensor.parse import parse
from tests.messages import Diagnostic, diagnostic


def run(text: str, *arguments: Any) -> tuple[Any, ...]:
    """Return the results on one process, whatever the team."""
    inputs = [
        each if isinstance(parameter.type, str) else (each, parameter.type.device, None, None)
        for each, parameter in zip(arguments, parse(text).parameters, strict=True)
    ]
    return execute(lower_ptensor(parse(text), ignore_team=True), *inputs)


ATTRIBUTES = """\
func @f(%x: ptensor<4x5xfloat32, device='stick128', team=1>, %y: ptensor<3xint16, device='stick128', team=1>) -> (shape.shape, int64, int64, type) {
  %s = ptensor.shape(%x): (ptensor<4x5xfloat32, device='stick128', team=1>) -> shape.shape
  %r = ptensor.rank(%x): (ptensor<4x5xfloat32, device='stick128', team=1>) -> int64
  %n = ptensor.size(%x): (ptensor<4x5xfloat32, device='stick128', team=1>) -> int64
  %t = ptensor.result_type(%x, %y): (ptensor<4x5xfloat32, device='stick128', team=1>, ptensor<3xint16, device='stick128', team=1>) -> type
  return %s, %r, %n, %t
}"""


def test_attributes_need_no_device_and_no_team() -> None:
    assert str(parse(ATTRIBUTES)) == ATTRIBUTES
    assert str(lower_ptensor(parse(ATTRIBUTES))) == """\
func @f(%x: tuple<tensor<4x5xfloat32>, str, int64, int64>, %y: tuple<tensor<3xint16>, str, int64, int64>) {
  %s = $shape((4, 5))
  %r = 2
  %n = 20
  %t = 'float32'
  return %s, %r, %n, %t
}"""


MASKED = """\
func @f(%x: ptensor<4x5xfloat32PLACE>, %m: ptensor<4xboolPLACE>) -> (shape.shape, int64, ptensor<?xint64PLACE>) {
  %y = ptensor.extract_mask(%x, %m): (ptensor<4x5xfloat32PLACE>, ptensor<4xboolPLACE>) -> ptensor<?x5xfloat32PLACE>
  %s = ptensor.shape(%y): (ptensor<?x5xfloat32PLACE>) -> shape.shape
  %n = ptensor.size(%y): (ptensor<?x5xfloat32PLACE>) -> int64
  %a = ptensor.arange(start=0, stop=%n, step=1, dtype='int64', device=None, team=TEAM): () -> ptensor<?xint64PLACE>
  return %s, %n, %a
}"""


def test_data_dependent_shapes_are_evaluated() -> None:
    text = MASKED.replace("PLACE", "").replace("TEAM", "None")
    assert str(parse(text)) == text
    assert str(lower_ptensor(parse(text))) == """\
func @f(%x: tuple<tensor<4x5xfloat32>, str, int64, int64>, %m: tuple<tensor<4xbool>, str, int64, int64>) {
  %rtensor = linalg.extract_mask(%x[0], %m[0]): (tensor<4x5xfloat32>, tensor<4xbool>) -> tensor<?x5xfloat32>
  %y = %rtensor, None, None, None
  %s = $shape_of(%rtensor)
  %gshape = $shape_of(%rtensor)
  %n = $num_elements(%gshape)
  %start = 0
  %stop = $compute_stop_index(0, %n, 1)
  %step = 1
  %gshape_1 = $compute_global_shape(0, %n, 1)
  %ltensor = linalg.init_tensor(%gshape_1)
  %rtensor_1 = linalg.generic($compute_arange, %lslice, %lshape, %ltensor)
  %a = %rtensor_1, None, None, None
  return %s, %n, %a
}"""
    text = MASKED.replace("PLACE", ", team=1").replace("TEAM", "1")
    lowered = str(lower_ptensor(parse(text))).split("\n")
    assert "  %s = $global_shape(1, %gid)" in lowered
    assert "  %n = $num_elements(%gshape_1)" in lowered


IMPORTS = """\
func @f(%b: ptr, %n: float64) -> (ptensor<4xint8PLACE>, ptensor<float32PLACE>) {
  %x = ptensor.asarray(%b, shape=(4,), dtype='int8', copy=None, DEVICE): (ptr) -> ptensor<4xint8PLACE>
  %y = ptensor.asarray(%n, shape=(), dtype='float32', copy=None, DEVICE): (float64) -> ptensor<float32PLACE>
  return %x, %y
}"""


def test_foreign_arrays_are_imported_on_the_target_device() -> None:
    text = IMPORTS.replace("PLACE", ", device='stick128'").replace("DEVICE", "device='stick128', team=None")
    assert str(parse(text)) == text
    assert str(lower_ptensor(parse(text))) == """\
func @f(%b: ptr, %n: float64) {
  intel_sycl.device_region('stick128') {
    %rtensor = memref.asarray(%b, dtype='int8', copy=None): (ptr) -> tensor<4xint8>
    %rtensor_1 = memref.asarray(%n, dtype='float32', copy=None): (float64) -> tensor<float32>
  }
  %x = %rtensor, 'stick128', None, None
  %y = %rtensor_1, 'stick128', None, None
  return %x, %y
}"""


def test_imported_arrays_are_partitioned_over_the_team() -> None:
    text = IMPORTS.replace("PLACE", ", team=1").replace("DEVICE", "device=None, team=1")
    function = parse(text)
    lowered = str(lower_ptensor(function)).split("\n")
    assert lowered[1:7] == [
        "  %gshape = $shape((4,))",
        "  %gid = dist.init_dtensor(%gshape)",
        "  %lslice = dist.local_slice(%gid)",
        "  %wtensor = memref.asarray(%b, dtype='int8', copy=None): (ptr) -> tensor<4xint8>",
        "  %rtensor = tensor.extract_slice(%wtensor, %lslice)",
        "  %x = %rtensor, None, 1, %gid",
    ]
    assert "dist." not in str(lower_ptensor(function, ignore_team=True))


def test_memory_of_another_library_is_shared() -> None:
    text = """\
func @f(%b: ptr) -> ptensor<4xint8> {
  %x = ptensor.from_dlpack(%b, shape=(4,), dtype='int8', device=None): (ptr) -> ptensor<4xint8>
  return %x
}"""
    assert str(parse(text)) == text
    assert str(lower_ptensor(parse(text))) == """\
func @f(%b: ptr) {
  %rtensor = memref.from_dlpack(%b, dtype='int8'): (ptr) -> tensor<4xint8>
  %x = %rtensor, None, None, None
  return %x
}"""


def test_meshgrid_repeats_operands_along_other_axes() -> None:
    text = """\
func @f(%x: ptensor<4xint8, device='stick128'>, %y: ptensor<3xfloat32, device='stick128'>) -> (ptensor<3x4xint8, device='stick128'>, ptensor<3x4xfloat32, device='stick128'>) {
  %a, %b = ptensor.meshgrid(%x, %y, indexing='xy'): (ptensor<4xint8, device='stick128'>, ptensor<3xfloat32, device='stick128'>) -> (ptensor<3x4xint8, device='stick128'>, ptensor<3x4xfloat32, device='stick128'>)
  return %a, %b
}"""
    assert str(parse(text)) == text
    assert str(lower_ptensor(parse(text))) == """\
func @f(%x: tuple<tensor<4xint8>, str, int64, int64>, %y: tuple<tensor<3xfloat32>, str, int64, int64>) {
  intel_sycl.device_region('stick128') {
    %rtensor = linalg.expand_dims(%x[0], axis=(0,)): (tensor<4xint8>) -> tensor<1x4xint8>
    %rtensor_1 = linalg.broadcast(%rtensor, shape=(3, 4)): (tensor<1x4xint8>) -> tensor<3x4xint8>
    %rtensor_2 = linalg.expand_dims(%y[0], axis=(1,)): (tensor<3xfloat32>) -> tensor<3x1xfloat32>
    %rtensor_3 = linalg.broadcast(%rtensor_2, shape=(3, 4)): (tensor<3x1xfloat32>) -> tensor<3x4xfloat32>
  }
  %axes = %rtensor, 'stick128', None, None
  %a = %rtensor_1, 'stick128', None, None
  %axes_1 = %rtensor_2, 'stick128', None, None
  %b = %rtensor_3, 'stick128', None, None
  return %a, %b
}"""


X = PTensorType((4,), "int8", "cpu")


@pytest.mark.parametrize(
    ("refused", "error", "expected"),
    [
        (lambda: MeshGrid("yx"), ArrayValueError, Diagnostic("array-value", indexing="yx")),
        (lambda: MeshGrid().results(X.like((2, 2))), ArrayValueError,
         Diagnostic("array-shapes", name="meshgrid", k=0, shape=(2, 2))),
        (lambda: MeshGrid().infer(X, X), ArrayTypeError,
         Diagnostic("array-type", where="meshgrid", found_count=2)),
        (lambda: ShapeOf().infer(X), ArrayTypeError,
         Diagnostic("array-type", where="shape", result="shape.shape")),
        (lambda: ResultType().results(X, PTensorType((), "int8")), DeviceMismatchError,
         Diagnostic(
             "device-mismatch", where="result_type", first="ptensor<4xint8, device='cpu'>", k=1,
             other="ptensor<int8>", device="cpu",
         )),
        (lambda: AsArray((4,), "int8").infer("int64"), ArrayValueError,
         Diagnostic("array-shapes", shape=(4,))),
        (lambda: AsArray((4,), "int9").infer("ptr"), ArrayTypeError,
         Diagnostic(
             "array-type", name="asarray", dtype="int9",
             supported="bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128",
         )),
    ],
)  # fmt: skip
def test_mismatched_operands_are_rejected(refused: object, error: type[TecompError], expected: Diagnostic) -> None:
    assert callable(refused)
    with pytest.raises(error) as caught:
        refused()
    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("rank(%x): (ptensor<4x5xfloat32, device='stick128', team=1>)", "rank(%s): (shape.shape)"),
         Diagnostic("ptensor")),
        (("-> (shape.shape, int64, int64, type) {", "-> (shape.shape, int64, int64, int64) {"),
         Diagnostic("ptensor")),
        (("%n = ptensor.size(%x): (ptensor<4x5xfloat32, device='stick128', team=1>) -> int64",
          "%n = ptensor.asarray(%x, shape=(), dtype='int8', copy=None, device=None, team=None): "
          "(ptensor<4x5xfloat32, device='stick128', team=1>) -> ptensor<int8>"),
         Diagnostic("ptensor")),
        (("%n = ptensor.size(%x): (ptensor<4x5xfloat32, device='stick128', team=1>) -> int64",
          "%n = ptensor.reshape(%x, shape=%s, copy=None): "
          "(ptensor<4x5xfloat32, device='stick128', team=1>) -> ptensor<20xint8>"),
         Diagnostic(
             "ptensor", line=4, column=34, found="got `%s`", op="reshape", name="shape",
             hint="a tuple",
         )),
    ],
)  # fmt: skip
def test_scalars_are_no_tensors(change: tuple[str, str], expected: Diagnostic) -> None:
    assert change[0] in ATTRIBUTES
    with pytest.raises(TecompError) as caught:
        parse(ATTRIBUTES.replace(*change))
    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("stop=5, step=%s", Diagnostic("ptensor")),
        ("stop=%z, step=1", Diagnostic("ptensor")),
        ("stop=%y, step=1", Diagnostic("ptensor")),
    ],
)
def test_numbers_are_numbers(argument: str, expected: Diagnostic) -> None:
    text = MASKED.replace("PLACE", "").replace("TEAM", "None").replace("stop=%n, step=1", argument)
    with pytest.raises(ArrayValueError) as caught:
        parse(text)
    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%z = ptensor.elementwise_binary_op{'add'}(%y, %x): (ptensor<?x5xfloat32>, ptensor<4x5xfloat32>) -> ptensor<4x5xfloat32>", None),
        ("%z = ptensor.combine{'concat'}(%y, %x, axis=0): (ptensor<?x5xfloat32>, ptensor<4x5xfloat32>) -> ptensor<?x5xfloat32>", None),
        ("%z = ptensor.combine{'concat'}(%y, %x, axis=1): (ptensor<?x5xfloat32>, ptensor<4x5xfloat32>) -> ptensor<?x10xfloat32>",
         Diagnostic("array-shapes")),
        ("%z = ptensor.reshape(%y, shape=(5, 3), copy=None): (ptensor<?x5xfloat32>) -> ptensor<5x3xfloat32>",
         Diagnostic("ptensor")),
        ("%z = ptensor.take_along_axis(%x, %n, axis=0): (ptensor<4x5xfloat32>, ptensor<int8>) -> ptensor<4x5xfloat32>",
         Diagnostic("array-shapes")),
    ],
)  # fmt: skip
def test_extents_that_are_not_known_before(line: str, expected: Diagnostic | None) -> None:
    head = "func @f(%x: ptensor<4x5xfloat32>, %y: ptensor<?x5xfloat32>, %n: ptensor<int8>)"
    text = f"{head} -> {line.split(' -> ')[1]} {{\n  {line}\n  return %z\n}}"
    if expected is None:
        assert str(parse(text)) == text
        lower_ptensor(parse(text))
        return
    with pytest.raises(ArrayValueError) as caught:
        parse(text)
    assert diagnostic(caught.value) == expected


def test_unread_results_have_no_tuple() -> None:
    for line in (
        "ptensor.eye(n_rows=2, n_cols=2, k=0, dtype='int8', device=None, team=None): () -> ptensor<2x2xint8>",
        "ptensor.size(%x): (ptensor<4xint8>) -> int64",
        "ptensor.reduce{'sum'}(%x, axis=None, keepdims=False, correction=0, dtype='int8'): (ptensor<4xint8>) -> ptensor<int8>",
    ):
        text = f"func @f(%x: ptensor<4xint8>) -> ptensor<4xint8> {{\n  {line}\n  return %x\n}}"
        assert str(parse(text)) == text
        assert "None, None" not in str(lower_ptensor(parse(text)))


def test_ranks_are_numbers() -> None:
    assert RankOf().results(X) == ("int64",)


def test_execution_matches_numpy() -> None:
    x, m = np.arange(20, dtype="float32").reshape(4, 5), np.array([True, False, True, True])
    shape, size, (row, *_) = run(MASKED.replace("PLACE", "").replace("TEAM", "None"), x, m)
    assert (shape, size) == ((3, 5), 15)
    np.testing.assert_array_equal(row, np.arange(15))
    assert run(ATTRIBUTES, x, np.arange(3, dtype="int16")) == ((4, 5), 2, 20, "float32")


@pytest.mark.parametrize("device", [None, "cpu", "stick128"])
@pytest.mark.parametrize("name", ["asarray", "from_dlpack"])
def test_imported_arrays_keep_their_device(name: str, device: str | None) -> None:
    place = "" if device is None else f", device={device!r}"
    t = f"ptensor<4xfloat32{place}>"
    more = "copy=None, " if name == "asarray" else ""
    team = ", team=None" if name == "asarray" else ""
    text = (
        f"func @f(%b: ptr, %x: {t}) -> {t} {{\n"
        f"  %a = ptensor.{name}(%b, shape=(4,), dtype='float32', {more}device={device!r}{team}): (ptr) -> {t}\n"
        f"  %y = ptensor.elementwise_binary_op{{'add'}}(%a, %x): ({t}, {t}) -> {t}\n"
        "  return %y\n}"
    )
    b, x = np.arange(4, dtype="float32"), np.ones(4, "float32")
    ((found, *_),) = run(text, b, x)
    np.testing.assert_array_equal(found, b + x)


@pytest.mark.exhaustive
def test_indices_have_the_integers_of_the_device() -> None:
    """Devices without int64 declare and return int32 indices, which other operations read."""
    x, i = "ptensor<4x5xfloat32, device='stick128'>", "ptensor<?xint32, device='stick128'>"
    text = (
        f"func @f(%x: {x}) -> ({i}, {i}, ptensor<?xfloat32, device='stick128'>, ptensor<4xint32, device='stick128'>) {{\n"
        f"  %i, %j = ptensor.nonzero(%x): ({x}) -> ({i}, {i})\n"
        f"  %y = ptensor.take(%x, %i, %j, axis=(0, 1), place=0): ({x}, {i}, {i}) -> ptensor<?xfloat32, device='stick128'>\n"
        f"  %m = ptensor.find_index{{'argmax'}}(%x, axis=1, keepdims=False): ({x}) -> ptensor<4xint32, device='stick128'>\n"
        "  return %i, %j, %y, %m\n}"
    )
    assert str(parse(text)) == text
    data = np.arange(20, dtype="float32").reshape(4, 5) % 3
    for (found, *_), expected in zip(
        run(text, data), [*np.nonzero(data), data[np.nonzero(data)], data.argmax(axis=1)], strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    wide = text.replace("ptensor<4xint32", "ptensor<4xint64")
    with pytest.raises(ArrayValueError) as caught:
        parse(wide)
    assert diagnostic(caught.value) == (
        Diagnostic("ptensor")
    )
    assert "xint64" in str(parse(text.replace("stick128", "level_zero:GPU:1").replace("int32", "int64")))


def test_nonzero_of_no_axes_is_refused() -> None:
    with pytest.raises(ArrayValueError) as caught:
        Nonzero().results(X.like(()))
    assert diagnostic(caught.value) == Diagnostic("array-shapes")


def test_like_functions_accept_another_device() -> None:
    place = PTensorType((2, 3), "int8", "stick128", 1)
    op = CreateLike("float32", device="cpu", team=2)
    assert op.infer(place, PTensorType((), "int8", "cpu", 2)) == PTensorType((2, 3), "float32", "cpu", 2)
    with pytest.raises(DeviceMismatchError):
        op.infer(place, PTensorType((), "int8", "stick128", 2))
    with pytest.raises(TeamMismatchError):
        op.infer(place, PTensorType((), "int8", "cpu", 1))


@pytest.mark.parametrize("extent", ["2", "?"])
def test_a_value_is_created_on_another_device_in_the_shape_of_another(extent: str) -> None:
    x, y = f"ptensor<{extent}x3xint8, device='stick128'>", f"ptensor<{extent}x3xfloat32, device='cpu'>"
    v = "ptensor<float64, device='cpu'>"
    text = (
        f"func @f(%x: {x}, %v: {v}) -> {y} {{\n"
        f"  %y = ptensor.create_like(%x, %v, dtype='float32', device='cpu', team=None): ({x}, {v}) -> {y}\n"
        "  return %y\n}"
    )
    assert str(parse(text)) == text
    ((found, device, *_),) = run(text, np.zeros((2, 3), "int8"), np.float64(2.5))
    assert device == "cpu"
    np.testing.assert_array_equal(found, np.full((2, 3), 2.5, "float32"))
