"""`tecomp cache`: what is kept of compiled kernels."""

from __future__ import annotations

import click

from tecomp.cli.output import show_record, with_json
from tecomp.codegen.llvm.store import Store, current_store
from tecomp.errors import CacheError


@click.group(invoke_without_command=True)
@with_json
@click.pass_context
def cache(context: click.Context, as_json: bool) -> None:
    """Show where compiled kernels are kept, how many, and how much they take.

    TECOMP_CACHE_DIR says where, TECOMP_CACHE_SIZE how many megabytes at most, and
    TECOMP_CACHE=off that nothing is kept.
    """
    if context.invoked_subcommand is None:
        store = _store()
        held = store.contents()
        record = {"folder": str(store.folder), "entries": held.entries}
        size = {"bytes": held.bytes, "limit": store.limit}
        limited = {"bytes": f"{held.bytes} of {store.limit}"}
        show_record(record | (size if as_json else limited), as_json=as_json)


@cache.command()
def clear() -> None:
    """Remove all kernels that are kept."""
    held = _store().clear()
    click.echo(f"removed {held.entries} entries, {held.bytes} bytes")


def _store() -> Store:
    try:
        store = current_store()
    except CacheError as error:
        raise click.ClickException(error.message) from error
    if store is None:
        raise click.ClickException("cache: it is off; unset TECOMP_CACHE to use it")
    return store
