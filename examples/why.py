"""Who may see a document, why, and why not: writes answers as pages to a folder.

python examples/why.py out
"""

from __future__ import annotations

import sys
from pathlib import Path

import emberlog

PROGRAM = Path(__file__).parent / "business" / "permissions.dl"
FACTS = {
    "member": [("ann", "interns"), ("ben", "finance"), ("eva", "auditors"), ("eva", "externals")],
    "nested": [("interns", "finance"), ("finance", "staff"), ("auditors", "finance")],
    "grant": [("staff", "handbook"), ("finance", "budget")],
    "deny": [("externals", "budget")],
    "manager": [("ann", "ben"), ("ben", "eva")],
}


def answers(folder: Path) -> list[Path]:
    """Writes why Ann may see the budget, and why Eva may not. Returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    with emberlog.Engine(executor="local") as engine:
        for name, rows in FACTS.items():
            engine.register(name, rows)
        result = engine.run_file(PROGRAM)
        why = result.why("allowed", ("ann", "budget"))
        why_not = result.why_not("allowed", ("eva", "budget"))
    print(why, why_not, sep="\n\n")
    pages = {
        "why.html": why.to_html(),
        "why.svg": why.to_svg(),
        "why_not.html": why_not.to_html(),
        "why_not.svg": why_not.to_svg(),
    }
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pages]


if __name__ == "__main__":
    answers(Path(sys.argv[1] if len(sys.argv) > 1 else "out"))
