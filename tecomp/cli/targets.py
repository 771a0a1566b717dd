"""`tecomp targets`, `check-target` and `new-target`: machine descriptions."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

import tecomp
from tecomp.cli.common import machines, show, with_json
from tecomp.errors import TargetError
from tecomp.machine.registry import broken_plugins
from tecomp.plugin.skeleton import write_skeleton


@click.command()
@with_json
def targets(as_json: bool) -> None:
    """List the described machines."""
    if as_json:
        show([_describe(name) for name in tecomp.list_targets()], as_json=True)
        return
    names = tecomp.list_targets()
    width = max((len(name) for name in names), default=0) + 2
    for name in names:
        try:
            memories = tecomp.Target.load(name).memories.values()
        except TargetError as error:
            click.echo(f"{name:<{width}}{error.message}")
            continue
        spaces = ", ".join(f"{memory.name} (rank {memory.rank})" for memory in memories)
        click.echo(f"{name:<{width}}{spaces}")
    for complaint in broken_plugins():
        click.echo(complaint, err=True)


def _describe(name: str) -> dict[str, object]:
    try:
        target = tecomp.Target.load(name)
    except TargetError as error:
        return {"name": name, "error": error.message}
    return {
        "name": name,
        "description": target.description,
        "grid": dict(target.grid),
        "memories": {
            memory.name: {
                "rank": memory.rank, "scope": memory.scope, "bytes": memory.capacity_bytes
            }
            for memory in target.memories.values()
        },
    }


@click.command()
@click.argument("name", shell_complete=machines)
@with_json
def check_target(name: str, as_json: bool) -> None:
    """Check that programs run on all components that a target describes.

    NAME is an installed target, or the path of a TOML file. The exit status is 0 only if all checks
    pass.
    """
    try:
        checks = tecomp.check_target(name)
    except TargetError as error:
        raise click.ClickException(error.message) from error
    if as_json:
        show([asdict(check) for check in checks], as_json=True)
    else:
        for check in checks:
            click.echo(f"{'ok' if check.passed else 'FAILED':<8}{check.title}: {check.detail}")
    if failed := sum(not check.passed for check in checks):
        raise click.ClickException(f"{name} failed {failed} of {len(checks)} checks")


@click.command()
@click.argument("name")
@with_json
def new_target(name: str, as_json: bool) -> None:
    """Write a package that describes a machine, in a new directory NAME."""
    try:
        files = write_skeleton(name, Path.cwd())
    except TargetError as error:
        raise click.ClickException(error.message) from error
    file_names = [str(path.relative_to(Path.cwd())) for path in files]
    if as_json:
        click.echo(json.dumps({"files": file_names}, indent=2))
        return
    click.echo("\n".join(file_names))
    click.echo(f"next: pip install -e {name} && tecomp check-target {name}")
