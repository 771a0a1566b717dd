"""Intrinsics for `s[T].tensorize`: CPU instructions, and units that targets describe."""

from __future__ import annotations

from tecomp.schedules.intrinsics.cpu import bf16_dot, intrinsics, vnni

__all__ = ["bf16_dot", "intrinsics", "vnni"]
