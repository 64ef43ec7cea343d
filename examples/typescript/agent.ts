// An agent of Comity in TypeScript, without a package: one HTTP endpoint that checks the signature of each request and answers.
//   comity keys jwks > jwks.json && node agent.ts 9000 jwks.json      (Node 24; before that --experimental-strip-types, tsx or tsc)
// On the node:  prices = Agent("PRICES", url="http://127.0.0.1:9000/", keys="work.db.keys")   with a capability QUOTE(symbol: str)
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";

type Call = { request_id: string; capability: string; inputs: { symbol: string }; user_id: string; deadline_at: number };
type Claims = { aud: string; exp: number; nbf: number; dig: string; scope: string };
const [port, jwksFile] = process.argv.slice(2);
const keys = JSON.parse(readFileSync(jwksFile, "utf8")).keys as { kid: string; kty: string; crv: string; x: string }[];
const prices: Record<string, number> = { ACME: 12.5, GLOBEX: 99 };

function claimsOf(token: string, body: Buffer): Claims {
  const [head, payload, signature] = token.split(".");
  const header = JSON.parse(Buffer.from(head, "base64url").toString());
  const key = keys.find((one) => one.kid === header.kid);
  if (header.alg !== "EdDSA" || header.typ !== "comity-agent+jwt" || !key) throw new Error("unknown key");
  const publicKey = createPublicKey({ key: { kty: key.kty, crv: key.crv, x: key.x }, format: "jwk" });
  if (!verify(null, Buffer.from(`${head}.${payload}`), publicKey, Buffer.from(signature, "base64url"))) throw new Error("forged");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as Claims;
  const digest = createHash("sha256").update(body).digest("base64url");
  if (claims.aud !== "PRICES" || claims.exp * 1000 <= Date.now() || claims.dig !== digest) throw new Error("not for this request");
  return claims;
}

async function answer(request: IncomingMessage): Promise<[number, object]> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const body = Buffer.concat(parts);
  try { claimsOf((request.headers.authorization ?? "").replace(/^Bearer /, ""), body); } catch (error) { return [401, { error: String(error) }]; }
  const call = JSON.parse(body.toString()) as Call;
  const price = prices[call.inputs.symbol];
  if (price === undefined) return [200, { status: "error", error: { code: "PRICE_UNKNOWN", message: `no price of ${call.inputs.symbol}` } }];
  return [200, { data: { symbol: call.inputs.symbol, price, asked_by: call.user_id }, confidence: 0.9 }];
}
createServer(async (request, response) => {
  const [status, document] = await answer(request);
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(document));
}).listen(Number(port), "127.0.0.1", () => console.log("listening"));
