"""Memoized set queries: keyed by the text of a set, for one block or for the process."""

from __future__ import annotations

from itertools import count

import islpy as isl
import pytest

from tecomp import caches
from tecomp.errors import LowerError
from tecomp.ir import Var
from tecomp.poly import (
    CONTEXT,
    NotAffine,
    Space,
    cached_question,
    cached_set_question,
    isl_work,
    relation_unless_identity,
)


def points(text: str) -> isl.Set:
    return isl.Set.read_from_str(CONTEXT, text)


def test_query_results_are_cached_for_one_block() -> None:
    requested: list[tuple[isl.Set, int]] = []

    @cached_question
    def greatest(line: isl.Set, dim: int) -> int:
        requested.append((line, dim))
        return int(line.dim_max_val(dim).to_python())

    with isl_work("outer"):
        assert greatest(points("{ [i] : 0 <= i < 5 }"), 0) == 4
        with isl_work("inner"):
            assert greatest(points("{ [i] : i >= 0 and i <= 4 }"), 0) == 4
        assert greatest(points("{ [i] : 0 <= i < 6 }"), 0) == 5
        assert greatest(points("{ [i] : 0 <= i < 5 }"), 0) == 4
        assert len(requested) == 2
    with isl_work("another"):
        assert greatest(points("{ [i] : 0 <= i < 5 }"), 0) == 4
    assert len(requested) == 3
    assert [greatest(points("{ [i] : 0 <= i < 5 }"), 0) for _ in range(2)] == [4, 4]
    assert len(requested) == 5  # outside of a block nothing clears the cache, so nothing is memoized


def test_queries_of_unhashable_objects_are_computed() -> None:
    """Queries on objects with an unstable hash are answered, as isl simplifies sets in place."""
    hashes = count()

    class Untidy:
        def __hash__(self) -> int:
            return next(hashes)

    @cached_question
    def answer(about: Untidy) -> int:
        return 42

    with isl_work("here"):
        assert answer(Untidy()) == 42


def test_failed_queries_are_not_cached() -> None:
    requested: list[int] = []

    @cached_question
    def refuse(number: int) -> None:
        requested.append(number)
        raise LowerError("no")

    @cached_question
    def nothing(number: int) -> None:
        requested.append(number)

    with isl_work("here"):
        for _ in range(2):
            with pytest.raises(LowerError):
                refuse(1)
            nothing(2)
    assert requested == [1, 2, 1]


def test_spaces_with_other_variables_have_separate_entries() -> None:
    """Spaces with different variables are distinct, though parameters have equal names in isl."""
    i, j, n = Var("i"), Var("j"), Var("n")
    with isl_work("here"):
        first = relation_unless_identity([i + n], Space((i,), (n,)))
        repeated = relation_unless_identity([j + n], Space((j,), (n,)))
        swapped = relation_unless_identity([n + i], Space((n,), (i,)))
        with pytest.raises(NotAffine):
            relation_unless_identity([i * j], Space((i, j)))
    assert first is not None
    assert all(other is not None and first.is_equal(other) for other in (repeated, swapped))


def test_set_queries_are_cached_across_blocks() -> None:
    requested: list[isl.Set] = []

    @cached_set_question
    def least(line: isl.Set) -> int | None:
        requested.append(line)
        return None if line.is_empty() else int(line.dim_min_val(0).to_python())

    for _ in "ab":
        with isl_work("here"):
            assert least(points("{ [i] : 3 <= i < 5 }")) == 3
    assert len(requested) == 1
    with isl_work("here"):
        # A `None` result may not come from an exhausted budget.
        assert [least(points("{ [i] : i < 0 and i > 0 }")) for _ in "ab"] == [None, None]
    assert len(requested) == 3


def test_set_query_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "CACHE_LIMITS", {"poly.set_answers": caches.CacheLimit(4, "answer")})
    requested: list[int] = []

    @cached_set_question
    def next_of(number: int) -> int:
        requested.append(number)
        return number + 1

    with isl_work("here"):
        assert [next_of(number) for number in (1, 2, 1, 3, 3, 1, 4, 2)] == [2, 3, 2, 4, 4, 2, 5, 3]
    assert requested == [1, 2, 3, 4, 2]  # 2 was used last before 1, 3 and 4
