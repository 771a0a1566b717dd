"""What is measured: a computation, its inputs, what it should give, and what is asked of it."""

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
    """A request that cannot be carried out; the message says what to do instead."""


class NoFormError(Exception):
    """A contender cannot run a case; the message is a sentence that says why."""


@dataclass(frozen=True)
class Goal:
    """What is asked of a row; None where nothing is.

    Attributes:
        of_limit: share of the machine's limit.
        of_best: times as fast as the best of `peers`.
        peers: who counts for that; all if empty.
        of_peers: names of peers, each with how many times as fast as that one.
        seconds: at most so long.
        of_one_thread: times as fast as with one thread.
        of_case: share of the rate of another case, by its name.
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
    """One row.

    Attributes:
        name: `family/what`.
        title: what is computed, for a reader.
        kind: by which a peer finds how it does this.
        shapes: of the inputs.
        oracle: from inputs in float64 (int64 for integers, complex128) to the result; several
            results are one, side by side.
        terms: how many rounded terms make up one value; see `tolerance`.
        dtype: of the inputs.
        result_dtype: the coarsest type that a peer may round its result to.
        options: further facts for the peers.
        flops: additions and multiplications.
        bytes: that have to be read or written.
        limit: what bounds it: multiplications, the memory, or nothing that can be measured.
        goal: what is asked.
        threads: fixed number, or 0 for that of the run.
        is_fresh: each measurement is the first of a new process, so that nothing is kept from the
            one before.
        has_blas: NumPy leaves the work to OpenBLAS.
        given: makes the inputs, if they are not to be random numbers of `dtype`.
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
    given: Callable[[], list[Array]] | None = None

    @property
    def family(self) -> str:
        """What stands before the slash."""
        return self.name.partition("/")[0]

    @property
    def tolerance(self) -> float:
        """How far a result may be off, as a share of the largest expected value.

        Rounding errors of a sum of n terms are at most n roundings of its partial sums, and in
        any order that people use they cancel like a random walk: sqrt(n) roundings. Four times
        that leaves room for functions (some roundings each) and for other orders; a wrong index
        or a missing term is larger by orders of magnitude. Sums of integers are exact.
        """
        if self.result_dtype.startswith(("int", "uint")):
            return 0.0
        sums = 2.0**-24 * math.sqrt(self.terms)
        return 4.0 * (sums + _ROUNDING[self.result_dtype])

    def inputs(self) -> list[Array]:
        """The same numbers in each process: standard normal, or all values of a small integer."""
        if self.given is not None:
            return self.given()
        random = np.random.default_rng(20)
        if self.dtype == "int8":
            return [random.integers(-128, 128, shape, np.int8) for shape in self.shapes]
        numbers = [random.standard_normal(shape, np.float32) for shape in self.shapes]
        return [array.astype(numpy_dtype(self.dtype), copy=False) for array in numbers]

    def expected(self, inputs: list[Array]) -> Array:
        """What the oracle gives."""
        wide = {"i": np.int64, "u": np.int64, "c": np.complex128}
        return self.oracle(*(
            array.astype(wide.get(array.dtype.kind, np.float64)) for array in inputs
        ))

    def error(self, result: Array, expected: Array) -> float:
        """The largest difference, as a share of the largest expected value."""
        if result.shape != expected.shape:
            raise BenchError(
                f"{self.name}: the result has shape {result.shape} where {expected.shape} is due"
            )
        largest = float(np.abs(expected).max(initial=0)) or 1.0
        difference = np.abs(result.astype(expected.dtype) - expected)
        return float(difference.max(initial=0)) / largest  # NaN stays NaN, and is no agreement


_ROUNDING = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's name for a type, of `ml_dtypes` where NumPy has none."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
