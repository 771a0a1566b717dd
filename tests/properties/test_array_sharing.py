"""Random programs of views, writes and external memory follow the documented sharing rules.

`python -m tests.search sharing --count 20000` runs many more programs.
"""

from __future__ import annotations

import pytest

from tests.strategies.array_sharing import Program
from tests.strategies.draws import Dice, Draws


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("seed", range(60))
def test_programs_follow_the_rules_of_sharing(seed: int) -> None:
    program = Program(Draws(Dice(seed=seed)))
    try:
        program.run(25)
    except BaseException as error:
        error.add_note("\n".join(program.text))
        raise
