"""Usage and what it costs: priced by a table, summed without ever adding what is unknown."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.envelope.usage import NO_USAGE, Cost, Prices, Usage, cost_words, priced

PRICES = Prices("USD", {"a:one": (2.0, 10.0), "a:free": (0, 0)})
SPENT = Usage(prompt_tokens=1_000_000, completion_tokens=100_000)

usages = st.builds(
    lambda prompt, completion, model: priced(Usage(prompt_tokens=prompt, completion_tokens=completion), model, PRICES),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.sampled_from(["a:one", "a:free", "a:unknown"]),
)


@pytest.mark.parametrize(
    ("model", "prices", "cost"),
    [
        ("a:one", PRICES, Cost(amount=3.0, currency="USD")),
        ("a:free", PRICES, Cost(amount=0.0, currency="USD")),
        ("a:two", PRICES, None),
        ("a:one", None, None),
    ],
)
def test_a_model_costs_what_the_table_says_and_nothing_is_made_up(model, prices, cost):
    assert priced(SPENT, model, prices) == Usage(prompt_tokens=1_000_000, completion_tokens=100_000, cost=cost)
    claimed = msgspec.structs.replace(SPENT, cost=Cost(amount=9, currency="USD"))
    assert priced(claimed, model, prices).cost == cost


@given(st.lists(usages))
def test_the_cost_of_a_sum_leaves_out_no_token(parts):
    total = sum(parts, NO_USAGE)
    assert total.total_tokens == sum(one.total_tokens for one in parts)
    unpriced = sum(one.total_tokens for one in parts if one.cost is None)
    if total.cost is None:
        assert unpriced == total.total_tokens
    else:
        assert total.cost.unpriced_tokens == unpriced
        assert total.cost.amount == pytest.approx(sum(one.cost.amount for one in parts if one.cost is not None))


def test_amounts_in_two_currencies_are_not_added():
    euros = Usage(prompt_tokens=7, cost=Cost(amount=5.0, currency="EUR"))
    dollars = Usage(prompt_tokens=9, cost=Cost(amount=1.0, currency="USD"))
    assert (euros + dollars).cost == Cost(amount=5.0, currency="EUR", unpriced_tokens=9)


@pytest.mark.parametrize(
    ("cost", "tokens", "words"),
    [
        (None, 0, ""),
        (None, 5, "cost unknown: no price is given"),
        (Cost(amount=1234.5, currency="USD"), 5, "1,234.50 USD"),
        (Cost(amount=0.00125, currency="USD"), 5, "0.001250 USD"),
        (Cost(amount=0.0, currency="EUR"), 5, "0.00 EUR"),
        (Cost(amount=2, currency="USD", unpriced_tokens=1_200), 5, "at least 2.00 USD; 1,200 tokens have no price"),
    ],
)
def test_a_cost_in_words(cost, tokens, words):
    assert cost_words(cost, tokens) == words


@pytest.mark.parametrize(
    ("currency", "models"),
    [("", {}), ("U S", {}), ("X" * 17, {}), ("USD", {"m": (-1, 0)}), ("USD", {"m": (1, float("nan"))}), ("USD", {"m": (1,)})],
)
def test_a_table_that_could_not_price_is_refused(currency, models):
    with pytest.raises(ValueError, match=r"a currency is a word|the price of 'm' is two numbers"):
        Prices(currency, models)


@pytest.mark.parametrize("bad", [{"amount": -1}, {"amount": None}, {"unpriced_tokens": -1}, {"currency": "X" * 17}])
def test_a_cost_from_outside_is_checked(bad):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"amount": 1.0, "currency": "USD"} | bad, Cost)
