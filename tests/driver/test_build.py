"""`tecomp.build`: description of a kernel, accepted arguments, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.compute import Tensor
from tecomp.driver import ScheduledKernel
from tecomp.lowering import STAGES
from tests.messages import Diagnostic, diagnostic

TARGETS = Path(__file__).parents[2] / "targets"


def blocked() -> tuple[te.Schedule, Tensor, Tensor]:
    """Build `B[n, 14] = 2 * A[n, 14]` in blocks of 4 columns, the last of which has 2."""
    n = te.var("n")
    A = te.placeholder((n, 14), name="A")
    B = te.compute((n, 14), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B.op)
    s[B].transform_layout(lambda i, j: [j // 4, i, j % 4], pad_value=-1.0)
    return s, A, B


@pytest.fixture(scope="module")
def kernel_and_tensors() -> tuple[ScheduledKernel, Tensor, Tensor]:
    s, A, B = blocked()
    return tecomp.build(s, [A, B], name="double"), A, B


def saxpy() -> tuple[te.Schedule, list[Any]]:
    n, alpha = te.var("n"), te.var("alpha", "float32")
    X = te.placeholder((n,), name="X")
    Y = te.compute((n,), lambda i: alpha * X[i] + n.astype("float32"), name="Y")
    return te.create_schedule(Y.op), [alpha, X, Y, n]


def counting(*shape: int) -> NDArray[np.float32]:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


class TestDescription:
    """Name, shapes, outputs and text of a kernel."""

    def test_name_shapes_and_outputs(
        self, kernel_and_tensors: tuple[ScheduledKernel, Tensor, Tensor]
    ) -> None:
        kernel, _, _ = kernel_and_tensors

        assert kernel.name == "double"
        assert kernel.outputs == ("B",)
        assert {name: str(shape) for name, shape in kernel.shapes.items()} == {
            "A": "(n, 14)", "B": "(4, n, 4)"
        }
        assert repr(kernel) == (
            "<Kernel double(A: float32[n, 14], B: float32[4, n, 4]), writes B>"
        )

    def test_the_default_name_is_main(self) -> None:
        s, A, B = blocked()

        assert tecomp.build(s, [A, B]).name == "main"

    def test_sources(
        self, kernel_and_tensors: tuple[ScheduledKernel, Tensor, Tensor]
    ) -> None:
        kernel, _, _ = kernel_and_tensors

        assert tecomp.parse(kernel.source()) == kernel.func
        assert kernel.source("ir") == str(kernel.lowered.final)
        assert "define i32 @double.entry(" in kernel.source("llvm")
        assert "double.entry:" in kernel.source("asm")

    def test_an_unknown_form_is_refused(
        self, kernel_and_tensors: tuple[ScheduledKernel, Tensor, Tensor]
    ) -> None:
        kernel, _, _ = kernel_and_tensors

        with pytest.raises(tecomp.CallError) as error:
            kernel.source("ptx")  # type: ignore[arg-type]
        assert diagnostic(error.value) == (
            Diagnostic("unknown-choice", form="ptx")
        )

    def test_every_pass_can_be_seen(
        self, kernel_and_tensors: tuple[ScheduledKernel, Tensor, Tensor]
    ) -> None:
        kernel, _, _ = kernel_and_tensors

        assert list(kernel.lowered.functions) == list(STAGES)
        assert kernel.lowered.dump().startswith("# after nest\n@layout_transform_map(")


class TestLayouts:
    """Arrays in the logical shape and in the layout of the kernel."""

    def test_pack_and_unpack_are_inverse(
        self, kernel_and_tensors: tuple[ScheduledKernel, Tensor, Tensor]
    ) -> None:
        kernel, _, B = kernel_and_tensors
        b = counting(3, 14)

        stored = kernel.pack(B, b)

        expected = np.full((3, 16), -1, "float32")
        expected[:, :14] = b
        np.testing.assert_array_equal(stored, expected.reshape(3, 4, 4).transpose(1, 0, 2))

    def test_a_call_between_pack_and_unpack(
        self, kernel_and_tensors: tuple[ScheduledKernel, Tensor, Tensor]
    ) -> None:
        kernel, A, B = kernel_and_tensors
        a = counting(5, 14)
        stored = kernel.empty(B, n=5)

        kernel(kernel.pack(A, a), stored)

        assert (stored.shape, stored.dtype) == ((4, 5, 4), np.float32)
        np.testing.assert_array_equal(stored[3, :, 2:], -1)
        np.testing.assert_array_equal(stored.transpose(1, 0, 2).reshape(5, 16)[:, :14], 2 * a)

    def test_unpack_of_a_fixed_shape(self) -> None:
        A = te.placeholder((3, 14), name="A")
        B = te.compute((3, 14), lambda i, j: A[i, j] * 2.0, name="B")
        s = te.create_schedule(B.op)
        s[B].transform_layout(lambda i, j: [j // 4, i, j % 4])
        kernel = tecomp.build(s, [A, B])
        stored = kernel.empty(B)

        kernel(counting(3, 14), stored)

        np.testing.assert_array_equal(kernel.unpack(B, stored), 2 * counting(3, 14))


class TestTargets:
    """Accepted forms of a target."""

    @pytest.mark.parametrize(
        "target",
        ["cpu", tecomp.Target.load("cpu"), TARGETS / "cpu.toml", str(TARGETS / "cpu.toml")],
        ids=["name", "description", "path", "path as text"],
    )
    def test_forms(self, target: Any) -> None:
        s, A, B = blocked()
        kernel = tecomp.build(s, [A, B], target=target)
        stored = kernel.empty(B, n=2)

        kernel(counting(2, 14), stored)

        np.testing.assert_array_equal(stored[0, 1], 2 * counting(2, 14)[1, :4])

    @pytest.mark.parametrize(
        ("target", "hint"), [("gpu", "did you mean `cpu`? "), ("cuda", "")]
    )
    def test_an_unknown_target_is_refused(self, target: str, hint: str) -> None:
        s, A, B = blocked()

        with pytest.raises(tecomp.TargetError) as error:
            tecomp.build(s, [A, B], target=target)
        assert diagnostic(error.value) == (
            Diagnostic(
                "unknown-target", name=target, hint=hint, known=', '.join(tecomp.list_targets()),
                others="",
            )
        )

    def test_a_memory_that_the_target_lacks_is_refused(self) -> None:
        s, A, B = blocked()
        s[B].set_scope("global.texure")

        with pytest.raises(tecomp.TargetError) as error:
            tecomp.build(s, [A, B])
        assert diagnostic(error.value) == (
            Diagnostic(
                "unsupported-by-target", buffer="B",
                problem="target cpu has no memory `global.texure`; did you mean `global.texture`? its memories are global, global.texture, global.stream, shared, local",
            )
        )


class TestArguments:
    """Accepted forms of `args`."""

    def test_scalar_arguments_keep_their_position(self) -> None:
        s, args = saxpy()
        kernel = tecomp.build(s, args)
        x, y = counting(5), np.zeros(5, "float32")

        kernel(2.0, x, y, 5)

        assert repr(kernel) == (
            "<Kernel main(alpha: float32, X: float32[n], Y: float32[n], n: int32), writes Y>"
        )
        np.testing.assert_array_equal(y, 2 * x + 5)

    def test_a_size_that_contradicts_an_array_is_refused(self) -> None:
        s, args = saxpy()
        kernel = tecomp.build(s, args)
        y = np.zeros(5, "float32")

        with pytest.raises(tecomp.CallError) as error:
            kernel(2.0, counting(5), y, 6)
        assert diagnostic(error.value) == (
            Diagnostic(
                "argument-mismatch", where="argument 1 (X) of main",
                problem="axis 0 is 5, but n is 6 from argument 3; pass an array of float32[6]",
            )
        )
        np.testing.assert_array_equal(y, 0)

    def test_a_number_out_of_range_of_its_dtype_is_refused(self) -> None:
        m = te.var("m")  # int32
        A = te.placeholder((2,), name="A")
        B = te.compute((2,), lambda i: A[i] + te.cast(m, "float32"), name="B")
        kernel = tecomp.build(te.create_schedule(B.op), [A, B, m])
        b = np.zeros(2, "float32")

        with pytest.raises(tecomp.CallError) as error:
            kernel(counting(2), b, 2**31)
        assert diagnostic(error.value) == (
            Diagnostic(
                "argument-mismatch", where="argument 2 (m) of main", value=2147483648, dtype="int32",
                low=-2147483648, high=2147483647,
            )
        )
        np.testing.assert_array_equal(b, 0)
        kernel(counting(2), b, -3)
        np.testing.assert_array_equal(b, counting(2) - 3)

    def test_a_size_need_not_be_listed_but_another_variable_must(self) -> None:
        s, (alpha, X, Y, _) = saxpy()

        assert len(tecomp.build(s, [alpha, X, Y]).signature) == 3
        with pytest.raises(tecomp.LowerError) as error:
            tecomp.build(s, [X, Y])
        assert diagnostic(error.value) == (
            Diagnostic("argument-list", stage="Y", var="alpha")
        )

    def test_narrow_sizes_are_arguments(self) -> None:
        """Array extents are not checked against the dtype of a size, but scalar arguments are."""
        n = te.size_var("n", "int8")
        A = te.placeholder((3, n), name="A")
        k = te.reduce_axis((0, n))
        B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="B")

        with pytest.raises(tecomp.LowerError) as error:
            tecomp.build(B, [A, B])
        assert diagnostic(error.value) == (
            Diagnostic("argument-list", var="n", argument="A", dtype="int8")
        )
        kernel, b = tecomp.build(B, [A, n, B]), np.empty(3, "float32")
        kernel(np.ones((3, 100), "float32"), 100, b)
        np.testing.assert_array_equal(b, 100)
        with pytest.raises(tecomp.CallError) as refused:
            kernel(np.ones((3, 200), "float32"), 200, b)
        assert diagnostic(refused.value) == Diagnostic(
            "argument-mismatch", where="argument 1 (n) of main", value=200, dtype="int8", low=-128, high=127,
        )

    def test_every_input_and_output_must_be_listed(self) -> None:
        s, A, B = blocked()

        with pytest.raises(tecomp.LowerError) as missing_input:
            tecomp.build(s, [B])
        with pytest.raises(tecomp.LowerError) as missing_output:
            tecomp.build(s, [A])

        assert diagnostic(missing_input.value) == (
            Diagnostic("argument-list", stage="A", state="B")
        )
        assert diagnostic(missing_output.value) == (
            Diagnostic("argument-list", name="B")
        )

    @pytest.mark.parametrize("name", ["my kernel", "class", "", 7])
    def test_names_that_are_no_identifiers_are_refused(self, name: Any) -> None:
        s, A, B = blocked()

        with pytest.raises(tecomp.LowerError) as error:
            tecomp.build(s, [A, B], name=name)
        assert diagnostic(error.value) == Diagnostic("invalid-type", name=name)

    def test_names_of_tensors_may_be_anything(self) -> None:
        A = te.placeholder((4,), name="class")
        B = te.compute((4,), lambda i: A[i] + 1.0, name="in")
        kernel = tecomp.build(te.create_schedule(B.op), [A, B])
        result = np.zeros(4, "float32")

        kernel(counting(4), result)

        np.testing.assert_array_equal(result, counting(4) + 1)


class Exporter:
    """Array of another library, which supports only DLPack."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class OldExporter:
    """Exporter that predates DLPack versions; its only option is the stream."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, stream: int | None = None) -> object:
        return self._array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class TestCalls:
    """Outputs are written in place, to any memory of the caller."""

    @pytest.mark.parametrize("exporter", [Exporter, OldExporter])
    def test_arrays_of_other_libraries(self, exporter: Any) -> None:
        s, (alpha, X, Y, _) = saxpy()
        kernel = tecomp.build(s, [X, Y, alpha])
        x, y = counting(7), np.zeros(7, "float32")

        kernel(exporter(x), y if exporter is OldExporter else exporter(y), 3.0)

        np.testing.assert_array_equal(y, 3 * x + 7)

    def test_a_part_of_a_larger_array_is_written_and_nothing_around_it(self) -> None:
        s, (alpha, X, Y, _) = saxpy()
        kernel = tecomp.build(s, [X, Y, alpha])
        whole = np.full(12, -1, "float32")

        kernel(counting(4), whole[5:9], 1.0)

        np.testing.assert_array_equal(whole[5:9], counting(4) + 4)
        np.testing.assert_array_equal(np.delete(whole, slice(5, 9)), -1)

    def test_an_output_that_is_an_input_is_refused(self) -> None:
        s, (alpha, X, Y, _) = saxpy()
        kernel = tecomp.build(s, [X, Y, alpha])
        x = counting(4)

        with pytest.raises(tecomp.CallError) as error:
            kernel(x, x, 1.0)
        assert diagnostic(error.value) == (
            Diagnostic("unsupported-memory", where="argument 1 (Y) of main", position=0, buffer="X")
        )
        np.testing.assert_array_equal(x, counting(4))

    def test_the_flattened_shape_is_accepted_too(
        self, kernel_and_tensors: tuple[ScheduledKernel, Tensor, Tensor]
    ) -> None:
        kernel, _, _ = kernel_and_tensors
        a, flat, shaped = counting(3, 14), np.zeros(48, "float32"), np.zeros((4, 3, 4), "float32")

        kernel(a, shaped)
        kernel(a, flat)

        np.testing.assert_array_equal(flat.reshape(4, 3, 4), shaped)

    def test_sizes_must_follow_from_some_array(
        self, kernel_and_tensors: tuple[ScheduledKernel, Tensor, Tensor]
    ) -> None:
        kernel, _, _ = kernel_and_tensors
        stored = np.zeros(48, "float32")

        with pytest.raises(tecomp.CallError) as error:
            kernel(counting(42), stored)
        assert diagnostic(error.value) == (
            Diagnostic(
                "unbound-size", where="argument 0 (A) of double", var="n", got_count=1,
                axes="axis", got="float32[42]", parameter="float32[n, 14]",
            )
        )
        np.testing.assert_array_equal(stored, 0)

    @pytest.mark.parametrize(
        "options",
        [{"check_bounds": True}, {"fast_math": True}, {"fp_contract": False}],
        ids=lambda options: next(iter(options)),
    )
    def test_options(self, options: dict[str, bool]) -> None:
        s, A, B = blocked()
        kernel = tecomp.build(s, [A, B], **options)  # type: ignore[arg-type]
        stored = kernel.empty(B, n=3)

        kernel(counting(3, 14), stored)

        np.testing.assert_array_equal(stored[1, 2], 2 * counting(3, 14)[2, 4:8])


def test_many_turns_around_none() -> None:
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    A = te.placeholder((n, m, k), name="A")
    B = te.compute((n, m, k), lambda x, y, z: A[x, y, z] + 1.0, name="B")
    kernel = tecomp.build(te.create_schedule(B), [A, B])

    # A loop of 2**50 iterations would take weeks and exceed the time limit.
    empty = np.empty((2**30, 2**20, 0), np.float32)
    kernel(empty, empty.copy())

    source, result = np.ones((2, 3, 4), np.float32), np.zeros((2, 3, 4), np.float32)
    kernel(source, result)
    assert (result == 2).all()


def test_an_extent_with_a_condition_in_it() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B)
    s[B].transform_layout(lambda i: [i % 2, i // 2])
    kernel = tecomp.build(s, [A, B])

    for count in (1, 2, 5):
        data = np.arange(count, dtype=np.float32)
        stored = kernel.empty(B, n=count)
        kernel(data, stored)
        np.testing.assert_array_equal(kernel.unpack(B, stored, n=count), data + 1)


@pytest.mark.parametrize("bounds", [3, {"n": 5}, {te.size_var("n"): "x"}], ids=str)
def test_bounds_map_sizes_to_numbers(bounds: Any) -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    with pytest.raises(tecomp.LowerError) as caught:
        tecomp.build(B, [A, B], bounds=bounds)

    source = bounds if bounds == 3 else str(bounds)
    assert diagnostic(caught.value) == Diagnostic(
        "invalid-type", where="build: bounds", value=source,
        remedy="pass a dict from size variables to their bounds",
    )
