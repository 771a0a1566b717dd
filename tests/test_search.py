"""Search for failing programs: seeds are reproducible, and outcomes are distinguished."""

from __future__ import annotations

import os
import time

import pytest

from tests import search
from tests.strategies.draws import Dice
from tests.strategies.schedules import draw_case


def test_a_seed_determines_one_program() -> None:
    dice = Dice(seed=7)
    text = draw_case(dice).text()

    assert draw_case(Dice(seed=7)).text() == text
    assert draw_case(Dice(dice.rolled)).text() == text


def _wrong(dice: Dice) -> search.Outcome:
    assert dice.seed is not None
    if dice.seed == 1:
        os._exit(3)
    if dice.seed == 2:
        time.sleep(30)
    return search.Outcome(search.PASSED)


def test_crashes_and_hangs_are_findings_and_the_search_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(search.KINDS, "programs", _wrong)

    found = dict(search.search("programs", [0, 1, 2, 3], processes=1, seconds=2))

    assert {seed: outcome.text.split("\n")[0] for seed, outcome in found.items()} == {
        0: "", 1: "exit code 3", 2: "no end in 2 s", 3: "",
    }
