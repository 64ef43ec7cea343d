// One trace as a tree on a time axis, whatever made its spans; beside it what the chosen span says.
import { html, useMemo, useState } from './vendor.js';
import { get } from './api.js';
import { href } from './router.js';
import { Waterfall } from './waterfall.js';
import { Text } from './json.js';
import { Loaded, useLoad } from './ui.js';

const valueOf = (value) => {
  const [kind, inner] = Object.entries(value || {})[0] || [];
  if (kind === 'arrayValue') return (inner.values || []).map(valueOf).join(', ');
  return kind === 'kvlistValue' ? JSON.stringify(inner) : inner;
};
const attributesOf = (list) => Object.fromEntries((list || []).map((one) => [one.key, valueOf(one.value)]));
const WORDS = { ok: 'success', refused: 'refused', timeout: 'timeout', cancelled: 'cancelled', partial: 'partial' };

/** Return the rows of a trace as the waterfall draws them; each keeps what its span says. */
export function rowsOf(trace) {
  const rows = [];
  for (const group of trace.resourceSpans || []) {
    const service = attributesOf(group.resource?.attributes)['service.name'] || '';
    for (const span of (group.scopeSpans || []).flatMap((scope) => scope.spans || [])) {
      const says = attributesOf(span.attributes);
      const failed = String(span.status?.code || '').includes('ERROR');
      rows.push({
        request_id: span.spanId, parent_id: span.parentSpanId || null, target: says['gen_ai.agent.id'] || service, capability: says['comity.capability'] || span.name,
        created_at: Number(BigInt(span.startTimeUnixNano) / 1000n) / 1000, duration_ms: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
        status: WORDS[says['comity.status']] || (failed ? 'error' : 'success'), error_code: says['error.type'], name: span.name, service, says, message: span.status?.message, events: span.events || [],
      });
    }
  }
  return rows.sort((a, b) => a.created_at - b.created_at);
}

/** Show a trace by its id. */
export function Trace({ id }) {
  const state = useLoad(() => get(`../api/v2/traces/${id}`), [id]);
  return html`<${Loaded} state=${state} what="Reading the trace">${(data) => html`<${Drawn} trace=${data.trace || {}} />`}</${Loaded}>`;
}

function Drawn({ trace }) {
  const rows = useMemo(() => rowsOf(trace), [trace]);
  const [selected, setSelected] = useState('');
  const [pill, setPill] = useState('');
  const row = rows.find((one) => one.request_id === selected);
  const call = row?.says['comity.request.id'];
  return html`<div class="trace-tree" style=${{ height: `${Math.min(Math.max(rows.length, 3), 16) * 28 + 84}px` }}><${Waterfall} rows=${rows} selected=${selected} onSelect=${setSelected} pill=${pill} onPill=${setPill} /></div>
    ${row && html`<div class="in stack"><div class="line wrap"><b>${row.name}</b><span class="ink-3">${row.service}</span><span class="spacer"></span>${call && html`<a class="button small" href=${href('call', call)}>Open the call</a>`}</div>${row.message && html`<p class="text">${row.message}</p>`}
      <dl class="facts">${Object.entries(row.says).sort().map(([name, value]) => html`<dt>${name}</dt><dd><${Text} text=${String(value)} /></dd>`)}</dl>${row.events.length > 0 && html`<h3>Events</h3><ul class="bullets">${row.events.map((one) => html`<li>${one.name} <span class="ink-3">${Object.entries(attributesOf(one.attributes)).map(([name, value]) => `${name}=${value}`).join(', ')}</span></li>`)}</ul>`}</div>`}`;
}
