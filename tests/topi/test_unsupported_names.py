"""Error messages for unsupported operators of TVM, and the suggested replacements."""

from __future__ import annotations

import pytest

from tecomp import MissingError, topi
from tests.messages import Diagnostic, diagnostic


@pytest.mark.parametrize("module", [topi, topi.nn])
def test_unknown_names(module: object) -> None:
    with pytest.raises(AttributeError) as error:
        module.xyz  # type: ignore[attr-defined]  # noqa: B018

    name = module.__name__  # type: ignore[attr-defined]
    assert str(error.value) == f"module '{name}' has no attribute 'xyz'"


@pytest.mark.parametrize(("module", "name", "near"), [
    (topi, "identiti", "topi.identity"), (topi, "conctenate", "topi.concatenate"),
    (topi.nn, "conv2d_nhcw", "topi.nn.conv2d_nhwc"), (topi.nn, "softmaxx", "topi.nn.softmax"),
])
def test_names_that_are_misspelt(module: object, name: str, near: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(module, name)

    assert isinstance(error.value, MissingError)
    called, _, other = near.rpartition(".")
    assert diagnostic(error.value) == (
        Diagnostic("unsupported-name", called=called, name=name, suggestion=other)
    )
