"""Data for programs that compute with real numbers: a network with weights and beliefs, a hidden Markov model."""

from __future__ import annotations

import numpy as np

from emberlog.generate.draw import Tables, ids, need_size, once, table

LINKS = 4
"""How many links are drawn from each node of a network."""

CLASSES = 3
STATES, SIGNS = 4, 3


def network(n: int, *, seed: int = 0) -> Tables:
    """n nodes, each with up to four links to others; the weights of the links out of a node add up to 1.

    Relations: `node(x)`, `edge(x, y)` and `link(x, y, w)`; `inject(x, p)` and `carry(x, p)`, probabilities of each
    node; `prior(x, c, b)`, what is believed of each node and each of three classes, from -0.5 to 0.5, and
    `coupling(c, d, h)` between classes; `feature(x, v)`, from -1 to 1, and one `para(p)`, 0.5.
    """
    need_size("the number of nodes", n)
    rng = np.random.default_rng(seed)
    nodes = ids(n)
    keys = once(np.repeat(nodes, LINKS) * n + rng.integers(0, max(n, 1), n * LINKS))
    x, y = np.divmod(keys, max(n, 1))
    x, y = x[x != y], y[x != y]
    degree = np.bincount(x, minlength=n).astype(np.float64)
    c, d = np.divmod(ids(CLASSES * CLASSES), CLASSES)
    return {
        "node": table(x=nodes),
        "edge": table(x=x, y=y),
        "link": table(x=x, y=y, w=1.0 / degree[x]),
        "inject": table(x=nodes, p=rng.uniform(0.1, 0.9, n)),
        "carry": table(x=nodes, p=rng.uniform(0.1, 0.9, n)),
        "prior": table(x=np.repeat(nodes, CLASSES), c=np.tile(ids(CLASSES), n), b=rng.uniform(-0.5, 0.5, n * CLASSES)),
        "coupling": table(c=c, d=d, h=np.where(c == d, 0.6, -0.2)),
        "feature": table(x=nodes, v=rng.uniform(-1.0, 1.0, n)),
        "para": table(p=np.array([0.5])),
    }


def hmm(n: int, *, seed: int = 0) -> Tables:
    """A hidden Markov model with four states that show three signs, and n signs that were seen.

    Relations: `obs(t, o)`, the sign seen at each time from 0; probabilities `start(y, p)` of states at time 0,
    `t(x, y, p)` of steps between states and `e(y, o, p)` of signs in states.
    """
    need_size("the number of signs", n)
    rng = np.random.default_rng(seed)
    x, y = np.divmod(ids(STATES * STATES), STATES)
    state, sign = np.divmod(ids(STATES * SIGNS), SIGNS)
    return {
        "obs": table(t=ids(n), o=rng.integers(0, SIGNS, n)),
        "start": table(y=ids(STATES), p=rng.dirichlet(np.ones(STATES))),
        "t": table(x=x, y=y, p=rng.dirichlet(np.ones(STATES), STATES).ravel()),
        "e": table(y=state, o=sign, p=rng.dirichlet(np.ones(SIGNS), STATES).ravel()),
    }
