"""What the keys of an object say of each other: `zip` beside `tar` is a kind of archive, and beside `city` a postal code.

A key is read as the words before its value. Where a sibling says what the key means, the words are others than the key's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from comity.core.redaction.shapes import plain_words


def _keys(words: str) -> frozenset[str]:
    return frozenset(one.replace("_", " ") for one in re.findall(r"\w+", words))


class _Rule(Struct, frozen=True):
    """Which keys mean something else beside others; keys are compared as plain words in small letters."""

    keys: frozenset[str]
    beside: tuple[frozenset[str], ...]  # of each of which one key must be there
    words: str  # what the key is read as; `{}` stands for its own words
    unless: frozenset[str] = frozenset()


_ACCOUNTS = _keys("account acct konto compte cuenta conto conta rekening rachunek account_no account_number")
_RULES: Final = (
    # Versions, which elsewhere are addresses of machines.
    _Rule(
        _keys(
            "previous prev current latest next from to old new min max minimum maximum target installed available required"
            " running before after baseline upgrade fixed since stable base expected actual"
        ),
        (_keys("version firmware build release app_version firmware_version"),),
        "{} version",
    ),
    _Rule(
        _keys("ip ip4 ip6 ipv4 ipv6 address addr ip_address ip_addr inet inet6 host from to start end"),
        (
            _keys(
                "subnet netmask mask gateway gw vlan vlan_id cidr prefix prefixlen prefix_length broadcast dns nameserver"
                " nameservers mtu interface iface listen peers route routes dhcp"
            ),
        ),
        "subnet {}",
        _keys(
            "user username user_name user_id login email mail client client_id customer employee owner session"
            " session_id person"
            " guest member subscriber device_owner benutzer usuario utilisateur utente"
        ),
    ),
    _Rule(
        _keys("zip"),
        (
            _keys(
                "tar gz tgz bz2 xz zst rar 7z lz4 cab folders files checksum crc crc32 md5 sha256 compression entries archive"
            ),
        ),
        "{} count",
    ),
    _Rule(
        _keys("mobile mobil phone cell tel fax movil móvil mobiel"),
        (
            _keys(
                "desktop tablet visits sessions impressions clicks views pageviews downloads installs walk_in chat web"
                " desktops tablets visitas sesiones visites besuche sitzungen"
            ),
        ),
        "{} count",
        _keys("name email mail address first_name last_name surname customer contact person owner user id_number"),
    ),
    _Rule(
        _keys("cap"),
        (
            _keys(
                "floor limit limits max min maximum minimum total planned budget spend spent quota rate currency unit used"
                " units remaining target shares price strike cap_rate cap_max cap_usd cap_amount cap_per_day period window"
                " per_day per_user frequency threshold collar option premium usage throttle burst"
                " deductible copay excess bid fee fees percent base interval"
            ),
        ),
        "{} count",
        _keys("via indirizzo citta città comune localita località provincia city street paese address"),
    ),
    _Rule(
        _keys("title titel titre titolo título titulo"),
        (
            _keys(
                "isbn author authors director runtime duration pages episode season publisher genre artist album imdb_id year"
                " released autor auteur autore duración duracion durée seiten regie"
            ),
        ),
        "film title",
        _keys("rent price rooms bedrooms address city bathrooms landlord tenant assignee due status due_date"),
    ),
    _Rule(_keys("sin"), (_keys("cos tan rad deg angle theta"),), "{} count"),
    _Rule(_keys("dni"), (_keys("ghi dhi gti poa irradiance"),), "{} count"),
    _Rule(
        _ACCOUNTS,
        (
            _keys(
                "cost_center cost_centre profit_center profit_centre cost_object ledger gl gl_code gl_account posting_key wbs"
                " kostenstelle profitcenter chart_of_accounts debe haber soll haben dare avere"
            ),
        ),
        "ledger {}",
    ),
    _Rule(
        _ACCOUNTS,
        (
            _keys(
                "bic swift swift_code bic_code sort_code sortcode bsb blz ifsc aba routing routing_number bank bank_name reg_nr"
            ),
        ),
        "bank account",
    ),
    _Rule(
        _keys("kod code código codigo codice cod kód код pc cp cap cep npa irsz psc post postnr"),
        (
            _keys(
                "street street_name address addr line1 line_1 address1 ulica ul calle via rue straße strasse str rua"
                " straat utca"
                " gata gade gate ulice улица вулиця адрес adres adresse direccion dirección indirizzo endereço endereco adresa"
                " cím osoite katu cadde sokak mahalle jalan alamat"
            ),
            _keys(
                "city town miasto miejscowość ciudad localidad población citta città comune ville commune stadt ort plaats"
                " woonplaats cidade stad by poststed postort kaupunki grad město mesto obec oraș oras localitate város şehir"
                " ilçe город місто kota"
            ),
        ),
        "postal code",
    ),
)

_BOUNDS: Final = {"min": "max", "max": "min", "lower": "upper", "upper": "lower", "von": "bis", "bis": "von"}


@lru_cache(maxsize=1024)
def words_beside(keys: tuple[Any, ...]) -> Mapping[Any, str]:
    """Return what the keys of an object are read as that have a meaning of their own beside the others."""
    plain = {key: plain_words(key).lower() for key in keys if isinstance(key, str)}
    names = set(plain.values())
    found: dict[Any, str] = {}
    for key, words in plain.items():  # `dob_min` beside `dob_max`
        stem, _, bound = words.rpartition(" ")
        if stem and bound in _BOUNDS and f"{stem} {_BOUNDS[bound]}" in names:
            found[key] = f"{words} count"
    for rule in _RULES:
        if rule.keys.isdisjoint(names) or any(map(names.isdisjoint, rule.beside)) or not rule.unless.isdisjoint(names):
            continue
        for key, words in plain.items():
            if words in rule.keys:
                found.setdefault(key, rule.words.format(plain_words(key)))
    return found
