"""What the tests of schedules share: a refusal that must leave no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from tecomp.errors import TecompError
from tecomp.scheduling.schedule import Schedule

Refusal: TypeAlias = "Callable[[Schedule, Callable[[], object]], TecompError]"


@pytest.fixture
def refusal() -> Refusal:
    """The error that a call raises; the schedule must be the same after it."""

    def refuse(schedule: Schedule, action: Callable[[], object]) -> TecompError:
        state, trace, text = schedule.state, schedule.trace, str(schedule.trace)
        with pytest.raises(TecompError) as caught:
            action()
        assert schedule.state is state
        assert schedule.trace is trace
        assert str(schedule.trace) == text
        return caught.value

    return refuse
