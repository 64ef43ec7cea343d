"""What a megabyte of the densest text and 200 KB of ordinary text cost in a warm process: `make bench-dense`.

Dense texts are values of each declared type with and without their labels, labels without values, the units of
`bench/redaction.py` that make each pattern begin everywhere, and documents whose keys are values. Ordinary texts are prose of
several languages, JSON, CSV, logs and code, none of which is changed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from redaction import CLEAN_PROSE, CLEAN_RECORDS, END, HOSTILE

from comity.core.redaction import DEFAULT_SCANNER, Vault, may_hold_personal_data, redact_json, redact_text, redact_value

TAG = "abcdefghijkl"
DENSE_BYTES, ORDINARY_BYTES = 1_000_000, 200_000
WARMING = 16_000  # texts that a process has seen before its quick test is measured

# One value of each declared type, as it is written; `{n}` counts up.
VALUES: dict[str, str] = {
    "ACCESS_TOKEN": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI{n:04d}In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk ",
    "ADDRESS": "{n} Elm Street, 10115 Berlin ",
    "API_KEY": "sk_live_4eC39HqLyjWDarjtT1z{n:05d} ",
    "BANK_ACCOUNT": "account number {n:09d} ",
    "BTC": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa ",
    "CARD": "4111 1111 1111 1111 ",
    "CREDENTIAL": "redis://u{n}:hunter2x@cache ",
    "DOB": "born 19{n02}-03-12 ",
    "EIN": "EIN 12-345{n:04d} ",
    "EMAIL": "u{n}@b.co ",
    "ETH": "0x52908400098527886E0F7030069857D2E416{n:04d} ",
    "IBAN": "DE02120300000000202051 ",
    "IP": "203.0.113.{n02} ",
    "ITIN": "ITIN 912-78-{n:04d} ",
    "LICENCE": "driver license D{n:07d} ",
    "MAC": "3c:22:fb:9a:44:{n02} ",
    "NATIONAL_ID": "PESEL 44051401359 ",
    "NHS": "NHS 943 476 5919 ",
    "NINO": "JG10{n:04d}A ",
    "PASSPORT": "passport X{n:07d} ",
    "PASSWORD": "password: hunter{n}! ",
    "PHONE": "tel 23{n:05d} ",
    "POSTAL_CODE": "SW1A 2AA ",
    "PRIVATE_KEY": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBK{n:05d}\n",
    "ROUTING": "routing 021000021 ",
    "SIN": "SIN 046 454 286 ",
    "SSN": "219-09-{n:04d} ",
    "SWIFT": "BIC COBADEFFXXX ",
    "TAX_ID": "CPF 529.982.247-25 ",
    "USERNAME": "username: ada_{n} ",
}
MORE: dict[str, str] = {
    "mixed": "tel 2345678 a{n}@b.co 219-09-{n:04d} born 1984-03-12 4111 1111 1111 1111 ",
    "one line of each": "".join(VALUES.values()),
    "no whitespace": "tel:2345{n:03d};a{n}@b.co;219-09-{n:04d};",
    "labels alone": "tel password: account number born CPF PESEL passport username: address: api key: ",
    "short passwords": "password: ab ",
    "short mail": "a@b.co ",
    "look-alike digits": "\uff11\uff12\uff13\uff14\uff15\uff16\uff17 ",
    "look-alike phones": "tel \uff12\uff13\uff14\uff15\uff16\uff17\uff18 ",
    "Arabic phones": "\u0647\u0627\u062a\u0641 \u0660\u0665\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667 ",
    "zero width": "a\u200b@b.co ",
    "escapes": "a%40b.co &#64; ",
    "numbers": "{n} ",
    "ledger": "account 4{n:05d} debit {n}.00 credit 0.00 ",
    "masks": "****1234 ",
    "tokens": "[[EMAIL_1_abcdefghij]] ",
    "streets": "12 Aa Bb Cc Dd St ",
    "lines of CPF": "cpf,nome\n529.982.247-25,Ana\n",
    "table": "529.982.247-25,{n},219-09-{n:04d},a{n}@b.co\n",
    "quoted records": '{{"email": "u{n}@b.co", "phone": "416-555-{n:04d}"}}, ',
}
ORDINARY: dict[str, str] = {
    "English": "The board met on {n} occasions and agreed to the plan of the year, which 14 people had drawn up in 3 weeks. ",
    "German": "Der Vorstand hat den Plan für das Jahr in {n} Sitzungen beraten und am Ende mit 14 Stimmen angenommen. ",
    "French": "Le conseil s'est réuni {n} fois et a approuvé le plan de l'année, préparé par 14 personnes en 3 semaines. ",
    "Spanish": "La junta se reunió {n} veces y aprobó el plan del año, que 14 personas habían preparado en 3 semanas. ",
    "Russian": "Совет собирался {n} раз и принял план на год, который 14 человек готовили 3 недели. ",
    "Chinese": "董事会开会{n}次,通过了由14人用3周时间编制的年度计划。",
    "JSON": '{{"order_id": {n}, "sku": "4412-{n:05d}", "qty": 12, "price": 44.12, "updated": "2026-11-03T04:12:55Z"}},\n',
    "CSV": "{n},4412-{n:05d},12,44.10,2026-11-03,open,DE\n",
    "logs": "2026-11-03 04:12:55,{n:03d} WARN [pool-3-thread-12] retry {n} of 5 in 1600 ms, account 400100, call 7 of 9\n",
    "code": "def step_{n}(key: str, token: int) -> int:\n    return table[key].call(token + {n}, mobile=False)\n",
    "orders": "Order 45{n:08d}, part 1K0 615 {n:03d} AA, tracking 1Z999AA1{n:09d}, invoice INV-2026-{n:06d}, 48 kg. ",
}


def counted(unit: str, size: int) -> str:
    """Return a unit repeated up to a size in bytes, with numbers that count up in it."""
    pieces: list[str] = []
    length = 0
    for number in range(size):
        piece = unit.format(n=number % 10_000, n02=f"{10 + number % 90}") if "{" in unit else unit
        pieces.append(piece)
        length += len(piece.encode())
        if length >= size:
            break
    return "".join(pieces)


def documents() -> dict[str, Any]:
    """Return the documents of a megabyte that are no text."""
    return {
        "phone keys": {f"tel 23{n:05d}": n for n in range(42_000)},
        "mail keys": {f"user{n}@example.com": n for n in range(34_000)},
        "list of mail": [f"user{n}@example.com" for n in range(42_000)],
        "records": [{"name": "Ann", "email": f"u{n}@example.com", "ssn": f"219-09-{n % 10_000:04d}"} for n in range(14_000)],
        "numbers": {"ssn": [219_090_000 + n for n in range(85_000)]},
        "phones": [{"phone": f"416555{n % 10_000:04d}", "mobile": f"0171 23{n % 10_000:04d}"} for n in range(16_000)],
        "passwords": [{"user": f"ada_{n}", "password": f"hunter{n}!"} for n in range(18_000)],
    }


def spent(run: Callable[[], object]) -> float:
    """Return the processor time of a run, the shorter of two, in seconds."""
    times = []
    for _ in range(2):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def rows(kinds: Iterable[str], size: int) -> Iterable[tuple[str, float]]:
    """Yield the name of each text and what it costs; all texts if no kinds are asked for."""
    wanted = set(kinds)
    texts = {f"type {name}": unit for name, unit in VALUES.items()} | {f"text {name}": unit for name, unit in MORE.items()}
    for name, unit in texts.items():
        if not wanted or name in wanted:
            text = counted(unit, size)
            yield name, spent(lambda text=text: redact_text(text, Vault(TAG)))
    for name, unit in HOSTILE.items():
        if not wanted or f"unit {name}" in wanted:
            text = (unit * (size // len(unit.encode()) + 1))[:size] + END
            yield f"unit {name}", spent(lambda text=text: redact_text(text, Vault(TAG)))
    for name, document in documents().items():
        if not wanted or f"document {name}" in wanted:
            yield f"document {name}", spent(lambda document=document: redact_value(document, Vault(TAG)))
    for name, unit in ORDINARY.items():
        if not wanted or f"ordinary {name}" in wanted:
            text = counted(unit, ORDINARY_BYTES)
            assert redact_text(text, Vault(TAG)).text == text, name
            yield f"ordinary {name}", spent(lambda text=text: redact_text(text, Vault(TAG)))


def quick_us() -> dict[str, float]:
    """Return what the quick test of a clean request costs, in microseconds, after a process has seen many texts."""
    for number in range(WARMING):
        unit = list((VALUES | MORE | ORDINARY).values())[number % 50]
        may_hold_personal_data(counted(unit, 300 + number % 400).encode())
    costs: dict[str, float] = {}
    for name, document in (("records", CLEAN_RECORDS), ("prose", CLEAN_PROSE)):
        raw = json.dumps(document, separators=(",", ":")).encode()
        assert redact_json(raw, Vault(TAG)).raw == raw
        test, best = DEFAULT_SCANNER.may_find_in_json, 1.0
        for _ in range(200):
            start = time.process_time()
            for _ in range(200):
                test(raw)
            best = min(best, (time.process_time() - start) / 200)
        costs[name] = best * 1e6
    return costs


def main(kinds: list[str], size: int) -> None:
    """Print the table."""
    redact_text(counted(MORE["one line of each"], 20_000), Vault(TAG))  # libraries and patterns load on first use
    print(f"{'text':32} {'CPU s':>7}", flush=True)
    for name, seconds in rows(kinds, size):
        print(f"{name:32} {seconds:7.2f}", flush=True)
    if not kinds:
        for name, cost in quick_us().items():
            print(f"quick test of clean {name}, warm: {cost:.2f} µs")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="which rows, as the table names them; all of them without")
    parser.add_argument("--bytes", type=int, default=DENSE_BYTES, help="the size of a dense text")
    arguments = parser.parse_args()
    main(arguments.kinds, arguments.bytes)
