"""The script of the layout explorer page gives the results of the layout, in a browser."""

from __future__ import annotations

import json
import random
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tecomp import Layout, LayoutError, ShardLayout
from tests.messages import Diagnostic, diagnostic
from tests.strategies.draws import Dice
from tests.strategies.layouts import draw_layout, function_of
from tests.viz.browser import answer
from tests.viz.test_layout import LAYOUTS

ASKED = {name: layout for name, layout in LAYOUTS.items() if layout.num_elements}


def asked(layout: Layout, seed: int) -> dict[str, Any]:
    """Return random elements and addresses, including padding."""
    dice = random.Random(seed)
    return {
        "elements": [[dice.randrange(n) for n in layout.shape] for _ in range(20)],
        "places": [[dice.randrange(n) for n in layout.physical_shape] for _ in range(20)],
    }


def with_questions(layout: Layout, questions: dict[str, Any], changes: str = "") -> str:
    """Return the page with a script that runs the queries and stores the results."""
    script = f"""
const Q={json.dumps(questions)};{changes}
const A={{places:Q.elements.map(e=>explore.place(e)),cores:Q.elements.map(
  e=>explore.core(explore.place(e))),inside:Q.elements.map(e=>explore.inCore(explore.place(e))),
  elements:Q.places.map(p=>explore.element(p)),extents:explore.extents(),clash:explore.clash(),
  answer:document.getElementById('answer').textContent,
  sliders:document.querySelectorAll('input').length}};
const done=document.createElement('pre');done.id='done';done.textContent=JSON.stringify(A);
document.body.append(done);"""
    return layout.explore().replace("</body>", f"<script>{script}</script></body>")


def expected(layout: Layout, questions: dict[str, Any]) -> dict[str, Any]:
    """Return the results of the layout itself."""
    grid = layout.grid_axes
    shard = [n for axis, n in enumerate(layout.physical_shape) if axis not in grid] or [1]
    places = [layout.place(index) for index in questions["elements"]]
    inside = [[n for axis, n in enumerate(place) if axis not in grid] or [0] for place in places]
    found = [layout.element(place) for place in questions["places"]]
    return {
        "places": [list(place) for place in places],
        "cores": [[place[axis] for axis in grid] for place in places],
        "inside": [int(np.ravel_multi_index(at, shard)) for at in inside],
        "elements": [None if index is None else list(index) for index in found],
        "extents": list(layout.physical_shape),
        "clash": None,
    }


def check(layout: Layout, folder: Path, seed: int = 0) -> dict[str, Any]:
    questions = asked(layout, seed)
    found: dict[str, Any] = answer(with_questions(layout, questions), folder)
    reference = expected(layout, questions)
    assert {name: found[name] for name in reference} == reference
    return found


@pytest.mark.parametrize("name", ASKED)
def test_the_page_answers_as_the_layout_does(name: str, tmp_path: Path) -> None:
    found = check(ASKED[name], tmp_path)

    start = ", ".join("0" for _ in ASKED[name].shape)
    assert found["answer"].startswith(f"[{start}] is in place [")
    assert found["sliders"] >= 2 * len(ASKED[name].shape)


@pytest.mark.parametrize("seed", range(12))
def test_random_layouts(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    shape = [dice.randint(1, 9) for _ in range(dice.randint(1, 4))]
    layout = Layout.of(shape, "float16", function_of(draw_layout(Dice(seed=seed), shape)))

    check(layout, tmp_path, seed)


def test_sizes_and_shapes_that_are_changed(tmp_path: Path) -> None:
    layout = Layout.of((100, 70), "float16", lambda i, j: [j // 16, i, j % 16])
    other = Layout.of((90, 75), "float16", lambda i, j: [j // 10, i, j % 10])
    questions = asked(other, 1)
    changes = "explore.set('sizes',0,10);explore.set('shape',0,90);explore.set('shape',1,75);"

    found = answer(with_questions(layout, questions, changes), tmp_path)

    reference = expected(other, questions)
    assert {name: found[name] for name in reference} == reference


def test_a_size_that_makes_elements_clash(tmp_path: Path) -> None:
    layout = Layout.of((8, 8), "int32", lambda i, j: [i * 8 + j])

    found = answer(with_questions(layout, asked(layout, 2), "explore.set('shape',1,9);"), tmp_path)

    assert found["clash"] == [[0, 8], [1, 0]]


def test_layouts_without_elements_are_refused() -> None:
    with pytest.raises(LayoutError) as caught:
        LAYOUTS["empty"].explore()
    assert diagnostic(caught.value) == (
        Diagnostic("missing-input", dtype="float32", shape=[0, 3])
    )


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    page = ShardLayout((100, 100), "bfloat16", grid=(2, 2), tile=(32, 32)).explore()
    page.save(tmp_path / "x.html")

    assert (tmp_path / "x.html").read_text(encoding="utf-8") == page
    assert "http" not in page
    assert "src=" not in page
    assert len(page) < 14_000
    assert page._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert prod(ASKED["grid"].grid_shape) == 64
