"""What the processor at hand offers to a schedule: vectors, registers, caches.

Read from the files of Linux; where these say nothing, what processors of the last ten years have.
"""

from __future__ import annotations

import os
import platform
import re
from functools import cache
from pathlib import Path

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
"""Types whose products machines add up in one instruction."""
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


@cache
def host_vectors() -> tuple[int, int]:
    """Bytes of a vector register, and how many such registers there are."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return 16, 32
    flags = _flags()
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= flags:
        return 64, 32
    return (32, 16) if "avx2" in flags else (16, 16)


def host_vector_bytes() -> int:
    """Bytes of a vector register."""
    return host_vectors()[0]


def host_vector_registers() -> int:
    """How many vector registers there are."""
    return host_vectors()[1]


@cache
def host_dots() -> tuple[str, ...]:
    """Types whose products one instruction adds up."""
    flags = _flags()
    return tuple(name for name, any_of in _DOTS.items() if any_of & flags)


def _cpuinfo() -> str:
    try:
        return _CPUINFO.read_text(encoding="ascii", errors="ignore")
    except OSError:
        return ""


def _flags() -> set[str]:
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", _cpuinfo(), re.MULTILINE)
    return set(found[1].split()) if found else set()


@cache
def host_caches(root: Path = _CACHES) -> tuple[int, ...]:
    """Bytes of the data caches of one core, the smallest first."""
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
    """Cycles of a second at the most, as far as the system says; None where it does not."""
    try:
        # A guest of a virtual machine may be told 0.
        return 1e3 * float(root.read_text(encoding="ascii")) or None
    except (OSError, ValueError):
        clocks = re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", _cpuinfo(), re.MULTILINE)
        return max((1e6 * float(clock) for clock in clocks), default=None) or None


def host_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
