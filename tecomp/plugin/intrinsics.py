"""Tensor intrinsics that installed packages provide through entry points `tecomp.intrinsics`.

An entry point has the name of a target. It refers to a function that takes the target and returns
the results of `te.decl_tensor_intrin`, with extents that match the engine of the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.errors import TargetError, TecompError
from tecomp.machine.descriptor import Target

GROUP = "tecomp.intrinsics"


def intrinsics(target: str | Target) -> Mapping[str, TensorIntrin]:
    """Return the intrinsics of a target for `s[T].tensorize`, by name.

    Args:
        target: Target, or its name.

    Returns:
        Read-only mapping from names to intrinsics.

    Raises:
        TargetError: If the target is not found, an entry point fails or returns an object that is
            not an intrinsic, or two entry points provide intrinsics of the same name.

    >>> intrinsics("stick128")["load_copy_float16"]
    TensorIntrin(load_copy_float16: c[i0] = a[i0])
    """
    machine = Target.of(target)
    found: dict[str, TensorIntrin] = {}
    owners: dict[str, str] = {}
    for entry in sorted(entry_points(group=GROUP, name=machine.name), key=lambda e: e.value):
        owner = entry.dist.name if entry.dist is not None else entry.name
        for intrin in _load_intrinsics(entry, owner, machine):
            if intrin.name in found:
                providers = " and by ".join(f"`{name}`" for name in (owners[intrin.name], owner))
                raise TargetError(
                    "operation `{intrin}` of target {machine} is provided by {both}; uninstall one "
                    "of them",
                    kind="plugin", intrin=intrin.name, machine=machine.name, both=providers,
                )
            found[intrin.name], owners[intrin.name] = intrin, owner
    return MappingProxyType(found)


def _load_intrinsics(entry: EntryPoint, owner: str, target: Target) -> tuple[TensorIntrin, ...]:
    where = f"operations of target {target.name}: plug-in `{entry.name}` of `{owner}`"
    try:
        offered = tuple(entry.load()(target))
    # The code of a package may raise any exception, or call `sys.exit`.
    except (Exception, SystemExit) as error:
        reason = error.message if isinstance(error, TecompError) else str(error)
        raise TargetError(
            "{where} cannot be loaded ({type}: {reason}); fix or uninstall it",
            kind="plugin", where=where, type=type(error).__name__, reason=reason,
        ) from error
    for intrin in offered:
        if not isinstance(intrin, TensorIntrin):
            raise TargetError(
                "{where} returned {value!r}; return results of te.decl_tensor_intrin",
                kind="plugin", where=where, value=intrin,
            )
    return offered
