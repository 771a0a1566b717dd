"""Element types of stick layouts: which type on the device stands for which of the host."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from tecomp.errors import LayoutError, TypeMismatchError
from tecomp.ir.language.dtype import DType
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.named import (
    DLFLOAT16,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2FNUZ,
    INT4,
)
from tecomp.layout.formats.packed_int import PackedInt


class DataFormats(Enum):
    r"""Types of elements in the memory of the device, under the names of torch-spyre.

    >>> DataFormats.SEN169_FP16.storage.name, DataFormats.SEN169_FP16.host_dtype
    ('dlfloat16', 'float16')
    >>> print(*(each.name for each in DataFormats), sep="\n")
    SEN169_FP16
    BFLOAT16
    IEEE_FP32
    IEEE_INT32
    SENINT16
    SENINT8
    SENUINT32
    SEN143_FP8
    SEN152_FP8
    SENINT4
    SENINT2
    SENUINT2
    SENINT24
    SEN153_FP9
    """

    SEN169_FP16 = "a float of 1, 6, 9 bits: DLFloat16"
    BFLOAT16 = "bfloat16"
    IEEE_FP32 = "float32"
    IEEE_INT32 = "int32"
    SENINT16 = "int16"
    SENINT8 = "int8"
    SENUINT32 = "uint32"
    SEN143_FP8 = "a float of 1, 4, 3 bits"
    SEN152_FP8 = "a float of 1, 5, 2 bits"
    SENINT4 = "an integer of 4 bits"
    SENINT2 = "an integer of 2 bits"
    SENUINT2 = "an unsigned integer of 2 bits"
    SENINT24 = "an integer of 24 bits"
    SEN153_FP9 = "a float of 1, 5, 3 bits"

    @property
    def storage(self) -> Format:
        """How an element is kept.

        Raises:
            LayoutError: that is not publicly described.
        """
        if self not in _STORED:
            raise LayoutError(
                f"stick layout: how sticks hold {self} is not publicly described; "
                f"the formats are {', '.join(known.name for known in _STORED)}",
                kind="sticks",
            )
        return _STORED[self][0]

    @property
    def host_dtype(self) -> DType:
        """The type of the elements on the host, where only this one is known."""
        assert self.storage
        return DType(_STORED[self][1])


# Each with the host type that it stands for if nothing else is said. No host type has 8-bit floats
# to compute with; float16 holds all values of both.
_STORED: dict[DataFormats, tuple[Format, str]] = {
    DataFormats.SEN169_FP16: (DLFLOAT16, "float16"),
    DataFormats.BFLOAT16: (Format.plain("bfloat16"), "bfloat16"),
    DataFormats.IEEE_FP32: (Format.plain("float32"), "float32"),
    DataFormats.IEEE_INT32: (Format.plain("int32"), "int32"),
    DataFormats.SENINT16: (Format.plain("int16"), "int16"),
    DataFormats.SENINT8: (Format.plain("int8"), "int8"),
    DataFormats.SENUINT32: (Format.plain("uint32"), "uint8"),
    DataFormats.SEN143_FP8: (FLOAT8_E4M3FN, "float16"),
    DataFormats.SEN152_FP8: (FLOAT8_E5M2FNUZ, "float16"),
    DataFormats.SENINT4: (INT4, "int8"),
    DataFormats.SENINT2: (PackedInt.of(2, signed=True), "int8"),
    DataFormats.SENUINT2: (PackedInt.of(2, signed=False), "uint8"),
}

_OF_HOST: dict[str, tuple[DataFormats, str]] = {
    "float16": (DataFormats.SEN169_FP16, "float16"),
    "bfloat16": (DataFormats.BFLOAT16, "bfloat16"),
    "float32": (DataFormats.IEEE_FP32, "float32"),
    "int32": (DataFormats.IEEE_INT32, "int32"),
    "int64": (DataFormats.IEEE_INT32, "int64"),
    "int16": (DataFormats.SENINT16, "int16"),
    "int8": (DataFormats.SENINT8, "int8"),
    "bool": (DataFormats.SEN169_FP16, "bool"),
    "float8_e4m3fn": (DataFormats.SEN143_FP8, "float16"),
    "float8_e5m2fnuz": (DataFormats.SEN152_FP8, "float16"),
    "uint8": (DataFormats.SENUINT32, "uint8"),
    "quint8": (DataFormats.SENUINT32, "uint8"),
}


def types_of(dtype: object) -> tuple[DataFormats, DType]:
    """The type on the device for a type of the host, and the type to compute with.

    Args:
        dtype: a name, a NumPy type, or what prints its name last, such as `torch.float16`.

    Raises:
        LayoutError: the device has none for it.
    """
    name = name_of_type(dtype)
    if name not in _OF_HOST:
        raise LayoutError(
            f"stick layout: Spyre backend does not support dtype {name}; "
            f"the types are {', '.join(_OF_HOST)}",
            kind="sticks",
        )
    device, host = _OF_HOST[name]
    return device, DType(host)


def name_of_type(dtype: Any) -> str:
    """What a type of elements is called, whoever made it.

    >>> name_of_type("float16"), name_of_type(np.float16), name_of_type(np.dtype("int8"))
    ('float16', 'float16', 'int8')
    """
    if isinstance(dtype, str):
        return dtype.rpartition(".")[2]
    if isinstance(dtype, np.dtype | type):
        try:
            return np.dtype(dtype).name
        except TypeError:
            return dtype.__name__ if isinstance(dtype, type) else str(dtype)
    return str(dtype).rpartition(".")[2]


def checked_host_dtype(dtype: object) -> DType:
    """A type of elements to compute with, under its name.

    Raises:
        LayoutError: there is none.
    """
    try:
        return DType(name_of_type(dtype))
    except TypeMismatchError as error:
        raise LayoutError(f"stick layout: {error.message}", kind=error.kind) from None
