"""What modes decide, against values computed by hand; their spellings; stragglers."""

from __future__ import annotations

from math import inf

import pytest

from emberlog.diagnostics import UsageError
from emberlog.workers.messages import Report
from emberlog.workers.modes import mode_of
from emberlog.workers.modes.aap import delay
from emberlog.workers.modes.adaptive import Adaptive, resized
from emberlog.workers.modes.auto import Auto
from emberlog.workers.modes.base import Go, Hold, View
from emberlog.workers.modes.bsp import BSP
from emberlog.workers.modes.dws import DWS
from emberlog.workers.modes.queues import Arrivals, Times, queue
from emberlog.workers.modes.ssp import SSP
from emberlog.workers.straggle import Disturbance, Straggle


def test_omega_and_tau_by_hand() -> None:
    """Two buffers: 30 facts at 1/lambda = 0.2 s with variance 0.01, 10 facts at 0.4 s with variance 0.04. Service takes
    0.1 s with variance 0.005.

    1/lambda = (30 * 0.2 + 10 * 0.4) / 40 = 0.25, so lambda = 4; mu = 10; rho = 0.4.
    sigma_a^2 = (30 * (0.01 + 0.04) + 10 * (0.04 + 0.16)) / 40 - 0.0625 = 0.0875 - 0.0625 = 0.025.
    Ca^2 = 16 * 0.025 = 0.4; Cs^2 = 100 * 0.005 = 0.5; Lq = 0.16 * 0.9 / (2 * 0.6) = 0.12; tau = 0.12 / 4 = 0.03.
    """
    buffers, service = [Arrivals(30, 0.2, 0.01), Arrivals(10, 0.4, 0.04)], Times(100, 0.1, 0.5)
    found = queue(buffers, service, inf, inf)
    assert found is not None
    assert (found.rho, found.omega, found.tau) == pytest.approx((0.4, 0.12, 0.03))
    capped = queue(buffers, service, 0.1, 0.01)
    assert capped is not None and (capped.omega, capped.tau) == (0.1, 0.01)


@pytest.mark.parametrize(
    ("buffers", "service"),
    [
        ([], Times(1, 0.1)),
        ([Arrivals(0, 1.0, 0.0)], Times(1, 0.1)),
        ([Arrivals(5, 1.0, 0.0)], Times()),
        ([Arrivals(5, 0.1, 0.0)], Times(1, 0.1)),  # rho = 1
        ([Arrivals(5, 0.1, 0.0)], Times(1, 0.2)),  # rho = 2
    ],
)
def test_no_queue_no_wait(buffers: list[Arrivals], service: Times) -> None:
    assert queue(buffers, service, inf, inf) is None


def test_times_weigh_facts() -> None:
    """Two facts in a second, then six in six seconds: 0.5 twice, 1 six times; mean 0.875, variance 3/64."""
    times = Times()
    times.add(2, 1.0)
    times.add(6, 6.0)
    assert (times.mean, times.variance) == pytest.approx((0.875, 3 / 64))


def test_dws_waits_tau_for_omega_facts() -> None:
    mode = DWS(omega=inf, tau=inf)
    mode.worked(1, 0.001, 0.0)
    mode.worked(1, 0.4, 0.0)
    for now in (1.0, 2.0, 6.0):
        mode.arrived(1, 1, now)
    held = mode.decide(View(6.0, 1, 0, {}, 6.0))
    figures = mode.figures()
    # Gaps of 1 and 4 s, service of 0.001 and 0.4 s.
    between, service = 2.5, 0.2005
    rho = service / between
    length = rho**2 * (2.25 / between**2 + 0.1995**2 / service**2) / (2 * (1 - rho))
    assert figures == pytest.approx({"rho": rho, "omega": length, "tau": length * between})
    assert length < 1 and held == Go()  # one fact waits, and less than one is expected
    mode.arrived(1, 1, 7.0)
    assert mode.decide(View(7.0, 0, 0, {}, 7.0)) == Hold(7.0 + mode.figures()["tau"])
    assert mode.decide(View(8.0, 0, 0, {}, 7.0)) == Go()  # after the time-out, whatever came


def test_ssp_waits_for_the_slowest_that_is_not_finished() -> None:
    mode = SSP(2, 3)
    assert mode.decide(View(0.0, 5, 4, {1: 2, 2: 9}, 0.0)) == Go(3)
    assert mode.decide(View(0.0, 5, 5, {1: 2, 2: 9}, 0.0)) == Hold()
    assert mode.decide(View(0.0, 5, 5, {2: 9}, 0.0)) == Go(3)  # the first one has finished


def test_buffers_follow_the_pace() -> None:
    mode = Adaptive(alpha=0.8, r=2.0, tau=0.5, beta=100.0)
    assert resized(100.0, 100, 0.5, mode) == 100.0  # 200 a second, as expected
    assert resized(100.0, 100, 1.0, mode) == 100.0  # half of it
    assert resized(100.0, 100, 1.25, mode) == pytest.approx(0.8 * 0.5 * 80)
    assert resized(100.0, 500, 0.5, mode) == pytest.approx(0.8 * 0.5 * 1000)
    assert mode.due(1, 99, 10.0) == 10.5 and mode.due(1, 100, 10.1) == 10.1
    assert mode.due(1, 1, 10.2) == 10.5  # since the first fact that was held


def test_aap_waits_until_enough_has_gathered() -> None:
    """10 facts have come at 100 a second; the next round is expected to take 0.2 s, a half of which is waited for."""
    assert delay(10, 100.0, 0.0, 0.1) == pytest.approx(0.1)
    assert delay(10, 100.0, 30.0, 0.1) == pytest.approx(0.3)  # 20 short of L_min, and 10 more while it waits
    assert delay(0, 100.0, 30.0, 0.1) == delay(10, 0.0, 30.0, 0.1) == 0.0


def test_auto_says_why() -> None:
    busy = {rank: Report(10, 10, waiting=500, compute=1.0, idle=0.1) for rank in range(2)}
    idle = {rank: Report(10, 10, waiting=500, compute=1.0, idle=3.0) for rank in range(2)}
    auto = Auto(condenses=True)
    assert auto(1, idle) is None  # too soon to tell
    assert auto(3, busy) is None and "9%" in auto.why
    chosen = auto(4, idle)
    assert chosen is not None and auto.why.startswith(chosen) and "75%" in auto.why
    assert auto(5, idle) is None  # it changes once


def test_spellings() -> None:
    assert mode_of("ssp:3:2") == SSP(3, 2) == mode_of("ssp:batch=2,staleness=3")
    assert isinstance(mode_of("ssp:0"), BSP) and isinstance(mode_of("ssp:0:1"), BSP)
    assert mode_of("ssp:0:2") == SSP(0, 2)
    assert mode_of("adaptive:r=3,tau=0.5") == Adaptive(r=3.0, tau=0.5)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bps", "no coordination 'bps'"),
        ("ssp:1:2:3", "no parameter takes '3'"),
        ("ssp:x", "'x' is not a number"),
        ("ssp:-1", "'-1' is not a number"),
        ("ssp:1:0", "'0' is not a number above 0"),
        ("adaptive:r=0", "'0' is not a number above 0"),
        ("adaptive:tau=0.0", "'0.0' is not a number above 0"),
        ("dws:omega=nan", "'nan' is not a number"),
        ("bsp:1", "no parameter takes '1'"),
        ("adaptive:gamma=1", "no parameter takes 'gamma=1'"),
    ],
)
def test_wrong_spellings_are_errors(text: str, told: str) -> None:
    with pytest.raises(UsageError, match="coordination") as error:
        mode_of(text)
    assert told in str(error.value)


def test_disturbed_work_takes_longer() -> None:
    disturbance = Disturbance(Straggle(rate=0.001, duration=10.0, share=0.75), seed=1, rank=0)
    start, end = disturbance._ends[-1]
    assert end == start + 10
    assert disturbance.stretched(0.0, start / 2) == pytest.approx(start / 2)
    assert disturbance.stretched(start, 1.0) == pytest.approx(4.0)
    assert disturbance.stretched(start + 8.0, 1.0) == pytest.approx(2.0 + 0.5)  # two seconds of it, then in full


def test_stragglers_are_seeded_and_independent() -> None:
    straggle = Straggle.of("5,0.05,0.75")
    took = [[Disturbance(straggle, seed, rank).stretched(0.0, 100.0) for rank in range(4)] for seed in (1, 1, 2)]
    assert took[0] == took[1] != took[2] and len(set(took[0])) == 4
    # A disturbance of 0.05 s each 0.25 s of work and of that time: a fifth of the time at a quarter of the pace.
    assert sum(took[0]) / 4 == pytest.approx(100 / (0.8 + 0.2 * 0.25), rel=0.05)
    for wrong in ("1,2", "a,b,c", "0,1,0.5", "1,1,1"):
        with pytest.raises(UsageError):
            Straggle.of(wrong)
