"""Programs with JAX operators where these differ from NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from tests.bench.programs.in_arrays import Library


class Jax(Library):
    """JAX functions for jitted programs."""

    m = SimpleNamespace(
        exp=jnp.exp, tanh=jnp.tanh, sqrt=jnp.sqrt, log=jnp.log, sin=jnp.sin, abs=jnp.abs,
        maximum=jnp.maximum, minimum=jnp.minimum, where=jnp.where,
    )

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        """Permute the axes."""
        return jnp.transpose(x, axes)

    def reduce(self, x: Any, op: str, axes: tuple[int, ...], keepdims: bool) -> Any:
        """Compute `sum`, `mean`, `max` or `min` over some axes."""
        return getattr(jnp, op)(x, axis=axes, keepdims=keepdims)

    def product(self, letters: str, x: Any, y: Any) -> Any:
        """Compute an einsum of two arrays."""
        return jnp.einsum(letters, x, y)

    def conv2d(self, x: Any, w: Any, *, stride: int, padding: int, groups: int) -> Any:
        """Convolve with channels-last input and output."""
        return jax.lax.conv_general_dilated(
            x, w, (stride, stride), [(padding, padding)] * 2,
            dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups,
        )

    def pool(self, x: Any, *, op: str, window: int, stride: int, padding: int = 0) -> Any:
        """Pool channels-last images."""
        is_max = op == "max"
        start, combine = (-jnp.inf, jax.lax.max) if is_max else (0.0, jax.lax.add)
        total = jax.lax.reduce_window(
            x, start, combine, (1, window, window, 1), (1, stride, stride, 1),
            [(0, 0), (padding, padding), (padding, padding), (0, 0)],
        )
        return total if is_max else total * (1.0 / window**2)

    def scan(self, x: Any, op: str, axis: int) -> Any:
        """Call XLA's cumulative operations for CPUs."""
        return (jnp.cumsum if op == "sum" else jax.lax.cummax)(x, axis=axis)

    def pad(self, x: Any, width: int) -> Any:
        """Pad with zeros."""
        return jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(width, width)] * 2)

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """Concatenate arrays along an axis."""
        return jnp.concatenate(parts, axis=axis)

    def repeat(self, x: Any, count: int, axis: int) -> Any:
        """Repeat each element along an axis."""
        return jnp.repeat(x, count, axis=axis)

    def flip(self, x: Any, axis: int) -> Any:
        """Reverse an axis."""
        return jnp.flip(x, axis=axis)

    def arange(self, count: int) -> Any:
        """Return consecutive integers from 0."""
        return jnp.arange(count)
