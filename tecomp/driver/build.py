"""`build`: lower a schedule, check memories and core grid of the target, generate code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tecomp.codegen.dispatch.fast_call import Quick
from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.codegen.dispatch.parameter import KernelParameter
from tecomp.codegen.llvm.compiled import CompiledFunction
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.compute.tensor import Tensor
from tecomp.driver.auto_schedule import is_program, schedule_with_record, use_database
from tecomp.driver.build_cache import (
    DUMP_FOLDER,
    BuildRequest,
    build_kernel,
    build_unscheduled,
    get_or_build,
)
from tecomp.driver.layout_packing import (
    LayoutPacker,
    argument_storage,
    call_with_logical_arrays,
    logical_parameter,
    row_major_argument_storage,
)
from tecomp.driver.static_shapes import check_sizes
from tecomp.errors import CallError, LowerError
from tecomp.ir.nodes.argument_checks import check_kind, dictionary_of
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Buffer
from tecomp.lowering.stages.index_expressions import offsets_of, strides_of
from tecomp.machine.descriptor import Target
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.schedule.primitive_calls import attach_to_primitives
from tecomp.scheduling.split_schedule import with_arguments
from tecomp.scheduling.state import ScheduleState

if TYPE_CHECKING:
    from tecomp.cost_model.report import CostReport
    from tecomp.cost_model.roofline import Roofline
    from tecomp.drawing.chrome_trace import ChromeTrace
    from tecomp.lowering.pipeline import LoweringResult

_MEASURE_SECONDS = 0.1
"""Measurement time of a kernel for its roofline, in seconds."""


class ScheduledKernel(Kernel):
    """Kernel with its schedule, its lowered functions, cost reports and layout conversion.

    Attributes:
        lowered: Function after each lowering pass.

    >>> from tecomp import te
    >>> A = te.placeholder((6,), name="A")
    >>> B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
    >>> kernel = build(te.create_schedule(B), [A, B], name="double")
    >>> kernel.schedule, kernel.target.name
    (Schedule(A, B), 'cpu')
    >>> print(kernel.lowered.functions["nest"].body)
    for i in range(6):
        B[i] = A[i] * float32(2.0)
    """

    __slots__ = ("_logical", "_lowered", "_packing", "_request")

    def __init__(
        self, request: BuildRequest, compiled: CompiledFunction,
        lowered: LoweringResult | None = None,
    ) -> None:
        stored = (
            argument_storage(request.schedule.state, request.args, compiled.logical)
            if request.is_scheduled
            else row_major_argument_storage(request.args)
        )
        super().__init__(compiled, stored=stored)
        self._request = request
        self._logical: tuple[KernelParameter, ...] | None = None
        self._lowered = lowered
        self._packing: dict[Any, LayoutPacker] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Do not pickle machine code, for security: the receiving process loads the kernel from its
        # own cache or builds it.
        return _build_kernel, (self._request.scheduled(),)

    @property
    def _state(self) -> ScheduleState:
        return self._request.schedule.state

    @property
    def schedule(self) -> Schedule:
        """Schedule of the kernel, given by the user or found by the automatic scheduler."""
        return self._request.schedule

    @property
    def target(self) -> Target | None:
        """Target of the kernel."""
        return self._request.target

    @property
    def lowered(self) -> LoweringResult:
        """Function after each lowering pass; computed on first access."""
        if self._lowered is None:
            self._lowered = self._request.lowered()
        return self._lowered

    def _first_call(self) -> Quick:
        quick = self._checked_call()
        if self._request.verify:
            self._fast_call = quick = self._verified(quick)
        return quick

    def _verified(self, quick: Quick) -> Quick:
        """Wrap a call with bounds checks before, and a comparison with the interpreter after it."""
        from tecomp.driver.verification import Verifier

        verifier = Verifier(
            self.name, self._request.args, self._state, self.lowered, self._packing_of,
            [p.position for p in self._parameters if p.is_written],
        )

        def verified(*arguments: Any) -> Any:
            if len(arguments) == len(self.signature):
                self._careful(self._block(), arguments)
                # Do not run code that accesses memory out of bounds.
                verifier.check_bounds(arguments, self.sizes_of(arguments))
            before = [
                np.array(item, order="C") if getattr(item, "ndim", 0) else item
                for item in arguments
            ]
            outcome = quick(*arguments)
            if outcome is False:
                outcome = self._run(arguments)
            if outcome is None:
                verifier.check(before, arguments, self.sizes_of(arguments))
            return outcome

        return verified

    def _checked_call(self) -> Quick:
        quick = super()._first_call()
        target = self._request.target
        if target is None or all(m.capacity_bytes is None for m in target.memories.values()):
            return quick
        from tecomp.driver.memory_check import check_fits, is_open

        if not is_open(self.lowered, target):
            return quick
        verified: set[tuple[tuple[str, int], ...]] = set()

        def checked(*arguments: Any) -> Any:
            sizes = self.sizes_of(arguments)
            if (key := tuple(sizes.items())) not in verified:
                check_fits(
                    self._request.schedule, self._request.args, self.lowered, target, sizes)
                verified.add(key)
            return quick(*arguments)

        self._fast_call = checked
        return checked

    def _call_logical(self, arguments: Sequence[Any]) -> None:
        if self._logical is None:
            self._logical = tuple(map(logical_parameter, self._parameters))
        sizes = self._checked(self._logical, arguments)
        call_with_logical_arrays(self, self._parameters, arguments, self._packing_at, sizes)

    def _packing_at(self, parameter: KernelParameter) -> LayoutPacker:
        tensor = self._request.args[parameter.position]
        assert isinstance(tensor, Tensor)
        return self._packing_of(tensor)

    def pack(self, tensor: Tensor, array: Any) -> np.ndarray[Any, Any]:
        """Convert an array of logical shape to the layout in which the kernel takes `tensor`.

        Padding is filled with the pad value of the tensor, or 0.

        Raises:
            CallError: If the tensor is not in the schedule, or the array does not match its dtype,
                shape or layout.

        >>> from tecomp import te
        >>> A = te.placeholder((6,), name="A")
        >>> B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B.op)
        >>> s[A].transform_layout(lambda i: [i // 4, i % 4])
        ()
        >>> kernel = build(s, [A, B])
        >>> kernel.pack(A, np.arange(6, dtype="float32"))
        array([[0., 1., 2., 3.],
               [4., 5., 0., 0.]], dtype=float32)
        """
        return self._packing_of(tensor).pack(array)

    def unpack(self, tensor: Tensor, array: Any, **sizes: int) -> np.ndarray[Any, Any]:
        """Convert an array from the layout of `tensor` in this kernel to its logical shape.

        Args:
            tensor: Tensor of the schedule.
            array: Array in the layout of the tensor.
            sizes: Size variables by name that the shape of the array does not determine.

        Raises:
            CallError: If the tensor is not in the schedule, or the array does not match its dtype,
                shape or layout.

        >>> from tecomp import te
        >>> A = te.placeholder((6,), name="A")
        >>> B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> _ = s[B].transform_layout(lambda i: [i // 4, i % 4])
        >>> kernel = build(s, [A, B])
        >>> out = kernel.empty(B)
        >>> kernel(np.arange(6, dtype="float32"), out)
        >>> kernel.unpack(B, out)
        array([ 0.,  2.,  4.,  6.,  8., 10.], dtype=float32)
        """
        return self._packing_of(tensor).unpack(array, sizes)

    def report(self, **sizes: int) -> CostReport:
        """Return the modelled cost of a call: traffic, memory, work per core, and cycles.

        The counts are exact and are derived from loops and conditions, without running the kernel.

        Args:
            sizes: Size variables of the program, by name.

        Raises:
            CallError: If a size is missing.
            LowerError: If there are too many iterations to count.

        Source:
            docs/cost-model.md, which defines the counts and the computation of cycles.

        >>> from tecomp import te
        >>> A = te.placeholder((64,), name="A")
        >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
        >>> report = build(te.create_schedule(B), [A, B]).report()
        >>> report.kernel, report.target, dict(report.operations)
        ('main', 'cpu', {'mul float32': 64})
        """
        assert self._request.target is not None
        # Import lazily: only reports need the cost model.
        import tecomp.driver.profiling as reporting
        report: CostReport = reporting.report_of(
            self.name, self._state, self.lowered, self._request.target, sizes
        )
        return report

    def timeline(self, *arguments: Any, measured: bool = False, **sizes: int) -> ChromeTrace:
        """Return a modelled or measured timeline as a trace for chrome://tracing and Perfetto.

        A measured timeline has one bar for each outermost loop or statement, with its time in the
        fastest of five calls. The clock is read between the bars, which takes about 10 ns. A
        parallel loop is one bar.

        Args:
            arguments: Arguments of a measured call; outputs are written. Default: arrays of zeros.
            measured: If True, run the kernel; otherwise return `report().trace()`.
            sizes: Size variables of the program by name, if no arguments determine them.

        Returns:
            JSON text, which a notebook displays as a figure; times are in microseconds.

        Raises:
            CallError: If an argument is invalid, a size is missing, or a measurement is requested
                for a target that cannot run here.
            LowerError: If there are too many iterations to count.

        >>> from tecomp import te
        >>> A = te.placeholder((4,), name="A")
        >>> B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
        >>> kernel = build(B, [A, B])
        >>> a, b = np.zeros(4, "float32"), np.empty(4, "float32")
        >>> "B" in kernel.timeline(a, b, measured=True), "B" in kernel.timeline(measured=True)
        (True, True)
        >>> "B" in kernel.timeline()
        True
        """
        self._check_measured("timeline", measured, arguments, sizes)
        if not measured:
            return self.report(**sizes).trace()
        arguments = arguments or self._zeros("timeline", sizes)
        # An ordinary call first reports invalid arguments with the kernel's own messages.
        self(*arguments)
        from tecomp.driver.profiling import measure_trace

        trace: ChromeTrace = measure_trace(
            self.lowered.final, self.signature, self._request.options, arguments
        )
        return trace

    def _zeros(self, method: str, sizes: Mapping[str, int]) -> tuple[Any, ...]:
        """Return arrays of zeros and default scalars, for a call that only measures time."""
        known = check_sizes(self.lowered.final, sizes, f"{self.name}.{method}")
        values: list[Any] = []
        for arg in self._request.args:
            if isinstance(arg, Tensor):
                values.append(self._packing_of(arg).empty(known))
                values[-1].fill(0)
            else:
                assert isinstance(arg, Var)
                values.append(known.get(arg.name, 0))
        return tuple(values)

    def roofline(
        self, *arguments: Any, measured: bool = False, label: str | None = None, **sizes: int
    ) -> Roofline:
        """Return the roofline of the kernel; `a + b` combines two rooflines in one figure.

        On a processor, the arithmetic intensity is the number of operations per byte of compulsory
        traffic, which counts each argument once. The roofs are rates of one core, stated by the
        target or measured by `tecomp.calibrate`. On other targets, there is one intensity for each
        memory and link, from the modelled traffic in bytes, and times are modelled cycles.

        Args:
            arguments: Arguments of a measured call; outputs are written. Default: arrays of zeros.
            measured: If True, run the kernel; otherwise use the minimum time that the roofs allow.
            label: Label in the figure. Default: the name of the kernel.
            sizes: Size variables of the program by name, if no arguments determine them.

        Returns:
            Roofline, which a notebook displays, `print` shows as text, and `.save("x.svg")` writes
            as a figure.

        Raises:
            CallError: If an argument is invalid, a size is missing, or a measurement is requested
                for a target that cannot run here.
            LowerError: If there are too many iterations to count.

        Source:
            Williams, Waterman, Patterson: Roofline, Communications of the ACM 52 (4), 2009.

        >>> from tecomp import te
        >>> A = te.placeholder((4096,), name="A")
        >>> B = te.compute((4096,), lambda i: A[i] * A[i] + A[i], name="B")
        >>> s = te.create_schedule(B)
        >>> plain = build(s, [A, B])
        >>> _ = s[B].vectorize(s[B].split(B.op.axis[0], 16)[1])
        >>> a, b = np.ones(4096, "float32"), np.empty(4096, "float32")
        >>> both = plain.roofline(a, b, measured=True, label="plain") + (
        ...     build(s, [A, B]).roofline(a, b, measured=True, label="vectors"))
        >>> [(mark.kernel, mark.intensity, mark.memory) for mark in both.marks]
        [('plain', 0.25, 'L1'), ('vectors', 0.25, 'L1')]
        """
        self._check_measured("roofline", measured, arguments, sizes)
        check_kind(label, str | None, f"{self.name}.roofline: label",
                   "pass a string, or omit it", CallError)
        seconds = None
        if measured:
            arguments = arguments or self._zeros("roofline", sizes)
            seconds = self.timeit(*arguments, seconds=_MEASURE_SECONDS).min
            sizes = self.sizes_of(arguments)
        assert self._request.target is not None
        # Import lazily: only rooflines need the cost model.
        import tecomp.driver.profiling as drawing
        found: Roofline = drawing.kernel_roofline(
            self.name if label is None else label, self._state, self.lowered, self._request.target,
            sizes, seconds,
        )
        return found

    def _check_measured(
        self, method: str, measured: bool, arguments: Sequence[Any], sizes: Mapping[str, int]
    ) -> None:
        """Raise if `measured` contradicts the other arguments or the target.

        Raises:
            CallError: If arguments are given without `measured`, the target cannot run here, or
                both arguments and sizes are given.
        """
        where = f"{self.name}.{method}"
        check_kind(measured, bool | np.bool_, f"{where}: measured", "pass True or False", CallError)
        if not measured:
            if arguments:
                raise CallError(
                    "{where}: arguments are only used for measured calls; pass measured=True, or "
                    "omit the arguments",
                    kind="conflicting-options", where=where,
                )
            return
        target = self._request.target
        if target is not None and target.core is None:
            raise CallError(
                "{where}: the kernel is for target {target}, which is a modelled target and cannot "
                "be measured; omit measured",
                kind="conflicting-options", where=where, target=target.name,
            )
        if sizes and arguments:
            raise CallError(
                "{where}: sizes are inferred from the arguments of the call; omit {sizes}",
                kind="conflicting-options", where=where, sizes=", ".join(sizes),
            )

    def empty(self, tensor: Tensor, **sizes: int) -> np.ndarray[Any, Any]:
        """Return an uninitialized array in the layout in which the kernel takes `tensor`.

        Args:
            tensor: Tensor of the schedule.
            sizes: Size variables by name on which the shape depends.

        Raises:
            CallError: If the tensor is not in the schedule, or a size is missing.

        >>> from tecomp import te
        >>> A = te.placeholder((6,), name="A")
        >>> B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> _ = s[B].transform_layout(lambda i: [i // 4, i % 4])
        >>> build(s, [A, B]).empty(B).shape
        (2, 4)
        """
        return self._packing_of(tensor).empty(sizes)

    def _packing_of(self, tensor: Tensor) -> LayoutPacker:
        stage = self._state.find(tensor.op) if isinstance(tensor, Tensor) else None
        if stage is None:
            known = ", ".join(stage.name for stage in self._state)
            raise CallError(
                "{name}: {tensor!r} is not a tensor of the kernel's schedule; its tensors are "
                "{known}",
                kind="not-in-schedule", name=self.name, tensor=tensor, known=known,
            )
        key = (stage.key, tensor.value_index)
        if key not in self._packing:
            self._packing[key] = LayoutPacker(stage, tensor.value_index)
        return self._packing[key]


def _build_kernel(request: BuildRequest) -> ScheduledKernel:
    return build_kernel(request, partial(ScheduledKernel, request))


def build(
    schedule: Schedule | Tensor | Sequence[Tensor] | Callable[[], Any],
    args: Sequence[object] = (),
    target: str | Path | Target = "cpu",
    name: str = "main",
    *,
    check_bounds: bool = False,
    fast_math: bool = False,
    fp_contract: bool = True,
    binds: Mapping[Tensor, Buffer] | None = None,
    verify: bool = False,
    bounds: Mapping[Var, int] | None = None,
    database: str | Path | None = None,
) -> ScheduledKernel:
    """Build a kernel from a schedule.

    Args:
        schedule: Schedule from `te.create_schedule`; or output tensor or tensors, which
            `tecomp.schedules.auto` schedules; or a function that returns a schedule, or a pair of a
            schedule and arguments. The knobs of `auto` and of the function get the values that the
            tuning database records.
        args: Tensors and size variables in the parameter order of the kernel. Arguments that are
            not read or are computed inline are validated like the others, but not accessed.
        target: Target: its name, a description, or a path to a description.
        name: Name of the kernel.
        check_bounds: If True, check every access at run time, and detect writes around the
            allocations in memories of an accelerator; for finding errors in this compiler.
        fast_math: If True, allow reassociation of sums, multiplication by reciprocals, and either
            operand as the `min` or `max` of NaN and a number. Changes results.
        fp_contract: If True, allow `a * b + c` to be rounded once (FMA) instead of twice.
        binds: `te.decl_buffer` of the same shape and dtype for tensors among the arguments, whose
            `strides` are the strides of the passed arrays: ints, which may be 0 or negative, or
            variables, which are bound by each call. Other arrays must be C-contiguous. If its
            `elem_offset` is not 0, calls pass a one-dimensional array that contains the tensor.
        verify: If True, compare each call with the interpreter; for finding errors in this
            compiler, on small arrays. External functions of the kernel are called twice.
        bounds: Expected upper bounds of symbolic sizes, by which `tecomp.schedules.auto` chooses
            loops. Results are correct for larger sizes too.
        database: Path of a tuning database. Default: that of the environment variable
            `TECOMP_TUNING`, or of the user; it is not consulted if it does not exist.

    Returns:
        The kernel; call it with arrays: `kernel(a, b, c)`.

    Raises:
        LowerError: If the schedule cannot be lowered without changing its meaning.
        TargetError: If the schedule uses a memory, rank or grid axis that the target does not have,
            or cores share data in a memory that belongs to one core.
        CacheError: If the tuning database is not found or damaged.
        CapacityError: If the buffers that are live at the same time exceed a memory.

    >>> from tecomp import te
    >>> A = te.placeholder((4,), name="A")
    >>> B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    >>> kernel = build(te.create_schedule(B.op), [A, B])
    >>> a, b = np.arange(4, dtype="float32"), np.empty(4, "float32")
    >>> kernel(a, b)
    >>> b
    array([1., 2., 3., 4.], dtype=float32)
    >>> build(B, [A, B])(a, b)
    >>> with_gaps = te.decl_buffer(A.shape, A.dtype, strides=[te.var("s")])
    >>> build(B, [A, B], binds={A: with_gaps})(np.arange(8, dtype="float32")[::2], b)
    >>> b
    array([1., 3., 5., 7.], dtype=float32)
    """
    machine = Target.of(target)
    if callable(schedule) and not isinstance(schedule, Tensor):
        with use_database(database, "build"):
            found = schedule_with_record(schedule, machine)
        schedule, args = found if isinstance(found, tuple) and len(found) == 2 else (found, args)
    strides = strides_of(binds, args, "build")
    is_unscheduled = isinstance(schedule, Tensor | list | tuple) and is_program(schedule)
    if not is_unscheduled:
        check_kind(
            schedule, Schedule, "build: the schedule", "make one with te.create_schedule",
            LowerError,
        )
    for flag in (check_bounds, fast_math, fp_contract, verify):
        check_kind(flag, bool | np.bool_, "build: a flag", "pass True or False", LowerError)
    expected = dictionary_of(
        bounds, Var, int, "build: bounds", "pass a dict from size variables to their bounds",
        LowerError)
    options = Options(check_bounds, fast_math, fp_contract)
    strided = dict(binds or {}) if strides or offsets_of(binds, args) else {}
    if strided and verify:
        raise LowerError(
            "build: verify=True requires compact arrays and does not support binds; omit binds",
            kind="conflicting-options",
        )
    if isinstance(schedule, Schedule):
        prepared = copy(with_arguments(schedule, args))
        request = BuildRequest(prepared, args, name, machine, options, strided, bool(verify))
        return build_kernel(
            request, partial(ScheduledKernel, request),
            partial(build_code, schedule=schedule, page=dump_page(name)))
    assert not callable(schedule) or isinstance(schedule, Tensor)
    request = BuildRequest(
        schedule, args, name, machine, options, strided, bool(verify), tuple(expected.items()))
    with use_database(database, "build"):
        choices = request.problem.find_choices()
    return build_unscheduled(
        replace(request, choices=tuple(choices.items())), dump_page(name), ScheduledKernel,
        build_code)


def dump_page(name: str) -> Path | None:
    """Return the file of the page that shows a build, or None if no pages are written."""
    if not os.environ.get(DUMP_FOLDER):
        return None
    # Import lazily: a kernel from the cache needs neither the page nor the warnings.
    from tecomp.driver.lowering_dump import dump_destination

    return dump_destination(name)


def build_code(
    request: BuildRequest, lowered: LoweringResult | None, *, schedule: Schedule, page: Path | None
) -> tuple[CompiledFunction, LoweringResult | None]:
    """Return the code of a request, with warnings about its performance; write its page."""
    with attach_to_primitives(schedule):
        if lowered is None and page:
            from tecomp.driver.lowering_dump import dump_build

            lowered = dump_build(request, page)
        assert request.target is not None
        if any(stage.threads for stage in schedule.state):
            from tecomp.driver.memory_check import check_grid

            check_grid(schedule.state, request.target)
        compiled, lowered = get_or_build(request, lowered)
    if lowered is not None:
        from tecomp.driver.advice import emit_performance_warnings

        emit_performance_warnings(
            request.schedule, lowered, request.target
        )
    return compiled, lowered
