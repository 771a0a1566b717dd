"""Compiled copies, each made once."""

from __future__ import annotations

from functools import lru_cache

from tecomp.codegen.calls.kernel import Kernel
from tecomp.ir.language.stmt import Buffer
from tecomp.relayouts.copy import Copy
from tecomp.relayouts.function import host_function


@lru_cache(maxsize=256)
def kernel_of(copy: Copy, name: str = "copy") -> Kernel:
    """A copy compiled, for two arrays in the shapes of the places."""
    signature = [
        Buffer("source", copy.source.places, copy.dtype),
        Buffer("result", copy.result.places, copy.dtype),
    ]
    return Kernel(host_function(copy, name), signature)
