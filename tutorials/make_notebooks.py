"""Generate the notebooks of the tutorials from their scripts, with the output of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext
import nbclient
import nbformat

FOLDER = Path(__file__).parent


def notebook(script: Path) -> nbformat.NotebookNode:
    """Run a script in percent format, and return its notebook without names and times."""
    made = jupytext.read(script, fmt="py:percent")
    made.metadata.clear()
    nbclient.NotebookClient(
        made, timeout=120, kernel_name="python3", record_timing=False, coalesce_streams=True,
        resources={"metadata": {"path": str(script.parent)}},
    ).execute()
    made.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
    }
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        for output in cell.get("outputs", []):
            if "image/svg+xml" in output.get("data", {}):
                output.data.pop("text/plain", None)
    return made


def main(names: list[str]) -> None:
    """Write the notebooks of the given scripts. Default: all."""
    for script in [Path(name) for name in names] or sorted(FOLDER.glob("[0-9]*.py")):
        nbformat.write(notebook(script), script.with_suffix(".ipynb"))
        print(script.with_suffix(".ipynb"))


if __name__ == "__main__":
    main(sys.argv[1:])
