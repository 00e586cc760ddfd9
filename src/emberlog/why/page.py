"""Answers as HTML: a page of its own, or a part of a notebook. Rows fold and unfold, without scripts."""

from __future__ import annotations

from emberlog.explain.canvas import safe
from emberlog.why.show import label, remarks
from emberlog.why.tree import Answer, Node

_STYLE = """
.why { font: 14px/1.6 system-ui, sans-serif; color: #1f2933; }
.why code { font: 13px ui-monospace, Menlo, Consolas, monospace; padding: .1rem .35rem; border-radius: 4px;
            background: #f0f2f5; white-space: pre-wrap; }
.why ul { list-style: none; margin: 0; padding: 0 0 0 1.1rem; border-left: 1px solid #d5dae1; }
.why li { margin: .2rem 0; } .why summary { cursor: pointer; } .why .leaf { padding-left: .95rem; }
.why .said { color: #616e7c; font-size: 12px; margin-left: .6rem; }
.why code.given, .why code.near { background: #e3f5ea; } .why code.rule, .why code.total { background: #e4edfd; }
.why code.absence, .why code.condition, .why code.aggregate { background: #fbf3dc; }
.why code.fails, .why code.missing { background: #fde4e1; } .why code.holds { background: #e3f5ea; }
.why code.cut, .why code.repeat, .why code.rest { background: #fff; border: 1px dashed #9aa5b1; }
"""
_BODY = "body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: #fff; }"
OPEN = 4  # levels that are unfolded at first


def page(*answers: Answer) -> str:
    """A complete document with answers one below the other."""
    title = safe(answers[0].title)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_BODY}</style></head><body>",
        *map(fragment, answers),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def fragment(answer: Answer) -> str:
    """The answer for a page or a notebook."""
    remark = f'<p class="said">{safe(answer.remark)}</p>' if answer.remark else ""
    title = f"<h3>{safe(answer.title)}</h3>"
    return f'<style>{_STYLE}</style><div class="why">{title}<ul>{_items(answer.root)}</ul>{remark}</div>'


def _items(root: Node) -> str:
    """The nodes as nested items; a text in the list of what waits closes what an earlier node has opened."""
    written: list[str] = []
    waiting: list[tuple[int, Node] | str] = [(0, root)]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, str):
            written.append(entry)
            continue
        depth, node = entry
        if not node.children:
            written.append(f'<li><div class="leaf">{_line(node)}</div></li>')
            continue
        opened = " open" if depth < OPEN else ""
        written.append(f"<li><details{opened}><summary>{_line(node)}</summary><ul>")
        waiting.append("</ul></details></li>")
        waiting.extend((depth + 1, child) for child in reversed(node.children))
    return "\n".join(written)


def _line(node: Node) -> str:
    said = remarks(node)
    told = f'<span class="said">{safe(said)}</span>' if said else ""
    return f'<code class="{node.kind}">{safe(label(node))}</code>{told}'
