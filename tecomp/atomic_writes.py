"""Write files and folders under a temporary name, so that they appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_replacement(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; the file that is written there replaces `path`.

    Args:
        path: Path of a file. If the block raises, it keeps its contents.

    Raises:
        OSError: If the file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with file_replacement(Path(folder, "a.txt")) as part:
    ...         _ = part.write_text("complete")
    ...     Path(folder, "a.txt").read_text(), len(os.listdir(folder))
    ('complete', 1)
    """
    part = _temporary_path(path)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


@contextmanager
def folder_replacement(path: Path) -> Iterator[Path]:
    """Yield a new temporary folder beside `path`, which replaces `path` at the end.

    Args:
        path: Path of a folder. If the block raises, it keeps its contents.

    Raises:
        OSError: If the folder cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with folder_replacement(Path(folder, "a")) as part:
    ...         _ = Path(part, "b.txt").write_text("complete")
    ...     os.listdir(Path(folder, "a"))
    ['b.txt']
    """
    part = _temporary_path(path)
    try:
        part.mkdir(parents=True)
        yield part
        if path.exists() and any(path.iterdir()):
            old = part.with_suffix(".old")
            path.rename(old)
            part.rename(path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _temporary_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
