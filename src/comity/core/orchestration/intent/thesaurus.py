"""A small thesaurus: words of business and of everyday requests that stand for the same idea.

It lets an utterance match an example with which it shares no word ("carve up the spend" and "allocate the budget"). An idea is
one more feature of a text: what it is worth for an intent is learnt from the examples, so a wrong entry costs little.
"""

from __future__ import annotations

from typing import Final

from comity.core.orchestration.intent.stems import stem

# One idea per entry: its name, then its words and two-word phrases, in any form that has the same stem.
_GROUPS: Final = """
present value: npv, pv, discount, discounting, net present, present value, present worth, worth today, today's money, discount
  rate, hurdle, irr
worth: worth, worthwhile, value, valuation, pay off, payoff, payback, profitable, viable, return, roi, break even, breakeven
cash flow: cash, flow, inflow, outflow, stream, proceeds, instalment, annuity, returns, payments, savings
investment: invest, investment, capital, capex, outlay, upfront, stake, venture, deal, acquisition, asset
future: forecast, project, projection, predict, prediction, outlook, expect, anticipate, extrapolate, future, upcoming, next
  year, next quarter, next month, trend, trajectory, ahead, will, going to, until, through, years, year
growth: grow, growth, increase, rise, expand, expansion, scale, double
revenue: revenue, sales, income, turnover, earnings, top line, profit, margin
cost: cost, expense, spend, spending, opex, fee, charge, overhead, price, pricing, expensive, cheap, cheapest, pay
divide: split, divide, allocate, allocation, distribute, distribution, spread, portion, apportion, carve, share out, each,
  across, between, among, put, go to
budget: budget, funds, money, dollar, euro, pot, wallet, purse, spend, million, 500k
amount: how much, how many, amount, total, sum, number of, quantity, share, percentage
assumption: sensitivity, sensitive, assumption, what if, what happens, vary, varies, varying, swing, robust, fragile, stress,
  stress test, worst case, best case, depend, driver, input, matters most, moves, uncertain, risk, if
change of number: drop, fall, decline, decrease, shrink, lower, lose, rise, climb, higher, halve
effect: effect, impact, affect, influence, consequence, result, outcome, difference
customer: customer, buyer, client, shopper, consumer, audience, user, subscriber, household, visitor, prospect, guest,
  purchaser, persona, crm, loyalty
segment: segment, segmentation, cluster, group, cohort, tier, bucket, categorise, categorize, classify, tribe, kinds of, types
  of, split customers, behaviour, behavior, distinct
persona: persona, typical, profile, portrait, archetype, character, looks like, look like, ideal, describe, avatar, sketch,
  fictional, average customer, imagine, average buyer, average shopper, who is, who are
channel: channel, media, medium, tv, television, radio, social, search, display, print, outdoor, billboard, online, offline,
  facebook, instagram, tiktok, youtube, linkedin, email, advertising, advertise, ad, podcast, influencer, newspaper, platform,
  awareness, reach, connected
recommend: recommend, recommendation, suggest, suggestion, advise, advice, propose, should, best, combination, mix, blend,
  choose, pick, select, right, better, which, suit, fit, ideal, use, prefer
benchmark: benchmark, industry, average, normal, typical, standard, norm, usual, competitor, peer, rival, compare, comparison,
  stack up, against, others, any good, par, reference, sector
metric: cpm, ctr, cpc, cpa, roas, click, conversion, convert, impression, engagement, open rate, click rate, bounce, rate,
  kpi, metric, per thousand, per click, thousand
partner: partner, vendor, supplier, supply, ssp, dsp, exchange, reseller, publisher, intermediary, provider, agency,
  contractor, programmatic, broker
score: score, rate, rank, ranking, rating, grade, evaluate, evaluation, judge, quality, transparent, transparency,
  trustworthy, trust, reliable, honest, hidden, lowest, highest, most, least
assess: assess, assessment, gauge, measure, check, review, audit, appraise, examine, analyse, analyze, analysis
write: write, draft, compose, prepare, produce, create, generate, author, put together, write up, make, turn, build, develop
document: document, business case, brief, proposal, memo, deck, slide, presentation, powerpoint, report, paper, letter, one
  pager, pager, whitepaper, statement, plan, pitch, handout, article
source text: attached, report, contract, paper, study, notes, minutes, transcript, findings, article, page, document, thread,
  long
shorten: summarise, summarize, summary, short, shorter, shorten, key points, gist, tldr, condense, highlight, main points,
  boil, digest, takeaway, recap, overview, nutshell, essence, bullet, version, in brief, abstract, compress, core
anomaly: anomaly, outlier, unusual, strange, weird, odd, spike, dip, unexpected, abnormal, suspicious, wrong, sudden,
  suddenly, jump, crash, surge, glitch, irregular, off, drop, dropped, detect, spot, happened, why did, why was, explain,
  unusual, plunge, tank, tanked
recent: yesterday, last week, last month, today, recently, tuesday, monday, this week, overnight, lately
attribution: attribute, attribution, credit, touchpoint, touch, drove, drive, driven, contribute, contribution, responsible,
  caused, cause, came from, come from, comes from, led to, brought, lift, incremental, deserves, source of, produced,
  generated, thanks to, due to, effective, worked
framework: framework, porter, swot, pestle, pest, bcg, matrix, ansoff, mckinsey, canvas, methodology, structure, approach,
  tool, lens, method, five forces, forces, model, theory, school of, think about, way to
strategy: strategy, strategic, market entry, entry, decision, problem, issue, challenge, position, competitive, competition,
  compete, portfolio, diversification, growth problem, dilemma
ready: ready, readiness, prepared, preparedness, equipped, able, capacity, mature, maturity, willing, cope, handle, up for,
  fit for, capable, absorb, skills
change: change, transition, transform, transformation, rollout, roll out, rolling out, adopt, adoption, implement, migration,
  migrate, merger, reorganisation, reorganization, restructuring, switch, new system, introduce, introduction, agile, reform,
  initiative, shift
stakeholder: stakeholder, involve, involved, influence, interest, resist, resistance, support, supporter, sponsor, oppose,
  opponent, buy in, on board, champion, blocker, block, decision maker, approve, consult, manager, executive, board, whose,
  politics, ally, convince, win over, power, affected, for and, in favour, key people, sign off, who needs, who could, who
  will, who has, who should
organisation: team, staff, employee, department, organisation, organization, company, workforce, colleague, people, unit,
  firm, business
campaign: campaign, launch, promotion, advert, marketing, brand
data: data, number, figure, dataset, database, table, spreadsheet, statistic, dashboard, traffic, performance, value
law: law, legal, lawyer, compliance, regulation, clause, terms, contract, liability
hire: hire, hiring, recruit, recruitment, candidate, applicant, vacancy, job, interview, cv, resume, onboard
pay: salary, wage, payroll, payslip, bonus, compensation, paycheck, paid
leave: vacation, leave, holiday, day off, time off, pto, sick
invoice: invoice, bill, receipt, expense report, reimbursement, claim, refund, reimburse, money back
payment: payment, pay, transfer, send money, wire, transaction, purchase, bought, direct debit, deposit, top up, topup
account: account, login, log in, password, passcode, pin, locked, sign in, access, blocked, unlock, hold, freeze, frozen
card: card, visa, mastercard, credit card, debit, plastic
balance: balance, how much money, left, available, afford
loan: loan, mortgage, credit, borrow, lend, interest rate, apr, debt
exchange rate: exchange, currency, convert, rate of, dollars to, forex
tax: tax, vat, taxes, w2, deduction, irs
fraud: fraud, stolen, scam, unauthorised, unauthorized, didn't make, not mine, compromised, hacked, recognise, recognize
lost: lost, lose, missing, misplaced, find, where is, can't find
arrive: arrive, arrival, delivery, deliver, track, shipped, ship, package, order, when will, still waiting, not received,
  came, come
stop: stop, cancel, terminate, end, quit, abort, close, delete, remove, erase, drop, get rid, undo, revert, void
start: start, begin, turn on, switch on, activate, enable, launch, open, initiate
turn off: turn off, switch off, shut, disable, deactivate, mute
set: set, create, add, make, schedule, put, book, arrange, new
alter: change, update, modify, edit, adjust, amend, correct, rename, replace
show: show, list, display, tell, give, see, view, read, look up, pull up, find, what are
fix: fix, repair, broken, not working, doesn't work, won't work, error, fault, problem, issue, fail, failed, declined,
  rejected
reserve: book, reserve, reservation, booking, table for
travel: travel, trip, flight, fly, plane, airport, airline, vacation, hotel, luggage, visa, passport, train, bus, ticket,
  journey
drive: car, vehicle, drive, gas, fuel, tire, tyre, oil, mpg, traffic, route, directions, uber, taxi, cab, ride
weather: weather, rain, snow, forecast, temperature, sunny, umbrella, storm, cold, hot, degrees
time: time, clock, hour, o'clock, timezone, minute
date: date, day, today, calendar, month
alarm: alarm, wake, timer, remind, reminder, alert, notify
meeting: meeting, appointment, event, calendar, schedule, agenda, conference, invite
food: food, meal, dinner, lunch, breakfast, eat, restaurant, recipe, cook, cooking, ingredient, dish, takeaway, takeout,
  delivery, hungry, cuisine
health: calorie, calories, nutrition, diet, healthy, doctor, vaccine, medicine, sick, pain, exercise, workout
music: music, song, play, playlist, album, artist, track, listen, band, radio, tune
talk: podcast, audiobook, book, story, read, chapter
volume: volume, louder, quieter, mute, sound, speaker, loud, quiet
light: light, lamp, bright, dim, brightness, colour, color
home: house, home, room, kitchen, bedroom, living room, vacuum, clean, thermostat, coffee, heating, plug, socket
phone: phone, call, ring, dial, text, message, sms, contact, number
mail: email, mail, inbox, reply, send
translate: translate, translation, in spanish, in french, language, say in, how do you say
define: define, definition, meaning, mean, what is, what does, synonym, spell
compute: calculate, compute, plus, minus, times, divided, sum, square root, math, equation, add up, work out
joke: joke, funny, laugh, humor, humour, fun
greet: hello, hi, hey, good morning, good evening, howdy, greetings, what's up
thank: thanks, thank you, appreciate, cheers, grateful
goodbye: bye, goodbye, see you, later, farewell, take care
yes: yes, yeah, sure, correct, affirmative, right, yep, true, okay
no: no, nope, incorrect, false, negative, not right, wrong
shop: buy, shop, shopping, purchase, order, cart, groceries, store, amazon, product
news: news, headline, latest, current events, politics
sport: game, score, match, team, football, basketball, league, player
insurance: insurance, cover, coverage, policy, insured, premium
school: school, student, class, course, study, exam, homework, university
security: security, secure, safe, vulnerability, risk, threat, breach, attack
software: software, bug, code, deploy, server, release, test, feature, api, pull request, crash
research: research, search, look into, investigate, find out, explore, sources, literature
opinion: think, opinion, feel, believe, best, favorite, favourite, prefer
identity: name, who are you, your name, address, birthday, age, old
"""


def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for line in _GROUPS.replace("\n  ", " ").strip().splitlines():
        idea, _, members = line.partition(":")
        for member in members.split(","):
            key = " ".join(stem(word) for word in member.split())
            if idea not in found.setdefault(key, []):
                found[key].append(idea)
    return {key: tuple(ideas) for key, ideas in found.items()}


IDEAS: Final[dict[str, tuple[str, ...]]] = _table()  # stem, or two stems with a space between → ideas
