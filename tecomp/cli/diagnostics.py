"""`tecomp doctor`, `tecomp cache` and `tecomp explain`."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import metadata
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import click
import numpy as np

import tecomp
from tecomp import te
from tecomp.caches import CACHE_LIMITS
from tecomp.cli.common import codes, show, show_record, with_json
from tecomp.codegen.llvm.code_cache import Store, current_store
from tecomp.codegen.llvm.jit import host
from tecomp.error_pages import document, error_pages, page_of
from tecomp.errors import CacheError, TecompError
from tecomp.machine.registry import broken_plugins


@click.group(invoke_without_command=True)
@with_json
@click.pass_context
def cache(context: click.Context, as_json: bool) -> None:
    """Show the directory, the number and the size of cached kernels, and limits in memory.

    The table lists the maximum number of entries of each cache that a process keeps in memory.
    TECOMP_CACHE_DIR sets the directory, TECOMP_CACHE_SIZE the maximum size in megabytes, and
    TECOMP_CACHE=off disables the cache.
    """
    if context.invoked_subcommand is None:
        store = _store()
        stored = store.contents()
        record = {"folder": str(store.folder), "entries": stored.entries}
        size = {"bytes": stored.bytes, "limit": store.limit}
        limited = {"bytes": f"{stored.bytes} of {store.limit}"}
        memory = [{"cache": name, "limit": limit.limit, "content": limit.content}
                  for name, limit in sorted(CACHE_LIMITS.items())]
        if as_json:
            show_record(record | size | {"memory": memory}, as_json=True)
        else:
            show_record(record | limited)
            click.echo()
            show(memory)


@cache.command()
def clear() -> None:
    """Remove all cached kernels."""
    removed = _store().clear()
    click.echo(f"removed {removed.entries} entries, {removed.bytes} bytes")


def _store() -> Store:
    try:
        store = current_store()
    except CacheError as error:
        raise click.ClickException(error.message) from error
    if store is None:
        raise click.ClickException("cache: the cache is disabled; unset TECOMP_CACHE to enable it")
    return store


_LIBRARIES = ("numpy", "islpy", "llvmlite", "networkx", "ml_dtypes")
_EXTRAS = {"demo": ("matplotlib", "scipy"), "mpi": ("mpi4py",)}


@click.command()
@with_json
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Check that tecomp works on this machine, and report the components found.

    The exit status is 0 only if all required components work; optional components may be missing.
    """
    rows = [_check(name, check) for name, check in _CHECKS.items()]
    show(rows, as_json=as_json)
    if not all(row["ok"] for row in rows):
        context.exit(1)


def _check(name: str, check: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"check": name, "ok": True, "result": check()}
    except (TecompError, OSError, ImportError, ArithmeticError) as error:
        return {"check": name, "ok": False, "result": str(error).partition("\n")[0]}


def _python() -> str:
    version = metadata.version("tecomp")
    return f"{version} on Python {platform.python_version()}, {platform.platform()}"


def _libraries() -> str:
    return ", ".join(f"{name} {metadata.version(name)}" for name in _LIBRARIES)


def _processor() -> str:
    core = tecomp.Target.load("cpu").core
    if core is None:
        raise OSError("the processor is unknown")
    return f"{host().cpu}, {core.count} cores, vectors of {core.vector_bytes} bytes"


def _compiler() -> str:
    """Compile a kernel that is in no cache, and compare its results."""
    shift = float(perf_counter())
    source = te.placeholder((100,), "float64", name="A")
    result = te.compute((100,), lambda i: source[i] * 2.0 + te.const(shift, "float64"), name="B")
    start = perf_counter()
    kernel = tecomp.build(result, [source, result])
    seconds = perf_counter() - start
    a, b = np.arange(100.0), np.empty(100)
    kernel(a, b)
    if not np.allclose(b, a * 2 + shift):
        raise ArithmeticError("a kernel computed wrong results")
    return f"compiled a kernel in {1e3 * seconds:.0f} ms; its results are correct"


def _rates() -> str:
    """Return the measured rates of one core per second; measured once and cached."""
    rates = tecomp.calibrate().rates
    if rates is None:
        raise OSError("the processor was not measured")
    vectors = ", ".join(f"{name} {rate / 1e9:.3g}" for name, rate in rates.flops.items())
    scalars = ", ".join(f"{name} {rate / 1e9:.3g}" for name, rate in rates.scalar_flops.items())
    reads = ", ".join(
        f"{name} {rate / 1e9:.3g}"
        for name, rate in zip(rates.levels, rates.read_bytes_per_second, strict=True)
    )
    return (
        f"one core: {vectors} Gop/s with vector instructions, {scalars} Gop/s with scalar "
        f"instructions; reads {reads} GB/s"
    )


def _cache() -> str:
    store = current_store()
    if store is None:
        return "disabled"
    stored = store.contents()
    return f"{stored.entries} entries, {stored.bytes:,} of {store.limit:,} bytes, in {store.folder}"


def _targets() -> str:
    complaints = list(broken_plugins())
    if complaints:
        raise OSError("; ".join(complaints))
    return ", ".join(tecomp.list_targets())


def _extras() -> str:
    missing = {
        extra: [name for name in names if find_spec(name) is None]
        for extra, names in _EXTRAS.items()
    }
    return ", ".join(
        f"{extra}: {'missing ' + ', '.join(names) if names else 'installed'}"
        for extra, names in missing.items()
    )


_CHECKS: dict[str, Callable[[], str]] = {
    "tecomp": _python,
    "libraries": _libraries,
    "processor": _processor,
    "compiler": _compiler,
    "rates": _rates,
    "cache": _cache,
    "targets": _targets,
    "extras": _extras,
}

if sys.platform != "linux":
    _CHECKS["platform"] = lambda: f"{sys.platform} is not tested"


@click.command()
@click.argument("code", required=False, shell_complete=codes)
@click.option("--markdown", is_flag=True, help="Print the pages of all codes, as docs/errors.md.")
@with_json
def explain(code: str | None, markdown: bool, as_json: bool) -> None:
    """Explain the error with a CODE, such as TE0201, and an example; without CODE, list all."""
    if markdown:
        click.echo(document(), nl=False)
        return
    if code is None:
        rows = [
            {"code": entry.code, "kind": entry.kind, "title": entry.title} for entry
            in error_pages().values()
        ]
        show(rows, as_json=as_json)
        return
    if (page := page_of(code)) is None:
        matches = get_close_matches(code.lower(), list(error_pages()), n=1)
        hint = f"did you mean {matches[0]}? " if matches else ""
        raise click.ClickException(
            f"explain: unknown error code {code!r}; {hint}call tecomp explain to list all codes"
        )
    if as_json:
        click.echo(json.dumps({"code": page.code, "page": str(page)}, indent=2))
    else:
        click.echo(page, nl=False)
