"""`comity token`: issue, inspect and revoke the tokens with which users and agents come to a served node."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime

import msgspec

from comity.cli.commands.keys import add_folder, now, open_ring
from comity.cli.ui.arguments import a_name, at_least_one
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.output import Output, clean
from comity.core.access.claims import AGENT_LIFE_S_MAX, AT, USER_LIFE_S_MAX, Claims, Left, Standing
from comity.core.access.rights import Role
from comity.core.call.limits import Limits
from comity.core.units import MS_PER_S
from comity.errors import RefusedError


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    issue = actions.add_parser(
        "issue",
        help="print a new token",
        description="Print a token for a user, or with --agent for an agent that works for that user.",
    )
    add_folder(issue)
    issue.add_argument("--agent", type=a_name, metavar="AGENT", help="the agent that calls on behalf of the user")
    issue.add_argument("--role", action="append", choices=[str(role) for role in Role], help="of the user; may be repeated")
    issue.add_argument("--tenant", type=a_name, default="default", help="the tenant (default)")
    issue.add_argument("--session", type=a_name, help="the session the agent works in")
    issue.add_argument("--scope", type=a_name, help="what it may be used for, such as 'call:ANL/* insight:read'")
    issue.add_argument("--audience", type=a_name, metavar="NODE", help="the node it is for (this one)")
    issue.add_argument("--request", type=a_name, metavar="REQUEST_ID", help="the one request an agent's token may be used for")
    issue.add_argument(
        "--minutes", type=at_least_one, default=None, help="how long it is good: 5 for agents, 720 for users at most"
    )
    inspect = actions.add_parser(
        "inspect",
        help="say what a token claims, and whether it is good",
        description="Say what a token claims, and if it is good.",
    )
    add_folder(inspect)
    inspect.add_argument("token", metavar="TOKEN", help="the token")
    revoke = actions.add_parser(
        "revoke",
        help="withdraw a token; every node with these keys refuses it within a second",
        description="Withdraw a token. Every process that serves with these keys refuses it within a second.",
    )
    add_folder(revoke)
    revoke.add_argument("token", metavar="TOKEN", help="the token, or its id as `inspect` shows it")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Issue, inspect or revoke."""
    return {"issue": _issue, "inspect": _inspect, "revoke": _revoke}[args.action](args, out)


def _issue(args: argparse.Namespace, out: Output) -> Exit:
    from comity.engines.keys import Tokens

    tokens, at = Tokens(open_ring(args)), now()
    audience = args.audience or tokens.ring.issuer
    if args.agent is None:
        life_s = min((args.minutes or USER_LIFE_S_MAX // 60) * 60, USER_LIFE_S_MAX)
        roles = tuple(Role(one) for one in args.role or ["viewer"])
        token = tokens.for_user(
            args.user, roles=roles, now_ms=at, tenant_id=args.tenant, scope=args.scope or "", life_s=life_s, audience=audience
        )
    else:
        if args.role:
            raise CliError(Exit.USAGE, "roles are for users; an agent's token has a scope", hint="Leave --role out.")
        life_s = min((args.minutes or AGENT_LIFE_S_MAX // 60) * 60, AGENT_LIFE_S_MAX)
        limits = Limits()
        left = Left(
            deadline=at + life_s * MS_PER_S, calls=limits.calls_max, depth=limits.depth_max - 1, fan_out=limits.fan_out_max
        )
        standing = Standing(chain=(f"{args.agent}{AT}{tokens.ring.issuer}",), left=left, req=args.request or "")
        token = tokens.for_agent(
            args.agent, audience=audience, user_id=args.user, standing=standing, scope=args.scope or "call:*/*", now_ms=at,
            tenant_id=args.tenant, session_id=args.session or "",
        )  # fmt: skip
    out.document({"token": token}) if out.is_json else out.text(token, is_copied=True)
    return Exit.OK


def _inspect(args: argparse.Namespace, out: Output) -> Exit:
    from comity.engines.keys import Tokens

    claims, problem = _claimed(args.token), ""
    try:
        Tokens(open_ring(args)).verify(args.token, now_ms=now())
    except RefusedError as error:
        problem = f"{error.code}: {error.message}"
    if out.is_json:
        out.document({"good": not problem, "problem": problem, "claims": msgspec.to_builtins(claims)})
    else:
        for name, value in msgspec.to_builtins(claims).items():
            shown = datetime.fromtimestamp(value, UTC).isoformat() if name in ("iat", "nbf", "exp") else value
            out.text(f"{name:6} {clean(shown if isinstance(shown, str) else json.dumps(shown))}")
        out.text(problem or "good: this node accepts it", style="red" if problem else "green")
    return Exit.NO_RESULT if problem else Exit.OK


def _revoke(args: argparse.Namespace, out: Output) -> Exit:
    ring = open_ring(args)
    is_token = args.token.count(".") == 2
    claims = _claimed(args.token) if is_token else None
    token_id = args.token if claims is None else claims.jti
    ring.revoke(token_id=token_id, expires_s=0 if claims is None else claims.exp, now_ms=now())
    out.document({"revoked": token_id}) if out.is_json else out.text(f"Token {clean(token_id)} is refused from now on.")
    return Exit.OK


def _claimed(token: str) -> Claims:
    """Return what a token claims, whether or not that is true. Raises `CliError` for what is no token."""
    from comity.engines.keys.ring import decode_bytes

    parts = token.split(".")
    try:
        return msgspec.json.decode(decode_bytes(parts[1]) if len(parts) == 3 else b"", type=Claims)
    except msgspec.MsgspecError:
        raise CliError(Exit.USAGE, "this is no token of Comity", hint="`comity token issue` prints one.") from None
