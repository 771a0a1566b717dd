"""Target descriptions that come with tecomp: TOML files, and where they are."""

from __future__ import annotations

from pathlib import Path

if __name__ != "tecomp.targets":
    raise ImportError("import tecomp.targets, not targets (run `pip install -e .` first)")


def descriptions() -> list[Path]:
    """Paths of the TOML files, for the entry point `tecomp.targets`."""
    return sorted(path for path in Path(__file__).parent.iterdir() if path.suffix == ".toml")
