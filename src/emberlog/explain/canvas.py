"""SVG shapes, measured by counting characters. Text comes from programs, so every string is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from unicodedata import category, east_asian_width

Point = tuple[float, float]

FONT = "ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', Consolas, monospace"
SIZE = 12.0  # pixels
LETTER = 0.605  # width of a letter of a monospaced font, in its size


def clean(text: str) -> str:
    """The text without characters that XML forbids or that turn the reading direction."""
    return "".join("\ufffd" if _is_unfit(letter) else letter for letter in text)


def _is_unfit(letter: str) -> bool:
    if letter in "\n\t":
        return False
    turns = "\u202a" <= letter <= "\u202e" or "\u2066" <= letter <= "\u2069"
    return turns or category(letter) in ("Cc", "Cs") or letter in "\ufffe\uffff"


def safe(text: str) -> str:
    """Text that may stand between tags, and in quotes inside of one."""
    return escape(clean(text), quote=True)


def text_width(text: str, size: float = SIZE) -> float:
    """About how many pixels the text takes; letters of East Asian scripts are twice as wide."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text) * size * LETTER


class Canvas:
    """Collects shapes in the order in which they are painted."""

    def __init__(self) -> None:
        self.shapes: list[str] = []

    def rect(
        self, at: Point, size: Point, *, fill: str, stroke: str = "none", radius: float = 4, dashed: bool = False
    ) -> None:
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        self.shapes.append(
            f'<rect x="{at[0]:.1f}" y="{at[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" rx="{radius:g}" '
            f'fill="{fill}" stroke="{stroke}"{dash}/>'
        )

    def text(
        self,
        at: Point,
        text: str,
        *,
        fill: str = "#1f2933",
        size: float = SIZE,
        bold: bool = False,
        middle: bool = False,
    ) -> None:
        weight = ' font-weight="bold"' if bold else ""
        anchor = ' text-anchor="middle"' if middle else ""
        self.shapes.append(
            f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" font-size="{size:g}" fill="{fill}"{weight}{anchor} '
            f'xml:space="preserve">{safe(text)}</text>'
        )

    def line(self, points: Sequence[Point], *, stroke: str, dashed: bool = False, width: float = 1.3) -> None:
        listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        self.shapes.append(
            f'<polyline points="{listed}" fill="none" stroke="{stroke}" stroke-width="{width:g}"{dash} '
            f'stroke-linejoin="round"/>'
        )

    def arrow_up(self, tip: Point, *, fill: str) -> None:
        x, y = tip
        self.shapes.append(f'<path d="M{x:.1f},{y:.1f} l-4,7 h8 z" fill="{fill}"/>')

    def svg(self, size: Point, title: str) -> str:
        """The whole picture as a document of this size."""
        width, height = size
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
                f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{safe(FONT)}">',
                f"<title>{safe(title)}</title>",
                f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fbfcfd"/>',
                *self.shapes,
                "</svg>\n",
            ]
        )


def folded(text: str, width: int, most: int = 3) -> list[str]:
    """The text in lines of about `width` letters, broken at spaces; what is over `most` lines is left out."""
    lines = [""]
    for word in _words(text):
        if lines[-1].strip() and len(lines[-1]) + len(word.rstrip()) > width:
            lines.append("  ")
        lines[-1] += word
    lines = [_cut(line.rstrip(), width + 8) for line in lines]
    if len(lines) > most:
        lines = [*lines[: most - 1], _cut(lines[most - 1], width - 2) + " …"]
    return lines


def _words(text: str) -> Iterable[str]:
    start = 0
    for spot, letter in enumerate(text):
        if letter == " ":
            yield text[start : spot + 1]
            start = spot + 1
    yield text[start:]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
