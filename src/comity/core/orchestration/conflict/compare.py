"""Whether two values of one field agree, conflict or cannot be compared: symmetric, typed, with the rule that decided."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from comity.core.orchestration.conflict import answers, sentences, texts
from comity.core.orchestration.conflict.clock import clock, clock_beside, on_a_day, opening
from comity.core.orchestration.conflict.dates import Interval, embedded, intervals_of_both, meet, month
from comity.core.orchestration.conflict.fields import Claim, walk
from comity.core.orchestration.conflict.finding import Finding, Relation, Rules, is_missing, name_of, verdict
from comity.core.orchestration.conflict.identifiers import (
    are_codes,
    are_phones,
    is_identifier,
    same_identifier,
    same_phone,
    unlabelled,
)
from comity.core.orchestration.conflict.near import are_near
from comity.core.orchestration.conflict.quantity import LENGTH_MAX, Quantity, nothing, quantities
from comity.core.orchestration.conflict.tuples import PLACE_TOLERANCE, ends, place, score, sides, week
from comity.core.orchestration.conflict.units import CURRENCIES, UNITS

SHARED_LISTS: Final = 0.5  # of all their items two lists share if they agree
DEPTH_MAX: Final = 32
PAIRS_MAX: Final = 400  # of items of two lists that are compared each with each
PAIRS_INSIDE_MAX: Final = 100  # of items of lists inside lists
FIGURES_READ: Final = 20  # of a sentence
FIGURES_MAX: Final = 8  # of a sentence that may stand in another order in the other
ITEMS_MAX: Final = 1_000  # of a list that are compared


_YEARS: Final = re.compile(
    r"(?:^|_)(?:year|fy|founded|established|since|until|built|vintage|start|end|launch|deadline|due)(?:_|$)"
)
_OPEN: Final = re.compile(r"(?:^|_)(?:hours|opening|open|shift|slot|opening_times?)$")
_MONTHS: Final = re.compile(r"(?:^|_)month$")
_RANKED: Final = re.compile(r"(?:^|_)(?:rank|ranking|ranked|order|ordered|priority|priorities|top|sequence|steps)(?:_|$)")
_FREE_TEXT: Final = re.compile(
    r"(?:^|_)(?:summary|finding|findings|comment|note|notes|description|rationale|reason|text|message|narrative|conclusion)(?:_|$)"
)
_SEVERAL: Final = re.compile(r"\s*[,;](?!\d)\s*(?:and\s+|&\s*)?|\s+(?:and|&)\s+|\s*[/|+]\s*", re.IGNORECASE)
_BRACKETS: Final = re.compile(r"^(?P<said>[^()]*\w[^()]*?)\s*\((?P<again>[^()]+)\)$")
_CLOSED_SET: Final = re.compile(
    r"(?:^|_)(?:allergens?|allergies|ingredients|attendees|participants|signatories|members|permissions|roles|recipients|approvers|"
    r"required|mandatory|included|excluded|team|crew|panel|board|speakers|authors|owners|directors|guests|winners|medications|"
    r"languages|documents|days|dates|stops|sizes|colou?rs|exits|prerequisites|dependencies|contraindications|side_effects)(?:_|$)"
)
_PEOPLE: Final = re.compile(r"(?:ers|ors|ees|ists)$")  # inspectors, trustees
_LISTED_IN_PART_WORDS: Final = (
    "customers competitors drivers factors indicators sectors stakeholders influencers users buyers orders numbers papers "
    "containers parameters suppliers partners servers layers offers followers readers viewers visitors filters errors sensors "
    "monitors computers printers fees vendors triggers identifiers markers"
)
_LISTED_IN_PART: Final = frozenset(_LISTED_IN_PART_WORDS.split())
_ONE_ANSWER: Final = re.compile(
    r"(?:^|_)(?:cause|reason|diagnosis|verdict|decision|outcome|culprit|who|recommendation|advice|proposal)(?:_|$)"
)
_ONE_CAUSE: Final = re.compile(r"(?:^|_)(?:cause|reason|diagnosis|culprit)(?:_|$)")
_ADVICE: Final = re.compile(
    r"(?:^|_)(?:recommendations?|advice|advise|decision|proposal|suggestion|next_step|action|plan|verdict|guidance|strategy|stance)$"
)
_STATE: Final = re.compile(
    r"(?:^|_)(?:status|state|stage|phase|availability|available|in_stock|result|outcome|decision|approval|health)$"
)
_RATIO: Final = re.compile(r"^\s*\d+ ?: ?\d+\s*$")
_RATIO_IN_WORDS: Final = re.compile(r"^(\d+) ?(?:to|-|–) ?(\d+)$")
_SERIES: Final = re.compile(
    r"(?:^|_)(?:flows?|series|values|history|projection|forecast|monthly|yearly|quarterly|by_year|by_month)(?:_|$)"
)


OTHER_DIMENSION: Final = "units of different dimensions"
TEXT_MAX: Final = 1_000  # characters of a text that are compared


def compare(left: Any, right: Any, path: str = "", rules: Rules | None = None) -> Finding:
    """Return what two values of the field at `path` are to each other."""
    return _compare(left, right, path, rules or Rules(), 0)


def claims(left: dict[str, Any], right: dict[str, Any], path: str = "", rules: Rules | None = None) -> list[Claim]:
    """Return a claim for each field that both objects have, nested objects field by field."""
    return walk(left, right, path, rules or Rules(), 0, _compare)


def _compare(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding:
    if type(left) is type(right) and left == right and not is_missing(left):
        return Finding(Relation.AGREE, "same value")
    name = name_of(path)
    is_exact = name in rules.exact or path in rules.exact or is_identifier(name)
    if not is_exact:
        left, right = (value[:TEXT_MAX] if isinstance(value, str) else value for value in (left, right))
    if (zero := _none_of(left, right) or _none_of(right, left)) is not None:
        return zero
    if (no := answers.none_or_no(left, right) or answers.none_or_no(right, left)) is not None:
        return no
    if texts.say_none(left, right):
        return Finding(Relation.AGREE, "none")
    if _says_nothing(left, path) or _says_nothing(right, path):
        both = _says_nothing(left, path) and _says_nothing(right, path)
        return Finding(Relation.AGREE if both else Relation.GAP, "missing")
    if depth > DEPTH_MAX:
        return Finding(Relation.AGREE if left == right else Relation.UNKNOWN, "too deep")
    left, right = unlabelled(left, right, name), unlabelled(right, left, name)
    if is_exact or are_codes(left, right):
        return Finding(verdict(same_identifier(left, right, name)), "identifier")
    if (said := _in_brackets(left, right, path, rules, depth)) is not None:
        return said
    for rule in RULES:
        found = rule(left, right, path, rules, depth)
        if found is not None:
            return found
    return Finding(Relation.UNKNOWN, "kinds that cannot be compared")


def _says_nothing(value: Any, path: str) -> bool:
    """Return whether a value says nothing; of a status "pending" and "unavailable" say something."""
    is_state = (
        isinstance(value, str) and texts.plain(value) in {"pending", "unavailable", "empty"} and _STATE.search(name_of(path))
    )
    is_none = isinstance(value, str) and texts.plain(value) == "none" and name_of(path).startswith(("has_", "have_"))
    return not is_state and not is_none and is_missing(value)


def _none_of(said: Any, other: Any) -> Finding | None:
    """Return the finding for "none" against a number or a list, None for anything else."""
    if not isinstance(said, str) or texts.plain(said) not in {"nil", "zero", "none", "nothing"} or isinstance(other, bool):
        return None
    if isinstance(other, list):
        return Finding(verdict(not other), "list")
    found = quantities(other)
    return Finding(verdict(any(one.low <= 0 <= one.high for one in found)), "number") if found else None


def _in_brackets(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    """Return the finding where one text says a thing twice, "critical (SEV-1)", and the other in one of the two ways."""
    for one, other in ((left, right), (right, left)):
        found = _BRACKETS.match(one) if isinstance(one, str) and len(one) <= LENGTH_MAX and one.endswith(")") else None
        if found is None or (isinstance(other, str) and other.endswith(")")):
            continue
        for part in found.group("said", "again"):
            judged = _compare(part, other, path, rules, depth + 1)
            if judged.relation is Relation.AGREE and judged.rule != texts.SAYS_MORE:
                return Finding(Relation.AGREE, "said twice")
    return None


def _booleans(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    del rules, depth
    return answers.booleans(left, right, path)


def _dates(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    del rules, depth
    one, other = intervals_of_both(_year(left, path), _year(right, path))
    if one and other:
        return Finding(verdict(meet(one, other)), "date")
    if _MONTHS.search(name_of(path)) and None not in (months := [month(value) for value in (left, right)]):
        return Finding(Relation.AGREE if months[0] == months[1] else Relation.CONFLICT, "month")
    if (named := week(left)) and (others := week(right)):
        return Finding(verdict(named == others), "days of the week")
    if (one or other) and (inside := embedded(right if one else left)):
        return Finding(verdict(meet(one or other, inside)), "date")
    if _OPEN.search(name_of(path)) and (hours := opening(left)) and (told := opening(right)):
        return Finding(verdict(hours == told), "from one to another")
    spans = [ends(value) for value in (left, right)]
    if spans[0] and spans[1]:
        found = [_dates(spans[0][at], spans[1][at], path, Rules(), 0) for at in (0, 1)]
        if found[0] and found[1]:
            return Finding(verdict(all(one and one.relation is Relation.AGREE for one in found)), "from one to another")
    is_one = (spans[0] is None) != (spans[1] is None)
    if is_one and (met := _within(spans[0] or spans[1], right if spans[0] else left)) is not None:
        return Finding(verdict(met), "date")
    days = on_a_day(left), on_a_day(right)
    if days[0] and days[1]:
        return Finding(verdict(days[0][0] == days[1][0] and days[0][1].meets(days[1][1])), "time of day")
    first, second = clock_beside(left, clock(right)), clock_beside(right, clock(left))
    if first and second:
        return Finding(verdict(first.meets(second)), "time of day")
    return None


def _within(span: tuple[str, str] | None, value: Any) -> bool | None:
    """Return whether a date meets the time between two others, "1 Jan - 31 Mar 2026"; None if one of them is no date."""
    if span is None:
        return None
    last, whole = intervals_of_both(span[1], value)
    first = intervals_of_both(span[0], span[1])[0] or intervals_of_both(span[0], value)[0]
    if not first or not last or not whole:
        return None
    return meet((Interval(first[0].start, last[0].end),), whole)


def _year(value: Any, path: str) -> Any:
    """Return a whole number as the year it is where the path says so, or as it is."""
    is_year = isinstance(value, int) and not isinstance(value, bool) and 1900 <= value < 2200
    return str(value) if is_year and _YEARS.search(name_of(path)) else value


def _numbers(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    del depth
    ones, others = (quantities(_measured(value, beside, path)) for value, beside in ((left, right), (right, left)))
    if bool(ones) != bool(others):
        ones, others = ones or nothing(left), others or nothing(right)
    if bool(ones) != bool(others) and (texts.is_endless(left) or texts.is_endless(right)):
        return Finding(Relation.CONFLICT, "a number against no end")
    if not ones or not others:
        return None
    pairs = [(one, other) for one in ones for other in others]
    # 5 m beside 6 km is no million; beside a bare 5 it may be metres or a million.
    alike = [(one, other) for one, other in pairs if one.dimension == other.dimension != ""]
    same = [pair for pair in alike if pair[0].dimension == "money" and pair[0].unit == pair[1].unit]  # 50 cents are of $ or €
    findings = [_quantities(one, other, path, rules) for one, other in same or alike or pairs]
    return min(findings, key=lambda found: (Relation.AGREE, Relation.UNKNOWN, Relation.CONFLICT).index(found.relation))


def _measured(value: Any, beside: Any, path: str) -> Any:
    """Return a bare number with the unit that ends its field's name, `distance_km`, where the other value says a unit."""
    if isinstance(value, str) and isinstance(beside, str) and _RATIO.match(beside):
        return _RATIO_IN_WORDS.sub(r"\1:\2", value.strip())  # "1 to 3" beside 1:3 is no range
    _, underscore, unit = name_of(path).rpartition("_")
    is_bare = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value} {unit}" if underscore and is_bare and isinstance(beside, str) and _is_unit(unit) else value


def _tuples(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    """Return the finding for two sizes, 10 x 20 cm, or two places on a map."""
    del depth
    one, other = sides(left), sides(right)
    if one and other:
        is_same = len(one) == len(other) and all(
            _quantities(first, second, path, rules).relation is Relation.AGREE for first, second in zip(one, other, strict=True)
        )
        return Finding(verdict(is_same), "size")
    name = name_of(path)
    first, second = score(left, name), score(right, name)
    if first and second and (first[0] >= first[1] or second[0] >= second[1]):
        return Finding(verdict(first == second), "score")
    places = [place(value, name) for value in (left, right)]
    if places[0] is None or places[1] is None:
        return None
    return Finding(verdict(all(abs(a - b) <= PLACE_TOLERANCE for a, b in zip(*places, strict=True))), "place")


def _is_unit(word: str) -> bool:
    return (len(word) > 1 and word in UNITS) or word.upper() in CURRENCIES


def _quantities(one: Quantity, other: Quantity, path: str, rules: Rules) -> Finding:
    note = ""
    if one.period and other.period and one.period != other.period:
        one, other = one.for_a_year(), other.for_a_year()
    if (one.per or other.per) and (one.per or one.period) and (other.per or other.period) and one.per != other.per:
        return Finding(Relation.CONFLICT, "for each of different things")
    if one.dimension != other.dimension:
        if {one.dimension, other.dimension} == {"mass", "substance"}:
            return Finding(Relation.UNKNOWN, "a mass against an amount of a substance")
        if one.dimension and other.dimension:
            return Finding(Relation.CONFLICT, OTHER_DIMENSION)
        bare, said = (one, other) if not one.dimension else (other, one)
        if bare.unit and said.dimension != "share":
            return Finding(Relation.UNKNOWN, "a count against a measure")
        note = f"the number without a unit is taken to be in {said.unit or 'the unit of the other'}"
        if said.dimension == "share" and are_near(bare, said, path, rules):
            return Finding(Relation.AGREE, "number", note)  # 0.12 is 12 %
        if said.dimension not in {"money", "temperature"}:
            bare = Quantity(bare.low * said.size, bare.high * said.size, bare.half * said.size, is_whole=bare.is_whole)
        elif said.dimension == "temperature":
            return Finding(Relation.UNKNOWN, "a temperature without a unit")
        one, other = bare, said
    elif one.dimension == "money" and _currency(one, rules) != _currency(other, rules):
        return _currencies(one, other, path, rules)
    elif one.unit and other.unit and not one.dimension and not texts.same_category(one.unit, other.unit)[0]:
        return Finding(Relation.CONFLICT, "counts of different things")
    return Finding(verdict(are_near(one, other, path, rules)), one.dimension or other.dimension or "number", note)


def _currency(money: Quantity, rules: Rules) -> str:
    return rules.dollar if money.unit == "$" else money.unit


def _currencies(one: Quantity, other: Quantity, path: str, rules: Rules) -> Finding:
    """Return the finding for amounts in two currencies: without a rate they cannot be compared."""
    units = [_currency(side, rules) for side in (one, other)]
    if all(unit in rules.rates for unit in units):
        first, second = (_exchanged(side, rules.rates[unit]) for side, unit in zip((one, other), units, strict=True))
        return Finding(verdict(are_near(first, second, path, rules, at_least=0.02)), "money at the rate given")
    return Finding(Relation.UNKNOWN, "two currencies without a rate")


def _exchanged(money: Quantity, rate: float) -> Quantity:
    return Quantity(money.low * rate, money.high * rate, money.half * rate, size=money.size)


def _addresses(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    del path, rules, depth
    if not isinstance(left, str) or not isinstance(right, str):
        return None
    if are_phones(left, right):
        return Finding(verdict(same_phone(left, right)), "telephone number")
    one, other = texts.address(left), texts.address(right)
    if (one is None) != (other is None):
        one, other = one or texts.host(left), other or texts.host(right)
    return None if one is None or other is None else Finding(verdict(one == other), "address")


def _words(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    if not isinstance(left, str) or not isinstance(right, str):
        return _figure_in_text(left, right, rules)
    one, other = (rules.aliases.get(texts.plain(value), value) for value in (left, right))
    if texts.plain(one) == texts.plain(other) or texts.alias(one, name_of(path)) == texts.alias(other, name_of(path)):
        return Finding(Relation.AGREE, "same words")
    if (items := texts.items(one)) and (others := texts.items(other)) and not _FREE_TEXT.search(name_of(path)):
        return _lists(items, others, path, rules, depth + 1)
    if texts.is_sentence(one) or texts.is_sentence(other) or _FREE_TEXT.search(name_of(path)):
        return _sentences(one, other, name_of(path), rules)
    if quantities(one) or quantities(other):
        return Finding(Relation.UNKNOWN, "a number against a word")
    is_same, rule = texts.same_category(one, other, name_of(path))
    return Finding(verdict(is_same), rule)


def _figure_in_text(left: Any, right: Any, rules: Rules) -> Finding | None:
    """Return the finding for a number against a sentence with one figure in it."""
    number, text = (left, right) if isinstance(right, str) else (right, left)
    if not isinstance(text, str) or isinstance(number, bool) or not isinstance(number, int | float):
        return None
    found = sentences.figures(text)
    return _numbers(number, found[0], "", rules, 0) if len(found) == 1 else None


def _sentences(left: str, right: str, name: str, rules: Rules) -> Finding:
    if why := sentences.turned_round(left, right):
        return Finding(Relation.CONFLICT, "text", why)
    if _ADVICE.search(name) and (why := sentences.reversed_advice(left, right)):
        return Finding(Relation.CONFLICT, "text", why)
    if why := sentences.conceded(left, right) or sentences.attributed(left, right) or sentences.done_by_another(left, right):
        return Finding(Relation.CONFLICT, "text", why)
    if why := (
        sentences.swapped(left, right)
        or sentences.exchanged(left, right)
        or sentences.other_phrase(left, right)
        or sentences.other_predicate(left, right)
    ):
        return Finding(Relation.CONFLICT, "text", why)
    shared = sentences.shared_words(left, right)
    is_alike = sentences.are_alike(left, right)
    if is_alike or shared > 1 or (shared and sentences.are_tiny(left, right)):
        one, other = sentences.figures(left), sentences.figures(right)
        if one and len(one) == len(other):
            for first, second in zip(one[:FIGURES_READ], other, strict=False):
                if (
                    first != second
                    and _differ(first, second, rules)
                    and (
                        len(one) > FIGURES_MAX
                        or all(_differ(first, figure, rules) for figure in other)
                        or all(_differ(second, figure, rules) for figure in one)
                    )
                ):
                    return Finding(Relation.CONFLICT, "text", f"figures: {first} / {second}")
        if is_alike and (why := sentences.only(left, right)):
            return Finding(Relation.CONFLICT, "text", why)
        return Finding(Relation.AGREE, "text")
    is_one_answer = bool(_ONE_ANSWER.search(name) and shared) or bool(_ONE_CAUSE.search(name))
    return Finding(Relation.CONFLICT if is_one_answer else Relation.UNKNOWN, "text about something else")


def _differ(one: str, other: str, rules: Rules) -> bool:
    found = _dates(one, other, "year", rules, 0) or _numbers(one, other, "", rules, 0)
    return found is not None and found.relation is Relation.CONFLICT and found.rule != OTHER_DIMENSION


def _lists(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    if not isinstance(left, list | tuple) or not isinstance(right, list | tuple):
        return _item_of(left, right, path, rules, depth)
    one, other = list(left)[:ITEMS_MAX], list(right)[:ITEMS_MAX]

    name = name_of(path)

    def agree(first: Any, second: Any) -> bool:
        is_text = isinstance(first, str) and isinstance(second, str)
        if is_text and texts.alias(first, name) == texts.alias(second, name):
            return True
        return _compare(first, second, "", rules, depth + 1).relation is Relation.AGREE

    is_series = bool(_SERIES.search(name)) and all(isinstance(value, int | float) for value in [*one, *other])
    if name in rules.ordered or path in rules.ordered or _RANKED.search(name) or is_series:
        short = min(len(one), len(other))
        is_same = all(agree(first, second) for first, second in zip(one[:short], other[:short], strict=True))
        return Finding(verdict(is_same and (len(one) == len(other) or not is_series)), "order")
    if objects := _records(one, other, path, rules, depth):
        return objects
    in_other, in_one = _matches(
        one, other, agree, PAIRS_MAX if depth == 0 else PAIRS_INSIDE_MAX
    )  # `[1, 1]` beside `[1, 2]`: 2, 1
    shared = min(in_other, in_one)
    is_either = in_other == len(one) or in_one == len(other)
    is_both = in_other == len(one) and in_one == len(other)
    is_people = bool(_PEOPLE.search(name)) and name.rpartition("_")[2] not in _LISTED_IN_PART
    is_closed = is_people or bool(_CLOSED_SET.search(name))
    if shared and (is_both if is_closed else is_either):
        return Finding(Relation.AGREE, "list", "" if len(one) == len(other) else "one list has more")
    if is_closed:
        return Finding(Relation.CONFLICT, "list", "one list has more")
    likeness = shared / (len(one) + len(other) - shared)
    return Finding(verdict(likeness >= SHARED_LISTS), "list", "" if likeness < SHARED_LISTS else "the lists differ in part")


def _matches(one: list[Any], other: list[Any], agree: Callable[[Any, Any], bool], pairs_max: int) -> tuple[int, int]:
    """Return how many items of each list agree with one of the other; of many, only those that are written the same."""
    written, told = ([_written(value) for value in values] for values in (one, other))
    both = set(written) & set(told)
    left, rest = (
        [value for value, text in zip(values, texts_, strict=True) if text not in both]
        for values, texts_ in ((one, written), (other, told))
    )
    found = [len(one) - len(left), len(other) - len(rest)]
    if len(left) * len(other) + len(rest) * len(one) <= pairs_max:
        met = [(first, [at for at, second in enumerate(other) if agree(first, second)]) for first in left]
        places = {at for _, places in met for at in places}
        found[0] += sum(bool(places) for _, places in met)
        found[1] += sum(
            at in places or any(agree(first, value) for first, text in zip(one, written, strict=True) if text in both)
            for at, (value, text) in enumerate(zip(other, told, strict=True))
            if text not in both
        )
    return found[0], found[1]


def _written(value: Any) -> str:
    """Return a value as it is compared in a long list, where each is not compared with each."""
    if isinstance(value, str):
        return texts.plain(value)
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _item_of(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    """Return the finding for a list against a single value: the value is one of its items, or not."""
    listed, single = (left, right) if isinstance(left, list | tuple) else (right, left)
    if not isinstance(listed, list | tuple) or isinstance(single, dict):
        return None
    is_in = any(_compare(one, single, "", rules, depth + 1).relation is Relation.AGREE for one in listed)
    if isinstance(single, str) and _SEVERAL.search(single) and not any(single == one for one in listed):
        return _lists(list(listed), [one.strip() for one in _SEVERAL.split(single) if one.strip()], path, rules, depth)
    return Finding(verdict(is_in), "list", "one value against a list" if is_in else "")


def _records(one: list[Any], other: list[Any], path: str, rules: Rules, depth: int) -> Finding | None:
    """Return the finding for lists of objects that have a name: those of one name are compared."""
    if not all(isinstance(value, dict) for value in [*one, *other]):
        return None
    for key in ("id", "name", "key", "code", "title", "label"):
        if all(isinstance(value.get(key), str) for value in [*one, *other]):
            named = {texts.plain(value[key]): value for value in other}
            pairs = [(value, named[texts.plain(value[key])]) for value in one if texts.plain(value[key]) in named]
            for first, second in pairs:
                found = _compare(first, second, path, rules, depth + 1)
                if found.relation is Relation.CONFLICT:
                    return Finding(Relation.CONFLICT, found.rule, f"{key} {first[key]}: {found.note}".rstrip(": "))
            if pairs:
                return Finding(Relation.AGREE, "list of objects")
    return None


def _objects(left: Any, right: Any, path: str, rules: Rules, depth: int) -> Finding | None:
    if not isinstance(left, dict) or not isinstance(right, dict):
        return None
    found = walk(left, right, path, rules, depth + 1, _compare)
    for one in found:
        if one.finding.relation is Relation.CONFLICT:
            return Finding(Relation.CONFLICT, one.finding.rule, f"{one.path}: {one.finding.note}".rstrip(": "))
    kinds = {one.finding.relation for one in found}
    for relation in (Relation.AGREE, Relation.DIFFERENT, Relation.UNKNOWN):
        if relation in kinds:
            return Finding(relation, "object")
    return Finding(Relation.GAP, "no field in common")


Rule = Callable[[Any, Any, str, Rules, int], Finding | None]
RULES: Final[tuple[Rule, ...]] = (_booleans, _addresses, _dates, _tuples, _numbers, _objects, _lists, _words)
