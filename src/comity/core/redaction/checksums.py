"""The check digits of personal and financial numbers: each function says whether a number, already freed of its separators,
could have been issued. A checksum alone passes about one random number in ten, so detectors add prefixes and context to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import import_module
from operator import mul
from typing import Final

_LUHN_DOUBLED = bytes.maketrans(b"0123456789", bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)))
_BASE58 = {char: value for value, char in enumerate("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")}
_BECH32 = {char: value for value, char in enumerate("qpzry9x8gf2tvdw0s3jn54khce6mua7l")}
_BECH32_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32M_FINAL = 0x2BC830A3
_ZERO = ord("0")
_TEN_DOWN = tuple(range(10, 1, -1))
_CPF_SIGNS = str.maketrans("", "", " -.")

# What follows the two check digits, in the notation of the IBAN registry: n digits, a capitals, c either.
IBAN_STRUCTURE: dict[str, str] = {
    "AD": "8n12c", "AE": "19n", "AL": "8n16c", "AT": "16n", "AZ": "4a20c", "BA": "16n", "BE": "12n", "BG": "4a6n8c",
    "BH": "4a14c", "BR": "23n1a1c", "BY": "4c4n16c", "CH": "5n12c", "CR": "18n", "CY": "8n16c", "CZ": "20n", "DE": "18n",
    "DK": "14n", "DO": "4c20n", "EE": "16n", "EG": "25n", "ES": "20n", "FI": "14n", "FO": "14n", "FR": "10n11c2n",
    "GB": "4a14n", "GE": "2a16n", "GI": "4a15c", "GL": "14n", "GR": "7n16c", "GT": "24c", "HR": "17n", "HU": "24n",
    "IE": "4a14n", "IL": "19n", "IQ": "4a15n", "IS": "22n", "IT": "1a10n12c", "JO": "4a4n18c", "KW": "4a22c", "KZ": "3n13c",
    "LB": "4n20c", "LC": "4a24c", "LI": "5n12c", "LT": "16n", "LU": "3n13c", "LV": "4a13c", "LY": "21n", "MC": "10n11c2n",
    "MD": "20c", "ME": "18n", "MK": "3n10c2n", "MR": "23n", "MT": "4a5n18c", "MU": "4a19n3a", "NL": "4a10n", "NO": "11n",
    "PK": "4a16c", "PL": "24n", "PS": "4a21c", "PT": "21n", "QA": "4a21c", "RO": "4a16c", "RS": "18n", "SA": "2n18c",
    "SC": "4a20n3a", "SD": "14n", "SE": "20n", "SI": "15n", "SK": "20n", "SM": "1a10n12c", "ST": "21n", "SV": "4a20n",
    "TL": "19n", "TN": "20n", "TR": "6n16c", "UA": "6n19c", "VA": "18n", "VG": "4a16n", "XK": "16n",
}  # fmt: skip
_IBAN_CLASS = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}
_IBAN: dict[str, re.Pattern[str]] = {
    country: re.compile("".join(f"{_IBAN_CLASS[kind]}{{{count}}}" for count, kind in re.findall(r"(\d+)([nac])", structure)))
    for country, structure in IBAN_STRUCTURE.items()
}
IBAN_CHARS: dict[str, int] = {
    country: 4 + sum(int(count) for count in re.findall(r"\d+", structure)) for country, structure in IBAN_STRUCTURE.items()
}


def is_luhn(digits: str) -> bool:
    """Cards and the Canadian SIN: from the right, every second digit doubled, the digits of all summed."""
    raw = digits.encode()
    plain = raw[-1::-2]
    return (sum(plain) - 48 * len(plain) + sum(raw[-2::-2].translate(_LUHN_DOUBLED))) % 10 == 0


def is_iban(iban: str) -> bool:
    """Registry structure of the country, then ISO 7064 mod 97-10 over the rearranged number."""
    structure = _IBAN.get(iban[:2])
    if structure is None or not structure.fullmatch(iban, 4):
        return False
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97 == 1


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    """Return the sum of the first digits, each times its weight; there are at least as many digits as weights."""
    total: int = sum(map(mul, digits.encode(), weights))
    return total - _ZERO * sum(weights)


def is_nhs_number(digits: str) -> bool:
    """Ten digits, weights ten down to two, the last digit completes a multiple of eleven."""
    return len(digits) == 10 and -_weighted(digits, _TEN_DOWN) % 11 == int(digits[9])


def is_cpf(number: str) -> bool:
    """A Brazilian taxpayer: eleven digits, two of them for checking; a tenth of the time that python-stdnum takes."""
    digits = number.translate(_CPF_SIGNS)
    if len(digits) != 11 or not (digits.isascii() and digits.isdigit()) or digits == "0" * 11:
        return False
    first = -_weighted(digits, _TEN_DOWN) % 11 % 10
    return digits.endswith(f"{first}{-_weighted(digits, (11, *_TEN_DOWN)) % 11 % 10}")


def is_routing_number(digits: str) -> bool:
    """Nine digits of a Federal Reserve district, weights 3-7-1 summing to a multiple of ten."""
    district = int(digits[:2])
    if not (district <= 12 or 21 <= district <= 32 or 61 <= district <= 72 or district == 80):
        return False
    total = _weighted(digits, (3, 7, 1) * 3)
    return total % 10 == 0 and total > 0


def is_base58check(address: str, length: int = 25) -> bool:
    """A Bitcoin address of the old form, or a key: `length` bytes, the last four the double hash of the others."""
    number = 0
    for char in address:
        value = _BASE58.get(char)
        if value is None:
            return False
        number = number * 58 + value
    if number >> 8 * length:
        return False
    payload = number.to_bytes(length, "big")
    return sha256(sha256(payload[:-4]).digest()).digest()[:4] == payload[-4:]


def is_bech32(address: str) -> bool:
    """A Bitcoin address of the segwit form, which begins `bc1`; mixed case is not allowed."""
    if address not in {address.lower(), address.upper()}:
        return False
    prefix, _, data = address.lower().rpartition("1")
    values = [_BECH32.get(char, -1) for char in data]
    if -1 in values or len(values) < 8:
        return False
    checksum = 1
    for value in [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix] + values:
        top, checksum = checksum >> 25, (checksum & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_BECH32_GENERATOR):
            if top >> bit & 1:
                checksum ^= generator
    return checksum == (1 if values[0] == 0 else _BECH32M_FINAL)  # later witness versions use bech32m


_FASTER: Final[dict[str, Callable[[str], bool]]] = {"br.cpf": is_cpf}


@cache
def standard(module: str) -> Callable[[str], bool]:
    """Return the test of a module of python-stdnum. Its import takes some twenty milliseconds, and most texts need none."""
    test: Callable[[str], bool] = _FASTER.get(module) or import_module(f"stdnum.{module}").is_valid
    return test
