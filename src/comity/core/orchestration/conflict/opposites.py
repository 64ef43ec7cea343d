"""Words that mean the opposite of each other."""

from __future__ import annotations

from typing import Final

from comity.core.orchestration.conflict.synonyms import root

# The words on one side of a line mean the opposite of those on its other side.
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
fast quick faster | slow long longer slower
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
healthy | sick unhealthy illness
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
dry sunny | rain rainy wet snow storm
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
await awaiting | received arrived replied answered
happy cheerful | gloomy sad
favourable positive | scathing hostile critical
both | neither
same identical equal | different differ
work function | fail break
recurring | once
only | everyone anyone everybody anybody all every
reject | support confirm
still persist occur | fix resolve end solve
spotless clean | filthy dirty
narrow shrink squeeze | widen
unnecessary | required needed immediate
resign | remain stay
happy satisfied pleased | frustrated angry annoyed disappointed
dependable reliable | disappoint
stagnate | grow rise
doubled | halved
confirm support | contradict
exceed | miss
punctual | postponed
combine mix together | separate
"""


def _opposed() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in _OPPOSITES.replace("\n  ", " ").strip().splitlines():
        left, right = ([root(word) for word in side.split()] for side in line.split("|"))
        for one, others in [*((word, right) for word in left), *((word, left) for word in right)]:
            found.setdefault(one, set()).update(others)
    return found


OPPOSITES: Final = _opposed()
