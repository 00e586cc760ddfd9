"""The generators: shapes, invariants, seeds, smallest sizes, files and the command."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from emberlog import generate
from emberlog.cli.generate import generate as command
from emberlog.diagnostics import UsageError
from emberlog.generate import KINDS, make, write

SEEDS = range(3)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def digraph(table: pa.Table) -> nx.DiGraph[Any]:
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_edges_from(row[:2] for row in rows(table))
    return graph


def small(kind: str) -> float:
    return {"tree": 4, "mlm": 0.002, "grid": 7}.get(kind, 150)


# --- what holds for all ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_data(kind: str) -> None:
    one, again, other = (make(kind, small(kind), seed=seed) for seed in (5, 5, 6))
    assert all(one[name].equals(again[name]) for name in one)
    assert any(not one[name].equals(other[name]) for name in one)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_distinct_and_not_null(kind: str) -> None:
    for table in make(kind, small(kind), p=0.05 if kind == "gnp" else None).values():
        assert len(rows(table)) > 0
        assert len(set(rows(table))) == table.num_rows
        assert all(column.null_count == 0 for column in table.columns)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_smallest_sizes_keep_the_schema(kind: str, size: int) -> None:
    if kind == "mlm":
        size = min(size, 1)
    usual = make(kind, small(kind))
    tiny = make(kind, size)
    assert {name: table.schema for name, table in tiny.items()} == {name: table.schema for name, table in usual.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_negative_size_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match="must be at least 0"):
        make(kind, -1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make("rmatt"), "unknown kind of data `rmatt`"),
        (lambda: make("grid", 2.5), "whole number"),
        (lambda: make("grid", float("inf")), "whole number"),
        (lambda: make("grid", 1e300), "more than can be made"),
        (lambda: make("grid", 1e8), "does not fit in memory"),
        (lambda: make("mlm", float("nan")), "must be at least 0"),
        (lambda: make("tree", 3, p=0.5), "has no probability"),
        (lambda: make("gnp", 10, p=1.5), r"must lie in \[0, 1\]"),
        (lambda: generate.rmat(10, a=0.9), "less than 1"),
    ],
)
def test_nonsense_is_refused(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


# --- graphs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("leaf", [0.0, 0.4, 1.0])
def test_tree_has_its_height_and_degrees(seed: int, leaf: float) -> None:
    tables = generate.tree(5, leaf=leaf, seed=seed)
    tree = digraph(tables["arc"])
    assert nx.is_arborescence(tree)
    assert max(nx.single_source_shortest_path_length(tree, 0).values()) == 5
    assert {degree for _, degree in tree.out_degree()} - {0} <= {2, 3, 4, 5, 6}
    assert {(y, x) for x, y in rows(tables["arc"])} == set(rows(tables["parent"]))
    assert {node for pair in rows(tables["pair"]) for node in pair} <= set(tree)


def test_published_tree_sizes_are_met() -> None:
    # Tree11 has 71,391 nodes in twelve levels below the root.
    sizes = [generate.tree(12, seed=seed)["arc"].num_rows for seed in range(5)]
    assert 20_000 < sorted(sizes)[2] < 250_000


@pytest.mark.parametrize("n", [1, 2, 7])
def test_grid_goes_right_and_down(n: int) -> None:
    grid = digraph(generate.grid(n)["arc"])
    assert len(grid) == (n + 1) ** 2
    want = nx.grid_2d_graph(n + 1, n + 1, create_using=nx.DiGraph)
    down_right = {(a, b) for a, b in want.edges() if a < b}
    assert {(divmod(x, n + 1), divmod(y, n + 1)) for x, y in grid.edges()} == down_right


def test_grid150_is_the_published_one_but_for_names() -> None:
    assert generate.grid(150)["arc"].num_rows == 45_300


@pytest.mark.parametrize("seed", SEEDS)
def test_gnp_has_about_the_expected_edges(seed: int) -> None:
    n, p = 2000, 0.005
    edges = rows(generate.gnp(n, p, seed=seed)["arc"])
    assert abs(len(edges) - n * (n - 1) * p) < 5 * (n * n * p) ** 0.5
    assert len(set(edges)) == len(edges)
    assert all(x != y and 0 <= x < n and 0 <= y < n for x, y in edges)


def test_gnp_knows_the_extremes() -> None:
    assert generate.gnp(9, 0.0)["arc"].num_rows == 0
    assert set(rows(generate.gnp(9, 1.0)["arc"])) == {(x, y) for x in range(9) for y in range(9) if x != y}


def test_gnp_reaches_every_pair_alike() -> None:
    seen = Counter(edge for seed in range(400) for edge in rows(generate.gnp(5, 0.3, seed=seed)["arc"]))
    assert len(seen) == 20
    assert all(abs(count - 120) < 50 for count in seen.values())  # five standard deviations


def test_gnp_of_a_huge_sparse_graph_needs_no_matrix() -> None:
    assert 50 < generate.gnp(10**8, 1e-14)["arc"].num_rows < 160


@pytest.mark.parametrize("n", [2, 5, 11, 12, 16, 100, 1000])
def test_rmat_has_ten_edges_a_node(n: int) -> None:
    tables = generate.rmat(n)
    edges = rows(tables["arc"])
    assert len(set(edges)) == len(edges) == min(10 * n, n * (n - 1))
    assert all(x != y and 0 <= x < n and 0 <= y < n for x, y in edges)
    assert [row[:2] for row in rows(tables["warc"])] == edges
    assert all(0 <= d < 100 for _, _, d in rows(tables["warc"]))


def test_rmat_is_skewed() -> None:
    degrees = sorted(Counter(x for x, _ in rows(generate.rmat(4096)["arc"])).values(), reverse=True)
    assert sum(degrees[:41]) > 0.05 * sum(degrees)  # one node in a hundred has far more than one edge in a hundred
    assert degrees[0] > 10 * 10


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n", [1, 2, 25, 500])
def test_dag_has_no_cycle(n: int, seed: int) -> None:
    tables = generate.dag(n, seed=seed)
    graph = digraph(tables["arc"])
    assert nx.is_directed_acyclic_graph(graph)
    assert nx.dag_longest_path_length(graph) < 20
    assert all(not graph.in_degree(x) for (x,) in rows(tables["source"]) if x in graph)
    assert 1 <= tables["source"].num_rows <= 10


# --- records ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_bom_is_a_tree_of_n_parts(seed: int) -> None:
    tables = generate.bom(800, seed=seed)
    tree = digraph(tables["assbl"])
    assert nx.is_arborescence(tree)
    assert len(tree) == 800
    degrees = Counter(degree for _, degree in tree.out_degree() if degree)
    assert sum(count for degree, count in degrees.items() if not 5 <= degree <= 10) <= 1
    leaves = {node for node, degree in tree.out_degree() if not degree}
    assert {part for part, _ in rows(tables["basic"])} == {part for part, _ in rows(tables["price"])} == leaves
    assert [row[:2] for row in rows(tables["uses"])] == rows(tables["assbl"])


def test_one_part_is_basic() -> None:
    tables = generate.bom(1)
    assert tables["assbl"].num_rows == 0
    assert [part for part, _ in rows(tables["basic"])] == [0]


def test_mlm_is_ten_trees_with_sales_and_a_schedule() -> None:
    tables = generate.mlm(0.01)
    forest = digraph(tables["sponsor"])
    assert len(forest) == 1500
    assert nx.is_branching(forest)
    assert nx.number_weakly_connected_components(forest) == 10
    assert tables["sales"].num_rows == 15_000
    assert all(amount > 0 and 0 <= profit <= amount for _, amount, profit in rows(tables["sales"]))
    schedule = rows(tables["schedule"])
    assert len(schedule) == 12
    assert [low for low, _, _ in schedule] == [0, *(high for _, high, _ in schedule[:-1])]
    assert schedule[-1][1] > 15_000 * 10_000


@pytest.mark.parametrize("n", [1, 8])
def test_mlm_of_a_few_members(n: int) -> None:
    tables = generate.mlm(n / 150_000)
    assert tables["sponsor"].num_rows == 0
    assert tables["sales"].num_rows == 10 * n


@pytest.mark.parametrize("seed", SEEDS)
def test_social_keeps_its_promises(seed: int) -> None:
    tables = generate.social(300, seed=seed)
    arcs = set(rows(tables["arc"]))
    assert len(arcs) == 900
    assert all(x < y for x, y in arcs)
    assert set(rows(tables["friend"])) == arcs | {(y, x) for x, y in arcs}
    assert tables["organizer"].num_rows == 30
    assert [row[0] for row in rows(tables["pages"])] == list(range(300))
    assert len(tables["pages"].column_names) == 9
    owned: Counter[int] = Counter()
    for owner, company, percent in rows(tables["own"]):
        assert owner != company
        assert percent > 0
        owned[company] += percent
    assert max(owned.values()) <= 100


def test_own_has_one_row_for_a_pair() -> None:
    pairs = [row[:2] for row in rows(generate.social(300)["own"])]
    assert len(set(pairs)) == len(pairs)


def test_accounts_form_rings_of_several_sizes() -> None:
    graph: nx.Graph[Any] = nx.Graph()
    graph.add_edges_from((account, (kind, value)) for account, kind, value in rows(generate.accounts(500)["uses"]))
    sizes = Counter(sum(isinstance(node, str) for node in part) for part in nx.connected_components(graph))
    assert sizes.total() > 100
    assert len(sizes) >= 4


def test_org_has_no_cycles() -> None:
    tables = generate.org(200)
    assert nx.is_directed_acyclic_graph(digraph(tables["manager"]))
    assert nx.is_directed_acyclic_graph(digraph(tables["nested"]))
    assert tables["manager"].num_rows == 199
    assert rows(tables["member"])[0][0].startswith("user-")


def test_heap_stays_inside_functions() -> None:
    tables = generate.heap(200)
    assert all(a // 32 == b // 32 and a != b for table in tables.values() for a, b in rows(table))


# --- files and the command -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("format", "separator"), [("facts", "\t"), ("csv", ",")])
def test_text_files_have_a_line_a_row_and_no_header(tmp_path: Path, format: str, separator: str) -> None:
    tables = generate.social(20)
    paths = write(tables, tmp_path / "new" / "folder", format)
    assert paths["own"] == tmp_path / "new" / "folder" / f"own.{format}"
    for name, path in paths.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        want = [[str(value) for value in row] for row in rows(tables[name])]
        assert [line.replace('"', "").split(separator) for line in lines] == want
    assert ('"' in paths["pages"].read_text(encoding="utf-8")) == (format == "csv")


def test_parquet_files_keep_names_and_types(tmp_path: Path) -> None:
    tables = generate.mlm(0.0005)
    for name, path in write(tables, tmp_path, "parquet").items():
        assert pq.read_table(path).equals(tables[name])


def test_empty_relations_become_empty_files(tmp_path: Path) -> None:
    assert write(generate.grid(0), tmp_path)["arc"].read_text(encoding="utf-8") == ""


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot make the folder"):
        write(generate.grid(1), tmp_path / "file" / "below")


def run(*arguments: str) -> Any:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, arguments)


def test_command_writes_and_tells(tmp_path: Path) -> None:
    done = run("rmat", "--out", str(tmp_path), "--size", "200", "--seed", "7")
    assert done.exit_code == 0
    assert "warc" in done.output
    assert "2,000" in done.output
    assert len((tmp_path / "arc.facts").read_text(encoding="utf-8").splitlines()) == 2000


@pytest.mark.parametrize("arguments", [("rmatt",), ("grid", "--size", "-1"), ("grid", "--format", "xml")])
def test_command_refuses_nonsense_before_it_writes(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run(*arguments, "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_help_names_every_kind() -> None:
    assert all(kind in run("--help").output for kind in KINDS)
