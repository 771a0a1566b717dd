"""Status line of slow compilations: on terminals only, and erased at the end."""

from __future__ import annotations

import io
import sys

import pytest

from tecomp.progress import progress


class Terminal(io.StringIO):
    """Stream whose `isatty` is True."""

    def isatty(self) -> bool:
        return True


def test_steps_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr("tecomp.progress._BAR_DELAY_SECONDS", 0.0)
    with progress("compile net", 4) as shown:
        shown.step()
        shown.step()

    first, second, blank, rest = terminal.getvalue().split("\r")[1:]
    assert first == "compile net [######                  ] 1 of 4"
    assert second == "compile net [############            ] 2 of 4"
    assert (blank.strip(), len(blank), rest) == ("", len(second), "")


def test_short_steps_show_no_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress("compile net", 1) as shown:
        shown.step()

    assert not terminal.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_progress_line_requires_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("tecomp.progress._BAR_DELAY_SECONDS", 0.0)
    with progress("compile net", 1) as shown:
        shown.step()

    assert stream is None or not stream.getvalue()
