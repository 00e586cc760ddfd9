"""Rates and variances of what arrives and of what is worked on, kept while it happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Times:
    """Mean and variance of the seconds from one fact to the next. n facts in d seconds count as n times d / n."""

    facts: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, facts: int, seconds: float) -> None:
        """Takes in that so many facts took so long (Welford's way, with weights)."""
        each = seconds / facts
        self.facts += facts
        off = each - self.mean
        self.mean += off * facts / self.facts
        self.squares += facts * off * (each - self.mean)

    @property
    def variance(self) -> float:
        return self.squares / self.facts if self.facts else 0.0


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A buffer: the facts in it, and mean and variance of the seconds between arrivals (1 / lambda_j, sigma_aj^2)."""

    facts: int
    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class Queue:
    """What the queueing model says: utilisation rho, expected length omega, expected time tau."""

    rho: float
    omega: float
    tau: float


def queue(buffers: Sequence[Arrivals], service: Times, most: float, longest: float) -> Queue | None:
    """DCDatalog's equations (1) and (2) for a worker's buffers and its own service; omega is at most `most` and tau at
    most `longest`. None where they are undefined: empty buffers, nothing measured, or rho >= 1.

        1/lambda = sum |Mj| / lambda_j / sum |Mj|          sigma_a^2 = sum |Mj| (sigma_aj^2 + lambda_j^-2) / sum |Mj|
        Lq = rho^2 (Ca^2 + Cs^2) / (2 (1 - rho))                       - lambda^-2
    """
    total = sum(buffer.facts for buffer in buffers)
    if not total or not service.facts or service.mean <= 0:
        return None
    between = sum(buffer.facts * buffer.mean for buffer in buffers) / total  # 1 / lambda
    if between <= 0 or service.mean >= between:
        return None
    variance = sum(buffer.facts * (buffer.variance + buffer.mean**2) for buffer in buffers) / total - between**2
    rho = service.mean / between
    arrival, served = max(variance, 0.0) / between**2, service.variance / service.mean**2
    length = rho**2 * (arrival + served) / (2 * (1 - rho))
    return Queue(rho, min(length, most), min(length * between, longest))
