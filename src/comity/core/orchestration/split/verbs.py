"""Words by which a clause is recognised: verbs of requests, question words, polite beginnings, words that refer back."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from comity.core.orchestration import hidden
from comity.core.orchestration.split.formal import FORMAL, TO_BE_DONE, WISHED

_PLAIN: Final = """
accept add adjust advise align allocate amend analyse analyze announce answer apply appraise approve arrange ask assemble
assess assign attach attribute audit backtest begin block boil book bring build buy calculate call cancel carve categorise
categorize change characterise characterize chart check choose circulate clarify classify clean close cluster collect come
combine comment compare compile complete compose compress compute condense configure confirm connect consolidate construct
contact continue contrast convert copy correct count cover create cut debug decide decline deduct define delete deliver deploy
derive describe design detect determine develop diagnose disable discard discuss display distribute divide document double
download draft draw drop dump edit email enable encrypt enrich enter escalate establish estimate evaluate examine exclude
execute expand explain explore export extend extract extrapolate fetch figure file fill filter find finalise finalize finish
fix flag flesh focus follow forecast format formulate forward fund gather gauge generate get give grade graph group handle
help highlight hire identify illustrate implement import improve include increase index inform inspect install integrate
interpret interview investigate invite invoice issue itemise itemize join judge keep label launch lay learn let link list load
locate lock log look lower make map mark match measure merge migrate mine model modify monitor move name negotiate normalise
normalize notify note offer open optimise optimize order organise organize outline overlay pack paint parse pause pay perform
pick plan play plot post predict prepare present price print prioritise prioritize process produce profile project propose
provide publish pull push put query quantify quote raise rank rate read recap recommend reconcile record redact redo reduce
refine refresh refund reject release remind remove rename render renew reorder repeat rephrase replace reply report request
rerun research reserve reset resolve respond restart restore review revise rewrite round run save say scan schedule score
scrape screen search segment select sell send separate set settle share ship show simplify simulate sketch solve sort specify
spell split spot spread stage start state stop store stress structure study submit subtract suggest sum summarise summarize
supply support survey switch sync tabulate tag take talk target tell test tidy total track train transcribe transfer transform
translate trim turn tweak unlock update upload use validate value verify view visualise visualize wait walk warn watch weigh
work wrap write abbreviate activate address aggregate alert anonymise anonymize append archive automate brainstorm capture
chase clear coach communicate conduct consider consult control coordinate craft critique crop customise customize decode
demonstrate detail dig direct dispatch do duplicate elaborate eliminate encode enumerate erase exchange feed fold freeze grab
grant grow guess hand hold ignore infer initiate insert instruct invest justify lead leave lengthen listen maintain manage
meet mention navigate obtain observe outsource pass phone ping pitch pivot place point polish preview proofread prove purchase
queue recalculate recall recheck recompute rebuild recreate recruit redesign redirect redraft refer reformat reframe register
relate relay reopen reorganise reproduce resend reschedule resubmit retrieve return revert ring roll rotate scale shorten sign
silence skim slice snooze source speak standardise standardize stream strip style surface swap synthesise synthesize tailor
teach text think title triage trigger try type uncover undo unify unsubscribe vary vet visit vote wake water zip dim mail mute
benchmark budget know understand defer delay postpone upgrade accelerate adapt adopt advertise assist avoid browse calibrate
collate convene curate emphasise emphasize ensure expedite facilitate halve isolate liaise maximise maximize minimise minimize
nominate onboard oversee paraphrase photograph pinpoint prescribe prevent procure promote protect prune reassign rebalance
reconnect recover recycle redeem reimburse reinstall relocate repair repay replenish restock restructure retest retire reuse
reverse sanitise sanitize secure stabilise stabilize strengthen subscribe substitute supervise tackle terminate trace
troubleshoot unblock uninstall unpack upsell withdraw multiply dispute paste thank congratulate apologise apologize cite crawl
revoke provision broadcast narrate dictate deduplicate amortise amortize depreciate insure appeal cook bake wash brew rehearse
annotate blend bundle clone concatenate convey corroborate cross-check debrief delegate deposit disclose dismiss donate embed
endorse enforce engage enlarge enlist equip fact-check glean hide hypothesise hypothesize incorporate indicate invert iterate
jot lend mediate moderate orchestrate overwrite partition permit persuade preload preorder randomise randomize rectify regroup
reiterate remit replay repurpose resize retake retrain revisit scout shortlist shuffle steer stitch strategise strategize
subdivide tally tighten toggle transpose unwrap widen refactor agree go see borrow bury carry catch compensate conclude
convince cultivate cure declare defend demolish deny devise discover dispose dissolve divert earn encourage enclose escort
evacuate expose flatten fulfil furnish garnish greet grind hoist inject inquire insulate intercept introduce invent irrigate
knead knit melt memorise mend mow operate oppose overhaul peel pour preserve pursue quit recite reinforce relieve retain
reveal revive rub scatter scrub seek shake sharpen shave shelve sift smooth soak soften sow sprinkle squeeze sterilise stir
stretch suspend sustain sweep throw tolerate tow urge vacate varnish waive weave weld whisk wipe thaw photocopy bleed weed
shred descale grep decommission deprovision fork squash stash reboot reindex resync unmount whitelist blacklist allowlist
deprecate serialise serialize parameterise parameterize bisect acknowledge mitigate remediate diff instrument hoover defrost
commit distil distill dedupe kick mop vacuum refill rinse chop preheat inflate lubricate fasten sew vaccinate immunise
discharge admit administer dispense depose notarise notarize countersign redline tutor enrol enroll unload reroute debit
capitalise capitalize lint rebase containerise containerize throttle offboard rebook reprice relabel ascertain peruse deduce
reword declutter decorate dismantle evict sue arbitrate nudge welcome reassure caution unmute harvest hang bump backdate
reassess requote
accompany accrue acquit alphabetise alphabetize animate appoint autoscale babysit backport bathe befriend celebrate
commemorate complain deactivate depute deter detach digitise digitize disinfect dissuade downscale elect enact enquire
excavate fertilise fertilize flush fry groom headhunt inaugurate indemnify induct interrogate invigilate launder litigate
livestream lodge marinate mash matriculate mothball moisten neuter overrule penalise penalize plead prefill prepay preapprove
purge ratify reactivate recertify redecorate refinance refuel refurbish reinstate reissue reload remodel renovate repeal
repost repot reprint republish rescale restate resubscribe resume retag retitle retype revalidate rewire rework rewrap scold
simmer solder sublet testify truncate unarchive unassign unclog underwrite unfollow unjam unpin unplug unpublish unscrew
unseal unshare untag untie unveil upscale usher ventilate vouch wish consign drag haul dial fail impose exempt discourage
prosecute void arm disarm
"""
# Verbs that are nouns as often: a verb only before what a noun phrase begins with, or at the end of a strong cut.
_AMBIGUOUS: Final = """
address answer audit balance block book budget call change chart check code comment contact copy cost count cover design
document draft email estimate file filter focus forecast format fund grade graph group hire index interview invoice issue
label launch link list load lock log map mark market measure model name note offer order outline pause plan plot post present
price process profile project quote rank rate record report request research reserve review round sale schedule score search
segment share ship show sketch sort split stage state stress structure study summary support survey switch tag target test
text total track place print train transfer trim update mail use value view walk watch work benchmark brief sample sum
"""
# Nouns far more often: a verb only before what a noun phrase begins with, and in "back up".
_RARE: Final = """
back bill charge code credit date drive guide host lease light mix patch pin program rent sample serve size spend sponsor
staff tax trade wire average cap commission contest float ground inventory mock pool probe prompt prototype question scope
seed sequence showcase spin stack stamp weight workshop phone bin drain dress exhibit forge heat lift nail press rake reward
roast seal spray staple tie tile treat tune shape iron park frame
air award ban bandage bid bleach bless board bolt bookmark brush caption catalog catalogue charter clock comfort compost cool
cordon dice discipline dose drill dry dub dust earmark exercise expense express ferry film fine fire frost glaze glue grate
grill guarantee hail hammer hedge honor honour knot lecture levy message milk mount mulch net number offset page petition
plant plaster poll praise prime protest quiz requisition rivet sack sand saw scrap screw season sentence shoot stake star
steam subpoena tail tender toast tweet wallpaper warm wax free
"""
RARE: Final = frozenset(_RARE.split())
VERBS: Final = frozenset(_PLAIN.split()) | frozenset(_AMBIGUOUS.split()) - {"sale", "summary"}
AMBIGUOUS: Final = frozenset(_AMBIGUOUS.split())
WH: Final = frozenset(
    {"what", "what's", "which", "who", "who's", "whose", "whom", "how", "how's", "when", "where", "where's", "why"}
)
AUXILIARIES: Final = frozenset(
    {
        "is",
        "are",
        "was",
        "were",
        "do",
        "does",
        "did",
        "can",
        "could",
        "should",
        "will",
        "would",
        "has",
        "have",
        "am",
        "may",
        "might",
    }
)
DETERMINERS: Final = frozenset(
    {"the", "a", "an", "our", "my", "your", "his", "her", "its", "their", "this", "that", "these", "those", "it", "them", "me",
     "us", "him", "all", "any", "each", "every", "both", "some", "two", "three", "four", "five", "six", "seven", "ten", "how",
     "what",
     "which", "whether", "why", "who", "where", "when", "if", "no", "another", "other", "again"}
)  # fmt: skip
PREPOSITIONS: Final = frozenset(
    {
        "per",
        "of",
        "or",
        "and",
        "for",
        "to",
        "on",
        "in",
        "by",
        "as",
        "at",
        "from",
        "with",
        "against",
        "into",
        "quality",
        "figures",
    }
)
# After a word that is neither of these nor a plural, "it", "the" and their like begin an object: the word before is a verb.
OBJECTS: Final = frozenset(
    {"it", "them", "the", "my", "our", "your", "this", "these", "those", "me", "us", "him", "her", "each", "every"}
)
_NO_VERBS: Final = """
a about above across after against all along already although am among an and any around as at be because been before behind
below beneath beside besides between beyond both but by despite down during else even except few for from half here if in
inside into itself just least less like many more most much near neither never nor not of off on once one only onto or other
out outside over past per quite rather same since so still such than that then there therefore though through throughout till
to today together tomorrow tonight too toward towards twice two three four five under unless until up upon versus via given
considering regarding provided concerning what while whereas whether who with within without worth yesterday yet i you he she
we they yes no maybe perhaps therein
"""
_NO_VERB: Final = frozenset(_NO_VERBS.split())
PARTICLES: Final = frozenset({"up", "out", "down", "over", "through", "in", "off", "back", "on", "away", "again", "together"})
_SEEKING: Final = frozenset({"check", "search", "test", "scan", "look"})
_VERB_PARTICLES: Final = frozenset({"up", "out", "off", "down", "away"})
# Before its object such a verb asks for two things at once: "compare budget and forecast figures".
PAIRING: Final = frozenset(
    {"compare", "contrast", "combine", "merge", "balance", "reconcile", "weigh", "distinguish", "match", "between"}
)
LOOKING: Final = frozenset(
    {"look", "read", "review", "examine", "inspect", "scan", "study", "check", "see", "go", "take", "open", "search", "think"}
)
_ALSO: Final = r"(?:'d|\ would|\ should|\ will|'ll|\ also|\ really|\ then)*"
_POLITE: Final = re.compile(
    rf"""^(?:
    (?:please|kindly|just|now|so|oh|ok|okay|hi|hey|hello|well|also|too|quickly|briefly|maybe|perhaps|again|simply|always|additionally
      |afterwards?|instead|otherwise|immediately|carefully|all\ right|thanks|team)\b[\s,]*
    |(?:i\ have\ |i've\ (?:got\ )?|there\ are\ )?(?:two|three|four|five|several|some|a\ few|a\ couple\ of)
      \ (?:more\ |small\ |quick\ )?
      (?:things|tasks|requests|questions|favou?rs|jobs|points)(?:\ (?:please|for\ you|to\ do))?\ ?[:–—-]\ *
    |(?:my\ |the\ )?(?:first|second|third|next|last|another|other)\ (?:question|thing|task|point|request)
      \ ?(?:[:–—-]|is\ to\b)\ *
    |both\ (?=(?!of\b|the\b|our\b|my\b)\w+\ (?:the|an?|our|my|all|what|how|whether)\b)
    |not\ only\ (?:(?:do|should|must|can)\ (?=(?:i|we|you)\b))?
    |(?:can|could|would|will)\ (?:you|we|i|someone)\ (?:please\ |kindly\ |also\ |then\ |just\ |perhaps\ |still\ )*(?=\w)
    |(?:i|we){_ALSO}\ (?:like|want|need|wish|love|have|got)\ (?:you\ |someone\ |us\ )?to\ (?:also\ |then\ )?
    |(?:someone|somebody)(?:\ else)?\ to\s
    |(?:you|we)\ (?:should|must|need\ to|can|could|have\ to)\ (?:also\ |then\ )?
    |(?:both|all)(?:\ of)?\ (?:these|this|the\ following)(?:\ please)?\ ?[:–—-]\ *
    |(?:help|assist)\ (?:me|us)\ (?:to\ |with\ (?=\w+ing\b))?(?!with\b)(?=\w)|let's\ |let\ us\s
    |(?:go\ ahead\ and|try\ to|be\ sure\ to|make\ sure\ to|don't\ forget\ to|remember\ to|feel\ free\ to|i\ ask\ you\ to
      |your\ (?:task|job)\ is\ to)\ )""",
    re.IGNORECASE | re.VERBOSE,
)
_WANTING: Final = re.compile(rf"^(?:i|we){_ALSO}\ (?:need|want|like|require|love)\b", re.IGNORECASE | re.VERBOSE)
GOING_ON: Final = re.compile(  # the next step, named by a noun: "end with a recommendation"
    r"^\s*(?:end|finish|conclude|close|wrap\s+up|move\s+on|continue|proceed|go\s+on)\s+(?:with|by|to)\s", re.IGNORECASE
)
_NEEDED: Final = re.compile(  # "the Baker file needs closing"
    r"^(?:the|our|my)\s+(?:[\w'’-]+\s+){1,4}?needs?\s+(?:to\s+be\s+[a-z]+|[a-z]+ing)\b", re.IGNORECASE
)
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


_VERB_AHEAD: Final = re.compile(r"\b(?:to|you|we|someone|somebody|anyone|kindly|please)\W*$", re.IGNORECASE)
_WITH_OF: Final = frozenset({"think", "dispose", "take", "get", "make"})


@lru_cache(maxsize=4_096)
def lemma(word: str) -> str:
    """Return the request verb that a gerund, a past form or a third person is made of; empty if it is of none."""
    if word in VERBS:
        return word
    if "-" in word:  # "double-check", "stress-test"
        return lemma(word.rpartition("-")[2])
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending):
            root = word[: -len(ending)]
            doubled = root[:-1] if len(root) > 2 and root[-1:] == root[-2:-1] else root  # planning → plan
            for candidate in (root, f"{root}e", doubled, f"{root[:-1]}y" if root.endswith("i") else root):
                if candidate in VERBS:
                    return candidate
    return _IRREGULAR.get(word, "")


_IRREGULAR: Final = {
    "written": "write", "wrote": "write", "drawn": "draw", "made": "make", "built": "build", "run": "run", "ran": "run",
    "found": "find", "got": "get", "sent": "send", "done": "do", "chosen": "choose", "read": "read", "taken": "take",
    "given": "give", "put": "put", "set": "set", "split": "split", "understood": "understand",
}  # fmt: skip


def tokens(text: str) -> list[str]:
    """Return the words of a text in small letters; a hidden value is one made-up name."""
    return _WORD.findall(hidden.named(text)[0].lower().replace("’", "'"))


def without_politeness(text: str) -> str:
    """Return a text without what is said before the request itself."""
    before = None
    while before != text:
        before = text
        text = text.strip(" ,:-–—\t\n")
        text = _POLITE.sub("", FORMAL.sub("", text, count=1), count=1)
    return text


def starts_like_a_clause(text: str, *, is_strong: bool = False) -> bool:
    """Return whether a text begins as a request or a question of its own does; a strong connective makes a verb enough."""
    bare = without_politeness(text)
    words = tokens(bare)
    if not words:
        return False
    first = words[0]
    if GOING_ON.match(bare) or _NEEDED.match(bare) or TO_BE_DONE.match(bare) or WISHED.match(bare):
        return True
    if _WANTING.match(bare):
        return len(words) > 2  # "I need" and what
    if first == "when" and not AUXILIARIES & set(words[1:3]):
        return False  # a condition, no question: "when they pass"
    if first in WH or first in AUXILIARIES:
        return len(words) > 1
    if first in {"don't", "never"} and len(words) > 1:
        first, words = words[1], words[1:]
    if first in RARE:
        return words[1:] in (["it"], ["them"], ["him"], ["her"]) or (
            _is_named(bare) or (len(words) > 2 and (words[1] in DETERMINERS or words[1] == "up"))
        )
    if words[1:2] == ["of"] and first not in _WITH_OF and not is_strong:
        return False  # a noun: "the phone number and address of the branch"
    if "-" in first and lemma(first) and not first.endswith(("ing", "ed")):
        first = lemma(first)
    if first not in VERBS and first.removeprefix("re").removeprefix("-") in VERBS:
        first = first.removeprefix("re").removeprefix("-")  # "redistribute"
    if first not in VERBS and _VERB_AHEAD.search(text[: len(text) - len(bare)]) and _may_be_a_verb(first) and len(words) > 1:
        return True  # "could you" and a verb that is in no list
    if first not in VERBS:
        return (_has_object(words) or (is_strong and words[1:2] in (["a"], ["an"]))) and _may_be_a_verb(first)
    if is_strong:
        return True
    return len(words) > 1 and (first not in AMBIGUOUS or words[1] in DETERMINERS or _is_plural_or_named(bare, words))


def _has_object(words: list[str]) -> bool:
    """Return whether an object follows the first word; "it" before a verb is a subject: "the effort it takes"."""
    if words[1:2] and words[1] in _VERB_PARTICLES and words[2:3] and words[2] in OBJECTS:
        return True  # "top up the tank"
    if len(words) < 2 or words[1] not in OBJECTS:
        return False
    return words[1] not in {"it", "this"} or len(words) == 2 or not (words[2] in AUXILIARIES or words[2].endswith("s"))


def _may_be_a_verb(word: str) -> bool:
    return word.isalpha() and word not in _NO_VERB | DETERMINERS and not word.endswith(("ing", "ed", "ly", "s", "self", "tion"))


def _is_named(text: str) -> bool:
    """Return whether a name or a number follows the first word: "patch CVE-2024-3094"."""
    after = text.split()[1:2]
    return bool(after) and (after[0][:1].isupper() or any(one.isdigit() for one in after[0]))


def _is_plural_or_named(text: str, words: list[str]) -> bool:
    """Return whether the word after an ambiguous verb can be its object: a plural, a name, or more words than a noun takes."""
    if words[1] in PREPOSITIONS:
        return words[0] in _SEEKING and words[1] in {"for", "with"}  # "check for interactions"
    named = _WORD.findall(text)[1]
    return len(words) > 2 or words[1].endswith("s") or named[:1].isupper()  # "rank", its object and more


def is_condition(text: str) -> bool:
    """Return whether a text is a condition of what follows it."""
    first = tokens(text)[:1]
    return bool(first) and first[0] in {
        "if",
        "unless",
        "when",
        "whenever",
        "should",
        "in",
        "because",
        "since",
        "as",
        "given",
        "while",
    }
