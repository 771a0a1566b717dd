"""Search for differences to NumPy on a team: `python -m tests.dist.conformance -n 2`."""

from __future__ import annotations

import argparse
import subprocess
import sys

from tests.strategies.ranks import PROGRAMS, environment, launcher


def main() -> int:
    """Run random calls on all processes in lock-step; the last line counts differences."""
    parser = argparse.ArgumentParser(prog="python -m tests.dist.conformance")
    parser.add_argument("-n", type=int, default=2, help="processes")
    parser.add_argument("--count", type=int, default=10, help="tries of each function")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", help="functions; all if none")
    options = parser.parse_args()
    words = [str(PROGRAMS / "conforms.py"), str(options.count), str(options.seed), *options.names]
    return subprocess.run([*launcher(options.n), *words], env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
