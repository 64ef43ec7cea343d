"""Phone numbers in words, digit by digit or in pairs: "four one five …", "zéro six douze trente-quatre …"."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.labels import PHONE
from comity.core.redaction.shapes import AT_BORDER, HINT_BEFORE_WORD, LatePattern, by_letter, words

# Words that stand for a digit even where no label says that a number follows.
_DIGITS = {
    word: digit
    for digit, words in enumerate(
        ("zero oh o null cero zéro", "one eins un uno", "two zwei deux dos zwo", "three drei trois tres",
         "four vier quatre cuatro", "five fünf cinq cinco", "six sechs seis",
         "seven sieben sept siete", "eight acht huit ocho", "nine neun neuf nueve")
    )
    for word in words.split()
}  # fmt: skip
# Words of numbers that also mean other things, and those of pairs: under a label of a phone.
_MORE = re.findall(
    r"\w+",
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy"
    " eighty ninety hundred thousand"
    " dix onze douze treize quatorze quinze seize vingt vingts trente quarante cinquante soixante et une"
    " due tre quattro cinque sei sette otto nove um uma dois duas três quatro sete oito meia nul een één twee drie vijf zes"
    " zeven negen jeden dwa trzy cztery pięć sześć siedem osiem dziewięć ноль нуль один два три четыре пять шесть семь восемь"
    " девять sıfır bir iki üç dört beş altı yedi sekiz dokuz noll ett två tre fyra fem sex sju åtta nio en to fire syv otte ni"
    " seks",
)
# Between the groups of a number that is read aloud.
HESITATION = r"[ ,.…]{1,3}(?:(?:uh|um|erm?|eh|euh|äh|dash|hyphen|minus|space|then|tiret|guion|strich|[-–—])[ ,.…]{1,3}){1,2}"
_DOUBLE = "(?:[dD]ouble|[tT]riple)[ -]"
_TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_TIMES = {"double": 2, "triple": 3}


def _first_of(numbers: list[str]) -> str:
    """Return a pattern of the first letters of words, each at the beginning of a word."""
    letters = {letter for word in numbers for letter in (word[0], word[0].upper())}
    return rf"[{''.join(sorted(letters))}](?<![^\W\d_](?s:.))"


@lru_cache(maxsize=1024)
def _accept_digits(value: str) -> int:
    """Count digits in words, unless they count up or down as a list does."""
    said = [_DIGITS[word] for word in re.findall("[a-zöäüßéñ]+", value.lower()) if word in _DIGITS]
    steps = {second - first for first, second in pairwise(said)}
    return 0 if len(set(said)) < 3 or len(steps) == 1 or steps <= {1, -9} else len(value)


def _accept_worded(value: str) -> int:
    """Count what has at least seven digits, of which a word stands for one or more."""
    return len(value) if sum(len(part) if part.isdigit() else 1 for part in re.findall(r"[^\W_]+", value)) >= 6 else 0


def digits_said(words: list[str]) -> str:
    """Return the digits that words and numbers in small letters stand for: "six", "oh", "double", "one", "4177" is 60114177."""
    said, times = "", 1
    for before, word in pairwise(("", *words)):
        if word in _TIMES:
            times = _TIMES[word]
            continue
        if word in _DIGITS and before in _TENS:
            said = said[:-1] + str(_DIGITS[word])  # "forty one"
        elif word in _DIGITS:
            said += str(_DIGITS[word]) * times
        elif word in _TEENS:
            said += str(10 + _TEENS.index(word))
        elif word in _TENS:
            said += str(20 + 10 * _TENS.index(word))
        else:
            said += word if word.isdigit() else "00"  # "hundred"
        times = 1
    return said


_PLAIN = list(_DIGITS)
DIGIT_WORDS: Final = f"(?:{_DOUBLE})?(?:{by_letter([*_PLAIN, *_TEENS, *_TENS, 'hundred'])})"
DIGIT_WORDS_HINT: Final = f"(?:(?:double|triple)[ -])?(?:{'|'.join(sorted({*_PLAIN, *_TEENS, *_TENS}, key=len, reverse=True))})"
_ALL = [*_PLAIN, *_MORE]
_DIGIT = f"(?:{_DOUBLE})?(?:{by_letter(_PLAIN)})"
_NUMBER = f"(?:{_DOUBLE})?(?:{by_letter(_ALL)})"
# A value follows its label, so a place behind another number is not tried: a long run of numbers is read once.
NOT_INSIDE: Final = "".join(
    rf"(?<!(?<![^\W_])(?i:{'|'.join(sorted({word for word in (*_ALL, *_TIMES) if len(word) == size}))})[ ,.-])"
    for size in sorted({*map(len, (*_ALL, *_TIMES))})
)
_SPOKEN_HINT = f"(?:(?:double|triple)[ -])?(?:{'|'.join(sorted(_PLAIN, key=len, reverse=True))})"
_WORDED_HINT = f"(?:(?:double|triple)[ -])?(?:{'|'.join(sorted(set(_ALL), key=len, reverse=True))})"

# Whose number it is, and who is to be reached how.
_REACHED = (
    "(?:my|our|his|her|their|your) number",
    "(?:call|ring|phone|text|dial|reach|try)(?: (?:me|us|him|her|them))?(?: (?:back|up))?(?: (?:on|at))?",
    "(?:get|catch|find)(?: hold of)? (?:me|us|him|her|them) (?:on|at|under)",
    (
        "(?:mon|ton|son|leur|notre|votre) num[eé]ro|(?:mi|tu|su) n[uú]mero|(?:mio|tuo|suo) numero|(?:mijn|zijn|haar|ons) nummer"
        "|(?:meine|seine|ihre|unsere) nummer|(?:meu|seu) número|(?:mój|jej|jego) numer|m(?:in|itt) nummer"
    ),
    (
        "(?:joindre|(?:r?appele[rz])(?:[ -]moi)?|erreichen|anrufen|erreichbar|bereiken|bellen|llamar(?:me)?|llámame"
        "|localizar(?:me)?"
        "|chiamar(?:e|mi)|chiamami|ligar|ligue|nås|ringe?)(?: (?:me|mich|mij|mig|uns))?(?: (?:au|auf|unter|op|al|en el|no|para"
        "|på))?"
    ),
)

_KOREAN = "공영일이삼사오육륙칠팔구"
_CHINESE = "零〇一二三四五六七八九幺"

SPOKEN: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="phone_said",
        type="PHONE",
        category=Category.CONTACT,
        priority=42,
        pattern=LatePattern(
            rf"(?<![A-Za-z0-9_])\(?[2-9][0-9]{{2}}\)?{HESITATION}[0-9]{{3}}(?:{HESITATION}"
            rf"|[ .-])[0-9]{{4}}(?![A-Za-z0-9_])",
            re.IGNORECASE,
        ),
        hint=rf"[2-9][0-9]{{2}}\)?(?i:{HESITATION})[0-9]{{3}}",
        need=Need.CONTEXT,
        context=words(
            PHONE,
            r"(?:tele|cell|mobile ?|home ?|work ?)?phones?(?: ?(?:number|no))?",
            "mobile",
            "cell",
            *_REACHED,
        ),
    ),
    PatternDetector(
        name="phone_ideographic",
        type="PHONE",
        category=Category.CONTACT,
        priority=42,
        pattern=LatePattern(
            rf"(?<![가-힣0-9])[공영][일칠][{_KOREAN}][ -]?(?:[0-9]{{3,4}}|[{_KOREAN}]{{3,4}})[ -]?(?:[0-9]{{4}}"
            rf"|[{_KOREAN}]{{4}})(?![0-9])"
            rf"|(?<![{_CHINESE}十百千万亿第])[一幺][三四五六七八九](?:[ ]?[{_CHINESE}]){{9}}(?![{_CHINESE}])"
        ),
        hint=rf"[공영][일칠][{_KOREAN}][ -]?[0-9{_KOREAN}]{{3}}|[一幺][三四五六七八九](?:[ ]?[{_CHINESE}]){{9}}",
    ),
    PatternDetector(
        name="phone_spoken",
        type="PHONE",
        category=Category.CONTACT,
        priority=43,
        pattern=LatePattern(rf"(?<![A-Za-z]){_DIGIT}(?:[ ,-]{{1,3}}{_DIGIT}){{6,18}}(?![A-Za-z])"),
        shape_chars_max=384,
        first=_first_of([*_PLAIN, "double", "triple"]),
        hint=rf"(?i:(?:{_SPOKEN_HINT}[ ,\-]{{1,3}}){{3}}{_SPOKEN_HINT}[ ,\-])",
        accept=_accept_digits,
    ),
    PatternDetector(
        name="phone_worded",
        type="PHONE",
        category=Category.CONTACT,
        priority=42,
        pattern=LatePattern(
            rf"(?<![^\W_]){NOT_INSIDE}(?:(?<![0-9]{{3}}[ ,.-]){_NUMBER}|[0-9]{{3,4}}[ .-]{_NUMBER})"
            rf"(?:[ ,.-]{{1,3}}(?:{_NUMBER}|[0-9]{{1,4}})){{2,20}}(?![^\W_])"
        ),
        shape_chars_max=448,
        first=rf"{_first_of([*_ALL, 'double', 'triple'])}|[0-9]{AT_BORDER}(?=[0-9]{{2,3}}[ .-][^\W\d_])",
        hint=rf"{HINT_BEFORE_WORD}(?i:{_WORDED_HINT}(?:[ ,.\-]{{1,3}}(?:{_WORDED_HINT}|[0-9])){{5}}"
        rf"|{_SPOKEN_HINT}(?:[ ,.\-]{{1,3}}{_SPOKEN_HINT}){{2}}[ ,.\-]{{1,3}}[0-9]{{3}}"
        rf"|[0-9]{{3,4}}[ .\-]{_SPOKEN_HINT}[ ,.\-]{{1,3}}(?:{_SPOKEN_HINT}|[0-9]{{3}}))",
        accept=_accept_worded,
        need=Need.CONTEXT,
        context=words(
            PHONE,
            r"(?:tele|cell|mobile ?|home ?|work ?)?phones?(?: ?(?:number|no))?",
            "mobile",
            "cell",
            "whatsapp",
            *_REACHED,
        ),
    ),
)
