"""Schedule examples of the transform_layout RFC, as printed there.

Names that the text leaves open (A, M, N, P, Q, the element for `...`) are defined before the
examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel
from tecomp.ir import Allocate, Buffer, For, PrimFunc, walk
from tests.messages import Diagnostic, diagnostic

Agrees = Callable[..., ScheduledKernel]


def loops(func: PrimFunc) -> list[tuple[str, int]]:
    """Return name and extent of every loop, outermost first."""
    nodes = [node for node in walk(func.body) if isinstance(node, For)]
    return [(loop.loop_var.name, int(str(loop.extent))) for loop in nodes]


def param(func: PrimFunc, name: str) -> Buffer:
    (found,) = [p for p in func.params if isinstance(p, Buffer) and p.name == name]
    return found


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


class TestBlockedChannels:
    """NHWC to NCHWc, and the computation with an equal physical layout."""

    def test_the_layout_and_the_equivalent_computation_give_the_same_memory(
        self, agrees: Agrees
    ) -> None:
        A = te.placeholder((2, 6, 5, 12), name="A")

        # Compute definition, written in terms of NHWC logical axes
        B = te.compute(A.shape, lambda n, h, w, c: A[n, h, w, c])
        s = te.create_schedule(B.op)

        def nhwc_to_nchwc(n: Any, h: Any, w: Any, c: Any) -> list[Any]:
            return [n, c // 4, h, w, c % 4]

        transformed_nchwc_axes = s[B].transform_layout(nhwc_to_nchwc)

        # Compute definition that would produce an equivalent physical layout
        B_equivalent = te.compute(
            [A.shape[0], A.shape[3] // 4, A.shape[1], A.shape[2], 4],
            lambda n, c_outer, h, w, c_inner: A[n, h, w, 4 * c_outer + c_inner],
        )

        assert [(axis.name, axis.extent) for axis in transformed_nchwc_axes] == [
            ("n", 2), ("c.outer", 3), ("h", 6), ("w", 5), ("c.inner", 4)
        ]
        a = numbers(2, 6, 5, 12)
        physical = a.reshape(2, 6, 5, 3, 4).transpose(0, 3, 1, 2, 4)
        kernel = agrees(s, [A, B], {A: a, B: a})
        equivalent = agrees(
            te.create_schedule(B_equivalent.op), [A, B_equivalent], {A: a, B_equivalent: physical}
        )
        assert kernel.shapes["compute"] == equivalent.shapes["compute"] == (2, 3, 6, 5, 4)
        actual, expected = kernel.empty(B), equivalent.empty(B_equivalent)
        kernel(a, actual)
        equivalent(a, expected)
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(actual, physical)
        # Both programs have the same loops over the same addresses.
        assert kernel.func == equivalent.func

    def test_neighbours_by_index_may_be_far_apart_in_memory(self) -> None:
        """Adjacent indices may be distant in memory, as stated in the section on drawbacks."""
        A = te.placeholder((16, 64, 64, 128), name="A")
        blocked = tecomp.IndexMap.from_func(lambda n, h, w, c: [n, c // 4, h, w, c % 4])

        shape = blocked.map_shape(A.shape)
        places = [
            np.ravel_multi_index(
                [int(str(i)) for i in blocked.map_indices((0, 0, 0, c))], [int(str(n)) for n in shape]
            )
            for c in (3, 4)
        ]

        assert places == [3, 64 * 64 * 4]


M, N, P, Q = 3, 4, 5, 8

VARIANTS: list[tuple[Callable[..., list[Any]], tuple[int, ...], tuple[int, ...]]] = [
    # Default, produces a 1-d allocation with shape (M*N*P*Q,)
    (lambda m, n, p, q: [m, n, p, q], (M * N * P * Q,), ()),
    # One separator, produces a 2-d allocation with shape (M*N, P*Q).
    (lambda m, n, p, q: [m, n, te.AXIS_SEPARATOR, p, q], (M * N, P * Q), (1,)),
    # Two separators, produces a 3-d allocation with shape (M, N*P, Q).
    (
        lambda m, n, p, q: [m, te.AXIS_SEPARATOR, n, p, te.AXIS_SEPARATOR, q],
        (M, N * P, Q),
        (0, 2),
    ),
    # Can be used along with reorders and splits.
    (
        lambda m, n, p, q: [m, q // 4, n, te.AXIS_SEPARATOR, p, q % 4],
        (M * (Q // 4) * N, P * 4),
        (2,),
    ),
]
IDS = ["no separator", "one", "two", "with a split"]


class TestSeparators:
    """Layouts of one tensor in 1-d, 2-d and 3-d memory."""

    def build(self) -> tuple[te.Tensor, te.Schedule]:
        # The text leaves the element open.
        B = te.compute(shape=(M, N, P, Q), fcompute=lambda m, n, p, q: m * 1000 + n * 100 + p * 10
                       + q, name="B")
        return B, te.create_schedule(B.op)

    def expected(self) -> NDArray[np.int32]:
        m, n, p, q = np.indices((M, N, P, Q), dtype=np.int32)
        return np.asarray(m * 1000 + n * 100 + p * 10 + q)

    def check(
        self, s: te.Schedule, B: te.Tensor, physical: tuple[int, ...], separators: tuple[int, ...]
    ) -> None:
        """Check shapes and attributes at each step, and the values in the interpreter."""
        lowered = tecomp.lower_all(s, [B])
        first, applied = lowered.functions["nest"], lowered.signature
        flat = lowered.functions["flatten_buffer"]
        assert "layout_transform_map" in first.attrs
        assert "layout_transform_map" not in applied.attrs
        assert param(first, "B").shape == (M, N, P, Q)
        assert param(first, "B").axis_separators == separators
        assert param(applied, "B").axis_separators == separators
        assert param(flat, "B").shape == physical
        assert param(flat, "B").axis_separators == tuple(range(len(physical) - 1))
        stored = np.zeros([int(str(n)) for n in param(applied, "B").shape], np.int32)
        tecomp.evaluate(applied, [stored])
        memory = np.zeros(physical, np.int32)
        tecomp.evaluate(lowered.final, [memory])
        np.testing.assert_array_equal(memory, stored.reshape(physical))

    @pytest.mark.parametrize(("layout", "physical", "separators"), VARIANTS, ids=IDS)
    def test_each_alone(
        self, layout: Any, physical: tuple[int, ...], separators: tuple[int, ...]
    ) -> None:
        B, s = self.build()
        s[B].transform_layout(layout)

        self.check(s, B, physical, separators)

    def test_one_after_the_other_as_printed(self) -> None:
        """The text applies four layouts to one stage; each starts from the previous axes."""
        B, s = self.build()

        for layout, physical, separators in VARIANTS:
            s[B].transform_layout(layout)
            self.check(s, B, physical, separators)

        (maps,) = tecomp.lower(s, [B], stop_after="nest").attrs["layout_transform_map"].values()
        assert len(maps) == 4

    @pytest.mark.parametrize(
        ("layout", "memory"),
        [(VARIANTS[0][0], "global"), (VARIANTS[1][0], "global.texture"),
         (VARIANTS[3][0], "global.texture")],
        ids=[IDS[0], IDS[1], IDS[3]],
    )
    def test_compiled_where_a_memory_of_the_processor_has_the_rank(
        self, layout: Any, memory: str, agrees: Agrees
    ) -> None:
        B, s = self.build()
        s[B].transform_layout(layout)
        s[B].set_scope(memory)

        kernel = agrees(s, [B], {B: self.expected()})

        (stored,) = kernel.func.params
        assert isinstance(stored, Buffer)
        assert stored.scope == memory

    def test_three_physical_axes_are_refused_by_the_code_generator(self) -> None:
        """The code generator should "give a diagnostic error for unsupported rank"."""
        B, s = self.build()
        s[B].transform_layout(VARIANTS[2][0])

        with pytest.raises(tecomp.TargetError) as error:
            tecomp.build(s, [B])
        assert diagnostic(error.value) == (
            Diagnostic(
                "unsupported-by-target", buffer="B", rank="3 physical axes", memory="global", name="cpu",
                axes="1 physical axis", remedy="use 0 AXIS_SEPARATOR in its layout instead of 2",
            )
        )

    def test_the_separator_is_not_in_the_lowered_function(self) -> None:
        """The separator exists "only within the API interface"; the IR has a list of integers."""
        B, s = self.build()
        s[B].transform_layout(VARIANTS[3][0])

        applied = tecomp.lower(s, [B], stop_after="apply_buffer_transforms")

        assert "AXIS_SEPARATOR" not in str(applied)
        assert param(applied, "B").axis_separators == (2,)


class TestLoops:
    """A placeholder has no loops to rewrite; a computed tensor returns its new loops."""

    def test_loops_of_the_new_layout(self) -> None:
        A = te.placeholder(shape=[16, 64, 128])
        B = te.compute(A.shape, lambda i, j, k: 2 * A[i, j, k])
        s = te.create_schedule(B.op)

        # A is an input placeholder, and doesn't have nested loops that
        # generate it. Therefore, while the layout of A is rewritten along
        # with any reads/writes into A, there are no loop iterators to be
        # rewritten and no loop iterators are returned.
        none = s[A].transform_layout(lambda i, j, k: [i * 64 + j, k // 4, k % 4])

        # B is a computed tensor, and is computed inside a sequence of nested
        # loops. Therefore, when B's layout is rewritten, those nested loops
        # are also rewritten, and the corresponding loop iterators are
        # returned.
        i_outer, jk_merged, i_inner = s[B].transform_layout(
            lambda i, j, k: [i // 4, 128 * j + k, i % 4]
        )

        assert none == ()
        assert s[B].leaf_iter_vars == (i_outer, jk_merged, i_inner)
        layout_order = loops(tecomp.lower(s, [A, B]))

        # The loop iterators returned by transform_layout() can be used later
        # in the schedule, if the iteration order should be different from the
        # layout order of the output tensor.
        s[B].reorder(i_outer, i_inner, jk_merged)

        assert layout_order == [("i.outer", 4), ("axis1", 64 * 128), ("i.inner", 4)]
        assert loops(tecomp.lower(s, [A, B])) == [
            ("i.outer", 4), ("i.inner", 4), ("axis1", 64 * 128)
        ]
        applied = tecomp.lower(s, [A, B], stop_after="apply_buffer_transforms")
        assert param(applied, "placeholder").shape == (16 * 64, 32, 4)
        assert param(applied, "compute").shape == (4, 64 * 128, 4)

    def test_the_numbers_match_the_definition(self, agrees: Agrees) -> None:
        """The example, at a small size, is correct in the interpreter after every pass."""
        A = te.placeholder(shape=[8, 3, 8])
        B = te.compute(A.shape, lambda i, j, k: 2 * A[i, j, k])
        s = te.create_schedule(B.op)
        s[A].transform_layout(lambda i, j, k: [i * 3 + j, k // 4, k % 4])
        i_outer, jk_merged, i_inner = s[B].transform_layout(
            lambda i, j, k: [i // 4, 8 * j + k, i % 4]
        )
        s[B].reorder(i_outer, i_inner, jk_merged)
        a = numbers(8, 3, 8)

        kernel = agrees(s, [A, B], {A: a, B: 2 * a})

        assert dict(kernel.shapes) == {"placeholder": (24, 2, 4), "compute": (2, 24, 4)}


class TestFunctionsOfIndices:
    """Option 3: "either N named positional arguments, or a variable number of arguments"."""

    def test_a_function_of_any_number_of_indices_changes_the_last(self, agrees: Agrees) -> None:
        def blocked(*indices: Any) -> list[Any]:
            *rest, last = indices
            return [*rest, last // 4, last % 4]

        for shape in [(8,), (3, 8), (2, 3, 8)]:
            A = te.placeholder(shape, name="A")
            B = te.compute(shape, lambda *i, A=A: A[i] + 1.0, name="B")
            s = te.create_schedule(B.op)
            s[A].transform_layout(blocked)
            axes = s[B].transform_layout(blocked)
            a = numbers(*shape)

            kernel = agrees(s, [A, B], {A: a, B: a + 1})

            assert kernel.shapes["A"] == kernel.shapes["B"] == (*shape[:-1], 2, 4)
            assert [axis.extent for axis in axes] == [*shape[:-1], 2, 4]

    def test_names_of_the_parameters_are_those_in_the_attribute(self) -> None:
        """Parameter names may "be used as the names in TIR, improving readability"."""
        A = te.placeholder((4, 8), name="A")
        B = te.compute(A.shape, lambda i, j: A[i, j], name="B")
        s = te.create_schedule(B.op)
        s[A].transform_layout(lambda row, column: [column, row])
        func = tecomp.lower(s, [A, B], stop_after="nest")

        ((index_map,),) = func.attrs["layout_transform_map"].values()

        assert [index.name for index in index_map.initial_indices] == ["row", "column"]
        assert str(func).startswith(
            "@layout_transform_map(A=[lambda row, column: [column, row]])\n"
        )


def test_reorder_split_flatten_is_reshape_transpose_reshape(agrees: Agrees) -> None:
    """Reorder, split and flatten equal NumPy's reshape, transpose, reshape (prior art section)."""
    A = te.placeholder((2, 6, 5, 12), name="A")
    B = te.compute(A.shape, lambda n, h, w, c: A[n, h, w, c], name="B")
    s = te.create_schedule(B.op)
    s[B].transform_layout(lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4])
    s[B].set_scope("global.texture")
    a = numbers(2, 6, 5, 12)
    kernel = agrees(s, [A, B], {A: a, B: a})

    memory = np.zeros((2 * 3 * 6, 5 * 4), np.float32)
    kernel(a, memory)

    expected = a.reshape(2, 6, 5, 3, 4).transpose(0, 3, 1, 2, 4).reshape(36, 20)
    np.testing.assert_array_equal(memory, expected)


Place = Callable[..., tuple[Any, ...]]

FLATTENED: dict[str, tuple[tuple[int, ...], Any, tuple[int, ...], Place]] = {
    # x = Buffer(name="x", shape=[64,128]); BufferLoad(x, [10*128 + 15])
    "no layout": ((64, 128), None, (64 * 128,), lambda i, j: (i * 128 + j,)),
    "transposed": (
        (64, 128), lambda i, j: [j, i], (128 * 64,), lambda i, j: (j * 64 + i,)
    ),
    "NCHWc": (
        (16, 64, 64, 128),
        lambda n, h, w, c: [n, c // 4, h, w, c % 4],
        (16 * (128 // 4) * 64 * 64 * 4,),
        lambda n, h, w, c: (
            (128 // 4) * 64 * 64 * 4 * n + 64 * 64 * 4 * (c // 4) + 64 * 4 * h + 4 * w + c % 4,
        ),
    ),
    "NCHWc in two axes": (
        (16, 64, 64, 128),
        lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4],
        (16 * (128 // 4) * 64, 64 * 4),
        lambda n, h, w, c: ((128 // 4) * 64 * n + 64 * (c // 4) + h, 4 * w + c % 4),
    ),
}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("example", FLATTENED)
def test_every_element_is_at_the_documented_address(example: str) -> None:
    """All elements are at the unsimplified indices of the text, at the printed sizes."""
    shape, layout, physical, place = FLATTENED[example]
    x = te.compute(
        shape, lambda *i: sum(index * int(np.prod(shape[k + 1:])) for k, index in enumerate(i)),
        name="x",
    )
    s = te.create_schedule(x.op)
    if layout is not None:
        s[x].transform_layout(layout)
    s[x].set_scope("global" if len(physical) == 1 else "global.texture")

    kernel = tecomp.build(s, [x])
    memory = np.full(physical, -1, np.int32)
    kernel(memory)

    np.testing.assert_array_equal(
        memory[place(*np.indices(shape))], np.arange(np.prod(shape)).reshape(shape)
    )


@pytest.mark.parametrize("example", FLATTENED)
def test_a_buffer_inside_a_function_is_allocated_in_the_layout(
    example: str, agrees: Agrees
) -> None:
    """An intermediate buffer that one stage writes and another reads has the layout."""
    _, layout, physical, _ = FLATTENED[example]
    shape = (3, 8) if layout is None or example == "transposed" else (2, 3, 5, 8)
    A = te.placeholder(shape, name="A")
    x = te.compute(shape, lambda *i: A[i] * 2.0, name="x")
    B = te.compute(shape, lambda *i: x[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    if layout is not None:
        s[x].transform_layout(layout)
    s[x].set_scope("global" if len(physical) == 1 else "global.texture")
    a = numbers(*shape)

    kernel = agrees(s, [A, B], {A: a, B: a * 2 + 1})

    (allocated,) = [n.buffer for n in walk(kernel.func.body) if isinstance(n, Allocate)]
    assert len(allocated.shape) == len(physical)
    assert allocated.axis_separators == tuple(range(len(physical) - 1))
    assert np.prod([int(str(n)) for n in allocated.shape]) == np.prod(shape)
