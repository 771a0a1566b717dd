"""Reference counts decide whether a write is in place and whether a value is stored.

The expected counts are measured at import, by the functions that read them later, so that they hold
for each interpreter: CPython 3.14 and later borrow references on the operand stack, and builds
without the GIL count the references of other threads separately. The test runs on each of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp

SIZE = 32 * 1024  # above the size up to which exported arrays are copied


def computed_array() -> Any:
    """Return a computed array that nothing else refers to."""
    x = xp.arange(SIZE, dtype="float32") + 0.5
    xp.eval(x)
    return x


def address(x: Any) -> int:
    """Return the address of the elements without leaving a reference."""
    return int(x._node.data.ctypes.data)


def generator(x: Any) -> Iterator[Any]:
    node = x._node
    yield
    yield node.data.copy()


def raised(x: Any) -> Exception:
    node = x._node
    try:
        raise ValueError(node.type)
    except ValueError as error:
        return error  # its traceback holds the frame with the node


# Functions that create another reference to the elements, and functions that read them.
HOLDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "node": (lambda x: x._node, lambda node: node.data),
    "buffer": (lambda x: x._node.data, lambda data: data),
    "view of the buffer": (lambda x: x._node.data[::2], lambda data: np.repeat(data, 2)),
    "list": (lambda x: [[x._node]], lambda held: held[0][0].data),
    "closure": (lambda x: (lambda node=x._node: node), lambda held: held().data),
    "recorded operation": (lambda x: x + 0.0, np.asarray),
    "recorded chain": (lambda x: (x * 2.0) / 2.0, np.asarray),
    "NumPy array": (np.asarray, lambda held: held),
    "DLPack": (np.from_dlpack, lambda held: held),
    "memoryview": (lambda x: np.asarray(x).data, np.asarray),
    "traceback": (raised, lambda error: error.__traceback__.tb_frame.f_locals["node"].data),
}


def started(x: Any) -> Iterator[Any]:
    suspended = generator(x)
    next(suspended)
    return suspended


HOLDERS["suspended frame"] = (started, next)


def in_this_thread(function: Callable[[], Any]) -> Any:
    return function()


def in_another_thread(function: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


THREADS = pytest.mark.parametrize("run", [in_this_thread, in_another_thread])


def write(x: Any) -> None:
    x[1] = -1.0


@THREADS
def test_a_write_to_the_only_reference_is_in_place(run: Callable[..., Any]) -> None:
    x = computed_array()
    before = address(x)
    for _ in range(3):
        run(lambda: write(x))

    assert address(x) == before
    assert float(x[1]) == -1.0


@THREADS
@pytest.mark.parametrize("name", HOLDERS)
def test_a_write_preserves_other_references(name: str, run: Callable[..., Any]) -> None:
    hold, read = HOLDERS[name]
    x = computed_array()
    expected = np.arange(SIZE, dtype="float32") + np.float32(0.5)
    reference = hold(x)
    run(lambda: write(x))

    found = np.array(read(reference))
    if name == "view of the buffer":
        expected = np.repeat(expected[::2], 2)
    np.testing.assert_array_equal(found, expected)
    assert float(x[1]) == -1.0


@THREADS
def test_a_write_to_a_view_preserves_its_buffer(run: Callable[..., Any]) -> None:
    """The buffer of a view does not own the memory, so its own count is checked, too."""
    x = computed_array()[16::2]  # the only array of this memory
    xp.eval(x)
    buffer = x._node.data
    before = buffer.copy()
    run(lambda: write(x))

    assert buffer.base is not None
    np.testing.assert_array_equal(buffer, before)
    del buffer
    place = address(x)
    run(lambda: write(x))
    assert address(x) == place


@THREADS
@pytest.mark.parametrize("name", [name for name in HOLDERS if name != "traceback"])
def test_a_write_is_in_place_again_without_the_reference(name: str, run: Callable[..., Any]) -> None:
    hold, read = HOLDERS[name]
    x = computed_array()
    reference = hold(x)
    if "recorded" in name:
        read(reference)  # a pending operation would compute from the array
    del reference
    before = address(x)
    run(lambda: write(x))

    assert address(x) == before


@THREADS
def test_values_with_references_are_outputs_of_the_kernel(run: Callable[..., Any]) -> None:
    x = computed_array()
    tripled = x * 3.0
    inner = tripled + 1.0
    total = inner - 2.0
    node = inner._node
    del inner
    run(lambda: xp.eval(total))

    assert tripled._node.op is None  # stored by the kernel that computed `total`
    assert node.op is None
    np.testing.assert_array_equal(np.asarray(tripled), np.asarray(x) * np.float32(3.0))


_WITHOUT_COUNTS = """
import sys
sys.getrefcount = lambda owned: 2  # the lowest count, whatever refers to the object

import numpy as np
import tecomp.array as xp
from tecomp.array.graph.pending import COUNTS_ARE_EXACT

assert not COUNTS_ARE_EXACT
x = xp.arange(32768, dtype="float32") + 0.5
xp.eval(x)
node, view, later = x._node, x[::2], x * 2.0
before = np.array(x)
x[1] = -1.0
np.testing.assert_array_equal(node.data, before)
np.testing.assert_array_equal(np.asarray(later), before * 2)
np.testing.assert_array_equal(np.asarray(x)[2:], before[2:])
assert float(x[1]) == -1.0
x[2] = -2.0
assert float(view[1]) == -2.0
assert not np.asarray(x).flags.writeable

tripled = x * 3.0
total = (tripled + 1.0) - 2.0
xp.eval(total)
assert tripled._node.op is None
np.testing.assert_array_equal(np.asarray(tripled), np.asarray(x) * np.float32(3.0))
"""


def test_arrays_are_values_without_exact_counts() -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_COUNTS], check=True, timeout=120)
