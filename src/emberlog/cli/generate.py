"""`emberlog generate`: the papers' data sets as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def generate(
    kind: Annotated[
        str,
        typer.Argument(
            help="tree, grid, gnp, rmat, dag, bom, mlm, social, accounts, org, heap, objects, aliases, flow, brackets, "
            "ontology, edits, loans, modules, network or hmm.",
            metavar="KIND",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; made if it is not there.")],
    size: Annotated[
        float | None, typer.Option("--size", "-n", help="Height, nodes, parts or scale factor, as the kind has it.")
    ] = None,
    p: Annotated[float | None, typer.Option("--p", help="Probability of an edge (gnp).")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same data.", min=0)] = 0,
    format: Annotated[str, typer.Option("--format", "-f", help="facts (tab-separated), csv or parquet.")] = "facts",
) -> None:
    """Write a data set: one file for each relation."""
    from rich.table import Table

    from emberlog import generate as data
    from emberlog.cli.show import console

    data.check_format(format)  # before the work, not after it
    tables = data.make(kind, size, p=p, seed=seed)
    paths = data.write(tables, out, format)
    report = Table("relation", "columns", box=None)
    report.add_column("rows", justify="right")
    report.add_column("file", overflow="fold")
    for name, path in paths.items():
        report.add_row(name, ", ".join(tables[name].column_names), f"{tables[name].num_rows:,}", str(path))
    console().print(report)
