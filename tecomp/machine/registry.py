"""Target descriptions of installed packages, found through `tecomp.targets` entry points.

An entry point is a function without arguments that returns paths of TOML files; the target of
`cpu.toml` is named `cpu`. A package that fails to load affects only its own targets.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path

from tecomp.caches import memoize
from tecomp.errors import TargetError, safe_repr, safe_str

GROUP = "tecomp.targets"

_CALLED = {"llvm": "cpu"}
"""TVM names of targets."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Descriptions from one entry point.

    Attributes:
        entry: Entry point.
        paths: Paths of the descriptions.
        failure: Reason why the entry point failed to load; empty if it was loaded.
    """

    entry: EntryPoint
    paths: tuple[Path, ...] = ()
    failure: str = ""

    @property
    def owner(self) -> str:
        """Name of the distribution, or of the entry point if the distribution is unknown.

        The lookup takes a millisecond, so only messages use it.
        """
        return str(self.entry.dist.name) if self.entry.dist is not None else self.entry.name


def list_targets() -> tuple[str, ...]:
    """Return the names of the installed targets in alphabetical order, as `Target.load` takes them.

    >>> "cpu" in list_targets()
    True
    """
    return tuple(sorted(_descriptions()))


def broken_plugins() -> tuple[str, ...]:
    """Return a message for each package whose targets failed to load."""
    return tuple(_complaint(offer) for offer in _installed_offers() if offer.failure)


def find_description(target: object) -> Path:
    """Return the path of the description of a target, given by its name or by that path.

    Raises:
        TargetError: If no package offers the target, several do, or the package failed to load.
    """
    name = safe_str(target)
    if name.endswith(".toml"):
        return Path(name)
    found = _descriptions()
    if name not in found:
        name = _CALLED.get(name, name)
    if name in found:
        paths = found[name]
        if len(paths) > 1:
            owners = " and by ".join(f"`{offer.owner}`" for offer in paths.values())
            raise TargetError(
                "target `{name}` is provided by {owners}; uninstall one of them, or pass the path "
                "of the TOML file",
                kind="plugin", name=name, owners=owners,
            )
        return next(iter(paths))
    failed = [offer for offer in _installed_offers() if offer.failure]
    matching = [offer for offer in failed if offer.entry.name == name or offer.owner == name]
    if matching:
        raise TargetError(
            "target `{name}`: {problem}; fix or uninstall it, or pass the path of the TOML file",
            kind="plugin", name=name, problem=_complaint(matching[0]),
        )
    hint = _hint(name, found)
    known = ", ".join(sorted(found)) or "none (is tecomp installed? `pip install -e .`)"
    others = "".join(f"; {_complaint(offer)}" for offer in failed)
    raise TargetError(
        "unknown target `{name}`; {hint}installed targets: {known}; or pass the path of a TOML "
        "file{others}",
        kind="unknown-target", name=name, hint=hint, known=known, others=others,
    )


def _hint(name: str, found: Mapping[str, object]) -> str:
    if name.startswith("llvm "):
        return "code is compiled for the host CPU, so use `llvm` without options; "
    matches = get_close_matches(name, found, n=1)
    return f"did you mean `{matches[0]}`? " if matches else ""


def _complaint(offer: Offer) -> str:
    return f"plug-in `{offer.entry.name}` of `{offer.owner}` cannot be loaded ({offer.failure})"


def _descriptions() -> Mapping[str, Mapping[Path, Offer]]:
    """Return the description files of each target, with the entry points that offer them."""
    found: dict[str, dict[Path, Offer]] = {}
    for offer in _installed_offers():
        for path in offer.paths:
            # A package that is installed twice, e.g. also from a checkout, lists equal paths.
            found.setdefault(path.stem, {}).setdefault(path, offer)
    return found


def _installed_offers() -> tuple[Offer, ...]:
    return _offers(entry_points, tuple(map(_state, sys.path)))


@memoize("machine.entry_points")
def _offers(
    find: Callable[..., EntryPoints], path_state: tuple[tuple[str, int], ...]
) -> tuple[Offer, ...]:
    """Load the entry points, once per state of `sys.path`.

    Scanning the installed packages takes milliseconds.
    """
    del path_state
    entries = sorted(find(group=GROUP), key=lambda entry: (entry.name, entry.value))
    return tuple(map(_offer, entries))


def _offer(entry: EntryPoint) -> Offer:
    try:
        return Offer(entry, tuple(_paths(entry.load()())))
    # A broken package, even one that exits the process, must not affect other packages.
    except (Exception, SystemExit) as error:
        return Offer(entry, failure=f"{type(error).__name__}: {error}")


def _paths(paths: object) -> Iterator[Path]:
    if isinstance(paths, str) or not isinstance(paths, list | tuple):
        raise TypeError(f"expected a list of paths, got {safe_repr(paths)}")
    for path in paths:
        if not str(path).endswith(".toml"):
            raise TypeError(f"expected paths of TOML files, got {safe_repr(path)}")
        yield Path(path)


def _state(folder: str) -> tuple[str, int]:
    """Return a folder with its modification time, which installing or removing packages changes."""
    try:
        return folder, os.stat(folder or ".").st_mtime_ns
    except OSError:
        return folder, -1
