"""What a call used: tokens of models, what they cost by the node's prices, and the calls made below it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

PRICE_MAX: Final = 1_000_000_000.0  # of a million tokens
CURRENCY_CHARS_MAX: Final = 16
_MILLION: Final = 1_000_000


class Cost(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What tokens cost. `amount` leaves out `unpriced_tokens`: tokens of a model that no price is known for."""

    amount: Annotated[float, Meta(ge=0)] = 0.0
    currency: Annotated[str, Meta(max_length=CURRENCY_CHARS_MAX)]
    unpriced_tokens: Annotated[int, Meta(ge=0)] = 0


class Usage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Tokens a call and everything below it reported, what they cost, and the calls made below it.

    `cost` is None where no token has a price: unknown if there are tokens, nothing if there are none.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cost: Cost | None = None

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """Return both together. Amounts in different currencies are not added: the second's tokens count as unpriced."""
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            calls=self.calls + other.calls,
            cost=None if self.cost is other.cost is None else _together(self, other),
        )


def _together(first: Usage, second: Usage) -> Cost | None:
    costs = [one.cost for one in (first, second) if one.cost is not None]
    currency = costs[0].currency
    amount, unpriced = 0.0, 0
    for one in (first, second):
        if one.cost is not None and one.cost.currency == currency:
            amount += one.cost.amount
            unpriced += one.cost.unpriced_tokens
        else:
            unpriced += one.total_tokens
    return Cost(amount=amount, currency=currency, unpriced_tokens=unpriced)


NO_USAGE: Final = Usage()


class Prices(Struct, frozen=True, forbid_unknown_fields=True):
    """What a million tokens of each model cost, prompt and completion, in one currency.

    Prices("USD", {"openai:gpt-4o": (2.50, 10.00)})

    A model is named as in an agent's `model`. What a model costs that is not in the table is unknown.
    """

    currency: str
    models: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        if not (isinstance(self.currency, str) and 0 < len(self.currency) <= CURRENCY_CHARS_MAX and self.currency.isalpha()):
            raise ValueError(f"a currency is a word such as USD of at most {CURRENCY_CHARS_MAX} letters, not {self.currency!r}")
        for name, pair in self.models.items():
            if len(pair) != 2 or not all(_is_price(one) for one in pair):
                raise ValueError(f"the price of {name!r} is two numbers from 0: of a million prompt and completion tokens")


def priced(usage: Usage, model: str, prices: Prices | None) -> Usage:
    """Return what was used of a model with what it cost; without a cost where the table has no price of the model."""
    pair = None if prices is None else prices.models.get(model)
    cost = None
    if prices is not None and pair is not None:
        amount = (usage.prompt_tokens * pair[0] + usage.completion_tokens * pair[1]) / _MILLION
        cost = Cost(amount=amount, currency=prices.currency)
    return replace(usage, cost=cost)


def _is_price(value: object) -> bool:
    return type(value) in (int, float) and isfinite(value) and 0 <= value <= PRICE_MAX  # type: ignore[arg-type,operator]


def cost_words(cost: Cost | None, tokens: int) -> str:
    """Return what tokens cost in words: an amount, at least an amount where a part has no price, or that it is unknown."""
    if cost is None:
        return "cost unknown: no price is given" if tokens else ""
    words = f"{cost.amount:,.{2 if cost.amount >= 1 or not cost.amount else 6}f} {cost.currency}"
    if cost.unpriced_tokens:
        return f"at least {words}; {cost.unpriced_tokens:,} tokens have no price"
    return words
