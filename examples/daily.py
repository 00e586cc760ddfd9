"""Companies that belong together, kept current by a job that runs once a day.

python examples/daily.py STATE DAY...

STATE is a folder that keeps the view between runs. Each DAY is a csv file of changes: buyer, company, share, and
`_change_type` (insert or delete). A day that was taken already is passed over, so that a job that failed can be run
again as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas

import emberlog

PROGRAM = """
    .decl owns(buyer: symbol, company: symbol, share: number)
    link(X, Y) <- owns(X, Y, S), S >= 50.
    link(Y, X) <- link(X, Y).
    group(X, min(X)) <- link(X, _).
    group(Y, min(G)) <- group(X, G), link(X, Y).
    .output group
"""


def run(state: Path, days: list[Path]) -> dict[str, emberlog.Change]:
    """Applies the files of some days that were not applied before. Returns what each of these changed."""
    changes = {}
    with emberlog.Engine(executor="local") as engine:
        view = engine.maintain(PROGRAM, path=state)
        for day in sorted(days):
            number = int(day.stem.replace("-", ""))  # 2026-11-18 is batch 20261118
            if number > view.batches.get("days", -1):
                changes[day.stem] = view.apply(changes={"owns": pandas.read_csv(day)}, batch=("days", number))
    return changes


def main() -> None:
    for day, change in run(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]]).items():
        print(day)
        for row in sorted(change["group"].deleted):
            print("  -", *row)
        for row in sorted(change["group"].inserted):
            print("  +", *row)


if __name__ == "__main__":
    main()
