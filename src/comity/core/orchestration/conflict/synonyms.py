"""Words that mean the same and words that mean the opposite, in statuses and sentences of replies."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from comity.core.orchestration.intent.stems import stem

_SHORT: Final = {
    "st": "street", "rd": "road", "ave": "avenue", "blvd": "boulevard", "sq": "square", "dept": "department",
    "mgmt": "management",
    "intl": "international", "govt": "government", "univ": "university", "mgr": "manager", "asst": "assistant",
    "apt": "apartment", "fl": "floor", "bldg": "building", "ste": "suite", "ln": "lane",
    "pl": "place", "ct": "court",
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
    "on target": "punctual", "let lapse": "expire", "recommends against": "avoid", "recommend against": "avoid",
    "recommended against": "avoid", "warn against": "avoid", "warns against": "avoid", "refrain from": "avoid",
    "steer clear of": "avoid", "hiring freeze": "freeze hiring",
    "failed to": "not", "fails to": "not", "fail to": "not", "refused to": "not", "refuses to": "not", "refuse to": "not",
    "unable to": "not", "no longer": "not", "lack of": "not", "absence of": "not", "free of": "not", "free from": "not",
    "far from": "not", "wait and see": "wait",
    "walk away from": "abandon", "walk away": "abandon", "shut down": "disable",
    "power off": "disable", "take on": "hire", "bring in": "hire", "roll out": "deploy", "hand over": "deliver",
    "hold off": "wait", "hold off on": "delay", "right away": "immediately",
    "at once": "immediately", "straight away": "immediately", "take over": "acquire", "took over": "acquire",
    "back out of": "leave",
    "empty stomach": "fasting", "broke down": "fail", "break down": "fail", "went bankrupt": "bankrupt",
    "make it": "succeed", "in house": "insource", "in-house": "insource",
}  # fmt: skip
_PHRASE: Final = re.compile(rf"\b(?:{'|'.join(sorted(_PHRASES, key=len, reverse=True))})\b")
_SWITCHED: Final = re.compile(r"\b(?:switch|turn)(?:ed|es|s|ing)?\s+(?P<what>(?:\w+\s+){0,3}?)(?P<way>on|off)\b")
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
        "seconds minutes hours days weeks months years",
        "minute hour day week month year",
        "daily weekly monthly quarterly yearly annually",
        "first second third fourth fifth last",
        "north south east west northern southern eastern western",
    )
)
# Words of one line mean the same; the first stands for all of them.
_SYNONYMS: Final = """
complete completed done finished finish concluded resolved
ongoing running
paid settled
cancel cancelled aborted scrapped
approve approved accept accepted granted authorised authorized
reject rejected decline declined denied refused
delay delayed late overdue postpone postponed defer deferred
delivered arrived received
shipped dispatched
fail failed unsuccessful failure
pass passed succeeded successful success
large big
quick fast rapid
begin start commence
hire recruit
dismiss fire
buy purchase acquire
additional extra more further
rise increase grow climb growth raise boost
fall drop decrease shrink
detect find discover identify found
recommend advise suggest propose
customer client
staff employee personnel workforce
vehicle car
doctor physician
company firm business
repair fix mend
require need
reduce cut lower
cost expense
contract agreement
close closure
likely probably presumably expected probable
cause trigger
problem issue
error fault defect bug mistake
switch change
agree consent
eligible qualify
lapse expire
outage blackout
fit suitable
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
"""


@lru_cache(maxsize=4_096)
def root(word: str) -> str:
    """Return the stem that stands for a word and for all that mean the same."""
    bare = _bare(word)
    return _FIRST.get(bare, bare)


def _bare(word: str) -> str:
    """Return a stem without its last e or doubled letter: "hire" and "hired", "full" and "fully" are one."""
    found = stem(spelt(word)).removesuffix("e")
    return found[:-1] if len(found) > _SHORTEST and found[-1] == found[-2] else found


def are_exclusive(one: str, other: str) -> bool:
    """Return whether two words are different members of one closed class: numbers, weekdays, months, times of day, colours."""
    return any(one in words and other in words for words in _CLASSES)


def replaced(text: str) -> str:
    """Return a text in small letters with its phrases as single words."""
    text = _SWITCHED.sub(lambda found: f"{'enable' if found['way'] == 'on' else 'disable'} {found['what'] or ''}", text)
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


_SHORTEST: Final = 3  # letters of a stem
_FIRST: Final = {_bare(word): _bare(line.split()[0]) for line in _SYNONYMS.strip().splitlines() for word in line.split()}
_OPPOSITES: Final = """
accept approve agree | reject decline refuse deny disapprove
safe secure | unsafe dangerous insecure risky hazardous
up upward upwards increase rise grow climb gain expand improve higher raise surge | down downward downwards decrease fall shrink
  drop decline loss contract worsen lower reduce cut plunge
profit profitable gain | loss unprofitable deficit
positive favourable favorable | negative unfavourable unfavorable adverse
high higher highest maximum | low lower lowest minimum
buy purchase | sell
pass succeed success successful | fail failure unsuccessful failed
possible feasible viable | impossible infeasible unviable unfeasible
legal lawful allowed permitted compliant | illegal unlawful forbidden prohibited banned noncompliant
open | closed shut
active enabled on | inactive disabled off
available | unavailable
above over exceeds exceeded | below under
more | less fewer
better best outperform outperformed | worse worst underperform underperformed
strong | weak
early earlier before ahead | late later after behind
recommend advise endorse | avoid discourage oppose against
proceed continue launch start begin | stop halt abandon cancel end pause
enter | exit leave
hire | fire dismiss
support favour favor | oppose resist
cheap inexpensive affordable | expensive costly
fast quick | slow
hot warm | cold cool
win won | lose lost
include included | exclude excluded
optimistic bullish | pessimistic bearish
overvalued | undervalued
complete completed finished done | incomplete unfinished pending
ready | unready
valid correct right true | invalid incorrect wrong false
full | empty
public | private
internal | external
majority most | minority
always | never
stable steady flat unchanged constant | unstable volatile collapse plunge surge soar rise fall increase decrease grow shrink
  drop
likely | unlikely
healthy | sick unhealthy
guilty convict | innocent acquit
uphold upheld allow confirm | dismiss overturn reject
enable | disable
excellent good | poor bad
present | absent
all everyone | none nobody
accelerate quicken | decelerate slow ease
tighten | loosen ease
gain win | lose
confirm | deny refute dispute
major | minor
mandatory required compulsory | optional voluntary
small | large big
easy simple | hard difficult complex
surplus | deficit shortage
enough sufficient adequate | insufficient inadequate
satisfied happy | dissatisfied unhappy
import | export
inflow | outflow
renew extend prolong keep continue | terminate cancel end expire lapse drop
hire recruit | freeze
keep hold retain stay | sell switch change replace leave abandon scrap drop
repair fix | scrap replace discard
expand enter grow invest | withdraw exit shrink divest leave
settle | sue litigate
outsource | insource
encrypted | plaintext unencrypted
satisfied happy praise | complain complained
intact undamaged | worn damaged broken defective cracked
borrow | repay
lend | borrow
centralise | decentralise
merge | split separate demerge
ship send dispatch | withhold
publish release | withdraw withhold recall
proceed continue launch | postpone delay defer suspend
punctual early | delayed late overdue
add | remove delete
keep retain | remove replace drop discard
strengthen | weaken
lock | unlock
connect | disconnect
vacant free | occupied taken
alive | dead
wet | dry
clean | dirty contaminated
automatic | manual
temporary | permanent
fixed | variable
domestic | foreign
upgrade promote | downgrade demote
solvent | insolvent bankrupt
visible | hidden
benign | malignant
solved resolved | unsolved unresolved
necessary needed required | unnecessary
move relocate leave | stay remain keep
effective | ineffective
reliable | unreliable
admit | deny
grant | revoke
attend | miss skip
enter take use drink eat consume | avoid
overspent | underspent
meet exceed reach achieve hit | miss
comply | breach violate
parttime | fulltime
indoor indoors inside | outdoor outdoors outside
most majority many | few
confirm match | contradict
long tall | short
wide | narrow
deep | shallow
near close | far distant
heavy | light
rich | poor
dry sunny | rain rainy wet
loud | quiet
mild | severe
acute | chronic
married | single
day daytime | night
arrive | depart leave
rent lease | own
give administer offer grant provide | withhold deny refuse
keep run continue | disable stop
approve accept pursue | abandon
hire recruit take | dismiss
friendly polite kind helpful courteous | rude unfriendly hostile impolite unhelpful
create build | destroy demolish eliminate
start begin act immediately now | wait
flat unchanged | doubled tripled halved double triple
effective work | ineffective useless
pay | reject refuse
appoint nominate elect | dismiss remove
increase | halve
double triple | halve
accurate precise | inaccurate imprecise
transparent clear | opaque unclear
honest | dishonest
guilty liable | innocent
sufficient | insufficient scarce
abundant plentiful | scarce
recover improve | deteriorate worsen decline relapse
ease relax lift loosen | tighten impose strengthen
impose introduce | lift abolish scrap remove
ban prohibit forbid | allow permit legalise
legalise | criminalise
hire employ | lay dismiss
attract | repel lose
love like enjoy | hate dislike
agree | disagree
trust | distrust
obey follow | ignore disobey
remember | forget
save | waste spend
subsidise | tax
privatise | nationalise
invest | divest
acquire | divest sell
join enter | leave quit
stick adhere | deviate
succeed | fail
win | lose
survive | die
exceed | trail
smooth | bumpy rough
quiet calm peaceful | noisy violent turbulent
crowded busy full | empty quiet deserted
fresh | stale rotten
sweet | bitter sour
soft | hard
thick | thin
bright | dark dim
new modern | old outdated obsolete
ripe | unripe
sharp | blunt
straight | crooked bent
sober | drunk
awake | asleep
innocent | guilty
voluntary | forced compulsory
genuine authentic real original | fake forged counterfeit
deliberate intentional | accidental unintentional
careful | careless negligent
experienced | inexperienced
qualified | unqualified
popular | unpopular
relevant | irrelevant
consistent | inconsistent
complete | partial
simple | complicated
urgent | routine
online | offline
local | remote
wireless | wired
single | multiple
before | after
inside | outside
top | bottom
front | back rear
upstream | downstream
oversupply glut | shortage
overpaid | underpaid
overestimate | underestimate
understaffed | overstaffed
inflation | deflation
expansion boom | recession contraction slump
credit | debit
asset | liability
creditor lender | debtor borrower
supply | demand
tailwind | headwind
strength | weakness
advantage benefit | disadvantage drawback
opportunity | threat
proven confirmed verified | unproven disproved refuted unverified
known | unknown
insured | uninsured
damaged | undamaged intact
sealed | leaking
functional working | broken faulty defective
stuck jammed | loose
overloaded | idle normal
sterile | contaminated
edible | poisonous toxic
harmless | harmful dangerous toxic
waterproof watertight | leaky
renewable | fossil
raw | cooked
"""


def _opposed() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in _OPPOSITES.replace("\n  ", " ").strip().splitlines():
        left, right = ([root(word) for word in side.split()] for side in line.split("|"))
        for one, others in [*((word, right) for word in left), *((word, left) for word in right)]:
            found.setdefault(one, set()).update(others)
    return found


OPPOSITES: Final = _opposed()
