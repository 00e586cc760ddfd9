"""Random components, kind by kind."""

from __future__ import annotations

from strategies import recursive_programs
from strategies.recursive import extremum_components, pair_components, plain_components, sum_components

COMPONENTS = {
    "plain": plain_components(),
    "extremum": extremum_components(),
    "pair": pair_components(),
    "sum": sum_components(),
    "any": recursive_programs(),
}
