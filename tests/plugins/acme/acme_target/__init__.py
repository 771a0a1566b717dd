"""The machine of ACME, described for tecomp: a plug-in that the tests install."""

from __future__ import annotations

from pathlib import Path


def descriptions() -> list[Path]:
    """Paths of the TOML files, for the entry point `tecomp.targets`."""
    return sorted(Path(__file__).parent.glob("*.toml"))
