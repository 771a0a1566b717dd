"""Arrays of the array-API standard: lazy, compiled, with devices and distributed arrays."""

from types import ModuleType
from typing import TYPE_CHECKING

from tecomp.array import fft as fft
from tecomp.array import linalg as linalg
from tecomp.array.array_object import Array as Array
from tecomp.array.constants import bool as bool
from tecomp.array.constants import complex64 as complex64
from tecomp.array.constants import complex128 as complex128
from tecomp.array.constants import e as e
from tecomp.array.constants import float32 as float32
from tecomp.array.constants import float64 as float64
from tecomp.array.constants import inf as inf
from tecomp.array.constants import int8 as int8
from tecomp.array.constants import int16 as int16
from tecomp.array.constants import int32 as int32
from tecomp.array.constants import int64 as int64
from tecomp.array.constants import nan as nan
from tecomp.array.constants import newaxis as newaxis
from tecomp.array.constants import pi as pi
from tecomp.array.constants import uint8 as uint8
from tecomp.array.constants import uint16 as uint16
from tecomp.array.constants import uint32 as uint32
from tecomp.array.constants import uint64 as uint64
from tecomp.array.functions.creation import arange as arange
from tecomp.array.functions.creation import empty as empty
from tecomp.array.functions.creation import empty_like as empty_like
from tecomp.array.functions.creation import eye as eye
from tecomp.array.functions.creation import full as full
from tecomp.array.functions.creation import full_like as full_like
from tecomp.array.functions.creation import linspace as linspace
from tecomp.array.functions.creation import meshgrid as meshgrid
from tecomp.array.functions.creation import ones as ones
from tecomp.array.functions.creation import ones_like as ones_like
from tecomp.array.functions.creation import tril as tril
from tecomp.array.functions.creation import triu as triu
from tecomp.array.functions.creation import zeros as zeros
from tecomp.array.functions.creation import zeros_like as zeros_like
from tecomp.array.functions.data_types import __array_namespace_info__ as __array_namespace_info__
from tecomp.array.functions.data_types import asarray as asarray
from tecomp.array.functions.data_types import astype as astype
from tecomp.array.functions.data_types import can_cast as can_cast
from tecomp.array.functions.data_types import finfo as finfo
from tecomp.array.functions.data_types import from_dlpack as from_dlpack
from tecomp.array.functions.data_types import iinfo as iinfo
from tecomp.array.functions.data_types import isdtype as isdtype
from tecomp.array.functions.data_types import result_type as result_type
from tecomp.array.functions.extensions import empty_strided as empty_strided
from tecomp.array.functions.extensions import eval as eval
from tecomp.array.functions.extensions import explain as explain
from tecomp.array.functions.extensions import from_local as from_local
from tecomp.array.functions.extensions import gather as gather
from tecomp.array.functions.extensions import redistribute as redistribute
from tecomp.array.functions.extensions import relayout_to as relayout_to
from tecomp.array.functions.extensions import restickify as restickify
from tecomp.array.functions.linear_algebra import einsum as einsum
from tecomp.array.functions.linear_algebra import matmul as matmul
from tecomp.array.functions.linear_algebra import matrix_transpose as matrix_transpose
from tecomp.array.functions.linear_algebra import tensordot as tensordot
from tecomp.array.functions.linear_algebra import vecdot as vecdot
from tecomp.array.functions.manipulation import broadcast_arrays as broadcast_arrays
from tecomp.array.functions.manipulation import broadcast_shapes as broadcast_shapes
from tecomp.array.functions.manipulation import broadcast_to as broadcast_to
from tecomp.array.functions.manipulation import concat as concat
from tecomp.array.functions.manipulation import expand_dims as expand_dims
from tecomp.array.functions.manipulation import flip as flip
from tecomp.array.functions.manipulation import moveaxis as moveaxis
from tecomp.array.functions.manipulation import permute_dims as permute_dims
from tecomp.array.functions.manipulation import repeat as repeat
from tecomp.array.functions.manipulation import reshape as reshape
from tecomp.array.functions.manipulation import roll as roll
from tecomp.array.functions.manipulation import squeeze as squeeze
from tecomp.array.functions.manipulation import stack as stack
from tecomp.array.functions.manipulation import take as take
from tecomp.array.functions.manipulation import take_along_axis as take_along_axis
from tecomp.array.functions.manipulation import tile as tile
from tecomp.array.functions.manipulation import unstack as unstack
from tecomp.array.functions.numerical import allclose as allclose
from tecomp.array.functions.numerical import array_equal as array_equal
from tecomp.array.functions.numerical import call_on_host as call_on_host
from tecomp.array.functions.numerical import convolve as convolve
from tecomp.array.functions.numerical import correlate as correlate
from tecomp.array.functions.numerical import diag as diag
from tecomp.array.functions.numerical import gradient as gradient
from tecomp.array.functions.numerical import interp as interp
from tecomp.array.functions.numerical import isclose as isclose
from tecomp.array.functions.numerical import kron as kron
from tecomp.array.functions.numerical import nan_to_num as nan_to_num
from tecomp.array.functions.numerical import pad as pad
from tecomp.array.functions.numerical import trapezoid as trapezoid
from tecomp.array.functions.numerical import tri as tri
from tecomp.array.functions.numerical import vander as vander
from tecomp.array.functions.searching import clip as clip
from tecomp.array.functions.searching import nonzero as nonzero
from tecomp.array.functions.searching import searchsorted as searchsorted
from tecomp.array.functions.searching import where as where
from tecomp.array.functions.sorting_and_sets import argsort as argsort
from tecomp.array.functions.sorting_and_sets import isin as isin
from tecomp.array.functions.sorting_and_sets import sort as sort
from tecomp.array.functions.sorting_and_sets import unique_all as unique_all
from tecomp.array.functions.sorting_and_sets import unique_counts as unique_counts
from tecomp.array.functions.sorting_and_sets import unique_inverse as unique_inverse
from tecomp.array.functions.sorting_and_sets import unique_values as unique_values
from tecomp.array.functions.statistical import bincount as bincount
from tecomp.array.functions.statistical import corrcoef as corrcoef
from tecomp.array.functions.statistical import cov as cov
from tecomp.array.functions.statistical import diff as diff
from tecomp.array.functions.statistical import digitize as digitize
from tecomp.array.functions.statistical import histogram as histogram
from tecomp.array.functions.statistical import histogram2d as histogram2d
from tecomp.array.functions.statistical import median as median
from tecomp.array.functions.statistical import nanmax as nanmax
from tecomp.array.functions.statistical import nanmean as nanmean
from tecomp.array.functions.statistical import nanmin as nanmin
from tecomp.array.functions.statistical import nanstd as nanstd
from tecomp.array.functions.statistical import nansum as nansum
from tecomp.array.functions.statistical import nanvar as nanvar
from tecomp.array.functions.statistical import percentile as percentile
from tecomp.array.functions.statistical import quantile as quantile
from tecomp.array.functions.table_functions import *  # noqa: F403
from tecomp.array.interop.numpy_dispatch import unsupported_function_error as _missing_error
from tecomp.array.jit import jit as jit
from tecomp.array.reporting import report as report
from tecomp.array.reporting import reset as reset
from tecomp.array.reporting import timeline as timeline
from tecomp.lazy_imports import lazy_names as _lazy_names

if TYPE_CHECKING:  # loaded on first use
    from tecomp.array.batching import vmap
    from tecomp.array.derivatives import (
        custom_vjp,
        grad,
        hessian,
        jacobian,
        jvp,
        stop_gradient,
        value_and_grad,
        vjp,
    )

__array_api_version__ = "2024.12"

_MODULES = {"statistics", "fft", "linalg", "random"}


def _is_shown(name: str, value: object) -> object:
    is_inside = isinstance(value, ModuleType) and name not in _MODULES
    return not is_inside and name not in {"ModuleType", "TYPE_CHECKING"}

if not TYPE_CHECKING:
    __getattr__, _names = _lazy_names(
        __name__, submodules=frozenset({"random"}), renamed={"counters": "tecomp.array.statistics"},
        missing=lambda name: _missing_error(
            name, [n for n, value in globals().items() if callable(value)]
        ),
        public=lambda: [name for name in __dir__() if name[0] != "_"],
    )

    def __dir__() -> list[str]:
        """Return the public names of the namespace, without the modules of the package."""
        values = globals()
        return [name for name in _names() if _is_shown(name, values.get(name))]
else:
    from tecomp.array import random as random
