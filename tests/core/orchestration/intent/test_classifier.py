"""The default intent classifier on cases of our own: routing, rejection, calibration, lessons, determinism."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.orchestration.intent import Classifier, Intent, Lesson, Ranking, Verdict, close, judge, taught
from comity.core.orchestration.intent.calibration import ANSWER_PRIOR, chance, fit, quantile
from comity.core.orchestration.intent.stems import TEXT_MAX, stem, stems, words
from comity.core.orchestration.intent.thesaurus import IDEAS

CASES = json.loads((Path(__file__).parent / "business.json").read_text())
OUTSIDE = CASES.pop("oos_test")
INTENTS = [Intent(code, one["description"], tuple(one["examples"])) for code, one in sorted(CASES.items())]


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(INTENTS)


def test_utterances_that_share_few_words_with_the_examples_reach_their_capability(classifier: Classifier) -> None:
    """75 % is below the 92 % measured, and far above the 46 % of the same texts without the thesaurus."""
    answers = [(classifier.rank(text), code) for code, one in CASES.items() for text in one["test"]]
    assert sum(found.best[0] == code for found, code in answers) / len(answers) >= 0.75
    assert sum(code in found.best for found, code in answers) / len(answers) >= 0.9


def test_requests_that_no_capability_serves_are_out_of_scope(classifier: Classifier) -> None:
    assert sum(not classifier.rank(text).is_in_scope for text in OUTSIDE) >= len(OUTSIDE) / 2


def test_an_example_said_word_for_word_reaches_its_intent_with_high_confidence(classifier: Classifier) -> None:
    for intent in INTENTS:
        for text in intent.examples:
            found = classifier.rank(text.upper() + "?")
            assert (found.best[0], found.is_in_scope) == (intent.name, True)
            assert found.confidence >= 0.95


def test_the_name_and_description_alone_are_enough_to_learn_from() -> None:
    bare = Classifier([Intent("book_flight", "Reserve a seat on a plane"), Intent("pay_bill", "Pay an open invoice")])
    assert bare.rank("please reserve a plane seat for me").best[0] == "book_flight"
    assert bare.rank("i want to pay the invoice").best[0] == "pay_bill"


def test_learning_twice_gives_the_same_answers() -> None:
    again = Classifier(INTENTS[:4])
    for text in OUTSIDE:
        assert again.rank(text) == _SMALL.rank(text)


@pytest.mark.parametrize("text", ["", "   ", "?!...", "—"])
def test_a_text_without_a_word_has_no_intent(classifier: Classifier, text: str) -> None:
    assert classifier.rank(text) == Ranking((), 0.0, False, ())


def test_no_intents_give_no_answer() -> None:
    assert not Classifier([]).rank("hello").best


def test_one_intent_alone_is_answered() -> None:
    assert Classifier([Intent("greet", "Say hello", ("hi there",))]).rank("hi there").best == ("greet",)


@given(st.text(max_size=200))
def test_any_text_gets_a_confidence_between_nought_and_one(text: str) -> None:
    found = _SMALL.rank(text)
    assert 0 <= found.confidence <= 1
    assert len(found.best) == len(found.scores) <= 3


_SMALL = Classifier(INTENTS[:4])


def test_a_long_text_is_read_to_its_bound() -> None:
    assert words("a " * TEXT_MAX) == ["a"] * (TEXT_MAX // 2)


def test_a_lesson_moves_a_text_and_undoing_it_moves_it_back() -> None:
    text = "is the new tool any good for our people"
    before = _SMALL.rank(text).best[0]
    other = next(intent.name for intent in INTENTS[:4] if intent.name != before)
    lessons = (Lesson(id="l1", text=text, intent=other, was=before),)
    assert Classifier(taught(INTENTS[:4], lessons)).rank(text).best[0] == other
    assert Classifier(taught(INTENTS[:4], ())).rank(text) == _SMALL.rank(text)


def test_a_lesson_takes_a_wrong_example_from_the_intent_that_had_it() -> None:
    wrong = INTENTS[0].examples[0]
    lessons = [Lesson(id="l", text=wrong.upper(), intent=INTENTS[1].name)]
    first, second = taught(INTENTS[:2], lessons)
    assert wrong not in first.examples
    assert wrong.upper() in second.examples


@pytest.mark.parametrize(
    ("ranking", "verdict"),
    [
        (Ranking(("a", "b"), 0.9, True, (2.0, 0.1)), Verdict.ROUTE),
        (Ranking(("a", "b"), 0.6, True, (2.0, 1.9)), Verdict.ROUTE),
        (Ranking(("a", "b"), 0.5, True, (2.0, 1.9)), Verdict.OFFER),
        (Ranking(("a", "b"), 0.5, True, (2.0, 0.1)), Verdict.CLARIFY),
        (Ranking(("a", "b"), 0.9, False, (2.0, 0.1)), Verdict.DECLINE),
        (Ranking((), 0.0, True, ()), Verdict.DECLINE),
    ],
)
def test_a_ranking_is_routed_asked_about_offered_or_declined(ranking: Ranking, verdict: Verdict) -> None:
    assert judge(ranking) is verdict


def test_at_most_three_intents_are_close() -> None:
    assert close(Ranking(("a", "b", "c"), 0.3, True, (1.0, 0.9, 0.2))) == ("a", "b")


def test_a_curve_follows_many_answers_and_stays_at_its_prior_with_none() -> None:
    assert fit([], [], ANSWER_PRIOR) == pytest.approx(ANSWER_PRIOR)
    rows = [(1.0, 0.0, gap / 100, 1.0, 0.0) for gap in range(200)]
    curve = fit(rows, [row[2] > 1 for row in rows], ANSWER_PRIOR)
    assert chance(curve, rows[0]) < 0.1
    assert chance(curve, rows[-1]) > 0.9


def test_a_quantile_is_a_value_of_the_list() -> None:
    assert quantile([3.0, 1.0, 2.0, 4.0], 0.25) == 2.0
    assert quantile([3.0, 1.0], 1.0) == 3.0


@pytest.mark.parametrize(
    ("word", "expected"),
    [("segments", "segment"), ("projections", "projection"), ("costs", "cost"), ("cities", "city"), ("running", "run"),
     ("12", "#"), ("500k", "#k"), ("customer's", "custom"), ("less", "less"), ("is", "is")],
)  # fmt: skip
def test_words_lose_their_endings(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_words_of_one_idea_share_it() -> None:
    (carve,), (allocate,) = stems("carve"), stems("allocate")
    assert set(IDEAS[carve]) & set(IDEAS[allocate]) == {"divide"}


TOKENS = [f"[[{kind}_1_kqzmtwbf]]" for kind in ("EMAIL", "PHONE", "CARD", "ADDRESS", "PASSWORD", "BANK_ACCOUNT")] + ["****1234"]


@pytest.mark.parametrize("token", TOKENS)
def test_a_hidden_value_is_no_word_of_a_text(token: str) -> None:
    assert words(f"delete the account of {token}") == ["delete", "the", "account", "of"]
    assert words(f"{'x ' * (TEXT_MAX // 2 - 4)}{token}") == ["x"] * (TEXT_MAX // 2 - 4)
    assert words(token) == []


@pytest.mark.parametrize("token", TOKENS)
def test_the_type_of_a_hidden_value_makes_no_intent_of_a_request(token: str) -> None:
    kind = words(token.strip("[]").rpartition("_1_")[0].replace("_", " ")) or ["card"]
    named = Intent("NAMED", f"Change the {' '.join(kind)}", (f"{' '.join(kind)} somebody",))
    classifier = Classifier([named, Intent("WEATHER", "Weather forecast of a city", ("will it rain",))])
    assert not classifier.rank(token).is_in_scope
    assert classifier.rank(f"block {token}") == classifier.rank("block")


def test_a_lesson_about_a_request_with_a_hidden_value_holds_for_another_value_and_not_for_every_value() -> None:
    intents = [Intent("MAIL", "Send a letter", ("write to somebody",)), Intent("BLOCK", "Keep a person out", ("shut out",))]
    lesson = Lesson(id="1", text="bar [[EMAIL_1_kqzmtwbf]]", intent="BLOCK")
    classifier = Classifier(taught(intents, [lesson]))
    assert classifier.rank("bar [[EMAIL_7_zzmtwbfq]]").best[0] == "BLOCK"
    assert not classifier.rank("praise [[EMAIL_1_kqzmtwbf]]").is_in_scope


def test_a_lesson_of_nothing_but_a_hidden_value_teaches_nothing() -> None:
    lesson = Lesson(id="1", text="[[EMAIL_1_kqzmtwbf]]", intent=INTENTS[0].name)
    assert taught(INTENTS, [lesson]) == INTENTS
