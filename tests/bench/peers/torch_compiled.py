"""PyTorch, compiled by TorchInductor for the shapes at hand."""

from __future__ import annotations

from functools import partial

import torch

from tests.bench.case import Array, Case
from tests.bench.peers.torch_eager import FUNCTIONS, serve_torch, tensors
from tests.bench.worker import Bind, Call


def compiled(case: Case) -> Bind:
    """Calls of the compiled function."""
    function = torch.compile(FUNCTIONS[case.kind](case), dynamic=False)
    return lambda *inputs: partial(function, *tensors(case, inputs))


def building(case: Case) -> Bind:
    """The first call of a function that is compiled, after that of another one."""
    part: Case = case.options["part"]
    torch.compile(torch.neg, dynamic=False)(torch.ones(3))

    def bind(*inputs: Array) -> Call:
        given = tensors(part, inputs)
        return lambda: torch.compile(FUNCTIONS[part.kind](part), dynamic=False)(*given)

    return bind


if __name__ == "__main__":
    serve_torch({**dict.fromkeys(FUNCTIONS, compiled), "build": building})
