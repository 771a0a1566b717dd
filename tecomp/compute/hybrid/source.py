"""The text of a hybrid function, which says where something is that cannot be."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tecomp.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a function.

    Attributes:
        name: of the function.
        tree: its definition.
        text: all of it.
        first: the number of its first line in the file.
        known: what names outside of it stand for.
    """

    name: str
    tree: ast.FunctionDef
    text: str
    first: int
    known: Mapping[str, Any]

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        """Raise the error that says where something is that cannot be.

        Raises:
            DefinitionError: always.
        """
        line = self.first + getattr(node, "lineno", 1) - 1
        part = (ast.get_source_segment(self.text, node) or "").partition("\n")[0]
        raise DefinitionError(f"te.hybrid {self.name}, line {line}: `{part}` {why}", kind="hybrid")
