"""Programs on arrays of a team in NumPy style, with the same results as NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tests.numerics import assert_close

TEAM = dist.world()


def heat(u: Any, steps: int) -> Any:
    """Replace inner points by the mean of their neighbours; the border is constant."""
    for _ in range(steps):
        u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25
    return u


def waves(array: Any, u: Any, steps: int) -> Any:
    """Solve the wave equation on a torus."""
    before = u
    for _ in range(steps):
        neighbors = sum(array.roll(u, shift, axis=axis) for shift in (1, -1) for axis in (0, 1))
        u, before = 2 * u - before + 0.1 * (neighbors - 4 * u), u
    return u


def ridge(array: Any, x: Any, y: Any, identity: Any, weight: float) -> Any:
    """Return the coefficients of a ridge regression on standardized columns."""
    x = (x - array.mean(x, axis=0)) / array.std(x, axis=0)
    return array.linalg.solve(x.T @ x + weight * identity, x.T @ (y - array.mean(y)))


def means(array: Any, points: Any, centers: Any, steps: int) -> Any:
    """Return the centers of k-means."""
    for _ in range(steps):
        off = array.sum((points[:, None, :] - centers[None, :, :]) ** 2, axis=2)
        membership = array.argmin(off, axis=1)[:, None] == array.arange(3, **of(points))[None, :]
        membership = array.astype(membership, array.float64)
        centers = (membership.T @ points) / array.sum(membership, axis=0)[:, None]
    return centers


def shallow_water(array: Any, steps: int, height: Any, u: Any, v: Any) -> Any:
    """Solve the linear shallow-water equations on a torus."""

    def slope(x: Any, axis: int) -> Any:
        return 0.5 * (array.roll(x, -1, axis=axis) - array.roll(x, 1, axis=axis))

    for _ in range(steps):
        height, u, v = (
            height - 0.01 * height * (slope(u, 0) + slope(v, 1)),
            u - 0.0981 * slope(height, 0), v - 0.0981 * slope(height, 1),
        )
    return height + u + v


def prices(array: Any, spot: Any, strike: Any, years: Any) -> Any:
    """Compute Black-Scholes prices of call options, with a polynomial normal distribution."""

    def normal(z: Any) -> Any:
        k = 1 / (1 + 0.2316419 * array.abs(z))
        tail = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (
            -1.821255978 + k * 1.330274429))))
        tail = tail * array.exp(-z * z / 2) * 0.3989422804014327
        return array.where(z > 0, 1 - tail, tail)

    width = 0.3 * array.sqrt(years)
    d1 = (array.log(spot / strike) + 0.065 * years) / width
    return spot * normal(d1) - strike * array.exp(-0.02 * years) * normal(d1 - width)


def transposed(array: Any, x: Any, steps: int) -> Any:
    """Transpose repeatedly, with an operation that also reads the first element."""
    for _ in range(steps):
        x = array.permute_dims(x, (1, 0)) * 1.0 + x[:1, :1]
    return x


def rambo(array: Any, random: Any, energy: float) -> Any:
    """Generate momenta of massless particles at rest in total, uniform in phase space.

    Source:
        Kleiss, Stirling and Ellis, "A new Monte Carlo treatment of multiparticle phase space at
        high energies", 1986.
    """
    cosine, angle = 2 * random[:, :, 0] - 1, 6.283185307179586 * random[:, :, 1]
    size = -array.log(random[:, :, 2] * random[:, :, 3])
    sine = array.sqrt(1 - cosine * cosine)
    parts = [sine * array.sin(angle), sine * array.cos(angle), cosine]
    momenta = [size * part for part in parts]
    total = [array.sum(part, axis=1, keepdims=True) for part in momenta]
    whole = array.sum(size, axis=1, keepdims=True)
    mass = array.sqrt(whole * whole - total[0] ** 2 - total[1] ** 2 - total[2] ** 2)
    boost = [-part / mass for part in total]
    gamma = whole / mass
    along = boost[0] * momenta[0] + boost[1] * momenta[1] + boost[2] * momenta[2]
    scale = energy / mass
    moved = [scale * (p + b * (size + along / (1 + gamma)))
             for p, b in zip(momenta, boost, strict=True)]
    return array.stack([scale * (gamma * size + along), *moved], axis=2)


def principal(array: Any, x: Any) -> Any:
    """Return the variances along the principal components of a table, from its covariance."""
    x = x - array.mean(x, axis=0)
    return array.linalg.eigh(x.T @ x / (x.shape[0] - 1))[0]


def gradients(array: Any, a: Any, b: Any, steps: int) -> Any:
    """Solve a linear system by conjugate gradients."""
    x, rest = b * 0, b
    along, square = rest, array.sum(rest * rest)
    for _ in range(steps):
        image = a @ along
        factor = square / array.sum(along * image)
        x, rest = x + factor * along, rest - factor * image
        square, before = array.sum(rest * rest), square
        along = rest + (square / before) * along
    return x


def logistic_loss(w: Any, x: Any, y: Any) -> Any:
    """Return the loss of a logistic regression."""
    return xp.mean(xp.log1p(xp.exp(x @ w)) - y * (x @ w))


def logistic_slopes(w: Any, x: Any, y: Any) -> Any:
    """Return the gradient of the loss in closed form."""
    return x.T @ (1 / (1 + np.exp(-(x @ w))) - y) / len(y)


def of(points: Any) -> dict[str, Any]:
    """Return the team of an array as a keyword argument."""
    return {"team": points.team} if isinstance(points, xp.Array) else {}


def together(data: Any, **placed: Any) -> Any:
    return xp.asarray(data, team=TEAM, **placed)


xp.statistics.counters.gathered.clear()
random = np.random.default_rng(0)
field = random.uniform(size=(23, 17))
assert_close(heat(together(field), 8), heat(field.copy(), 8), rtol=1e-13, magnitude=1.0)
assert_close(waves(xp, together(field), 8), waves(np, field, 8), rtol=1e-12, magnitude=1.0)
labels, replicated = field[:, 0], together(field[0, 1:], placements=[dist.Replicate()])
for transformed in (xp.grad(logistic_loss), xp.jit(xp.grad(logistic_loss))):
    assert_close(
        transformed(replicated, together(field[:, 1:]), together(labels)),
        logistic_slopes(field[0, 1:], field[:, 1:], labels), rtol=1e-12, magnitude=1.0)

table, target = random.normal(size=(101, 5)), random.normal(size=101)
found = ridge(xp, together(table), together(target), xp.eye(5, team=TEAM), 0.1)
assert_close(found, ridge(np, table, target, np.eye(5), 0.1), rtol=1e-11,
             magnitude=np.abs(target).max())
first = together(table[:3], placements=[dist.Replicate()])
assert_close(
    means(xp, together(table), first, 5), means(np, table, table[:3], 5), rtol=1e-12,
    magnitude=np.abs(table).max())

fields = random.uniform(1, 2, size=(3, 22, 13))
assert_close(
    shallow_water(xp, 6, *map(together, fields)), shallow_water(np, 6, *fields), rtol=1e-12)
options = random.uniform(80, 120, 103), random.uniform(80, 120, 103), random.uniform(0.5, 2, 103)
assert_close(
    prices(xp, *map(together, options)), prices(np, *options), rtol=1e-9, atol=1e-9)
assert_close(
    transposed(xp, together(field), 3), transposed(np, field, 3), rtol=1e-13, magnitude=1.0)
points = random.uniform(size=(41, 4, 4))
events = rambo(xp, together(points), 13.0)
assert_close(events, rambo(np, points, 13.0), rtol=1e-11, atol=1e-11)
balance = np.asarray(xp.sum(events, axis=1))
assert_close(balance, np.tile([13.0, 0, 0, 0], (41, 1)), atol=1e-11)
assert_close(
    principal(xp, together(table)), np.linalg.eigvalsh(np.cov(table.T)), rtol=1e-11,
    magnitude=np.linalg.norm(np.cov(table.T)))
system = random.normal(size=(40, 40))
system = system @ system.T + 40 * np.eye(40)
right = random.normal(size=40)
assert_close(
    gradients(xp, together(system), together(right), 12), gradients(np, system, right, 12),
    rtol=1e-9, magnitude=np.abs(np.linalg.solve(system, right)).max())
assert_close(
    gradients(xp, together(system), together(right), 40), np.linalg.solve(system, right), rtol=1e-8,
    magnitude=np.abs(np.linalg.solve(system, right)).max())
assert set(xp.statistics.counters.gathered) <= {"values", "numpy.linalg.solve", "numpy.linalg.eigh"}
if TEAM.rank == 0:
    print("as with NumPy")
