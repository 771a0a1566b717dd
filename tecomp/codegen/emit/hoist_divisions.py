"""Hoist and share integer quotients and remainders of indices.

What a loop over several axes at once divides by their extents stays the same in the loops inside
of it, and is needed for each access. LLVM finds that out with passes that take more time than all
others, and divisions are what processors are slow at. Divisors that are numbers are left alone:
they become a multiplication or a shift, and what follows from them is seen where they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Binary, BinOp, Const, Expr, Var
from tecomp.ir.nodes.stmt import For, Let, OutsideCall, PrimFunc, Stmt
from tecomp.ir.traversal.analyses import Numbers
from tecomp.ir.traversal.rewrite import Task, bottom_up, children, rebuild, run, walk

_NAMES = {BinOp.FLOORDIV: "quotient", BinOp.MOD: "rest"}


def name_quotients(func: PrimFunc) -> PrimFunc:
    """The same function, in which loops begin with the quotients that are the same inside of them.

    A division by 0 gives 0, so that one can be done where it is not needed.
    """
    divided = [node for node in walk(func.body) if _is_division(node)]
    if not divided:
        return func
    return replace(func, body=run(_named(_Names(), func.body)))


def _is_division(node: Any) -> bool:
    return (
        isinstance(node, Binary) and node.op in _NAMES and node.dtype == INT64
        and not isinstance(node.b, Const)
    )


@dataclass
class _Scope:
    """Where a variable has a value.

    Attributes:
        var: the variable.
        values: what its body begins with: names and their values, in order.
    """

    var: Var
    values: dict[Var, Expr] = field(default_factory=dict)


@dataclass
class _Names:
    """The names that are in scope.

    Attributes:
        scopes: of the loops around, outer first.
        depths: of variables that are bound in them: how many of the scopes are around.
        named: the names of quotients, by their numbers; that of an ended scope is not in use.
    """

    scopes: list[_Scope] = field(default_factory=list)
    depths: dict[Var, int] = field(default_factory=dict)
    named: dict[int, Var] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=Numbers)

    def rule(self, node: Any) -> Expr | None:
        """The name of a quotient of variables, as it is after its parts have theirs."""
        if not _is_division(node):
            return None
        depth = self._depth(node)
        if depth is None or depth == 0:
            return None
        number = self.numbers.of(node)
        if number not in self.named:
            var = Var(_NAMES[node.op], INT64)
            self.named[number] = var
            self.depths[var] = depth
            self.scopes[depth - 1].values[var] = node
        return self.named[number]

    def inside(self, expr: Expr) -> Expr:
        """An expression with names for its quotients."""
        return bottom_up(expr, self.rule)

    def _depth(self, root: Expr) -> int | None:
        """How many loops are around the last variable that a value depends on.

        None where it depends on more than variables.
        """
        depth = 0
        for node in walk(root):
            if isinstance(node, Var):
                depth = max(depth, self.depths.get(node, 0))
            elif not isinstance(node, Binary | Const):
                return None
        return depth

    def enter(self, var: Var, value: Expr | None) -> None:
        """From here on `var` has its value."""
        self.scopes.append(_Scope(var))
        self.depths[var] = len(self.scopes)
        if value is not None and _is_division(value):
            self.named.setdefault(self.numbers.of(value), var)

    def leave(self, body: Stmt) -> Stmt:
        """`body`, the end of the scope, after what is named in it."""
        scope = self.scopes.pop()
        gone = {scope.var, *scope.values}
        self.named = {n: var for n, var in self.named.items() if var not in gone}
        for var, value in reversed(scope.values.items()):
            body = Let(var, value, body)
        return body


def _named(names: _Names, node: Stmt) -> Task:
    if isinstance(node, OutsideCall):
        return node
    if isinstance(node, For | Let):
        return (yield from _binding(names, node))
    done: dict[int, Any] = {}
    for child in children(node):
        done[id(child)] = (yield _named(names, child)) if isinstance(child, Stmt) else (
            names.inside(child))
    return rebuild(node, _of(done))


def _binding(names: _Names, node: For | Let) -> Task:
    """A statement that binds a variable, in whose body what depends on it is named."""
    (var,), own = node.bound(), node.value if isinstance(node, Let) else None
    done: dict[int, Any] = {}
    for value in (child for child in children(node) if isinstance(child, Expr)):
        # A quotient that has a name already needs no other.
        done[id(value)] = rebuild(value, names.inside) if value is own and _is_division(own) else (
            names.inside(value))
    names.enter(var, None if own is None else done[id(own)])
    inner = yield _named(names, node.body)
    done[id(node.body)] = names.leave(inner)
    return rebuild(node, _of(done))


def _of(done: dict[int, Any]) -> Callable[[Any], Any]:
    return lambda child: done.get(id(child), child)
