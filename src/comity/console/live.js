// One event stream a tab, read with fetch so that the token travels in a header. Resumes after the last id; a gap is
// announced to the views, which read again: nothing is guessed.
import { signal } from './vendor.js';
import { send, token } from './api.js';

const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];

/** connecting, live, or lost. */
export const state = signal('connecting');
/** When the last event or heartbeat came, in epoch milliseconds. */
export const heardAt = signal(0);

/** Parse a stream of server-sent events; call `on({event, id, data})` for each and `beat()` for each comment. */
export async function readEvents(stream, on, beat = () => {}) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let event = '', data = [], id;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (data.length) on({ event: event || 'message', id, data: parse(data.join('\n')) });
        event = ''; data = [];
      } else if (line.startsWith(':')) {
        beat();
      } else {
        const colon = line.indexOf(':');
        const name = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
        if (name === 'event') event = text;
        else if (name === 'data') data.push(text);
        else if (name === 'id') id = text;
      }
    }
  }
}

function parse(text) {
  try { return JSON.parse(text); } catch { return text; }
}

const listeners = new Map();

/** Call `listener(event)` for every event of a kind, `*` for all, `gap` where events were lost. Returns how to stop. */
export function onEvent(kind, listener) {
  if (!listeners.has(kind)) listeners.set(kind, new Set());
  listeners.get(kind).add(listener);
  return () => listeners.get(kind).delete(listener);
}

function tell(kind, event) {
  for (const listener of listeners.get(kind) || []) listener(event);
}

let started = false;
let lastId = '';

/** Open the tab's stream and keep it open while there is a token. */
export async function start() {
  if (started) return;
  started = true;
  let attempt = 0;
  let wasLive = false;
  while (token.value) {
    try {
      const response = await send('GET', 'events', { params: { after: lastId }, headers: { Accept: 'text/event-stream' } });
      if (response.status === 410) {
        lastId = '';
        tell('gap', { event: 'gap', data: {} });
        continue;
      }
      if (!response.ok) throw new Error(String(response.status));
      if (wasLive && !lastId) tell('gap', { event: 'gap', data: {} });
      state.value = 'live';
      wasLive = true;
      attempt = 0;
      heardAt.value = Date.now();
      await readEvents(response.body, (event) => {
        heardAt.value = Date.now();
        if (event.id) lastId = event.id;
        tell(event.event, event);
        if (event.event !== 'gap') tell('*', event);
      }, () => { heardAt.value = Date.now(); });
    } catch { /* tried again below */ }
    state.value = 'lost';
    const wait = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)];
    attempt += 1;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
  started = false;
  lastId = '';
}
