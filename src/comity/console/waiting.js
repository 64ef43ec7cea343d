// How many things wait for a person, by view: the badges of the navigation.
import { signal } from './vendor.js';
import { get } from './api.js';

export const waiting = signal({});

/** Read the counts again; a badge is not worth an error. */
export async function countWaiting() {
  const [approvals, handoffs] = await Promise.allSettled([get('approvals', { state: 'waiting', limit: 100 }), get('handoffs', { state: 'input_required', limit: 100 })]);
  waiting.value = { approvals: approvals.value?.items.length || 0, handoffs: handoffs.value?.items.length || 0 };
}
