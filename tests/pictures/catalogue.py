"""A picture of each kind, and of what is hard to draw, for the tests that look at all of them."""

from __future__ import annotations

from collections.abc import Callable

from tests.pictures.test_layout import LAYOUTS

PICTURES: dict[str, Callable[[], str]] = {
    f"layout-{name.replace(' ', '-')}": layout.picture for name, layout in LAYOUTS.items()
}
