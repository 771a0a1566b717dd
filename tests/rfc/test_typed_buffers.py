"""Typed buffer functions of the transform_layout RFC (indexing, option 1), executed.

The text asserts the type of each access. Here each value is stored as well, so that its elements
can be checked. TVMScript's `T.buffer_decl` is `DeclBuffer`.
"""

from __future__ import annotations

import numpy as np
import pytest

from tecomp import apply_buffer_transforms, evaluate, flatten_buffer, parse
from tecomp.codegen import Kernel
from tecomp.ir import Buffer, BufferLoad, DeclBuffer, PrimFunc, walk

SCALARS = 'A: Buffer("float32", (64,))'
VECTORS = 'A: Buffer("float32x4", (16,))'

PROGRAMS = {
    "scalar_load_from_scalar_buffer": (
        f"""
def f({SCALARS}, out: Buffer("float32", (1,))):
    out[0] = A[5]
""",
        {"A": "float32"},
        [5],
    ),
    "vector_load_from_vector_buffer": (
        f"""
def f({VECTORS}, out: Buffer("float32x4", (1,))):
    out[0] = A[5]
""",
        {"A": "float32x4"},
        [20, 21, 22, 23],
    ),
    "vector_load_from_vector_buffer, as halves": (
        f"""
def f({VECTORS}, out: Buffer("float32x2", (3,))):
    with DeclBuffer(Buffer("float32x2", (32,), data=A.data)) as A_vector_2:
        with DeclBuffer(Buffer("float32x4", (1,), data=out.data)) as whole:
            whole[0] = A[5]
            out[2] = A_vector_2[5]
""",
        {"A": "float32x4", "A_vector_2": "float32x2"},
        [20, 21, 22, 23, 10, 11],
    ),
    "vector_load_from_scalar_buffer_option1": (
        f"""
def f({SCALARS}, out: Buffer("float32", (4,))):
    out[ramp(0, 1, 4)] = A[ramp(5, 1, 4)]
""",
        {"A": "float32x4"},
        [5, 6, 7, 8],
    ),
    "vector_load_from_scalar_buffer_option2": (
        f"""
def f({SCALARS}, out: Buffer("float32x4", (1,))):
    with DeclBuffer(Buffer("float32x4", (16,), data=A.data)) as A_vector:
        out[0] = A_vector[5]
""",
        {"A_vector": "float32x4"},
        [20, 21, 22, 23],
    ),
    "scalar_load_from_vector_buffer": (
        f"""
def f({VECTORS}, out: Buffer("float32", (1,))):
    with DeclBuffer(Buffer("float32", (64,), data=A.data)) as A_scalar:
        out[0] = A_scalar[5]
""",
        {"A_scalar": "float32"},
        [5],
    ),
    "several vectors at once": (
        f"""
def f({VECTORS}, out: Buffer("float32x4", (2,))):
    out[ramp(0, 1, 2)] = A[ramp(5, 2, 2)]
""",
        {"A": "float32x8"},
        [20, 21, 22, 23, 28, 29, 30, 31],
    ),
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> tuple[PrimFunc, dict[str, str], list[int]]:
    text, types, elements = PROGRAMS[request.param]
    return parse(text), types, elements


def arrays(func: PrimFunc) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    """Return 0, 1, 2, ... for A and -1 for out; a vector is an array of scalars in Python."""
    shapes = [
        (*map(int, map(str, p.shape)), *((p.dtype.lanes,) if p.dtype.lanes > 1 else ()))
        for p in func.params if isinstance(p, Buffer)
    ]
    first = np.arange(64, dtype="float32").reshape(shapes[0])
    return [first, np.full(shapes[1], -1, "float32")]


def test_the_type_matches_the_buffer_times_the_lanes_of_the_index(
    program: tuple[PrimFunc, dict[str, str], list[int]]
) -> None:
    func, types, _ = program

    loads = [node for node in walk(func.body) if isinstance(node, BufferLoad)]

    assert {load.buffer.name: str(load.dtype) for load in loads} == types


def test_views_share_the_memory(program: tuple[PrimFunc, dict[str, str], list[int]]) -> None:
    """A view of another type is "an aliasing buffer that shares the same backing array"."""
    func, _, _ = program
    memory = {param.data for param in func.params if isinstance(param, Buffer)}

    for node in walk(func.body):
        if isinstance(node, DeclBuffer):
            assert node.buffer.data in memory


def test_the_passes_leave_flat_buffers_alone(
    program: tuple[PrimFunc, dict[str, str], list[int]]
) -> None:
    func, _, _ = program

    assert apply_buffer_transforms(func) == func
    assert flatten_buffer(func) == func


def test_elements_interpreted_and_compiled(
    program: tuple[PrimFunc, dict[str, str], list[int]]
) -> None:
    """An element is at "index * sizeof(buffer->dtype)", interpreted and compiled."""
    func, _, elements = program
    interpreted, compiled = arrays(func), arrays(func)

    evaluate(func, interpreted)
    Kernel(func)(*compiled)

    assert interpreted[1].ravel().tolist() == elements
    assert compiled[1].ravel().tolist() == elements
