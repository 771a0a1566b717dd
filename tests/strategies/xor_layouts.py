"""Random XOR layouts as text: exclusive ors of bits of one or several indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.strategies.draws import Draw, Draws
from tests.strategies.layouts import places


def draw_xor_layout(draw: Draw, shape: Sequence[int]) -> str:
    """Draw an injective map of `shape` with an exclusive or in some of its results."""
    draws = Draws(draw)
    names = [f"a{k}" for k in range(len(shape))]
    results = [_xor(draws, names) for _ in range(draws.number(1, 3))]
    plain = [name for name in names if draws.chance(50)]
    text = _text(names, draws.shuffled(results + plain))
    if _loses(text, shape):
        text = _text(names, draws.shuffled(results + names))
    return text


def _xor(draws: Draws, names: Sequence[str]) -> str:
    terms = [_term(draws, draws.pick(names)) for _ in range(draws.number(2, 4))]
    if draws.chance(20):
        terms.append(str(draws.number(0, 9)))
    text = " ^ ".join(f"({term})" for term in terms)
    if draws.chance(30):
        text = f"({text}) {draws.pick(('% 4', '// 2', '* 3 + 1', '>> 1', '& 6'))}"
    if draws.chance(30):
        text = f"({text}) + {draws.pick((16, 64))} * ({_term(draws, draws.pick(names))})"
    return text


def _term(draws: Draws, name: str) -> str:
    """Draw some bits, or digits of another base, of an index, shifted to another position."""
    low, width, to = draws.number(0, 3), draws.number(1, 3), draws.number(0, 3)
    shifted = draws.pick((f"{name} // {2**low}", f"({name} >> {low})"))
    forms = [
        f"{name} % {2**width}",
        f"{shifted} % {2**width} * {2**to}",
        f"{shifted} * {2**to}",
        f"({name} & {((1 << width) - 1) << low}) << {to}",
        f"{name} // {draws.pick((3, 5))} % {draws.pick((3, 6))} * {2**to}",
        f"{name} * {draws.pick((3, 1, 2))} + {draws.number(0, 3)}",
        name,
    ]
    return draws.pick(forms)


def _text(names: Sequence[str], results: Sequence[str]) -> str:
    return f"lambda {', '.join(names)}: [{', '.join(results)}]"


def _loses(text: str, shape: Sequence[int]) -> bool:
    at = np.stack(places([text], shape))
    return bool(np.unique(at, axis=1).shape[1] < at.shape[1])
