"""C and C++ programs that call exported kernels."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel

Run = Callable[..., str]
N = 96


def product(name: str = "gemm") -> ScheduledKernel:
    A, B = (te.placeholder((N, N), name=tensor) for tensor in "AB")
    k = te.reduce_axis((0, N), name="k")
    C = te.compute((N, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return tecomp.build(C, [A, B, C], name=name)


def rows(name: str = "scaled") -> ScheduledKernel:
    n = te.var("n")
    X = te.placeholder((n, 7), name="X")
    Y = te.compute((n, 7), lambda i, j: X[i, j] * 3.0, name="Y")
    s = te.create_schedule(Y)
    s[Y].parallel(Y.op.axis[0])
    return tecomp.build(s, [X, Y], name=name)


def export(kernel: ScheduledKernel, folder: Path, suffix: str) -> Path:
    path = folder / f"{kernel.name}{suffix}"
    kernel.export(path)
    kernel.export(path.with_suffix(".h"))
    return path


PRODUCT = f"""
#include "gemm.h"
#include <stdio.h>
#define N {N}
static float a[N * N], b[N * N], c[N * N];
int main(void) {{
  for (int i = 0; i < N * N; i++) {{ a[i] = (float)(i % 7); b[i] = (float)(i % 5); }}
  int status = gemm(a, b, c);
  if (status) {{ printf("%s\\n", gemm_error_text(status)); return 1; }}
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {{
      float sum = 0;
      for (int k = 0; k < N; k++) sum += a[i * N + k] * b[k * N + j];
      if (sum != c[i * N + j]) {{ printf("%d %d\\n", i, j); return 2; }}
    }}
  printf("%d %d %d\\n", gemm(0, b, c), gemm(a, (const float *)((const char *)b + 1), c),
         gemm(a, b, a + 1) == 3 * 256 + GEMM_OVERLAP);
  printf("%s\\n", gemm_error_text(gemm(0, b, c)));
  return 0;
}}
"""


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("suffix", [".o", ".a", ".so"])
@pytest.mark.parametrize("word", ["cc", "c++"])
def test_a_program_links_and_calls_a_kernel(
    suffix: str, word: str, run_c: Run, tmp_path: Path
) -> None:
    found = run_c(PRODUCT, export(product(), tmp_path, suffix), word=word)

    assert found == "257 514 1\nargument 1 (A) is a null pointer\n"


def test_two_kernels_share_one_program_and_its_threads(run_c: Run, tmp_path: Path) -> None:
    source = """
#include "scaled.h"
#include "other.h"
#include <stdio.h>
int main(void) {
  float x[70], y[70], z[70];
  for (int i = 0; i < 70; i++) x[i] = (float)i;
  int status = scaled(x, y, 10) | other(y, z, 10);
  for (int i = 0; i < 70; i++) if (z[i] != 9 * x[i]) return 1;
  printf("%d %d", status, scaled_set_threads(3));
  printf(" %d %d", scaled_threads(), other_threads());
  printf(" %d", other_set_threads(0) == OTHER_INVALID_THREADS);
  return 0;
}
"""
    objects = [export(rows(name), tmp_path, suffix) for name, suffix in (("scaled", ".o"), ("other", ".a"))]

    assert run_c(source, *objects) == "0 0 3 3 1"


def test_one_kernel_has_several_names_in_one_program(run_c: Run, tmp_path: Path) -> None:
    for name in ("first", "second"):
        for suffix in (".o", ".h"):
            rows().export(tmp_path / f"{name}{suffix}", name=name)
    source = """
#include "first.h"
#include "second.h"
int main(void) {
  float x[7] = {1, 2, 3, 4, 5, 6, 7}, y[7], z[7];
  return first(x, y, 1) || second(y, z, 1) || z[6] != 63;
}
"""

    assert run_c(source, tmp_path / "first.o", tmp_path / "second.o") == ""


def test_functions_of_c_are_called_by_their_names(run_c: Run, tmp_path: Path) -> None:
    name = "sched_get_priority_max"  # a function that LLVM does not replace by instructions
    function = tecomp.CFunction(ctypes.CDLL(None), name, ["int32"], "int32")
    tecomp.register_func("export.priority", function, override=True)
    A = te.placeholder((2,), "int32", name="A")
    B = te.compute((2,), lambda i: te.call_pure_extern("int32", "export.priority", A[i]), name="B")
    kernel = tecomp.build(te.create_schedule(B), [A, B], name="priorities")
    export(kernel, tmp_path, ".o")
    source = """
#include "priorities.h"
#include <sched.h>
int main(void) {
  int32_t a[2] = {SCHED_OTHER, SCHED_FIFO}, b[2];
  return priorities(a, b) || b[0] != sched_get_priority_max(SCHED_OTHER)
      || b[1] != sched_get_priority_max(SCHED_FIFO);
}
"""

    assert f"definitions of {name}\n" in (tmp_path / "priorities.h").read_text(encoding="utf-8")
    assert run_c(source, tmp_path / "priorities.o") == ""


THREADS = """
#include "scaled.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
enum { ROWS = 20000 };
static void *work(void *argument) {
  long seed = (long)argument;
  float *x = malloc(sizeof(float) * 7 * ROWS), *y = malloc(sizeof(float) * 7 * ROWS);
  for (int i = 0; i < 7 * ROWS; i++) x[i] = (float)((i + seed) % 1000);
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < 7 * ROWS; i++) y[i] = -1;
    if (scaled(x, y, ROWS)) return (void *)1;
    for (int i = 0; i < 7 * ROWS; i++) if (y[i] != 3 * x[i]) return (void *)2;
  }
  free(x); free(y);
  return 0;
}
int main(void) {
  pthread_t threads[4];
  void *result;
  for (long k = 0; k < 4; k++) pthread_create(&threads[k], 0, work, (void *)k);
  for (int k = 0; k < 4; k++) { pthread_join(threads[k], &result); if (result) return 1; }
  printf("done");
  return 0;
}
"""


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("count", ["1", "3"])
def test_several_threads_call_a_parallel_kernel(count: str, run_c: Run, tmp_path: Path) -> None:
    path = export(rows(), tmp_path, ".o")

    assert run_c(
        THREADS, path, "-lpthread", env={**os.environ, "TECOMP_NUM_THREADS": count}) == "done"


def test_a_forked_process_starts_its_own_threads(run_c: Run, tmp_path: Path) -> None:
    source = """
#define _POSIX_C_SOURCE 200809L
#include "scaled.h"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static float x[7 * 4096], y[7 * 4096];
static int is_wrong(void) {
  for (int i = 0; i < 7 * 4096; i++) y[i] = -1;
  if (scaled(x, y, 4096)) return 1;
  for (int i = 0; i < 7 * 4096; i++) if (y[i] != 3 * x[i]) return 2;
  return 0;
}
int main(void) {
  int status = 0;
  for (int i = 0; i < 7 * 4096; i++) x[i] = (float)i;
  if (is_wrong()) return 1;
  pid_t child = fork();
  if (child == 0) _exit(is_wrong() || scaled_threads() != 3);
  waitpid(child, &status, 0);
  printf("%d %d", status, is_wrong());
  return 0;
}
"""
    path = export(rows(), tmp_path, ".o")

    assert run_c(source, path, env={**os.environ, "TECOMP_NUM_THREADS": "3"}) == "0 0"


CMAKE = """
cmake_minimum_required(VERSION 3.10)
project(example CXX)
add_library(gemm STATIC IMPORTED)
set_target_properties(gemm PROPERTIES IMPORTED_LOCATION ${CMAKE_SOURCE_DIR}/gemm.a)
find_package(Threads REQUIRED)
add_executable(example main.cc)
target_link_libraries(example gemm Threads::Threads)
"""


def test_cmake_links_a_static_library(tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if cmake is None or shutil.which("c++") is None:
        pytest.skip("cmake or c++ is not installed")
    export(product(), tmp_path, ".a")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
    (tmp_path / "main.cc").write_text(PRODUCT, encoding="utf-8")
    build = tmp_path / "build"
    for command in (["-S", str(tmp_path), "-B", str(build)], ["--build", str(build)]):
        subprocess.run([cmake, *command], check=True, capture_output=True)
    done = subprocess.run([str(build / "example")], check=True, capture_output=True, text=True)

    assert done.stdout.startswith("257 514 1")
