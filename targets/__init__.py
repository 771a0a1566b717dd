"""Target descriptions shipped with tecomp: TOML files and their paths."""

from __future__ import annotations

from pathlib import Path

if __name__ != "tecomp.targets":
    raise ImportError("import tecomp.targets, not targets (run `pip install -e .` first)")


def descriptions() -> list[Path]:
    """Return the sorted paths of the TOML files, for the entry point `tecomp.targets`."""
    return sorted(path for path in Path(__file__).parent.iterdir() if path.suffix == ".toml")
