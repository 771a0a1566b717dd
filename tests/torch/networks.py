"""Small networks of the kinds that users compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Residual(nn.Module):
    """Block of a residual network with pooling and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1))
        self.first = nn.Conv2d(8, 16, 3, 2, 1, bias=False)
        self.second = nn.Conv2d(16, 16, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(16), nn.BatchNorm2d(16)])
        self.shortcut = nn.Conv2d(8, 16, 1, 2, bias=False)
        self.classifier = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        """Return the scores of images."""
        x = self.stem(x)
        y = F.relu(self.norms[0](self.first(x)))
        y = F.relu(self.norms[1](self.second(y)) + self.shortcut(x))
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(y, 1), 1))


class UNet(nn.Module):
    """Network with a contracting and an expanding path."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.bottom = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 3, 3, padding=1)
        self.norm = nn.GroupNorm(4, 8)

    def forward(self, x: Any) -> Any:
        """Return images of the size of the input."""
        skip = F.silu(self.norm(self.down(x)))
        x = F.relu(self.bottom(F.max_pool2d(skip, 2)))
        x = F.avg_pool2d(F.interpolate(x, scale_factor=2, mode="nearest"), 2)
        return self.out(torch.cat([self.up(x), skip], 1))


class Transformer(nn.Module):
    """Block of a transformer over tokens."""

    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50, 32), nn.Embedding(64, 32)
        self.qkv, self.projection = nn.Linear(32, 96), nn.Linear(32, 32)
        self.norms = nn.ModuleList([nn.LayerNorm(32), nn.LayerNorm(32)])
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.scores = nn.Linear(32, 50, bias=False)
        self.is_causal = is_causal

    def forward(self, tokens: Any) -> Any:
        """Return the scores of the tokens."""
        batch, length = tokens.shape
        x = self.tokens(tokens) + self.positions(torch.arange(length))
        heads = self.qkv(self.norms[0](x)).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.is_causal)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, 32))
        return self.scores(x + self.mlp(self.norms[1](x)))


class Decoder(nn.Module):
    """Block with RMS normalization, rotary positions, grouped queries, SwiGLU and a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.out = (nn.Linear(32, 32, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(32, 16, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(32, 64, bias=False) for _ in range(2))
        self.down = nn.Linear(64, 32, bias=False)
        self.weights = nn.ParameterList([nn.Parameter(torch.rand(32) + 0.5) for _ in range(2)])

    def normalized(self, x: Any, number: int) -> Any:
        """Return the rows of `x` with a mean square of 1, scaled."""
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        return x * scale * self.weights[number]

    def rotated(self, x: Any, start: int) -> Any:
        """Return vectors that are rotated by their positions."""
        steps = torch.arange(start, start + x.shape[2]).float()
        angles = torch.outer(steps, 1e-4 ** (torch.arange(0, 8, 2) / 8))
        cosine, sine, first, second = angles.cos(), angles.sin(), x[..., ::2], x[..., 1::2]
        pairs = [first * cosine - second * sine, first * sine + second * cosine]
        return torch.stack(pairs, -1).flatten(-2)

    def forward(self, x: Any, keys: Any, values: Any) -> Any:
        """Return the hidden state, and the extended caches."""
        batch, length, _ = x.shape
        h = self.normalized(x, 0)
        query, key, value = (
            layer(h).view(batch, length, -1, 8).transpose(1, 2)
            for layer in (self.query, self.key, self.value))
        start = keys.shape[2]
        query, key = self.rotated(query, start), self.rotated(key, start)
        keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        mixed = F.scaled_dot_product_attention(
            query, keys.repeat_interleave(2, 1), values.repeat_interleave(2, 1),
            is_causal=start == 0)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, 32))
        h = self.normalized(x, 1)
        return x + self.down(F.silu(self.gate(h)) * self.up(h)), keys, values


class Vision(nn.Module):
    """Block of a transformer over patches of images."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, 4)
        self.start, self.positions = (
            nn.Parameter(torch.randn(1, n, 32)) for n in (1, 17))
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm, self.scores = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        """Return the scores of images."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.start.expand(x.shape[0], -1, -1), x], 1) + self.positions
        h = self.norm(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return self.scores(self.norm(x)[:, 0])


class Selective(nn.Module):
    """State-space layer with a scan over time."""

    def __init__(self) -> None:
        super().__init__()
        self.split, self.parameters_of, self.out = (
            nn.Linear(8, 32), nn.Linear(16, 9), nn.Linear(16, 8))
        self.mix = nn.Conv1d(16, 16, 4, padding=3, groups=16)
        self.decay = nn.Parameter(-torch.rand(16, 4))

    def forward(self, x: Any) -> Any:
        """Return a sequence of the length of the input."""
        x, gate = self.split(x).chunk(2, -1)
        length = x.shape[1]
        x = F.silu(self.mix(x.transpose(1, 2))[..., :length].transpose(1, 2))
        parameters = self.parameters_of(x)
        step = F.softplus(parameters[..., :1])
        state, rows = torch.zeros(x.shape[0], 16, 4), []
        for t in range(length):
            inputs = (step[:, t] * x[:, t])[..., None] * parameters[:, t, None, 1:5]
            state = torch.exp(step[:, t, :, None] * self.decay) * state + inputs
            rows.append((state * parameters[:, t, None, 5:]).sum(-1))
        return self.out(torch.stack(rows, 1) * F.silu(gate))


def _perceptron() -> Any:
    return nn.Sequential(
        nn.Linear(8, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1))


def _decoder(length: int, cached: int) -> Any:
    cache = [torch.randn(1, 2, cached, 8) for _ in range(2)]
    return Decoder(), (torch.randn(1, length, 32), *cache)


NETWORKS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "perceptron": lambda: (_perceptron(), (torch.randn(5, 8),)),
    "gpt": lambda: (Transformer(True), (torch.randint(0, 50, (2, 9)),)),
    "residual": lambda: (Residual(), (torch.randn(1, 3, 32, 32),)),
    "bert": lambda: (Transformer(False), (torch.randint(0, 50, (2, 9)),)),
    "unet": lambda: (UNet(), (torch.randn(1, 3, 16, 16),)),
    "prefill": lambda: _decoder(6, 0),
    "decode": lambda: _decoder(1, 5),
    "vision": lambda: (Vision(), (torch.randn(2, 3, 16, 16),)),
    "selective": lambda: (Selective(), (torch.randn(2, 6, 8),)),
}
"""Functions that return a network and its inputs, by kind."""
