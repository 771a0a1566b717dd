"""Build backend: setuptools, with editable installs that type checkers understand.

The directories `schedules` and `targets` are next to `tecomp`, so setuptools implements an editable
install with an import hook. Type checkers and editors do not run import hooks and would not find
the package. They do read `.pth` files, so the wheel gets a `.pth` file with the path of the
checkout. It also gets stubs that name the modules of the two directories without their contents.
"""

from __future__ import annotations

import ast
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401  hooks that are re-exported unchanged
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

_ANYTHING = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"


def build_editable(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel of an editable install, with a `.pth` file and stubs for type checkers."""
    name: str = build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    _add(Path(wheel_directory) / name, {
        "__types__.tecomp.pth": f"{Path(__file__).parent.resolve()}\n",
        "tecomp-stubs/py.typed": "partial\n",
        **_stubs(Path(__file__).parent),
    })
    return name


def _stubs(root: Path) -> dict[str, str]:
    """Return stub files by path for `schedules` and `targets`: pyright needs one per module."""
    folders = (root / "schedules", root / "targets")
    modules = (path for folder in folders for path in folder.rglob("*.py"))
    return {
        f"tecomp-stubs/{path.relative_to(root).with_suffix('.pyi').as_posix()}": _stub(path)
        for path in sorted(modules)
    }


def _stub(path: Path) -> str:
    """Return a stub whose attributes all have type `Any`; it lists the names in `__all__`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [
        name for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    ]
    return _ANYTHING + "".join(f"{name}: Any\n" for name in names)


def _add(path: Path, files: Mapping[str, str]) -> None:
    """Add files to a wheel and to its RECORD."""
    with zipfile.ZipFile(path) as wheel:
        members = {info: wheel.read(info) for info in wheel.infolist()}
    record = "".join(_recorded(name, text.encode()) for name, text in files.items())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
        for info, content in members.items():
            is_record = info.filename.endswith(".dist-info/RECORD")
            wheel.writestr(info, record.encode() + content if is_record else content)


def _recorded(name: str, content: bytes) -> str:
    digest = urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"
