"""Documents agree with the table of element-wise functions."""

from __future__ import annotations

import pytest

from tests.operations.documents import DOCUMENTS, PARTS, error_bounds, written
from tests.strategies.functions import ROWS


@pytest.mark.parametrize("document", sorted({document for document, _ in PARTS}))
def test_parts_of_documents_are_current(document: str) -> None:
    text = (DOCUMENTS / document).read_text(encoding="utf-8")

    assert text == written(document, text), "run `python -m tests.operations.documents`"


def test_bounds_of_errors_are_those_of_the_rows() -> None:
    """Measured errors stay; a row with another bound and a function without a row change."""
    head = "| function | float32 |\n| --- | --- |\n"
    text = f"{head}| tanh | 2.28 | 2.30 | 9 | 2.43 | 2.44 | 9 |\n| gone | 1 | 1 | 1 | 1 | 1 | 1 |\n"

    lines = error_bounds(text).splitlines()

    single, double = ROWS["tanh"].ulps
    assert lines[:2] == head.splitlines()
    assert lines[2] == f"| tanh | 2.28 | 2.30 | {single} | 2.43 | 2.44 | {double} |"
    assert len(lines) == 2 + len(ROWS)
