"""Data sets of program analyses: what a compiler hands to them, drawn at random in the proportions of real programs.

Numbers are ids from 0 for each kind of thing. Rows are distinct.
"""

from __future__ import annotations

import numpy as np

from emberlog.generate.draw import Ints, Tables, ids, names, need_size, table

FIELDS, FUNCTION = 16, 32  # fields of objects; variables of a function
KINDS_OF_BRACKETS = 4
ROLES = 30


def _rows(*columns: Ints) -> tuple[Ints, ...]:
    """The different rows."""
    return tuple(np.unique(np.stack(columns, axis=1), axis=0).T) if len(columns[0]) else columns


def _near(rng: np.random.Generator, one: Ints, n: int, width: int) -> Ints:
    """For each number another one of the same stretch of `width`."""
    first = one - one % width
    found: Ints = first + (rng.random(len(one)) * (np.minimum(first + width, n) - first)).astype(np.int64)
    return found


def ontology(n: int, *, seed: int = 0) -> Tables:
    """An ontology of n concepts and 30 roles, in the shape of the rules by which Galen's is completed.

    Relations: `isa(x, y)`, `some(x, role, y)`, `chain(role, role)`, `subrole(role, role)`, `both(x, y, z)` (who is x
    and y is z) and `has(y, role, z)` (who has the role towards a y is z).
    """
    need_size("the number of concepts", n)
    rng = np.random.default_rng(seed)

    def concepts(count: int) -> Ints:
        return rng.integers(0, max(n, 1), count if n else 0)

    def roles(count: int) -> Ints:
        return rng.integers(0, ROLES, count if n else 0)

    many, few = 3 * n // 4, n // 2
    isa = _rows(concepts(many), concepts(many) // 4)
    some = _rows(concepts(many), roles(many), concepts(many))
    chain, subrole = _rows(roles(38), roles(38)), _rows(roles(25), roles(25))
    both = _rows(concepts(few), concepts(few), concepts(few))
    has = _rows(concepts(few // 8), roles(few // 8), concepts(few // 8))
    return {
        "isa": table(x=isa[0], y=isa[1]),
        "some": table(x=some[0], role=some[1], y=some[2]),
        "chain": table(one=chain[0], other=chain[1]),
        "subrole": table(one=subrole[0], other=subrole[1]),
        "both": table(x=both[0], y=both[1], z=both[2]),
        "has": table(y=has[0], role=has[1], z=has[2]),
    }


def objects(n: int, *, seed: int = 0) -> Tables:
    """A program of objects with n variables, in methods of 32 that touch their own: what a call graph is made from.

    Relations: `alloc(v, o, m)` (method m has `v = new o`), `class(o, c)`, `move(v, w)`, `load(v, b, f)` for `v = b.f`,
    `store(b, f, w)` for `b.f = w`, `invoke(i, b, s, m)` (method m calls signature s on b), `lookup(c, s, m)`,
    `this(m, v)`, `argument(i, v)`, `formal(m, v)`, `outcome(i, v)`, `returned(m, v)` and `main(m)`.
    """
    need_size("the number of variables", n)
    rng = np.random.default_rng(seed)
    methods = max(-(-n // FUNCTION), 1)
    classes, signatures = max(methods // 8, 1), max(methods // 16, 1)

    def draw(count: int, *, near: int) -> list[Ints]:
        first = rng.integers(0, max(n, 1), count if n else 0)
        return [first, *(_near(rng, first, n, FUNCTION) for _ in range(near))]

    alloc, (move, moved) = draw(n // 4, near=0)[0], draw(n, near=1)
    (load, based), (base, stored) = draw(n // 4, near=1), draw(n // 4, near=1)
    call, given, got = draw(n // 8, near=2)
    sites, method = ids(len(call)), ids(methods if n else 0)
    last = np.minimum(method * FUNCTION + FUNCTION - 1, max(n - 1, 0))
    loads = _rows(load, based, rng.integers(0, FIELDS, len(load)))
    stores = _rows(base, rng.integers(0, FIELDS, len(base)), stored)
    lookup = _rows(np.repeat(ids(classes), signatures), np.tile(ids(signatures), classes))
    return {
        "alloc": table(v=alloc, o=ids(len(alloc)), m=alloc // FUNCTION),
        "class": table(o=ids(len(alloc)), c=rng.integers(0, classes, len(alloc))),
        "move": table(**dict(zip("vw", _rows(move, moved), strict=True))),
        "load": table(**dict(zip("vbf", loads, strict=True))),
        "store": table(**dict(zip("bfw", stores, strict=True))),
        "invoke": table(i=sites, b=call, s=rng.integers(0, signatures, len(call)), m=call // FUNCTION),
        "lookup": table(c=lookup[0], s=lookup[1], m=rng.integers(0, methods, len(lookup[0]))),
        "this": table(m=method, v=method * FUNCTION),
        "argument": table(i=sites, v=given),
        "formal": table(m=method, v=np.minimum(method * FUNCTION + 1, last)),
        "outcome": table(i=sites, v=got),
        "returned": table(m=method, v=last),
        "main": table(m=method[: max(methods // 10, 1)]),
    }


def aliases(n: int, *, seed: int = 0) -> Tables:
    """Assignments and dereferences of n expressions, those of a function of 32 among themselves, for flows of values.

    Relations: `assign(x, y)` for `x = y`, `dereference(p, x)` where x is `*p`.
    """
    need_size("the number of expressions", n)
    rng = np.random.default_rng(seed)
    to = rng.integers(0, max(n, 1), n)
    pointer = rng.integers(0, max(n, 1), n // 3)
    assign, dereference = _rows(to, _near(rng, to, n, FUNCTION)), _rows(pointer, _near(rng, pointer, n, FUNCTION))
    return {
        "assign": table(x=assign[0], y=assign[1]),
        "dereference": table(p=dereference[0], x=dereference[1]),
    }


def flow(n: int, *, seed: int = 0) -> Tables:
    """A control-flow graph of n points that leads onwards, with a few ways back, and where values are null.

    Relations: `arc(p, q)`, `nullarc(p, q)`.
    """
    need_size("the number of points", n)
    rng = np.random.default_rng(seed)
    here = np.repeat(ids(n), 2)
    there = here + rng.integers(1, 9, len(here))
    back = rng.random(len(here)) < 0.01
    there = np.where(back, np.maximum(here - rng.integers(0, 50, len(here)), 0), there)
    arc = _rows(here[there < n], there[there < n])
    at = rng.integers(0, max(n - 1, 1), n // 20)
    nulls = _rows(at, at + 1) if n > 1 else (ids(0), ids(0))
    return {"arc": table(p=arc[0], q=arc[1]), "nullarc": table(p=nulls[0], q=nulls[1])}


def brackets(n: int, *, seed: int = 0) -> Tables:
    """Calls and returns between n points as brackets of 4 kinds: a way is one if what it opens, it closes.

    Relations: `opens(x, kind, y)`, `closes(x, kind, y)`.
    """
    need_size("the number of points", n)
    rng = np.random.default_rng(seed)

    def edges() -> tuple[Ints, ...]:
        x = rng.integers(0, max(n, 1), n)
        return _rows(x, rng.integers(0, KINDS_OF_BRACKETS, n), _near(rng, x, n, 128))

    opens, closes = edges(), edges()
    return {
        "opens": table(x=opens[0], kind=opens[1], y=opens[2]),
        "closes": table(x=closes[0], kind=closes[1], y=closes[2]),
    }


def edits(n: int, *, seed: int = 0) -> Tables:
    """The edits of a text that many write: n characters, each inserted after another one, some of them removed later.

    Relations: `insert(id, parent)` (0 is the beginning; most are typed one after the other), `remove(id)`.
    """
    need_size("the number of characters", n)
    rng = np.random.default_rng(seed)
    new = ids(n) + 1
    typed = rng.random(n) < 0.9
    parent = np.where(typed, new - 1, (rng.random(n) * new).astype(np.int64))
    return {"insert": table(id=new, parent=parent), "remove": table(id=new[rng.random(n) < 0.1])}


def loans(n: int, *, seed: int = 0) -> Tables:
    """The borrows of functions with n points in all, in the shape that Rust's borrow checker Polonius reads.

    Each 64 points are a function with 12 origins and 8 loans. Relations: `edge(p, q)`, `outlives(o, other, p)`,
    `issued(o, loan, p)`, `live(o, p)`, `killed(loan, p)`, `invalidated(loan, p)`.
    """
    need_size("the number of points", n)
    rng = np.random.default_rng(seed)
    points = ids(n)
    jumps = points[::9]
    edge = _rows(np.concatenate([points[:-1], jumps]), np.concatenate([points[1:], _near(rng, jumps, n, 64)]))
    same = edge[0] // 64 == edge[1] // 64

    def origin(p: Ints) -> Ints:
        return p // 64 * 12 + rng.integers(0, 12, len(p))

    def loan(p: Ints) -> Ints:
        return p // 64 * 8 + rng.integers(0, 8, len(p))

    some, few, alive = points[::3], points[::5], np.repeat(points, 20)
    outlives = _rows(origin(some), origin(some), some)
    issued, live = _rows(origin(few), loan(few), few), _rows(origin(alive), alive)
    killed, invalidated = _rows(loan(points[::16]), points[::16]), _rows(loan(points[::8]), points[::8])
    return {
        "edge": table(p=edge[0][same], q=edge[1][same]),
        "outlives": table(o=outlives[0], other=outlives[1], p=outlives[2]),
        "issued": table(o=issued[0], loan=issued[1], p=issued[2]),
        "live": table(o=live[0], p=live[1]),
        "killed": table(loan=killed[0], p=killed[1]),
        "invalidated": table(loan=invalidated[0], p=invalidated[1]),
    }


def modules(n: int, *, seed: int = 0) -> Tables:
    """n modules, by their names, that define names, import others and hand on names under other ones.

    Relations, of texts: `defines(module, name, definition)`, `imports(module, other)`, `renames(module, name, other,
    old)`.
    """
    need_size("the number of modules", n)
    rng = np.random.default_rng(seed)

    def drawn(count: int) -> Ints:
        return rng.integers(0, max(n, 1), count if n else 0)

    module = drawn(2 * n)
    defines = _rows(module, rng.integers(0, 200, len(module)), ids(len(module)))
    imports = _rows(drawn(n), drawn(n))
    renames = _rows(drawn(n), rng.integers(0, 200, n), drawn(n), rng.integers(0, 200, n))
    return {
        "defines": table(
            module=names("module", defines[0]), name=names("name", defines[1]), definition=names("line", defines[2])
        ),
        "imports": table(module=names("module", imports[0]), other=names("module", imports[1])),
        "renames": table(
            module=names("module", renames[0]),
            name=names("name", renames[1]),
            other=names("module", renames[2]),
            old=names("name", renames[3]),
        ),
    }
