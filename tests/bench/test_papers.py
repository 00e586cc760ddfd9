"""`emberlog papers`: the commands that it names exist, and programs of papers run."""

from __future__ import annotations

import shlex

import pytest
from benchmarks import papers
from typer.testing import CliRunner

from emberlog.cli import app

runner = CliRunner()


def test_every_command_that_is_named_exists() -> None:
    for paper in papers.PAPERS:
        for _, command in paper.shows:
            _, *words = shlex.split(command)
            assert runner.invoke(app, [*words, "--help"]).exit_code == 0, command


def test_each_paper_has_its_programs() -> None:
    counts = {paper.name: len(list(papers.programs(paper.name))) for paper in papers.PAPERS}
    assert counts == {"bigdatalog": 10, "powerlog": 14, "ssp": 0, "dcdatalog": 8, "scheduling": 0}


def test_programs_run_with_their_verdicts() -> None:
    ran = {one.program.path: one for one in papers.run("dcdatalog", "local", lambda text: None)}
    assert ran["dcdatalog/apsp.dl"].verdicts == "min proved"
    assert ran["dcdatalog/sg.dl"].verdicts == ""
    assert all(one.rows > 0 for one in ran.values())


@pytest.mark.parametrize(("words", "told"), [(["nope"], "there is no paper"), (["ssp", "--run"], "no programs")])
def test_wrong_names_are_told(words: list[str], told: str) -> None:
    result = runner.invoke(app, ["papers", *words])
    assert result.exit_code == 2 or told in str(result.exception)
