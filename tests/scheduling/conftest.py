"""Fixture for rejected calls, which must not change the schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from tecomp.errors import TecompError
from tecomp.scheduling.schedule import Schedule

Refusal: TypeAlias = "Callable[[Schedule, Callable[[], object]], TecompError]"


@pytest.fixture
def refusal() -> Refusal:
    """Return the error that a call raises, and check that the schedule is unchanged."""

    def refuse(schedule: Schedule, action: Callable[[], object]) -> TecompError:
        state, trace, text = schedule.state, schedule.trace, str(schedule.trace)
        with pytest.raises(TecompError) as caught:
            action()
        assert schedule.state is state
        assert schedule.trace is trace
        assert str(schedule.trace) == text
        return caught.value

    return refuse
