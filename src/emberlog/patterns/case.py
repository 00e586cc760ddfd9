"""Letters that differ in case only, as Unicode folds case (simple folding)."""

from __future__ import annotations

from emberlog.patterns.tree import Ranges, joined

# A plain value, not `lru_cache`: see the top of the package.
_CASES: list[tuple[tuple[int, ...], ...]] = []


def folded(ranges: Ranges) -> Ranges:
    """The characters with all that differ from them in case only, as Unicode folds case (simple folding)."""
    more = [
        (other, other)
        for letters in _letters()
        if any(low <= letter <= high for letter in letters for low, high in ranges)
        for other in letters
    ]
    return joined((*ranges, *more))


def _letters() -> tuple[tuple[int, ...], ...]:
    """The sets of letters that differ in case only."""
    if _CASES:
        return _CASES[0]
    same: dict[str, list[int]] = {}
    for code in range(0x1E944):  # past the last letter that has another case
        char = chr(code)
        same.setdefault(_simple_fold(char), []).append(code)
    _CASES.append(tuple(tuple(codes) for codes in same.values() if len(codes) > 1))
    return _CASES[0]


def _simple_fold(char: str) -> str:
    """The letter that stands for all cases of one. Where Unicode makes two letters of it, that is its small one."""
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return folded
    return char
