"""Programs with a goal, and what one would write by hand to derive no more than the goal asks for."""

from __future__ import annotations

from dataclasses import dataclass

LEFT = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."
RIGHT = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- arc(X,Z), tc(Z,Y)."
DOUBLING = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), tc(Z,Y)."
FORWARD = "r(Y) <- arc(90,Y). r(Y) <- r(X), arc(X,Y). a(X,Y) <- r(Y), X = 90."
BACKWARD = "r(X) <- arc(X,9). r(X) <- r(Y), arc(X,Y). a(X,Y) <- r(X), Y = 9."
LISTED = "a(X,Y) <- wanted(X), arc(X,Y). a(X,Y) <- a(X,Z), arc(Z,Y)."
SAME = "sg(X,Y) <- arc(P,X), arc(P,Y), X != Y. sg(X,Y) <- arc(A,X), sg(A,B), arc(B,Y)."
DISTANCES = "d(X,Y,min<D>) <- w(X,Y,D). d(X,Y,min<D>) <- d(X,Z,C), w(Z,Y,V), D = C + V."
TURNS = "odd(X,Y) <- arc(X,Y). odd(X,Y) <- arc(X,Z), even(Z,Y). even(X,Y) <- arc(X,Z), odd(Z,Y)."


@dataclass(frozen=True)
class Example:
    """A program, a goal, and the same by hand with its answer in `a`."""

    name: str
    program: str
    goal: str
    by_hand: str


EXAMPLES = (
    Example("left-linear by the first column", LEFT, "tc(90,Y)", FORWARD),
    Example("left-linear by the second column", LEFT, "tc(X,9)", BACKWARD),
    Example("right-linear by the first column", RIGHT, "tc(90,Y)", FORWARD),
    Example("right-linear by the second column", RIGHT, "tc(X,9)", BACKWARD),
    Example("doubling by the first column", DOUBLING, "tc(90,Y)", FORWARD),
    Example("doubling by the second column", DOUBLING, "tc(X,9)", BACKWARD),
    Example("both columns", RIGHT, "tc(90,95)", FORWARD),
    Example("a relation as the list", LEFT, "tc(X,Y), wanted(X)", LISTED),
    Example("a relation as the list, turned", RIGHT, "tc(X,Y), wanted(X)", LISTED),
    Example("constants as the list", DOUBLING, "tc(X,Y), (X = 90; X = 95)", LISTED),
    Example(
        "a rule with a constant",
        RIGHT + "q(Y) <- tc(90,Z), arc(Z,Y).",
        "q(Y)",
        "r(Y) <- arc(90,Y). r(Y) <- r(X), arc(X,Y). a(Y) <- r(Z), arc(Z,Y).",
    ),
    Example(
        "predicates that read each other",
        TURNS,
        "even(90,Y)",
        "o(Y) <- arc(90,Y). e(Y) <- o(X), arc(X,Y). o(Y) <- e(X), arc(X,Y). a(X,Y) <- e(Y), X = 90.",
    ),
    Example(
        "the same generation",
        SAME,
        "sg(6,Y)",
        "m(6). m(A) <- m(X), arc(A,X). g(X,Y) <- m(X), arc(P,X), arc(P,Y), X != Y."
        "g(X,Y) <- m(X), arc(A,X), g(A,B), arc(B,Y). a(X,Y) <- g(X,Y), X = 6.",
    ),
    Example(
        "shortest distances from a node",
        DISTANCES,
        "d(90,Y,D)",
        "s(Y,min<D>) <- w(90,Y,D). s(Y,min<D>) <- s(Z,C), w(Z,Y,V), D = C + V. a(X,Y,D) <- s(Y,D), X = 90.",
    ),
    Example(
        "shortest distances to a node",
        DISTANCES.replace("d(X,Z,C), w(Z,Y,V)", "w(X,Z,V), d(Z,Y,C)"),
        "d(X,9,D)",
        "s(X,min<D>) <- w(X,9,D). s(X,min<D>) <- w(X,Z,V), s(Z,C), D = C + V. a(X,Y,D) <- s(X,D), Y = 9.",
    ),
    Example(
        "a count of each group",
        RIGHT + "n(X,count<Y>) <- tc(X,Y).",
        "n(90,C)",
        "r(Y) <- arc(90,Y). r(Y) <- r(X), arc(X,Y). a(X,count<Y>) <- r(Y), X = 90.",
    ),
    Example(
        "negation",
        LEFT + "n(X) <- arc(X,_). far(X,Y) <- n(X), n(Y), !tc(X,Y).",
        "far(90,Y)",
        "r(Y) <- arc(90,Y). r(Y) <- r(X), arc(X,Y). n(X) <- arc(X,_). a(X,Y) <- n(Y), !r(Y), X = 90.",
    ),
    Example(
        "a body aggregate",
        LEFT + "n(X,C) <- arc(X,_), C = count : { tc(X,_) }.",
        "n(90,C)",
        "r(Y) <- arc(90,Y). r(Y) <- r(X), arc(X,Y). a(X,C) <- X = 90, C = count : { r(_) }.",
    ),
    Example(
        "a closure over a join",
        "hop(X,Y) <- arc(X,Z), arc(Z,Y). tc(X,Y) <- hop(X,Y). tc(X,Y) <- tc(X,Z), hop(Z,Y).",
        "tc(90,Y)",
        "hop(X,Y) <- arc(X,Z), arc(Z,Y). r(Y) <- hop(90,Y). r(Y) <- r(X), hop(X,Y). a(X,Y) <- r(Y), X = 90.",
    ),
    Example(
        "a closure over a closure",
        RIGHT + "up(X,Y) <- tc(X,Y), w(X,Y,_). up(X,Y) <- up(X,Z), tc(Z,Y).",
        "up(90,Y)",
        "r(Y) <- arc(90,Y). r(Y) <- r(X), arc(X,Y). u(Y) <- r(Y), w(90,Y,_)."
        "v(X,X) <- u(X). v(X,Z) <- v(X,Y), arc(Y,Z). u(Y) <- v(_,Y). a(X,Y) <- u(Y), X = 90.",
    ),
)
