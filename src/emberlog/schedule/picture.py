"""Charts as SVG: points over two axes, both by powers of ten or, across, one place for each label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, TOP, RIGHT, BOTTOM = 84, 48, 150, 56
COLOURS = ("#c0392b", "#2471a3", "#1e8449", "#b9770e", "#7d3c98", "#5d6d7e")


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart shows. Each series is one value, above zero, for each place across."""

    title: str
    across: str
    up: str
    places: Sequence[float]
    series: Mapping[str, Sequence[float]]
    labels: Sequence[str] | None = None  # of the places; without them places are numbers and the axis is logarithmic

    def to_svg(self) -> str:
        """The chart as a document."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
            ' font-family="sans-serif" font-size="12" fill="#222">'
        )
        parts = [head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *self._frame(), *self._lines()]
        return "\n".join((*parts, "</svg>", ""))

    def _frame(self) -> Iterator[str]:
        """Title, axes, and lines of the grid with their numbers."""
        yield _text(LEFT, 26, self.title, "start", ' font-size="15"')
        yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, self.across)
        turned = f' transform="rotate(-90 20 {HEIGHT / 2})"'
        yield _text(20, HEIGHT / 2, self.up, "middle", turned)
        low, high = self._powers()
        for power in range(low, high + 1):
            y = self._y(10.0**power)
            yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
            yield _text(LEFT - 8, y + 4, _power(power), "end")
        labels = self.labels or [f"{place:g}" for place in self.places]
        for place, label in zip(self.places, labels, strict=True):
            x = self._x(place)
            yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>'
            yield _text(x, HEIGHT - BOTTOM + 18, label)

    def _lines(self) -> Iterator[str]:
        """Each series as points that are joined, and its name at the right."""
        for row, (name, values) in enumerate(self.series.items()):
            colour = COLOURS[row % len(COLOURS)]
            points = [(self._x(x), self._y(y)) for x, y in zip(self.places, values, strict=True)]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points)
            y = TOP + 14 + 20 * row
            yield f'<circle cx="{WIDTH - RIGHT + 18}" cy="{y - 4}" r="4" fill="{colour}"/>'
            yield _text(WIDTH - RIGHT + 28, y, name, "start")

    def _x(self, place: float) -> float:
        first, last = self.places[0], self.places[-1]
        if self.labels is None:
            first, last, place = log10(first), log10(last), log10(place)
        margin = 16
        share = (place - first) / (last - first) if last > first else 0.5
        return LEFT + margin + share * (WIDTH - LEFT - RIGHT - 2 * margin)

    def _y(self, value: float) -> float:
        low, high = self._powers()
        return TOP + (high - log10(value)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def _powers(self) -> tuple[int, int]:
        """The powers of ten between which all values lie."""
        values = [log10(value) for values in self.series.values() for value in values]
        return floor(min(values)), max(ceil(max(values)), floor(min(values)) + 1)


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _power(power: int) -> str:
    return f"{10**power:,}" if 0 <= power <= 6 else f"1e{power}"
