"""`comity keys`: the keys a served node signs tokens with, and the other nodes whose tokens it accepts."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from comity.cli.ui.arguments import a_name
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, clean
from comity.core.units import NS_PER_MS

if TYPE_CHECKING:
    from comity.engines.keys import KeyRing

JWKS_BYTES_MAX = 64 * 1024


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, what in (("list", "show the keys and the trusted nodes"), ("jwks", "print the public keys as a JWKS document")):
        add_folder(actions.add_parser(name, help=what, description=f"{what.capitalize()}."))
    rotate = actions.add_parser(
        "rotate",
        help="sign with a new key from now on",
        description="Make a new key that signs from now on. Tokens of the previous key stay good until they expire.",
    )
    add_folder(rotate)
    rotate.add_argument("--revoke-previous", action="store_true", help="refuse every token that the previous key signed")
    trust = actions.add_parser(
        "trust",
        help="accept tokens of another node's agents",
        description="Accept tokens that another node signs for its agents, within a scope and for the tenants named here.",
    )
    add_folder(trust)
    trust.add_argument("issuer", metavar="NODE", help="the other node's name")
    trust.add_argument("jwks", metavar="FILE", help="its public keys, as `comity keys jwks` prints them there")
    scope = "call:*/* records:read"
    trust.add_argument("--scope", type=a_name, default=scope, help=f"what its agents may do here at most ({scope})")
    trust.add_argument(
        "--tenant", type=a_name, action="append", metavar="TENANT", help="for whom it may speak; may be repeated (default)"
    )
    rename = actions.add_parser(
        "name",
        help="name this node in its tokens",
        description="Name this node in its tokens. Tokens for the previous name are refused from now on.",
    )
    add_folder(rename)
    rename.add_argument("issuer", metavar="NODE", help="the new name of this node")
    distrust = actions.add_parser("distrust", help="accept no token of another node", description="Accept no token of a node.")
    add_folder(distrust)
    distrust.add_argument("issuer", metavar="NODE", help="the other node's name")


def add_folder(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that says where the keys are."""
    parser.add_argument("--keys", type=a_name, metavar="FOLDER", help="the folder with the keys (STORE.keys)")


def open_ring(args: argparse.Namespace) -> KeyRing:
    """Return the keys that the arguments name; they are made if there are none."""
    from comity.engines.keys import KeyRing, keys_folder

    return KeyRing(args.keys or keys_folder(args.store), now_ms=now())


def now() -> int:
    """Return the time in epoch milliseconds."""
    return time.time_ns() // NS_PER_MS


def run(args: argparse.Namespace, out: Output) -> Exit:
    """List, rotate, trust or distrust."""
    action = args.action
    ring = open_ring(args)
    if action == "jwks":
        out.document(ring.jwks()) if out.is_json else out.text(json.dumps(ring.jwks(), indent=2), is_copied=True)
    elif action == "rotate":
        _rotate(ring, args, out)
    elif action == "trust":
        _trust(ring, args, out)
    elif action == "name":
        ring.rename(args.issuer, now())
        out.document({"issuer": ring.issuer}) if out.is_json else out.text(f"This node is {clean(ring.issuer)} now.")
    elif action == "distrust":
        if not ring.distrust(args.issuer, now()):
            raise CliError(Exit.NOT_FOUND, f"this node trusts no node {args.issuer!r}", hint="`comity keys list` shows them.")
        out.document({"distrusted": args.issuer}) if out.is_json else out.text(f"No token of {args.issuer} is accepted now.")
    else:
        _list(ring, out)
    return Exit.OK


def _rotate(ring: KeyRing, args: argparse.Namespace, out: Output) -> None:
    previous = ring.signer.kid
    made = ring.rotate(now())
    if args.revoke_previous:
        ring.revoke(kid=previous, now_ms=now())
    if out.is_json:
        out.document({"kid": made.kid, "previous": previous, "previous_revoked": bool(args.revoke_previous)})
        return
    out.text(f"Key {made.kid[:12]} signs from now on.", style="green")
    rest = "its tokens are refused from now on" if args.revoke_previous else "its tokens stay good until they expire"
    out.text(f"Key {previous[:12]} signs no more; {rest}.")


def _trust(ring: KeyRing, args: argparse.Namespace, out: Output) -> None:
    path = Path(args.jwks)
    if path.stat().st_size > JWKS_BYTES_MAX:
        raise CliError(Exit.USAGE, f"{path} is too long for a JWKS document")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CliError(Exit.USAGE, f"{path} is no JSON: {error}") from None
    tenants = tuple(args.tenant or ("default",))
    peer = ring.trust(args.issuer, document, scope=args.scope, tenants=tenants, now_ms=now())
    if out.is_json:
        out.document({"issuer": peer.issuer, "scope": peer.scope, "tenants": list(peer.tenants), "keys": len(peer.keys)})
    else:
        out.text(f"Agents of {peer.issuer} may do {peer.scope} for {', '.join(peer.tenants)}.", style="green")


def _list(ring: KeyRing, out: Output) -> None:
    keys = [
        {"kid": key.kid, "created_at": key.created_at, "signs": key == ring.signer, "revoked": key.kid in ring.revoked.keys}
        for key in ring.ring.keys
    ]
    peers = [{"issuer": one.issuer, "scope": one.scope, "tenants": list(one.tenants)} for one in ring.ring.peers]
    if out.is_json:
        out.document({"issuer": ring.issuer, "keys": keys, "peers": peers})
        return
    out.text(f"node {clean(ring.issuer)}")
    table = Listing("key", "state", whole={"key", "state"})
    for key in keys:
        table.add(str(key["kid"])[:12], "revoked" if key["revoked"] else "signs" if key["signs"] else "verifies")
    table.show(out)
    for peer in peers:
        out.text(f"trusts {clean(str(peer['issuer']))}: {peer['scope']} for {', '.join(map(clean, peer['tenants']))}")
