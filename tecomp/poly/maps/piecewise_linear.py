"""Split a box into cells where index expressions are linear.

A cell is a box of variables that count from 0, with expressions of these variables as sums. A cut
replaces a variable by new ones such that the new cells partition the old cell: by two digits and a
remainder, by two intervals, or by each of its values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from tecomp.ir.arith.intervals import Box
from tecomp.ir.arith.quasi_affine import Digit, OpaqueTerm, QuasiAffine, Term
from tecomp.ir.nodes.expr import BinOp
from tecomp.poly.maps.brute_force import LIMIT
from tecomp.poly.sets.quasi_affine_reader import IndexReader

# Substitution for a variable: a constant, and (factor, count) of each new variable.
Replacement = tuple[int, tuple[tuple[int, int], ...]]
Cut = tuple[int, tuple[Replacement, ...]]


class TooManyError(Exception):
    """Exception for a partition with more than the permitted number of cells."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Box of variables with expressions of these variables.

    Attributes:
        forms: Expressions.
        counts: Number of values of each variable, including replaced variables.
        live: Positions of the variables that are not replaced.
        units: Step of each variable along each of the indices.
    """

    forms: tuple[QuasiAffine, ...]
    counts: tuple[int, ...]
    live: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, forms: Sequence[QuasiAffine], box: Box[int]) -> Cell:
        """Return the cell that covers a box of indices.

        Args:
            forms: Expressions, read with the bounds of `box`.
            box: `(low, count)` of each index; no count is 0.
        """
        rank = len(box)
        units = tuple(tuple(int(k == axis) for k in range(rank)) for axis in range(rank))
        ends = tuple(low + count for low, count in box)
        cell = cls(tuple(forms), ends, tuple(range(rank)), units)
        for axis, (low, count) in enumerate(box):
            if low:
                cell = cell.replaced(axis, (low, ((1, count),)))
        return cell

    @property
    def reader(self) -> IndexReader:
        """Reader for expressions of the variables."""
        return IndexReader({}, [(0, count - 1) for count in self.counts])

    @property
    def is_linear(self) -> bool:
        """Whether all expressions are linear."""
        return all(self._unsolved(form) is None for form in self.forms)

    def replaced(self, var: int, value: Replacement) -> Cell:
        """Return the part of the cell in which a variable equals the replacement."""
        shift, digits = value
        first = len(self.counts)
        new = range(first, first + len(digits))
        counts = (*self.counts, *(count for _, count in digits))
        reader = IndexReader({}, [(0, count - 1) for count in counts])
        terms: dict[Term, int] = {
            Digit(k): factor for k, (factor, _) in zip(new, digits, strict=True)
        }
        values = {var: reader.normal(QuasiAffine(terms, shift))}
        forms = tuple(
            build_index_expression(form, values, reader) if var in form.unknowns else form for form
            in self.forms
        )
        position = self.live.index(var)
        live = (*self.live[:position], *new, *self.live[position + 1 :])
        units = tuple(tuple(factor * n for n in self.units[var]) for factor, _ in digits)
        return Cell(forms, counts, live, (*self.units, *units))

    def parts(self, cut: Cut) -> list[Cell]:
        """Return the cells that a cut produces."""
        var, values = cut
        return [self.replaced(var, value) for value in values]

    def cut(self) -> Cut | None:
        """Return a cut that removes a nonlinear term of the expressions; None if all are linear."""
        for form in self.forms:
            term = self._unsolved(form)
            if isinstance(term, OpaqueTerm):
                return self._bits(term)
            if term is not None:
                boundary = term.low if term.low > 1 else term.high
                assert boundary is not None
                if isinstance(term.of, QuasiAffine):
                    return self._division(term.of, boundary)
                return term.of, _digits(self.counts[term.of], boundary)
        return None

    def _unsolved(self, form: QuasiAffine) -> Term | None:
        """Return an innermost nonlinear term, or None if the form is linear."""
        found: Term | None = None
        while True:
            term = next((term for term in form.terms if not self._is_plain(term)), None)
            if term is None or term.unknown is not None:
                return term or found
            found = term
            bent = [inner for inner in _operands(term) if not all(map(self._is_plain, inner.terms))]
            if not bent:
                return found
            form = bent[0]

    def _is_plain(self, term: Term) -> bool:
        return isinstance(term, Digit) and isinstance(term.of, int) and term.low == 1 and (
            term.high is None or term.high >= self.counts[term.of]
        )

    def _division(self, form: QuasiAffine, divisor: int) -> Cut:
        """Return a cut for `x // d` and `x % d` of a linear x."""
        terms = [(term.unknown, n) for term, n in form.terms.items() if term.unknown is not None]
        if len(terms) == 1:
            return self._alone(*terms[0], form.const % divisor, divisor)
        for var, n in terms:
            period = divisor // gcd(n, divisor)
            if 1 < period < self.counts[var]:
                return var, _digits(self.counts[var], period)
        return self._each([var for var, _ in terms])

    def _alone(self, var: int, n: int, const: int, divisor: int) -> Cut:
        """Return a cut for `(n * var + const) // divisor`, with `0 <= const < divisor`."""
        count = self.counts[var]
        period = divisor // gcd(n, divisor)
        if n > 0:
            is_start, end = const < n, -(-(divisor - const) // n)
        else:
            is_start, end = const >= divisor + n, const // -n + 1
        if is_start and count > period:
            return var, _digits(count, period)
        if not 0 < end < count:
            return self._each([var])
        return var, ((0, ((1, end),)), (end, ((1, count - end),)))

    def _bits(self, part: OpaqueTerm) -> Cut:
        """Return a cut for `x ^ y`, `x & y` and `x | y` of linear x and y."""
        a, b = part.operands
        if not a.terms:
            a, b = b, a
        unknowns = a.unknowns | b.unknowns
        if a.single() is None or (b.terms and b.single() is None):
            return self._each(unknowns)
        (var,) = a.unknowns
        if not b.terms:
            width = _same_bits(b.const)
            if b.const < 0 or 2**width >= self.counts[var]:
                return self._each(unknowns)
            return var, _digits(self.counts[var], 2**width)
        (other,) = b.unknowns
        small, large = sorted((var, other), key=lambda v: self.counts[v])
        unit = 1 << (self.counts[small] - 1).bit_length()
        if unit < self.counts[large]:
            return large, _digits(self.counts[large], unit)
        return self._each([small])

    def _each(self, among: Collection[int]) -> Cut:
        """Return a cut into the single values of the variable with the fewest values.

        Raises:
            TooManyError: If the variable has more than `LIMIT` values.
        """
        var = min(sorted(among), key=lambda v: self.counts[v])
        if self.counts[var] > LIMIT:
            raise TooManyError
        return var, tuple((k, ((1, 1),)) for k in range(self.counts[var]))


def linear_cells(cell: Cell, limit: int) -> list[Cell]:
    """Partition a cell into cells on which all expressions are linear.

    Raises:
        TooManyError: If there are more than `limit` cells.
    """
    done: list[Cell] = []
    worklist = [cell]
    while worklist:
        cell = worklist.pop()
        cut = cell.cut()
        if cut is None:
            done.append(cell)
            continue
        if len(done) + len(worklist) + len(cut[1]) > limit:
            raise TooManyError
        worklist += reversed(cell.parts(cut))
    return done


def fuse_digit_pairs(cell: Cell) -> Cell:
    """Merge pairs of variables into one whose digits they are, unless a form gets more digits.

    As an example, `(200 * i + j) // 64` with `j < 200` becomes the quotient of one number.
    """
    if cell.is_linear:
        return cell
    for a in cell.live:
        for b in cell.live:
            if a != b and (joined := _join(cell, a, b)) is not None:
                return fuse_digit_pairs(joined)
    return cell


def _join(cell: Cell, high: int, low: int) -> Cell | None:
    size = cell.counts[low]
    new = len(cell.counts)
    counts = (*cell.counts, cell.counts[high] * size)
    reader = IndexReader({}, [(0, count - 1) for count in counts])
    values = {
        high: QuasiAffine({Digit(new, size): 1}), low: QuasiAffine({Digit(new, 1, size): 1}),
    }
    forms = tuple(build_index_expression(form, values, reader) for form in cell.forms)
    if sum(map(_bends, forms)) > sum(map(_bends, cell.forms)):
        return None
    live = tuple(new if v == low else v for v in cell.live if v != high)
    return Cell(forms, counts, live, (*cell.units, cell.units[low]))


def _bends(form: QuasiAffine) -> int:
    """Return the number of digits and bit operations in a form."""
    count, worklist = 0, [form]
    while worklist:
        for term in worklist.pop().terms:
            count += isinstance(term, OpaqueTerm) or term.low > 1 or term.high is not None
            worklist += _operands(term)
    return count


def _operands(term: Term) -> tuple[QuasiAffine, ...]:
    if isinstance(term, OpaqueTerm):
        return term.operands
    return (term.of,) if isinstance(term.of, QuasiAffine) else ()


def build_index_expression(
    form: QuasiAffine, values: Mapping[int, QuasiAffine], reader: IndexReader
) -> QuasiAffine:
    """Substitute sums for some variables of `form`."""
    parts = [(QuasiAffine({}, form.const), 1)]
    parts += [(_rebuilt_term(term, values, reader), n) for term, n in form.terms.items()]
    return reader.normal(QuasiAffine.added(parts))


def _rebuilt_term(
    term: Term, values: Mapping[int, QuasiAffine], reader: IndexReader
) -> QuasiAffine:
    if isinstance(term, OpaqueTerm):
        a, b = (build_index_expression(operand, values, reader) for operand in term.operands)
        return _bit_operation(term.op, a, b, reader)
    if isinstance(term.of, QuasiAffine):
        value = build_index_expression(term.of, values, reader)
    elif term.of in values:
        value = values[term.of]
    else:
        return reader.digit(term)
    value = reader.floordiv(value, term.low)
    return value if term.size is None else reader.mod(value, term.size)


def _bit_operation(op: BinOp, a: QuasiAffine, b: QuasiAffine, reader: IndexReader) -> QuasiAffine:
    """Return `a op b`, split where digits of both operands end at the same bit."""
    if not a.terms:
        a, b = b, a
    if not a.terms:
        return QuasiAffine({}, _on_numbers(op, a.const, b.const))
    for unit in _units(a, b):
        tops, rests = zip(a.split(unit), b.split(unit), strict=True)
        if (tops[0].terms or tops[1].terms) and all(reader.is_within(rest, unit) for rest in rests):
            high = _bit_operation(op, tops[0], tops[1], reader)
            low = _bit_operation(op, rests[0], rests[1], reader)
            return reader.plus(low, high, unit)
    if not b.terms and b.const > 0 and b.const & (b.const + 1) == 0 and (
        reader.is_within(a, b.const + 1)
    ):
        if op is BinOp.BITXOR:
            return a.times(-1).shifted(b.const)
        return a if op is BinOp.BITAND else b
    if not b.terms and b.const == 0:
        return QuasiAffine() if op is BinOp.BITAND else a
    result = reader.operation(op, a, b)
    assert result is not None  # every bit operation of two forms has a form
    return result


def _units(a: QuasiAffine, b: QuasiAffine) -> list[int]:
    factors = {n & -n for form in (a, b) for n in form.terms.values()}
    return sorted(factors - {1}, reverse=True)


def _on_numbers(op: BinOp, a: int, b: int) -> int:
    if op is BinOp.BITXOR:
        return a ^ b
    return a & b if op is BinOp.BITAND else a | b


def _digits(count: int, unit: int) -> tuple[Replacement, ...]:
    """Return the replacements by `unit * q + r`: all full blocks, then the partial last block."""
    n_full, remainder = divmod(count, unit)
    full: Replacement = (0, ((unit, n_full), (1, unit)))
    tail: Replacement = (n_full * unit, ((unit, 1), (1, remainder)))
    return (*((full,) if n_full else ()), *((tail,) if remainder else ()))


def _same_bits(number: int) -> int:
    """Return the number of equal lowest bits, 64 if all bits are equal."""
    flipped = ~number if number & 1 else number
    return (flipped & -flipped).bit_length() - 1 if flipped else 64
