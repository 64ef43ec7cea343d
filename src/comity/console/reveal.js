// Showing hidden personal data: asks first, is allowed by role, and the node writes it into the audit.
import { post, segment } from './api.js';
import { act, confirm } from './ui.js';

/** Ask, then return what a token stands for; null if the person went back or may not see it. */
export async function reveal(sessionId, token) {
  const sure = await confirm({ title: 'Reveal this value?', consequence: 'It is personal data. That you looked at it is written into the audit, with your name and the kind of value.', action: 'Reveal', danger: false });
  if (!sure) return null;
  const answer = await act(() => post(`sessions/${segment(sessionId)}/reveal`, { token }));
  return answer ? String(answer.value) : null;
}
