"""`te.hybrid`: tensors defined by Python functions with loops over elements."""

from __future__ import annotations

import typing

from tecomp.compute.hybrid.script import HybridFunction, script
from tecomp.compute.tvm_compat import unsupported_name_message as _absent

__all__ = ["HybridFunction", "script"]


if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise _absent(__name__, name)
