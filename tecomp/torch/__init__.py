"""PyTorch: a backend of `torch.compile`, and programs of `torch.export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.torch.dynamo import ExportedModel, UnsupportedOperatorWarning, backend, load
    from tecomp.torch.operator_calls import supported_operators

__all__ = [
    "ExportedModel", "UnsupportedOperatorWarning", "backend", "load", "supported_operators",
]

__getattr__, __dir__ = lazy_names(__name__)
