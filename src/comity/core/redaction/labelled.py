"""Numbers that count only under a label that names them: the label says by which rule the number is judged.

"CPF 529.982.247-25" and `{"cpf": "52998224725"}` have a label; "529.982.247-25" alone may be anything. The label must stand
right before the value, with nothing between but joints such as "no.:" or "is", or earlier values of a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, lru_cache

from comity.core.redaction.behind import BEHIND_HINT, label_behind
from comity.core.redaction.detector import Category
from comity.core.redaction.joining import JOINED, JOINING, MARKS
from comity.core.redaction.joints import all_readings, as_words, says_count
from comity.core.redaction.labels import PERSONS
from comity.core.redaction.shapes import (
    COUNTED,
    HINT_AFTER_LETTER,
    HINT_BEFORE_LETTER,
    HINT_GAP,
    NUMBER_CHARS_MAX,
    LatePattern,
    compile_all,
    compile_test,
    foreign_label_start,
    in_hint,
)

_JOINT_WORDS = (
    PERSONS
    | JOINING
    | frozenset(
        re.findall(
            r"\S+",
            "numbers s º fin card id sono wynosi og of the and or und et y at me do da de del di des du der le user for von "
            "eh albo lub oder ou o eller tai или або vagy nebo и contact contacto contatto contato kontakt casa trabajo "
            "trabalho lavoro ufficio bureau oficina domicile pacient contribuinte person particular personal privado privat "
            "privé dienstlich geschäftlich home work office direct series физлица alt alternate alternative secondary με "
            "στο én numeroni changed updated corrected amended set geändert modifié cambiado q নাম্বার 번호",
        )
    )
)
_OF_THINGS = frozenset({"id", "serie", "série", "seria", "series", "серия", "серії"})
_NO_JOINTS = frozenset("!$€£¥%+<>@&^~{}")  # they end a label's reach
_LABEL_CHARS_MAX = 48
_JOINTS_MAX = 8
_APART_MAX = 3
_STARTS_MAX = 7
_START = re.compile(  # ideographs and Thai letters have no spaces between words
    rf"(?<![^\W_])(?<![{MARKS}])[^\W_]|(?=[^\W_])[\u2e80-\U0010ffff]|[เหบ](?<=(?=เลข(?!ที่)|หมายเลข|บัตรประ|เบอร์).)"
)
_WORD = re.compile(rf"(?:[^\W_]|[{MARKS}])+")
_IS_MARK = re.compile(f"[{MARKS}]")
_UP_TO_DIGIT = re.compile("(?s:.*)[0-9]")
_VALUE_CHARS_MIN = 5
_WORD_AT_END = re.compile(r"[ \u00a0][A-Za-z]{3,}\Z")  # which follows a number: "12345678 printed"
_PREFIX = re.compile(r"(?<![A-Za-z])[A-Z]{1,3}-\Z")  # of a code: "RG-585-54-0021"
_OF_WHICH = re.compile(r"(?<![^\W_])(?:di|per|in|con|a|da|su|tra|fra|il|la|le|i|gli) cui[ ]\Z")  # and no number of Peru
_PLAIN_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?|[0-9]{1,3}(?:[ \u00a0.,][0-9]{3})+")
_BANK = re.compile(r"[ ]?[\u4e00-\u9fff\uac00-\ud7af]{1,8}(?:은행|銀行|银行)[ :：]{0,2}\Z")  # whose account it is
_CUT = re.compile(r"(?<=[A-Za-z0-9)])(?![A-Za-z0-9(])")


class Gap(Enum):
    """Which words stand between a label and a number, apart from joints and persons."""

    NONE = auto()
    DESCRIBED = auto()  # words in small letters that say which or whose it is: "Telefon domowy sąsiadki"
    OTHER = auto()


# Words that say that a number behind them adds up what the label names: "Telefon satış adedi".
_TOTALS = frozenset(
    re.findall(
        r"\S+",
        "público pública instalado instalados gideri giderleri ve i y e und and sales sold made produced shipped used "
        "satış adedi sayısı toplam sprzedaż sprzedane sprzedanych ogółem razem łącznie liczba koszt koszty budżet celkem "
        "celkom součet počet náklady rozpočet ventas vendidos vendido gasto gastos ingresos acumulado acumulados cantidad "
        "vendas custo custos gesamt umsatz kosten anzahl verkauft vendus ventes coût coûts nombre venduti vendite totale "
        "costi antal sålda solgte kostnader verkocht aantal omzet összesen eladott всего продано количество итого разом "
        "продажі кількість общо vânzări bucăți ukupno prodano skupaj σύνολο πωλήσεις",
    )
)
# "ventas por teléfono del trimestre": the label says by what way, not what the number is.
_THROUGH = re.compile(
    r"(?<![^\W_])(?:by|over|via|per|por|par|pelo|przez|z|mit|am|přes)[ ](?:el |le |la |il )?\Z", re.IGNORECASE
)
# What a label follows that is no part of a longer name: "líneas de teléfono activas".
_BORDER = re.compile(
    r"(?:\A|[^\w ][ ]*|(?<![^\W_])(?:numer|nr|número d[eo]|el|mi|su|o|meu|mój|moja|jej|jego|nowy|favor|proszę|prosím))[ ]?\Z",
    re.IGNORECASE,
)
_PLACED = frozenset({"z", "ze", "w", "we", "v", "en", "de", "do", "da", "em", "na"})  # words before the name of a place


@dataclass(frozen=True)
class Rule:
    """One number: the words that name it, as alternatives of a pattern, and what makes a number valid."""

    label: str
    is_valid: Callable[[str], bool]
    not_followed: LatePattern | None = None  # what may not follow a bare number under this label
    is_valid_apart: Callable[[str], bool] | None = None  # the same where up to three other words stand between label and number
    is_valid_described: Callable[[str], bool] | None = None  # the same where these are in small letters, if that differs
    with_colon: bool = True  # whether the label names a value behind a colon: "text: 4155550132" is any text

    def is_valid_behind(self, gap: Gap) -> Callable[[str], bool]:
        """Return what makes a number valid behind some words."""
        if gap is Gap.NONE or self.is_valid_apart is None:
            return self.is_valid
        return self.is_valid_described or self.is_valid_apart if gap is Gap.DESCRIBED else self.is_valid_apart


@dataclass(frozen=True, eq=False)  # compared as what it is: of each there is one
class LabelledDetector:
    """A detector of all numbers of one type, each under its own labels."""

    name: str
    type: str
    category: Category
    priority: int
    pattern: LatePattern
    rules: Sequence[Rule]
    hint_labels: str  # the labels again, in the syntax of Rust's engine, as whole words
    hint_value: str = "[0-9]"  # what of a value stands somewhere after its label
    hint_foreign: str = ""  # labels of languages whose words have no borders there
    hint_never_keys: str = ""  # labels that name nothing as a JSON key: "message" may hold any text
    not_followed: LatePattern | None = None  # what may not follow a value that has no label with a colon
    is_figure: Callable[[str, str, str], bool] | None = None  # whether the words around a value make it a count
    keys: LatePattern | None = None  # what a JSON key must end with for a number under it; any label if None
    keys_weak: LatePattern | None = None  # whole keys under which a number must be `is_valid_bare`
    is_valid_bare: Callable[[str], bool] | None = None
    bare_digits_min: int = 0  # of a JSON number: a shorter one is more often a figure
    is_number: bool = True  # whether the first word of every value has a digit in it
    checked_behind: bool = False  # whether a number with its label behind it must be valid as one with words between
    ids: bool = True  # whether "id" or "series" behind a label still means the number: "Aadhaar id" does, "call id" does not

    @cached_property
    def hint(self) -> str:
        """A label anywhere before what a value begins with."""
        words = f"{HINT_BEFORE_LETTER}(?i:{in_hint(self.hint_labels)}){HINT_AFTER_LETTER}|[a-z](?:{_camel(self.hint_labels)})"
        if self.hint_foreign:
            words += f"|(?i:{self.hint_foreign})"
        if self.hint_never_keys:
            words += f'|{HINT_BEFORE_LETTER}(?i:{in_hint(self.hint_never_keys)})(?:[^a-z"]|"[^:]|$)'
        return f"(?:{words}){HINT_GAP}(?:{self.hint_value})|{BEHIND_HINT}"

    @cached_property
    def _labels(self) -> re.Pattern[str]:
        labels = "|".join(f"(?P<rule{number}>{rule.label})" for number, rule in enumerate(self.rules))
        return re.compile(rf"(?:{labels}){JOINED}", re.IGNORECASE)

    @cached_property
    def _rule(self) -> Callable[[str], tuple[int, bool, Gap] | None]:
        """The rule whose label ends a text, whether a colon follows it, and which other words stand between.

        Remembered: the words before values are few.
        """
        return lru_cache(maxsize=2048)(self._find_rule)

    @cached_property
    def _could_name(self) -> Callable[[str], bool]:
        """A test for whether a label stands in an ASCII text: before most numbers there is none, and it says so quickly."""
        return compile_test(f"(?i:{'|'.join(filter(None, (self.hint_labels, self.hint_foreign, self.hint_never_keys)))})")

    def _find_rule(self, before: str) -> tuple[int, bool, Gap] | None:
        if _PREFIX.search(before) or _OF_WHICH.search(before):
            return None
        before = as_words(before)
        if ")" in before[-4:] and _is_of_thing(before):
            return None
        if "行" in before or "은행" in before:
            before = _BANK.sub(" ", before)
        if before.isascii() and not self._could_name(before):
            return None
        found = self._rule_right_before(before)
        if found is None or found[2] is not Gap.NONE:  # what stands between may say whose the number is
            for shorter in all_readings(before)[1:]:
                near = self._rule_right_before(shorter, is_cut=True)
                if near is not None and near[2] is Gap.NONE:
                    before, found = shorter, near
                    break
        return None if found is None else (found[0], ":" in before[found[1] :], found[2])

    def _rule_right_before(self, before: str, *, is_cut: bool = False) -> tuple[int, int, Gap] | None:
        """Return the rule whose label ends a text, where the label ends, and which other words stand between, or were cut."""
        starts, end, apart, gap = _starts(before), len(before), 0, Gap.NONE
        for _ in range(_JOINTS_MAX):
            while end and not before[end - 1].isalnum() and not _IS_MARK.match(before, end - 1):
                if before[end - 1] in _NO_JOINTS:
                    return None
                end -= 1
            if not end or not starts:
                return None
            for start in starts[-_STARTS_MAX:]:
                if label := self._labels.fullmatch(before, start, end):
                    number = int((label.lastgroup or "rule0")[4:])
                    if (apart or is_cut) and _THROUGH.search(before, 0, start):
                        gap = Gap.OTHER
                    if gap is Gap.DESCRIBED and not _BORDER.search(before, 0, start):
                        gap = Gap.OTHER
                    return None if apart and self.rules[number].is_valid_apart is None else (number, end, gap)
            word = starts.pop()
            if not self.ids and before[word:end].lower() in _OF_THINGS:
                return None
            is_second_name = before[word - 1 : word] == "/"  # "NRIC/FIN"
            if not is_second_name and before[word:end].lower() not in _JOINT_WORDS:
                apart += 1
                between = before[word:end]
                if apart > _APART_MAX or between.isupper() or between.lower() in _TOTALS or says_count(between):
                    return None
                is_small = between.islower() or (starts and before[starts[-1] : word].rstrip() in _PLACED)
                gap = Gap.DESCRIBED if is_small and gap is not Gap.OTHER else Gap.OTHER
            end = word
        return None

    def prepare(self) -> None:
        """Compile the patterns that are otherwise compiled on first use."""
        compile_all(self.pattern, self.not_followed, self.keys, self.keys_weak)
        _ = self._labels, self._could_name

    def spans(self, text: str, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield every place before `stop` that looks like one of the numbers."""
        end_max = len(text) if stop is None else stop + NUMBER_CHARS_MAX
        search = self.pattern.compiled.search
        while match := search(text, start, end_max):
            if stop is not None and match.start() >= stop:
                return
            yield match.span()
            start = match.start() + 1

    def span_at(self, text: str, place: int, end_max: int) -> tuple[int, int] | None:
        """Return what looks like one of the numbers and begins at a place, if anything does."""
        match = self.pattern.compiled.match(text, place, end_max)
        return None if match is None else match.span()

    def may_be_named(self, words: str) -> bool:
        """Return False only if the words before a number do not name it."""
        return self._rule(words[-_LABEL_CHARS_MAX:]) is not None

    def may_join(self, words: str) -> bool:
        """Return False only if nothing before these words can name a number behind them."""
        return _NO_JOINTS.isdisjoint(words) and _JOINT_WORDS.issuperset(_WORD.findall(words.lower()))

    def fits(self, before: str, after: str) -> bool:
        """Return whether a label stands right before, or after."""
        return self._rule(_last_words(before)) is not None or self._rule(label_behind(after)) is not None

    def names(self, key: str) -> bool:
        """Return whether the key means the number: "phone number" does, "phone calls" does not."""
        if self.keys is not None:
            return self._ends_with_key(key) or (self.keys_weak is not None and bool(self.keys_weak.compiled.fullmatch(key)))
        before = _last_words(f"{key}: ")
        return (not key.isascii() or self._could_name(before)) and self._rule(before) is not None

    def _ends_with_key(self, key: str) -> bool:
        words = key.split()
        return self.keys is None or any(self.keys.compiled.fullmatch(" ".join(words[-count:])) for count in (1, 2))

    def holds(self, key: str, number: str) -> bool:
        """Return whether the digits of a JSON number are valid from first to last under a key that `names` them."""
        if len(number) < self.bare_digits_min:
            return False
        if self.is_valid_bare is not None and not self._ends_with_key(key):
            return self.is_valid_bare(number)
        return self.judge(number, f"{key}: ", "") == len(number)

    def names_column(self, head: str) -> bool:
        """Return whether the head of a column says that its cells are of this kind."""
        return self._rule(_last_words(f"{head}: ")) is not None

    def value_in(self, cell: str, head: str) -> tuple[int, int] | None:
        """Return where the value stands in a cell of a column that names it."""
        for start, end in self.spans(cell):
            if length := self.judge(cell[start:end], f"{head}: ", cell[end:]):
                return start, start + length
        return None

    def judge(self, value: str, before: str, after: str) -> int:
        """Return how many leading characters of `value` are a valid number of the kind that its label names; 0 for none."""
        tail = _last_words(before)
        found = self._rule(tail)
        if found is None:
            return self._judge_behind(value, before, after)
        number, is_said, gap = found
        rule = self.rules[number]
        is_valid = rule.is_valid_behind(gap)
        if is_said and not rule.with_colon:
            return 0
        for cut in _cuts(value):
            if cut >= _VALUE_CHARS_MIN and is_valid(value[:cut]):
                rest = value[cut:] + after
                if self.is_figure is not None and self.is_figure(value[:cut], before, rest):
                    return 0
                is_counted = (
                    rest
                    and _PLAIN_NUMBER.fullmatch(value, 0, cut)
                    and (COUNTED.match(rest) or self._counts(rule, rest, is_said=is_said))
                )
                return 0 if is_counted else cut
        return 0

    def _judge_behind(self, value: str, before: str, after: str) -> int:
        """Return how many leading characters of `value` are a valid number that a label behind it names."""
        for cut in _cuts(value):
            label = label_behind(value[cut:] + after)
            found = self._rule(label) if label else None
            if found is None or found[2] is not Gap.NONE:
                continue
            rule = self.rules[found[0]]
            is_valid = rule.is_valid_behind(Gap.OTHER) if self.checked_behind else rule.is_valid
            if is_valid(value[:cut]):
                return 0 if foreign_label_start(before) >= 0 else cut
        return 0

    def _counts(self, rule: Rule, rest: str, *, is_said: bool) -> bool:
        """Return whether the words behind a plain number say that it counts something."""
        counted = (rule.not_followed,) if is_said else (self.not_followed, rule.not_followed)
        return any(one is not None and one.compiled.match(rest) for one in counted)


# "Direct normal irradiance (DNI) ": letters that stand for other words than those of a person's number.
_ABBREVIATED = re.compile(r"(?P<words>(?:[^\W\d_]+[ -]){2,6})\((?P<letters>[A-Z]{2,6})\)[ :]{0,2}\Z")
_OF_PERSONS = re.compile(
    r"identi|ident|person|social|secur|insur|health|tax|fiscal|tribut|contrib|national|nacional|citizen|ciudadan|cidad|número"
    r"|numéro|numer|number|nummer|regist|rijks|burger|steuer|kennung|account|permit|passport|licen|service|matricul",
    re.IGNORECASE,
)


def _is_of_thing(before: str) -> bool:
    """Return whether a text ends with a term and its first letters in brackets, and no word of the term is of persons."""
    found = _ABBREVIATED.search(before)
    if found is None:
        return False
    letters = found["letters"]
    words = re.split("[ -]", found["words"].rstrip(" -"))[-len(letters) :]
    is_short = "".join(word[0] for word in words).upper() == letters
    return is_short and not any(map(_OF_PERSONS.match, words))


def _cuts(value: str) -> Sequence[int]:
    """Return where a value may end, the longest first: not behind a word that follows a number."""
    if value.isascii() and value.isalnum():
        return (len(value),)
    return [cut for match in _CUT.finditer(value) if not _WORD_AT_END.search(value, 0, cut := match.start())][::-1]


def _last_words(before: str) -> str:
    """Return the words in which a label may stand: no label has a digit in it, so the words of a text are few."""
    before = before[-_LABEL_CHARS_MAX:]
    digits = _UP_TO_DIGIT.match(before)
    return before if digits is None else f"0{before[digits.end() :]}"


def _starts(text: str) -> list[int]:
    """Return where the words of a text begin; ideographs each begin one."""
    return [match.start() for match in _START.finditer(text)]


def _camel(labels: str) -> str:
    """Return plain labels as they stand inside a camelCase key."""
    return "|".join(word.title().replace(" ", "") for word in labels.split("|") if re.fullmatch("[a-z ]+", word)) or "Cpf"
