"""Requests of several parts: the labelled set, the order of parts, and what must stay whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from corpus import read_corpus
from hypothesis import given
from hypothesis import strategies as st
from steps import count_steps

from comity.core.orchestration.split import Part, Plan, Shape, split, things
from comity.core.orchestration.split.split import PARTS_MAX, TEXT_MAX
from comity.core.orchestration.split.weights import WEIGHTS

sys.path.insert(0, str(Path(__file__).parents[4] / "scripts"))
from check_split import judged
from fit_split import TABLE, learn, rows, source, table

CASES = read_corpus(Path(__file__).parent / "requests.yaml")
LATER = read_corpus(Path(__file__).parent / "later_requests.yaml")
BARS = {"single": 0.95, "sequential": 0.95, "parallel": 0.95, "mixed": 0.85}
EVERYDAY = read_corpus(Path(__file__).parent / "everyday_requests.yaml")
FURTHER = read_corpus(Path(__file__).parent / "further_requests.yaml")
PLAIN = read_corpus(Path(__file__).parent / "plain_requests.yaml")
TRADES = read_corpus(Path(__file__).parent / "trades_requests.yaml")
TRADES_BARS = {"single": 0.95, "sequential": 0.9, "parallel": 0.9, "mixed": 0.6}
STEPS = read_corpus(Path(__file__).parent / "steps_requests.yaml")
MANNERS = read_corpus(Path(__file__).parent / "manners_requests.yaml")
STEPS_BARS = {"sequential": 0.8, "parallel": 0.9}  # no word says the order
LATER_BARS = {"single": 0.95, "sequential": 0.85, "parallel": 0.95, "mixed": 0.85}


@pytest.mark.parametrize("kind", BARS)
def test_labelled_requests_get_their_parts_in_order(kind: str) -> None:
    found = judged({kind: CASES[kind]})[kind]
    assert sum(is_good for _, _, is_good in found) / len(found) >= BARS[kind], [text for text, _, good in found if not good]


@pytest.mark.parametrize("kind", LATER_BARS)
def test_requests_that_were_labelled_later_get_their_parts_in_order(kind: str) -> None:
    found = judged({kind: LATER[kind]})[kind]
    assert sum(is_good for _, _, is_good in found) / len(found) >= LATER_BARS[kind], [
        text for text, _, good in found if not good
    ]


@pytest.mark.parametrize("kind", TRADES_BARS)
def test_requests_from_many_trades_get_their_parts_in_order(kind: str) -> None:
    found = judged({kind: TRADES[kind]})[kind]
    assert sum(is_good for _, _, is_good in found) / len(found) >= TRADES_BARS[kind], [
        text for text, _, good in found if not good
    ]


@pytest.mark.parametrize("kind", STEPS_BARS)
def test_most_steps_that_no_word_orders_get_their_order(kind: str) -> None:
    found = judged({kind: STEPS[kind]})[kind]
    assert sum(is_good for _, _, is_good in found) / len(found) >= STEPS_BARS[kind]


@pytest.mark.parametrize("kind", ["single", "sequential", "parallel"])
def test_formal_and_talkative_requests_get_their_parts_in_order(kind: str) -> None:
    found = judged({kind: MANNERS[kind]})[kind]
    assert sum(is_good for _, _, is_good in found) / len(found) >= 0.9, [text for text, _, good in found if not good]


def test_the_weights_are_those_learnt_from_the_labelled_sets() -> None:
    names = sorted(Path(__file__).parent.glob("*requests.yaml"))
    assert table(learn([row for name in names for row in rows(read_corpus(name))])) == WEIGHTS


def test_the_table_of_weights_is_as_its_script_writes_it() -> None:
    assert TABLE.read_text() == source(WEIGHTS)


@pytest.mark.parametrize("kind", BARS)
@pytest.mark.parametrize("cases", [FURTHER, EVERYDAY, PLAIN], ids=["further", "everyday", "plain"])
def test_requests_that_were_labelled_without_a_look_at_the_rules_get_their_parts_in_order(kind: str, cases: Any) -> None:
    found = judged({kind: cases[kind]})[kind]
    assert sum(is_good for _, _, is_good in found) / len(found) >= 0.9, [text for text, _, good in found if not good]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("Shortlist five suppliers, request samples from them and score the samples", [(), (0,), (1,)]),
        ("Summarise the study, then send the summary to Ana and file it in the archive", [(), (0,), (0,)]),
        ("Find the supplier, then request a quote and check their references", [(), (0,), (0,)]),
        ("Load the file, remove the outliers and plot a chart", [(), (0,), (1,)]),
        ("Calculate the NPV first, then the IRR", [(), (0,)]),
        ("Fetch samples from Oslo and from Turku, then rank them", [(), (0,)]),
        ("Name a tariff that pays for both theft and water damage", [()]),
        ("Show me the tide table, also the height of the lock", [(), ()]),
        ("Find a joiner in Kiel + a glazier in Husum", [(), ()]),
        ("Hire a tent, and when that is booked tell Ida the price", [(), (0,)]),
        ("I should like you to check the roof, following which please write a list of faults", [(), (0,)]),
        ("Run a fraud check and a credit check in parallel", [(), ()]),
        ("While you're checking the stock, draft the offer", [(), ()]),
        ("Check if Ann may travel and, if so, book the flight", [(), (0,)]),
        ("Run the tests. When they pass, deploy the service.", [(), (0,)]),
        ("1. Clean the list 2. Send it to me", [(), (0,)]),
        ("Choose a venue, and as soon as it is confirmed, send the invitations", [(), (0,)]),
        ("Merge the lists, calculate the totals and print the labels", [(), (0,), (1,)]),
        ("Measure the baseline, apply the change, measure again", [(), (0,), (1,)]),
        ("Prepare the pack, but get the forecast first", [(), (0,)]),
        ("Having compared the leases, tell me which to sign", [(), (0,)]),
        ("Who chairs the board? What is its mandate?", [(), ()]),
        ("Draft the note and have Nina approve the budget", [(), ()]),
        ("Tell the driver to collect the pallets and bring them to dock 4", [()]),
        ("Find a supplier who can cut, weld and paint frames", [()]),
        ("Let me know once the shipment has cleared customs", [()]),
        ("Which campaigns reached 10,000 people and cost less than 2 cents", [()]),
        ("What does it cost to build and maintain the platform?", [()]),
        ("Which carriers can collect after six and deliver before noon?", [()]),
        ("Find someone who can tune a piano and repair its pedals", [()]),
        ("List the customers who can pay in May and invite them", [(), (0,)]),
        ("Can I cancel a ticket and get the money back?", [()]),
        ("Explain the difference between 'approve and pay' and 'approve then hold'", [()]),
        ("Summarise the pros, cons and open questions of the merger", [()]),
        ("Translate this sentence into Dutch: wash the car and dry it", [()]),
        ("Sort the essays; from the top ten pick two", [(), (0,)]),
        ("See if the hall is free, and if so reserve it", [(), (0,)]),
        ("Only after the supplier confirms the date should you tell the customer", [(), (0,)]),
        ("The order of work is: strip the wall, fill the cracks, paint the ceiling", [(), (0,), (1,)]),
        ("The tasks for today are: invoice Brightside, back up the server", [(), ()]),
        ("Find a hotel in Turin and a train from Milan", [(), ()]),
        ("Send the lease to Ann and the keys to Bob", [(), ()]),
        ("Read the agreement, note anything unusual and email my lawyer", [(), (0,), (1,)]),
        ("Map the process and spot the bottlenecks", [(), (0,)]),
        ("Flag mismatches and send the flagged items to Dana", [(), (0,)]),
        ("Convert the file, correct the formatting and send it to me", [(), (0,), (1,)]),
        ("Find the bug, fix it and write a test", [(), (0,), (1,)]),
        ("Test the alarm, log the result and order new batteries for the torches", [(), (0,), ()]),
        ("Find the cause of the delay and inform the customer", [(), (0,)]),
        ("Record the payment, update the balance and send a receipt", [(), (0,), (1,)]),
        ("Water the plants, feed the cat and lock the door", [(), (), ()]),
        ("Move 500 to savings and pay Dad the 80 I owe him", [(), ()]),
        ("Summarise the tenders. I'd then like a recommendation.", [(), (0,)]),
        ("Pull the sales by region and find the region with the steepest decline", [(), (0,)]),
        ("Estimate the tax burden in Ireland and reduce the tax burden in Estonia", [(), ()]),
        ("Locate a tool library and reserve a drill there", [(), (0,)]),
        ("Write a script to fetch the rates and mail them to me", [()]),
        ("Which licences do we need before opening a bar?", [()]),
        ("Build a persona for Gen Z and a journey map for parents, then combine them", [(), (), (0, 1)]),
        ("Test the impact on product A. Test the impact on product B.", [(), ()]),
        ("Check the balance and, unless it is under 1,000, pay the builder", [(), (0,)]),
    ],
)
def test_how_parts_refer_to_each_other_decides_what_they_wait_for(text: str, after: list[tuple[int, ...]]) -> None:
    assert [part.after for part in split(text).parts] == after


def test_the_labelled_set_has_more_than_a_hundred_requests() -> None:
    assert sum(map(len, CASES.values())) > 100


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("Calculate the NPV", Shape.SINGLE),
        ("Calculate the NPV, then write a memo", Shape.SEQUENTIAL),
        ("Calculate the NPV and describe our buyers", Shape.PARALLEL),
        ("Calculate the NPV and describe our buyers, then write a memo", Shape.MIXED),
        ("", Shape.SINGLE),
        ("Check the stock and please", Shape.SINGLE),
    ],
)
def test_the_shape_says_how_parts_hang_together(text: str, shape: Shape) -> None:
    assert split(text).shape is shape


def test_a_part_after_two_waits_for_both_and_two_after_one_wait_for_it() -> None:
    assert [part.after for part in split("Calculate the NPV and list the risks, then write a memo").parts] == [(), (), (0, 1)]
    assert [part.after for part in split("List the risks, then write a memo and draw a chart").parts] == [(), (0,), (0,)]


def test_what_refers_to_one_result_waits_for_that_part_alone() -> None:
    assert [part.after for part in split("Water the ferns in the lobby, draft a memo for Ana and send it to Bo").parts] == [
        (),
        (),
        (1,),
    ]


def test_neighbours_of_one_intent_stay_one_part_where_a_weak_connective_parts_them() -> None:
    text = "Describe the buyers and describe the sellers"
    assert len(split(text).parts) == 2
    assert len(split(text, lambda _: ("persona", 0.9)).parts) == 1
    assert len(split(text, lambda _: ("persona", 0.1)).parts) == 2


def test_a_request_of_too_many_parts_keeps_the_rest_in_its_last() -> None:
    plan = split(", ".join(f"check the file{at}" for at in range(PARTS_MAX + 5)))
    assert len(plan.parts) == PARTS_MAX
    assert f"file{PARTS_MAX + 4}" in plan.parts[-1].text


def test_a_long_request_is_cut_up_to_a_bound_and_loses_nothing() -> None:
    text = "check the stock and " * 2 + "x" * TEXT_MAX
    assert split(text).parts[-1].text.count("x") >= TEXT_MAX


def test_stages_group_parts_that_can_run_at_the_same_time() -> None:
    assert Plan((Part("a"), Part("b"), Part("c", (0, 1)), Part("d", (2,)))).stages == ((0, 1), (2,), (3,))


@given(st.text(max_size=300))
def test_any_text_gives_parts_that_wait_only_for_earlier_ones(text: str) -> None:
    for at, part in enumerate(split(text).parts):
        assert all(one < at for one in part.after)


@given(
    st.lists(
        st.sampled_from(
            [
                "then",
                "and",
                ",",
                ".",
                "check",
                "the",
                "stock",
                "write",
                "a",
                "memo",
                "it",
                "before",
                "after",
                "once",
                "1.",
                "2.",
                "-",
                "until",
            ]
        ),
        max_size=40,
    )
)
def test_connectives_in_any_order_give_parts_with_words(words: list[str]) -> None:
    plan = split(" ".join(words))
    assert all(part.text.strip() for part in plan.parts)
    assert sum(len(stage) for stage in plan.stages) == len(plan.parts)


@pytest.mark.parametrize(
    ("text", "each"),
    [
        ("Please work out the NPV, the IRR and the payback", ["work out the NPV", "work out the IRR", "work out the payback"]),
        ("What is the price and the weight?", ["What is the price", "What is the weight"]),
        ("Compare the price and the weight", []),  # one comparison
        ("Work out the NPV", []),
        ("npv, irr and payback", ["npv", "irr", "payback"]),  # no verb
        ("the quick brown fox of ours and the dog", []),
    ],
)
def test_the_things_that_one_verb_asks_for_are_requests_of_their_own(text: str, each: list[str]) -> None:
    assert things(text) == each


def test_a_part_that_is_expanded_is_waited_for_as_a_whole() -> None:
    plan = Plan((Part("a"), Part("b", (0,)))).expanded([["a1", "a2"], ["b"]])
    assert plan == Plan((Part("a1"), Part("a2"), Part("b", (0, 1))))


@pytest.mark.parametrize(("things", "parts"), [(20, 2), (100, 1)])
def test_a_sentence_is_looked_at_up_to_a_number_of_connectives(things: int, parts: int) -> None:
    """Else a request of connectives alone holds the event loop for a second."""
    listed = ", ".join(map(str, range(things)))
    assert len(split(f"Print the pages {listed}; then email Bo the invoice").parts) == parts


def test_a_hidden_value_is_a_name_and_no_verb_of_a_request() -> None:
    mail, other, phone = "[[EMAIL_1_kqzmtwbf]]", "[[EMAIL_2_kqzmtwbf]]", "[[PHONE_1_kqzmtwbf]]"
    assert split(f"delete the accounts of {mail} and {other}") == Plan((Part(f"delete the accounts of {mail} and {other}"),))
    assert [part.text for part in split(f"block {mail} and call {phone}").parts] == [f"block {mail}", f"call {phone}"]
    assert things(f"email {mail} and {phone}5") == [f"email {mail}", f"email {phone}5"]


@pytest.mark.parametrize("unit", ["what is this worth today and ", "calculate the npv; ", "then do it. "])
def test_a_long_request_costs_no_more_than_its_beginning(unit):
    short, long = (unit * (characters // len(unit)) for characters in (TEXT_MAX, 100 * TEXT_MAX))
    split(short)
    assert count_steps(lambda: split(long)) < 1.1 * count_steps(lambda: split(short)) + 1_000
    assert "".join(part.text for part in split(long).parts).count(unit.split()[0]) >= 90 * TEXT_MAX // len(unit)
