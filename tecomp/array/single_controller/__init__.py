"""Single-controller execution: one process runs the script and sends operations to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.array.single_controller.protocol import (
        RemoteCall,
        encode_value,
        pack_message,
        unpack_message,
    )

__getattr__, __dir__ = lazy_names(__name__)
