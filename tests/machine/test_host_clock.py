"""Clock rate that the operating system reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tecomp.machine import host_clock


@pytest.mark.parametrize(("reported", "clock"), [("3700000\n", 3.7e9), ("0\n", None)])
def test_a_clock_of_0_is_none(tmp_path: Path, reported: str, clock: float | None) -> None:
    file = tmp_path / "cpuinfo_max_freq"
    file.write_text(reported, encoding="ascii")

    assert host_clock(file) == clock
