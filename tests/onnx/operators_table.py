"""Generate the table of operators of docs/onnx.md: `python -m tests.onnx.operators_table`."""

from __future__ import annotations

from pathlib import Path

import onnx

import tecomp.onnx.model  # registers the operators
from tecomp.onnx.node import HOST_OPERATORS, LEARNING, MICROSOFT, OPERATORS, TRAINING, is_function

DOCUMENT = Path(__file__).parents[2] / "docs" / "onnx.md"
BEGIN, END = "<!-- operators -->\n", "<!-- end of operators -->\n"
CONTROL = ["Constant", "Identity", "If", "Loop", "Scan"]


def row(title: str, names: set[str]) -> str:
    return f"| {title} | {', '.join(f'`{name}`' for name in sorted(names))} |"


def table() -> str:
    """Return the table as Markdown."""
    assert tecomp.onnx.model
    lines = ["| domain | operators |", "| --- | --- |"]
    for domain in ("", LEARNING, TRAINING, MICROSOFT):
        own = {name for place, name, _ in OPERATORS if place == domain}
        host = {name for place, name, _ in HOST_OPERATORS if place == domain} - own
        title = f"`{domain or 'ai.onnx'}`"
        lines.append(row(title, own | ({*CONTROL} if not domain else set())))
        if host:
            lines.append(row(f"{title}, on the host", host))
        defined = {
            schema.name for schema in onnx.defs.get_all_schemas()
            if schema.domain == domain and is_function(domain, schema.name)} - own - host
        if defined:
            lines.append(row(f"{title}, expanded by their definition", defined))
    return "\n".join(lines) + "\n"


def document() -> str:
    """Return the document with the current table."""
    text = DOCUMENT.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
