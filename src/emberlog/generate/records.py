"""Data sets that describe something: parts, members, people, companies, accounts, permissions, pointers.

Identifiers are numbers from 0, or symbols such as `user-000042` where a docstring says so. Rows are distinct.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from emberlog.generate.draw import Ints, Tables, distinct, ids, names, need_size, once, table

MEMBERS = 150_000
SALES = 1_500_000
TREES = 10
LARGEST_SALE = 10_000
BONUS_FROM = (0, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 10_000_000)
NO_BOUND = 2**62


def bom(n: int, *, seed: int = 0) -> Tables:
    """A bill of materials: a tree of n parts, the root 0 the final product.

    Grown in levels: an inner part has 5 to 10 subparts, each of them a leaf with a probability that every inner part
    draws from 20 to 60 %. The growth stops at n parts, so one inner part may have fewer subparts; what is left to grow
    then is a leaf too.

    Relations: `assbl(part, subpart)` and `basic(part, days)` for every leaf (days in [1, 100]), `uses(part, subpart,
    quantity)` (1 to 4) and `price(part, cost)` for every leaf (cost in [1, 100]).
    """
    need_size("the number of parts", n)
    rng = np.random.default_rng(seed)
    parent = np.zeros(max(n, 1), np.int64)
    level, parts = ids(min(n, 1)), min(n, 1)
    while parts < n:
        children = rng.integers(5, 11, len(level))
        chance = np.repeat(rng.uniform(0.2, 0.6, len(level)), children)
        above = np.repeat(level, children)[: n - parts]
        parent[parts : parts + len(above)] = above
        inner = rng.random(len(above)) >= chance[: len(above)]
        inner[0] = True  # the tree must not die out
        level = parts + np.flatnonzero(inner)
        parts += len(above)
    sub, above = ids(n)[1:], parent[1:n]
    is_leaf = np.ones(n, np.bool_)
    is_leaf[above] = False
    leaves = np.flatnonzero(is_leaf)
    return {
        "assbl": table(part=above, subpart=sub),
        "basic": table(part=leaves, days=rng.integers(1, 101, len(leaves))),
        "uses": table(part=above, subpart=sub, quantity=rng.integers(1, 5, len(sub))),
        "price": table(part=leaves, cost=rng.integers(1, 101, len(leaves))),
    }


def mlm(scale: float, *, seed: int = 0) -> Tables:
    """A multi-level marketing network at a scale factor: 150,000 members and 1,500,000 sales times `scale`.

    The members form ten random recursive trees (a newcomer is sponsored by any earlier member of its tree).

    Relations: `sponsor(m, newcomer)`; `sales(m, amount, profit)` in whole dollars, no two sales of a member with the
    same amount; `schedule(low, high, rate)`, twelve rows that part all totals from 0 on: the share of a total in
    [low, high) that is paid as bonus.
    """
    need_size("the scale factor", scale)
    rng = np.random.default_rng(seed)
    members, wanted = round(MEMBERS * scale), round(SALES * scale)
    newcomer = ids(members)[TREES:]
    sponsor = rng.integers(0, newcomer // TREES) * TREES + newcomer % TREES if len(newcomer) else newcomer
    keys = distinct(lambda count: rng.integers(0, max(members, 1) * LARGEST_SALE, count), wanted if members else 0, rng)
    member, amount = np.divmod(keys, LARGEST_SALE)
    amount += 1
    low = np.array(BONUS_FROM, np.int64)
    return {
        "sponsor": table(m=sponsor, newcomer=newcomer),
        "sales": table(m=member, amount=amount, profit=amount * rng.integers(10, 51, len(amount)) // 100),
        "schedule": table(low=low, high=np.append(low[1:], NO_BOUND), rate=ids(len(low)) / 100),
    }


def social(n: int, *, seed: int = 0) -> Tables:
    """n people who know one another and n companies that own one another.

    Relations: `arc(x, y)`, 3n acquaintances with x < y, low numbers known by many; `friend(y, x)`, both directions of
    them; `organizer(x)`, a tenth of the people; `pages(x, w2, .., w9)`, what is known of each person, the name in the
    last column; `own(owner, company, percent)`, what is owned of a company adding up to at most 100.
    """
    need_size("the number of people", n)
    rng = np.random.default_rng(seed)

    def draw(count: int) -> Ints:
        one, other = (n * rng.random(count) ** 2).astype(np.int64), rng.integers(0, max(n, 1), count)
        low, high = np.minimum(one, other), np.maximum(one, other)
        return (low * n + high)[low < high]

    x, y = np.divmod(distinct(draw, min(3 * n, n * max(n - 1, 0) // 2), rng), max(n, 1))
    people = ids(n)
    filler = {f"w{i}": rng.integers(0, 1000, n) for i in range(2, 9)}
    return {
        "arc": table(x=x, y=y),
        "friend": table(y=np.concatenate([x, y]), x=np.concatenate([y, x])),
        "organizer": table(x=np.sort(rng.permutation(n)[: -(-n // 10)])),
        "pages": table(x=people, **filler, w9=names("person", people)),
        "own": _own(n, rng),
    }


def _own(n: int, rng: np.random.Generator) -> pa.Table:
    """Half of the companies have an owner of more than 50 %; up to three more hold the rest, all of them neighbours by
    number, so that control through several companies happens."""
    company = np.repeat(ids(n), 4)
    slot = np.tile(ids(4), n)
    owner = (company - rng.integers(1, 6, 4 * n)) % max(n, 1)
    first = np.where(rng.random(n) < 0.5, rng.integers(51, 81, n), rng.integers(20, 41, n))
    others = 1 + (rng.random((n, 3)) * ((100 - first) // 3)[:, None]).astype(np.int64)
    percent = np.column_stack([first, others]).ravel()
    kept = (slot < np.repeat(rng.integers(1, 5, n), 4)) & (owner != company)
    owner, company, percent = owner[kept], company[kept], percent[kept]
    order = np.argsort(owner * max(n, 1) + company, kind="stable")
    owner, company, percent = owner[order], company[order], percent[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (owner[1:] != owner[:-1]) | (company[1:] != company[:-1])
    return table(owner=owner[new], company=company[new], percent=percent[new])


def accounts(n: int, *, seed: int = 0) -> Tables:
    """n accounts, some in rings that share an e-mail, phone, card or device; all columns are symbols.

    Relation: `uses(account, kind, value)`. Every account has a value of its own; an account of a ring also uses the
    value of an earlier one. Two in five accounts start a ring (of one, if no other joins).
    """
    need_size("the number of accounts", n)
    rng = np.random.default_rng(seed)
    account = ids(n)
    starts = rng.random(n) < 0.4
    starts[:1] = True
    ring = np.maximum.accumulate(np.where(starts, account, 0)) if n else account
    joins = account[~starts]
    peer = ring[joins] + (rng.random(len(joins)) * (joins - ring[joins])).astype(np.int64)
    kind = pa.array(["email", "phone", "card", "device"]).take(pa.array(rng.integers(0, 4, n)))
    value = names("id", rng.permutation(n).astype(np.int64))
    owned = np.concatenate([account, peer])
    return {
        "uses": table(
            account=names("account", np.concatenate([account, joins])),
            kind=kind.take(pa.array(owned)),
            value=value.take(pa.array(owned)),
        )
    }


def org(n: int, *, seed: int = 0) -> Tables:
    """n people with managers, in nested groups that grant and deny resources; all columns are symbols.

    Relations: `manager(person, boss)`, a random recursive tree; `member(person, group)`; `nested(group, parent)`
    without cycles; `grant(group, resource)`; `deny(group, resource)`. There is a group for every five people and a
    resource for every two groups.
    """
    need_size("the number of people", n)
    rng = np.random.default_rng(seed)
    groups, resources = -(-n // 5), -(-n // 10)
    person, inner = ids(n)[1:], ids(groups)[1:]
    boss = rng.integers(0, person) if len(person) else person
    above = rng.integers(0, inner) if len(inner) else inner

    def link(left: int, right: int, count: int) -> tuple[Ints, Ints]:
        possible = left * right
        keys = distinct(lambda size: rng.integers(0, max(possible, 1), size), min(count, possible), rng)
        first, second = np.divmod(keys, max(right, 1))
        return first, second

    user, group = link(n, groups, 2 * n)
    granter, granted = link(groups, resources, 2 * groups)
    denier, denied = link(groups, resources, groups // 4)
    return {
        "manager": table(person=names("user", person), boss=names("user", boss)),
        "member": table(person=names("user", user), group=names("group", group)),
        "nested": table(group=names("group", inner), parent=names("group", above)),
        "grant": table(group=names("group", granter), resource=names("resource", granted)),
        "deny": table(group=names("group", denier), resource=names("resource", denied)),
    }


def heap(n: int, *, seed: int = 0) -> Tables:
    """The assignments of a program with n variables, in functions of 32 that touch only their own.

    Relations: `address(v, o)` for `v = &o`, `assign(v, w)` for `v = w`, `load(v, p)` for `v = *p` and `store(p, w)`
    for `*p = w`: n/2, n, n/4 and n/4 rows, less what was drawn twice.
    """
    need_size("the number of variables", n)
    rng = np.random.default_rng(seed)

    def statements(count: int) -> tuple[Ints, Ints]:
        left = rng.integers(0, max(n, 1), count if n > 1 else 0)
        first = left - left % 32
        right = first + (rng.random(len(left)) * (np.minimum(first + 32, n) - first)).astype(np.int64)
        keys = once((left * n + right)[left != right])
        one, other = np.divmod(keys, max(n, 1))
        return one, other

    address, assign, load, store = (statements(count) for count in (n // 2, n, n // 4, n // 4))
    return {
        "address": table(v=address[0], o=address[1]),
        "assign": table(v=assign[0], w=assign[1]),
        "load": table(v=load[0], p=load[1]),
        "store": table(p=store[0], w=store[1]),
    }
