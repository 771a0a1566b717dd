"""Native programs: their constants, and saving, loading and caching."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np

from tecomp import __version__
from tecomp.atomic_writes import folder_replacement
from tecomp.codegen.dispatch.kernel import SequenceCode
from tecomp.codegen.llvm.code_cache import compiler_fingerprint, current_store, digest
from tecomp.codegen.runtime.runtime_structs import ALIGNMENT
from tecomp.compute.tensor import Tensor
from tecomp.driver.auto_schedule import records_state
from tecomp.driver.build_cache import (
    FACES,
    SOURCES,
    check_face,
    check_members,
    keys_of,
    schedules,
)
from tecomp.errors import CacheError
from tecomp.graph.compile_options import Array, CompileRequest
from tecomp.graph.definition_keys import definitions_from, definitions_text
from tecomp.graph.sizes import bytes_of, sizes_of
from tecomp.ir.arith.extents import round_up
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.stmt import Buffer
from tecomp.ir.traversal.serialization import NotSerializableError, decode, encode

_LENGTH = 8


def encode_native(native: NativeProgram) -> bytes:
    """Serialize the machine code of a program: header length, header, and code images."""
    codes = native.codes
    records = tuple(
        (code.interface, code.params, tuple(map(len, code.images)), code.has_places)
        for code in codes
    )
    encoded = encode(
        (
            records, native.packed, native.copied, native.constant_bytes, native.calls,
            native.packed_in,
        )
    )
    head = json.dumps(encoded).encode()
    images = (image for code in codes for image in code.images)
    return b"".join([len(head).to_bytes(_LENGTH, "little"), head, *images])


def decode_native(content: bytes) -> NativeProgram | None:
    """Deserialize a program that `encode_native` wrote; return None if the bytes are invalid.

    Invalid bytes can raise any exception, from the parser or from the constructed classes.
    """
    with contextlib.suppress(Exception):
        start = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
        encoded = json.loads(content[_LENGTH:start])
        records, packed, copied, size, calls, packed_in = decode(encoded, FACES)
        codes: list[SequenceCode] = []
        for iface, params, lengths, has_places in records:
            check_face(iface)
            check_members(params, Buffer)
            check_members(lengths, int)
            codes.append(
                SequenceCode(iface, params, _slice_content(content, start, lengths), has_places))
            start += sum(lengths)
        if start == len(content):
            pack = codes[1] if codes[1:] else None
            return NativeProgram(codes[0], pack, packed, copied, size, calls, packed_in)
    return None


def _slice_content(content: bytes, start: int, lengths: Sequence[int]) -> tuple[bytes, ...]:
    found = []
    for length in lengths:
        found.append(content[start : start + length])
        start += length
    return tuple(found)


def load_cached_program(request: CompileRequest) -> NativeProgram | None:
    """Return the machine code of a program from the compilation cache, or None."""
    store = current_store()
    if store is None:
        return None
    for key in _keys(request):
        content = store.get(key)
        native = None if content is None else decode_native(content)
        if native is not None:
            return native
        if content is not None:
            store.remove(key)
    return None


def discard(request: CompileRequest) -> None:
    """Remove a program that cannot be linked from the compilation cache."""
    store = current_store()
    if store is not None:
        for key in _keys(request):
            store.remove(key)


def store_cached_program(request: CompileRequest, native: NativeProgram) -> None:
    """Store the machine code of a program in the compilation cache."""
    store = current_store()
    keys = [] if store is None else list(_keys(request))
    if store is not None and keys:
        # The last key includes source locations, which run-time errors report.
        has_places = any(code.has_places for code in native.codes)
        store.put(keys[-1 if has_places else 0], encode_native(native))


def _keys(request: CompileRequest) -> Iterator[str]:
    definitions = (
        request.outputs, request.inputs, tuple(request.constants), request.target, request.name,
        dict(request.layouts), request.hints, request.relayouts, request.packed,
    )
    state = records_state()
    return keys_of(("program", definitions), schedules(), *([state] if state else ()))


_HEAD, _CODE, _DEFINITIONS, _CONSTANTS = "program.json", "code", "definitions.json", "constants"
_FORM = "tecomp program 3"
_STEP = 128
"""Alignment of constants in the file, in bytes."""


def save(request: CompileRequest, native: NativeProgram, folder: str | os.PathLike[str]) -> None:
    """Save a program to a folder, from which `load` reads it.

    Raises:
        CacheError: If the folder has other contents or cannot be written.
    """
    path = _place(folder, "save")
    if path.exists() and not _may_be_replaced(path):
        raise CacheError(
            "save: {path} exists, but is not a saved program; pass another folder",
            kind="saved-program", path=path,
        )
    definitions = _definitions(request)
    try:
        with folder_replacement(path) as part:
            _fill(part, definitions, request, native)
    except OSError as error:
        raise CacheError(
            "save: {path} cannot be written ({reason}); pass a writable folder",
            kind="saved-program", path=path, reason=error.strerror or error,
        ) from None


def load(folder: str | os.PathLike[str]) -> tuple[CompileRequest, NativeProgram]:
    """Load a program that `save` wrote to a folder.

    Raises:
        CacheError: If the folder holds no saved program, if the program was saved for another
            machine or by another compiler, or if it is truncated or corrupted.
    """
    path = _place(folder, "load")
    head = _head(path)
    _check_maker(path, head)
    contents = {name: _content(path, name, expected) for name, expected in head["files"].items()}
    native = decode_native(contents[_CODE].tobytes())
    try:
        text = contents[_DEFINITIONS].tobytes().decode()
        outputs, inputs, constants, target, name, *others = definitions_from(text)
        layouts, hints, relayouts, packed = others
        values = dict(zip(constants, _values(contents[_CONSTANTS], constants), strict=True))
        request = CompileRequest(
            outputs, inputs, target, values, name, layouts, hints, relayouts, packed
        )
    except Exception:  # as in `decode_native`
        native = None
    if native is None:
        raise corrupted_program_error(path, "its parts are inconsistent")
    return request, native


def _place(folder: object, where: str) -> Path:
    check_kind(folder, str | os.PathLike, f"{where}: the folder", "give its path", CacheError)
    path = Path(cast("str | os.PathLike[str]", folder))
    if "\0" in str(path):
        raise CacheError(
            "{where}: the path {path!r} contains a NUL character; remove it",
            kind="saved-program", where=where, path=str(path),
        )
    return path


def _may_be_replaced(path: Path) -> bool:
    """Return whether a folder is empty or holds a saved program."""
    return path.is_dir() and (not any(path.iterdir()) or (path / _HEAD).is_file())


def _definitions(request: CompileRequest) -> bytes:
    constants = tuple(request.constants)
    try:
        text = definitions_text((
            request.outputs, request.inputs, constants, request.target, request.name,
            dict(request.layouts), request.hints, request.relayouts, request.packed,
        ))
    except NotSerializableError as error:
        (kind,) = error.args
        raise CacheError(
            "save: the definitions of {output} contain a value of type {qualname}, which cannot be "
            "serialized; remove it from `attrs`",
            kind="saved-program", output=request.name, qualname=kind.__qualname__,
        ) from None
    return text.encode()


def _fill(part: Path, definitions: bytes, request: CompileRequest, native: NativeProgram) -> None:
    """Write all files; the header comes last and completes the program."""
    files = {
        _CODE: [encode_native(native)],
        _DEFINITIONS: [definitions],
        _CONSTANTS: _pad(list(request.constants.values())),
    }
    entries: dict[str, list[Any]] = {}
    for name, pieces in files.items():
        size, hashed = 0, sha256()
        with (part / name).open("xb") as file:
            for piece in pieces:
                file.write(piece)
                hashed.update(piece)
                size += len(piece)
            file.flush()
            os.fsync(file.fileno())
        entries[name] = [size, hashed.hexdigest()]
    text = json.dumps({"form": _FORM, **_maker(), "files": entries}, indent=1)
    (part / _HEAD).write_text(text)


def _pad(values: Sequence[Array]) -> Iterator[Any]:
    for value in values:
        yield value.reshape(-1).view(np.uint8).data
        yield bytes(-value.nbytes % _STEP)


def _values(content: Array, tensors: Sequence[Tensor]) -> Iterator[Array]:
    """Yield the constants as views of the file contents."""
    start = 0
    for tensor in tensors:
        kind = tensor.dtype.numpy
        size = bytes_of(tensor)
        yield content[start : start + size].view(kind).reshape(sizes_of(tensor))
        start += round_up(size, _STEP)


def _maker() -> dict[str, Any]:
    triple, cpu, features, *llvm = compiler_fingerprint()
    return {
        "version": __version__,
        "compiler": digest(SOURCES, schedules(), llvm),
        "triple": triple,
        "cpu": cpu,
        "features": features,
    }


def _head(folder: Path) -> Mapping[str, Any]:
    text = _read(folder / _HEAD)
    if text is None:
        raise CacheError(
            "load: {path} is not a saved program: {head} not found; pass the folder that was "
            "passed to `program.save`",
            kind="saved-program", path=folder, head=_HEAD,
        )
    try:
        head = json.loads(text)
    except (ValueError, RecursionError):
        raise corrupted_program_error(folder, f"{_HEAD} is incomplete") from None
    if not isinstance(head, dict) or head.get("form") != _FORM:
        raise CacheError(
            "load: {path} does not have the format `{version}`; compile the program and save it "
            "again",
            kind="saved-program", path=folder, version=_FORM,
        )
    files = head.get("files")
    if not isinstance(files, dict) or set(files) != {_CODE, _DEFINITIONS, _CONSTANTS} or not all(
        isinstance(entry, list) and len(entry) == 2 for entry in files.values()
    ):
        raise corrupted_program_error(folder, f"{_HEAD} lists other files")
    return head


def _read(path: Path) -> bytes | None:
    """Return the contents of a regular file, else None; reading a pipe or device might not end."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _check_maker(path: Path, head: Mapping[str, Any]) -> None:
    """Check that a program was saved for this machine by this compiler."""
    local = _maker()
    remedy = "compile the program here and save it again"
    for key in ("triple", "cpu"):
        if head.get(key) != local[key]:
            raise CacheError(
                "load: {path} was compiled for {subject} `{head}`, but this machine has `{here}`; "
                "{remedy}",
                kind="saved-program", path=path, subject=key, head=head.get(key),
                here=local[key], remedy=remedy,
            )
    saved, cpu = (set(str(record.get("features")).split(",")) for record in (head, local))
    if saved != cpu:
        raise CacheError(
            "load: {path} was compiled for a processor with other features than this one "
            "({detail}); {remedy}",
            kind="saved-program", path=path, detail=", ".join(sorted(saved ^ cpu)), remedy=remedy,
        )
    if (head.get("version"), head.get("compiler")) != (local["version"], local["compiler"]):
        raise CacheError(
            "load: {path} was saved by tecomp {head}, whose sources differ from those of this "
            "{here}; {remedy}",
            kind="saved-program", path=path, head=head.get("version"), here=local["version"],
            remedy=remedy,
        )


def _content(folder: Path, name: str, entry: Sequence[Any]) -> Array:
    """Return the contents of a file after checking its size and hash."""
    size, hashed = entry
    path = folder / name
    if not path.is_file():
        raise corrupted_program_error(folder, f"{name} cannot be read")
    try:
        found = path.stat().st_size
        if found != size:
            raise corrupted_program_error(folder, f"{name} has {found} bytes of {size}")
        content: Array = np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)
    except OSError:
        raise corrupted_program_error(folder, f"{name} cannot be read") from None
    if sha256(content.data).hexdigest() != hashed:
        raise corrupted_program_error(folder, f"{name} differs from what was written")
    return content


def corrupted_program_error(folder: Path, problem: str) -> CacheError:
    """Return the error for a corrupted saved program."""
    return CacheError(
        "load: {path} is corrupted: {how}; save the program again",
        kind="saved-program", path=folder, how=problem,
    )


Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class NativeProgram:
    """Machine code of a program.

    Attributes:
        run: Code of a program call; takes inputs, outputs and the constant pool.
        pack: Code that packs constants; takes the constant pool and constants. None if no constant
            is computed.
        packed: Positions of the constants that `pack` takes.
        copied: Positions of the constants that kernels read unpacked, with their pool offsets.
        constant_bytes: Size of the constant pool in bytes.
        calls: Number of kernel calls in `run`.
        packed_in: Serialized layouts of the arguments in device layout.
    """

    run: SequenceCode
    pack: SequenceCode | None
    packed: tuple[int, ...]
    copied: tuple[tuple[int, int], ...]
    constant_bytes: int
    calls: int
    packed_in: str = ""

    @property
    def codes(self) -> tuple[SequenceCode, ...]:
        """Code objects: `run`, and `pack` if present."""
        return (self.run,) if self.pack is None else (self.run, self.pack)

    def constants(self, values: Sequence[Array]) -> Bytes:
        """Build the constant pool.

        Args:
            values: Constants, in the order of the `constants` argument of `compile`.
        """
        size = max(self.constant_bytes, 1)
        buffer = np.zeros(size + ALIGNMENT, np.uint8)
        start = -buffer.ctypes.data % ALIGNMENT
        data: Bytes = buffer[start : start + size]
        for position, offset in self.copied:
            content = values[position].reshape(-1).view(np.uint8)
            data[offset : offset + content.size] = content
        if self.pack is not None:
            self.pack.linked()(data, *(values[k] for k in self.packed))
        return data
