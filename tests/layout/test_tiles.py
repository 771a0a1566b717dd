"""Hardware tiles and strides: addresses of single elements from vendor descriptions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tecomp import column_major, strided
from tecomp.errors import LayoutError
from tecomp.layout import amx, crouton, n11c, partitions, vnni
from tests.messages import Diagnostic, diagnostic


def test_crouton() -> None:
    layout = crouton((1, 16, 8, 64), "float16")

    assert layout.memory_shape == (8, 1024)
    assert divmod(layout.offset((0, 9, 5, 33)), 1024) == (7, 131)
    assert layout.nbytes == 8 * 2048


def test_n11c() -> None:
    layout = n11c((1, 2, 3, 1500), "int8")

    assert layout.memory_shape == (12, 1024)
    assert layout.place((0, 1, 2, 1200)) == (0, 1, 2, 1, 176)


def test_vnni_and_amx() -> None:
    assert vnni((64, 16), "int8").place((10, 7)) == (2, 7, 2)
    assert amx((64, 16), "int8").offset((10, 7)) == 158
    assert amx((32, 16), "bfloat16").offset((5, 3)) * 2 == 142
    assert amx((40, 20), "bfloat16").physical_shape == (2, 2, 16, 16, 2)


def test_partitions() -> None:
    layout = partitions((256, 256), "float32")

    assert layout.place((200, 17)) == (72, 1, 17)
    assert layout.memory_shape == (128, 512)
    assert partitions((300, 4), "float32").physical_shape == (128, 3, 4)


def test_strides() -> None:
    i, j = np.indices((3, 5))

    assert np.array_equal(column_major((3, 5), "float32").offsets(), i + 3 * j)
    assert np.array_equal(strided((3, 5), "float32", (8, 1)).offsets(), 8 * i + j)
    assert np.array_equal(strided((3, 5), "float32", (2, 12)).offsets(), 2 * i + 12 * j)
    assert strided((3, 5), "float32", (8, 1)).physical_shape == (3, 8)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: crouton((8, 8), "float16"),
            Diagnostic("storage-format", where="crouton", axes="(n, h, w, c)", shape=[8, 8]),
        ),
        (
            lambda: vnni((8, 8), "float32"),
            Diagnostic("storage-format", where="vnni", dtype="float32", width=4),
        ),
        (
            lambda: amx((8,), "int8"),
            Diagnostic("storage-format", where="amx", shape=[8]),
        ),
        (
            lambda: strided((3, 5), "float32", (5, -1)),
            Diagnostic("layout-text", stride=-1, axis=1),
        ),
        (
            lambda: strided((3, 5), "float32", ("a", 1)),  # type: ignore[arg-type]
            Diagnostic("invalid-type", where="strided: strides", values=('a', 1)),
        ),
        (
            lambda: strided((2, 5), "float32", (2**62, 1)),
            Diagnostic(
                "limit-exceeded", strides=[4611686018427387904, 1], shape=[2, 5],
                last=9223372036854775813,
            ),
        ),
        (
            lambda: strided((3, 5), "float32", (5,)),
            Diagnostic("layout-text", stride_count=1, strides=[5], rank=2, shape=[3, 5]),
        ),
    ],
)
def test_refusals(make: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        make()

    assert diagnostic(caught.value) == expected
