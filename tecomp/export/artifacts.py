"""Files of exported code: headers, archives, shared libraries, and atomic writes."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tecomp.atomic_writes import file_replacement
from tecomp.errors import CallError
from tecomp.export.c_function import ERROR_NAMES, ExportedArgument, ExportedFunction

_LITTLE_64 = b"\x7fELF\x02\x01"
_SYMBOL_TABLE = 2  # section type SHT_SYMTAB


@dataclass(frozen=True, slots=True)
class ObjectSymbols:
    """Global symbols of an object file.

    Attributes:
        defined: Names that the object defines, in order.
        undefined: Names that other objects must define, in alphabetical order.
    """

    defined: tuple[str, ...]
    undefined: tuple[str, ...]


def elf_symbols(image: bytes) -> ObjectSymbols:
    """Return the global and weak symbols of a 64-bit ELF object; none for any other format.

    Args:
        image: Object file.

    >>> elf_symbols(b"").defined
    ()
    """
    if not image.startswith(_LITTLE_64):
        return ObjectSymbols((), ())
    (start,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, start + k * size) for k in range(count)]
    defined: dict[str, None] = {}
    undefined = set[str]()
    for section in sections:
        if section[1] != _SYMBOL_TABLE:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, info, _, place = struct.unpack_from("<IBBH", image, at)
            text = image[names + name : image.index(b"\0", names + name)].decode()
            if info >> 4 == 0 or not text:
                continue  # local symbols
            if place:
                defined[text] = None
            else:
                undefined.add(text)
    return ObjectSymbols(tuple(defined), tuple(sorted(undefined)))


def archive_content(name: str, image: bytes) -> bytes:
    """Return a static library (ar, with the symbol index of GNU) of one ELF object.

    Args:
        name: Name of the object in the library; at most 15 characters are used.
        image: Object file.

    >>> archive_content("gemm.o", b"").startswith(b"!<arch>")
    True
    """
    symbols = elf_symbols(image).defined
    names = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    size = 4 + 4 * len(symbols) + len(names)
    offset = 8 + 60 + size + size % 2
    index = struct.pack(f">{1 + len(symbols)}I", len(symbols), *[offset] * len(symbols)) + names
    return b"!<arch>\n" + _member("/", index) + _member(f"{name[:15]}/", image)


def _member(name: str, content: bytes) -> bytes:
    # Date, owner and group are 0, so equal objects give equal libraries.
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n".encode()
    return head + content + b"\n" * (len(content) % 2)


def write_file(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Write a file, which appears under its name when it is complete.

    Args:
        path: Path of the file; an existing file is replaced.
        content: Contents.
        mode: Access permissions. Default: those of new files.

    Raises:
        CallError: If the file cannot be written.
    """
    try:
        with file_replacement(path) as part:
            part.write_bytes(content)
            if mode is not None:
                part.chmod(mode)
    except OSError as error:
        raise write_error(path, error) from None


def write_error(path: Path, error: OSError) -> CallError:
    """Return the error for a file or folder that cannot be written."""
    return CallError(
        "export: {path} cannot be written ({reason}); pass a path in a writable folder",
        kind="invalid-value", path=str(path), reason=error.strerror or error,
    )


def link_shared_library(path: Path, image: bytes, triple: str, *, is_native: bool) -> None:
    """Link an object to a shared library with the C compiler of the system or with zig.

    The library stays loaded after `dlclose`, because its threads run until the process ends.

    Args:
        path: Path of the library; an existing file is replaced.
        image: Object file.
        triple: Target triple.
        is_native: Whether the triple is that of this machine.

    Raises:
        CallError: If no linker is installed, the linker fails, or the file cannot be written.
    """
    linker = _linker(triple, is_native=is_native)
    if linker is None:
        package = f"the package gcc-{triple.partition('-')[0]}-linux-gnu"
        raise CallError(
            "export: no linker for {triple} is installed; install {compiler} or "
            "`pip install 'tecomp[export]'` (ziglang), or export a .o file",
            kind="missing-library", triple=triple,
            compiler="a C compiler (cc)" if is_native else package,
        )
    with tempfile.TemporaryDirectory(prefix="tecomp-export-") as folder:
        source, library = Path(folder, "code.o"), Path(folder, "library.so")
        source.write_bytes(image)
        flags = ["-shared", "-o", str(library), str(source), f"-Wl,-soname,{path.name}"]
        if "linux" in triple:
            flags += ["-Wl,-z,nodelete", "-Wl,-z,noexecstack"]
            flags += ["-Wl,--as-needed", "-lpthread", "-lm"]
        done = subprocess.run([*linker, *flags], capture_output=True, text=True, check=False)
        if done.returncode or not library.is_file():
            raise CallError(
                "export: {linker} cannot link {path}: {reason}; install a working C compiler for "
                "{triple}, or export a .o file",
                kind="missing-library", linker=" ".join(linker), path=str(path),
                reason=done.stderr.strip(), triple=triple,
            )
        content = library.read_bytes()
    write_file(path, content, mode=0o755)


def _linker(triple: str, *, is_native: bool) -> Sequence[str] | None:
    """Return the command of a C compiler that links for a triple, or None."""
    processor = triple.partition("-")[0]
    names = ("cc", "gcc", "clang") if is_native else (
        f"{triple}-gcc", f"{processor}-linux-gnu-gcc", f"{processor}-unknown-linux-gnu-gcc")
    for name in names:
        if (found := shutil.which(name)) is not None:
            return [found]
    if find_spec("ziglang") is not None:
        system = "linux-gnu" if "linux" in triple else "macos"
        return [sys.executable, "-m", "ziglang", "cc", "-target", f"{processor}-{system}"]
    return None


_OWN_FUNCTIONS = """\
/* Returns the text of an error code; the text is valid until the program ends. */
const char *{name}_error_text(int code);
"""
_THREADS = """
/* Sets the number of threads, from 1 to 256, of all exported functions in this program or shared
   library. Returns 0 or {upper}_INVALID_THREADS. Default: the environment variable
   TECOMP_NUM_THREADS, or the number of processors that the process may use. */
int {name}_set_threads(int count);

/* Returns the number of threads. */
int {name}_threads(void);
"""
_OPEN = """
/* Maps the file {name}.weights with the constants, before the first call of {name}. Returns 0 or
   {upper}_INVALID_FILE. */
int {name}_open(const char *path);
"""
_HEADER = """\
/* {name}: compiled by tecomp. Do not edit.

{arguments}

   Triple: {triple}
   CPU: {cpus}
   Links with: {libraries}

   Arrays must not overlap an array that is written. Calls from several threads are allowed.
   Returns 0, or an error code: {upper}_ERROR_KIND(code) is an {upper}_... constant, and
   {upper}_ERROR_NUMBER(code) the position of the argument from 1 on, the number of the run-time
   check, or 0. Except after {upper}_OUT_OF_MEMORY and {upper}_INDEX_OUT_OF_BOUNDS nothing was
   written.
*/
#ifndef TECOMP_{upper}_H
#define TECOMP_{upper}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

enum {{
{kinds}
}};
#define {upper}_ERROR_KIND(code) ((code) & 255)
#define {upper}_ERROR_NUMBER(code) ((code) >> 8)

{prototype};

{functions}
#ifdef __cplusplus
}}
#endif

#endif
"""


def header_text(
    function: ExportedFunction, triple: str, cpus: Sequence[str], undefined: Sequence[str]
) -> str:
    """Return the C header of an exported function.

    Args:
        function: Exported function.
        triple: Target triple.
        cpus: CPUs of the code, the highest level first.
        undefined: Symbols that other objects must define.
    """
    upper = function.name.upper()
    functions = _OWN_FUNCTIONS.format(name=function.name)
    if function.is_parallel:
        functions += _THREADS.format(name=function.name, upper=upper)
    if function.is_mapped:
        functions += _OPEN.format(name=function.name, upper=upper)
    return _HEADER.format(
        name=function.name, upper=upper, triple=triple, cpus=", ".join(cpus),
        arguments="\n".join([_argument_line(argument) for argument in function.arguments]),
        kinds=",\n".join([f"  {upper}_{kind} = {k}" for k, kind in enumerate(ERROR_NAMES, 1)]),
        libraries=_libraries(undefined), prototype=function.prototype, functions=functions,
    )


def _libraries(undefined: Sequence[str]) -> str:
    """Return the libraries and symbols that a program must link."""
    found = ["the C library"] if set(undefined) & _LIBC else []
    found += ["libm (-lm)"] if set(undefined) & _LIBM else []
    found += ["libgcc or compiler-rt"] if any(name.startswith("__") for name in undefined) else []
    rest = [name for name in undefined
            if name not in _LIBC | _LIBM and not name.startswith(("__", "_GLOBAL_OFFSET_TABLE_"))]
    found += [f"definitions of {', '.join(rest)}"] if rest else []
    return ", ".join(found) or "nothing"


_LIBC_NAMES = """\
    clock_gettime close free getenv lseek madvise memcmp memcpy memmove memset mmap munmap open
    posix_memalign pthread_atfork pthread_cond_init pthread_cond_signal pthread_cond_wait
    pthread_create pthread_detach pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock
    pthread_sigmask sched_getaffinity sched_getcpu sched_setaffinity sched_yield strtol syscall
    sysconf"""
_LIBC = frozenset(_LIBC_NAMES.split())
_LIBM_NAMES = """\
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2
    expm1 floor fma fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 modf nearbyint
    nextafter pow remainder rint round roundeven sin sinh sqrt tan tanh tgamma trunc"""
_LIBM = frozenset(name + suffix for name in _LIBM_NAMES.split() for suffix in ("", "f"))

C_FUNCTIONS = _LIBC | _LIBM
"""Functions of the C library whose names exported functions cannot have."""


def _argument_line(argument: ExportedArgument) -> str:
    """Return the comment on an argument."""
    buffer = argument.buffer
    if buffer is None:
        assert argument.var is not None
        bounds = argument.var.bounds
        line = f"{argument.name}: {argument.declared}"
        return _comment(f"{line}, {bounds}" if bounds is not None and str(bounds) else line)
    shape = ", ".join([str(extent) for extent in buffer.shape])
    parts = [f"{buffer.dtype}[{shape}]", "written" if argument.is_written else "read"]
    if buffer.strides is not None:
        parts.append(f"strides of ({', '.join(map(str, buffer.strides))}) elements")
    else:
        parts.append("row-major without gaps")
    if buffer.has_offset:
        parts.append(f"the first element is element {buffer.elem_offset} of the array")
    if buffer.dtype.scalar.bytes > 1:
        parts.append(f"aligned to {buffer.dtype.scalar.bytes} bytes")
    if argument.note:
        parts.append(argument.note)
    return _comment(f"{argument.name}: {', '.join(parts)}")


def _comment(text: str) -> str:
    """Return a text as lines of a C comment."""
    plain = text.replace("*/", "* /").encode("ascii", "replace").decode()
    return textwrap.fill(
        plain, 100, initial_indent="   ", subsequent_indent="     ", break_long_words=False)
