"""Targets for tests: shipped targets independent of the host, and small scratchpad machines."""

from __future__ import annotations

from tecomp import Core, MatmulUnit, Target, list_targets

CPU = Target.load("cpu")
SMALL = Target(
    "small", "a core with small caches, so that little sizes are cut into many blocks",
    CPU.memories, Core(2, 16, 16, (256, 8192)),
)
CORES = (CPU, SMALL)

ACCELERATORS = tuple(name for name in list_targets() if name != "cpu")
MATRIX_MACHINES = tuple(name for name in ACCELERATORS if any(
    isinstance(unit, MatmulUnit) for unit in Target.load(name).engine.values()))
VECTOR_MACHINES = tuple(name for name in ACCELERATORS if name not in MATRIX_MACHINES)

SCRATCHPADS = '''name = "{name}"
description = "cores with scratchpads"
clock_hz = 1_000_000_000

[grid]
{grid}

[memory.global]
scope = "host"
rank = 1
alignment_bytes = 64
source = "assumed"

[memory.ddr]
scope = "chip"
rank = 1
alignment_bytes = 64
source = "assumed"
{ddr}

[memory.lx]
scope = "core"
rank = 1
alignment_bytes = 64
source = "assumed"
{lx}
'''


def shipped(name: str) -> Target:
    """Return a shipped target; `cpu` has a fixed core, grid and clock instead of the host's.

    Args:
        name: Name of the target.
    """
    if name != "cpu":
        return Target.load(name)
    core = {"count": 4, "vector_bytes": 32, "vector_registers": 16, "cache_bytes": [32768, 1 << 20]}
    return Target.load("cpu", core=core, grid={"core.x": 4}, clock_hz=3e9)


def scratchpads(
    name: str, *sections: str, grid: str = "core.x = 4", ddr: str = "", lx: str = ""
) -> str:
    """Return the description of a machine with a chip memory `ddr` and a core memory `lx`.

    Args:
        name: Name of the target.
        sections: Further TOML sections, such as links and engines.
        grid: Lines of the section `grid`.
        ddr: Further lines of the memory `ddr`, such as capacity and bandwidth.
        lx: Further lines of the memory `lx`.

    Returns:
        TOML, for `read_target`.
    """
    head = SCRATCHPADS.format(name=name, grid=grid, ddr=ddr, lx=lx)
    return "\n".join([head, *sections])
