"""Check the diagnostic of a rejected call, and that its location is the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tecomp
from tests.messages import Diagnostic, diagnostic


def refused(call: Callable[[], Any], kind: type[Exception] = tecomp.DefinitionError) -> Diagnostic:
    """Return the diagnostic of an error whose location is in the calling function."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert isinstance(error, tecomp.TecompError)
    assert error.location is not None
    assert error.location.file == call.__code__.co_filename
    return diagnostic(error)
