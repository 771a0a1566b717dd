"""`tecomp run`, `tecomp tune`, `tecomp onnx`, `tecomp export`, `tecomp demo` and `tecomp bench`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

import click
import numpy as np

import tecomp
from tecomp import demo as demonstration
from tecomp import te, topi
from tecomp.cli.common import (
    format_error,
    is_function,
    load_definitions,
    load_value,
    machines,
    parse_schedule_value,
    show,
    with_json,
)
from tecomp.codegen.dispatch.kernel import time_call
from tecomp.dist.launch import launch_ranks, most_processes
from tecomp.driver.auto_schedule import database_path
from tecomp.driver.program_api import cost_text
from tecomp.errors import MissingLibraryError, TeamError, TecompError
from tecomp.tuning import TuningDatabase

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Case:
    """Operator on tensors, its NumPy equivalent, and the ranks of its operands."""

    define: Callable[..., Any]
    in_numpy: Callable[..., Array]
    ranks: tuple[int, ...]


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


_CASES = {
    "add": _Case(topi.add, np.add, (2, 2)),
    "exp": _Case(topi.exp, np.exp, (2,)),
    "matmul": _Case(topi.matmul, np.matmul, (2, 2)),
    "matvec": _Case(lambda a, x: topi.tensordot(a, x, 1), np.matmul, (2, 1)),
    "softmax": _Case(topi.nn.softmax, _softmax, (2,)),
    "sum": _Case(lambda x: topi.sum(x, axis=1), lambda x: np.asarray(x.sum(1)), (2,)),
    "transpose": _Case(topi.transpose, lambda x: np.ascontiguousarray(x.T), (2,)),
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(sorted(_CASES)))
@click.option(
    "--size", "n", type=click.IntRange(1, 16384), default=1024, show_default=True,
    help="Size of each axis of the float32 matrices and vectors.",
)
@click.option(
    "--seconds", type=click.FloatRange(0, 100, min_open=True), default=0.3, show_default=True,
    help="Measuring time per operator and library, in seconds.",
)
@with_json
def bench(names: Sequence[str], n: int, seconds: float, as_json: bool) -> None:
    """Measure automatically scheduled operators, or only those of NAMES, against NumPy.

    Times are the minimum of many calls, in milliseconds. They include argument checks, but not the
    allocation of results.
    """
    requested: Sequence[str] = names or sorted(_CASES)
    with click.progressbar(requested, file=sys.stderr) as chosen:
        rows = [_measure(name, _CASES[name], n, seconds) for name in chosen]
    show(rows, as_json=as_json)


@click.command()
@click.argument("source", metavar="SCRIPT:NAME")
@click.argument("outputs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--cpu", "cpus", multiple=True,
    help="CPU of the code: a name of LLVM, native, or a level such as x86-64-v3; several levels "
    "give code for each. Default: the CPU of this machine.",
)
@click.option("--triple", help="Target triple, such as aarch64-linux-gnu. Default: this machine.")
@click.option("--name", help="Name of the C function. Default: the name of the first output.")
@with_json
def export(
    source: str, outputs: Sequence[Path], cpus: Sequence[str], triple: str | None,
    name: str | None, as_json: bool,
) -> None:
    """Write a kernel or a program as a C function to OUTPUTS, which need no Python.

    NAME in SCRIPT is a kernel of tecomp.build, or a pair as for tecomp.build: a schedule, or a
    tensor without a schedule, and the list of arguments. NAME can be a function that returns one.
    Outputs are objects (.o), libraries (.a, .so), headers (.h), LLVM IR (.ll) or assembly (.s).
    A program of tecomp.compile is written to a folder.
    """
    symbol = name or outputs[0].stem
    try:
        kernel = load_definitions(source)
        if not hasattr(kernel, "export"):
            kernel = tecomp.build(*parse_schedule_value(source), name=symbol)
        cpu = cpus[0] if len(cpus) == 1 else [*cpus] or None
        for output in outputs:
            kernel.export(output, cpu=cpu, triple=triple, name=symbol)
    except TecompError as error:
        raise click.ClickException(format_error(error, source)) from error
    names = [str(output) for output in outputs]
    click.echo(json.dumps({"name": symbol, "files": names}) if as_json else "\n".join(names))


def _measure(name: str, case: _Case, n: int, seconds: float) -> dict[str, object]:
    inputs = [te.placeholder((n,) * rank, name=f"X{k}") for k, rank in enumerate(case.ranks)]
    output = case.define(*inputs)
    kernel = tecomp.build(output, [*inputs, output], name=name)
    random = np.random.default_rng(0)
    arrays = [random.random(X.shape, np.float32) for X in inputs]
    expected = case.in_numpy(*arrays)
    out = np.empty(expected.shape, np.float32)
    kernel(*arrays, out)
    np.testing.assert_allclose(out, expected, rtol=1e-3)
    kernel_time = kernel.timeit(*arrays, out, seconds=seconds).min
    numpy_time = time_call(case.in_numpy, arrays, seconds).min
    return {
        "operator": name,
        "tecomp_ms": round(1e3 * kernel_time, 4),
        "numpy_ms": round(1e3 * numpy_time, 4),
        "speedup": round(numpy_time / kernel_time, 2),
    }


@click.command()
@click.option(
    "--target", "name", default="cpu", show_default=True, shell_complete=machines,
    help="Target: a name listed by `tecomp targets`, or the path of a TOML file.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("tecomp-demo.png"),
    show_default=True,
    help="File for the picture of the input and the feature maps.",
)
@click.option(
    "--timeline",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="File for the modelled timeline, a trace for Perfetto. Default: not written.",
)
@with_json
def demo(name: str, output: Path, timeline: Path | None, as_json: bool) -> None:
    """Filter a photograph, and compare the results with SciPy.

    On the host CPU, times are compared with NumPy and SciPy. For any other target, the program for
    its memories and cores runs on the host, and a report gives the modelled cost. The exit status
    is 0 only if the results agree.
    """
    for option, path in (("--output", output), ("--timeline", timeline)):
        if path is not None and not path.parent.is_dir():
            raise click.BadParameter(f"directory not found: {path.parent}", param_hint=option)
    messages: list[str] = []
    try:
        agree = demonstration.run(
            demonstration.DemoRun(tecomp.Target.load(name), output, timeline),
            messages.append if as_json else click.echo,
        )
    except ModuleNotFoundError as error:
        if error.name not in ("matplotlib", "scipy"):
            raise
        raise click.ClickException(
            f"demo: {error.name} is not installed; "
            "install the extra that provides it: pip install 'tecomp[demo]'"
        ) from error
    except TecompError as error:
        raise click.ClickException(f"demo: {error.message}") from error
    if as_json:
        result = {"target": name, "agree": bool(agree), "picture": str(output), "text": messages}
        click.echo(json.dumps(result, indent=2))
    if not agree:
        raise click.ClickException("demo: the compiled features differ from SciPy's")


_MAX_TIMEOUT_SECONDS = 1e6
"""Maximum timeout in seconds."""


def _not_nan(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    del context, option
    if value is not None and value != value:  # the range check accepts NaN
        raise click.BadParameter("must not be NaN.")
    return value


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-n", "n", type=click.IntRange(1, most_processes()),
    help="Number of processes; required for a script.")
@click.option(
    "--timeout", type=click.FloatRange(0, _MAX_TIMEOUT_SECONDS, min_open=True), callback=_not_nan,
    help="Seconds after which all processes are terminated. Default: no limit.",
)
@click.option(
    "--survive", is_flag=True,
    help="Keep the remaining processes running when a process fails (Open MPI only).",
)
@click.option(
    "--controller", is_flag=True,
    help="Run the script in one process; the others execute the calls that it sends.",
)
@click.option(
    "-m", "module", is_flag=True, help="SCRIPT is the name of a module, as for `python -m`.",
)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(
    context: click.Context, n: int | None, timeout: float | None, survive: bool, controller: bool,
    module: bool, script: str, arguments: tuple[str, ...],
) -> None:
    """Run SCRIPT on several processes; if one process fails, all are terminated.

    The processors are divided among the processes, unless TECOMP_NUM_THREADS or OMP_NUM_THREADS is
    set. The exit status is 0 only if all processes succeeded.

    If SCRIPT is a model, `model.onnx`, the model runs in this process. `tecomp run model.onnx
    --help` documents its options.
    """
    if script.endswith(".onnx") and not module:
        if n is not None or survive or controller or timeout is not None:
            raise click.UsageError("A model runs in one process; omit the options before its path.")
        run_model.main([script, *arguments], "tecomp run", standalone_mode=False)
        return
    if n is None:
        raise click.UsageError("Missing option '-n'.")
    if not module and not Path(script).is_file():
        raise click.BadParameter(f"File {script!r} does not exist.", param_hint="'SCRIPT'")
    try:
        status = launch_ranks(
            script, arguments, n, timeout, survive=survive, controller=controller, module=module)
    except (MissingLibraryError, TeamError) as error:
        raise click.ClickException(error.message) from error
    context.exit(status if 0 <= status < 256 else 1)


def _pair(text: str) -> tuple[str, Path]:
    name, separator, path = text.partition("=")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not NAME=FILE", param_hint="'--input'")
    return name, Path(path)


def _read_array(name: str, path: Path) -> Array:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise click.ClickException(f"run: the input {name} cannot be read: {error}") from error


def _onnx_module() -> Any:
    """Return `tecomp.onnx`, whose package onnx is optional."""
    try:
        import tecomp.onnx.model_report
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed; install the extra that provides it: "
            "pip install 'tecomp[onnx]'") from error
    return tecomp.onnx


def _file_names(names: Sequence[str]) -> dict[str, str]:
    """Return a file name without separators for each output."""
    found: dict[str, str] = {}
    for name in names:
        plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
        while plain in found.values():
            plain += "_"
        found[name] = plain
    return {name: f"{plain}.npy" for name, plain in found.items()}


@click.command("run")
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE",
    help="Array of an input, in the format of numpy.save; once per input.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the outputs, in the format of numpy.save. Default: not written.")
@click.option("--target", "name", default="cpu", show_default=True, shell_complete=machines,
    help="Target: a name listed by `tecomp targets`, or the path of a TOML file.")
@with_json
def run_model(
    model: Path, inputs: Sequence[str], output: Path | None, name: str, as_json: bool
) -> None:
    """Run the ONNX file MODEL in this process, and show its outputs.

    The exit status is 0 only if the model ran.
    """
    module = _onnx_module()
    feeds = {key: _read_array(key, path) for key, path in map(_pair, inputs)}
    try:
        results = module.load(model, tecomp.Target.load(name)).run(feeds)
    except TecompError as error:
        raise click.ClickException(error.message) from error
    files = _file_names([*results])
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    rows = []
    for key, value in results.items():
        if output is not None and isinstance(value, np.ndarray) and value.dtype != object:
            np.save(output / files[key], value, allow_pickle=False)
        is_array = isinstance(value, np.ndarray)
        rows.append({
            "output": key, "dtype": str(value.dtype) if is_array else type(value).__name__,
            "shape": [*value.shape] if is_array else [len(value)],
            "file": str(output / files[key]) if output is not None else "",
        })
    show(rows, as_json=as_json)


def _sizes_of(texts: Sequence[str]) -> dict[str, int]:
    """Parse values of symbolic sizes, `NAME=NUMBER`."""
    values = {}
    for text in texts:
        key, _, number = text.partition("=")
        if not key or not number.isdecimal():
            raise click.BadParameter(f"{text!r} is not NAME=NUMBER", param_hint="'--size'")
        values[key] = int(number)
    return values


def _fail(error: TecompError, source: str, *, as_json: bool) -> NoReturn:
    """End with the exit status 1, and print an error as text or as JSON."""
    if not as_json:
        raise click.ClickException(format_error(error, source)) from error
    record = {"code": error.code, "kind": error.kind, "message": error.message}
    click.echo(json.dumps({"error": record}, indent=2))
    raise click.exceptions.Exit(1) from error


def _subject_of(source: str, target: tecomp.Target) -> tuple[Any, Sequence[Any] | None]:
    """Return what is tuned, and the arguments of its kernel, if any."""
    if source.endswith(".onnx"):
        if not Path(source).is_file():
            raise click.BadParameter(f"file not found: {source}")
        return _onnx_module().load(Path(source), target), None
    value = load_value(source)
    if is_function(value) and isinstance(found := value(), tuple | list) and len(found) == 2:
        # Each call of a function may define new tensors, which belong to its schedule.
        return (value, None) if isinstance(found[0], te.Schedule) else (found[0], found[1])
    value = found if is_function(value) else value
    if hasattr(value, "compile_request") or hasattr(value, "programs"):
        return value, None
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[1], list | tuple):
        return value[0], value[1]
    raise click.BadParameter(
        f"{source} is {type(value).__name__}; expected a program, a pair of tensors and the list "
        "of arguments, or a function that returns a schedule and the list of arguments")


def _tuning_rows(database: TuningDatabase) -> list[dict[str, object]]:
    """Return a row for each record: what was tuned, by whom, and how much it gained."""
    rows: list[dict[str, object]] = []
    for record in database.records():
        trials = database.trials(record.key, record.machine)
        failed = sum(trial.outcome == "failed" for trial in trials)
        rows.append({
            "kernel": record.name, "processor": record.processor,
            "gain": round(record.first / record.cost, 3) if record.cost else 1.0,
            "cost": cost_text(record.cost, record.unit), "candidates": len(trials),
            "failed": failed, "choices": [f"{k}={v}" for k, v in record.choices.items()],
            "author": record.author,
        })
    return rows


def _positive(context: click.Context, option: click.Parameter, value: float) -> float:
    del context, option
    if value != value or value == float("inf"):  # the range check accepts them
        raise click.BadParameter("must be a finite number.")
    return value


@click.command()
@click.argument("source", required=False, metavar="[SCRIPT:NAME | MODEL.onnx | show]")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True,
    callback=_positive, help="Time of the search.")
@click.option("--trials", type=click.IntRange(1),
    help="Maximum number of candidates per kernel. Default: no limit.")
@click.option("--database", type=click.Path(dir_okay=False, path_type=Path),
    help="Tuning database. Default: TECOMP_TUNING, or a file of the user.")
@click.option("--target", "name", default="cpu", show_default=True, shell_complete=machines,
    help="Target: a name listed by `tecomp targets`, or the path of a TOML file.")
@click.option("--search", type=click.Choice(["evolution", "random"]), default="evolution",
    show_default=True, help="Search strategy.")
@click.option("--size", "sizes", multiple=True, metavar="NAME=NUMBER",
    help="Value of a symbolic size to measure with.")
@click.option("--merge", "merged", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Add the records of a file before anything else.")
@click.option("--export", "exported", type=click.Path(dir_okay=False, path_type=Path),
    help="Write all records to a JSON file at the end.")
@with_json
def tune(
    source: str | None, seconds: float, trials: int | None, database: Path | None, name: str,
    search: Literal["evolution", "random"], sizes: Sequence[str], merged: Path | None,
    exported: Path | None, as_json: bool,
) -> None:
    """Search for faster schedules, and record them for later builds.

    NAME in SCRIPT is a program of tecomp.compile; a pair as for tecomp.build, of tensors and the
    list of arguments; or a function that returns a schedule with knobs, and the list of arguments.
    `tecomp tune show` lists the records. Ctrl-C ends the search and keeps what was found; the same
    command resumes.
    """
    if source is None and merged is None and exported is None:
        raise click.UsageError("Missing argument 'SOURCE'; or pass show, --merge or --export.")
    known = _sizes_of(sizes)
    path = database or database_path()
    if path is None:
        raise click.UsageError("The tuning database is off; set TECOMP_TUNING, or pass --database.")
    output: dict[str, Any] = {"database": str(path)}
    try:
        if merged is not None:
            with TuningDatabase(path, create=True) as records:
                output["merged"] = records.merge(merged)
        if source not in (None, "show"):
            target = tecomp.Target.load(name)
            subject, args = _subject_of(str(source), target)
            result = tecomp.tune(
                subject, args, target, seconds, trials, path, search=search, sizes=known)
            output |= {"text": str(result), **result.to_dict()}
        if exported is not None or source == "show":
            output |= _contents(path, exported, is_shown=source == "show")
    except TecompError as error:
        _fail(error, source or "", as_json=as_json)
    _show_tuning(output, as_json=as_json)


def _contents(path: Path, exported: Path | None, *, is_shown: bool) -> dict[str, Any]:
    """Export the records of a database, and return them for `tecomp tune show`."""
    found: dict[str, Any] = {}
    with TuningDatabase(path, create=not path.exists()) as records:
        if exported is not None:
            found["exported"] = records.export(exported)
        if is_shown:
            found["records"] = _tuning_rows(records)
    return found


def _show_tuning(output: dict[str, Any], *, as_json: bool) -> None:
    text = output.pop("text", "")
    if as_json:
        click.echo(json.dumps(output, indent=2))
        return
    if "merged" in output:
        click.echo(f"{output['merged']} records are new or better")
    if text:
        click.echo(text)
    if "exported" in output:
        click.echo(f"{output['exported']} records are exported")
    show(output.get("records", ()))


@click.group()
def onnx() -> None:
    """Inspect ONNX models."""


@onnx.command("check")
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", "names", multiple=True, default=["cpu"], show_default=True,
    shell_complete=machines, help="Target; may be repeated.")
@click.option("--size", "sizes", multiple=True, metavar="NAME=NUMBER",
    help="Value of a symbolic dimension for the cost. Default: 1.")
@click.option("--measured", is_flag=True, help="Measure the kernels on this machine.")
@with_json
@click.pass_context
def check_model(
    context: click.Context, model: Path, names: Sequence[str], sizes: Sequence[str],
    measured: bool, as_json: bool,
) -> None:
    """List the nodes of MODEL that a target lacks, its cost, and where the time goes.

    The exit status is 0 only if all targets run the model.
    """
    module = _onnx_module()
    values = _sizes_of(sizes)
    try:
        reports = [
            module.check(model, tecomp.Target.load(name), sizes=values, measured=measured)
            for name in names]
    except TecompError as error:
        raise click.ClickException(error.message) from error
    if as_json:
        click.echo(json.dumps([report.to_dict() for report in reports], indent=2))
    else:
        click.echo("\n\n".join(map(str, reports)))
    context.exit(0 if all(report.is_supported for report in reports) else 1)
