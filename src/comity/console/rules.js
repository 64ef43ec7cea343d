// The admission rules in the order in which the node asks them, and which codes each gives. Shown where a call was refused.
export const RULES = [
  ['identity', 'Who asks', 'the ids of user, tenant, session and request are sound', ['IDENTITY_INVALID', 'IDENTITY_FORGED', 'IDENTITY_EXPIRED', 'IDENTITY_REQUEST_ID_REUSED', 'SESSION_CONFLICT']],
  ['isolation', 'User isolation', 'the call stays with the user and session of its root', ['IDENTITY_MISMATCH', 'SESSION_EXPIRED', 'SESSION_ERASED', 'SESSION_FULL']],
  ['known', 'Agent and capability', 'the agent is registered and active, and has the capability', ['ROUTING_UNKNOWN_AGENT', 'ROUTING_UNKNOWN_CAPABILITY', 'ROUTING_AGENT_IN_MAINTENANCE', 'ROUTING_AGENT_RETIRED', 'ROUTING_CAPABILITY_INACTIVE']],
  ['permitted', 'Permission', 'the caller may call this agent', ['ROUTING_NOT_PERMITTED']],
  ['inputs', 'Inputs', 'the inputs match the schema of the capability', ['INPUT_VALIDATION_FAILED', 'ENVELOPE_MALFORMED', 'ENVELOPE_TOO_LARGE', 'PRIVACY_BLOCKED']],
  ['guidance', 'Guidance', 'no constraint that people set blocks it', ['GUIDANCE_BLOCKED']],
  ['breaker', 'Breaker', 'the capability has not failed too often lately', ['CAPABILITY_UNAVAILABLE']],
  ['depth', 'Depth', 'the chain of callers is not too long', ['LIMIT_DEPTH_EXCEEDED']],
  ['cycle', 'Cycle', 'the agent is not already waiting in this chain', ['ROUTING_CYCLE_DETECTED', 'ROUTING_OBJECTIVE_IN_PROGRESS']],
  ['deadlock', 'Deadlock', 'no two trees would wait for each other', ['ROUTING_DEADLOCK_PREVENTED']],
  ['fan_out', 'Fan-out', 'the caller has not too many calls open at once', ['LIMIT_FAN_OUT_EXCEEDED']],
  ['pending', 'Queue', 'the agent has room in its queue', ['AGENT_BUSY']],
  ['deadline', 'Deadline', 'there is time left', ['LIMIT_DEADLINE_PASSED']],
  ['budget', 'Budget', 'calls and tokens are left for the tree', ['BUDGET_CALLS_EXHAUSTED', 'BUDGET_TOKENS_EXHAUSTED']],
];

/** Return the index of the rule that gives a code, or -1: the refusal came after admission. */
export const ruleOf = (code) => RULES.findIndex(([, , , codes]) => codes.includes(code));
