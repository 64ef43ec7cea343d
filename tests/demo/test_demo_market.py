"""The scenarios follow from the plan's drivers."""

from comity.demo.market import SCENARIOS, Plan, Scenario, cash_flows, frame

SEED_FLOWS = [-100_000, 25_000, 35_000, 45_000, 55_000]


def test_the_base_scenario_of_the_default_plan_has_the_seed_cash_flows():
    assert {one.name: one.cash_flows for one in frame(Plan())}["base"] == SEED_FLOWS


def test_a_year_is_units_times_contribution_less_fixed_cost():
    plan = Plan(investment=500, market_units=100, shares=(0.5,), price=9, unit_cost=2, fixed_cost=40)
    assert cash_flows(plan, Scenario("s", "")) == [-500, 100 * 0.5 * 7 - 40]


def test_each_factor_moves_its_own_driver():
    plan = Plan(investment=500, market_units=100, shares=(0.5,), price=9, unit_cost=2, fixed_cost=40)
    assert cash_flows(plan, Scenario("s", "", volume=2)) == [-500, 660]
    assert cash_flows(plan, Scenario("s", "", fixed_cost=2)) == [-500, 270]
    assert cash_flows(plan, Scenario("s", "", investment=2)) == [-1000, 310]


def test_three_scenarios_come_worst_first():
    assert [one.name for one in SCENARIOS] == ["conservative", "base", "aggressive"]
    totals = [sum(one.cash_flows) for one in frame(Plan())]
    assert totals == sorted(totals)
