// Times, durations and numbers as people read them. Times are in the viewer's zone unless `utc` is on.
import { signal } from './vendor.js';

/** Whether absolute times are shown in UTC. */
export const utc = signal(localStorage.getItem('comity.utc') === '1');
/** The present, to the second: relative times follow it. */
export const now = signal(Date.now());
setInterval(() => { now.value = Date.now(); }, 1_000);

export function toggleUtc() {
  utc.value = !utc.value;
  localStorage.setItem('comity.utc', utc.value ? '1' : '0');
}

const pad = (value, width = 2) => String(value).padStart(width, '0');

/** Return epoch milliseconds of what the API may give: milliseconds, or an ISO text. */
export function toMs(at) {
  if (at === null || at === undefined || at === '') return null;
  return typeof at === 'number' ? at : Date.parse(at);
}

/** Return date and time to the millisecond, with the zone. */
export function absolute(at) {
  const ms = toMs(at);
  if (ms === null || Number.isNaN(ms)) return '–';
  const d = new Date(ms);
  const u = utc.value ? 'UTC' : '';
  const part = (name) => d[`get${u}${name}`]();
  const day = `${part('FullYear')}-${pad(part('Month') + 1)}-${pad(part('Date'))}`;
  return `${day} ${clock(ms)} ${utc.value ? 'UTC' : zone(d)}`;
}

const zone = (d) => {
  const minutes = -d.getTimezoneOffset();
  if (!minutes) return 'UTC';
  const sign = minutes < 0 ? '−' : '+';
  return `UTC${sign}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`;
};

/** Return the time of day to the millisecond. */
export function clock(at) {
  const d = new Date(toMs(at));
  const u = utc.value ? 'UTC' : '';
  const part = (name) => d[`get${u}${name}`]();
  return `${pad(part('Hours'))}:${pad(part('Minutes'))}:${pad(part('Seconds'))}.${pad(part('Milliseconds'), 3)}`;
}

/** Return how long ago, or until when: "4 s ago", "in 3 min". */
export function relative(at, from = now.value) {
  const ms = toMs(at);
  if (ms === null || Number.isNaN(ms)) return '–';
  const seconds = (from - ms) / 1000;
  const text = span(Math.abs(seconds));
  if (Math.abs(seconds) < 1) return 'now';
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

function span(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** Return a duration with the unit that fits its size. */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 0.95) return `${ms.toFixed(2)} ms`;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  if (ms < 3_600_000) { const rest = Math.round((ms % 60_000) / 1000); return `${Math.floor(ms / 60_000)} min${rest ? ` ${rest} s` : ''}`; }
  return ms < 172_800_000 ? `${Number((ms / 3_600_000).toFixed(1))} h` : `${Number((ms / 86_400_000).toFixed(1))} d`;
}

/** Return a number with thin spaces between its thousands. */
export function number(value) {
  if (value === null || value === undefined) return '–';
  return String(Math.round(value * 100) / 100).replace(/\B(?=(\d{3})+(?!\d)(?=[^.]*(\.|$)))/g, ' ');
}

/** Return what tokens cost: an amount with its currency, "≥" where a part has no price, "unknown" where nothing has one. */
export function money(cost, tokens) {
  if (!cost) return tokens ? 'unknown' : '–';
  const amount = cost.amount || 0;
  const [whole, cents] = amount.toFixed(2).split('.');
  const told = amount >= 1 || !amount ? `${number(Number(whole))}.${cents}` : amount >= 0.000001 ? String(Number(amount.toPrecision(3))) : '< 0.000001';
  return `${cost.unpriced_tokens ? '≥ ' : ''}${told}${cost.currency ? ` ${cost.currency}` : ''}`;
}

/** Return why a cost is not the whole one, or nothing. */
export const moneyNote = (cost, tokens) => (cost?.unpriced_tokens ? `${number(cost.unpriced_tokens)} tokens have no price` : !cost && tokens ? 'No price of the model is given: Node(prices=…)' : '');

export function bytes(value) {
  if (value === null || value === undefined) return '–';
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) { value /= 1000; at += 1; }
  return `${at && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

/** Return an id short enough for a table; the whole one stands in the title and is what is copied. */
export const shortId = (id) => (id && id.length > 14 ? `…${id.slice(-9)}` : id || '–'); // ids begin with their time: the end tells them apart

/** Return "1 call" or "3 calls". */
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
