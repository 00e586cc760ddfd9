"""The oracles themselves, on answers small enough to work out by hand."""

from __future__ import annotations

import math

import oracles

CYCLE = {(1, 2), (2, 3), (3, 1), (3, 4)}


def ranks(rows: set[oracles.Row]) -> dict[int, float]:
    return {node: round(rank, 12) for node, rank in rows}


def test_a_node_on_a_cycle_reaches_itself() -> None:
    assert oracles.tc({"arc": CYCLE})["tc"] == {(x, y) for x in (1, 2, 3) for y in (1, 2, 3, 4)}


def test_cousins_are_of_one_generation() -> None:
    tree = {(0, 1), (0, 2), (1, 3), (2, 4)}
    assert oracles.sg({"arc": tree})["sg"] == {(1, 2), (2, 1), (3, 4), (4, 3)}


def test_a_node_with_two_parents_of_one_generation_is_of_its_own() -> None:
    diamond = {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert oracles.sg({"arc": diamond})["sg"] == {(1, 2), (2, 1), (3, 3)}


def test_a_triangle_is_counted_in_one_direction() -> None:
    assert oracles.triangles({"arc": CYCLE})["count_triangles"] == {(1,)}
    assert oracles.triangles({"arc": {(1, 3), (3, 2), (2, 1)}})["count_triangles"] == set()


def test_the_shortest_path_to_oneself_is_a_cycle_or_nothing() -> None:
    edges = {(1, 2, 0), (2, 1, 5), (1, 3, 9), (2, 3, 1)}
    assert oracles.apsp({"w": edges}, edges="w", answer="p")["p"] == {
        (1, 1, 5), (1, 2, 0), (1, 3, 1), (2, 1, 5), (2, 2, 5), (2, 3, 1),
    }  # fmt: skip
    assert oracles.sssp({"w": edges}, edges="w", source=1, answer="d")["d"] == {(1, 0), (2, 0), (3, 1)}


def test_three_friends_make_one_attend() -> None:
    friend = {(4, 1), (4, 2), (4, 3), (5, 4), (5, 1), (5, 2), (6, 4), (6, 5)}
    answer = oracles.attend({"organizer": {(1,), (2,), (3,)}, "friend": friend}, counts="cnt")
    assert answer == {"attend": {(1,), (2,), (3,), (4,), (5,)}, "cnt": {(4, 3), (5, 3), (6, 2)}}


def test_a_source_without_edges_reaches_itself() -> None:
    assert oracles.reach({"arc": CYCLE}, source=9)["reach"] == {(9,)}


def test_labels_follow_the_direction_of_edges() -> None:
    edges = {(1, 2), (2, 1), (3, 2)}
    assert oracles.cc({"arc": edges})["cc"] == {(1, 1), (2, 1), (3, 3)}
    assert oracles.cc_undirected({"arc": edges}) == {"cc": {(1, 1), (2, 1), (3, 1)}, "components": {(1,)}}


def test_people_with_most_shared_acquaintances_come_first() -> None:
    arc = {(1, 2), (1, 3), (2, 4), (3, 4), (3, 5)}
    pages = {(x, 0, f"p{x}") for x in range(1, 6)}
    assert oracles.pymk({"arc": arc, "pages": pages}, person=1)["pymk"] == {(4, "p4", 2), (5, "p5", 1)}


def test_bonus_is_paid_on_own_sales_and_on_those_below() -> None:
    facts: oracles.Facts = {
        "sponsor": {(1, 2), (2, 3)},
        "sales": {(1, 100, 50), (3, 200, 80)},
        "schedule": {(0, 250, 0.5), (250, 1000, 0.25)},
    }
    # 1 sells 100 of a total of 300, at 0.25; below are the 200 of member 2's network, at 0.5. Member 2 sells nothing.
    assert oracles.mlm(facts) == {"bonus": {(125.0,)}, "grossProfit": {(130,)}, "netProfit": {(5.0,)}}


def test_ranks_by_contributor() -> None:
    two = oracles.pagerank_by_contributor({"arc": {(1, 1), (1, 2), (2, 1)}}, alpha=0.5, nodes=2)
    assert ranks(two["results"]) == {1: 0.6, 2: 0.4}
    chain = oracles.pagerank_by_contributor({"arc": {(1, 2), (2, 3)}}, alpha=0.5, nodes=3)
    assert ranks(chain["results"]) == {1: round(1 / 6, 12), 2: 0.25, 3: 0.125}


def test_ranks_add_up_to_the_nodes_if_none_dangles() -> None:
    assert ranks(oracles.pagerank({"edge": {(1, 2), (2, 1)}})["rank"]) == {1: 1.0, 2: 1.0}
    rows = oracles.pagerank({"edge": {(1, 2), (2, 3), (3, 1), (1, 3)}})["rank"]
    assert math.isclose(sum(rank for _, rank in rows), 3.0)


def test_parts_wait_for_and_pay_for_their_subparts() -> None:
    assert oracles.delivery({"assbl": {(1, 2), (1, 3), (3, 4)}, "basic": {(2, 5), (4, 7)}})["results"] == {
        (1, 7), (2, 5), (3, 7), (4, 7),
    }  # fmt: skip
    assert oracles.cost({"assbl": {(1, 2, 2), (1, 3, 1), (3, 2, 4)}, "basic": {(2, 5)}})["cost"] == {
        (1, 30), (2, 5), (3, 20),
    }  # fmt: skip


def test_paths_are_counted() -> None:
    edges = {(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (9, 5)}
    assert oracles.paths({"edge": edges, "source": {(1,)}})["paths"] == {(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)}


def test_lowest_common_ancestor() -> None:
    parent = {(1, 0), (2, 0), (3, 1), (4, 1)}
    pairs = {(3, 4), (4, 2), (1, 3), (3, 3), (7, 7)}
    assert oracles.lca({"parent": parent, "pair": pairs})["lca"] == {(3, 4, 1), (4, 2, 0), (1, 3, 1), (3, 3, 3)}


def test_control_through_a_company_under_control() -> None:
    own = {("a", "b", 60), ("a", "c", 30), ("b", "c", 30)}
    assert oracles.company_control({"own": own})["control"] == {("a", "b"), ("a", "c")}


def test_shares_of_a_company_that_controls_itself_count_once() -> None:
    own = {("a", "b", 60), ("b", "a", 60), ("a", "c", 30)}
    assert oracles.company_control({"own": own})["control"] == {("a", "b"), ("b", "a"), ("a", "a"), ("b", "b")}


def test_a_denial_anywhere_above_wins() -> None:
    facts: oracles.Facts = {
        "member": {("ann", "dev"), ("bob", "ops")},
        "nested": {("dev", "staff"), ("ops", "staff")},
        "grant": {("staff", "wiki"), ("dev", "code"), ("ops", "code")},
        "deny": {("ops", "code")},
        "manager": {("ann", "bob"), ("cid", "ann")},
    }
    assert oracles.permissions(facts) == {
        "allowed": {("ann", "wiki"), ("bob", "wiki"), ("ann", "code")},
        "span": {("bob", 2), ("ann", 1)},
    }


def test_rings_need_the_same_kind_of_value() -> None:
    uses = {("a", "card", "1"), ("b", "card", "1"), ("b", "phone", "2"), ("c", "phone", "2"), ("d", "email", "1")}
    assert oracles.fraud_rings({"uses": uses}) == {
        "ring": {("a", "a"), ("b", "a"), ("c", "a"), ("d", "d")},
        "suspicious": {("a", 3)},
    }


def test_stores_and_loads_go_through_pointers() -> None:
    # p = &x; q = &y; *p = q; r = *p
    facts: oracles.Facts = {
        "address": {("p", "x"), ("q", "y")},
        "assign": set(),
        "store": {("p", "q")},
        "load": {("r", "p")},
    }
    assert oracles.points_to(facts)["points"] == {("p", "x"), ("q", "y"), ("x", "y"), ("r", "y")}
