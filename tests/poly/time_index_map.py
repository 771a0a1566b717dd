"""Print the time of each index map query: `python tests/poly/time_index_map.py`.

Caches are cleared for each query. Times are medians in microseconds and exclude tracing of the
function.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from tecomp.ir import Expr, Var
from tecomp.poly import IndexMap

REPEATS = 30

MAPS: dict[str, tuple[Callable[..., Sequence[object]], tuple[int | Expr, ...]]] = {
    "transpose": (lambda i, j: [j, i], (1024, 1024)),
    "tiles": (lambda i, j: [i // 32, j // 32, i % 32, j % 32], (1000, 1000)),
    "NCHWc": (lambda n, h, w, c: [n, c // 4, h, w, c % 4], (16, 64, 64, 128)),
    "NCHWc, padded": (lambda n, h, w, c: [n, c // 4, h, w, c % 4], (16, 64, 64, 130)),
    "symbolic": (lambda i, j: [i // 4, j, i % 4], (Var("n"), Var("m"))),
    "rotation": (lambda i: [(i + 3) % 16], (16,)),
    "swizzle": (lambda i, j: [i, (j // 8 + i) % 8, j % 8], (8, 64)),
    "swizzle 1024": (lambda i, j: [i, (i + j) % 1024], (1024, 1024)),
    "xor swizzle": (lambda i, j: [i, (j // 8) ^ (i % 8), j % 8], (64, 64)),
    "remainders": (lambda i: [i % 3, i % 5], (15,)),
    "collision": (lambda i, j: [i % 2, j], (4, 4)),
    "7 axes": (
        lambda a, b, c, d, e, f, g: [a // 4, b, c // 8, d, e, f // 2, g, a % 4, c % 8, f % 2],
        (16, 3, 64, 7, 5, 30, 11),
    ),
    "7 to 3": (
        lambda a, b, c, d, e, f, g: [(a * 3 + b) * 64 + c, (d * 5 + e) * 30 + f, g],
        (16, 3, 64, 7, 5, 30, 11),
    ),
    "7, one swizzled": (
        lambda a, b, c, d, e, f, g: [a, b, c, d, e, f, (f + g) % 16],
        (16, 3, 64, 7, 5, 16, 16),
    ),
}


def _shape(index_map: IndexMap, shape: Sequence[int | Expr]) -> object:
    return index_map.map_shape(shape)


def _collision(index_map: IndexMap, shape: Sequence[int | Expr]) -> object:
    return index_map.collision(shape)


def _padding(index_map: IndexMap, shape: Sequence[int | Expr]) -> object:
    return index_map.padding_count(shape)


def _inverse(index_map: IndexMap, shape: Sequence[int | Expr]) -> object:
    is_injective = index_map.is_injective(shape)
    return index_map.non_surjective_inverse(shape) if is_injective else None


def _equivalent(index_map: IndexMap, shape: Sequence[int | Expr]) -> object:
    repeated = IndexMap(index_map.initial_indices, index_map.final_indices)
    return index_map.is_equivalent_to(repeated, shape)


QUESTIONS = {
    "shape": _shape,
    "collision": _collision,
    "padding": _padding,
    "inverse": _inverse,
    "equivalent": _equivalent,
}


def median(
    question: Callable[[IndexMap, Sequence[int | Expr]], object],
    function: Callable[..., Sequence[object]],
    shape: Sequence[int | Expr],
) -> float:
    """Return the median time of an uncached query in microseconds."""
    times = []
    for _ in range(REPEATS):
        index_map = IndexMap.from_func(function, ndim=len(shape))
        start = time.perf_counter()
        question(index_map, shape)
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def main() -> None:
    """Print a table with one row per map and one column per query."""
    print(f"{'':18}" + "".join(f"{name:>12}" for name in QUESTIONS))
    times: list[float] = []
    for name, (function, shape) in MAPS.items():
        cells = [median(question, function, shape) for question in QUESTIONS.values()]
        times += cells
        print(f"{name:18}" + "".join(f"{cell:12.0f}" for cell in cells))
    print(f"{'median of all':18}{statistics.median(times):12.0f}")


if __name__ == "__main__":
    main()
