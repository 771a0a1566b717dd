"""Kernels that copy tensors between layouts, as scheduled copies of boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.relayout_kernels.box_copy import CopyEndpoint, CopySpec
    from tecomp.relayout_kernels.kernel import function_of, kernel_of

__getattr__, __dir__ = lazy_names(__name__)
