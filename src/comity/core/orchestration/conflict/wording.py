"""Numbers in words and other spoken forms, said again in digits: "twice a week", "two and a half years", 5'10"."""

from __future__ import annotations

import re
from typing import Final

_ONES: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS: Final = (
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"
)  # fmt: skip
_TENS: Final = dict(
    zip(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), range(20, 100, 10), strict=True)
)
WORDS: Final[dict[str, float]] = {
    "a": 1,
    "an": 1,
    "half a": 0.5,
    "dozen": 12,
    "a dozen": 12,
    "zero": 0,
    **{word: value for value, word in enumerate((*_ONES, *_TEENS), 1)},
    **_TENS,
    **{f"{ten}{joint}{one}": tens + ones for ten, tens in _TENS.items() for ones, one in enumerate(_ONES, 1) for joint in "- "},
}
ALONE: Final = "|".join(sorted(set(WORDS) - {"a", "an", "half a"}))  # the grade A is no number
WORDED: Final = re.compile(
    rf"^({'|'.join(sorted(map(str, WORDS), key=len, reverse=True))})\s+(?!few\b|lot\b)(.+)$|^({ALONE})$", re.IGNORECASE
)


_TIMES_SAID: Final[dict[str, float]] = {"once": 1, "twice": 2, "thrice": 3}
_TIMES: Final = re.compile(  # "twice a week"
    r"^(?P<count>once|twice|thrice|\w+\s+times)\s+(?:an?|per|each|every)\s+(?P<period>[a-z]+)$", re.IGNORECASE
)
_EVERY: Final = re.compile(
    rf"^(?:every|once (?:every|in)) (?P<count>[1-9]\d?|{'|'.join((*_ONES, 'ten', 'twelve', 'other', 'second'))}) "
    r"(?P<period>day|week|month|year|hour|minute|second)s?$",
    re.IGNORECASE,
)
_ADVERBS: Final = {
    adverb: rate
    for rate, adverbs in (
        ("1 per hour", "hourly|every hour"), ("1 per day", "daily|every day|each day|once daily"),
        ("1 per week", "weekly|every week|once weekly"), ("0.5 per week", "fortnightly|biweekly|bi-weekly|every fortnight"),
        ("1 per month", "monthly|every month|each month"), ("1 per quarter", "quarterly|every quarter"),
        ("2 per year", "semi-annually|semiannually|semi-annual|semiannual|half-yearly|biannually|twice yearly|biannual"),
        ("1 per year", "yearly|annual|annually|every year|each year"), ("0.5 per year", "biennially|biennial"),
        ("2 per day", "twice daily|bid|b.i.d."), ("3 per day", "three times daily|tid|t.i.d."), ("4 per day", "qid|q.i.d."),
    )
    for adverb in adverbs.split("|")
}  # fmt: skip
_VULGAR: Final = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3", "⅛": "1/8", "⅕": "1/5"}
_MIXED: Final = re.compile(
    r"^(?P<whole>\d+(?: |-))?(?P<part>\d{1,2})/(?P<parts>[1-9]\d{0,3}) ?(?P<unit>[a-z%].*)?$", re.IGNORECASE
)
_HYPHENED: Final = re.compile(r"^(\d+(?:\.\d+)?)-([a-z]{2,})(?=\b)", re.IGNORECASE)  # 27-inch
_HOURS_AND: Final = re.compile(r"^(\d{1,2}) ?h ?(\d\d)$", re.IGNORECASE)  # 2h15
_SYMBOL: Final = re.compile(r"^[a-z] ?= ?(?=[\d$€£~])", re.IGNORECASE)  # n = 250
_BRACKETED: Final = re.compile(r"^\((?P<value>[\d.,' ]+)\) ?(?P<unit>\D{1,20})$|^(?P<money>\D{1,3})\((?P<amount>[\d.,' ]+)\)$")
_AND_CENTS: Final = re.compile(
    r"^(?P<whole>\d+) ?(?P<unit>pounds|euros?|dollars|francs|£|€) ?(?:and )?(?P<cents>\d\d)(?: ?(?:pence|cents|p|c))?$",
    re.IGNORECASE,
)
_PLACES: Final = {
    word: at
    for at, words in enumerate(
        ("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th", "seventh 7th", "eighth 8th",
         "ninth 9th", "tenth 10th"), 1
    )
    for word in words.split()
}  # fmt: skip
_PLACE: Final = re.compile(
    rf"^(?:the )?(?P<which>{'|'.join(_PLACES)})(?: (?:place|position|rank)|(?P<what> (?:edition|floor|generation|attempt|"
    r"round|draft|revision|volume|century|version|release|instalment|grade)))?$",
    re.IGNORECASE,
)
_COUNTS: Final = WORDS | {"second": 2}
_FEET: Final = re.compile(r"""^(?P<feet>\d)(?:['′]\s?| ?(?:foot|feet|ft) )(?P<inches>\d{1,2})(?:["″]|'')?$""", re.IGNORECASE)
_AND_A_HALF: Final = re.compile(  # "two and a half years", "a year and a half", "four and a quarter percent"
    rf"^(?P<count>an?|{'|'.join(_ONES)}|\d+)\s+(?:and\s+(?P<part>a\s+half|a\s+quarter|three\s+quarters)\s+(?P<unit>[a-z %]+)"
    r"|(?P<unit_before>[a-z]+)\s+and\s+(?P<part_behind>a\s+half|a\s+quarter|three\s+quarters))$",
    re.IGNORECASE,
)
_QUARTERS: Final = {"half": 0.5, "quarter": 0.25, "quarters": 0.75}
_PARTS: Final = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10
}  # fmt: skip
FRACTIONS: Final = {
    "twofold increase": 1.0, "threefold increase": 2.0, "fourfold increase": 3.0, "tenfold increase": 9.0,
    "quarter": 0.25, "quadrupled": 3.0, "trebled": 2.0,
    "half": 0.5, "half price": 0.5, "half off": 0.5, "doubled": 1.0, "tripled": 2.0, "halved": -0.5,
    **{f"{article} {part}": 1 / whole for part, whole in _PARTS.items() for article in ("a", "an", "one")},
    **{f"{word} {part}s": count / whole for part, whole in _PARTS.items() for count, word in enumerate(_ONES, 1)},
}  # fmt: skip


_SCALES: Final = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "trillion": 1_000_000_000_000}
_SMALL: Final = "|".join(sorted((*_ONES, *_TEENS, *_TENS), key=len, reverse=True))
_PARTED: Final = "|".join(_PARTS)
_SPOKEN: Final = re.compile(
    rf"(?<![\w.-])(?:(?<!.)an?(?= (?:hundred|{'|'.join(_SCALES)}))|{_SMALL})"
    rf"(?:(?: and |,? |-)(?:{_SMALL}|hundred|{'|'.join(_SCALES)})(?![a-z]))*(?![a-z])"
    rf"(?![ -](?:{_PARTED})s?\b)(?!-off\b)",
    re.IGNORECASE,
)
_FOLD: Final = re.compile(rf"^({_SMALL})-?fold$", re.IGNORECASE)
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:\.\d{3})+(?=,[-–—])")  # CHF 1.200,-
_ROUND: Final = re.compile(r"(?<=\d)[.,][-–—]+(?=\s|$)")  # CHF 20.-
_MINUS: Final = re.compile(r"(?<!or )(?<!\w)(?:minus|negative) (?=[\d.$€£])", re.IGNORECASE)
_COUPLE: Final = re.compile(r"^(?:a )?couple of (?=(?P<scale>hundred|thousand|million|dozen)?)", re.IGNORECASE)
_SIGNED: Final = tuple(  # texts that say a sign in words
    (re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (r"^ground (floor|level)$", r"0 \1"),
        (r"^in (?=\d+(?:\.\d+)? [a-z]{3,}s?$)", ""),
        (r"^plus\s+(?=[\d.$€£])", ""),
        (r"^(\d.*?) below zero$", r"-\1"),
        (r"^(\d.*?) above zero$", r"\1"),
        (r"^an? (?:\w+ )?(?:loss|deficit|shortfall) of (?=\D{0,4}\d)", "-"),
        (r"^an? (?:\w+ )?(?:profit|gain|surplus) of (?=\D{0,4}\d)", ""),
        (r"^(\d+) (?:in|out of) (?:a|one|1) hundred$", r"\1 in 100"),
        (r"^(\d+) (?:in|out of) (?:a|one|1) thousand$", r"\1 in 1000"),
        (r"^(.*\d.*?) (?:per|for a|a) dozen$", r"\1 per 12 piece"),
        (r"^(.*\d.*?),? (?:each|apiece|a piece|per (?:unit|item))$", r"\1 per piece"),
        (r"^(?:fifty|50)[-/ ](?:fifty|50)$", "50 %"),
        (r"^(\d+(?:\.\d+)?) ?-?(?:fold|x|×|times)$", r"\1 times"),
        (r"^(?:the )?(\d{1,2})(?:st|nd|rd|th)(?=$)", r"\1"),
    )
)


def in_digits(text: str) -> str:
    """Return a text with its numbers in digits: "one hundred and twenty" is 120, "two million" is 2 million."""
    return text if text.isdigit() else _MINUS.sub("-", _SPOKEN.sub(_digits, text))


def _digits(found: re.Match[str]) -> str:
    words = [word for word in re.split(r"[ ,-]+", found.group().lower()) if word != "and"]
    total, current, last = 0.0, 0.0, 0.0
    for at, word in enumerate(words):
        if word == "hundred":
            current *= 100
        elif scale := _SCALES.get(word):
            if at + 1 == len(words) and not total:
                return f"{current:g} {word}"  # keeps how exactly it was said
            total, current = total + current * scale, 0.0
        elif at and last and (last < 20 or WORDS[word] > 9) and words[at - 1] not in _SCALES and words[at - 1] != "hundred":
            return found.group()  # "nineteen ninety" is no number
        else:
            current += WORDS[word]
        last = WORDS.get(word, 0.0)
    return f"{total + current:.0f}"


_ROMANS: Final = {"I": 1, "V": 5, "X": 10}
_ROMAN: Final = re.compile(
    r"(?<=[a-z]\s)(?:X{1,3}(?:IX|IV|V?I{0,3})|IX|IV|VI{0,3}|I{1,3})(?=$|[,:;)])|^(?=[IVX]{2})X{0,3}(?:IX|IV|V?I{0,3})$"
)


def arabic(text: str) -> str:
    """Return a text with the Roman number at its end in digits: "Phase II" is "Phase 2"."""
    return _ROMAN.sub(_of_roman, text) if text[-1:] in "IVX" else text


def _of_roman(found: re.Match[str]) -> str:
    sizes = [_ROMANS[letter] for letter in found.group()]
    return str(sum(-size if size < max(sizes[at:]) else size for at, size in enumerate(sizes)))


def reworded(text: str) -> str:
    """Return "twice a week", 5'10", 1 ½ inches and "two and a half years" with plain numbers, any other text as it is."""
    text = _THOUSANDS.sub(lambda found: found[0].replace(".", ""), text)
    text = in_digits(arabic(_ROUND.sub("", _FOLD.sub(r"\1-fold", text))))
    text = _HYPHENED.sub(r"\1 \2", _HOURS_AND.sub(r"\1 h \2 min", text.replace("mpg", "miles per gallon")))
    text = _SYMBOL.sub("", re.sub(r"[½¼¾⅓⅔⅛⅕]", lambda found: f" {_VULGAR[found[0]]}", text).strip())
    if text.lower() in _ADVERBS:
        return _ADVERBS[text.lower()]
    if times := _TIMES.match(text):
        said = times["count"].split()[0].lower()
        return f"{_TIMES_SAID.get(said, WORDS.get(said) or said)} per {times['period']}"
    if every := _EVERY.match(text):
        count = {"other": 2.0}.get(every["count"].lower()) or _COUNTS.get(every["count"].lower()) or float(every["count"])
        return f"{1 / count} per {every['period']}"
    for pattern, said in _SIGNED:
        if pattern.match(text):
            return pattern.sub(said, text)
    if feet := _FEET.match(text):
        return f"{feet['feet']} ft {feet['inches']} in"
    if halved := _AND_A_HALF.match(text):
        more = _QUARTERS[(halved["part"] or halved["part_behind"]).lower().split()[-1]]
        return (
            f"{WORDS.get(halved['count'].lower()) or int(halved['count'])} {halved['unit'] or halved['unit_before']}".replace(
                " ", f"{more:g}".removeprefix("0") + " ", 1
            )
        )
    if (mixed := _MIXED.match(text)) and (mixed["whole"] or mixed["unit"]):
        whole = int((mixed["whole"] or "0").rstrip(" -"))
        return f"{whole + int(mixed['part']) / int(mixed['parts'])} {mixed['unit'] or ''}".strip()
    if negative := _BRACKETED.match(text):
        return f"-{negative['value'] or negative['amount']} {negative['unit'] or negative['money']}"
    if cents := _AND_CENTS.match(text):
        return f"{cents['whole']}.{cents['cents']} {cents['unit']}"
    if place := _PLACE.match(text):
        return f"{_PLACES[place['which'].lower()]}{place['what'] or ''}"
    if couple := _COUPLE.match(text):
        return f"{'about ' if couple['scale'] else ''}2 {text[couple.end() :]}"
    if text and not text.strip("★☆"):
        return f"{text.count('★')} stars"
    return text
