// Two calls beside each other: what differs in request, reply and tree.
import { html, useState } from './vendor.js';
import { get, segment } from './api.js';
import { wholeCall } from './asked.js';
import { Failure, Id, Loading, Status, useLoad } from './ui.js';
import { duration, money, number } from './format.js';

/** Return the differences of two JSON values as `[{path, a, b}]`, at most `most`. */
export function differences(a, b, path = '', found = [], most = 500) {
  if (found.length >= most || Object.is(a, b)) return found;
  const isObject = (value) => value !== null && typeof value === 'object';
  if (isObject(a) && isObject(b) && Array.isArray(a) === Array.isArray(b)) {
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) differences(a[name], b[name], path ? `${path}.${name}` : name, found, most);
  } else {
    found.push({ path: path || '(whole)', a, b });
  }
  return found;
}

const show = (value) => (value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value));

/** Return the calls of a tree by what they are: `agent capability` → how many, by status. */
function shape(rows) {
  const found = {};
  for (const row of rows) {
    const key = `${row.target} ${row.capability}`;
    found[key] ||= {};
    found[key][row.status || 'running'] = (found[key][row.status || 'running'] || 0) + 1;
  }
  return found;
}

export function Compare({ id, other, onOther }) {
  const [text, setText] = useState(other || '');
  const state = useLoad(() => (other ? Promise.all([id, other].map(async (one) => ({ ...flat(await wholeCall(one)), tree: (await get(`calls/${segment(one)}/tree`)).items }))) : null), [id, other || '']);
  const [left, right] = state.data || [];
  return html`<div class="stack wide"><form class="line" onSubmit=${(event) => { event.preventDefault(); onOther(text.trim()); }}>
      <label class="field grow"><span>Compare with the call</span><input class="mono" value=${text} placeholder="request id" onInput=${(event) => setText(event.target.value)} /></label><button class="button primary end" disabled=${!text.trim()}>Compare</button></form>
    ${!other && html`<p class="hint">In the list of calls, <kbd>c</kbd> marks a call and a click on another compares the two.</p>`}
    ${state.error && html`<${Failure} error=${state.error} />`}${other && !state.data && !state.error && html`<${Loading} />`}
    ${left && right && html`<table class="grid compare"><thead><tr><th>What</th><th>This call</th><th>The other</th></tr></thead><tbody>
      <tr><td>Call</td>${[left, right].map((one) => html`<td><${Status} status=${one.call.status} /> <${Id} id=${one.call.request_id} /></td>`)}</tr>
      <tr><td>Took</td>${[left, right].map((one) => html`<td>${duration(one.call.duration_ms)}</td>`)}</tr>
      <tr><td>Tokens</td>${[left, right].map((one) => html`<td>${number(one.call.tokens || 0)}</td>`)}</tr>
      <tr><td>Cost</td>${[left, right].map((one) => html`<td>${money(one.call.cost, one.call.tokens)}</td>`)}</tr>
      <tr><td>Calls of the tree</td>${[left, right].map((one) => html`<td>${number(one.tree.length)}</td>`)}</tr>
      ${[['Request', 'request'], ['Reply', 'reply']].map(([title, part]) => html`<${Rows} title=${title} list=${differences(cut(left.call[part]), cut(right.call[part]))} />`)}
      <${Rows} title="Tree" list=${differences(shape(left.tree), shape(right.tree))} /></tbody></table>`}</div>`;
}

const flat = (data) => ({ call: { ...data.row, request: data.request, reply: data.reply } });
const UNLIKE = ['request_id', 'root_id', 'created_at', 'deadline_at', 'trace_id', 'span_id', 'session_id', 'correlation_id', 'duration_ms', 'fingerprint'];
const cut = (value) => (value && typeof value === 'object' ? Object.fromEntries(Object.entries(value).filter(([name]) => !UNLIKE.includes(name))) : value);

function Rows({ title, list }) {
  if (!list.length) return html`<tr><td>${title}</td><td colspan="2" class="ink-3">the same</td></tr>`;
  return html`${list.map((one) => html`<tr class="diff"><td>${title} <code>${one.path}</code></td><td class="mono text">${show(one.a)}</td><td class="mono text">${show(one.b)}</td></tr>`)}`;
}
