"""`tir` has TVM's names for what `te` has already."""

from __future__ import annotations

import inspect

import pytest

import tecomp
from tecomp import te, tir


@pytest.mark.parametrize("name", [name for name in tir.__all__ if hasattr(te, name)])
def test_a_name_means_the_same_as_in_te(name: str) -> None:
    assert getattr(tir, name) is getattr(te, name)


def test_every_public_name_is_listed() -> None:
    public = {
        name
        for name, value in vars(tir).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }

    assert tecomp.tir is tir
    assert public == set(tir.__all__)
