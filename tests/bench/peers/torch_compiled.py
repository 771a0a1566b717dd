"""PyTorch, compiled by TorchInductor for static shapes."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from tests.bench.case import Array, Case
from tests.bench.peers.torch_eager import FUNCTIONS, serve_torch, tensors
from tests.bench.worker import Bind, Call


def blur(x: Any) -> Any:
    """Compute one expression, which the compiler fuses."""
    rows = x[:-2] + x[1:-1] + x[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) * (1 / 9)


def compiled(case: Case) -> Bind:
    """Return calls of the compiled function."""
    eager = blur if case.kind == "blur" else FUNCTIONS[case.kind](case)
    function = torch.compile(eager, dynamic=False)
    return lambda *inputs: partial(function, *tensors(case, inputs))


def building(case: Case) -> Bind:
    """Measure the first call of a compiled function, after a warm-up compilation."""
    part: Case = case.options["part"]
    torch.compile(torch.neg, dynamic=False)(torch.ones(3))

    def bind(*inputs: Array) -> Call:
        arrays = tensors(part, inputs)
        return lambda: torch.compile(FUNCTIONS[part.kind](part), dynamic=False)(*arrays)

    return bind


def first_use(case: Case) -> Bind:
    """Measure the first call of a compiled function, after a warm-up compilation."""
    torch.compile(torch.neg, dynamic=False)(torch.ones(3))

    def bind(*inputs: Array) -> Call:
        arrays = tensors(case, inputs)
        function = FUNCTIONS["chain"](case)
        return lambda: torch.compile(function, dynamic=False)(*arrays)

    return bind


if __name__ == "__main__":
    serve_torch({**dict.fromkeys(FUNCTIONS, compiled), "build": building, "first-use": first_use})
