"""The command-line interface `tecomp`: command group and shell completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from tecomp.cli.diagnostics import cache, doctor, explain
from tecomp.cli.inspect_commands import check_target, lower, new_target, targets, viz
from tecomp.cli.run_commands import bench, demo, export, onnx, run, tune
from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.cli.common import show

__getattr__, __dir__ = lazy_names(__name__)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of commands and their arguments for SHELL.

    For bash: eval "$(tecomp completion bash)"
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"completion: click does not support {shell}")
    root = context.find_root()
    click.echo(found(root.command, {}, "tecomp", "_TECOMP_COMPLETE").source())


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tecomp", message="%(prog)s %(version)s")
def main() -> None:
    """Tensor expressions, schedules and memory layouts, compiled to native code."""


for _command in (
    bench, cache, check_target, completion, demo, doctor, explain, export, lower, new_target, onnx,
    run, targets, tune, viz,
):
    main.add_command(_command)
