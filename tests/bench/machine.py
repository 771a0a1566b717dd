"""The machine that a table was made on, as its operating system describes it."""

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

# What OpenBLAS's kernels for a core type need; only those worth a try are here.
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
    """The instruction sets of the processor, as Linux calls them; none where it does not say."""
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", _cpuinfo(), re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def blas_core_types(have: frozenset[str] | None = None) -> list[str]:
    """The values of OPENBLAS_CORETYPE whose kernels the processor can run."""
    have = flags() if have is None else have
    return [name for name, needs in _CORE_TYPES.items() if needs <= have]


def last_cache() -> int:
    """Bytes of the largest cache."""
    core = Target.load("cpu").core
    return core.cache_bytes[-1] if core else 32 * 1024 * 1024


def cores(count: int) -> list[int]:
    """So many of the cores that this process may use."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[:count] if len(allowed) >= count else []


def description() -> dict[str, Any]:
    """The processor by name, its cores and caches, the system."""
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
    """LLVM's name for it, which tells generations of one trade name apart."""
    return f" ({binding.get_host_cpu_name()})"


@cache
def _cpuinfo() -> str:
    return _CPUINFO.read_text(encoding="ascii", errors="ignore") if _CPUINFO.exists() else ""
