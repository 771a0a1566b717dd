"""`tecomp completion`: what a shell has to run to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion of commands and what they take for SHELL.

    For bash: eval "$(tecomp completion bash)"
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"completion: click knows no {shell}")
    root = context.find_root()
    click.echo(found(root.command, {}, "tecomp", "_TECOMP_COMPLETE").source())
