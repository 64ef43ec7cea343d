"""Addresses of a person's machines."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from typing import Any

from comity.core.redaction.detector import Category, Need, PatternDetector
from comity.core.redaction.machines import BESIDE_EXAMPLE, BESIDE_MACHINE, OF_EXAMPLE, OF_MACHINE
from comity.core.redaction.shapes import (
    AFTER,
    AT_BORDER,
    AT_DIGIT,
    BEFORE,
    HINT_AFTER,
    HINT_BEFORE_DIGIT,
    HINT_BEFORE_WORD,
    HINT_GAP,
    LatePattern,
    words,
)

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_HEX = "[0-9A-Fa-f]"
_DOT = r"(?:\.|\[\.\]|\(\.\)|[ ]\.[ ])"  # also as it is written where no program shall take it for an address


_DEFANGED = re.compile(_DOT)
_MULTICAST = 224  # the first part of an address of a group of machines; those above are reserved
# Of resolvers that anybody may ask. Those of smaller numbers look like a version.
_RESOLVERS = frozenset({"208.67.222.222", "208.67.220.220", "149.112.112.112", "2001:4860:4860::8888", "2001:4860:4860::8844",
                        "2606:4700:4700::1111", "2606:4700:4700::1001", "2620:fe::fe", "2620:fe::9"})  # fmt: skip
# Addresses that many networks have at the same time, and those that examples are written with.
_PRIVATE = rf"(?:10|172{_DOT}(?:1[6-9]|2[0-9]|3[01])|192{_DOT}168|100{_DOT}(?:6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])){_DOT}"
_EXAMPLE = rf"(?:192{_DOT}0{_DOT}2|198{_DOT}51{_DOT}100|203{_DOT}0{_DOT}113){_DOT}"
_EXAMPLE_6 = "2001:0?[dD][bB]8:"
_PRIVATE_6 = f"(?:[fF][cCdD]{_HEX}{{2}}|[fF][eE]80):"


def _accept_ipv4(value: str) -> int:
    """Networks, groups, loopback, link-local and unspecified addresses belong to no person; a last part of 0 is more often a
    version."""
    plain = value if value.replace(".", "").isdigit() else _DEFANGED.sub(".", value)
    parts = [int(part) for part in plain.split(".")]
    first, second, _, last = parts
    if first in {0, 127} or first >= _MULTICAST or last in {0, 255} or (first == 169 and second == 254):
        return 0
    return 0 if plain in _RESOLVERS or _is_version_like(parts) else len(value)


def _accept_ipv4_named(value: str) -> int:
    if value[:2] == "0x":
        return len(value)
    return len(value) if value[:2] != "0." and _is_version_like([int(part) for part in value.split(".")]) else 0


def _is_version_like(parts: list[int]) -> bool:
    """Four small numbers are a version more often than an address; private networks begin with ten."""
    if parts[0] < 10:
        return max(parts) < 100 or max(parts[1], parts[3]) < 20
    return parts[0] != 10 and max(parts) < 20


def _accept_ipv6(value: str) -> int:
    # Two colons are a time of day more often than an address; short addresses such as fe80::1 belong to no person.
    if value.count(":") < 3:
        return 0
    try:
        address = IPv6Address(value)
    except AddressValueError:
        return 0
    if address.is_loopback or address.is_unspecified or address.is_multicast or value.lower() in _RESOLVERS:
        return 0
    # Of the link-local addresses those with a long end are made of the network card, or are a device's own.
    return 0 if address.is_link_local and not any(address.packed[8:12]) else len(value)


# Cards of no machine: of what several routers are together (VRRP, HSRP, GLBP), of examples, containers and groups.
_VIRTUAL_CARDS = ("00005e", "00000c07ac", "00000c9f", "0007b4", "0242ac", "01005e", "0180c2", "01000c", "011b19", "3333")


def _accept_mac(value: str) -> int:
    digits = value.replace(":", "").replace("-", "").replace(".", "").lower()
    if len(set(digits)) == 1 or digits.startswith(_VIRTUAL_CARDS):
        return 0
    # Six pairs of digits joined by dashes are a compact timestamp.
    return 0 if "-" in value and digits.isdigit() else len(value)


# "upgrade from 1.2.3.4 to 1.2.4.1", "section 1.2.3.4", "netmask 255.255.255.240", "OID 1.3.6.1".
_VERSION = LatePattern(
    r"(?:(?<![a-z])(?:v|ver|versions?|releases?d?|build|firmware|upgrad\w{1,4}|downgrad\w{1,4}"
    r"|updat\w{1,4}(?!\s\w{1,40}\sset\s)|migrat\w{1,4}|bump\w{0,3}|skip\w{0,4}|roll\w{0,3} back|patch\w{0,3}"
    r"|sections?|clauses?|chapters?|paragraphs?|figures?|articles?|appendix|oid|mask|netmask|wildcard"
    r"|requires?|package|driver|sdk|module|tag|changelog|hotfix"
    r"|compatible|kernel|chrome|firefox|safari|edge|nginx|app|library|plugin"
    r"|install\w{0,3}|版本(?:号)?|バージョン|버전|верси[яиюй]|версі[яїю]|versi[oó]n|versione|versão|wersj[aię]|verze|verzió|sürüm"
    r"|phiên bản|έκδοση|الإصدار)(?![a-z])(?:(?!ip[ :]|(?:ip[ -]?)?(?:address|adresse|direcci[oó]n|indirizzo|endereço"
    r"|adres|адрес)(?![a-z])|(?:clients?|users?|remote|visitor|log(?:ged)?[ -]?in)(?![a-z]))[^;!?\n]){0,32}"
    r"|(?:[~><^]=?|==)[ ]?|(?<![a-z0-9])v)$",
    re.IGNORECASE,
)

_PRIVATE_NOT_NEAR = LatePattern(f"{_VERSION.pattern}|{OF_MACHINE}", re.IGNORECASE)
_EXAMPLE_NOT_NEAR = LatePattern(f"{_VERSION.pattern}|{OF_EXAMPLE}", re.IGNORECASE)
_IPV4_HINT = rf"{HINT_BEFORE_DIGIT}[0-9]{{1,3}}{_DOT}[0-9]{{1,3}}{_DOT}[0-9]{{1,3}}{_DOT}[0-9]{{1,3}}{HINT_AFTER}"
_IPV4_WORDS = words(r"ip(?:v4)?(?:\s?addr(?:ess)?)?", "host", "client", "remote", "server", "from")


def _ipv4(name: str, form: str = "", **others: Any) -> PatternDetector:
    return PatternDetector(
        name=name,
        type="IP",
        category=Category.NETWORK,
        priority=70,
        pattern=LatePattern(rf"{BEFORE}{form}{_OCTET}(?:{_DOT}{_OCTET}){{3}}{AFTER}(?![-./][0-9])"),
        first=rf"{AT_DIGIT}(?=[0-9]{{0,2}}{_DOT})",
        hint=_IPV4_HINT,
        accept=_accept_ipv4,
        need=Need.NO_FOREIGN_LABEL,
        siblings=True,
        context=_IPV4_WORDS,
        not_after=LatePattern(r"[0-9][-./]$", end_chars=3),
        **others,
    )


def _ipv6(name: str, **others: Any) -> PatternDetector:
    return PatternDetector(
        name=name,
        type="IP",
        category=Category.NETWORK,
        priority=26,
        pattern=LatePattern(
            rf"(?:(?<![0-9A-Za-z_:.])|(?<=[vV]6:)|(?<=[G-Zg-z]:)"
            rf"|(?<=[A-Za-z]{{5}}:)){_HEX}{{0,4}}(?::{_HEX}{{0,4}}){{2,8}}(?![0-9A-Za-z_:]|/[0-9])"
        ),
        first=rf"[0-9A-Fa-f:]{AT_BORDER}(?=[0-9A-Fa-f]{{0,4}}:|:)",
        hint=rf":{_HEX}{{0,4}}:{_HEX}{{0,4}}:",
        accept=_accept_ipv6,
        **others,
    )


# One search finds the addresses of all ranges; they differ in the words that say that an address is no person's.
_IPV4_PUBLIC = _ipv4("ipv4_public", f"(?!{_PRIVATE}|{_EXAMPLE})", not_near=_VERSION)
_IPV4_PRIVATE = _ipv4("ipv4_private", f"(?={_PRIVATE})", not_near=_PRIVATE_NOT_NEAR, not_beside=BESIDE_MACHINE)
_IPV4_EXAMPLE = _ipv4("ipv4_example", f"(?={_EXAMPLE})", not_near=_EXAMPLE_NOT_NEAR, not_beside=BESIDE_EXAMPLE)
_IPV6_PUBLIC = _ipv6("ipv6_public")
_IPV6_PRIVATE = _ipv6(
    "ipv6_private",
    need=Need.NO_FOREIGN_LABEL,
    not_near=LatePattern(OF_MACHINE, re.IGNORECASE),
    not_beside=BESIDE_MACHINE,
)
_IPV6_EXAMPLE = _ipv6(
    "ipv6_example",
    need=Need.NO_FOREIGN_LABEL,
    not_near=LatePattern(OF_EXAMPLE, re.IGNORECASE),
    not_beside=BESIDE_EXAMPLE,
)
_RANGE = re.compile(f"(?P<private>{_PRIVATE}|{_PRIVATE_6})|(?P<example>{_EXAMPLE}|{_EXAMPLE_6})")


def _ipv4_range(value: str) -> PatternDetector:
    found = _RANGE.match(value)
    return _IPV4_PUBLIC if found is None else _IPV4_PRIVATE if found["private"] else _IPV4_EXAMPLE


def _ipv6_range(value: str) -> PatternDetector:
    found = _RANGE.match(value)
    return _IPV6_PUBLIC if found is None else _IPV6_PRIVATE if found["private"] else _IPV6_EXAMPLE


NETWORK: tuple[PatternDetector, ...] = (
    PatternDetector(
        name="mac",
        type="MAC",
        category=Category.NETWORK,
        priority=24,
        pattern=LatePattern(
            rf"{BEFORE}(?:{_HEX}{{2}}(?P<joint>[:-]){_HEX}{{2}}(?:(?P=joint){_HEX}{{2}}){{4}}"
            rf"|(?=[0-9.]{{0,13}}[A-Fa-f])(?=[A-Fa-f.]{{0,13}}[0-9]){_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}){AFTER}(?![:.-]{_HEX})"
        ),
        first=rf"{_HEX}{AT_BORDER}(?={_HEX}(?:[:-]|{_HEX}{{2}}\.))",
        hint=rf"{HINT_BEFORE_WORD}{_HEX}{{2}}[:\-]{_HEX}{{2}}[:\-]{_HEX}{{2}}[:\-]{_HEX}{{2}}[:\-]{_HEX}{{2}}[:\-]{_HEX}{{2}}"
        rf"|{_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}",
        accept=_accept_mac,
        not_after=LatePattern(rf"{_HEX}[:.-]$", end_chars=3),
    ),
    PatternDetector(
        name="mac_named",
        type="MAC",
        category=Category.NETWORK,
        priority=25,
        pattern=LatePattern(rf"{BEFORE}(?:{_HEX}{{4}}\.{_HEX}{{4}}\.{_HEX}{{4}}|{_HEX}{{12}}){AFTER}"),
        hint=rf"(?i:mac|hardware|physical|hw|bssid){HINT_GAP}{_HEX}{{4}}\.?{_HEX}{{4}}\.?{_HEX}{{4}}",
        accept=_accept_mac,
        need=Need.CONTEXT,
        context=words(r"mac(?:\s?addr(?:ess)?)?", r"(?:hardware|physical|hw)\s?addr(?:ess)?", "bssid"),
        reach=20,
    ),
    _ipv6("ipv6", judged_by=_ipv6_range),
    _ipv4("ipv4", judged_by=_ipv4_range),
    PatternDetector(
        name="ipv4_named",
        type="IP",
        category=Category.NETWORK,
        priority=71,
        pattern=LatePattern(rf"{BEFORE}(?:{_OCTET}(?:\.{_OCTET}){{3}}|0x[0-9A-Fa-f]{{8}}){AFTER}(?![-./][0-9])"),
        hint=rf"{HINT_BEFORE_DIGIT}[0-9]{{1,3}}\.[0-9]{{1,3}}\.[0-9]{{1,3}}\.[0-9]{{1,3}}{HINT_AFTER}|(?i:ip)[^a-z].{{0,16}}0x[0-9a-fA-F]{{8}}",
        accept=_accept_ipv4_named,
        need=Need.CONTEXT,
        is_number=True,
        not_near=_VERSION,
        context=words(
            r"ip(?:v4)?(?:\s?addr(?:ess)?(?:es)?)?s?",
            "host",
            "client",
            "remote",
            "peer",
            "src",
            "dst",
            "source",
            "addr",
            "visitor",
            "attacker",
            "login from",
            "connected from",
        ),
        not_after=LatePattern(r"[0-9][-./]$", end_chars=3),
    ),
)
