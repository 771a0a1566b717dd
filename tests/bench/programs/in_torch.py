"""Programs as PyTorch's own operators, where those differ from NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch

from tests.bench.programs.in_arrays import Library


class Torch(Library):
    """PyTorch, eager or compiled."""

    m = SimpleNamespace(
        exp=torch.exp, tanh=torch.tanh, sqrt=torch.sqrt, log=torch.log, sin=torch.sin,
        abs=torch.abs, where=torch.where,
        maximum=lambda x, y: torch.clamp(x, min=y),
        minimum=lambda x, y: torch.clamp(x, max=y),
    )

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        """A view."""
        return x.permute(*axes)

    def reduce(self, x: Any, op: str, axes: tuple[int, ...], keepdims: bool) -> Any:
        """Extremes of several axes have names of their own."""
        name = {"max": "amax", "min": "amin"}.get(op, op)
        return getattr(torch, name)(x, dim=axes, keepdim=keepdims)

    def product(self, letters: str, x: Any, y: Any) -> Any:
        """By matrix products."""
        return torch.einsum(letters, x, y)

    def conv2d(self, x: Any, w: Any, *, stride: int, padding: int, groups: int) -> Any:
        """Channels last in memory."""
        made = torch.nn.functional.conv2d(
            x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), stride=stride, padding=padding,
            groups=groups,
        )
        return made.permute(0, 2, 3, 1)

    def pool(self, x: Any, *, op: str, window: int, stride: int, padding: int = 0) -> Any:
        """Channels last in memory."""
        functional = torch.nn.functional
        function = functional.max_pool2d if op == "max" else functional.avg_pool2d
        return function(
            x.permute(0, 3, 1, 2), window, stride=stride, padding=padding
        ).permute(0, 2, 3, 1)

    def scan(self, x: Any, op: str, axis: int) -> Any:
        """Sums or maxima."""
        return torch.cumsum(x, axis) if op == "sum" else torch.cummax(x, axis).values

    def pad(self, x: Any, width: int) -> Any:
        """Zeros."""
        return torch.nn.functional.pad(x, (width,) * 4)

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """One after the other."""
        return torch.cat(list(parts), dim=axis)

    def repeat(self, x: Any, count: int, axis: int) -> Any:
        """Each element several times."""
        return torch.repeat_interleave(x, count, dim=axis)

    def flip(self, x: Any, axis: int) -> Any:
        """A copy."""
        return torch.flip(x, (axis,))

    def cast(self, x: Any, dtype: str) -> Any:
        """In another type."""
        return x.to(getattr(torch, dtype))

    def arange(self, count: int) -> Any:
        """Numbers from 0."""
        return torch.arange(count)
