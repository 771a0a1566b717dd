"""Programs with PyTorch operators where these differ from NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from tests.bench.programs.in_arrays import Library


class Torch(Library):
    """PyTorch functions, eager or compiled."""

    m = SimpleNamespace(
        exp=torch.exp, tanh=torch.tanh, sqrt=torch.sqrt, log=torch.log, sin=torch.sin,
        abs=torch.abs, where=torch.where,
        maximum=lambda x, y: torch.clamp(x, min=y),
        minimum=lambda x, y: torch.clamp(x, max=y),
    )

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        """Return a view with permuted axes."""
        return x.permute(*axes)

    def reduce(self, x: Any, op: str, axes: tuple[int, ...], keepdims: bool) -> Any:
        """Reduce axes; `amax` and `amin` support several axes."""
        name = {"max": "amax", "min": "amin"}.get(op, op)
        return getattr(torch, name)(x, dim=axes, keepdim=keepdims)

    def product(self, letters: str, x: Any, y: Any) -> Any:
        """Compute an einsum by matrix products."""
        return torch.einsum(letters, x, y)

    def conv2d(self, x: Any, w: Any, *, stride: int, padding: int, groups: int) -> Any:
        """Convolve in channels-last memory format."""
        result = torch.nn.functional.conv2d(
            x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), stride=stride, padding=padding,
            groups=groups,
        )
        return result.permute(0, 2, 3, 1)

    def pool(self, x: Any, *, op: str, window: int, stride: int, padding: int = 0) -> Any:
        """Pool in channels-last memory format."""
        functional = torch.nn.functional
        function = functional.max_pool2d if op == "max" else functional.avg_pool2d
        return function(
            x.permute(0, 3, 1, 2), window, stride=stride, padding=padding
        ).permute(0, 2, 3, 1)

    def scan(self, x: Any, op: str, axis: int) -> Any:
        """Compute the cumulative sum or maximum."""
        return torch.cumsum(x, axis) if op == "sum" else torch.cummax(x, axis).values

    def pad(self, x: Any, width: int) -> Any:
        """Pad with zeros."""
        return torch.nn.functional.pad(x, (width,) * 4)

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """Concatenate tensors along an axis."""
        return torch.cat(list(parts), dim=axis)

    def repeat(self, x: Any, count: int, axis: int) -> Any:
        """Repeat each element along an axis."""
        return torch.repeat_interleave(x, count, dim=axis)

    def flip(self, x: Any, axis: int) -> Any:
        """Return a reversed copy."""
        return torch.flip(x, (axis,))

    def cast(self, x: Any, dtype: str) -> Any:
        """Cast to another dtype."""
        return x.to(getattr(torch, dtype))

    def arange(self, count: int) -> Any:
        """Return consecutive integers from 0."""
        return torch.arange(count)
