// The address is the state: `#/view/id?name=value`. Everything a person can select can be linked and reloaded.
import { signal } from './vendor.js';

function read() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [view = '', ...rest] = path.split('/');
  let id = rest.join('/');
  try { id = decodeURIComponent(id); } catch { /* a broken escape names nothing: shown as it is */ }
  return { view: view || 'map', id, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** The current route: view, id of what is open, parameters. */
export const route = signal(read());
addEventListener('hashchange', () => { route.value = read(); });

/** Return the link to a view; parameters without a value are left out. */
export function href(view, id = '', params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== '' && value !== false) query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ''}${text ? `?${text}` : ''}`;
}

/** Go to an address; `replace` leaves no entry in the history. */
export function go(target, { replace = false } = {}) {
  if (location.hash === target) return;
  if (replace) {
    history.replaceState(null, '', target);
    route.value = read();
  } else {
    location.hash = target;
  }
}

/** Change parameters of the current address, keeping the rest. */
export function setParams(changes, { replace = true, id } = {}) {
  const { view, id: current, params } = read();
  go(href(view, id ?? current, { ...params, ...changes }), { replace });
}
