// Showing hidden personal data: asks first, is allowed by role, and the node writes it into the audit.
import { post, segment } from './api.js';
import { act, confirm } from './ui.js';

/** Ask, then return what a token stands for; null if the person went back or may not see it. */
export async function reveal(sessionId, token) {
  const reason = await confirm({
    title: 'Reveal this value?', consequence: 'It is personal data. That you looked at it, and why, is written into the audit.', action: 'Reveal', danger: false, field: 'Reason', fieldRequired: true,
  });
  if (!reason) return null;
  const answer = await act(() => post(`sessions/${segment(sessionId)}/reveal`, { token, reason }));
  return answer ? String(answer.value) : null;
}
