"""Output and exit status of the command `tecomp`."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from click import Option
from click.testing import CliRunner

import tecomp
from tecomp import cli, demo
from tecomp.caches import CACHE_LIMITS
from tecomp.codegen import Store
from tecomp.demo import filters, main
from tests.strategies.machines import ACCELERATORS


def test_version() -> None:
    done = CliRunner().invoke(cli.main, ["--version"], prog_name="tecomp")

    assert (done.exit_code, done.output) == (0, f"tecomp {version('tecomp')}\n")


def test_targets_are_listed_with_their_memories() -> None:
    done = CliRunner().invoke(cli.main, ["targets"])
    listed = dict(line.split(maxsplit=1) for line in done.output.splitlines())

    assert done.exit_code == 0
    assert list(listed) == list(tecomp.list_targets())
    assert listed["cpu"].startswith("global (rank 1), global.texture (rank 2)")


COMMANDS = sorted(cli.main.commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_describes_itself_and_its_options(command: str) -> None:
    done = CliRunner().invoke(cli.main, [command, "--help"], prog_name="tecomp")
    options = [item for item in cli.main.commands[command].params if isinstance(item, Option)]

    assert done.exit_code == 0
    assert f"Usage: tecomp {command}" in done.output
    assert [item.name for item in options if not item.help] == []
    assert all(item.opts[-1] in done.output for item in options)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_refuses_an_unknown_option(command: str) -> None:
    done = CliRunner().invoke(cli.main, [command, "--no-such-option"], prog_name="tecomp")

    assert done.exit_code == 2
    assert "--no-such-option" in done.output


def test_each_command_has_a_test() -> None:
    """A test passes the command to `CliRunner`, to a process, or to a helper of a test file."""
    texts = (path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    invoked = {
        node.value
        for text in texts if "CliRunner" in text or '"tecomp"' in text or "tecomp.cli" in text
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        for argument in call.args
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant)
    }

    assert [command for command in COMMANDS if command not in invoked] == []


def cache(*words: str, **variables: str) -> tuple[int, str]:
    """Return exit status and output of `tecomp cache` with the given environment variables."""
    names = ("TECOMP_CACHE", "TECOMP_CACHE_DIR", "TECOMP_CACHE_SIZE")
    env = {name: variables.get(name) for name in names}
    done = CliRunner().invoke(cli.main, ["cache", *words], env=env)
    return done.exit_code, done.output


def test_the_cache_is_shown_and_cleared(tmp_path: Path) -> None:
    folder = tmp_path / "compiled"
    there = {"TECOMP_CACHE_DIR": str(tmp_path), "TECOMP_CACHE_SIZE": "2"}
    shown = "folder   {}\nentries  {}\nbytes    {} of 2000000\n"

    def folder_of(done: tuple[int, str]) -> tuple[int, str]:
        return done[0], done[1].partition("\n\n")[0] + "\n"

    assert folder_of(cache(**there)) == (0, shown.format(folder, 0, 0))
    Store(folder, 1000).put("a", b"code")
    assert folder_of(cache(**there)) == (0, shown.format(folder, 1, 45))
    assert cache("clear", **there) == (0, "removed 1 entries, 45 bytes\n")
    assert folder_of(cache(**there)) == (0, shown.format(folder, 0, 0))


def test_limits_of_caches_in_memory_are_listed(tmp_path: Path) -> None:
    _, text = cache(TECOMP_CACHE_DIR=str(tmp_path))
    _, record = cache("--json", TECOMP_CACHE_DIR=str(tmp_path))
    rows = text.partition("\n\n")[2].splitlines()[1:]

    assert [row.split()[0] for row in rows] == sorted(CACHE_LIMITS)
    assert {row["cache"]: row["limit"] for row in json.loads(record)["memory"]} == {
        name: limit.limit for name, limit in CACHE_LIMITS.items()
    }


def test_a_cache_that_is_off_or_misspelt() -> None:
    assert cache(TECOMP_CACHE="off") == (
        1, "Error: cache: the cache is disabled; unset TECOMP_CACHE to enable it\n",
    )  # fmt: skip
    assert cache("clear", TECOMP_CACHE="no") == (
        1, "Error: TECOMP_CACHE: expected on or off, got 'no'; unset it for the default, on\n",
    )  # fmt: skip


@pytest.mark.parametrize("library", ["matplotlib", "scipy"])
def test_demo_names_the_extra(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    done = CliRunner().invoke(cli.main, ["demo"])

    assert done.exit_code == 1
    assert done.output == (
        f"Error: demo: {library} is not installed; "
        "install the extra that provides it: pip install 'tecomp[demo]'\n"
    )


@pytest.mark.parametrize("option", ["--output", "--timeline"])
def test_demo_refuses_a_folder_that_is_not_there(option: str, tmp_path: Path) -> None:
    output = tmp_path / "nowhere" / "demo.png"
    done = CliRunner().invoke(cli.main, ["demo", option, str(output)])

    assert done.exit_code == 2
    assert done.output.splitlines()[-1] == (
        f"Error: Invalid value for {option}: directory not found: {output.parent}"
    )


@pytest.mark.parametrize(("name", "hint"), [
    ("nosuch", ""), ("tensix_wf", "did you mean `tensix_wh`? "),
])
def test_demo_knows_no_such_target(name: str, hint: str) -> None:
    done = CliRunner().invoke(cli.main, ["demo", "--target", name])

    assert done.exit_code == 1
    assert done.output == (
        f"Error: demo: unknown target `{name}`; {hint}installed targets: "
        f"{', '.join(tecomp.list_targets())}; or pass the path of a TOML file\n"
    )


def test_demo_on_a_machine_that_is_too_small(tmp_path: Path) -> None:
    text = (Path(tecomp.__file__).parents[1] / "targets" / "stick128.toml").read_text("utf-8")
    small = tmp_path / "small.toml"
    small.write_text(
        text.replace("capacity_bytes = 2_097_152", "capacity_bytes = 73_728"), "utf-8"
    )
    output = tmp_path / "demo.png"
    done = CliRunner().invoke(
        cli.main, ["demo", "--target", str(small), "--output", str(output)])

    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == (
        "Error: demo: filters: a part of 1 pixels requires 11904 bytes of memory `lx`, but a core "
        "of target stick128 has 8192; use a target with larger scratchpads"
    )


def test_demo_fails_when_the_numbers_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "run", lambda job, show: False)
    done = CliRunner().invoke(cli.main, ["demo", "--output", str(tmp_path / "demo.png")])

    assert done.exit_code == 1
    assert done.output == "Error: demo: the compiled features differ from SciPy's\n"


TITLES = ("input", "schedule", "lowered function", "shapes", "compile", "run", "check")


@pytest.mark.exhaustive
def test_demo_runs_and_writes_its_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def best_of_one(work: Callable[[], object], repeats: int) -> float:
        del repeats
        work()
        return 1.0

    # The NumPy and SciPy baselines take seconds per run.
    monkeypatch.setattr(main, "_best", best_of_one)
    output = tmp_path / "demo.png"
    done = CliRunner().invoke(cli.main, ["demo", "--output", str(output)])

    assert done.exit_code == 0, done.output
    assert "the results agree" in done.output
    assert output.read_bytes().startswith(b"\x89PNG\r\n")
    for title in TITLES:
        assert f"\n--- {title} --" in done.output


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", ACCELERATORS)
def test_demo_runs_on_machines(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the demo on a part of the photograph; `tests/test_demo.py` covers the whole one.

    The picture of the features is stubbed, as it takes as long as everything else.
    """
    part = np.ascontiguousarray(filters.photograph()[:, 100:237, 200:361])
    drawn: list[object] = []
    monkeypatch.setattr(main, "photograph", lambda: part)
    monkeypatch.setattr(
        main, "picture",
        lambda image, features, names, output: drawn.extend((image.shape, features.shape, output)))
    output, timeline = tmp_path / "demo.png", tmp_path / "timeline.json"
    done = CliRunner().invoke(cli.main, [
        "demo", "--target", target, "--output", str(output), "--timeline", str(timeline),
    ])

    assert done.exit_code == 0, done.output
    assert "the results agree" in done.output
    assert f"\nfilters on {target}: " in done.output
    assert drawn == [(1, 137, 161, 3), (1, 137, 161, 32), output]
    for title in (*TITLES, "report"):
        assert f"\n--- {title} --" in done.output
    events = json.loads(timeline.read_text("utf-8"))["traceEvents"]
    assert {event["name"] for event in events} >= {"process_name", "response"}
