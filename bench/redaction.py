"""What redaction costs: the test every request pays, a large text, and text made to hurt each detector.

Run with `python bench/redaction.py`. Absolute times depend on the machine; the first line is a baseline of the same run, and
the growth column says how much longer twice the text takes: 2 is linear.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

from comity.core.redaction import (
    DETECTORS,
    StreamRedactor,
    Vault,
    may_hold_personal_data,
    redact_json,
    redact_text,
    redact_value,
)

TAG = "abcdefghijkl"

CLEAN_RECORDS = {
    "objective": "Compare the quarterly spend of the design department with the plan",
    "message": "Group the transactions by category, flag all above 2500.00 and say which vendor grew most since 2025-07-01.",
    "inputs": {
        "period": {"from": "2025-07-01", "to": "2025-09-30"},
        "currency": "EUR",
        "cash_flows": [-100000, 60000, 70000.55, 1234567.89],
        "orders": [
            {"order_id": "ORD-2025-000123", "amount": 1499.9, "status": "SHIPPED", "sku": "AB-12345-XL"},
            {"order_id": "ORD-2025-000124", "amount": 89.0, "status": "OPEN", "sku": "CD-99812-S"},
        ],
        "report_id": "550e8400-e29b-41d4-a716-446655440000",
        "created_at": "2025-10-09T12:30:45.123Z",
        "steps": ["collect", "clean", "classify", "compare", "summarise", "review with the owner of the budget", "publish"],
        "tone": "plain, short sentences, no adjectives without a figure behind them",
        "notes": [
            "First draft was late",
            "Use the template of Q2",
            "Round to two decimals in the summary, not in the appendix",
        ],
    },
    "context": {"facts": [{"fact": "The department has 14 people", "confidence": 0.92, "source": "hr"}], "policy": "summary"},
}
CLEAN_PROSE = {
    "message": "The board asked for a short comparison of three options: keeping the present supplier, moving half of the"
    " volume to a second one, or building the part in house. For each of them we need the effect on margin, the risk for"
    " delivery dates and what it would take to go back. Please write for readers who do not know the details, keep every claim"
    " traceable to its source, and say where the data is thin. Two pages are enough; tables are welcome, charts are not"
    " needed. If an assumption matters for the result, name it in the first paragraph rather than in a footnote, and end with"
    " one clear recommendation. The same team will read the report on the second supplier next week, so use the words they use"
    " there; a glossary is attached. Where two sources disagree, quote both and say which one you would trust, and why. Please"
    " do not round figures before the last step, and keep the working notes, since the auditors will ask for them in spring."
}
MIXED = (
    "Dear team, Jane Doe (jane.doe@example.com, +44 20 7946 0958) asked about order ORD-2025-000123 of 2025-10-09. Her card"
    " 4111 1111 1111 1111 was charged 1,234.56 EUR; the refund goes to DE89 3704 0044 0532 0130 00. She lives at 12 Main"
    " Street, Springfield, IL 62704. The rest of this paragraph is prose about shipping times and how we measure them. "
)

# Every hostile text ends with this, so that none is clean.
END = " ssn 219-09-9999, call 416-555-1234, account number 12345678, born 1984-05-03, jane@example.com"

# For each detector, a unit that, repeated, makes its pattern begin everywhere and end nowhere.
HOSTILE: dict[str, str] = {
    "url_credentials": "://a:b",
    "email": "a.b-c_d+",
    "phone_in_record": "^PRN^CP^^48^601^",
    "email_spelled": "a.b (at) c.d ",
    "iban": "GB29 NWBK 6016 ",
    "card": "4111 1111 ",
    "card_bare": "4111111111111112 ",
    "card_named": "card 4111111111111112 ",
    "btc": "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb ",
    "eth": "0x29ea1a361f863a02a2af ",
    "mac": "a4:5e:60:c2:7b:",
    "mac_named": "mac a45e.60c2.",
    "ipv6": "2001:db8:",
    "routing": "routing 123456789 ",
    "ssn": "123-45-678-",
    "ssn_named": "ssn 000 12 345 ",
    "itin": "912-70-123-",
    "itin_named": "itin 912 70 123 ",
    "sin": "046-454-287-",
    "sin_named": "sin 046 454 287 ",
    "ein": "ein 12-345678-",
    "nino": "AB 12 34 56 ",
    "nhs": "nhs 943 476 591 ",
    "passport": "passport A1B2C3D4E5F6G7 ",
    "licence": "dl A1-B2-C3-D4-",
    "dob": "born 3 may 12/12/",
    "phone_international": "+44 20 (7946) ",
    "phone_bracketed": "(416) 555-123 ",
    "phone_national": "416-555-123-",
    "phone_spaced": "416 555 123 ",
    "phone_named": "call 555 12 34 ",
    "bank_account": "account 123 456 ",
    "swift": "bic DEUTDEF ",
    "street": "12 Main Elm Oak Pine ",
    "street_keyed": "street: 12 Aa ",
    "street_named": "address 12 main elm oak ",
    "street_european": "12 rue de la ",
    "postal_abroad": "PLZ 104 ",
    "postal_ca": "K1A 0B",
    "postal_uk": "SW1A 1A",
    "postal_named": "zip sw1a1a ",
    "zip": "zip 9410 ",
    "ipv4": "1.2.3.",
    "user_name": "username: a_",
    "user_name_keyed": "username=",
    "address_named": "address: 12 a, ",
    "api_key": "sk-proj-AbCd1234",
    "api_key_named": "api key: AbCd1234 ",
    "authorization": "Authorization: Bearer abc ",
    "bank_account_bare": "account 1234567 ",
    "bank_account_foreign": "Kontonummer 12 34 5 ",
    "bank_code": "BLZ 1002003 ",
    "bearer": "bearer abcdefghijk ",
    "card_code": "cvv 12 ",
    "card_split": "4111\n1111\n1111\n",
    "city_of_street": "12 Main Street, 1011 ",
    "command_option": "mysql -u a -p ",
    "command_password": "--user a:",
    "connection": "password=a b;",
    "dob_marked": "*12.12.",
    "email_encoded": "QUJDREVGR0hJSktM+",
    "email_international": "\u0438.\u0438-\u0438+",
    "email_named": "mail a at b.",
    "email_spoken": "a dot b at c ",
    "ipv4_named": "client 1.2.3. ",
    "jwt": "eyJhbGciOi.",
    "national_id": "PESEL 4405140135 ",
    "one_time_code": "otp 88 ",
    "passport_zone": "P<GBRHART<<",
    "password": "password: ab ",
    "password_keyed": "password ",
    "password_keyed_weak": "pass: ",
    "password_spoken": "password is the ",
    "password_weak": "pass a1 ",
    "passphrase": "passphrase the word ",
    "phone_linked": "tel:+1234",
    "phone_worded": "phone ten eleven ",
    "webhook": "hooks.slack.com/",
    "phone_spoken": "one two three four five ",
    "phone_doubled": "double one ",
    "pin": "PIN of my card: 48 ",
    "pin_bare": "PIN 4711 a ",
    "plate": "plate B-AB ",
    "private_key": "-----BEGIN PRIVATE KEY-----\n",
    "recovery_phrase": "seed phrase: ladder maple ",
    "session_cookie": "sid=abcd; ",
    "street_and_city": "Main Elm 12, 1011 ",
    "street_east_asian": "\u5317\u4eac\u5e02\u671d\u9633\u533a",
    "tax_id": "CPF 529.982.247-2 ",
    "user_name_logged": "accepted password for ",
    "user_name_mixed": "handle ",
    "user_name_weak": "user a ",
    "address_lines": "12 Elm\n",
    "card_counted": "4111 next 1111 next 1111 ",
    "card_encoded": "QUJDREVGR0hJSktMTU5P ",
    "card_in_name": "card_4111111111111112.png ",
    "card_listed": "4111, 1111, 1111, ",
    "card_said": "card four one eleven, ",
    "code_sent": "123 456 is your ",
    "dob_digits": "geboortedatum: 90051 ",
    "dob_epoch": "birth 45144000 ",
    "dob_ideographic": "\u751f\u4e8e\u4e00\u4e5d\u4e5d\u3007\u5e74\u4e09\u6708",
    "dob_in_segment": "PID|a|b|c|d|e|f|1984031 ",
    "dob_parts": "born 3 / 12 / 19 ",
    "dob_worded": "the third of May ",
    "formed_ar_cuit": "20-12345678-",
    "formed_be_nn": "85.07.30-033.",
    "formed_br_cpf": "529.982.247-2 ",
    "formed_ch_ssn": "756.9217.0769.8 ",
    "formed_cn_ric": "11010519491231002 ",
    "formed_fi_hetu": "131052-308 ",
    "formed_fr_nir": "2 95 10 99 126 111 9 ",
    "formed_it_codicefiscale": "RSSMRA85T10A562 ",
    "formed_mx_curp": "BOXW310820HNERXN0 ",
    "formed_th_pin": "1-2345-45678-78-",
    "host_credentials": "ab:secret1@",
    "id_in_segment": "PID|1|2|AB-1 ",
    "licence_british": "MORGA657054SM9I ",
    "licence_italian": "patente U1ABC1234 ",
    "login_pair": "login is a/b1 ",
    "password_behind": "Blue-Door_63 is my ",
    "phone_called": "0800 123 45 67 called ",
    "phone_ideographic": "\uacf5\uc77c\uacf5-1234-",
    "phone_said": "416 uh 555 uh ",
    "plate_british": "car AB12 CD ",
    "plate_french": "AA-123-A ",
    "private_key_named": "private key " + "A" * 42 + " ",
    "private_key_wallet": "5" + "A" * 48 + " ",
    "recovery_key": "123456-123456-123456-",
    "sort_code": "20-00-00 acc 1234567 ",
    "ssn_said": "123 uh 45 uh ",
    "street_abroad": "\u039f\u03b4\u03cc\u03c2 \u0391\u03b8\u03b7\u03bd\u03ce\u03bd ",
    "swift_grouped": "bic: DEUT DE ",
    "token_named": "token abcdefghij1234567890 ",
    "upi": "ann@okaxi",
    "user_name_linked": "linkedin.com/in/a ",
    "tables": "no,dob\n1,x\n",
    "heads": "no,dob,",
    "tags": "<td>phone</td>",
    "any": "1",
    "digits and dashes": "1-",
    "digits and spaces": "12 ",
    "tokens": "[[EMAIL_1_",
    "masks": "****",
    "brackets": "[",
}


def best_of(run: Callable[[], object], repeat: int = 5) -> float:
    """Return the shortest of several runs, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def per_call_us(run: Callable[[], object], number: int = 100) -> float:
    """Return the time of one call in microseconds."""

    def many() -> None:
        for _ in range(number):
            run()

    return best_of(many, 200) / number * 1e6


def main() -> None:
    """Print the measures."""
    scan = re.compile(rb"[0-9]{20}")
    for name, document in (("records", CLEAN_RECORDS), ("prose", CLEAN_PROSE)):
        raw = json.dumps(document, separators=(",", ":")).encode()
        vault = Vault(TAG)
        base = per_call_us(lambda raw=raw: scan.search(raw))
        cost = per_call_us(lambda raw=raw, vault=vault: redact_json(raw, vault))
        looked = "searched" if may_hold_personal_data(raw) else "passed by the quick test"
        print(f"clean {name:8} {len(raw)} B, {looked}: redact_json {cost:.2f} µs, {cost / base:.2f} x one re.search")
        walked = per_call_us(lambda document=document, vault=vault: redact_value(document, vault), 5)
        print(f"clean {name:8} decoded and walked: redact_value {walked:.1f} µs")

    text = MIXED * (200_000 // len(MIXED))
    found = len(redact_text(text, Vault(TAG)).found)
    print(f"200 KB with {found} values: redact_text {best_of(lambda: redact_text(text, Vault(TAG)), 3):.3f} s")

    def stream() -> None:
        redactor = StreamRedactor(Vault(TAG))
        for index in range(0, len(text), 20):
            redactor.feed(text[index : index + 20])
        redactor.finish()

    print(f"the same in pieces of 20 characters: StreamRedactor {best_of(stream, 1):.3f} s")
    prose = CLEAN_PROSE["message"] * (200_000 // len(CLEAN_PROSE["message"]))
    print(f"200 KB of clean prose: redact_text {best_of(lambda: redact_text(prose, Vault(TAG))) * 1e3:.2f} ms")

    missing = {detector.name for detector in DETECTORS} - HOSTILE.keys()
    assert not missing, missing
    print(f"{'hostile text for':22} {'50 KB ms':>9} {'100 KB ms':>10} {'200 KB ms':>10} {'growth':>7}")
    for name, unit in HOSTILE.items():
        times = []
        for size in (50_000, 100_000, 200_000):
            hostile = (unit * (size // len(unit) + 1))[:size] + END
            times.append(best_of(lambda hostile=hostile: redact_text(hostile, Vault(TAG)), 2) * 1e3)
        print(f"{name:22} {times[0]:9.1f} {times[1]:10.1f} {times[2]:10.1f} {times[2] / times[1]:7.2f}")


if __name__ == "__main__":
    main()
