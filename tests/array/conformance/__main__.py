"""Search for differences to NumPy: `python -m tests.array.conformance --count 200`."""

from __future__ import annotations

import argparse
import sys
import time

from tecomp.array.statistics import counters
from tests.array.conformance.calls import MAKERS
from tests.array.conformance.tries import fault_of


def main() -> int:
    """Try each function `count` times, print the differences, and return whether there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.array.conformance")
    parser.add_argument("--count", type=int, default=50, help="tries of each function")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", help="functions; all if none")
    options = parser.parse_args()
    wrong, start = 0, time.perf_counter()
    for name in options.names or MAKERS:
        faults = [fault for k in range(options.count) if (fault := fault_of(name, (options.seed, k)))]
        wrong += len(faults)
        if faults:
            print(f"{name}: {len(faults)} of {options.count}, as {faults[0]}", flush=True)
    print(f"{wrong} of {options.count * len(options.names or MAKERS)} calls differ, in "
          f"{time.perf_counter() - start:.0f} s")
    print(counters)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
