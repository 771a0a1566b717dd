"""Programs of several operations: common networks, and random programs by name."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tests.bench.case import BenchError, Case, Goal
from tests.bench.programs.describe import Description
from tests.bench.programs.draw import BEGINNINGS, draw
from tests.bench.programs.in_arrays import oracle
from tests.bench.programs.networks import encoder_layer, perceptron, resnet50

_RANDOM = "random"


def _terms(program: Description) -> int:
    """Return an upper bound of the rounded terms per value, as far as the inputs determine it."""
    return max(prod(x.shape) for x in program.inputs)


def of(name: str, title: str, program: Description, goal: Goal) -> Case:
    """Return the case of a program."""
    return Case(
        name, title, "program", tuple(x.shape for x in program.inputs), oracle(program),
        terms=_terms(program), options={"program": program},
        goal=goal, make_inputs=program.values, has_blas=True,
    )


_FASTEST = Goal(of_best=1.0, peers=("torch", "torch.compile", "jax"))

CASES = (
    of("programs/layer", "encoder layer: 128 tokens, 768 wide, 12 heads, 3072 hidden",
       encoder_layer(), _FASTEST),
    of("programs/mlp-1", "three-layer perceptron, batch 1", perceptron(1), _FASTEST),
    of("programs/mlp-256", "three-layer perceptron, batch 256", perceptron(256), _FASTEST),
    of("programs/resnet-50", "convolutions of ResNet-50, batch 1", resnet50(),
       Goal(of_best=1.0, peers=("torch", "torch.compile", "jax", "onnxruntime"))),
)


def random_case(name: str) -> Case:
    """Return the case with the name `random/kind-seed`.

    Raises:
        BenchError: If the kind is unknown or the seed is not a number.
    """
    kind, _, seed = name.removeprefix(f"{_RANDOM}/").rpartition("-")
    if kind not in BEGINNINGS or not seed.isdigit():
        raise BenchError(
            f"bench: no program is called {name!r}; say random/kind-seed with a kind of "
            f"{', '.join(BEGINNINGS)}"
        )
    program = draw(int(seed), kind)
    goal = Goal(of_best=0.5, peers=("numpy", "torch.compile", "jax"))
    kinds = [step.options.get("name", step.kind) for step in program.steps]
    case = of(name, ", ".join(map(str, kinds)), program, goal)
    halves = any(step.options.get("dtype") == "float16" for step in program.steps)
    return replace(case, has_blas=False, result_dtype="float16" if halves else "float32")


def random_cases(seed: int, count: int) -> list[Case]:
    """Return random programs of every kind in turn, from a seed on."""
    kinds = list(BEGINNINGS)
    return [
        random_case(f"{_RANDOM}/{kinds[k % len(kinds)]}-{seed + k // len(kinds)}")
        for k in range(count)
    ]
