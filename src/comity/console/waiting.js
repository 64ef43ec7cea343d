// How many things wait for a person, by view: the badges of the navigation.
import { signal } from './vendor.js';
import { get } from './api.js';

export const waiting = signal({});

/** Tell a person who looks elsewhere that more waits; only where they allowed it, and without what it is about. */
function notify(more) {
  if (!('Notification' in window) || Notification.permission !== 'granted' || document.visibilityState === 'visible') return;
  const shown = new Notification('Comity', { body: `${more === 1 ? 'One more question waits' : `${more} more questions wait`} for a person`, tag: 'comity-waiting' });
  shown.onclick = () => { window.focus(); location.hash = '#/approvals'; shown.close(); };
}

let known; // how many waited when it was last read

/** Read the counts again; a badge is not worth an error. */
export async function countWaiting() {
  const [approvals, handoffs] = await Promise.allSettled([get('approvals', { state: 'waiting', limit: 100 }), get('handoffs', { state: 'input_required', limit: 100 })]);
  const waits = (approvals.value?.items.length || 0) + (handoffs.value?.items.length || 0);
  if (known !== undefined && waits > known) notify(waits - known);
  known = waits;
  waiting.value = { approvals: approvals.value?.items.length || 0, handoffs: handoffs.value?.items.length || 0 };
}
