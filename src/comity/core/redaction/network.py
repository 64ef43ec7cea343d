"""Addresses of a person's machines."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

from comity.core.redaction.detector import Category, Need, PatternDetector
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


def _accept_ipv4(value: str) -> int:
    """Networks, groups, loopback and unspecified addresses belong to no person; a last part of 0 is more often a version."""
    length, value = len(value), _DEFANGED.sub(".", value)
    first, _, _, last = value.split(".")
    if first in {"0", "127"} or int(first) >= _MULTICAST or last in {"0", "255"}:
        return 0
    return 0 if _is_version_like(value) else length


def _accept_ipv4_named(value: str) -> int:
    if value[:2] == "0x":
        return len(value)
    return len(value) if _is_version_like(value) and value[:2] != "0." else 0


def _is_version_like(value: str) -> bool:
    """Four small numbers are a version more often than an address; private networks begin with ten."""
    parts = [int(part) for part in value.split(".")]
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
    return 0 if address.is_loopback or address.is_unspecified or address.is_multicast else len(value)


def _accept_mac(value: str) -> int:
    digits = value.replace(":", "").replace("-", "").replace(".", "").lower()
    if len(set(digits)) == 1:
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
    r"|adres|адрес)(?![a-z]))[^;!?\n]){0,32}"
    r"|(?:[~><^]=?|==)[ ]?|(?<![a-z0-9])v)$",
    re.IGNORECASE,
)

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
    PatternDetector(
        name="ipv6",
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
    ),
    PatternDetector(
        name="ipv4",
        type="IP",
        category=Category.NETWORK,
        priority=70,
        pattern=LatePattern(rf"{BEFORE}{_OCTET}(?:{_DOT}{_OCTET}){{3}}{AFTER}(?![-./][0-9])"),
        first=rf"{AT_DIGIT}(?=[0-9]{{0,2}}{_DOT})",
        hint=rf"{HINT_BEFORE_DIGIT}[0-9]{{1,3}}{_DOT}[0-9]{{1,3}}{_DOT}[0-9]{{1,3}}{_DOT}[0-9]{{1,3}}{HINT_AFTER}",
        accept=_accept_ipv4,
        need=Need.NO_FOREIGN_LABEL,
        not_near=_VERSION,
        siblings=True,
        context=words(r"ip(?:v4)?(?:\s?addr(?:ess)?)?", "host", "client", "remote", "server", "from"),
        not_after=LatePattern(r"[0-9][-./]$", end_chars=3),
    ),
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
