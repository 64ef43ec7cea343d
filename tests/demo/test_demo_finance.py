"""The arithmetic of the demo agrees with independent ways to get the same figures."""

import statistics
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from comity.demo import finance
from comity.errors import TargetError

SEED_FLOWS = [-100_000, 25_000, 35_000, 45_000, 55_000]
AMOUNTS = st.integers(1, 10**7)


def exact_npv(flows, rate):
    return sum((Fraction(flow) / (1 + rate) ** period for period, flow in enumerate(flows)), Fraction(0))


def test_the_seed_example_is_worth_17206_82():
    exact = exact_npv(SEED_FLOWS, Fraction(12, 100))
    assert round(finance.npv(SEED_FLOWS, 0.12), 2) == 17_206.82
    assert round(float(exact), 2) == 17_206.82


@given(st.lists(st.integers(-(10**7), 10**7), min_size=1, max_size=30), st.integers(-90, 300))
def test_npv_equals_the_sum_of_exact_fractions(flows, percent):
    exact = exact_npv(flows, Fraction(percent, 100))
    scale = exact_npv([abs(flow) for flow in flows], Fraction(percent, 100)) or 1
    assert abs(finance.npv(flows, percent / 100) - exact) <= float(scale) * 1e-12


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=12), st.integers(-50, 100))
def test_npv_is_the_sum_of_the_discounted_flows(flows, percent):
    parts = finance.discounted(flows, percent / 100)
    assert finance.npv(flows, percent / 100) == pytest.approx(sum(parts), rel=1e-9, abs=1e-3)


@given(st.lists(AMOUNTS, min_size=1, max_size=4), st.lists(AMOUNTS, min_size=1, max_size=12), st.sampled_from([1, -1]))
def test_at_the_irr_the_flows_are_worth_nothing_and_beside_it_they_change_sign(paid, earned, sign):
    flows = [sign * -flow for flow in paid] + [sign * flow for flow in earned]
    rate = finance.irr(flows)
    assert rate > -1
    factor = 1 / (1 + rate)
    scale = sum(abs(flow) * factor**period for period, flow in enumerate(flows))
    assert abs(sum(flow * factor**period for period, flow in enumerate(flows))) <= scale * 1e-9
    step = 1e-6 * (1 + rate)
    assert finance.npv(flows, rate - step) * finance.npv(flows, rate + step) < 0


def test_the_irr_of_a_one_year_loan_is_its_interest():
    assert finance.irr([-100, 110]) == pytest.approx(0.1, abs=1e-12)
    assert finance.irr([0, -100, 0, 121]) == pytest.approx(0.1, abs=1e-12)
    assert finance.irr([-100, 50]) == pytest.approx(-0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("flows", "told"),
    [
        ([100, 50], "never change their sign"),
        ([-100, -50], "never change their sign"),
        ([0, 0], "never change their sign"),
        ([-100, 230, -132], "change their sign 2 times"),
    ],
)
def test_flows_without_one_irr_are_an_error_that_says_why(flows, told):
    with pytest.raises(TargetError, match=told) as caught:
        finance.irr(flows)
    assert caught.value.code == "IRR_NOT_DEFINED"


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=12))
def test_at_the_payback_the_money_received_equals_the_money_paid(flows):
    years = finance.payback(flows)
    sums = [sum(flows[: count + 1]) for count in range(len(flows))]
    if years is None:
        assert all(total < 0 for total in sums)
        return
    assume(flows[0] < 0)
    whole = int(years)
    if whole == years and sums[whole] == 0:
        return
    received = sums[whole] + (years - whole) * flows[whole + 1]
    assert received == pytest.approx(0, abs=1e-6)
    assert all(total < 0 for total in sums[: whole + 1])


def test_payback_counts_part_of_a_year():
    assert finance.payback(SEED_FLOWS) == pytest.approx(2 + 40_000 / 45_000)
    assert finance.payback([-100, 10]) is None
    assert finance.payback([5, 10]) == 0


def simulated(seed=7, trials=1_100, spread=0.2):
    batches = list(finance.simulate(SEED_FLOWS, 0.12, spread=spread, trials=trials, seed=seed))
    return batches, [value for batch in batches for value in batch]


def test_the_same_seed_gives_the_same_values_and_another_does_not():
    assert simulated()[1] == simulated()[1]
    assert simulated()[1] != simulated(seed=8)[1]


def test_trials_come_in_batches_of_bounded_size():
    batches, values = simulated(trials=2 * finance.TRIALS_PER_BATCH + 1)
    assert [len(batch) for batch in batches] == [finance.TRIALS_PER_BATCH, finance.TRIALS_PER_BATCH, 1]
    assert len(values) == 2 * finance.TRIALS_PER_BATCH + 1


def test_the_simulated_mean_is_the_npv_with_the_mean_overrun():
    overrun = (0.95 + 1.0 + 1.2) / 3  # mean of the triangular distribution
    returns = finance.npv(SEED_FLOWS, 0.12) - SEED_FLOWS[0]
    _, values = simulated(trials=20_000)
    allowed = 4 * statistics.pstdev(values) / len(values) ** 0.5
    assert abs(statistics.fmean(values) - (SEED_FLOWS[0] * overrun + returns)) < allowed


def test_without_spread_only_the_investment_moves():
    _, values = simulated(spread=0)
    returns = finance.npv(SEED_FLOWS, 0.12) - SEED_FLOWS[0]
    assert all(returns - 120_000 <= value <= returns - 95_000 for value in values)


def test_the_outlook_counts_losses_and_orders_its_quantiles():
    found = finance.outlook([float(value) for value in range(-20, 80)], seed=3)
    assert found == finance.Outlook(trials=100, seed=3, mean=29.5, low=-15.0, median=30.0, high=75.0, loss_probability=0.2)
    assert finance.outlook([4.0], seed=1).high == 4.0
