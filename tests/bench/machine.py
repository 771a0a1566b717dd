"""Description of the machine that runs the benchmarks, from its operating system."""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import binding

from tecomp import Target

_CPUINFO = Path("/proc/cpuinfo")

# CPU flags that OpenBLAS kernels of a core type require; only useful core types are listed.
_CORE_TYPES = {
    "Sandybridge": {"avx"},
    "Haswell": {"avx2", "fma"},
    "Zen": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"},
    "Cooperlake": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16"},
    "SapphireRapids": {"avx512f", "avx512vl", "avx512_bf16", "amx_bf16", "amx_tile"},
}


@cache
def flags() -> frozenset[str]:
    """Return the CPU flags that Linux reports; empty on other systems."""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", _cpuinfo(), re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def blas_core_types(have: frozenset[str] | None = None) -> list[str]:
    """Return the values of OPENBLAS_CORETYPE whose kernels the CPU supports."""
    have = flags() if have is None else have
    return [name for name, needs in _CORE_TYPES.items() if needs <= have]


def last_cache() -> int:
    """Return the size of the last-level cache in bytes."""
    core = Target.load("cpu").core
    return core.cache_bytes[-1] if core else 32 * 1024 * 1024


def cores(count: int) -> list[int]:
    """Return the given number of cores that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[:count] if len(allowed) >= count else []


def description() -> dict[str, Any]:
    """Return CPU name, cores, caches and operating system."""
    model = re.search(r"^model name\s*:\s*(.*)$", _cpuinfo(), re.MULTILINE)
    core = Target.load("cpu").core
    return {
        "cpu": f"{model[1] if model else platform.processor()}{_microarchitecture()}",
        "cores": os.cpu_count(),
        "vector_bytes": core.vector_bytes if core else None,
        "cache_bytes": list(core.cache_bytes) if core else [],
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
    }


def _microarchitecture() -> str:
    """Return LLVM's CPU name, which distinguishes generations of one trade name."""
    return f" ({binding.get_host_cpu_name()})"


@cache
def _cpuinfo() -> str:
    return _CPUINFO.read_text(encoding="ascii", errors="ignore") if _CPUINFO.exists() else ""
