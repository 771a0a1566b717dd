"""Search for failing random programs: `python -m tests.search --help`.

Every seed gives one program, as in `tests/properties/test_programs.py`, `test_operators.py`,
`test_unscheduled.py`, `test_array_sharing.py` and `test_view_programs.py`. Wrong results,
undocumented errors, crashes and timeouts are printed with their seed; `--reduce SEED` searches for
a smaller program with the same failure.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from hypothesis.errors import UnsatisfiedAssumption

from tecomp import TecompError
from tecomp.driver.build import build
from tests.strategies.agreement import bindings, check_ends
from tests.strategies.array_sharing import Program
from tests.strategies.draws import Dice, Draws
from tests.strategies.operators import draw_operation
from tests.strategies.schedules import draw_case
from tests.strategies.unscheduled import Unscheduled, draw_unscheduled, draw_unscheduled_of_sizes
from tests.strategies.view_programs import draw_view_program

os.environ["TECOMP_CACHE"] = "off"
FORK = multiprocessing.get_context("fork")
STEPS = 25  # of a program of arrays
BATCH = 400  # programs per process, whose end frees their memory
PASSED, REFUSED, WRONG = "passed", "refused", "wrong"


@dataclass(frozen=True)
class Outcome:
    """Outcome of one program: passed, refused, or wrong, with a text."""

    kind: str
    text: str = ""
    program: str = ""
    rolled: Sequence[int] = ()

    @property
    def sort(self) -> str:
        """Return the first line of the text without program-specific names and numbers."""
        first = self.text.strip().split("\n")[0]
        return re.sub(r"\b[a-zA-Z_]\w*\d\w*\b|\d+", "#", first)[:90]


def try_program(dice: Dice) -> Outcome:
    """Draw a program, compile it, and compare its result with its definition."""
    program = ""
    try:
        case = draw_case(dice)
        program = case.text()
        lowered = case.lower()
        program = case.text()
        # Most faults are in lowering, and machine code generation takes the longest.
        kernel = build(case.schedule, case.args) if dice.below(3) == 0 else None
        for sizes in bindings(case):
            check_ends(case, lowered, kernel, sizes)
    except UnsatisfiedAssumption as error:
        return Outcome(REFUSED, str(error), program, dice.rolled)
    except Exception as error:
        return _wrong(error, program, dice)
    return Outcome(PASSED)


def _try_all(
    kind: str, dice: Sequence[Dice], results: Connection, seconds: float, log: str
) -> None:
    warnings.simplefilter("ignore")
    with open(log, "w", encoding="utf-8") as stacks:
        faulthandler.enable(stacks)
        for one in dice:
            faulthandler.dump_traceback_later(seconds, exit=True, file=stacks)
            results.send((one.seed, KINDS[kind](one)))
        faulthandler.cancel_dump_traceback_later()
    os._exit(0)


def try_operation(dice: Dice) -> Outcome:
    """Draw a call of a library operator, build it, and compare it with NumPy."""
    program = ""
    try:
        operation = draw_operation(dice)
        program = operation.text
        operation.check()
    except Exception as error:
        if isinstance(error, ValueError) and not isinstance(error, TecompError):
            return Outcome(REFUSED, str(error), program, dice.rolled)
        return _wrong(error, program, dice)
    return Outcome(PASSED)


def try_unscheduled(
    dice: Dice, draw: Callable[[Dice], Unscheduled] = draw_unscheduled
) -> Outcome:
    """Draw a program, build it without a schedule, and compare it with its definition."""
    program = ""
    try:
        case = draw(dice)
        program = case.program.source
        case.check()
    except Exception as error:
        return _wrong(error, program, dice)
    return Outcome(PASSED)


def try_sizes(dice: Dice) -> Outcome:
    """Draw a program of symbolic sizes, compile it once, and compare 20 calls with its definition."""
    return try_unscheduled(dice, draw_unscheduled_of_sizes)


def try_sharing(dice: Dice) -> Outcome:
    """Draw a program of arrays that share elements, and compare it with a model of the rules."""
    program = Program(Draws(dice))
    try:
        program.run(STEPS)
    except Exception as error:
        return _wrong(error, "\n".join(program.text), dice)
    return Outcome(PASSED)


def try_views(dice: Dice) -> Outcome:
    """Draw a function with views and layout maps, and compare interpreter and kernel with NumPy."""
    program = ""
    try:
        case = draw_view_program(dice)
        program = case.text
        case.check()
    except Exception as error:
        return _wrong(error, program, dice)
    return Outcome(PASSED)


def _wrong(error: Exception, program: str, dice: Dice) -> Outcome:
    text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    return Outcome(WRONG, text, program, dice.rolled)


KINDS = {
    "programs": try_program, "operators": try_operation, "unscheduled": try_unscheduled,
    "sizes": try_sizes, "sharing": try_sharing, "views": try_views,
}


@dataclass
class _Worker:
    """Process that runs a batch of programs."""

    kind: str
    dice: list[Dice]
    seconds: float
    completed: int = 0

    def __post_init__(self) -> None:
        self.results, there = FORK.Pipe(duplex=False)
        handle, self.log = tempfile.mkstemp()
        os.close(handle)
        self.process = FORK.Process(
            target=_try_all, args=(self.kind, self.dice, there, self.seconds, self.log)
        )
        self.process.start()
        there.close()

    def ended(self) -> Outcome | None:
        """Return the outcome of the program during which the process crashed."""
        self.process.join()
        with open(self.log, encoding="utf-8") as log:
            stack = log.read()
        os.unlink(self.log)
        if self.completed == len(self.dice):
            return None
        self.completed += 1
        slow, code = f"no end in {self.seconds:g} s", f"exit code {self.process.exitcode}"
        return Outcome(WRONG, f"{slow if 'Timeout' in stack else code}\n{stack}")


def search(
    kind: str, seeds: Sequence[int], processes: int, seconds: float
) -> Iterator[tuple[int | None, Outcome]]:
    """Yield each seed with the outcome of its program, in order of completion."""
    dice = [Dice(seed=seed) for seed in seeds]
    batches = [dice[k : k + BATCH] for k in range(0, len(dice), BATCH)]
    workers: dict[Connection, _Worker] = {}
    try:
        yield from _results(kind, batches, workers, processes, seconds)
    finally:
        for worker in workers.values():
            worker.process.kill()


def _results(
    kind: str,
    batches: list[list[Dice]],
    workers: dict[Connection, _Worker],
    processes: int,
    seconds: float,
) -> Iterator[tuple[int | None, Outcome]]:
    while batches or workers:
        while batches and len(workers) < processes:
            worker = _Worker(kind, batches.pop(0), seconds)
            workers[worker.results] = worker
        for results in [ready for ready in wait(list(workers)) if isinstance(ready, Connection)]:
            worker = workers[results]
            try:
                seed, outcome = results.recv()
                worker.completed += 1
                yield seed, outcome
            except EOFError:
                if (outcome := worker.ended()) is not None:
                    yield worker.dice[worker.completed - 1].seed, outcome
                del workers[results]
                if left := worker.dice[worker.completed :]:
                    batches.insert(0, left)


def _apart(kind: str, dice: Dice, seconds: float) -> Outcome:
    """Return the outcome of a program in a separate process."""
    worker = _Worker(kind, [dice], seconds)
    try:
        outcome: Outcome = worker.results.recv()[1]
    except EOFError:
        outcome = worker.ended() or Outcome(PASSED)
    return outcome


def reduce(kind: str, seed: int, seconds: float, budget: float) -> Outcome:
    """Return the outcome of a smaller program that fails like the program of a seed.

    The random numbers of the program are removed in ranges or replaced by 0.
    """
    end = time.monotonic() + budget
    outcome = _apart(kind, Dice(seed=seed), seconds)
    best, size = outcome.rolled, max(len(outcome.rolled) // 2, 1)
    while size:
        at = 0
        while at < len(best) and time.monotonic() < end:
            part = best[at : at + size]
            for instead in ([], [0] * len(part)):
                if instead == part:
                    continue
                smaller = [*best[:at], *instead, *best[at + size :]]
                tried = _apart(kind, Dice(smaller), seconds)
                if tried.kind == WRONG and tried.sort == outcome.sort:
                    best, outcome = smaller, tried
                    break
            else:
                at += size
        size //= 2
    return outcome


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="search for random programs that go wrong")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one program")
    parser.add_argument("--reduce", type=int, metavar="SEED", help="show a smaller such program")
    options = parser.parse_args()
    if options.reduce is not None:
        outcome = reduce(options.kind, options.reduce, options.timeout, budget=120)
        sys.exit(f"{outcome.program}\n{outcome.text}")
    # Background shells may start the process with these signals ignored.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)
    begin, counts, sorts = time.monotonic(), Counter[str](), Counter[str]()
    seeds = range(options.seed, options.seed + options.count)
    try:
        for seed, outcome in search(options.kind, [*seeds], options.processes, options.timeout):
            counts[outcome.kind] += 1
            if outcome.kind == PASSED:
                continue
            sorts[f"{outcome.kind}: {outcome.sort}"] += 1
            if outcome.kind == WRONG:
                print(f"== seed {seed}\n{outcome.program}\n{outcome.text}\n", flush=True)
    except KeyboardInterrupt:
        print(f"stopped after {counts.total()} programs")
    for sort, count in sorts.most_common():
        print(f"{count:6} {sort}")
    print(f"{dict(counts)} in {time.monotonic() - begin:.0f} s, seeds {seeds.start} to {seeds.stop - 1}")
    sys.exit(1 if counts[WRONG] else 0)


if __name__ == "__main__":
    main()
