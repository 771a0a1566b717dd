"""Query the properties of the host processor: vectors, registers, caches and clock.

The values come from Linux system files; defaults are typical of recent processors.
"""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path

from tecomp.errors import TargetError

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_CLOCK = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
_COMMON = (32 * 1024, 256 * 1024, 4 * 1024 * 1024)
_DOTS = {
    "uint8*int8": {"avx512_vnni", "avx_vnni", "i8mm"},
    "int8*int8": {"asimddp"},
    "uint8*uint8": {"asimddp"},
    "bfloat16*bfloat16": {"avx512_bf16"},
}
DOTS = tuple(_DOTS)
"""Dtype pairs for which some processor has a dot-product instruction."""
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
CPU_VARIABLE = "TECOMP_CPU"
_V2 = frozenset(("cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"))
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}
# Flags of /proc/cpuinfo required by each feature level of the x86-64 psABI (section 3.1.1).
_LEVELS = {"x86-64": frozenset[str](), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}


@cache
def cpu_level() -> str | None:
    """Return the CPU feature level to which `TECOMP_CPU` limits generated code.

    Returns:
        A level of the x86-64 psABI, or None for all features of the host.

    Raises:
        TargetError: If the level is unknown, or the host lacks one of its features.
    """
    level = os.environ.get(CPU_VARIABLE, "")
    if level in ("", "host"):
        return None
    if level not in _LEVELS:
        raise TargetError(
            "{cpu_variable}: unknown CPU level `{level}`; set it to host, {levels}",
            kind="unknown-choice", cpu_variable=CPU_VARIABLE, level=level,
            levels=", ".join(_LEVELS),
        )
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    if not is_x86 or not _LEVELS[level] <= _host_flags():
        missing = ", ".join(sorted(_LEVELS[level] - _host_flags())) if is_x86 else "x86-64"
        raise TargetError(
            "{cpu_variable}: the host does not support {level} (missing: {missing}); set a lower "
            "level, or host",
            kind="unsupported-by-target", cpu_variable=CPU_VARIABLE, level=level, missing=missing,
        )
    return level


@cache
def host_vectors() -> tuple[int, int]:
    """Return the size of a vector register in bytes, and the number of vector registers."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return 16, 32
    flags = _flags()
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= flags:
        return 64, 32
    return (32, 16) if "avx2" in flags else (16, 16)


def host_vector_bytes() -> int:
    """Return the size of a vector register in bytes."""
    return host_vectors()[0]


def host_vector_registers() -> int:
    """Return the number of vector registers."""
    return host_vectors()[1]


@cache
def host_dots() -> tuple[str, ...]:
    """Return the dtype pairs for which the host has a dot-product instruction."""
    flags = _flags()
    return tuple(name for name, any_of in _DOTS.items() if any_of & flags)


def _cpuinfo() -> str:
    try:
        return _CPUINFO.read_text(encoding="ascii", errors="ignore")
    except OSError:
        return ""


def _flags() -> frozenset[str]:
    """Return the CPU features that generated code may use."""
    level = cpu_level()
    return _host_flags() if level is None else _LEVELS[level]


def _host_flags() -> frozenset[str]:
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", _cpuinfo(), re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


@cache
def host_caches(root: Path = _CACHES) -> tuple[int, ...]:
    """Return the sizes of the data caches of a core in bytes, the smallest first."""
    sizes: dict[int, int] = {}
    for entry in sorted(root.glob("index*")):
        try:
            kind, level, size = (
                (entry / name).read_text(encoding="ascii").strip()
                for name in ("type", "level", "size")
            )
        except OSError:
            continue
        parsed = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind != "Instruction" and level.isdigit() and parsed:
            sizes[int(level)] = int(parsed[1]) * _UNITS[parsed[2]]
    found = tuple(size for _, size in sorted(sizes.items()) if size > 0)
    return found or _COMMON


@cache
def host_clock(root: Path = _CLOCK) -> float | None:
    """Return the maximum clock rate in Hz, or None if the system does not report it."""
    try:
        # Virtual machines may report 0.
        return 1e3 * float(root.read_text(encoding="ascii")) or None
    except (OSError, ValueError):
        clocks = re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", _cpuinfo(), re.MULTILINE)
        return max((1e6 * float(clock) for clock in clocks), default=None) or None


def host_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
