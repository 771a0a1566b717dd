"""Print the relayout table of docs/programs.md: `python -m tests.bench.layouts_table`.

The table compares the bytes that relayouts of whole networks write by optimal layout assignment
with those of a greedy assignment in program order.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tecomp import Target, te
from tecomp.graph import choose_layouts, graph_of
from tests.bench.programs.in_te import tensors
from tests.bench.programs.networks import encoder_layer
from tests.graph.forward import forward_relayouts

MACHINES = ("stick128", "tensix_wh", str(Path(__file__).with_name("made_up.toml")))


Network = tuple[list[te.Tensor], list[te.Tensor], te.Tensor]
"""Inputs, constants and the result."""


def encoder() -> Network:
    """Return an encoder layer of a transformer."""
    program = encoder_layer()
    inputs, output = tensors(program)
    constants = [inputs[k] for k in program.constants]
    return [x for x in inputs if x not in constants], constants, output


def residual(side: int = 56, depth: int = 256, inner: int = 64) -> Network:
    """Return a residual block with NCHW images and folded norms."""
    image = te.placeholder((1, depth, side, side), name="image")
    x = image
    constants: list[te.Tensor] = []
    for taps, source, count in ((1, depth, inner), (3, inner, inner), (1, inner, depth)):
        weights = te.placeholder((count, source, taps, taps), name=f"weights{len(constants)}")
        constants.append(weights)
        x = convolution(x, weights)
        if count == inner:
            x = relu(x)
    y = x
    total = te.compute(image.shape, lambda n, c, i, j: image[n, c, i, j] + y[n, c, i, j], name="sum")
    return [image], constants, relu(total)


def convolution(x: te.Tensor, weights: te.Tensor) -> te.Tensor:
    """Return a convolution with zero padding that keeps the image size."""
    count, source, taps, _ = weights.shape
    side, edge = x.shape[2], int(taps) // 2
    wide = x
    if edge:
        wide = te.compute(
            (1, source, side + 2 * edge, side + 2 * edge),
            lambda n, c, i, j: te.if_then_else(
                te.all(i >= edge, i < side + edge, j >= edge, j < side + edge),
                x[n, c, i - edge, j - edge], 0.0,
            ),
            name="wide",
        )
    c, p, q = (te.reduce_axis((0, n), name=name) for n, name in ((source, "c"), (taps, "p"), (taps, "q")))
    return te.compute(
        (1, count, side, side),
        lambda n, o, i, j: te.sum(wide[n, c, i + p, j + q] * weights[o, c, p, q], axis=[c, p, q]),
        name="convolution",
    )


def relu(x: te.Tensor) -> te.Tensor:
    """Return the ReLU of a tensor."""
    return te.compute(x.shape, lambda n, c, i, j: te.max(x[n, c, i, j], 0.0), name="relu")


def row(name: str, program: Network, machine: str) -> str:
    """Return the relayouts of a program on a machine, by optimal and by greedy assignment."""
    passed, constants, output = program
    graph, target = graph_of([output], passed, constants), Target.load(machine)
    found, forward = choose_layouts(graph, target), forward_relayouts(graph, target)
    elements, nbytes = ("-", "-") if forward is None else (f"{n:,}" for n in forward)
    return (
        f"| {name} | {target.name} | {found.certificate.cost:,} | {found.moved_bytes:,} | "
        f"{elements} | {nbytes} |"
    )


def main() -> None:
    """Print the table."""
    print("| program | machine | elements | bytes | elements, forward | bytes, forward |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, program in (("encoder layer", encoder()), ("residual block", residual())):
        for machine in MACHINES:
            print(row(name, program, machine))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
