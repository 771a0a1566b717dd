"""What there is in the namespace: devices, element types, limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.array.graph.devices import CPU, default_dtype, device_name, dtypes_of, known_devices
from tecomp.errors import ArrayValueError
from tecomp.ptensor.promotion import BOOLEAN, COMPLEX, FLOATS, SIGNED, UNSIGNED
from tecomp.ptensor.types import numpy_dtype

_FLOATS = tuple([name for name in FLOATS if name in ("float32", "float64")])

_KINDS = {
    "bool": BOOLEAN,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": (*SIGNED, *UNSIGNED),
    "real floating": _FLOATS,
    "complex floating": COMPLEX,
    "numeric": (*SIGNED, *UNSIGNED, *_FLOATS, *COMPLEX),
}


class Info:
    """Answers to questions about the namespace.

    Source:
        The Python array API standard, "inspection".
    """

    def capabilities(self) -> dict[str, Any]:
        """What not every library can, and how many axes an array has at most.

        >>> Info().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where arrays are made if nobody says where.

        >>> Info().default_device()
        'cpu'
        """
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The element types of arrays if nobody says which.

        Raises:
            ArrayValueError: there is no such device.

        >>> Info().default_dtypes()["real floating"]
        dtype('float64')
        """
        place = device_name(device, "default_dtypes")
        names = {"real floating": "float64", "complex floating": "complex128",
                 "integral": "int64", "indexing": "int64"}
        return {
            kind: numpy_dtype(default_dtype(name, place)) for kind, name in names.items()
        }

    def devices(self) -> list[str]:
        """Where arrays can be.

        >>> "cpu" in Info().devices()
        True
        """
        return list(known_devices())

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The element types of the standard that a device stores, by name.

        Args:
            device: which; the processor if None.
            kind: only those of this kind, or of one of several.

        Raises:
            ArrayValueError: there is no such device or kind.

        >>> list(Info().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        several = ("bool", "numeric") if kind is None else kind
        known = several if isinstance(several, list | tuple) else [several]
        for one in known:
            if not isinstance(one, str) or one not in _KINDS:
                raise ArrayValueError(
                    f"dtypes: there is no kind {one!r}; these are {', '.join(_KINDS)}"
                )
        place = device_name(device, "dtypes")
        names = dict.fromkeys(name for one in known for name in _KINDS[one])
        taken = dtypes_of(place)
        return {name: numpy_dtype(name) for name in names if name in taken}


def __array_namespace_info__() -> Info:  # noqa: N807  the standard's name
    """What there is in the namespace.

    >>> __array_namespace_info__().default_device()
    'cpu'
    """
    return Info()
