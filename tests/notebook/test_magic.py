"""Cells of a notebook, in a shell of IPython."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import emberlog

interactive = pytest.importorskip("IPython.core.interactiveshell")

CLOSURE = "tc(X, Y) <- arc(X, Y).\ntc(X, Y) <- tc(X, Z), arc(Z, Y)."


@pytest.fixture
def shell() -> Iterator[Any]:
    """A shell with the extension, over a local engine, and a table `arc`."""
    made = interactive.InteractiveShell()
    made.run_line_magic("load_ext", "emberlog")
    with emberlog.Engine(executor="local") as engine:
        made.user_ns |= {"engine": engine, "arc": [(1, 2), (2, 3), (3, 4)]}
        made.run_line_magic("datalog", "--engine engine")
        yield made


def cell(shell: Any, text: str, line: str = "") -> Any:
    return shell.run_cell_magic("datalog", line, text)


def test_a_cell_reads_the_tables_of_the_notebook(shell: Any) -> None:
    found = cell(shell, CLOSURE)
    assert found.name == "tc"
    assert sorted(found.rows()) == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_later_cells_see_relations_of_earlier_ones_and_do_not_compute_them_again(shell: Any) -> None:
    cell(shell, CLOSURE)
    found = cell(shell, "far(X) <- tc(X, Y), Y = 4.", "--stats -o far")
    assert sorted(found.found.rows()) == sorted(shell.user_ns["far"].rows()) == [(1,), (2,), (3,)]
    assert [row.predicates for row in found.stats.strata] == [("far",)]
    assert sorted(shell.run_line_magic("datalog", "?- tc(2, Y).").rows()) == [(2, 3), (2, 4)]


def test_a_predicate_that_is_defined_again_has_the_new_rules(shell: Any) -> None:
    cell(shell, CLOSURE)
    cell(shell, "far(X) <- tc(X, Y), Y = 4.")
    assert sorted(cell(shell, "tc(X, Y) <- arc(X, Y).").rows()) == [(1, 2), (2, 3), (3, 4)]
    assert sorted(shell.run_line_magic("datalog", "?- far(X).").rows()) == [(3,)]


def test_a_table_or_parameter_that_changes_is_read_again(shell: Any) -> None:
    shell.user_ns["END"] = 4
    cell(shell, CLOSURE)
    assert len(cell(shell, "far(X) <- tc(X, Y), Y = $END.")) == 3
    shell.user_ns["END"] = 3
    assert sorted(shell.run_line_magic("datalog", "?- far(X).").rows()) == [(1,), (2,)]
    shell.user_ns["arc"] = [(7, 3)]
    assert sorted(shell.run_line_magic("datalog", "?- far(X).").rows()) == [(7,)]


def test_several_relations_and_facts(shell: Any) -> None:
    assert cell(shell, "start(1).") is None
    found = cell(shell, "one(Y) <- start(X), arc(X, Y).\ntwo(Z) <- one(Y), arc(Y, Z).")
    assert {name: found[name].rows() for name in found} == {"one": [(2,)], "two": [(3,)]}
    asked = cell(shell, "three(Z) <- two(Y), arc(Y, Z).\n.output two\n?- three(X).")
    assert (asked["two"].rows(), asked.goals[0].rows()) == ([(3,)], [(4,)])


def test_a_cell_with_a_mistake_changes_nothing(shell: Any) -> None:
    cell(shell, CLOSURE)
    done = shell.run_cell("%%datalog\ntc(X) <- arc(X, _).\nbad(X) <- tc(X, _).\n")
    assert isinstance(done.error_in_exec, emberlog.ProgramError)
    assert len(shell.run_line_magic("datalog", "?- tc(1, Y).")) == 3


def test_errors_are_shown_with_a_caret_and_no_lines_of_python(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%%datalog\nq(X) <- arc(X).\n")
    printed = capsys.readouterr().out
    assert "q(X) <- arc(X)." in printed and "^^^^^^" in printed and "cell 1" in printed
    assert "Traceback" not in printed


def test_verdicts_plans_and_rules(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = "sp(Y, min<D>) <- Y = 1, D = 0.\nsp(Y, min<D>) <- sp(X, C), arc(X, Y), D = C + 1."
    (verdict,) = cell(shell, text, "--check")
    assert verdict.status == "proved"
    assert "proved" in cell(shell, text, "--check")._repr_html_()
    assert "<svg" in cell(shell, text, "--explain")._repr_html_()
    cell(shell, CLOSURE)
    shell.run_line_magic("datalog", "--rules")
    assert "tc(X, Y) :- tc(X, Z), arc(Z, Y)." in capsys.readouterr().out
    shell.run_line_magic("datalog", "--reset --rules")
    assert "tc(" not in capsys.readouterr().out


@pytest.mark.parametrize(("line", "told"), [
    ("--executer local", "no option --executer"), ("--engine arc", "is no engine"), ("-o", "wants a name"),
])  # fmt: skip
def test_options_that_are_wrong(shell: Any, line: str, told: str) -> None:
    with pytest.raises(emberlog.UsageError, match=told):
        shell.run_line_magic("datalog", line)


def test_relations_stats_and_results_are_tables(shell: Any) -> None:
    shell.user_ns["word"] = [("<b>", 1)] + [(f"w{i:02}", i) for i in range(30)]
    found = cell(shell, "long(W, N) <- word(W, N).", "--stats")
    html = found._repr_html_()
    assert "31 rows, of which these are the first 20" in html
    assert "&lt;b&gt;" in html and "<b>" not in html
    assert "N: number" in html and "total" in html


def test_help_tells_the_options(shell: Any) -> None:
    assert "--explain" in shell.find_line_magic("datalog").__doc__
