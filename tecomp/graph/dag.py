"""Operation graph of a program, with the readers of each operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tecomp.compute.access_relations import variables_in, variables_of
from tecomp.compute.expression_analysis import post_order, substitute_inputs
from tecomp.compute.operation import Operation, PlaceholderOp
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import DefinitionError
from tecomp.graph.canonicalize import (
    extract_casts,
    linearize_factors,
    with_factors_of_unit,
)
from tecomp.graph.top_k import top_k_on_cores
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.printer import identifier
from tecomp.ir.traversal.rewrite import nodes_of
from tecomp.machine.descriptor import Target


@dataclass(frozen=True, slots=True)
class ProgramGraph:
    """A program of many operations.

    Attributes:
        inputs: Placeholders that the caller passes.
        constants: Placeholders whose values are known at compile time.
        outputs: Tensors to compute.
        operations: Operations in topological order, without placeholders; casts and views of
            product factors are separate operations.
        readers: Reading operations of each operation.
        origins: Replacement of each tensor of the caller's program that was rewritten.
    """

    inputs: tuple[Tensor, ...]
    constants: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    readers: Mapping[Operation, tuple[Operation, ...]]
    origins: Mapping[Tensor, Tensor]

    @property
    def sizes(self) -> tuple[Var, ...]:
        """Size variables, in the order of the inputs' extents."""
        extents = (extent for x in self.inputs for extent in x.shape)
        return tuple(dict.fromkeys(extent for extent in extents if isinstance(extent, Var)))

    @property
    def computed(self) -> tuple[Tensor, ...]:
        """Results of all operations."""
        return tuple(x for op in self.operations for x in op.outputs)

    def of(self, tensor: Tensor) -> Tensor:
        """Return the tensor that replaces a tensor of the caller's program."""
        return self.origins.get(tensor, tensor)


def graph_of(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    constants: Sequence[Tensor],
    target: Target | None = None,
) -> ProgramGraph:
    """Build the operation graph between inputs and outputs, rewritten for `target` if given.

    Raises:
        DefinitionError: If a required placeholder is neither an input nor a constant, a tensor is
            given twice, an input or constant is computed, an output is a placeholder or an input,
            there is no output, or a variable is no extent of an input.
    """
    sources = (*inputs, *constants)
    sizes = _check_given(inputs, constants)
    _check_outputs(outputs, sources)
    known = {tensor.op for tensor in sources}
    all_ops = post_order([x.op for x in outputs])
    known |= {x.op for op in all_ops if isinstance(op, ScanOp) for x in op.states}
    ops = [op for op in all_ops if op not in known]
    for op in ops:
        if isinstance(op, PlaceholderOp):
            raise DefinitionError(
                "compile: {op} is read, but is neither an input nor a constant; pass it in "
                "`inputs`, or its values in `constants`",
                kind="program", op=op.name,
            )
        _check_variables(op, sizes)
    steps = steps_of_scans(ops)
    split_casts = extract_casts(target) if target is not None else lambda op: op
    initial = ProgramGraph(
        tuple(inputs), tuple(constants), tuple(outputs), tuple(ops), MappingProxyType({}),
        MappingProxyType({}),
    )

    if target is not None:
        initial = _with_top_k_on_cores(initial, target)
        steps = steps_of_scans(initial.operations)

    def canonical(rebuilt: Operation) -> Operation:
        factored = rebuilt if target is None else with_factors_of_unit(rebuilt, target)
        return split_casts(linearize_factors(factored))

    return graph_with(initial, lambda op, rebuilt: rebuilt if op in steps else canonical(rebuilt))


def _with_top_k_on_cores(graph: ProgramGraph, target: Target) -> ProgramGraph:
    """Return a program whose top-k operations run where the model estimates fewer cycles."""
    return graph_with(graph, lambda _, op: top_k_on_cores(op, target))


def graph_with(
    graph: ProgramGraph,
    change: Callable[
        [Operation, Operation], Operation | tuple[Tensor, ...]
    ] = lambda before, rebuilt: rebuilt,
    inputs: Mapping[Tensor, Tensor] = MappingProxyType({}),
) -> ProgramGraph:
    """Rewrite the operations of a program.

    Args:
        graph: Program.
        change: Function of an operation and of the same operation on rewritten operands, which
            returns the replacement, or the tensors that replace its outputs. Default: the
            operation on rewritten operands.
        inputs: Tensors that operations read in place of inputs. The inputs of the program remain.
            Default: none.
    """
    before = iter(graph.operations)
    subst = substitute_inputs(graph.operations, inputs, change=lambda op: change(next(before), op))
    outputs = tuple(subst.get(x, x) for x in graph.outputs)
    all_ops = post_order([x.op for x in outputs])
    known = {x.op for x in (*graph.inputs, *graph.constants)}
    known |= {x.op for op in all_ops if isinstance(op, ScanOp) for x in op.states}
    ops = tuple(op for op in all_ops if op not in known)
    origins = {x: replacement for x, replacement in subst.items() if x not in inputs}
    origins |= {x: subst.get(replacement, replacement) for x, replacement in graph.origins.items()}
    return ProgramGraph(
        graph.inputs, graph.constants, outputs, ops, readers_of(ops), MappingProxyType(origins)
    )


def readers_of(operations: Sequence[Operation]) -> Mapping[Operation, tuple[Operation, ...]]:
    """Return the readers, among the operations, of each operation and of each operand."""
    readers: dict[Operation, dict[Operation, None]] = {op: {} for op in operations}
    for op in operations:
        for tensor in op.input_tensors:
            readers.setdefault(tensor.op, {})[op] = None
    return MappingProxyType({op: tuple(found) for op, found in readers.items()})


def steps_of_scans(operations: Sequence[Operation]) -> dict[Operation, Operation]:
    """Return the operations that a scan computes in each step, with their scan."""
    found: dict[Operation, Operation] = {}
    for scan in operations:
        if not isinstance(scan, ScanOp):
            continue
        inside = {x.op for x in scan.states}
        for op in operations:
            if op is not scan and any(x.op in inside for x in op.input_tensors):
                inside.add(op)
        loads = nodes_of(TensorLoad, *scan.body)
        rules = post_order(list(dict.fromkeys(load.tensor.op for load in loads)))
        found |= {op: scan for op in rules if op in inside and not isinstance(op, PlaceholderOp)}
    return found


def _check_given(inputs: Sequence[Tensor], constants: Sequence[Tensor]) -> frozenset[Var]:
    """Check the placeholders of a program, and return its size variables."""
    seen: set[Tensor] = set()
    for tensor in (*inputs, *constants):
        if not isinstance(tensor.op, PlaceholderOp):
            raise DefinitionError(
                "compile: {tensor} is an input, but it is also computed; pass only placeholders as "
                "inputs",
                kind="program", tensor=tensor.name,
            )
        if tensor in seen:
            raise DefinitionError(
                "compile: duplicate input {tensor}; pass it once",
                kind="duplicate-argument", tensor=tensor.name,
            )
        seen.add(tensor)
    return _size_variables(inputs, constants)


def _size_variables(inputs: Sequence[Tensor], constants: Sequence[Tensor]) -> frozenset[Var]:
    """Return the checked size variables of a program."""
    for tensor in constants:
        for extent in tensor.shape:
            if not isinstance(extent, int):
                raise DefinitionError(
                    "compile: the constant {name} has the extent `{extent}`; define constants with "
                    "constant sizes",
                    kind="unbound-size", name=tensor.name, extent=extent,
                )
    sizes = {extent for x in inputs for extent in x.shape if isinstance(extent, Var)}
    # Kernels match the sizes of a program by name, and names in functions are identifiers.
    names = Counter(identifier(var.name) for var in sizes)
    for name, count in names.items():
        if count > 1:
            raise DefinitionError(
                "compile: {count} size variables have the name {name}; rename all but one",
                kind="duplicate-argument", name=name, count=count,
            )
    for tensor in inputs:
        for var in (var for extent in tensor.shape for var in variables_in(extent)):
            _check_size(tensor.name, var, sizes)
    return frozenset(sizes)


def _check_outputs(outputs: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    if not outputs:
        raise DefinitionError(
            "compile: no output is specified; pass one or more tensors", kind="missing-input"
        )
    for tensor in outputs:
        if tensor in sources:
            raise DefinitionError(
                "compile: {tensor} is both an input and an output; remove it from the outputs",
                kind="program", tensor=tensor.name,
            )
        if isinstance(tensor.op, PlaceholderOp):
            raise DefinitionError(
                "compile: {tensor} is an output, but is not computed; pass results of `te.compute` "
                "as outputs",
                kind="program", tensor=tensor.name,
            )
    for tensor, count in Counter(outputs).items():
        if count > 1:
            raise DefinitionError(
                "compile: {tensor} is an output {count} times; pass it once",
                kind="duplicate-argument", tensor=tensor.name, count=count,
            )


def _check_variables(op: Operation, sizes: Container[Var]) -> None:
    for var in variables_of(op):
        _check_size(op.name, var, sizes)


def _check_size(name: str, var: Var, sizes: Container[Var]) -> None:
    if var not in sizes:
        raise DefinitionError(
            "compile: {op} depends on the variable `{var}`, which is not by itself an extent of an "
            "input; define an input with the extent `{var}`, or use a constant size",
            kind="unbound-size", op=name, var=var.name,
        )


def check_constant_sizes(graph: ProgramGraph, subject: str) -> None:
    """Check that a program has no symbolic sizes.

    Args:
        graph: Program.
        subject: What requires constant sizes, in the singular.

    Raises:
        DefinitionError: If an input has a symbolic size.
    """
    for tensor in graph.inputs:
        for extent in tensor.shape:
            if not isinstance(extent, int):
                raise DefinitionError(
                    "compile: {name} has the extent `{extent}`, but {subject} requires constant "
                    "sizes; define it with constant sizes",
                    kind="unbound-size", name=tensor.name, extent=extent, subject=subject,
                )
