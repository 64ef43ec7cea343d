"""Statuses of work, orders, payments, servers, contracts and people: a line has the words for one status."""

from __future__ import annotations

import re
from typing import Final

_WAITING: Final = re.compile(r"^(?:awaiting|pending|waiting (?:for|on)|to be) (?=\w)|(?<=\w) (?:pending|awaited|outstanding)$")
_BESIDE: Final = re.compile(r"\s+[-–—]\s+|\s*[/:,;]\s*|\s+(?:and|&)\s+")
_SAID: Final = re.compile(
    r"^(?:(?:it|he|she|they) )?(?:is |are |was |were |has been |have been |has |had been |currently |now |already |still |"
    r"fully |successfully |just )+(?=\w)|(?<=\w) (?:now|already|at the moment|at present|successfully|yesterday|today)$"
)


def _named(lines: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines.replace("\n  ", " | ").strip().splitlines():
        names = [name.strip() for name in line.split("|")]
        found.update(dict.fromkeys(names, names[0]))
    return found


_COMMON: Final = _named("""
complete | closed | resolved | done | completed | finished | solved | fixed | concluded | wrapped up | finalised | finalized
  fulfilled | achieved | accomplished | over
open | unresolved | not closed | not resolved | unsolved | outstanding
in progress | wip | work in progress | ongoing | started | active | underway | under way | running | in process | processing
  being worked on | in the works | being processed | being handled | in hand | in development | begun | in preparation
on hold | paused | suspended | held | parked | put on hold | frozen | shelved | halted | stopped
pending | awaiting | waiting | queued | not started | to do | todo | scheduled | new | not yet started | planned | in the queue
cancelled | canceled | aborted | called off | void | voided | scrapped | abandoned | dropped | annulled | withdrawn by customer
live | in production | deployed | released | launched | published | rolled out
blocked | stuck | impeded | locked | barred
disabled | deactivated | switched off | turned off | inactive
enabled | activated | switched on | turned on
failed | failure | error | unsuccessful | failing | red | not passed | did not pass | errored | flunked
passed | pass | success | successful | succeeded | ok | passing | green | cleared
won't fix | wontfix | won't be fixed | will not be fixed
unpaid | due | payable | not paid
overdue | past due | late | delayed | behind schedule | running late | past its due date | slipping | behind
on track | on schedule | on time | as planned | going to plan | on plan | according to plan
in transit | on the way | on its way | shipped | dispatched | en route | out for delivery | on the road | sent out | sent
  left the warehouse | with the courier | with the carrier | posted | mailed | on the way to customer | on route | despatched
not shipped | not yet shipped | shipment | dispatch | not dispatched | not yet dispatched | ready to ship | unshipped | not sent
  not yet sent | shipped soon
delivered | arrived | received | handed over | handed over to recipient | delivery complete | dropped off | landed
returned | sent back | returned to sender | return to sender
lost | missing | lost in transit | gone astray
ready for pickup | awaiting collection | ready for collection | ready to collect | awaiting pickup | ready to be picked up
backordered | on back order | on backorder | back-ordered
approved | signed off | accepted | granted | authorised | authorized | green-lit | greenlit | given the go-ahead | permitted
  waved through | ratified | issued | confirmed | endorsed
rejected | denied | refused | declined | turned down | not approved | disapproved | vetoed | not granted | thrown out
  knocked back | not accepted
awaiting approval | approval | not yet approved | approved soon | sign-off | waiting to be approved | signed off soon
under review | being reviewed | in review | under consideration | being considered | being assessed | being examined
  under assessment | under examination | review in progress | review | under evaluation | being evaluated | being checked
under investigation | being investigated | investigating | being looked into
withdrawn | pulled | retracted | taken back | revoked | rescinded
reopened | re-opened | opened again
rolled back | reverted | undone | backed out
discharged | sent home | released from hospital
hired | offer accepted | recruited
cannot reproduce | not reproducible | unable to reproduce
draft | in draft | unpublished | not published | not yet published
expired | lapsed | run out | out of date | no longer valid | ran out
contained | mitigated | under control
vacant | unoccupied | empty | free | not occupied
reserved | booked | taken
sold out | out of stock | unavailable | none left | not available | not in stock
in stock | available | on hand | on the shelf
low stock | running low | almost gone | few left | nearly sold out
broken | out of order | not working | defective | faulty | damaged
married | wed | wedded
divorced | legally divorced
single | unmarried | never married | not married
widowed | widow | widower
""")
PAYMENTS: Final = _named("""
unpaid | outstanding | due | open | not paid | payable | unsettled | not settled | payment | not yet paid | owed | owing
paid | settled | cleared | paid in full | payment received | fully paid | charged | complete | completed | collected
overdue | past due | late | in arrears | past its due date | overdue for payment | delinquent
refunded | money returned | reimbursed | paid back | returned
written off | written-off | bad debt | uncollectible
partially paid | part-paid | partly paid | part paid
cancelled | canceled | void | voided
disputed | contested | in dispute | challenged
failed | declined | bounced | rejected | not successful
""")
RUNNING: Final = _COMMON | _named("""
up | running | online | operational | live | healthy | ok | okay | available | active | working | reachable | normal
  functional | alive | green | up and running | in service | fine | on | good | responding | working normally
  in operation | started
  switched on | turned on | powered on | operating | functioning | connected | stable | ready
down | offline | unavailable | not running | not responding | unreachable | dead | crashed | out of service
  out of order | broken | not working | unresponsive | off | failed | red | not reachable | inoperative | not available
  stopped | shut down | halted
  switched off | turned off | powered off | powered down | disconnected | not connected | not operational | unhealthy | faulty
degraded | impaired | partial outage | slow | limited | partially available | unstable | amber | yellow | struggling
idle | standing by | standing still | standby | on standby | at rest | not in use | inactive | waiting
under maintenance | in maintenance | maintenance | being serviced | maintenance mode
""")
CONTRACTS: Final = _COMMON | _named("""
active | in force | valid | in effect | effective | live | current | running | ongoing | binding | in good standing | paid up
expired | lapsed | run out | no longer valid | ran out | out of force | not renewed | no longer in force | invalid | out of date
terminated | ended | cancelled | canceled | rescinded | revoked | void | voided | discontinued | unsubscribed | annulled
signed | executed | concluded | fully executed | countersigned
unsigned | not signed | signature | not yet signed
suspended | on hold | paused | frozen
renewed | extended | prolonged
""")
STAFF: Final = _COMMON | _named("""
employed | on staff | active | in employment | working | current employee | in post | on the payroll | permanent staff
left | left the company | no longer employed | former employee | departed | resigned | quit | gone | stepped down
dismissed | fired | let go | laid off | sacked | made redundant | terminated
on leave | away | absent | out of office | on holiday | on vacation | off | off work | off duty | not at work | not present
at work | present | on duty | in the office | in | attending | attended
retired | in retirement | pensioned
sick | ill | off sick | on sick leave
unemployed | out of work | jobless | between jobs
self-employed | freelance | freelancer | independent
""")
JOBS: Final = _COMMON | _named("""
passed | pass | success | successful | succeeded | ok | passing | green | complete | completed | done | finished
failed | failure | error | unsuccessful | failing | red | broken | crashed | aborted | errored
""")
APPLICATIONS: Final = _COMMON | _named("""
approved | successful | accepted | granted | passed | upheld | authorised | authorized | admitted
rejected | unsuccessful | denied | refused | declined | turned down | failed | dismissed | not approved | not accepted
""")
DOORS: Final = _named("""
closed | shut | not open | locked | closed to the public
open | opened | not closed | unlocked | open to the public
""")
_STATE: Final = "status|state|condition|health|stage|situation"
BY_FIELD: Final = (
    (rf"(?:payment|invoice|billing|bill|debt|balance|refund)_(?:{_STATE})|payment", PAYMENTS),
    (
        (
            r"(?:server|service|system|site|host|node|machine|app|api|database|db|network|cluster|website|device|equipment|pump|engine|"
            rf"plant|line|printer|router|link|connection|backend|sensor|lift|elevator|gateway|vm|pod)(?:_(?:{_STATE}))?|health|uptime"
        ),
        RUNNING,
    ),
    (
        (
            r"(?:contract|licen[cs]e|subscription|policy|membership|lease|agreement|warranty|insurance|permit|visa|passport|"
            rf"certificate|registration|domain)(?:_(?:{_STATE}|validity))?"
        ),
        CONTRACTS,
    ),
    (
        rf"(?:backup|job|build|run|pipeline|test|import|export|migration|sync|batch|upload|transfer)_(?:{_STATE}|result)|build",
        JOBS,
    ),
    (rf"(?:application|claim|proposal|bid|appeal|admission)(?:_(?:{_STATE}|decision|result|outcome))?", APPLICATIONS),
    (rf"(?:employment|employee|staff|worker|attendance|presence|job|staffing)_(?:{_STATE})|employment|attendance", STAFF),
    (rf"(?:door|gate|window|valve|shop|store|office|branch|road|bridge|airport|border|lid|shutter)(?:_(?:{_STATE}))?", DOORS),
    (
        (
            r"status|[a-z]+_state|progress|condition|stage|approval|decision|outcome|build|ticket|result|verdict|availability|stock|"
            r"(?:leave|change|purchase|access|holiday|vacation|travel|budget|loan)_request|request"
        ),
        _COMMON,
    ),
)  # which words a field's name stands for; the first that fits


def common_status(one: str, other: str) -> bool:
    """Return whether two texts are words for one status of anything."""
    names = _COMMON if one in _COMMON and other in _COMMON else RUNNING
    return one in names and names[one] == names.get(other)


def status(said: str, names: dict[str, str]) -> str:
    """Return the word that stands for a status, said with or without "currently", "has been" or "awaiting"."""
    if said in names:
        return names[said]
    twice = {names.get(part) for part in _BESIDE.split(said)}
    if len(twice) == 1 and (known := twice.pop()):  # "closed - fixed"
        return known
    bare = _SAID.sub("", said)
    if bare in names:
        return names[bare]
    waited = _WAITING.sub("", bare)
    return f"awaiting {names.get(waited, waited)}".replace("awaiting awaiting", "awaiting") if waited != bare else bare
