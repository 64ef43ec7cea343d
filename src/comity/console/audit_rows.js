// Rows of the audit as a table that reads further as it is scrolled; used by the audit and by a call.
import { html, useEffect, useMemo, useState } from './vendor.js';
import { get } from './api.js';
import { go, href } from './router.js';
import { onEvent } from './live.js';
import { VirtualList } from './list.js';
import { Empty, Failure, Hop, Loading, Status, words } from './ui.js';
import { absolute, clock, count, duration, number } from './format.js';

const PAGE_ROWS = 200;

/** Show audit rows that match `params`; newest first. */
export function AuditTable({ params, onOpen, selected }) {
  const key = JSON.stringify(params);
  const [, change] = useState(0);
  const [turn, setTurn] = useState(0);
  const list = useMemo(() => ({ rows: [], next: undefined, isLoading: false, error: null, fresh: 0 }), [key, turn]);
  const more = async () => {
    if (list.isLoading || list.next === null) return;
    list.isLoading = true;
    try {
      const page = await get('audit', { ...params, limit: PAGE_ROWS, cursor: list.next });
      list.rows.push(...page.items);
      list.next = page.next || null;
      list.error = null;
    } catch (error) { list.error = error; list.next ??= null; }
    list.isLoading = false;
    change((n) => n + 1);
  };
  useEffect(() => { more(); }, [list]);
  useEffect(() => onEvent('call', () => { list.fresh += 1; change((n) => n + 1); }), [list]);
  const at = list.rows.findIndex((row) => row.id === selected);
  const open = (index) => { const row = list.rows[index]; if (onOpen) onOpen(row); else if (row.request_id) go(href('call', row.request_id)); };
  const draw = (index) => {
    const row = list.rows[index];
    return html`<div class="vrow cols-audit" role="option" aria-selected=${index === at ? 'true' : 'false'} onClick=${() => open(index)}>
      <span class="num mono ink-3">${row.id}</span><span class="ink-2 mono" title=${absolute(row.created_at)}>${clock(row.created_at)}</span><span><${Status} status=${row.kind === 'settled' ? row.status : row.kind}>${row.kind === 'settled' ? words(row.status) : row.kind}</${Status}></span>
      <${Hop} source=${row.origin} target=${row.target} /><span class="cut">${row.capability}</span><span class="cut ink-2" title=${row.note || ''}>${row.error_code ? html`<code>${row.error_code}</code> ` : ''}${row.note}</span>
      <span class="num ink-2">${row.kind === 'settled' ? duration(row.duration_ms) : ''}</span><span class="mono ink-3 cut" title=${`hash ${row.hash}`}>${(row.hash || '').slice(0, 10)}</span></div>`;
  };
  return html`<div class="fill">${list.error && html`<div class="pad"><${Failure} error=${list.error} retry=${() => setTurn((n) => n + 1)} /></div>`}
    ${list.fresh > 0 && html`<button type="button" class="strip new" onClick=${() => setTurn((n) => n + 1)}>Calls went on since: read again</button>`}
    <div class="vhead cols-audit" aria-hidden="true"><span class="num">Row</span><span>Time</span><span>What</span><span>Caller → callee</span><span>Capability</span><span>Note</span><span class="num">Took</span><span>Hash</span></div>
    <${VirtualList} label="Audit rows" count=${list.rows.length} row=${draw} selected=${at} onSelect=${onOpen && ((index) => onOpen(list.rows[index]))} onOpen=${open} onEnd=${more} version=${list.next}
      empty=${list.next === undefined ? html`<${Loading} what="Reading the audit" />` : !list.error && html`<${Empty} icon="audit" title=${Object.keys(params).length ? 'No audit row matches' : 'No audit rows yet'}><p>Every call leaves rows here: admitted, refused, settled. Each is bound to the one before by its hash.</p>${!Object.keys(params).length && html`<a class="button primary" href="#/playground">Open the playground</a>`}</${Empty}>`} />
    <div class="vfoot"><span>${count(list.rows.length, 'row')}${list.next ? ', more below' : ''}</span></div></div>`;
}
