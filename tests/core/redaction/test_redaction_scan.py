"""The scanner: priorities, walls, left context, and detectors from outside."""

from __future__ import annotations

import string
from base64 import b64encode
from dataclasses import replace
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redaction_corpus import PERSONAL_TEXTS, PERSONAL_VALUES, new_vault, of_detectors, plain, texts

from comity.core.document.slices import ONE_GO_BYTES, whole
from comity.core.redaction import (
    DEFAULT_SCANNER,
    DETECTORS,
    Category,
    Detector,
    Scanner,
    candidates,
    may_hold_personal_data,
    redact_json,
    redact_text,
    redact_value,
)
from comity.core.redaction.ahead import Ahead
from comity.core.redaction.detector import PatternDetector
from comity.core.redaction.hints import families_of
from comity.core.redaction.redact import redact_json_sliced
from comity.core.redaction.scan import _CLEAN_BYTES_MAX, _CLEAN_MAX, _KEY_CHARS_KEPT, _KEYS_MAX, _SAMPLE
from comity.core.redaction.search import Wall
from comity.core.redaction.shapes import (
    HINT_GAP,
    KEY_CHARS_MAX,
    NUMBER_CHARS_MAX,
    compile_test,
    foreign_label_start,
    plain_words,
)


class Literal:
    """An outside recogniser for one word."""

    def __init__(self, word, *, priority=5, hint=None, kind="PERSON"):
        self.word, self.priority, self.hint, self.type = word, priority, hint, kind
        self.name, self.category = f"literal_{word}", Category.CONTACT

    def spans(self, text, start=0):
        place = text.find(self.word, start)
        while place >= 0:
            yield place, place + len(self.word)
            place = text.find(self.word, place + 1)

    def fits(self, before, after):
        return not before.endswith("not ")

    def names(self, key):
        return False


def kinds(text, scanner=DEFAULT_SCANNER, **options):
    return [span.detector.type for span in scanner.find(text, **options)]


def test_a_detector_from_outside_joins_the_built_in_ones():
    outside: Detector = Literal("Jane Doe")
    scanner = Scanner([*DETECTORS, outside])
    assert kinds("Jane Doe, jane@example.com, not Jane Doe", scanner) == ["PERSON", "EMAIL"]


def test_without_a_hint_no_document_is_called_clean_and_with_one_they_are():
    clean = b'{"a":"nothing here"}'
    assert may_hold_personal_data(clean, Scanner([*DETECTORS, Literal("Jane")]))
    hinted = Scanner([*DETECTORS, Literal("Jane", hint="Jane")])
    assert not may_hold_personal_data(clean, hinted)
    assert len(redact_json(b'{"a":"Jane"}', new_vault(), scanner=hinted).found) == 1


def test_of_two_overlapping_values_the_one_with_the_lower_number_wins():
    for priority, expected in ((5, ["PERSON"]), (99, ["EMAIL"])):
        scanner = Scanner([*DETECTORS, Literal("jane@example", priority=priority)])
        assert kinds("jane@example.com", scanner) == expected


def test_of_two_overlapping_values_of_equal_priority_the_longer_wins():
    scanner = Scanner([Literal("abc"), Literal("bcde", kind="OTHER")])
    assert kinds("abcde", scanner) == ["OTHER"]


def test_what_the_winner_leaves_of_the_loser_is_searched_again():
    scanner = Scanner([Literal("one two", priority=9), Literal("two three"), Literal("one", priority=10, kind="OTHER")])
    assert kinds("one two three", scanner) == ["OTHER", "PERSON"]


def test_a_wall_is_neither_looked_into_nor_crossed():
    text = "ab jane@example.com 219-09-9999"
    assert kinds(text, walls=[Wall(3, 10)]) == ["SSN"]
    assert kinds(text, walls=[Wall(24, 27)]) == ["EMAIL"]


def test_left_context_counts_like_text_before_but_is_not_searched():
    assert kinds("219099999") == []
    assert kinds("219099999", left="ssn: ") == ["SSN"]
    assert kinds("nothing", left="219-09-9999 ") == []


def test_characters_before_the_start_are_a_border_only():
    assert kinds("1219-09-9999", start=1) == []
    assert kinds(" 219-09-9999", start=1) == ["SSN"]


@given(st.text(max_size=60))
def test_scanning_is_a_pure_function_of_the_text(text):
    """XspensesAI's detectors kept a position between calls, so the second identical call found nothing."""
    text += " jane@example.com"
    assert DEFAULT_SCANNER.find(text) == DEFAULT_SCANNER.find(text) != []


@given(
    st.recursive(
        st.text(max_size=12) | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_the_quick_test_reads_every_json_document(document):
    assert may_hold_personal_data(msgspec.json.encode(document)) in {True, False}


@pytest.mark.parametrize("figures", [{"npv": 17206.82, "currency": "USD"}, {"booked": "1249.50 on 2026-03-14 under ord-20417"}])
def test_the_quick_test_passes_figures_that_stand_under_no_label(figures):
    assert not may_hold_personal_data(msgspec.json.encode(figures))


@pytest.mark.parametrize(
    ("before", "label"),
    [
        ("Order #", "Order #"),
        ("the order number is ", None),
        ("order number: ", "order number: "),
        ("total is ", "total is "),
        ("invoices ", "invoices "),
        ("ORD-", "D-"),
        ("costs € ", "€ "),
        ("USD ", "USD "),
        ("pkg==", "=="),
        ("version:\t", "version:\t"),
        ("my SSN is ", None),
        ("border ", None),
        ("order" + " " * 5, None),
        ("", None),
    ],
)
def test_the_label_before_a_value_is_read_whole(before, label):
    start = foreign_label_start(before)
    assert (before[start:] if start >= 0 else None) == label


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("homePhone_number", "home Phone number"),
        ("userSSN", "user SSN"),
        ("SSNValue", "SSN Value"),
        ("drivers-license", "drivers license"),
        ("  a..b ", "a b"),
        ("line2Address", "line2 Address"),
        ("MyWhatsAppNo", "My Whatsapp No"),
        ("", ""),
    ],
)
def test_a_key_is_read_as_words(key, words):
    assert plain_words(key) == words


def test_a_long_key_is_read_as_the_words_of_its_beginning_and_its_end():
    words = plain_words(f"cardNumber {'and ' * 100_000} homePhone")
    assert (words[:11], words[-10:], len(words) <= KEY_CHARS_MAX) == ("card Number", "home Phone", True)


def test_a_text_without_values_is_returned_as_it_is():
    text = "nothing to see"
    assert redact_text(text, new_vault()).text is text


# --- slices ---

DENSE = (
    "a@b.co ", "CPF 529.982.247-25 ", "219-09-9999 ", "tel 2345678 ", "born 1984-03-12 ", "4111 1111 1111 1111 ", "****1234 ",
    "203.0.113.42 ", "passport A1234567 ", "DE89 3704 0044 0532 0130 00 ", "[[EMAIL_1_abcdefghij]] ", "password: hunter2! ",
    "Hauptstraße 12, 10115 Berlin ", "phones: ", "order ", "and ", "SSN ", "x", "\u200b", "\uff11", ". ", "\n",
)  # fmt: skip
IN_ONE = Scanner(DETECTORS, slice_chars=10**9)


def places(scanner, text):
    return [(span.start, span.end, span.detector.name) for span in scanner.find(text)]


@given(st.lists(st.sampled_from(DENSE), max_size=24).map("".join), st.integers(1, 40))
def test_slices_find_exactly_what_one_search_finds_wherever_they_are_cut(text, slice_chars):
    assert places(Scanner(DETECTORS, slice_chars=slice_chars), text) == places(IN_ONE, text)


@pytest.mark.parametrize("slice_chars", [1, 8, 20])
def test_a_label_behind_a_number_counts_wherever_the_text_is_cut(slice_chars):
    text = f"{'first ' * 5}85041260446 (PESEL){' then' * 5}"
    assert places(Scanner(DETECTORS, slice_chars=slice_chars), text) == places(IN_ONE, text) != []


SEARCHING = Scanner(replace(detector, is_number=False) for detector in DETECTORS)


@settings(derandomize=True)
@given(texts())
def test_looking_behind_labels_only_finds_what_trying_every_number_finds(text):
    """Numbers that count only under a label are looked for where the words before them may name them."""
    assert set(places(SEARCHING, text)) <= set(places(DEFAULT_SCANNER, text))


@pytest.mark.parametrize(
    "rows", [rows for _, rows in of_detectors(PERSONAL_TEXTS)], ids=[name for name, _ in of_detectors(PERSONAL_TEXTS)]
)
def test_looking_behind_labels_only_finds_every_value_of_the_corpus(rows):
    """Also in lists of values under one label, and across lines."""
    text = "\n".join(plain(row) for row in rows)
    assert places(DEFAULT_SCANNER, text) == places(SEARCHING, text)


@pytest.mark.parametrize("case", [str, str.upper, str.title])
def test_skipping_to_the_first_character_of_a_match_skips_no_match(case):
    """`first` is a second statement of how a pattern begins, so it may not say less than the pattern."""
    text = case("\n".join(plain(row) for _, rows in of_detectors(PERSONAL_TEXTS) for row in rows))
    for detector in DETECTORS:
        if isinstance(detector, PatternDetector) and detector.first:
            assert list(detector.spans(text)) == list(replace(detector, first="").spans(text)), detector.name


def test_no_label_is_lost_at_the_border_of_a_slice():
    text = "the patient's CPF no.: 529.982.247-25, passport number A1234567, tel. is 2345678, password: hunter2!"
    for slice_chars in range(1, len(text)):
        assert places(Scanner(DETECTORS, slice_chars=slice_chars), text) == places(IN_ONE, text)


def reach(pattern, groups):
    """Return how many characters from where it begins a parsed pattern may look at, and how many it may take."""
    taken = furthest = 0
    for operation, given_ in pattern:
        name = str(operation)
        if name in {"ASSERT", "ASSERT_NOT"}:
            ahead = reach(given_[1], groups)[0] if given_[0] > 0 else 0
            furthest = max(furthest, taken + ahead)
            continue
        least, inner = 1, []
        if name == "BRANCH":
            inner = given_[1]
        elif name == "SUBPATTERN":
            inner = [given_[-1]]
        elif name == "ATOMIC_GROUP":
            inner = [given_]
        elif "REPEAT" in name:
            least, inner = given_[1], [given_[2]]
        looks = [reach(one, groups) for one in inner]
        if name == "SUBPATTERN":
            groups[given_[0]] = looks[0][1]
        size = groups[given_] if name == "GROUPREF" else max((one[1] for one in looks), default=int(name != "AT"))
        ahead = max((one[0] for one in looks), default=1)
        furthest = max(furthest, taken + size * max(least - 1, 0) + ahead)
        taken += size * least
    return max(furthest, taken), taken


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_no_pattern_looks_further_than_a_slice_lets_it(detector):
    from re import _parser  # the only way to ask a pattern

    bound = NUMBER_CHARS_MAX if detector.is_number else detector.shape_chars_max
    assert reach(_parser.parse(detector.pattern.pattern, detector.pattern.flags), {})[0] < bound


def test_a_hint_matches_between_line_breaks_what_it_matches_alone():
    """So the hints of all detectors may be tested against many short texts at once."""
    tests = [compile_test(detector.hint) for detector in DETECTORS]
    for text in PERSONAL_VALUES[::3] + [plain(row) for _, row in PERSONAL_TEXTS[::3]]:
        assert all(test(f"a\n{text}\na") for test in tests if test(text)), text


def test_a_dense_list_and_dense_keys_are_redacted_as_each_of_their_texts_is():
    lines = [f"user{n}@example.com" if n % 8 else f"no {n}" for n in range(120)] + [f"tel 23{n:05d}" for n in range(90)]
    lines += ["plain", "a\u200b@b.co", "password: hunter2!", "born 1984-03-12"]
    vault, alone = new_vault(), new_vault()
    expected = [redact_value(text, alone).value for text in lines]
    assert redact_value(lines, vault).value == expected
    assert redact_value(dict.fromkeys(lines, True), new_vault()).value == dict.fromkeys(expected, True)
    records = [{"user": f"ada_{n}", "password": f"hunter{n}!", "note": line} for n, line in enumerate(lines)]
    alone = new_vault()
    assert redact_value(records, new_vault()).value == [redact_value(record, alone).value for record in records]
    looked = Ahead(DEFAULT_SCANNER)
    looked.look([("", line) for line in lines[:32]], 16)
    assert looked.relevant("", lines[1]) is looked.relevant("", lines[0])
    looked.look([("", line) for line in lines[:32]], 31)
    assert looked.relevant("", lines[1]) is not looked.relevant("", lines[1]), "values are rare"


def test_the_text_that_prepares_a_scanner_holds_values_of_many_kinds_and_a_table():
    found = {span.detector.name for span in DEFAULT_SCANNER.find(_SAMPLE)}
    assert found > {"phone_named", "email", "password", "password_spoken", "user_name", "iban", "national_id", "street"}, found
    assert _SAMPLE[DEFAULT_SCANNER.find(_SAMPLE)[-1].start :] == "hunter2!\n"


def test_the_pattern_of_where_numbers_begin_looks_no_further_than_its_part_of_a_slice_lets_it():
    from re import _parser

    assert reach(_parser.parse(candidates._NUMBER.pattern), {})[0] < candidates._NUMBER_LOOKS_CHARS


def test_a_dense_document_is_redacted_in_slices_with_the_same_result():
    raw = msgspec.json.encode({"t": "".join(DENSE) * 99, "list": ["a@b.co"] * 999, **{f"tel 23{n:05d}": n for n in range(999)}})
    work = redact_json_sliced(raw, new_vault())
    slices = 0
    try:
        while True:
            next(work)
            slices += 1
    except StopIteration as end:
        assert end.value.raw == whole(redact_json_sliced(raw, new_vault(), scanner=IN_ONE)).raw
    assert slices > 150


@pytest.mark.timeout(60)  # milliseconds, or minutes where the engine's room is too small for its automaton
def test_a_scanner_that_has_seen_all_kinds_of_text_stays_quick():
    chance, scanner = Random(5), Scanner(DETECTORS)
    words = "the phone of ann is born on street account number passport pass pin iban konto straße rue numéro téléphone"
    words += " 12 345 +49 0151 1984 ab-12 x@y .com"
    for _ in range(100):
        text = " ".join(chance.choices(words.split(), k=chance.randrange(3, 400)))
        scanner.may_find_in_json(text.encode())
    plain = b'{"text":"11 ' + b"word " * 10_000 + b'"}'
    assert not any(scanner.may_find_in_json(plain) for _ in range(40))


def test_a_text_without_a_digit_is_asked_of_no_family_whose_values_begin_with_one():
    without = [family for family in families_of(DETECTORS) if not family.needs_digit]
    assert len(without) == len(families_of(DETECTORS)) - 3  # digits alone, and numbers of contact and of finance


def test_few_hints_that_wait_for_the_end_of_a_text_share_a_pattern():
    """Each such hint multiplies the states of the others, and no warm process would come to an end of building them."""
    for family in families_of(DETECTORS):
        gaps = sum(HINT_GAP in pattern for pattern in family.patterns)
        assert gaps in {0, len(family.patterns)}
        assert gaps <= 8


def test_detectors_are_relevant_where_their_own_hint_matches():
    """Wrong are a hint cut at the wrong place, labels joined to another value's gap, and numbers sought in no digits."""
    chance, hints = Random(7), {detector: compile_test(detector.hint) for detector in DETECTORS}
    words = "account passport phone born zip code card pin bic mail at route street token password user plate tel"
    words += ' is CA 94107 4111111111111111 DEUTDEFF 12 345678 +49 1984-05-06 ab@c.de x1 secretXY7 B-AB12 "key": , .'
    plain = [word for word in words.split() if word.isascii() and not any(map(str.isdigit, word))]
    for vocabulary in (words.split(), plain) * 300:
        text = " ".join(chance.choices(vocabulary, k=chance.randrange(1, 12)))
        expected = [detector for detector in DEFAULT_SCANNER.detectors if hints[detector](text)]
        assert whole(DEFAULT_SCANNER.relevant(text)) == expected
        assert DEFAULT_SCANNER.may_find(text) == bool(expected)


def test_a_document_that_was_clean_is_looked_at_again_once_it_holds_something():
    scanner, clean = Scanner(DETECTORS), b'{"text":"nothing to see"}'
    assert not scanner.may_find_in_json(clean)
    assert not scanner.may_find_in_json(clean)
    assert scanner.may_find_in_json(clean.replace(b"see", b"see of ann@example.com"))


def test_keys_are_remembered_with_their_own_detectors_and_have_a_bound():
    scanner = Scanner(DETECTORS)
    for _ in range(2):  # asked, then remembered
        assert {detector.type for detector in scanner.named_by("ssn")} == {"SSN"}
        assert scanner.named_by("total") == ()
    for number in range(_KEYS_MAX + 1):
        scanner.named_by(f"total {number}")
    scanner.named_by("x" * (_KEY_CHARS_KEPT + 1))
    assert len(scanner._named) <= _KEYS_MAX
    assert max(map(len, scanner._named)) <= _KEY_CHARS_KEPT


def test_clean_documents_that_are_remembered_have_a_bound():
    scanner = Scanner(DETECTORS)
    for number in (*range(2 * _CLEAN_MAX - 1), _CLEAN_BYTES_MAX):
        assert not scanner.may_find_in_json(b'{"word":"%s"}' % (b"x" * number))
    assert len(scanner._clean) <= _CLEAN_MAX
    assert max(map(len, scanner._clean)) <= _CLEAN_BYTES_MAX


@given(st.text(string.printable.strip(), max_size=40), st.text(string.printable.strip(), max_size=40))
def test_base64_of_an_address_is_a_hint_wherever_the_address_stands_in_it(before, after):
    encoded = b64encode(f"{before}ann@example.com{after}".encode()).decode()
    assert DEFAULT_SCANNER.may_find(encoded)
    assert DEFAULT_SCANNER.may_find(f"see {encoded} here")


@pytest.mark.parametrize("ending", ["decimal", "photos", "useful", "Aural"])
def test_the_end_of_a_sentence_is_not_searched_as_the_short_word_for_a_street(ending):
    assert not DEFAULT_SCANNER.may_find(f"It is {ending}. Then we go on.")


@pytest.mark.parametrize("text", ["y" * 5_000, "internationalizationofthings", "deadbeefcafe" * 10, "x" * 40 + "="])
def test_a_long_run_of_letters_that_can_spell_no_address_is_not_searched(text):
    assert not DEFAULT_SCANNER.may_find(text)


@pytest.mark.parametrize("end", ["", " a@b.co", " tel 2345678", " \\u0061"])
@pytest.mark.parametrize("size", [10, 2 * ONE_GO_BYTES])
def test_the_quick_test_with_a_pause_says_what_the_one_without_says(end, size):
    raw = f'"{"xx yy " * (size // 6)}{end}"'.encode()
    assert whole(DEFAULT_SCANNER.may_find_in_json_sliced(raw)) is DEFAULT_SCANNER.may_find_in_json(raw) is bool(end)


@pytest.mark.parametrize("first", range(0, 0x30000, 0x1400))
def test_no_character_makes_a_scan_fail(first):
    text = "".join(chr(code) for code in range(first, first + 0x1400) if not 0xD800 <= code < 0xE000)
    assert isinstance(DEFAULT_SCANNER.find(f"account {text} 12345678 passport {text} X1234567"), list)
