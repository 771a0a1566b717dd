"""Programs without a schedule that were built before, found again before one is looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

from tecomp.codegen.llvm.emit import Options
from tecomp.compute.tensor import Tensor
from tecomp.driver.cached import Build, keys_of
from tecomp.driver.scheduler import scheduled
from tecomp.driver.sources import schedules
from tecomp.ir.language.stmt import Buffer, Extent
from tecomp.lowering.pipeline import Lowered
from tecomp.machine.descriptor import Target
from tecomp.scheduling.arguments import with_arguments


@dataclass(frozen=True)
class Unscheduled:
    """What `tecomp.build` was asked for, of results without a schedule, for a processor.

    Attributes:
        outputs: the results.
        args: as of a `Build`, and so are the others.
        name: of the kernel.
        target: the machine.
        options: how code is generated.
        binds: what says the strides of arguments.
        verify: whether the interpreter checks each call.
        strides: of each argument, as `binds` has them.
    """

    outputs: Tensor | Sequence[Tensor]
    args: Sequence[object]
    name: str
    target: Target
    options: Options
    binds: Mapping[Tensor, Buffer]
    verify: bool
    strides: tuple[Sequence[Extent] | None, ...]

    @cached_property
    def build(self) -> Build:
        """The same with the schedule that the library finds."""
        known = {
            arg: each for arg, each in zip(self.args, self.strides, strict=False)
            if isinstance(arg, Tensor) and each is not None
        }
        found = scheduled(self.outputs, self.target, strides=known)
        whole = copy(with_arguments(found, self.args))
        return Build(
            whole, self.args, self.name, self.target, self.options, self.binds, self.verify
        )

    def lowered(self) -> Lowered:
        """The function after each pass."""
        return self.build.lowered()

    def keys(self) -> Iterator[str]:
        """Names of the program: without, and with the places where it was written; or none."""
        if not isinstance(self.args, list | tuple):
            return
        outputs = (self.outputs,) if isinstance(self.outputs, Tensor) else tuple(self.outputs)
        yield from keys_of((
            "unscheduled", outputs, tuple(self.args), self.name, self.target, self.options,
            self.strides,
        ), schedules())
