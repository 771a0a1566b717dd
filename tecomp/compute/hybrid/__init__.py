"""`te.hybrid`: tensors defined by Python functions with loops over elements."""

from __future__ import annotations

import typing

from tecomp.compute.hybrid.script import HybridFunction, script
from tecomp.compute.tvm_compat import unsupported_name_message as _absent
from tecomp.lazy_imports import lazy_names as _lazy_names

__all__ = ["HybridFunction", "script"]


if not typing.TYPE_CHECKING:
    __getattr__ = _lazy_names(__name__, missing=lambda name: _absent(__name__, name))[0]
