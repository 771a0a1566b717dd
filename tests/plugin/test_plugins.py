"""Target plug-ins: installed, broken and new packages, and two packages with one target name."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from click.testing import CliRunner

import tecomp
from tecomp import cli, te
from tecomp.demo import filters
from tecomp.demo import main as demo_main
from tecomp.errors import TargetError
from tecomp.machine import broken_plugins
from tecomp.plugin.skeleton import _TARGET as DESCRIPTION
from tests.messages import Diagnostic, diagnostic
from tests.strategies.te_programs import draw_program

ACME = Path(__file__).parents[1] / "plugins" / "acme"
TOML = (ACME / "acme_target" / "acme.toml").read_text(encoding="utf-8")
BUILD = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"


def install(project: Path, site: Path) -> None:
    """Build a wheel of the package without network access and unpack it into `site`."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    zipfile.ZipFile(project / done.stdout.splitlines()[-1]).extractall(site)


def offer(
    site: Path, owner: str, code: str, entry: str = "acme", group: str = "tecomp.targets"
) -> None:
    """Write an installed distribution of one module; its function `paths` is the entry point."""
    module = owner.replace("-", "_")
    info = site / f"{module}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {owner}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry} = {module}:paths\n")
    (site / f"{module}.py").write_text(code)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder on the module search path."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def acme(tmp_path: Path, site: Path) -> Path:
    """Install the ACME package and return its folder."""
    shutil.copytree(ACME, tmp_path / "acme", ignore=shutil.ignore_patterns("__pycache__"))
    install(tmp_path / "acme", site)
    return site


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.main, words)
    return done.exit_code, done.output


@pytest.mark.usefixtures("acme")
def test_installed_plugins_are_targets() -> None:
    assert "acme" in tecomp.list_targets()
    target = tecomp.Target.load("acme")
    assert (target.cores, target.memory("cube").rank, target.stick_bytes) == (12, 3, 32)
    status, output = run("targets")
    assert status == 0
    assert "acme           global (rank 1), cube (rank 3), local (rank 1)\n" in output


@pytest.mark.usefixtures("acme")
def test_an_installed_plugin_passes() -> None:
    status, output = run("check-target", "acme")

    assert status == 0
    lines = output.splitlines()
    assert lines[0].startswith("ok      description loads in less than 10 ms: ")
    assert lines[1:] == [
        "ok      name matches the file name: acme.toml",
        "ok      description can be overridden: 1 rules, 1 units, 1 links",
        "ok      kernel stores a tensor in `global`: 1 physical axis",
        "ok      capacity is enforced for `global`: no capacity specified",
        "ok      kernel stores a tensor in `cube`: 3 physical axes",
        "ok      capacity is enforced for `cube`: 258048 bytes",
        "ok      kernel stores a tensor in `local`: 1 physical axis",
        "ok      capacity is enforced for `local`: 8192 bytes",
        "ok      loop binds to grid axis `core.plane`: 2 cores",
        "ok      loop binds to grid axis `core.row`: 3 cores",
        "ok      loop binds to grid axis `core.column`: 2 cores",
        "ok      loops bind to all grid axes: 12 cores",
        "ok      automatic schedule uses the cores: 12 of 12 cores, in `local`",
        "ok      storage formats are known: bfp8, float32, int16, int8",
        "ok      operands of the units fit: mac",
        "ok      intrinsics match their definitions: mac",
    ]


@pytest.mark.usefixtures("acme")
def test_an_operation_of_a_plugin() -> None:
    mac = tecomp.intrinsics("acme")["mac"]
    A, B = te.placeholder((8, 8), "int16", name="A"), te.placeholder((8, 32), "int16", name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((8, 32), lambda i, j: te.sum(
        A[i, k].astype("int32") * B[k, j].astype("int32"), axis=k
    ), name="C")  # fmt: skip
    s = te.create_schedule(C.op)
    (i, j), (r,) = C.op.axis, C.op.reduce_axis
    io, jo, ii, ji = s[C].tile(i, j, *mac.op.output(0).shape)
    ro, ri = s[C].split(r, factor=4)
    s[C].reorder(io, jo, ro, ii, ji, ri)
    s[C].bind(io, te.thread_axis("core.plane"))
    s[C].tensorize(ii, mac)
    kernel = tecomp.build(s, [A, B, C], target="acme")
    a, b = (np.random.default_rng(1).integers(-99, 99, shape, "int16") for shape in ((8, 8), (8, 32)))
    c = np.zeros((8, 32), "int32")
    kernel(a, b, c)

    np.testing.assert_array_equal(c, a.astype("int32") @ b.astype("int32"))


@pytest.mark.parametrize(
    ("code", "subject"),
    [
        ("import sys\ndef paths(target):\n    sys.exit(3)\n",
         {"type": "SystemExit", "reason": "3"}),
        ("import no_such_module\n",
         {"type": "ModuleNotFoundError", "reason": "No module named 'no_such_module'"}),
        ("def paths(target):\n    return [1]\n", {"value": 1}),
    ],
    ids=["exit", "import", "number"],
)
def test_operations_that_cannot_be_used(code: str, subject: dict[str, Any], site: Path) -> None:
    owner = f"operations-{crc32(code.encode())}"
    offer(site, owner, code, "vtcm2d", "tecomp.intrinsics")

    assert "alu_add_float32" in tecomp.intrinsics("texture2d")
    with pytest.raises(TargetError) as error:
        tecomp.intrinsics("vtcm2d")
    where = f"operations of target vtcm2d: plug-in `vtcm2d` of `{owner}`"
    assert diagnostic(error.value) == Diagnostic("plugin", where=where, **subject)


def test_two_operations_with_one_name(site: Path) -> None:
    code = (
        "from tecomp import te\n"
        "def paths(target):\n"
        "    a = te.placeholder((4,), name='a')\n"
        "    b = te.compute((4,), lambda i: a[i] + 1.0, name='b')\n"
        "    run = lambda ins, outs: te.for_range(\n"
        "        0, 4, lambda i: outs[0].store(i, ins[0][i] + WHAT))\n"
        "    return [te.decl_tensor_intrin(b.op, run, name='inc', check='later')]\n"
    )
    offer(site, "inc-one", code.replace("WHAT", "2.0"), "vtcm2d", "tecomp.intrinsics")
    failed = [c.detail for c in tecomp.check_target("vtcm2d") if not c.passed]

    assert failed == ["`inc` gives 2.0 at [0], but its definition gives 1.0"]
    offer(site, "inc-two", code.replace("WHAT", "1.0"), "vtcm2d", "tecomp.intrinsics")
    with pytest.raises(TargetError) as error:
        tecomp.intrinsics("vtcm2d")
    assert diagnostic(error.value) == (
        Diagnostic("plugin", intrin="inc", machine="vtcm2d", both="`inc-one` and by `inc-two`")
    )


def test_operations_that_take_a_number_are_checked(site: Path) -> None:
    offer(site, "plus", (
        "from tecomp import te\n"
        "def paths(target):\n"
        "    a, n = te.placeholder((4,), name='a'), te.var('n', 'float32')\n"
        "    b = te.compute((4,), lambda i: a[i] + n, name='b')\n"
        "    run = lambda ins, outs, numbers: te.for_range(\n"
        "        0, 4, lambda i: outs[0].store(i, ins[0][i] - numbers[0]))\n"
        "    return [te.decl_tensor_intrin(b.op, run, name='plus', scalar_params=[n], check='later')]\n"
    ), "vtcm2d", "tecomp.intrinsics")

    failed = [c.detail for c in tecomp.check_target("vtcm2d") if not c.passed]

    assert failed == ["`plus` gives -2.0 at [0], but its definition gives 2.0"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", tecomp.list_targets())
def test_shipped_targets_pass(name: str) -> None:
    assert [check for check in tecomp.check_target(name) if not check.passed] == []


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("old", "new", "title", "detail"),
    [
        ('name = "acme"', 'name = "emca"', "name matches the file name",
         "`name` is `emca`, the file acme.toml; rename one of them"),
        ('["float32", "bfp8"]', '["float23"]', "storage formats are known",
         "storage: unknown format `float23`; available formats: "),
        ("m = 4\n", "m = 4096\n", "operands of the units fit",
         "a tile operation of `mac` has 295040 bytes of operands, memory `local` 8192; make the "
         "tile smaller"),
        ("[memory.global]", "[memory.main]", "loops bind to all grid axes",
         "A: target acme has no memory `global`; did you mean `local`? its memories are main, cube, "
         "local"),
    ],
    ids=["name", "format", "engine", "global"],
)  # fmt: skip
def test_failing_conformance_checks(
    old: str, new: str, title: str, detail: str, tmp_path: Path
) -> None:
    text = TOML.replace(old, new).replace('from = "global"', 'from = "cube"')
    (tmp_path / "acme.toml").write_text(text)

    failed = {c.title: c.detail for c in tecomp.check_target(tmp_path / "acme.toml") if not c.passed}

    assert failed[title].startswith(detail)
    status, output = run("check-target", str(tmp_path / "acme.toml"))
    assert status == 1
    assert f"FAILED  {title}: {detail}" in output
    assert output.endswith(f"acme.toml failed {len(failed)} of 17 checks\n")


def test_checking_a_missing_target() -> None:
    known = ", ".join(tecomp.list_targets())

    assert run("check-target", "acmee") == (
        1, f"Error: unknown target `acmee`; installed targets: {known}; or pass the path of a "
        "TOML file\n",
    )  # fmt: skip


def test_two_plugins_with_one_name(site: Path, tmp_path: Path) -> None:
    for owner in ("acme-one", "acme-two"):
        folder = tmp_path / owner
        folder.mkdir()
        (folder / "acme.toml").write_text(TOML)
        offer(site, owner, f"def paths():\n    return [{str(folder / 'acme.toml')!r}]\n")

    message = (
        "target `acme` is provided by `acme-one` and by `acme-two`; uninstall one of them, or pass "
        "the path of the TOML file"
    )
    with pytest.raises(TargetError) as error:
        tecomp.Target.load("acme")
    assert diagnostic(error.value) == (
        Diagnostic("plugin", name="acme", owners="`acme-one` and by `acme-two`")
    )
    assert tecomp.Target.load("cpu").name == "cpu"
    assert f"acme           {message}\n" in run("targets")[1]
    assert run("check-target", "acme") == (1, f"Error: {message}\n")


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def paths():\n    raise RuntimeError('no licence')\n", "RuntimeError: no licence"),
        ("def paths():\n    return 'acme.toml'\n",
         "TypeError: expected a list of paths, got 'acme.toml'"),
        ("def paths():\n    return ['acme.json']\n",
         "TypeError: expected paths of TOML files, got 'acme.json'"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("import sys\ndef paths():\n    sys.exit('bye')\n", "SystemExit: bye"),
        ("paths = 1\n", "TypeError: 'int' object is not callable"),
    ],
    ids=["import", "raises", "text", "no-toml", "exit", "call-exit", "no-function"],
)
def test_a_plugin_that_cannot_be_loaded(code: str, failure: str, site: Path) -> None:
    shipped = tecomp.list_targets()
    # Each case needs its own module name, because Python caches modules.
    owner = f"acme-{crc32(code.encode())}"
    offer(site, owner, code)
    complaint = f"plug-in `acme` of `{owner}` cannot be loaded ({failure})"

    assert tecomp.list_targets() == shipped
    assert tecomp.Target.load("stick128").cores == 32
    assert broken_plugins() == (complaint,)
    assert run("targets")[1].endswith(f"{complaint}\n")
    with pytest.raises(TargetError) as error:
        tecomp.Target.load("acme")
    assert diagnostic(error.value) == (
        Diagnostic("plugin", name="acme", problem=complaint)
    )
    with pytest.raises(TargetError) as error:
        tecomp.Target.load("roadrunner")
    assert diagnostic(error.value) == Diagnostic(
        "unknown-target", name="roadrunner", hint="", known=", ".join(shipped),
        others=f"; {complaint}",
    )


def test_a_new_target_is_a_package_that_passes(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run("new-target", "quux") == (0, (
        "quux/pyproject.toml\nquux/README.md\nquux/quux_target/__init__.py\n"
        "quux/quux_target/quux.toml\nquux/tests/test_quux.py\n"
        "next: pip install -e quux && tecomp check-target quux\n"
    ))  # fmt: skip
    install(tmp_path / "quux", site)
    status, output = run("check-target", "quux")

    assert status == 0, output
    assert "ok      kernel stores a tensor in `scratch`: 1 physical axis\n" in output
    assert ("ok      automatic schedule uses the cores: 4 of 4 cores, in `scratch`\n"
            in output)
    namespace: dict[str, object] = {}
    exec((tmp_path / "quux" / "tests" / "test_quux.py").read_text(), namespace)
    test = namespace["test_conformance"]
    assert callable(test)
    test()


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tecomp.Target:
    """Return the target that `tecomp new-target` writes."""
    monkeypatch.chdir(tmp_path)
    assert run("new-target", "quux")[0] == 0
    return tecomp.Target.load(tmp_path / "quux" / "quux_target" / "quux.toml")


@pytest.mark.exhaustive
def test_a_new_target_runs_the_demo(
    written: tecomp.Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("scipy")
    corner = filters.photograph()[:, 100:137, 200:261]
    monkeypatch.setattr(demo_main, "photograph", lambda: np.ascontiguousarray(corner))
    shown: list[str] = []

    assert demo_main.run(demo_main.DemoRun(written, tmp_path / "demo.png"), shown.append)
    assert any(line.endswith("the results agree") for line in shown)
    assert any("4 of 4 cores" in line for line in shown)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(24))
def test_random_programs_on_a_new_target(seed: int, written: tecomp.Target) -> None:
    drawn = draw_program(seed)
    output, expected = drawn.values[-1]
    inputs, source = drawn.needed([output])

    program = tecomp.compile(output, inputs, written)

    np.testing.assert_allclose(program(*source), expected, rtol=2e-3, atol=2e-4)


def test_a_machine_with_idle_cores_does_not_pass(written: tecomp.Target) -> None:
    text = DESCRIPTION.replace("NAME", "quux").replace('from = "global"', 'from = "scratch"')
    path = Path("quux.toml")
    path.write_text(text.replace('memory = "scratch"', 'memory = "global"'))

    failed = {c.title: c.detail for c in tecomp.check_target(path) if not c.passed}

    assert failed == {
        "automatic schedule uses the cores":
            "1 of 4 cores, in no scratchpad; describe a memory with `capacity_bytes`, and a [link] to "
            "it from the memory of whole tensors",
    }


def test_a_new_target_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    actual = tmp_path / "quux" / "README.md"
    actual.parent.mkdir()
    actual.write_text("mine")

    assert run("new-target", "quux") == (
        1, f"Error: new-target: {actual.parent} already exists; remove it, or use another name\n",
    )  # fmt: skip
    assert (actual.read_text(), list(actual.parent.iterdir())) == ("mine", [actual])


@pytest.mark.parametrize("name", ["Quux", "2quux", "quux-two", "../quux"])
def test_a_new_target_with_a_name_of_no_package(name: str) -> None:
    assert run("new-target", name) == (
        1, f"Error: new-target: `{name}` is not a valid package name; use "
        "lower-case letters, digits and _, beginning with a letter\n",
    )  # fmt: skip


def test_an_existing_target_is_not_overwritten() -> None:
    assert run("new-target", "cpu") == (
        1, "Error: new-target: target `cpu` is already installed; use another name\n"
    )


def test_a_new_target_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "mkdir", lambda *args, **kwargs: _refuse())

    assert run("new-target", "quux") == (
        1, f"Error: new-target: {tmp_path / 'quux'} cannot be written (no room)\n"
    )


def _refuse() -> None:
    raise OSError("no room")
