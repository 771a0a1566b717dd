"""The machine code of a program as one piece of bytes, and back."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence

from tecomp.driver.cached import FACES
from tecomp.driver.sequence import Code
from tecomp.graph.native import Native
from tecomp.ir.traversal.codec import decode, encode

_LENGTH = 8


def native_text(native: Native) -> bytes:
    """The bytes of a program: the length of what is said of the code, that, and the code."""
    codes = native.codes
    faces = tuple(
        (code.face, code.params, tuple(map(len, code.images)), code.has_places) for code in codes
    )
    words = encode(
        (
            faces, native.packed, native.copied, native.constant_bytes, native.calls,
            native.packed_in,
        )
    )
    head = json.dumps(words).encode()
    images = (image for code in codes for image in code.images)
    return b"".join([len(head).to_bytes(_LENGTH, "little"), head, *images])


def native_from(content: bytes) -> Native | None:
    """The program that `native_text` wrote; None if these bytes are none."""
    with contextlib.suppress(ValueError, LookupError, TypeError):
        start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
        words = json.loads(content[_LENGTH:start])
        faces, packed, copied, size, calls, packed_in = decode(words, FACES)
        codes: list[Code] = []
        for face, params, lengths, has_places in faces:
            codes.append(Code(face, params, _cut(content, start, lengths), has_places))
            start += sum(lengths)
        if start == len(content):
            pack = codes[1] if codes[1:] else None
            return Native(codes[0], pack, packed, copied, size, calls, packed_in)
    return None


def _cut(content: bytes, start: int, lengths: Sequence[int]) -> tuple[bytes, ...]:
    found = []
    for length in lengths:
        found.append(content[start : start + length])
        start += length
    return tuple(found)
