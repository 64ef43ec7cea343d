// A call as a command or program that makes it again. The token is never in it.
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function python(value, indent = 0) {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  const pad = ' '.repeat(indent + 4);
  if (Array.isArray(value)) return value.length ? `[${value.map((one) => python(one, indent + 4)).join(', ')}]` : '[]';
  const entries = Object.entries(value);
  return entries.length ? `{\n${entries.map(([name, one]) => `${pad}${JSON.stringify(name)}: ${python(one, indent + 4)},\n`).join('')}${' '.repeat(indent)}}` : '{}';
}

/** Return the body of `POST /v1/calls` for a call: what was asked, without the ids of this one. */
export function body(call) {
  const asked = call.request || {};
  const found = { target: call.target, capability: call.capability, inputs: asked.inputs ?? {} };
  if (asked.objective) found.objective = asked.objective;
  if (asked.message) found.message = asked.message;
  return found;
}

export function curl(call) {
  return `curl -sS ${location.origin}/v1/calls \\\n  -H "Authorization: Bearer $COMITY_TOKEN" -H 'Content-Type: application/json' \\\n  -d ${quote(JSON.stringify(body(call)))}`;
}

export function pythonCode(call) {
  const asked = body(call);
  const more = ['objective', 'message'].filter((name) => asked[name]).map((name) => `, ${name}=${JSON.stringify(asked[name])}`).join('');
  return `from comity.client import Client\n\nwith Client(${JSON.stringify(location.origin)}) as node:\n    reply = node.call(${JSON.stringify(call.target)}, ${JSON.stringify(call.capability)}, ${python(asked.inputs, 4)}, user_id=${JSON.stringify(call.user_id || 'u1')}${more})\n    print(reply.status, reply.data)`;
}

export function cli(call) {
  return `comity call ${quote(call.target)} ${quote(call.capability)} --inputs ${quote(JSON.stringify(body(call).inputs))} --user ${quote(call.user_id || 'u1')}`;
}
