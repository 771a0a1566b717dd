"""Networks: a transformer encoder layer, ResNet-50 convolutions and a perceptron."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

from tests.bench.programs.describe import Description, Input, Value, Writer


def _weights(w: Writer, *shape: int, depth: int = 1) -> Value:
    return w.input(Input(shape, scale=1.7 / sqrt(depth), is_constant=True))


def _dense(w: Writer, x: Value, depth: int, count: int) -> Value:
    product = w.add("product", x, _weights(w, depth, count, depth=depth), letters="ik,kj->ij")
    return w.add("formula", product, _weights(w, count), name="add")


def _norm(w: Writer, x: Value, width: int) -> Value:
    centred = w.add("norm", x, form="layer")
    return w.add("formula", centred, _weights(w, width), _weights(w, width), name="scale_shift")


def perceptron(batch: int, widths: tuple[int, ...] = (784, 512, 512, 10)) -> Description:
    """Return a perceptron with three layers."""
    w = Writer()
    x = w.input(Input((batch, widths[0])))
    for k, (depth, count) in enumerate(pairwise(widths)):
        x = _dense(w, x, depth, count)
        if k < len(widths) - 2:
            x = w.add("formula", x, name="relu")
    return w.description()


def encoder_layer(
    tokens: int = 128, width: int = 768, heads: int = 12, hidden: int = 3072
) -> Description:
    """Return a pre-norm encoder layer of a transformer."""
    w, per_group = Writer(), width // heads
    x = w.input(Input((tokens, width)))
    normed = _norm(w, x, width)
    q, k, v = (
        w.add("reshape", _dense(w, normed, width, width), shape=(tokens, heads, per_group))
        for _ in range(3)
    )
    scores = w.add("product", q, k, letters="ihd,jhd->hij")
    scaled = w.add("formula", scores, w.input(Input((1,), is_constant=True)), name="multiply")
    shares = w.add("softmax", scaled, axis=-1, form="plain")
    mixed = w.add("product", shares, v, letters="hij,jhd->ihd")
    flat = w.add("reshape", mixed, shape=(tokens, width))
    middle = w.add("formula", x, _dense(w, flat, width, width), name="add")
    up = w.add("formula", _dense(w, _norm(w, middle, width), width, hidden), name="gelu")
    w.add("formula", middle, _dense(w, up, hidden, width), name="add")
    return w.description()


def resnet50(side: int = 224) -> Description:
    """Return the convolutions of ResNet-50 on one image, with norms folded into the weights."""
    w = Writer()

    def conv(x: Value, depth: int, count: int, taps: int, stride: int = 1) -> Value:
        weights = _weights(w, taps, taps, depth, count, depth=taps * taps * depth)
        result = w.add("conv2d", x, weights, stride=stride, padding=taps // 2, groups=1)
        return w.add("formula", result, _weights(w, count), name="add")

    def relu(x: Value) -> Value:
        return w.add("formula", x, name="relu")

    x = relu(conv(w.input(Input((1, side, side, 3))), 3, 64, 7, 2))
    x = w.add("pool", x, op="max", window=3, stride=2, padding=1)
    depth = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = relu(conv(x, depth, inner, 1))
            y = relu(conv(y, inner, inner, 3, stride))
            y = conv(y, inner, 4 * inner, 1)
            beside = x if block else conv(x, depth, 4 * inner, 1, stride)
            x = relu(w.add("formula", y, beside, name="add"))
            depth = 4 * inner
    return w.description()
