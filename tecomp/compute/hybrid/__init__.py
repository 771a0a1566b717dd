"""`te.hybrid`: tensors that Python functions describe by loops over elements."""

from __future__ import annotations

from tecomp.compute.hybrid.script import HybridFunction, script

__all__ = ["HybridFunction", "script"]
