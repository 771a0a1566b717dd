"""Struct layouts of the runtime: field offsets and unknown names."""

from __future__ import annotations

import ctypes
import re

import pytest

from tecomp.codegen import (
    BLOCK,
    FIRST_ARGUMENT_WORD,
    RECORDS,
    StructLayout,
    expand_fields,
    host,
    process_text,
    words,
)
from tecomp.errors import InternalError
from tests.messages import Diagnostic, diagnostic

_KINDS = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "ptr": ctypes.c_void_p}


def plain_records() -> list[StructLayout]:
    return [record for record in RECORDS if all(kind in _KINDS for _, kind in record.fields)]


@pytest.mark.parametrize("record", plain_records(), ids=lambda record: record.name)
def test_offsets_match_c(record: StructLayout) -> None:
    fields = [(name, _KINDS[kind]) for name, kind in record.fields]
    structure = type(record.name, (ctypes.Structure,), {"_fields_": fields})

    offsets = [getattr(structure, name).offset for name in record.names]
    assert [record.offset(name) for name in record.names] == offsets


def test_every_record_is_used() -> None:
    text = process_text(host().triple)
    known = {record.name for record in RECORDS}

    used = set(re.findall(r"%([A-Z]\w*)\b(?! = type)", text))
    assert used | {BLOCK.name, "Failure", "Table"} == known


def test_arguments_follow_the_head_of_their_block() -> None:
    failure = next(record for record in RECORDS if record.name == "Failure")

    assert 8 + failure.bytes == FIRST_ARGUMENT_WORD * 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%a = field Span.last, ptr %s", Diagnostic(
            "internal", name="Span", field="last", names=('first', 'end'),
        )),
        ("%a = field Spam.end, ptr %s", Diagnostic("internal", reason="'Spam'")),
        ("%a = add i64 %b, $MORE", Diagnostic("internal", reason="'MORE'")),
    ],
)
def test_unknown_names(text: str, expected: Diagnostic) -> None:
    with pytest.raises(InternalError) as caught:
        expand_fields(text, [words("Span", "first", "end")], {})

    assert diagnostic(caught.value) == expected
