"""Storage formats work or raise a TecompError for arbitrary arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tecomp import Format, TecompError, storage_format, te
from tecomp.ir import DType
from tecomp.layout import FLOAT8_E5M2, BlockFloat, PackedInt, SmallFloat
from tests.messages import Diagnostic, diagnostic
from tests.strategies.bad_arguments import Right, failures

FORMATS = {name: storage_format(name) for name in (
    "float16", "float8_e5m2", "float8_e4m3fnuz", "dlfloat16", "bfp8", "bfp2", "int4", "uint4",
)}
VALUES = te.placeholder((2, 1024), name="A")
ARRAY = np.ones((2, 1024), "float32")
NOTHING: Any = None
EMPTY: Any = ()
MAKERS: dict[str, tuple[Callable[..., Format], Right]] = {
    "Format": (Format, {"name": "f", "stored": "uint8", "elements": 2, "units": 1}),
    "SmallFloat": (SmallFloat, {**vars(storage_format("float8_e5m2"))}),
    "Format.plain": (Format.plain, {"dtype": "float32"}),
    "BlockFloat.of": (
        BlockFloat.of, {"bits": 8, "elements": 64, "run": 16, "exponent_bits": 8}),
    "PackedInt.of": (PackedInt.of, {"bits": 4, "signed": True}),
}


def calls(storage: Format) -> dict[str, Right]:
    """Return the arguments of a valid call of each method."""
    stored = storage.encode(VALUES)
    shape: Right = {"physical_shape": (2, 1024)}
    each: dict[str, Right] = {
        "encoded": {"value": VALUES[0, 0]}, "decoded": {"unit": stored[0, 0]},
    }
    return {
        **(each if storage.elements == 1 else {}),
        "holds": {"value": 1.0}, "nearest": {"value": 1.0}, "storage_shape": shape, "bytes": shape,
        "encode": {"values": VALUES}, "quantise": {"values": VALUES},
        "decode": {"stored": stored, "dtype": "float32"},
        "encode_array": {"array": ARRAY},
        "decode_array": {"array": storage.encode_array(ARRAY), "dtype": "float32"},
    }


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", FORMATS)
def test_methods(name: str) -> None:
    storage = FORMATS[name]
    for method, right in calls(storage).items():
        def call(source: Right, method: str = method) -> object:
            return getattr(storage, method)(**source)

        call(right)

        assert failures(call, right) == [], method


@pytest.mark.parametrize("name", MAKERS)
def test_makers(name: str) -> None:
    make, right = MAKERS[name]
    make(**right)

    assert failures(lambda source: make(**source), right) == []


def test_every_method_is_tried() -> None:
    methods = {
        name for name, member in vars(Format).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }

    assert methods == set(calls(FORMATS["float16"]))


BFP8, INT4, BYTES = storage_format("bfp8"), storage_format("int4"), te.placeholder((4,), "uint8")
POINT = te.placeholder((), "uint8", name="A")


@pytest.mark.parametrize(("call", "expected"), [
    (lambda: BFP8.encode(NOTHING), Diagnostic(
        "invalid-type", where="format bfp8.encode: the tensor", value=None,
        remedy="give what te.placeholder or te.compute makes, or use encode_array",
    )),
    (lambda: INT4.decode(te.placeholder((4,), name="A")),
     Diagnostic("storage-format", name="int4", stored="uint8", stored_name="A", dtype="float32")),
    (lambda: INT4.decode(POINT),
     Diagnostic("storage-format", name="int4", tensor="A", elements=2)),
    (lambda: INT4.decode(BYTES, EMPTY),
     Diagnostic("invalid-type", where="format int4.decode", dtype=(), type="tuple")),
    (lambda: INT4.storage_shape((-2, 4)),
     Diagnostic("storage-format", name="int4", physical_shape=(-2, 4))),
    (lambda: INT4.holds(NOTHING), Diagnostic(
        "invalid-type", where="format int4: the value", value=None, remedy="give a number",
    )),
    (lambda: replace(BFP8, units=0),
     Diagnostic("storage-format", name="bfp8", subject="units", value=0, bounds="from 1 on")),
    (lambda: SmallFloat("f", storage_format("int4").stored),
     Diagnostic("storage-format", name="f", subject="exponent", value=0, bounds="from 1 to 8")),
    (lambda: replace(FORMATS["dlfloat16"], stored=DType("uint8")),
     Diagnostic("storage-format", name="dlfloat16", exponent=6, fraction=9, stored="uint8", bits=16)),
    (lambda: SmallFloat(**{**vars(FLOAT8_E5M2), "saturate": NOTHING}),
     Diagnostic(
         "invalid-type", where="format float8_e5m2: saturate", value=None,
         remedy="give True or False",
     )),
    (lambda: PackedInt.of(4, signed=NOTHING),
     Diagnostic(
         "invalid-type", where="packed integer: signed", value=None,
         remedy="give True or False",
     )),
    (lambda: BlockFloat.of(8, run=NOTHING),
     Diagnostic("storage-format", bits=8, elements=1024, exponent_bits=8, run=None)),
])
def test_messages(call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(TecompError) as caught:
        call()

    assert diagnostic(caught.value) == expected
