"""Run library calls with our arrays: `python -m tests.array.clients [module [name ...]]`."""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

MODULES = ["scipy_statistics", "scipy_functions", "scikit_learn", "small_libraries"]


def main(modules: list[str], names: list[str]) -> int:
    """Print the faults and the number of successful calls; return whether a call failed."""
    from tecomp.array.statistics import counters
    from tests.array.clients.case import fault_of

    wrong = 0
    for module in modules:
        start = time.perf_counter()
        cases = import_module(f"tests.array.clients.{module}").CASES
        chosen = [case for case in cases if not names or case.name in names]
        assert not names or len(chosen) == len(names), "there is no such case"
        faults = [fault for fault in map(fault_of, chosen) if fault]
        print(*faults, sep="\n", end="\n" if faults else "")
        print(f"{module}: {len(chosen) - len(faults)} of {len(chosen)} calls",
              f"in {time.perf_counter() - start:.1f} s", file=sys.stderr)
        wrong += len(faults)
    print(counters, file=sys.stderr)
    return wrong > 0


if __name__ == "__main__":
    os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads this variable on import
    sys.exit(main(sys.argv[1:2] or MODULES, sys.argv[2:]))
