"""Sources without rows. Where one does not tell its columns, the declaration does, or else the rules that read it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import emberlog
from engine.places import Place

TC = "tc(X,Y) <- arc(X,Y). tc(X,Y) <- tc(X,Z), arc(Z,Y)."


def kinds(relation: emberlog.Relation) -> list[str]:
    return [column.type.kind for column in relation.schema]


def test_an_empty_list(place: Place) -> None:
    result = place.run(f"{TC} n(count(X)) <- arc(X,_). none(c) :- c = count : {{ arc(_,_) }}.", {"arc": []})
    assert {name: result[name].rows() for name in result} == {"tc": [], "n": [], "none": [(0,)]}


# A program, and the kinds that the columns of `p` then have.
USES = [
    ("p(X,Y) <- arc(X,Y).", ["number", "number"]),
    (".decl arc(a: symbol, b: float)\np(X,Y) <- arc(X,Y).", ["symbol", "float"]),
    ('p(X,Y) <- arc(X,Y), Y = "a".', ["number", "symbol"]),
    ('p(X,Y) <- arc(X,Y), arc("a",_).', ["symbol", "number"]),
    ("p(X,Y) <- arc(X,Y), Y > 1.5.", ["number", "float"]),
    ("p(X,Y) <- arc(X,Y), name(Y), !name(X).", ["symbol", "symbol"]),
    ("p(X) <- arc(X,Y), strlen(Y) > 2.", ["number"]),
    ("p(X,Y) <- arc(X,Y), contains(X, Y).", ["symbol", "symbol"]),
    ("q(X,Y) <- arc(X,Y). q(X,Y) <- q(X,Z), arc(Z,Y). p(X,Y) <- q(X,Y), name(Y).", ["symbol", "symbol"]),
    ("p(X,min<D>) <- name(X), D = 0.5. p(Y,min<D>) <- p(X,C), arc(X,Y,W), D = C + W.", ["symbol", "float"]),
    ("p(X,s) :- name(X), s = max y : { arc(X,y), y > 0.5 }.", ["symbol", "float"]),
    (".decl p(x: symbol)\np(X) <- arc(X,_).", ["symbol"]),
    ("p(count(X)) <- arc(X).", ["number"]),
    ("p() <- arc(1).", []),
]


@pytest.mark.parametrize(("text", "found"), USES)
def test_its_use_decides(text: str, found: list[str], local: Place) -> None:
    relation = local.run(text, {"arc": [], "name": [("Ann",)]})["p"]
    assert kinds(relation) == found
    assert relation.rows() in ([], [("Ann", 0.5)])


def test_negation_of_an_empty_list(place: Place) -> None:
    assert place.run("p(X) <- name(X), !arc(X,_).", {"arc": [], "name": [("Ann",)]})["p"].rows() == [("Ann",)]


def test_a_goal_on_an_empty_list(local: Place) -> None:
    answer = local.engine({"arc": []}).query('arc("a", Y)', program="p(X) <- arc(X,_).")
    assert (answer.rows(), kinds(answer)) == ([], ["symbol", "number"])


def test_mistakes_are_still_told(local: Place) -> None:
    with pytest.raises(emberlog.ProgramError, match="`Z` of the head"):
        local.run("p(X,Z) <- arc(X,Y).", {"arc": []})
    with pytest.raises(emberlog.ProgramError, match="`arc` has 2 arguments, not 3"):
        local.run("p(X) <- arc(X,Y), arc(X,Y,Z).", {"arc": []})
    with pytest.raises(emberlog.ProgramError, match="type conflict"):
        local.run('p(X) <- arc(X), X > 1, name(X). name("Ann").', {"arc": []})


@pytest.mark.parametrize("name", ["arc.facts", "arc.csv", "arc.tsv"])
def test_an_empty_file(name: str, local: Place, tmp_path: Path) -> None:
    (tmp_path / name).write_text("")
    assert local.run(TC, {"arc": tmp_path / name})["tc"].rows() == []


def test_an_empty_file_of_an_input(local: Place, tmp_path: Path) -> None:
    (tmp_path / "arc.facts").write_text("")
    (tmp_path / "tc.dl").write_text(f".input arc\n{TC}")
    assert local.engine().run_file(tmp_path / "tc.dl", tmp_path)["tc"].rows() == []


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(pd.DataFrame({"a": [], "b": []}), id="pandas"),
        pytest.param(pd.DataFrame({"a": [], "b": []}, dtype=object), id="pandas objects"),
        pytest.param(pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())}), id="arrow"),
        pytest.param(pa.table({"a": pa.nulls(0), "b": pa.nulls(0)}), id="arrow without types"),
    ],
)
def test_an_empty_frame(frame: object, local: Place) -> None:
    assert local.run(TC, {"arc": frame})["tc"].rows() == []


def test_a_column_of_nothing_but_nulls(local: Place) -> None:
    with pytest.raises(emberlog.DataError, match=r"2 in column c1 \(of 2 rows\)"):
        local.run(TC, {"arc": [(1, None), (2, None)]})
    assert local.engine({"arc": [(1, None)]}, nulls="drop").run(TC)["tc"].rows() == []
