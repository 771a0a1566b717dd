"""Scripts as users of NumPy write them: functions of the module, so that only the import changes.

Each function takes the module and a size, and returns the results that a script would print.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def gaussian_elimination(np: Any, n: int) -> Any:
    """Solve a linear system by elimination with pivoting, row by row."""
    A = np.fromfunction(lambda i, j: 1.0 / (i + j + 1), (n, n)) + np.eye(n)
    b = np.arange(n, dtype=float)
    M = np.hstack([A, b.reshape(-1, 1)])
    for k in range(n):
        p = k + np.argmax(np.abs(M[k:, k]))
        if p != k:
            M[[k, p]] = M[[p, k]]
        M[k + 1:] -= np.outer(M[k + 1:, k] / M[k, k], M[k])
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (M[i, -1] - np.dot(M[i, i + 1:n], x[i + 1:])) / M[i, i]
    return x, np.linalg.norm(A @ x - b)


def power_iteration(np: Any, n: int) -> Any:
    """Find the greatest eigenvalue of a symmetric matrix."""
    A = np.cos(np.arange(n * n).reshape(n, n))
    A = (A + A.T) / 2 + n * np.eye(n)
    v = np.ones(n) / np.sqrt(n)
    old = 0.0
    for _ in range(60):
        w = A.dot(v)
        value = v.dot(w)
        v = w / np.linalg.norm(w)
        if abs(value - old) < 1e-13 * abs(value):
            break
        old = value
    return value, np.abs(v).max()


def gram_schmidt(np: Any, n: int) -> Any:
    """Orthogonalize columns."""
    A = np.sin(np.arange(n * n, dtype=np.float64).reshape((n, n)) ** 1.5)
    Q = np.zeros_like(A)
    for j in range(A.shape[1]):
        q = A[:, j].copy()
        for i in range(j):
            q -= np.dot(Q[:, i], A[:, j]) * Q[:, i]
        Q[:, j] = q / np.sqrt((q ** 2).sum())
    return np.allclose(Q.T @ Q, np.eye(n), atol=1e-6), np.round(np.trace(np.abs(Q.T @ A)), 6)


def cholesky_by_hand(np: Any, n: int) -> Any:
    """Factor a positive definite matrix."""
    B = np.tri(n) * 0.5 + np.identity(n)
    A = B @ B.T
    L = np.zeros((n, n))
    for j in range(n):
        L[j, j] = np.sqrt(A[j, j] - np.sum(L[j, :j] ** 2))
        for i in range(j + 1, n):
            L[i, j] = (A[i, j] - L[i, :j] @ L[j, :j]) / L[j, j]
    return np.abs(L - np.linalg.cholesky(A)).max() < 1e-8, L.sum(axis=0)


def lorenz(np: Any, n: int) -> Any:
    """Integrate the Lorenz system with the classical Runge-Kutta method."""
    def f(s: Any) -> Any:
        x, y, z = s
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    out = np.empty((n + 1, 3))
    out[0] = [1.0, 1.0, 1.0]
    h = 0.01
    for k in range(n):
        s = out[k]
        k1 = f(s)
        k2 = f(s + h / 2 * k1)
        k3 = f(s + h / 2 * k2)
        k4 = f(s + h * k3)
        out[k + 1] = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return out[-1], out.mean(axis=0), out.max(0), out.min(0)


def heat(np: Any, n: int) -> Any:
    """Solve the heat equation with slices."""
    u = np.zeros((n, n))
    u[n // 4:n // 2, n // 4:n // 2] = 1.0
    for _ in range(20):
        un = u.copy()
        u[1:-1, 1:-1] = un[1:-1, 1:-1] + 0.1 * (
            un[2:, 1:-1] + un[:-2, 1:-1] + un[1:-1, 2:] + un[1:-1, :-2] - 4 * un[1:-1, 1:-1])
    return u.sum(), u.max(), u[n // 2]


def life(np: Any, n: int) -> Any:
    """Play Conway's game of life with rolls."""
    board = (np.sin(np.arange(n * n) * 12.9898).reshape(n, n) * 43758.5453 % 1 > 0.6).astype(int)
    for _ in range(10):
        neighbours = sum(
            np.roll(np.roll(board, i, 0), j, 1)
            for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        board = ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(int)
    return board.sum(), board[:5].tolist()


def image_filter(np: Any, n: int) -> Any:
    """Blur an image, find edges, and equalize its histogram."""
    y, x = np.mgrid[0:n, 0:n]
    img = (127 * (1 + np.sin(x / 7.0) * np.cos(y / 11.0))).astype(np.uint8)
    kernel = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
    padded = np.pad(img.astype(float), 1, mode="edge")
    out = np.zeros(img.shape)
    for i in range(3):
        for j in range(3):
            out += kernel[i, j] * padded[i:i + n, j:j + n]
    gx, gy = np.gradient(out)
    edges = np.hypot(gx, gy)
    hist, bins = np.histogram(img.flatten(), 256, [0, 256])
    cdf = hist.cumsum()
    cdf = (cdf - cdf.min()) * 255 / (cdf.max() - cdf.min())
    equalized = np.interp(img.flatten(), bins[:-1], cdf).reshape(img.shape)
    return out.mean(), edges.max(), (edges > edges.mean()).sum(), equalized.std(), hist[:5]


def mandelbrot(np: Any, n: int) -> Any:
    """Count the iterations until points escape."""
    x = np.linspace(-2, 0.5, n)
    y = np.linspace(-1.25, 1.25, n)
    c = x[np.newaxis, :] + 1j * y[:, np.newaxis]
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, dtype=int)
    for _ in range(20):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        counts[inside] += 1
    return counts.sum(), np.bincount(counts.ravel())[:5]


def signal_spectrum(np: Any, n: int) -> Any:
    """Find the peaks of a spectrum, and filter it."""
    t = np.arange(n) / n
    x = np.sin(2 * np.pi * 50 * t) + 0.5 * np.sin(2 * np.pi * 120 * t) + 0.1 * np.cos(t * 999)
    X = np.fft.fft(x)
    freq = np.fft.fftfreq(n, d=1 / n)
    power = np.abs(X) ** 2 / n
    top = np.argsort(power[:n // 2])[::-1][:2]
    X[np.abs(freq) > 80] = 0
    low = np.fft.ifft(X).real
    window = np.hanning(51)
    smooth = np.convolve(x, window / window.sum(), mode="same")
    return freq[top], low.std(), smooth[:3], np.correlate(x[:100], x[:100])


def moving_statistics(np: Any, n: int) -> Any:
    """Compute moving averages, returns and drawdowns of prices."""
    steps = np.sin(np.arange(n) * 1.7) * 0.02 + 0.0005
    prices = 100 * np.cumprod(1 + steps)
    returns = np.diff(prices) / prices[:-1]
    window = 20
    average = np.convolve(prices, np.ones(window) / window, "valid")
    peak = np.maximum.accumulate(prices)
    drawdown = (peak - prices) / peak
    sharpe = returns.mean() / returns.std(ddof=1) * np.sqrt(252)
    log_returns = np.log(prices[1:] / prices[:-1])
    worst = np.percentile(returns, [1, 5])
    return average[-1], drawdown.max(), np.argmax(drawdown), sharpe, log_returns.sum(), worst


def black_scholes(np: Any, n: int) -> Any:
    """Price options, with an approximation of the normal distribution."""
    def cdf(x: Any) -> Any:
        k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
        poly = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (
            -1.821255978 + k * 1.330274429))))
        w = 1.0 - 1.0 / np.sqrt(2 * np.pi) * np.exp(-x * x / 2) * poly
        return np.where(x < 0, 1.0 - w, w)

    S = np.linspace(80, 120, n)
    K, r, sigma, T = 100.0, 0.02, 0.3, 1.5
    d1 = (np.log(S / K) + (r + 0.5 * sigma ** 2) * T) / (sigma * np.sqrt(T))
    d2 = d1 - sigma * np.sqrt(T)
    call = S * cdf(d1) - K * np.exp(-r * T) * cdf(d2)
    put = K * np.exp(-r * T) * cdf(-d2) - S * cdf(-d1)
    return call.mean(), put.max(), np.abs(call - put - S + K * np.exp(-r * T)).max() < 1e-9


def portfolio(np: Any, n: int) -> Any:
    """Find minimum-variance weights."""
    t = np.arange(n)[:, None] * np.array([1.0, 1.3, 1.7, 2.3])[None, :]
    R = 0.01 * np.sin(t) + 0.001 * np.arange(4)
    mu, C = R.mean(axis=0), np.cov(R, rowvar=False)
    inv = np.linalg.inv(C)
    ones = np.ones(4)
    w = inv @ ones / (ones @ inv @ ones)
    return w, float(w @ mu), np.sqrt(w @ C @ w), np.corrcoef(R.T)[0]


def binomial_tree(np: Any, n: int) -> Any:
    """Price an American option on a tree."""
    S0, K, T, r, sigma = 100.0, 105.0, 1.0, 0.03, 0.25
    dt = T / n
    u = np.exp(sigma * np.sqrt(dt))
    d = 1 / u
    p = (np.exp(r * dt) - d) / (u - d)
    prices = S0 * u ** np.arange(n, -n - 1, -2.0)
    value = np.maximum(K - prices, 0)
    for _ in range(n):
        value = np.exp(-r * dt) * (p * value[:-1] + (1 - p) * value[1:])
        prices = prices[:-1] * d
        value = np.maximum(value, K - prices)
    return float(value[0])


def least_squares(np: Any, n: int) -> Any:
    """Fit a polynomial by normal equations, by QR, and by lstsq."""
    x = np.linspace(-1, 1, n)
    y = 1 + 2 * x - 3 * x ** 2 + 0.1 * np.sin(50 * x)
    X = np.vander(x, 4, increasing=True)
    beta = np.linalg.solve(X.T @ X, X.T @ y)
    q, r = np.linalg.qr(X)
    other = np.linalg.solve(r, q.T @ y)
    third, *_ = np.linalg.lstsq(X, y, rcond=None)
    residual = y - X @ beta
    r2 = 1 - (residual ** 2).sum() / ((y - y.mean()) ** 2).sum()
    return beta, np.allclose(beta, other), np.allclose(beta, third), r2, np.polyval(beta[::-1], 0.5)


def logistic_regression(np: Any, n: int) -> Any:
    """Train a classifier by gradient descent."""
    X = np.column_stack([np.ones(n), np.sin(np.arange(n)), np.cos(np.arange(n) * 2.0)])
    y = (X[:, 1] + 0.5 * X[:, 2] > 0.1).astype(float)
    w = np.zeros(X.shape[1])
    losses = []
    for _ in range(50):
        p = 1 / (1 + np.exp(-X.dot(w)))
        w -= 0.5 * X.T.dot(p - y) / len(y)
        losses.append(-np.mean(y * np.log(p + 1e-12) + (1 - y) * np.log(1 - p + 1e-12)))
    return w, losses[0], losses[-1], np.mean((p > 0.5) == y)


def neural_network(np: Any, n: int) -> Any:
    """Train a network of two layers by hand."""
    X = np.sin(np.arange(n * 8).reshape(n, 8) * 0.37)
    target = np.argmax(X[:, :3], axis=1)
    onehot = np.eye(3)[target]
    W1 = np.cos(np.arange(8 * 16).reshape(8, 16)) * 0.3
    b1 = np.zeros((1, 16))
    W2 = np.sin(np.arange(16 * 3).reshape(16, 3)) * 0.3
    b2 = np.zeros((1, 3))
    for _ in range(20):
        h = np.maximum(0, X @ W1 + b1)
        scores = h @ W2 + b2
        e = np.exp(scores - np.max(scores, axis=1, keepdims=True))
        probs = e / e.sum(axis=1, keepdims=True)
        loss = -np.log(probs[np.arange(n), target]).mean()
        d = (probs - onehot) / n
        dW2, db2 = h.T @ d, d.sum(axis=0, keepdims=True)
        dh = d @ W2.T
        dh[h <= 0] = 0
        W1 -= 0.5 * X.T @ dh
        b1 -= 0.5 * dh.sum(axis=0, keepdims=True)
        W2 -= 0.5 * dW2
        b2 -= 0.5 * db2
    return loss, (probs.argmax(axis=1) == target).mean()


def kmeans(np: Any, n: int) -> Any:
    """Cluster points."""
    a = np.arange(n)
    points = np.stack([np.sin(a) + 3 * (a % 3), np.cos(a * 1.3) - 2 * (a % 3)], axis=1)
    centers = points[:3].copy()
    for _ in range(10):
        distances = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
        labels = np.argmin(distances, axis=1)
        for k in range(3):
            if np.any(labels == k):
                centers[k] = points[labels == k].mean(axis=0)
    return centers, np.bincount(labels, minlength=3)


def pca(np: Any, n: int) -> Any:
    """Find principal components."""
    t = np.arange(n) * 0.1
    X = np.c_[np.sin(t), 2 * np.sin(t) + 0.1 * np.cos(3 * t), np.cos(t)]
    X = (X - X.mean(0)) / X.std(0)
    values, vectors = np.linalg.eigh(X.T @ X / (n - 1))
    order = np.argsort(values)[::-1]
    values, vectors = values[order], vectors[:, order]
    _, s, _ = np.linalg.svd(X, full_matrices=False)
    scores = X @ vectors[:, :2]
    return values / values.sum(), s ** 2 / (n - 1), np.abs(scores).max(axis=0)


def nearest_neighbours(np: Any, n: int) -> Any:
    """Classify points by their neighbours."""
    a = np.arange(n)
    X = np.stack((np.sin(a * 1.1), np.cos(a * 0.7)), axis=-1)
    y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
    half = n // 2
    d = np.sqrt(((X[half:, None] - X[None, :half]) ** 2).sum(-1))
    nearest = np.argsort(d, axis=1)[:, :5]
    votes = y[:half][nearest].sum(axis=1)
    predicted = (votes > 2).astype(int)
    return np.mean(predicted == y[half:]), d.min(), np.unique(predicted, return_counts=True)


def monte_carlo_pi(np: Any, n: int) -> Any:
    """Estimate pi by a low-discrepancy sequence."""
    k = np.arange(1, n + 1)
    x, y = (k * 0.7548776662466927) % 1, (k * 0.5698402909980532) % 1
    inside = x ** 2 + y ** 2 <= 1
    estimates = 4 * np.cumsum(inside) / k
    return estimates[-1], inside.mean() * 4, np.abs(estimates[n // 2:] - np.pi).max()


def random_walk_statistics(np: Any, n: int) -> Any:
    """Describe walks by quantiles and extremes."""
    steps = np.where(np.sin(np.arange(n * 20).reshape(20, n) ** 1.3) > 0, 1, -1)
    walks = steps.cumsum(axis=1)
    hits = (np.abs(walks) >= 10).any(axis=1)
    first = (np.abs(walks[hits]) >= 10).argmax(axis=1)
    return walks.max(), walks.min(), hits.sum(), first, np.median(walks[:, -1]), walks.var(axis=1)


def nbody(np: Any, n: int) -> Any:
    """Simulate bodies that attract each other."""
    a = np.arange(n)
    pos = np.stack([np.cos(a), np.sin(a * 1.7), np.sin(a * 0.3)], axis=1)
    vel = np.zeros((n, 3))
    mass = np.ones(n)
    for _ in range(10):
        d = pos[None, :, :] - pos[:, None, :]
        r2 = (d ** 2).sum(axis=-1) + 0.01
        np.fill_diagonal(r2, 1.0)
        acc = (d * (mass[None, :] / r2 ** 1.5)[:, :, None]).sum(axis=1)
        vel += 0.01 * acc
        pos += 0.01 * vel
    return pos.mean(axis=0), 0.5 * (mass * (vel ** 2).sum(axis=1)).sum(), np.linalg.norm(pos, axis=1)


def convex_polygon(np: Any, n: int) -> Any:
    """Compute area, perimeter and centroid of a polygon, and test points."""
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    x, y = 3 * np.cos(angle), 2 * np.sin(angle)
    x2, y2 = np.roll(x, -1), np.roll(y, -1)
    cross = x * y2 - x2 * y
    area = 0.5 * np.abs(np.sum(cross))
    perimeter = np.sum(np.hypot(x2 - x, y2 - y))
    cx = ((x + x2) * cross).sum() / (6 * area)
    px, py = np.meshgrid(np.linspace(-4, 4, 30), np.linspace(-4, 4, 30))
    inside = (px.ravel() / 3) ** 2 + (py.ravel() / 2) ** 2 < 1
    R = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    rotated = np.vstack((x, y)).T @ R.T
    return area, perimeter, abs(cx) < 1e-9, inside.sum(), rotated[:2], np.degrees(angle[:3])


def page_rank(np: Any, n: int) -> Any:
    """Rank the pages of a graph."""
    i = np.arange(n)
    links = np.zeros((n, n))
    links[(i * 7 + 3) % n, i] = 1
    links[(i * 3 + 1) % n, i] = 1
    links[i // 2, i] = 1
    M = links / links.sum(axis=0)
    r = np.full(n, 1 / n)
    for _ in range(100):
        new = 0.85 * M @ r + 0.15 / n
        delta = np.abs(new - r).sum()
        r = new
        if delta < 1e-10:
            break
    order = np.argsort(-r, kind="stable")
    return r.sum(), order[:5], r[order[:5]]


def shortest_paths(np: Any, n: int) -> Any:
    """Find the shortest paths between all nodes."""
    i, j = np.indices((n, n))
    d = np.where((i * 5 + j * 3) % 7 < 2, (i + 2 * j) % 10 + 1.0, np.inf)
    np.fill_diagonal(d, 0)
    for k in range(n):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    reachable = np.isfinite(d)
    return d[reachable].max(), reachable.sum(), d[0]


def connected_components(np: Any, n: int) -> Any:
    """Label the components of a graph by its adjacency matrix."""
    adjacency = np.zeros((n, n), dtype=bool)
    for k in range(0, n - 3, 3):
        adjacency[k, k + 3] = adjacency[k + 3, k] = True
    labels = np.arange(n)
    while True:
        new = np.where(adjacency, labels[None, :], n).min(axis=1)
        new = np.minimum(labels, new)
        if np.array_equal(new, labels):
            break
        labels = new
    return len(np.unique(labels)), np.bincount(labels)[:3]


def table(np: Any, n: int) -> Any:
    """Group and summarize the rows of a table."""
    key = (np.arange(n) * 7) % 5
    value = np.sqrt(np.arange(n, dtype=float))
    groups, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    total = np.bincount(inverse, weights=value)
    mean = total / counts
    biggest = [value[key == g].max() for g in groups]
    order = np.lexsort((-value, key))
    pivot = np.zeros((5, 4))
    np.add.at(pivot, (key, np.arange(n) % 4), value)
    bins = np.digitize(value, np.linspace(0, value.max(), 5))
    return groups, counts, mean, np.array(biggest), order[:5], pivot.sum(axis=1), np.bincount(bins)


def missing_values(np: Any, n: int) -> Any:
    """Summarize data with missing values."""
    x = np.sin(np.arange(n).astype(float))
    x[::7] = np.nan
    mask = ~np.isnan(x)
    filled = np.where(mask, x, np.nanmean(x))
    x2 = x.reshape(-1, 2)
    return (np.nanmean(x), np.nanstd(x), np.nanmax(x), np.nanmin(x), np.nansum(x2, axis=0),
            filled.mean(), np.count_nonzero(mask), np.nanmedian(x), np.nan_to_num(x)[:3])


def sieve(np: Any, n: int) -> Any:
    """Find prime numbers."""
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[:2] = False
    for k in range(2, int(n ** 0.5) + 1):
        if is_prime[k]:
            is_prime[k * k::k] = False
    primes = np.nonzero(is_prime)[0]
    return len(primes), primes[-3:], np.diff(primes).max()


def newton_fractal(np: Any, n: int) -> Any:
    """Find the roots to which points converge."""
    re, im = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n))
    z = re + 1j * im + 0.001
    for _ in range(15):
        z = z - (z ** 3 - 1) / (3 * z ** 2)
    roots = np.exp(2j * np.pi * np.arange(3) / 3)
    nearest = np.argmin(np.abs(z[..., None] - roots), axis=-1)
    return np.bincount(nearest.ravel())


def dynamic_programming(np: Any, n: int) -> Any:
    """Solve a knapsack problem and compute an edit distance."""
    weight = (np.arange(20) * 7) % 11 + 1
    value = (np.arange(20) * 5) % 13 + 1
    best = np.zeros(n + 1, dtype=int)
    for w, v in zip(weight, value, strict=True):
        w = int(w)
        best[w:] = np.maximum(best[w:], best[:-w] + v)
    a, b = "kitten sitting", "sitting kitten"
    d = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    d[:, 0] = np.arange(len(a) + 1)
    d[0, :] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
    return best[-1], d[-1, -1]


def kalman(np: Any, n: int) -> Any:
    """Filter noisy positions."""
    dt = 0.1
    F = np.array([[1, dt], [0, 1]])
    H = np.array([[1.0, 0.0]])
    Q = 0.01 * np.eye(2)
    R = np.array([[0.5]])
    x, P = np.zeros((2, 1)), np.eye(2)
    track = []
    for k in range(n):
        z = np.array([[k * dt + 0.3 * np.sin(k * 12.9)]])
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ (z - H @ x)
        P = (np.eye(2) - K @ H) @ P
        track.append(x[0, 0])
    return np.array(track)[-3:], P


def markov_chain(np: Any, n: int) -> Any:
    """Find a stationary distribution in three ways."""
    P = np.abs(np.sin(np.arange(n * n).reshape(n, n))) + 0.1
    P /= P.sum(axis=1, keepdims=True)
    pi = np.ones(n) / n
    for _ in range(200):
        pi = pi @ P
    values, vectors = np.linalg.eig(P.T)
    v = vectors[:, np.argmax(values.real)].real
    far = np.linalg.matrix_power(P, 50)[0]
    return np.allclose(pi, v / v.sum()), np.allclose(far, pi), pi.max(), -(pi * np.log(pi)).sum()


def interpolation(np: Any, n: int) -> Any:
    """Interpolate by Lagrange's formula, by splines of first order, and integrate."""
    xs = np.linspace(0, np.pi, 9)
    ys = np.sin(xs)
    t = np.linspace(0, np.pi, n)
    total = np.zeros_like(t)
    for i in range(len(xs)):
        term = np.ones_like(t) * ys[i]
        for j in range(len(xs)):
            if i != j:
                term *= (t - xs[j]) / (xs[i] - xs[j])
        total += term
    linear = np.interp(t, xs, ys)
    return (np.abs(total - np.sin(t)).max() < 1e-5, np.trapezoid(linear, t), np.sum(linear) * (t[1] - t[0]),
            np.abs(np.gradient(total, t[1] - t[0])[1:-1] - np.cos(t)[1:-1]).max() < 1e-3)


def attention(np: Any, n: int) -> Any:
    """Compute attention with einsum."""
    q, k, v = (np.sin(np.arange(2 * n * 8).reshape(2, n, 8) * s) for s in (0.1, 0.2, 0.3))
    scores = np.einsum("bid,bjd->bij", q, k) / np.sqrt(q.shape[-1])
    mask = np.triu(np.ones((n, n), dtype=bool), k=1)
    scores = np.where(mask, -1e9, scores)
    w = np.exp(scores - scores.max(axis=-1, keepdims=True))
    w /= w.sum(axis=-1, keepdims=True)
    out = np.einsum("bij,bjd->bid", w, v)
    return out.mean(), out[0, -1], np.swapaxes(w, 1, 2).sum(axis=1)[0, :3]


def number_formats(np: Any, n: int) -> Any:
    """Print numbers and arrays."""
    x = np.arange(n) / 3
    text = f"{x.mean():.3f} {x[0]} {x.sum():8.2f}"
    text += " %.2f %d" % (x[1], x.argmax())  # noqa: UP031  as in older scripts
    text += str(x[:3]) + " " + format(x.max(), ".2e")
    return (text, [float(v) for v in x[:3]], [round(v, 2) for v in x[:2].tolist()],
            1 / 3 in x, len(x), x.shape, x.size, x.ndim, x.dtype.name, int(x[-1]))


def running_totals(np: Any, n: int) -> Any:
    """Update numbers in place while other names refer to them."""
    x = np.sin(np.arange(n))
    total = x[0]
    history = []
    for value in x[1:20]:
        before = total
        total += value
        history.append(total - before)
    best = x.max()
    limit = best
    limit *= 2
    return total, history, best, limit


def strided_views(np: Any, n: int) -> Any:
    """Write to views, diagonals and blocks."""
    A = np.zeros((n, n), dtype=int)
    A[::2, 1::2] = 1
    A[1::2, ::2] = 2
    row = A[0]
    row[:3] = [7, 8, 9]
    A[[1, 3], :2] = [[4, 5], [6, 7]]
    A[A == 2] *= 10
    A[-1, [0, 2]] += 5
    np.fill_diagonal(A, -1)
    B = A.reshape(-1, 2)
    B[0] = 3
    flat = A.ravel()[::5]
    return A[:4], A.sum(axis=1), np.trace(A), flat[:5], A.T[0], np.diag(A, 1)[:4]


SCRIPTS: dict[Callable[[Any, int], Any], tuple[int, int]] = {
    gaussian_elimination: (8, 120), power_iteration: (10, 1000), gram_schmidt: (6, 60),
    cholesky_by_hand: (6, 40), lorenz: (20, 400), heat: (16, 800), life: (12, 700),
    image_filter: (24, 600), mandelbrot: (12, 400), signal_spectrum: (1000, 200_000),
    moving_statistics: (300, 1_000_000), black_scholes: (100, 1_000_000),
    portfolio: (100, 500_000), binomial_tree: (10, 500), least_squares: (50, 200_000),
    logistic_regression: (50, 100_000), neural_network: (30, 20_000), kmeans: (30, 100_000),
    pca: (50, 500_000), nearest_neighbours: (20, 1500), monte_carlo_pi: (100, 1_000_000),
    random_walk_statistics: (100, 50_000), nbody: (8, 400), convex_polygon: (10, 500_000),
    page_rank: (20, 1500), shortest_paths: (9, 200), connected_components: (12, 600),
    table: (60, 500_000), missing_values: (70, 1_000_006), sieve: (100, 2_000_000),
    newton_fractal: (10, 300), dynamic_programming: (30, 50_000), kalman: (10, 300),
    markov_chain: (5, 300), interpolation: (30, 200_000), attention: (6, 300),
    number_formats: (10, 1_000_000), running_totals: (30, 1_000_000), strided_views: (10, 2000),
}
"""Scripts, with a size for tests and a size at which NumPy takes milliseconds."""
