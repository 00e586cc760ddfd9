"""Ids on which workers agree though each sees its share of the values only.

Numbers count from the least one of their domain, as all workers together know it. Where they lie too far apart for
that, every worker learns all different ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from emberlog.components.program import Domain, Id, KernelProgram, Kind
from emberlog.kernels.cluster.exchange import Array, Exchange
from emberlog.kernels.columns.joins import Column, different
from emberlog.kernels.dictionaries import Coded, Dictionary, Listed, Range, as_arrow, numbers_of
from emberlog.kernels.encode import MOST_IDS, Encoder
from emberlog.types import INT64_MAX, INT64_MIN


def agreed_encoder(program: KernelProgram, tables: Mapping[str, Sequence[pa.Table]], exchange: Exchange) -> Encoder:
    """An encoder with the same ids in all workers. `tables` has the rows of each relation that this worker has; the
    values of its domains are numbers."""
    columns = [
        [
            numbers_of(table.column(spot).combine_chunks(), np.int64)
            for name, spot in domain.columns
            for table in tables.get(name, ())
        ]
        for domain in program.domains
    ]
    return Encoder(program, {}).with_dictionaries(_agreed(program.domains, columns, exchange))


def owner_number(encoder: Encoder, kind: Kind, column: Column) -> Column:
    """The numbers that ids of a domain stand for: by these Spark has placed the rows."""
    if not isinstance(kind, Id) or encoder.is_plain(kind):
        return column
    return numbers_of(encoder.dictionaries[kind.domain].decode(column), np.int64)


def owner_origin(encoder: Encoder, kind: Kind) -> int | None:
    """What makes the numbers by which Spark has placed rows of ids, when it is added; None where no sum does."""
    if not isinstance(kind, Id):
        return 0
    dictionary = encoder.dictionaries[kind.domain]
    numbers = dictionary.numbers if isinstance(dictionary, Coded) else dictionary
    return numbers.low if isinstance(numbers, Range) else None


def _agreed(domains: Sequence[Domain], columns: Sequence[Sequence[Array]], exchange: Exchange) -> list[Dictionary]:
    """A dictionary for each domain, of the numbers that all workers have in its columns."""
    known = [[*arrays, np.array(_constants(domain), np.int64)] for domain, arrays in zip(domains, columns, strict=True)]
    ends = np.array([_ends(arrays) for arrays in known], np.int64).reshape(-1, 2)
    received, _ = exchange.swap([[ends[:, 0], ends[:, 1]]] * exchange.size)
    lows = np.minimum.reduce([low for low, _ in received]).tolist()
    highs = np.maximum.reduce([high for _, high in received]).tolist()
    far = [number for number in range(len(domains)) if highs[number] - lows[number] >= MOST_IDS]
    listed = _gathered([known[number] for number in far], exchange) if far else []
    found: list[Dictionary] = []
    for number, domain in enumerate(domains):
        numbers: Dictionary = Range(lows[number], max(highs[number] - lows[number] + 1, 0))
        if number in far:
            numbers = Listed(as_arrow(listed[far.index(number)]))
        found.append(numbers if domain.codes is None else Coded(numbers, dict(domain.codes)))
    return found


def _constants(domain: Domain) -> list[int]:
    if domain.codes is not None:
        return [code for _, code in domain.codes]
    return [int(value) for value in domain.constants]  # type: ignore[call-overload]


def _ends(arrays: Sequence[Array]) -> tuple[int, int]:
    """The least and the greatest of all numbers; without any, such that they do not count."""
    some = [array for array in arrays if len(array)]
    least = min((int(array.min()) for array in some), default=INT64_MAX)
    return least, max((int(array.max()) for array in some), default=INT64_MIN)


def _gathered(domains: Sequence[Sequence[Array]], exchange: Exchange) -> list[Array]:
    """The different numbers of all workers, sorted, for each domain."""
    own = [different(np.concatenate(arrays)) for arrays in domains]
    received, _ = exchange.swap([own] * exchange.size)
    return [different(np.concatenate(pieces)) for pieces in zip(*received, strict=True)]
