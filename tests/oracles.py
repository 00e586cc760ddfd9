"""Independent answers for the example programs: networkx, SciPy, NumPy and plain Python; nothing of Emberlog.

An oracle takes the base relations as sets of tuples and returns the derived relations it knows, as sets of tuples.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

Row: TypeAlias = tuple[Any, ...]
Facts: TypeAlias = Mapping[str, set[Row]]
Answer: TypeAlias = dict[str, set[Row]]


def tc(facts: Facts) -> Answer:
    closure: nx.DiGraph[Any] = nx.transitive_closure(_digraph(facts["arc"]), reflexive=False)
    return {"tc": set(closure.edges())}


def sg(facts: Facts) -> Answer:
    """Sparse Boolean matrices: S = A'A off the diagonal, then S or A'SA until nothing is added."""
    arc = _matrix(facts["arc"])
    generation = arc.T @ arc
    generation.setdiag(False)
    generation.eliminate_zeros()
    while True:
        larger = generation + arc.T @ generation @ arc
        if larger.nnz == generation.nnz:
            break
        generation = larger
    x, y = generation.nonzero()
    return {"sg": set(zip(x.tolist(), y.tolist(), strict=True))}


def triangles(facts: Facts) -> Answer:
    arc = _matrix(facts["arc"]).astype(np.int64)
    up, down = sparse.triu(arc, 1).tocsr(), sparse.tril(arc, -1).tocsr()
    count = int((up @ up).multiply(down.T).sum())
    return {"count_triangles": {(count,)} if count else set()}


def sssp(facts: Facts, *, edges: str, source: int, answer: str) -> Answer:
    return {answer: set(_distances(facts[edges])(source).items())}


def apsp(facts: Facts, *, edges: str, answer: str) -> Answer:
    """A path has at least one edge: from a node to itself it is the shortest cycle, not 0."""
    best: dict[tuple[Any, Any], Any] = {}
    distances = _distances(facts[edges])
    reached = {node: distances(node) for node in {y for _, y, _ in facts[edges]}}
    for x, z, weight in facts[edges]:
        for y, rest in reached[z].items():
            best[x, y] = min(best.get((x, y), weight + rest), weight + rest)
    return {answer: {(x, y, d) for (x, y), d in best.items()}}


def attend(facts: Facts, *, counts: str) -> Answer:
    """Everybody who comes tells each friend once; the third who tells makes one come."""
    friends = defaultdict(set)
    for person, friend in facts["friend"]:
        friends[friend].add(person)
    coming = {x for (x,) in facts["organizer"]}
    heard: Counter[Any] = Counter()
    news = deque(coming)
    while news:
        for person in friends[news.popleft()]:
            heard[person] += 1
            if heard[person] == 3 and person not in coming:
                coming.add(person)
                news.append(person)
    return {"attend": {(x,) for x in coming}, counts: set(heard.items())}


def reach(facts: Facts, *, source: int) -> Answer:
    graph = _digraph(facts["arc"])
    graph.add_node(source)
    return {"reach": {(y,) for y in nx.descendants(graph, source) | {source}}}


def cc(facts: Facts, *, edges: str = "arc") -> Answer:
    """Labels are the nodes with edges out of them; handed out in ascending order, the first to arrive is smallest."""
    graph = _digraph(facts[edges])
    label: dict[Any, Any] = {}
    for start in sorted({x for x, _ in facts[edges]}):
        if start not in label:
            for node in {start, *nx.descendants(graph, start)}:
                label.setdefault(node, start)
    return {"cc": set(label.items())}


def cc_undirected(facts: Facts) -> Answer:
    parts = list(nx.connected_components(_graph(facts["arc"])))
    return {"cc": {(x, min(part)) for part in parts for x in part}, "components": {(len(parts),)} if parts else set()}


def pymk(facts: Facts, *, person: int) -> Answer:
    graph = _graph(facts["arc"])
    known = set(graph[person])
    shared = Counter(x for middle in known for x in graph[middle] if x != person and x not in known)
    name = {row[0]: row[-1] for row in facts["pages"]}
    rows = [(x, name[x], n) for x, n in shared.items()]
    return {"pymk": set(sorted(rows, key=lambda row: (-row[2], row[:2]))[:10])}


def mlm(facts: Facts) -> Answer:
    """Totals from the leaves up, as every member has one sponsor at most."""
    sponsors = _digraph(facts["sponsor"])
    own: Counter[Any] = Counter()
    for member, amount, _ in facts["sales"]:
        own[member] += amount
    total: dict[Any, int] = {}
    for member in reversed(list(nx.topological_sort(sponsors))):
        total[member] = own[member] + sum(total[below] for below in sponsors[member])
    active = {m for m in total if own[m] or any(own[d] for d in nx.descendants(sponsors, m))}

    def rate(amount: int) -> Any:
        return next(share for low, high, share in facts["schedule"] if low <= amount < high)

    bonus = [
        own[m] * rate(total[m]) + sum(total[n] * rate(total[n]) for n in sponsors[m] if n in active)
        for m in active
        if own[m] and any(n in active for n in sponsors[m])
    ]
    gross = sum(profit for _, _, profit in facts["sales"])
    return {"bonus": {(sum(bonus),)}, "grossProfit": {(gross,)}, "netProfit": {(gross - sum(bonus),)}}


def pagerank_by_contributor(facts: Facts, *, alpha: float, nodes: int) -> Answer:
    """DCDatalog's: x = b + alpha * P'x, where only nodes with an edge out of them have a b of (1 - alpha) / nodes."""
    order = sorted({node for edge in facts["arc"] for node in edge})
    sources = {x for x, _ in facts["arc"]}
    start = [(1 - alpha) / nodes if x in sources else 0.0 for x in order]
    return {"results": _linear_ranks(facts["arc"], order, start, alpha)}


def pagerank(facts: Facts) -> Answer:
    """PowerLog's: x = 0.15 + 0.85 * P'x."""
    order = sorted({node for edge in facts["edge"] for node in edge})
    return {"rank": _linear_ranks(facts["edge"], order, [0.15] * len(order), 0.85)}


def _linear_ranks(edges: set[Row], order: list[Any], start: list[float], damping: float) -> set[Row]:
    at = {node: i for i, node in enumerate(order)}
    degree = Counter(x for x, _ in edges)
    values = [damping / degree[x] for x, _ in edges]
    step = sparse.csc_array(
        (values, ([at[y] for _, y in edges], [at[x] for x, _ in edges])), shape=(len(order), len(order))
    )
    ranks = spsolve(sparse.eye_array(len(order), format="csc") - step, np.array(start))
    return set(zip(order, ranks.tolist(), strict=True))


def adsorption(facts: Facts) -> Answer:
    """x = inject + 0.7 * W'(carry * x)."""
    inject: dict[Any, float] = dict(facts["p_i"])
    carry: dict[Any, float] = dict(facts["p_c"])
    order = sorted(inject)
    steps = {(x, y): 0.7 * w * carry[x] for x, y, w in facts["A"]}
    return {"L": _solved(order, steps, inject)}


def katz(facts: Facts, *, beta: float) -> Answer:
    """x = 10000 at node 0 + beta * A'x, where a node has a row once a walk from node 0 reaches it."""
    reached = {0, *nx.descendants(_digraph(facts["edge"]), 0)}
    steps = {(x, y): beta for x, y in facts["edge"] if x in reached}
    return {"K": _solved(sorted(reached), steps, {0: 10000.0})}


def belief_propagation(facts: Facts) -> Answer:
    """x = prior + 0.8 * (W x H)'x over pairs of a node and a class."""
    prior = {(v, c): b for v, c, b in facts["I"]}
    steps = {((s, c), (t, d)): 0.8 * w * h for s, t, w in facts["E"] for c, d, h in facts["H"]}
    solved = _solved(sorted(prior), steps, prior)
    return {"B": {(v, c, b) for (v, c), b in solved}}


def simrank(facts: Facts) -> Answer:
    """x = 1 on the diagonal, 0.8 times the mean over the pairs of predecessors off it; rows where that is known."""
    nodes = sorted(x for (x,) in facts["node"])
    before = defaultdict(set)
    for x, y in facts["edge"]:
        before[y].add(x)
    reached = {(a, a) for a in nodes}
    while True:
        more = {
            (a, b)
            for a in nodes
            for b in nodes
            if a != b and any((x, y) in reached for x in before[a] for y in before[b])
        }
        if more <= reached:
            break
        reached |= more
    steps = {
        ((x, y), (a, b)): 0.8 / (len(before[a]) * len(before[b]))
        for a, b in reached
        if a != b
        for x in before[a]
        for y in before[b]
        if (x, y) in reached
    }
    solved = _solved(sorted(reached), steps, {(a, a): 1.0 for a in nodes})
    return {"sim": {(a, b, s) for (a, b), s in solved}}


def viterbi(facts: Facts) -> Answer:
    """One time after the other, with NumPy."""
    seen = [o for _, o in sorted(facts["obs"])]
    start = np.array([p for _, p in sorted(facts["start"])])
    step = np.array([p for _, _, p in sorted(facts["t"])]).reshape(len(start), len(start))
    sign = np.array([p for _, _, p in sorted(facts["e"])]).reshape(len(start), -1)
    best = sign[:, seen[0]] * start
    rows = {(0, y, float(p)) for y, p in enumerate(best)}
    for time, o in enumerate(seen[1:], 1):
        best = (best[:, None] * step).max(axis=0) * sign[:, o]
        rows |= {(time, y, float(p)) for y, p in enumerate(best)}
    return {"v": rows}


def gcn_forward(facts: Facts) -> Answer:
    return {"gcn": _layers(facts["feature"], facts["A"], lambda h: np.maximum(h, 0.0))}


def commnet(facts: Facts) -> Answer:
    return {"comm": _layers(facts["feature"], facts["link"], lambda h: np.clip(h, -1.0, 1.0))}


def _layers(features: set[Row], links: set[Row], bend: Any) -> set[Row]:
    """x = feature + W' bend(0.5 x), by applying it two hundred times."""
    order = sorted(features)
    at = {node: i for i, (node, _) in enumerate(order)}
    feature = np.array([value for _, value in order])
    weights = np.zeros((len(order), len(order)))
    for x, y, w in links:
        weights[at[y], at[x]] = w
    state = feature
    for _ in range(200):
        state = feature + weights @ bend(0.5 * state)
    return {(node, float(value)) for (node, _), value in zip(order, state, strict=True)}


def _solved(order: list[Any], steps: Mapping[tuple[Any, Any], float], start: Mapping[Any, float]) -> set[Row]:
    """The solution of x = start + S'x, where a step from one to another has a weight."""
    at = {node: i for i, node in enumerate(order)}
    rows, columns = [at[y] for _, y in steps], [at[x] for x, _ in steps]
    matrix = sparse.csc_array((list(steps.values()), (rows, columns)), shape=(len(order), len(order)))
    constant = np.array([float(start.get(node, 0.0)) for node in order])
    solution = spsolve(sparse.eye_array(len(order), format="csc") - matrix, constant)
    return set(zip(order, solution.tolist(), strict=True))


def delivery(facts: Facts) -> Answer:
    days: dict[Any, int] = dict(facts["basic"])
    for part, subparts in _bottom_up(facts["assbl"]):
        days[part] = max([days[sub] for (sub,) in subparts] + [days.get(part, 0)])
    return {"results": set(days.items())}


def cost(facts: Facts) -> Answer:
    costs: dict[Any, int] = dict(facts["basic"])
    for part, subparts in _bottom_up(facts["assbl"]):
        costs[part] = costs.get(part, 0) + sum(quantity * costs[sub] for sub, quantity in subparts)
    return {"cost": set(costs.items())}


def _bottom_up(assembly: Iterable[Row]) -> Iterable[tuple[Any, list[Row]]]:
    """Each composed part with the rest of its rows, after all its subparts."""
    below = defaultdict(list)
    for part, *rest in assembly:
        below[part].append(tuple(rest))
    graph = _digraph((part, row[0]) for part, rows in below.items() for row in rows)
    return [(part, below[part]) for part in reversed(list(nx.topological_sort(graph))) if part in below]


def paths(facts: Facts) -> Answer:
    """In topological order, each node hands its number of ways on."""
    graph = _digraph(facts["edge"])
    ways = Counter(x for (x,) in facts["source"])
    graph.add_nodes_from(ways)
    for node in nx.topological_sort(graph):
        for after in graph[node]:
            if ways[node]:
                ways[after] += ways[node]
    return {"paths": {(node, n) for node, n in ways.items() if n}}


def lca(facts: Facts) -> Answer:
    tree = _digraph((parent, child) for child, parent in facts["parent"])
    pairs = [pair for pair in facts["pair"] if set(pair) <= set(tree)]
    found = nx.tree_all_pairs_lowest_common_ancestor(tree, pairs=iter(pairs))
    ancestor = {frozenset(pair): node for pair, node in found}
    return {"lca": {(x, y, ancestor[frozenset((x, y))]) for x, y in pairs}}


def company_control(facts: Facts) -> Answer:
    """For each company: take over what the companies under control own the majority of, until there is no more."""
    shares: defaultdict[Any, dict[Any, int]] = defaultdict(dict)
    for owner, company, percent in facts["own"]:
        shares[owner][company] = percent
    control = set()
    for x in list(shares):
        holds: Counter[Any] = Counter(shares[x])
        taken: set[Any] = set()
        while new := {y for y, percent in holds.items() if percent > 50} - taken:
            taken |= new
            for y in new - {x}:  # what x owns is counted already
                holds.update(shares.get(y, {}))
        control |= {(x, y) for y in taken}
    return {"control": control}


def permissions(facts: Facts) -> Answer:
    groups = _digraph(facts["nested"])
    belongs = set()
    for person, group in facts["member"]:
        above = nx.descendants(groups, group) if group in groups else set()
        belongs |= {(person, g) for g in {group, *above}}
    granted, denied = defaultdict(set), defaultdict(set)
    for group, resource in facts["grant"]:
        granted[group].add(resource)
    for group, resource in facts["deny"]:
        denied[group].add(resource)
    refused = {(p, r) for p, g in belongs for r in denied[g]}
    allowed = {(p, r) for p, g in belongs for r in granted[g]} - refused
    bosses = _digraph((boss, person) for person, boss in facts["manager"])
    span = {(boss, len(nx.descendants(bosses, boss))) for boss in {b for _, b in facts["manager"]}}
    return {"allowed": allowed, "span": span}


def fraud_rings(facts: Facts) -> Answer:
    """Components of the graph that joins accounts to what they use."""
    graph = _graph((("account", account), ("value", kind, value)) for account, kind, value in facts["uses"])
    rings = [sorted(node[1] for node in part if node[0] == "account") for part in nx.connected_components(graph)]
    return {
        "ring": {(account, ring[0]) for ring in rings for account in ring},
        "suspicious": {(ring[0], len(ring)) for ring in rings if len(ring) >= 3},
    }


def points_to(facts: Facts) -> Answer:
    """The textbook work list: loads and stores become assignments as soon as their pointer is known."""
    points: defaultdict[Any, set[Any]] = defaultdict(set)
    flows: defaultdict[Any, set[Any]] = defaultdict(set)
    loads, stores = defaultdict(set), defaultdict(set)
    for v, p in facts["load"]:
        loads[p].add(v)
    for p, w in facts["store"]:
        stores[p].add(w)
    work: deque[Row] = deque(facts["address"])

    def flow(source: Any, target: Any) -> None:
        if target not in flows[source]:
            flows[source].add(target)
            work.extend((target, o) for o in points[source])

    for v, w in facts["assign"]:
        flow(w, v)
    while work:
        v, o = work.popleft()
        if o in points[v]:
            continue
        points[v].add(o)
        work.extend((target, o) for target in flows[v])
        for target in loads[v]:
            flow(o, target)
        for source in stores[v]:
            flow(source, o)
    return {"points": {(v, o) for v, objects in points.items() for o in objects}}


def _digraph(edges: Iterable[Row]) -> nx.DiGraph[Any]:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_edges_from(edges)
    return graph


def _graph(edges: Iterable[Row]) -> nx.Graph[Any]:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edges_from(edges)
    return graph


def _matrix(edges: set[Row]) -> sparse.csr_array:
    size = 1 + max((max(edge) for edge in edges), default=0)
    x, y = [x for x, _ in edges], [y for _, y in edges]
    return sparse.csr_array((np.ones(len(x), np.bool_), (x, y)), shape=(size, size))


def _distances(edges: set[Row]) -> Any:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_weighted_edges_from(edges)

    def from_source(source: Any) -> dict[Any, Any]:
        if source not in graph:
            return {source: 0}
        return dict(nx.single_source_dijkstra_path_length(graph, source))

    return from_source
