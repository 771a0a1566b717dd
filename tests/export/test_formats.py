"""Exported files: headers, symbols, archives, LLVM IR, assembly, and code for AArch64."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel
from tecomp.export import archive_content, elf_symbols

Run = Callable[..., str]
ARM = "aarch64-linux-gnu"
X = te.placeholder((100, 100), name="X")
LIBC = """\
    clock_gettime free getenv madvise memset posix_memalign pthread_atfork pthread_cond_init
    pthread_cond_signal pthread_cond_wait pthread_create pthread_detach pthread_mutex_init
    pthread_mutex_lock pthread_mutex_unlock pthread_sigmask sched_getaffinity sched_getcpu
    sched_setaffinity sched_yield strtol syscall sysconf"""


def parallel(name: str = "lines") -> ScheduledKernel:
    Y = te.compute(X.shape, lambda i, j: te.exp(X[i, j]), name="Y")
    s = te.create_schedule(Y)
    s[Y].parallel(Y.op.axis[0])
    s[Y].vectorize(s[Y].split(Y.op.axis[1], 4)[1])
    return tecomp.build(s, [X, Y], name=name)


def serial(name: str = "plain") -> ScheduledKernel:
    Y = te.compute(X.shape, lambda i, j: X[i, j] + 1.0, name="Y")
    return tecomp.build(te.create_schedule(Y), [X, Y], name=name)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("cpu", [None, "x86-64-v2", ["x86-64-v2", "x86-64-v3", "x86-64-v4"]])
def test_objects_refer_to_the_c_library_only(cpu: str | list[str] | None, tmp_path: Path) -> None:
    path = tmp_path / "lines.o"
    parallel().export(path, cpu=cpu)
    symbols = elf_symbols(path.read_bytes())

    assert {*symbols.undefined} - {"_GLOBAL_OFFSET_TABLE_"} <= {*LIBC.split()}
    own = {name for name in symbols.defined if not name.startswith(("tecomp.", "lines."))}
    assert own == {"lines", "lines_error_text", "lines_set_threads", "lines_threads"}


def test_serial_kernels_without_memory_refer_to_nothing(tmp_path: Path) -> None:
    path = tmp_path / "plain.o"
    serial().export(path)
    symbols = elf_symbols(path.read_bytes())

    assert symbols.undefined == ()
    assert [*symbols.defined] == ["plain", "plain_error_text"]


def test_symbols_agree_with_nm(tmp_path: Path) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    for path in (tmp_path / "lines.o", tmp_path / "lines.a"):
        parallel().export(path)
        listed = [
            line.split() for line in subprocess.run(
                [nm, "-g", str(path)], check=True, capture_output=True, text=True,
            ).stdout.splitlines() if len(line.split()) > 1
        ]
        symbols = elf_symbols((tmp_path / "lines.o").read_bytes())
        assert {words[-1] for words in listed if words[-2] == "U"} == {*symbols.undefined}
        assert {words[-1] for words in listed if words[-2] != "U"} == {*symbols.defined}


def test_archives_have_a_symbol_index() -> None:
    content = archive_content("x.o", b"abc")

    assert content[:8] == b"!<arch>\n"
    assert content[8:24].rstrip() == b"/"
    assert struct.unpack_from(">I", content, 68) == (0,)
    assert content[72:88].rstrip() == b"x.o/"
    assert content[132:] == b"abc\n"


def test_headers_describe_the_arguments(tmp_path: Path) -> None:
    n = te.size_var("n", maximum=64, multiple=4)
    alpha = te.var("alpha", "float64")
    P = te.placeholder((n, 6), "bfloat16", name="int")
    Q = te.compute((n, 6), lambda i, j: P[i, j].astype("float64") * alpha > 1.0, name="Q.b")
    s = te.create_schedule(Q)
    s[Q].transform_layout(lambda i, j: [j // 4, i, j % 4])
    path = tmp_path / "mixed.h"
    tecomp.build(s, [P, alpha, Q], name="mixed").export(path, cpu="x86-64-v3")
    text = path.read_text(encoding="ascii")

    assert text.startswith("/* mixed: compiled by tecomp. Do not edit.\n")
    assert "int mixed(const uint16_t *int_, double alpha, uint8_t *Q_b, int64_t n);\n" in text
    assert "   int_: bfloat16[n, 6], read, row-major without gaps, aligned to 2 bytes\n" in text
    assert "   Q_b: bool[2, n, 4], written, row-major without gaps, layout" in text
    assert "   n: int64, <= 64 and a multiple of 4\n" in text
    assert "   CPU: x86-64-v3\n" in text


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("word", ["cc", "c++"])
def test_headers_are_c_and_cpp(word: str, run_c: Run, tmp_path: Path) -> None:
    for kernel in (serial(), parallel()):
        kernel.export(tmp_path / f"{kernel.name}.h")
        kernel.export(tmp_path / f"{kernel.name}.o")
    source = '#include "plain.h"\n#include "lines.h"\n#include "plain.h"\nint main(void) { return 0; }\n'

    assert run_c(source, tmp_path / "plain.o", tmp_path / "lines.o", word=word) == ""


def test_assembly_assembles_and_runs(run_c: Run, tmp_path: Path) -> None:
    kernel = serial()
    kernel.export(tmp_path / "plain.h")
    kernel.export(tmp_path / "plain.s")
    kernel.export(tmp_path / "plain.ll")
    source = """
#include "plain.h"
static float x[10000], y[10000];
int main(void) { x[9999] = 2; return plain(x, y) || y[9999] != 3 || y[0] != 1; }
"""

    assert run_c(source, tmp_path / "plain.s") == ""
    text = (tmp_path / "plain.ll").read_text(encoding="utf-8")
    assert re.search(r"^define .*@plain\(ptr ", text, re.MULTILINE)
    assert 'target triple = "' in text


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("cpu", [None, "cortex-a76", "neoverse-v1"])
def test_code_for_aarch64(cpu: str | None, tmp_path: Path) -> None:
    for suffix in (".s", ".ll", ".o", ".a", ".h"):
        parallel().export(tmp_path / f"lines{suffix}", cpu=cpu, triple=ARM)
    text = (tmp_path / "lines.s").read_text(encoding="utf-8")
    head = (tmp_path / "lines.h").read_text(encoding="utf-8")
    image = (tmp_path / "lines.o").read_bytes()

    assert re.search(r"fmla\s+v\d+\.4s", text)
    assert re.search(r"^lines:", text, re.MULTILINE)
    assert f"Triple: {ARM}\n   CPU: {cpu or 'generic'}\n" in head
    assert image[18:20] == b"\xb7\0"  # EM_AARCH64
    assert {*elf_symbols(image).undefined} <= {*LIBC.split()}


def instructions(text: str) -> dict[str, list[str]]:
    """Return the instructions of each function, without numbers of labels."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        code = line.split("#")[0].rstrip()
        if label := re.match(r"([A-Za-z][\w.]*):", code):
            name = label[1]
        elif re.match(r"\s+[a-z]", code) and name:
            found.setdefault(name, []).append(re.sub(r"\.L(BB|CPI)\d+_", r".L\1_", code))
        elif code.startswith(".Lfunc_end"):
            name = ""
    return found


def test_exported_code_equals_the_code_that_python_calls(tmp_path: Path) -> None:
    A, B = (te.placeholder((256, 256), name=name) for name in "AB")
    k = te.reduce_axis((0, 256), name="k")
    C = te.compute((256, 256), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    kernels = [tecomp.build(C, [A, B, C], name="gemm"), parallel(), serial()]
    for kernel in kernels:
        path = tmp_path / f"{kernel.name}.s"
        kernel.export(path)
        called, exported = instructions(kernel.source("asm")), instructions(path.read_text())
        bodies = [name for name in called if name.endswith(".body")]

        assert bodies != []
        assert {name: exported[name] for name in bodies} == {name: called[name] for name in bodies}


def test_levels_are_variants_in_one_object(tmp_path: Path) -> None:
    path = tmp_path / "lines.s"
    parallel().export(path, cpu=["x86-64-v2", "x86-64-v4"])
    text = path.read_text(encoding="utf-8")
    parts = dict(re.findall(r"^(lines\.parallel\.1\.body\.\d):(.*?)^\.Lfunc_end", text, re.M | re.S))

    assert "cpuid" in text
    assert "%xmm16" in parts["lines.parallel.1.body.0"] or "vfmadd" in parts["lines.parallel.1.body.0"]
    assert "vfmadd" not in parts["lines.parallel.1.body.1"]


def test_import_of_tecomp_loads_no_export() -> None:
    code = "import sys, tecomp; tecomp.build; print([m for m in sys.modules if 'export' in m])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout == "[]\n"


def test_zig_links_libraries_for_other_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setenv("PATH", str(tmp_path))
    for triple, machine in ((ARM, b"\xb7\0"), ("x86_64-unknown-linux-gnu", b"\x3e\0")):
        path = tmp_path / f"lines-{triple}.so"
        parallel().export(path, triple=triple)
        assert path.read_bytes()[18:20] == machine
        assert path.stat().st_mode & 0o111
