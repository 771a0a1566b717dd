"""Recurrent layers as scans: RNN, LSTM and GRU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp import te, topi
from tecomp.onnx.layers import product
from tecomp.onnx.node import OpNode, operator

Activation = Callable[[te.Expr], te.Expr]
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def _const(x: te.Expr, value: float) -> te.Expr:
    return te.const(value, x.dtype)


def _clamped(x: te.Expr, low: float, high: float) -> te.Expr:
    return te.max(te.min(x, _const(x, high)), _const(x, low))


# Functions of a value, alpha and beta, with the defaults of both.
_ACTIVATIONS: dict[str, tuple[Callable[[te.Expr, float, float], te.Expr], float, float]] = {
    "relu": (lambda x, a, b: te.max(x, _const(x, 0)), 0, 0),
    "tanh": (lambda x, a, b: te.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: te.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: _const(x, a) * x + _const(x, b), 1, 0),
    "leakyrelu": (lambda x, a, b: te.select(x >= _const(x, 0), x, _const(x, a) * x), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: te.select(x >= _const(x, a), x, _const(x, 0)), 1, 0),
    "scaledtanh": (lambda x, a, b: _const(x, a) * te.tanh(_const(x, b) * x), 1, 1),
    "hardsigmoid": (lambda x, a, b: _clamped(_const(x, a) * x + _const(x, b), 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: te.select(
        x >= _const(x, 0), x, _const(x, a) * (te.exp(x) - _const(x, 1))), 1, 0),
    "softsign": (lambda x, a, b: x / (_const(x, 1) + te.abs(x)), 0, 0),
    "softplus": (lambda x, a, b: te.log(_const(x, 1) + te.exp(x)), 0, 0),
}


@dataclass(frozen=True)
class _Direction:
    """One direction of a layer.

    Attributes:
        x: Products of the inputs with weights and biases, (steps, batch, gates * size).
        r: Weights of the recurrence, (gates * size, size).
        recurrent_bias: Bias of the recurrence, (gates * size,); None if it is zero.
        h: Initial state, (batch, size).
        c: Initial cell, or None.
        peepholes: Weights of the peepholes, (3 * size,), or None.
        lengths: Number of steps of each sequence, or None for all.
        is_reverse: Whether steps run from the last to the first.
        functions: Activation functions.
    """

    x: te.Tensor
    r: te.Tensor
    recurrent_bias: te.Tensor | None
    h: te.Tensor
    c: te.Tensor | None
    peepholes: te.Tensor | None
    lengths: te.Tensor | None
    is_reverse: bool
    functions: Sequence[Activation]

    def step(self, t: te.Expr, b: te.Expr) -> te.Expr:
        """Return the input step that scan step `t` reads, for sequence `b` of the batch."""
        if not self.is_reverse:
            return t
        if self.lengths is None:
            return self.x.shape[0] - 1 - t
        last = te.cast(self.lengths(b), "int64") - 1
        return te.select(te.cast(t, "int64") <= last, last - t, te.cast(t, "int64"))

    def keep(self, t: te.Expr, b: te.Expr, new: te.Expr, old: te.Expr) -> te.Expr:
        """Return the new state, or the old one after the end of the sequence."""
        if self.lengths is None:
            return new
        return te.select(te.cast(t, "int64") <= te.cast(self.lengths(b), "int64"), new, old)


@operator("RNN", "GRU", "LSTM")
def _layer(node: OpNode) -> list[te.Tensor | None]:
    x, w, r = (node.tensor(k) for k in range(3))
    is_batch_first = bool(node.attribute("layout", 0))
    x = topi.transpose(x, (1, 0, 2)) if is_batch_first else x
    if node.attribute("input_forget", 0):
        raise node.error("coupled input and forget gates are not supported")
    steps, batch = x.shape[:2]
    count, size = r.shape[0], r.shape[2]
    direction = node.attribute("direction", "forward")
    expected = (2 if direction == "bidirectional" else 1, _GATES[node.kind] * size)
    if (count, w.shape[1]) != expected:
        raise node.error("the weights have shapes {w} and {r}", w=w.shape, r=r.shape)
    results = [
        _run(node, _direction(node, x, w, r, k, direction == "reverse" or k == 1, is_batch_first))
        for k in range(count)]

    def output(*index: te.Expr) -> te.Expr:
        t, d, b, j = index if not is_batch_first else (index[1], index[2], index[0], index[3])
        found = results[0][0](t, b, j)
        return found if count == 1 else te.select(te.all(d < 1), found, results[1][0](t, b, j))

    def last(state: int) -> te.Tensor:
        def element(*index: te.Expr) -> te.Expr:
            d, b, j = index if not is_batch_first else (index[1], index[0], index[2])
            found = results[0][state](b, j)
            return found if count == 1 else te.select(te.all(d < 1), found, results[1][state](b, j))

        shape = (batch, count, size) if is_batch_first else (count, batch, size)
        tensor: te.Tensor = te.compute(shape, element, name="state")
        return tensor

    shape = (batch, steps, count, size) if is_batch_first else (steps, count, batch, size)
    y = te.compute(shape, output, name="outputs") if node.returns(0) else None
    return [y, last(1) if node.returns(1) else None, last(2) if node.returns(2) else None]


def _direction(
    node: OpNode, x: te.Tensor, w: te.Tensor, r: te.Tensor, k: int, is_reverse: bool,
    is_batch_first: bool,
) -> _Direction:
    size, batch, dtype = r.shape[2], x.shape[1], str(x.dtype)
    gates = _GATES[node.kind]

    def row(source: te.Tensor) -> te.Tensor:
        tensor: te.Tensor = te.compute(source.shape[1:], lambda *i: source(k, *i), name="weights")
        return tensor

    def initial(position: int) -> te.Tensor:
        if not node.has(position):
            tensor: te.Tensor = topi.full((batch, size), dtype, te.const(0, dtype))
            return tensor
        source = node.tensor(position)
        tensor = te.compute((batch, size), lambda b, j: (
            source(b, k, j) if is_batch_first else source(k, b, j)), name="initial")
        return tensor

    products = product(x, topi.transpose(row(w)))
    recurrent = None
    if node.has(3):
        bias = node.tensor(3)
        products = topi.add(products, te.compute(
            (gates * size,), lambda j: bias(k, j), name="bias"))
        recurrent = te.compute(
            (gates * size,), lambda j: bias(k, j + gates * size), name="recurrent_bias")
    return _Direction(
        products, row(r), recurrent, initial(5), initial(6) if node.kind == "LSTM" else None,
        row(node.tensor(7)) if node.has(7) else None, node.tensor(4) if node.has(4) else None,
        is_reverse, _activations(node, k))


def _activations(node: OpNode, k: int) -> list[Activation]:
    count = len(_DEFAULTS[node.kind])
    names = node.attribute("activations", _DEFAULTS[node.kind] * 2)[k * count:(k + 1) * count]
    alphas, betas = ([*node.attribute(f"activation_{name}", [])] for name in ("alpha", "beta"))
    clip = node.attribute("clip", 0.0)
    found: list[Activation] = []
    for place, name in enumerate(names, k * count):
        if name.lower() not in _ACTIVATIONS:
            raise node.error("the activation {name} is not supported", name=name)
        function, alpha, beta = _ACTIVATIONS[name.lower()]
        alpha = alphas[place] if place < len(alphas) else alpha
        beta = betas[place] if place < len(betas) else beta
        found.append(_bind(function, alpha, beta, clip))
    return found


def _bind(
    function: Callable[[te.Expr, float, float], te.Expr], alpha: float, beta: float, clip: float
) -> Activation:
    return lambda x: function(_clamped(x, -clip, clip) if clip else x, alpha, beta)


def _run(node: OpNode, d: _Direction) -> list[te.Tensor]:
    """Return the outputs of all steps, the last state, and the last cell of an LSTM."""
    steps, batch = d.x.shape[:2]
    size, dtype = d.r.shape[1], str(d.x.dtype)
    shape = (steps + 1, batch, size)
    state: te.Tensor = te.placeholder(shape, dtype, name="h")
    first: te.Tensor = te.compute((1, batch, size), lambda t, b, j: d.h(b, j), name="first")
    k = te.reduce_axis((0, size), name="k")

    def gates_from(read: Callable[..., te.Expr], begin: int, count: int) -> te.Tensor:
        tensor: te.Tensor = te.compute(
            (steps + 1, batch, count * size),
            lambda t, b, n: te.sum(read(t, b, k) * d.r(n + begin * size, k), axis=k), name="gates")
        return tensor

    def with_input(t: te.Expr, b: te.Expr, n: Any) -> te.Expr:
        return d.x(d.step(t - 1, b), b, n)

    def bias(n: Any) -> te.Expr:
        return te.const(0, dtype) if d.recurrent_bias is None else d.recurrent_bias(n)

    def before(t: te.Expr, b: te.Expr, j: te.Expr) -> te.Expr:
        return state(t - 1, b, j)

    if node.kind == "LSTM":
        return _run_lstm(d, first, state, gates_from(before, 0, 4), with_input, bias)
    if node.kind == "RNN":
        gates = gates_from(before, 0, 1)
        update = te.compute(shape, lambda t, b, j: d.keep(
            t, b, d.functions[0](with_input(t, b, j) + gates(t, b, j) + bias(j)),
            state(t - 1, b, j)), name="h_next")
    else:
        update = _gru_update(node, d, state, gates_from, with_input, bias)
    found: te.Tensor = te.scan(first, update, state, name="recurrence")
    return [_outputs(d, found), _last(d, found)]


def _gru_update(
    node: OpNode, d: _Direction, state: te.Tensor, gates_from: Callable[..., te.Tensor],
    with_input: Callable[..., te.Expr], bias: Callable[[Any], te.Expr],
) -> te.Tensor:
    size = d.r.shape[1]
    gate, last = d.functions
    both = gates_from(lambda t, b, k: state(t - 1, b, k), 0, 2)
    opened: te.Tensor = te.compute(
        both.shape, lambda t, b, n: gate(with_input(t, b, n) + both(t, b, n) + bias(n)),
        name="open")
    if node.attribute("linear_before_reset", 0):
        inner = gates_from(lambda t, b, k: state(t - 1, b, k), 2, 1)

        def hidden(t: te.Expr, b: te.Expr, j: te.Expr) -> te.Expr:
            return last(with_input(t, b, j + 2 * size) + opened(t, b, j + size) * (
                inner(t, b, j) + bias(j + 2 * size)))
    else:
        reset: te.Tensor = te.compute(
            state.shape, lambda t, b, j: opened(t, b, j + size) * state(t - 1, b, j), name="reset")
        inner = gates_from(lambda t, b, k: reset(t, b, k), 2, 1)

        def hidden(t: te.Expr, b: te.Expr, j: te.Expr) -> te.Expr:
            return last(with_input(t, b, j + 2 * size) + inner(t, b, j) + bias(j + 2 * size))

    def element(t: te.Expr, b: te.Expr, j: te.Expr) -> te.Expr:
        z = opened(t, b, j)
        new = (te.const(1, z.dtype) - z) * hidden(t, b, j) + z * state(t - 1, b, j)
        return d.keep(t, b, new, state(t - 1, b, j))

    result: te.Tensor = te.compute(state.shape, element, name="h_next")
    return result


def _run_lstm(
    d: _Direction, first: te.Tensor, state: te.Tensor, gates: te.Tensor,
    with_input: Callable[..., te.Expr], bias: Callable[[Any], te.Expr],
) -> list[te.Tensor]:
    size, shape = d.r.shape[1], state.shape
    f, g, h = d.functions
    cell: te.Tensor = te.placeholder(shape, str(state.dtype), name="c")
    assert d.c is not None
    first_cell: te.Tensor = te.compute(
        first.shape, lambda t, b, j: d.c(b, j), name="first_cell")  # type: ignore[misc]
    total: te.Tensor = te.compute(
        gates.shape, lambda t, b, n: gates(t, b, n) + with_input(t, b, n) + bias(n), name="total")

    def peephole(place: int, c: te.Expr, j: te.Expr) -> te.Expr:
        return te.const(0, c.dtype) if d.peepholes is None else d.peepholes(j + place * size) * c

    def next_cell(t: te.Expr, b: te.Expr, j: te.Expr) -> te.Expr:
        old = cell(t - 1, b, j)
        opened = f(total(t, b, j) + peephole(0, old, j))
        forget = f(total(t, b, j + 2 * size) + peephole(2, old, j))
        return d.keep(t, b, forget * old + opened * g(total(t, b, j + 3 * size)), old)

    cells: te.Tensor = te.compute(shape, next_cell, name="c_next")

    def next_state(t: te.Expr, b: te.Expr, j: te.Expr) -> te.Expr:
        out = f(total(t, b, j + size) + peephole(1, cells(t, b, j), j))
        return d.keep(t, b, out * h(cells(t, b, j)), state(t - 1, b, j))

    states: te.Tensor = te.compute(shape, next_state, name="h_next")
    hs, cs = te.scan([first, first_cell], [states, cells], [state, cell], name="lstm")
    return [_outputs(d, hs), _last(d, hs), _last(d, cs)]


def _outputs(d: _Direction, states: te.Tensor) -> te.Tensor:
    """Return the states of all steps in the order of the inputs; zero after the end."""
    steps, batch, size = d.x.shape[0], *states.shape[1:]

    def element(t: te.Expr, b: te.Expr, j: te.Expr) -> te.Expr:
        found = states(d.step(t, b) + 1, b, j)
        if d.lengths is None:
            return found
        inside = te.cast(t, "int64") < te.cast(d.lengths(b), "int64")
        return te.select(inside, found, te.const(0, found.dtype))

    result: te.Tensor = te.compute((steps, batch, size), element, name="outputs")
    return result


def _last(d: _Direction, states: te.Tensor) -> te.Tensor:
    steps = d.x.shape[0]
    result: te.Tensor = te.compute(
        states.shape[1:], lambda b, j: states(steps, b, j), name="last")
    return result
