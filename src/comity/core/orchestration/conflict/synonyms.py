"""Words that mean the same and words that mean the opposite, in statuses and sentences of replies."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from comity.core.orchestration.intent.stems import stem

_SHORT: Final = {
    "st": "street", "rd": "road", "ave": "avenue", "blvd": "boulevard", "sq": "square", "dept": "department",
    "mgmt": "management",
    "intl": "international", "govt": "government", "univ": "university", "mgr": "manager", "sr": "senior", "jr": "junior",
    "asst": "assistant",
    "apt": "apartment", "fl": "floor", "bldg": "building", "ste": "suite", "ln": "lane",
    "pl": "place", "ct": "court",
    "saint": "street", "sankt": "street",  # as both are St.
}  # fmt: skip
PASTS: Final = {
    "fell": "fall", "fallen": "fall", "rose": "rise", "risen": "rise", "grew": "grow", "grown": "grow", "shrank": "shrink",
    "rising": "rise", "losing": "lose",
    "sold": "sell", "paid": "pay", "lent": "lend", "built": "build", "wrote": "write", "written": "write", "made": "make",
    "sent": "send", "gave": "give", "given": "give", "took": "take", "taken": "take", "held": "hold", "kept": "keep",
    "beaten": "beat", "chose": "choose", "chosen": "choose", "spent": "spend", "told": "tell", "bought": "buy", "won": "win",
    "lost": "lose", "began": "begin", "met": "meet", "ran": "run", "broke": "break", "froze": "freeze", "withdrew": "withdraw",
    "came": "come",
    "knew": "know", "spoke": "speak", "drove": "drive", "flew": "fly", "blew": "blow", "tore": "tear", "sank": "sink",
    "led": "lead", "became": "become", "went": "go", "gone": "go",
}  # fmt: skip
# Phrases that stand for one word; "no sign of recovery" is "not recovery".
_PHRASES: Final = {
    "go ahead": "proceed", "goes ahead": "proceed", "going ahead": "proceed", "on schedule": "punctual",
    "on time": "punctual", "as planned": "punctual", "in stock": "available", "sold out": "unavailable",
    "out of stock": "unavailable", "in progress": "ongoing", "under way": "ongoing", "underway": "ongoing",
    "called off": "cancelled", "call off": "cancel", "turned down": "rejected", "turn down": "reject",
    "voted down": "reject", "vote down": "reject", "no difference": "same", "no different": "same",
    "signed off": "approved", "past due": "overdue", "behind schedule": "delayed", "go up": "rise", "goes up": "rise",
    "went up": "rise", "going up": "rise", "go down": "fall", "goes down": "fall", "went down": "fall",
    "going down": "fall", "get better": "improve", "got better": "improve", "get worse": "worsen", "got worse": "worsen",
    "put off": "postpone", "carry on": "continue", "lay off": "dismiss", "laid off": "dismiss", "no sign of": "not",
    "no signs of": "not", "no evidence of": "not", "no indication of": "not", "shows not": "not", "show not": "not",
    "found not": "not", "advise against": "avoid", "advises against": "avoid", "advised against": "avoid",
    "stay out of": "avoid", "stays out of": "avoid", "loses money": "unprofitable", "lose money": "unprofitable",
    "makes a loss": "unprofitable", "at a loss": "unprofitable", "makes a profit": "profitable",
    "makes money": "profitable", "over budget": "overspent", "under budget": "underspent", "ahead of schedule": "early",
    "in favour of": "support", "in favor of": "support", "opposed to": "oppose", "falls short of": "miss",
    "fell short of": "miss", "part time": "parttime", "full time": "fulltime", "on hold": "suspended",
    "at risk": "endangered", "up to date": "current", "out of date": "obsolete", "free of charge": "free",
    "not detected": "negative", "kicked off": "started", "kick off": "start", "not guilty": "acquitted", "no need to": "not",
    "no need": "unnecessary", "as new": "mint",
    "like new": "mint",
    "closed ticket": "complete",
    "stay with": "keep", "stays with": "keep", "stick with": "keep", "hold on to": "keep", "hold onto": "keep",
    "hang on to": "keep", "hold back": "withhold", "let go of": "drop", "get rid of": "discard", "do away with": "discard",
    "plain text": "plaintext", "go to trial": "litigate", "go to court": "litigate", "out of court": "settle",
    "pull out of": "withdraw", "pull out": "withdraw", "phase out": "discard", "wind down": "terminate",
    "scale back": "reduce", "cut back": "reduce", "scale up": "increase", "step up": "increase", "ramp up": "increase",
    "speed up": "accelerate", "slow down": "decelerate", "give up": "abandon", "set up": "start", "run out": "expire",
    "worn out": "worn", "under control": "controlled", "out of control": "uncontrolled", "voted for": "support",
    "vote for": "support", "votes for": "support", "voted against": "oppose", "vote against": "oppose",
    "votes against": "oppose", "ruled against": "oppose", "spoke against": "oppose", "spoke for": "support",
    "argued for": "support", "argued against": "oppose", "decided against": "reject", "decide against": "reject",
    "on target": "punctual", "as scheduled": "punctual", "to plan": "punctual", "made redundant": "dismiss",
    "let go": "dismiss",
    "step down": "resign", "stepped down": "resign", "steps down": "resign", "push back": "postpone", "pushed back": "postpone",
    "put back": "postpone", "rule out": "exclude", "ruled out": "exclude", "in the red": "unprofitable",
    "in the black": "profitable",
    "let down": "disappoint", "lets us down": "disappoint", "thrown out": "dismiss", "threw out": "dismiss",
    "throw out": "dismiss",
    "set out": "start", "high blood pressure": "hypertension", "heart attack": "infarction",
    "myocardial infarction": "infarction",
    "held up": "delay", "hold up": "delay", "brought down": "crash", "bring down": "crash", "knocked out": "fail",
    "come down": "fall",
    "came down": "fall", "came up": "rise", "get in touch with": "contact", "got in touch with": "contact", "point out": "show",
    "find out": "discover", "found out": "discover", "carry out": "perform", "carried out": "perform", "take place": "happen",
    "took place": "happen", "takes place": "happen", "look into": "investigate", "looked into": "investigate",
    "in line with": "match", "ahead of": "early", "short of": "miss", "as many as": "many", "at fault": "guilty",
    "to blame": "guilty",
    "bring forward": "advance", "brought forward": "advance", "in good condition": "intact", "in working order": "working",
    "up and running": "working", "in use": "used", "by hand": "manual", "on foot": "walk", "let lapse": "expire",
    "recommends against": "avoid", "recommend against": "avoid",
    "recommended against": "avoid", "warn against": "avoid", "warns against": "avoid", "refrain from": "avoid",
    "steer clear of": "avoid", "hiring freeze": "freeze hiring",
    "failed to": "not", "still needs": "not", "still need": "not", "has yet to": "not", "have yet to": "not",
    "yet to be": "not",
    "in need of": "not", "fails to": "not", "fail to": "not", "refused to": "not", "refuses to": "not", "refuse to": "not",
    "unable to": "not", "no longer": "not", "lack of": "not", "absence of": "not", "free of": "not", "free from": "not",
    "far from": "not", "wait and see": "wait",
    "no more than": "at most", "not more than": "at most", "no less than": "at least", "not less than": "at least",
    "no later than": "by",
    "no fewer than": "at least", "not only": "also", "no doubt": "certainly", "nothing but": "only",
    "without delay": "immediately",
    "without exception": "always", "not exceeding": "at most", "no other than": "only", "not just": "also", "not until": "only",
    "walk away from": "abandon", "walk away": "abandon", "shut down": "disable",
    "power off": "disable", "take on": "hire", "bring in": "hire", "roll out": "deploy", "hand over": "deliver",
    "hold off": "not", "hold off on": "not", "vice president": "vp", "chief executive officer": "ceo", "chief executive": "ceo",
    "chief financial officer": "cfo", "chief technology officer": "cto", "chief operating officer": "coo",
    "human resources": "hr",
    "bachelor of science": "bsc", "master of science": "msc", "bachelor of arts": "ba", "master of arts": "ma",
    "master of business administration": "mba", "doctor of philosophy": "phd", "waiting for": "await", "waiting on": "await",
    "waits for": "await", "right away": "immediately",
    "at once": "immediately", "straight away": "immediately", "take over": "acquire", "took over": "acquire",
    "back out of": "leave",
    "empty stomach": "fasting", "broke down": "fail", "break down": "fail", "went bankrupt": "bankrupt",
    "make it": "succeed", "in house": "insource", "in-house": "insource",
}  # fmt: skip
_PHRASE: Final = re.compile(rf"\b(?:{'|'.join(sorted(_PHRASES, key=len, reverse=True))})\b")
_SWITCHED: Final = re.compile(r"\b(?:switch|turn)(?:ed|es|s|ing)?\s+(?P<what>(?:\w+\s+){0,3}?)(?P<way>on|off)\b")
_LESS: Final = re.compile(
    r"\bless (?=(?:expensive|costly|likely|common|important|effective|reliable|safe|popular|efficient|risky)\b)"
)
_CLASSES: Final = tuple(
    frozenset(line.split())
    for line in (
        "zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred",
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april may june july august september october november december",
        "morning noon afternoon evening night midnight",
        "spring summer autumn winter",
        "red green blue yellow black white grey gray brown orange purple pink",
        "north south east west",
        "left right",
        "in outside",
        "inside outside",
        "to from",
        "with without",
        "once twice thrice",
        "seconds minutes hours days weeks months years",
        "minute hour day week month year",
        "daily weekly monthly quarterly yearly annually",
        "first second third fourth fifth last",
        "north south east west northern southern eastern western",
    )
)
# Words of one line mean the same; the first stands for all of them. Of a word in several lines the first is its main sense.
_SYNONYMS: Final = """
complete completed done finished finish concluded resolved
ongoing running
delivered arrived received
shipped dispatched
fail failed unsuccessful failure
pass passed succeeded successful success
additional extra more further
doctor physician
lapse expire
grey gray
cheque check
tyre tire
programme program
aluminium aluminum
break broken fracture fractured
female woman
optimistic bullish
pessimistic bearish
male man
cancel cancelled aborted scrapped axed
approve approved accept accepted granted authorised authorized ratify endorse sanction greenlight
reject rejected decline declined denied refused veto rebuff
delay delayed late overdue postpone postponed defer deferred tardy belated
paid settled
large big huge sizeable
small little tiny
significant substantial considerable marked
quick fast rapid swift speedy prompt
begin start commence initiate
hire recruit
dismiss fire sack
resign quit
buy purchase acquire procure
rise increase grow climb growth raise boost jump escalate
fall drop decrease shrink slump dip slide plummet tumble diminish dwindle
surge soar skyrocket
detect find discover identify found spot uncover
recommend advise suggest propose urge counsel
customer client shopper consumer
staff employee personnel workforce worker
supplier vendor provider
vehicle car automobile
lorry truck
ship vessel boat
shop store outlet
plant factory
flat apartment
goods merchandise
shipment consignment parcel package
company firm business enterprise corporation
repair fix mend
require need necessitate
reduce cut lower lessen trim slash
cost expense
contract agreement accord
close closure
likely probably presumably expected probable anticipate
forecast predict
cause trigger provoke induce
problem issue trouble difficulty
error fault defect bug mistake flaw glitch
switch change alter modify amend
agree consent concur
eligible qualify
outage blackout downtime
fit suitable appropriate
revenue sales turnover
profit earnings
affect impact influence
damage harm
improve enhance
worsen deteriorate
expand broaden widen
construct build erect
make produce manufacture
use utilise utilize
choose select pick
help assist aid
meal food
after following
before prior
doctor physician
drug medicine medication
illness disease sickness
flu influenza
operation surgery
goal target objective aim
salary wage
share stock equity
show indicate demonstrate reveal
confirm verify validate corroborate
cheap inexpensive affordable
expensive costly pricey
important crucial essential vital
dangerous hazardous unsafe risky
possible feasible viable doable practicable achievable workable
advisable sensible prudent wise
impossible infeasible unworkable unachievable
sufficient enough adequate
faulty defective
empty vacant unoccupied
happy satisfied pleased content
unhappy dissatisfied displeased
ill sick unwell
correct accurate right
incorrect inaccurate wrong
strong robust
stable steady unchanged constant flat
stop halt cease discontinue
ban prohibit forbid disallow outlaw
allow permit
continue proceed
replace substitute swap
remove delete eliminate
keep retain maintain preserve
stay remain
relocate move
exceed surpass
oppose resist
praise commend applaud
reply answer respond response
inspect examine check
assess evaluate gauge appraise
warn caution
admit acknowledge concede
guilty convict convicted
innocent acquit acquitted exonerated
responsible accountable
steal rob
rain rainy shower
rival competitor
benefit advantage
drawback disadvantage
evening night
several multiple
lack shortage
money funds
shut close
launch introduce unveil release
launch begin start
reduce fall decrease lower drop cut
fall decline decrease
stock inventory
hurt injure injury wound
maize corn
potable drinkable
staffed manned
soy soya
aubergine eggplant
courgette zucchini
positive favourable favorable
negative unfavourable unfavorable adverse
happy cheerful joyful merry glad
gloomy sad miserable depressed
hard difficult tough challenging
easy simple straightforward
excellent outstanding superb exceptional
poor bad inferior
good fine decent
quiet silent noiseless
loud noisy
plentiful ample abundant plenty
scarce limited sparse rare
average mediocre middling
busy crowded packed
cloudy overcast
windy breezy
humid damp moist
dry arid
heavy weighty
thin slim slender
thick dense
broad wide
tall high
brief short
lengthy long
ancient old
annual yearly
free complimentary gratis
mandatory compulsory obligatory required
optional voluntary discretionary
temporary provisional interim
permanent indefinite lasting
initial first
final last ultimate
main primary principal chief
secondary subsidiary
frequent regular
rare infrequent
normal usual ordinary typical standard
abnormal unusual atypical
complete full whole entire
partial incomplete part
transparent clear
rough approximate
precise exact accurate
genuine authentic real original
fake counterfeit forged bogus
careful cautious
reckless careless
calm peaceful tranquil
angry furious irate
sad unhappy
afraid scared frightened
hungry starving
wealthy rich affluent
insolvent bankrupt
male masculine
healthy well
fatal deadly lethal
mild slight light
severe serious grave acute
urgent pressing
confidential secret classified
public open
internal inhouse
remote distant
nearby near close
modern contemporary
outdated obsolete
spotless clean immaculate
filthy dirty
rude impolite
polite courteous
diligent hardworking
smart clever intelligent
stupid foolish
wise sensible
strange odd peculiar weird
famous renowned wellknown
unknown obscure
hidden concealed
visible apparent
rotten spoiled
fresh new
boiling hot
freezing cold
vegan plantbased
electric electrical
manual handoperated
automatic automated
lawyer attorney solicitor
petrol gasoline
lift elevator
holiday vacation
mobile cellphone
act action
effective work
reliable dependable trustworthy
website site
web online
bike bicycle
hold keep
broken defective faulty damaged
essential necessary required
suggest show indicate
get receive obtain
give provide supply
send dispatch forward mail
expect predict forecast anticipate project
beat defeat
beat exceed outperform
back support favour
end finish conclude terminate stop
rise surge soar
fall plunge
improve strengthen better
secure safe
claim say state report
significant important
reach achieve attain hit meet
deny dispute refute
leave exit quit
team crew group
clear obvious evident
paid pay
work function operate
tax levy
fee charge
stop prevent block
hate dislike
worsen degrade decline
"""


@lru_cache(maxsize=4_096)
def root(word: str) -> str:
    """Return the stem that stands for a word and for all that mean the same."""
    bare = _bare(word)
    if bare in _FIRST:
        return _FIRST[bare]
    ends = (bare.removesuffix(end) for end in _NOUN_ENDS if bare.endswith(end))
    return next((_FIRST[verb] for verb in ends if verb in _FIRST), bare)  # "approval" is of "approve"


def _bare(word: str) -> str:
    """Return a stem without its last e or doubled letter: "hire" and "hired", "full" and "fully" are one."""
    if word.endswith("ceed"):
        return word  # the stem of "exceeded" is "exceed"
    found = stem(spelt(word)).removesuffix("e") or word
    return found[:-1] if len(found) > _SHORTEST and found[-1] == found[-2] else found


def are_synonyms(one: str, other: str) -> bool:
    """Return whether two words mean the same in one of their senses: "declined" and "fell", "declined" and "refused"."""
    if one[0].isdigit() or other[0].isdigit():
        return one == other
    first, second = _bare(one), _bare(other)
    return root(one) == root(other) or not _SENSES.get(first, set()).isdisjoint(_SENSES.get(second, set()))


def are_exclusive(one: str, other: str) -> bool:
    """Return whether two words are different members of one closed class: numbers, weekdays, months, times of day, colours."""
    return any(one in words and other in words for words in _CLASSES)


def replaced(text: str) -> str:
    """Return a text in small letters with its phrases as single words."""
    text = _SWITCHED.sub(lambda found: f"{'enable' if found['way'] == 'on' else 'disable'} {found['what'] or ''}", text)
    text = _LESS.sub("not ", text)
    before = None
    while before != text:
        before, text = text, _PHRASE.sub(lambda found: _PHRASES[found.group()], text)
    return text


def spelt(word: str) -> str:
    """Return a word in one of its two English spellings, an irregular past in its present."""
    if word in PASTS or word in _SHORT:
        return PASTS.get(word) or _SHORT[word]
    for british, american in (
        ("our", "or"),
        ("ise", "ize"),
        ("isation", "ization"),
        ("ising", "izing"),
        ("ised", "ized"),
        ("tre", "ter"),
        ("lled", "led"),
        ("lling", "ling"),
    ):
        if word.endswith(british) and len(word) > len(british) + 2:
            return word[: -len(british)] + american
    return word


_NOUN_ENDS: Final = ("ment", "al", "ation", "tion", "ion", "ance")
_SHORTEST: Final = 3  # letters of a stem
_LINES: Final = [[_bare(word) for word in line.split()] for line in _SYNONYMS.strip().splitlines()]
_FIRST: Final = {word: line[0] for line in reversed(_LINES) for word in reversed(line)}  # of several senses the first
_SENSES: Final[dict[str, set[int]]] = {word: set() for line in _LINES for word in line}  # the lines that a word is in
for _at, _line in enumerate(_LINES):
    for _word in _line:
        _SENSES[_word].add(_at)
