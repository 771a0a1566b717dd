"""TOML to plain values: every mistake is named with its file, table and key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from tecomp.errors import TargetError

_TOP: Mapping[str, type] = {"name": str, "description": str, "core": dict, "memory": dict}
_CORE: Mapping[str, type] = {
    "count": int,
    "vector_bytes": int,
    "vector_registers": int,
    "cache_bytes": list,
    "source": str,
}
_MEMORY: Mapping[str, type] = {
    "scope": str,
    "rank": int,
    "alignment_bytes": int,
    "capacity_bytes": int,
    "source": str,
}
_OPTIONAL = ("capacity_bytes", "core")
HOST = "host"
"""Instead of a number: what the machine at hand has."""
_SCOPES = ("chip", "core")
_KINDS = {str: "a text", int: "a whole number", dict: "a table", list: "a list"}


def read_description(text: str, source: str) -> dict[str, Any]:
    """The tables of a target description, complete and of the right kinds.

    Raises:
        TargetError: the text is no TOML, or a key is missing, unknown or of the wrong kind.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TargetError(f"{source}: no TOML ({error}); see https://toml.io") from error
    _check_keys(table, _TOP, source)
    if "core" in table:
        _check_core(table["core"], f"{source}: [core]")
    if not table["memory"]:
        raise TargetError(f"{source}: [memory] is empty; describe at least one memory")
    for name, entry in table["memory"].items():
        where = f"{source}: [memory.{_key(name)}]"
        if not isinstance(entry, dict):
            raise TargetError(f"{where}: expected a table, got {entry!r}")
        _check_keys(entry, _MEMORY, where)
        _check_memory(entry, where)
    return table


def _key(name: str) -> str:
    return f'"{name}"' if "." in name else name


def _check_keys(
    table: Mapping[str, Any], known: Mapping[str, type], where: str, *, may_be_host: bool = False
) -> None:
    for key, value in table.items():
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"the keys are {', '.join(known)}"
            raise TargetError(f"{where}: unknown key `{key}`; {hint}")
        # A bool is an int for Python, and not for the reader of a description.
        if type(value) is not known[key] and not (may_be_host and value == HOST):
            other = f', or "{HOST}"' if may_be_host else ""
            raise TargetError(
                f"{where}: `{key}` is {value!r}; expected {_KINDS[known[key]]}{other}"
            )
    if missing := [key for key in known if key not in table and key not in _OPTIONAL]:
        raise TargetError(f"{where}: missing {', '.join(f'`{key}`' for key in missing)}")


def _check_core(entry: Mapping[str, Any], where: str) -> None:
    _check_keys(entry, _CORE, where, may_be_host=True)
    for key in ("count", "vector_bytes", "vector_registers"):
        if entry[key] != HOST and entry[key] < 1:
            raise TargetError(f"{where}: `{key}` is {entry[key]}; expected at least 1")
    sizes = entry["cache_bytes"]
    if sizes != HOST and not (sizes and all(type(size) is int and size > 0 for size in sizes)):
        raise TargetError(
            f"{where}: `cache_bytes` is {sizes!r}; expected the bytes of each cache, the smallest "
            "first"
        )


def _check_memory(entry: Mapping[str, Any], where: str) -> None:
    if entry["scope"] not in _SCOPES:
        raise TargetError(
            f"{where}: `scope` is {entry['scope']!r}; expected {' or '.join(map(repr, _SCOPES))}"
        )
    for key in ("rank", "capacity_bytes"):
        if entry.get(key, 1) < 1:
            hint = "; leave it out where there is no limit" if key in _OPTIONAL else ""
            raise TargetError(f"{where}: `{key}` is {entry[key]}; expected at least 1{hint}")
    alignment = entry["alignment_bytes"]
    if alignment < 1 or alignment & (alignment - 1):
        raise TargetError(
            f"{where}: `alignment_bytes` is {alignment}; expected a power of two"
        )
