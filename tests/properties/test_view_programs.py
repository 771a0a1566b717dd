"""Random functions with views, layout maps and several physical axes agree with NumPy.

`python -m tests.search views --count 5000` runs many more functions.
"""

from __future__ import annotations

import pytest

from tests.strategies.draws import Dice
from tests.strategies.view_programs import draw_view_program


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("seed", range(40))
def test_views_and_layout_maps_keep_the_meaning_of_a_function(seed: int) -> None:
    program = draw_view_program(Dice(seed=seed))
    try:
        program.check()
    except BaseException as error:
        error.add_note(program.text)
        raise
