"""Benchmark cases: computation, inputs, oracle and performance goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Limit = Literal["fma", "copy", "none"]


class BenchError(Exception):
    """Invalid request; the message contains the remedy."""


class NoFormError(Exception):
    """Contender without an implementation of a case; the message is a sentence with the reason."""


@dataclass(frozen=True)
class Goal:
    """Performance goal of a row; None for attributes without a goal.

    Attributes:
        of_limit: Fraction of the machine's limit.
        of_best: Speedup over the best of `peers`.
        peers: Peers that count for `of_best`; all if empty.
        of_peers: Names of peers, each with the required speedup.
        seconds: Upper bound of the time.
        of_one_thread: Speedup over one thread.
        of_case: Name of another case, and the required fraction of its rate.
    """

    of_limit: float | None = None
    of_best: float | None = None
    peers: tuple[str, ...] = ()
    of_peers: tuple[tuple[str, float], ...] = ()
    seconds: float | None = None
    of_one_thread: float | None = None
    of_case: tuple[str, float] | None = None


@dataclass(frozen=True)
class Case:
    """Benchmark case, one row of the table.

    Attributes:
        name: `family/name`.
        title: Description of the computation for readers.
        kind: Key of the implementation in each peer.
        shapes: Shapes of the inputs.
        oracle: Function from inputs in float64 (int64 for integers, complex128) to the result;
            several results are stacked.
        terms: Number of rounded terms in one value; see `tolerance`.
        dtype: Dtype of the inputs.
        result_dtype: Least precise dtype to which a peer may round its result.
        options: Further parameters for the peers.
        flops: Number of additions and multiplications.
        bytes: Number of bytes that must be read or written.
        limit: Limiting resource: "fma", "copy" (memory), or "none" if it cannot be measured.
        goal: Performance goal.
        threads: Fixed number of threads, or 0 for that of the run.
        is_fresh: If True, each measurement is the first one of a new process, without warm caches.
        has_blas: If True, NumPy delegates the work to OpenBLAS.
        make_inputs: Function that returns the inputs. Default: random numbers of `dtype`.
    """

    name: str
    title: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    oracle: Callable[..., Array]
    terms: int = 1
    dtype: str = "float32"
    result_dtype: str = "float32"
    options: Mapping[str, Any] = field(default_factory=dict)
    flops: int = 0
    bytes: int = 0
    limit: Limit = "none"
    goal: Goal = field(default_factory=Goal)
    threads: int = 0
    is_fresh: bool = False
    has_blas: bool = False
    make_inputs: Callable[[], list[Array]] | None = None

    @property
    def family(self) -> str:
        """Part of the name before the slash."""
        return self.name.partition("/")[0]

    @property
    def tolerance(self) -> float:
        """Tolerance of results, relative to the largest expected value.

        The rounding error of a sum of n terms is at most n roundings of its partial sums. In all
        common orders of summation the errors accumulate like a random walk: sqrt(n) roundings. A
        factor of four allows for functions (a few roundings each) and for other orders. A wrong
        index or a missing term is larger by orders of magnitude. Sums of integers are exact.
        """
        if self.result_dtype.startswith(("int", "uint")):
            return 0.0
        sums = 2.0**-24 * math.sqrt(self.terms)
        return 4.0 * (sums + _ROUNDING[self.result_dtype])

    def inputs(self) -> list[Array]:
        """Return reproducible inputs: standard normal, or all values of a small integer dtype."""
        if self.make_inputs is not None:
            return self.make_inputs()
        random = np.random.default_rng(20)
        if self.dtype == "int8":
            return [random.integers(-128, 128, shape, np.int8) for shape in self.shapes]
        numbers = [random.standard_normal(shape, np.float32) for shape in self.shapes]
        return [array.astype(numpy_dtype(self.dtype), copy=False) for array in numbers]

    def expected(self, inputs: list[Array]) -> Array:
        """Return the result of the oracle."""
        wide = {"i": np.int64, "u": np.int64, "c": np.complex128}
        return self.oracle(*(
            array.astype(wide.get(array.dtype.kind, np.float64)) for array in inputs
        ))

    def error(self, result: Array, expected: Array) -> float:
        """Return the largest difference relative to the largest expected value."""
        if result.shape != expected.shape:
            raise BenchError(
                f"{self.name}: the result has shape {result.shape} where {expected.shape} is due"
            )
        largest = float(np.abs(expected).max(initial=0)) or 1.0
        difference = np.abs(result.astype(expected.dtype) - expected)
        return float(difference.max(initial=0)) / largest  # NaN propagates and fails the comparison


_ROUNDING = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy name of a dtype, from `ml_dtypes` for dtypes that NumPy lacks."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
