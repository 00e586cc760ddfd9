"""A part of which everything is known beforehand: tokens that beget tokens elsewhere, by their own numbers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

from emberlog.workers.part import Parcel, Work

Token = tuple[int, int]  # generations left, a number


@dataclass(frozen=True)
class Tokens:
    tokens: tuple[Token, ...]

    @property
    def facts(self) -> int:
        return len(self.tokens)

    @property
    def bytes(self) -> int:
        return 16 * len(self.tokens)


def children(token: Token, size: int) -> list[tuple[int, Token]]:
    """The owners of a token's children, and the children."""
    left, number = token
    random = Random(f"{token}")
    births = random.randint(0, 3) if left else 0
    return [(random.randrange(size), (left - 1, number * 4 + child + 1)) for child in range(births)]


def family(first: list[Token], size: int) -> Counter[Token]:
    """Every token that will ever be, from the first ones."""
    found: Counter[Token] = Counter()
    open_ = list(first)
    while open_:
        token = open_.pop()
        found[token] += 1
        open_ += [child for _, child in children(token, size)]
    return found


class TokenPart:
    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self.taken: list[Token] = []
        self.open: list[Token] = []
        self.buffers: dict[int, list[Token]] = {}

    @property
    def waiting(self) -> int:
        return len(self.open)

    @property
    def left(self) -> float:
        return self.waiting

    def put(self, parcel: Parcel) -> None:
        self.inbox(parcel)

    def inbox(self, parcel: Parcel) -> None:
        assert isinstance(parcel, Tokens)
        self.open += parcel.tokens

    def take(self, least: float = 0.0) -> Work:
        batch, self.open = self.open, []
        self.taken += batch
        born = 0
        for token in batch:
            for owner, child in children(token, self.size):
                born += 1
                (self.open if owner == self.rank else self.buffers.setdefault(owner, [])).append(child)
        return Work(len(batch), born)

    def held(self) -> Mapping[int, int]:
        return {peer: len(tokens) for peer, tokens in self.buffers.items()}

    def outbox(self, peer: int) -> Tokens:
        return Tokens(tuple(self.buffers.pop(peer)))

    def snapshot(self) -> object:
        return deepcopy((self.taken, self.open, self.buffers))

    def restore(self, state: Any) -> None:
        self.taken, self.open, self.buffers = deepcopy(state)
