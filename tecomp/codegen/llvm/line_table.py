"""Line tables that map LLVM IR and assembly to the lines of a printed function."""

from __future__ import annotations

import re
from collections.abc import Iterator

MARK = "  ; line "
"""Prefix of the line comment before the instructions of a statement in LLVM IR."""

_FIRST = 100_000
"""First metadata number of the table, above all other metadata."""


def with_line_table(text: str) -> str:
    """Convert the line comments in LLVM IR to debug line metadata."""
    lines, extra = [], _head()
    number, inside, line, brackets = _FIRST + 4, False, 0, 0
    scope = 0
    locations: dict[tuple[int, int], int] = {}
    for row in text.splitlines():
        if row.startswith("define "):
            scope, number, inside, line = number, number + 1, True, 1
            extra.append(
                f'!{scope} = distinct !DISubprogram(name: "{scope}", file: !{_FIRST + 1}, '
                f"scope: !{_FIRST + 1}, line: 1, type: !{_FIRST + 2}, "
                f"spFlags: DISPFlagDefinition, unit: !{_FIRST})"
            )
            lines.append(f"{row.removesuffix('{')}!dbg !{scope} {{")
            continue
        if row.startswith(MARK):
            line = int(row.removeprefix(MARK))
            continue
        if row == "}":
            inside = False
        brackets += row.count("[") - row.count("]")
        if inside and row.startswith("  ") and not brackets:
            location = locations.get((line, scope))
            if location is None:
                location = locations[line, scope] = number
                number += 1
                extra.append(f"!{location} = !DILocation(line: {line}, column: 1, scope: !{scope})")
            row = f"{row}, !dbg !{location}"
        lines.append(row)
    return "\n".join([*lines, *extra, ""])


def _head() -> list[str]:
    unit, file, kind, version = range(_FIRST, _FIRST + 4)
    return [
        f"!llvm.dbg.cu = !{{!{unit}}}",
        f"!llvm.module.flags = !{{!{version}}}",
        f"!{unit} = distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, "
        "emissionKind: LineTablesOnly)",
        f'!{file} = !DIFile(filename: "function", directory: "")',
        f"!{kind} = !DISubroutineType(types: !{{}})",
        f'!{version} = !{{i32 2, !"Debug Info Version", i32 3}}',
    ]


def number_llvm_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of LLVM IR with their source lines; 0 for lines without a source line."""
    line = 0
    for row in text.splitlines():
        if row.startswith(MARK):
            line = int(row.removeprefix(MARK))
            continue
        if row.startswith("define ") or row == "}":
            line = 0
        yield line if row.startswith("  ") else 0, row


_PLACE = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_DIRECTIVE = re.compile(r"\s*\.(?!L)|\s*\.Ltmp|\s*\.Lfunc|\s*#|\s*$")


def number_assembly_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield instructions and labels of assembly with their source lines; 0 for none."""
    line = 0
    for row in text.splitlines():
        if found := _PLACE.match(row):
            line = int(found[1])
        elif row.startswith("\t.section\t.debug_"):
            return
        elif not _DIRECTIVE.match(row):
            is_label = not row.startswith(("\t", " "))
            if is_label and not row.startswith(".L"):
                line = 0
            yield 0 if is_label else line, row.split("#")[0].rstrip()
