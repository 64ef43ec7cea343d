// Audit: the hash-chained rows, a filter, a walk over the whole chain, an export.
import { html, useEffect, useMemo, useRef, useState } from '../vendor.js';
import { can, download, get, send } from '../api.js';
import { readEvents } from '../live.js';
import { href, route, setParams } from '../router.js';
import { useKeys } from '../keys.js';
import { AUDIT_FIELDS, parseFilter } from '../filter.js';
import { AuditTable } from '../audit_rows.js';
import { Bar, Failure, Hop, Id, Notice, Status, act } from '../ui.js';
import { Icon } from '../icons.js';
import { absolute, duration, money, number } from '../format.js';

export function View() {
  const { params } = route.value;
  const text = params.q || '';
  const [draft, setDraft] = useState(text);
  const filter = useMemo(() => {
    const { q, min_ms: least, ...params } = parseFilter(text, AUDIT_FIELDS).params;
    const chips = parseFilter(text, AUDIT_FIELDS).chips.map((one) => (q && one.text.startsWith('“') ? { ...one, problem: 'name a field, such as agent:ANL' } : one));
    return { params, chips };
  }, [text]);
  const [open, setOpen] = useState(null);
  const search = useRef();
  useKeys('Audit', [['/', 'Filter', () => search.current.focus()], ['v', 'Verify the chain', () => setParams({ verify: Date.now() })], ['Escape', 'Close the row', () => setOpen(null)]]);
  return html`<div class="view"><${Bar} title="Audit"><form class="search" role="search" onSubmit=${(event) => { event.preventDefault(); setParams({ q: draft.trim() }); }}><${Icon} name="search" />
      <input ref=${search} class="mono" aria-label="Filter audit rows" placeholder="kind:refused agent:ANL user:u1 since:1h" value=${draft} onInput=${(event) => setDraft(event.target.value)} spellcheck="false" /></form>
      <span class="spacer"></span>${can('audit:read') && html`<button type="button" class="button" onClick=${() => act(() => download('audit/export', filter.params, 'audit.ndjson'), 'Exported')}><${Icon} name="down" size=${14} />Export</button>
      <button type="button" class="button primary" onClick=${() => setParams({ verify: Date.now() })}>Verify</button>`}</${Bar}>
    ${filter.chips.some((one) => one.problem) && html`<div class="chips">${filter.chips.filter((one) => one.problem).map((one) => html`<span class="filter-chip wrong">${one.text} <em>${one.problem}</em></span>`)}</div>`}
    ${params.verify && html`<${Verify} key=${params.verify} onClose=${() => setParams({ verify: '' })} />`}
    <div class=${`split ${open ? 'audit-split has-detail' : 'one'}`}><${AuditTable} params=${filter.params} selected=${open?.id} onOpen=${setOpen} />${open && html`<section class="detail" aria-label="Audit row"><${Row} row=${open} onClose=${() => setOpen(null)} /></section>`}</div></div>`;
}

/** Walk the chain; `tell({checked, of})` says how far it is. Returns the verdict. */
async function verify(signal, tell) {
  const response = await send('GET', 'audit/verify/events', { headers: { Accept: 'text/event-stream' }, signal });
  if (!response.ok) return get('audit/verify'); // whose error says why
  let verdict;
  await readEvents(response.body, ({ event, data }) => { if (event === 'progress') tell(data); else if (event === 'verdict') verdict = data; });
  return verdict || get('audit/verify');
}

function Verify({ onClose }) {
  const [verdict, setVerdict] = useState(null);
  const [error, setError] = useState(null);
  const [began] = useState(() => performance.now());
  const [took, setTook] = useState(0);
  const [far, setFar] = useState({ checked: 0, of: 0 });
  useEffect(() => {
    const timer = setInterval(() => setTook(performance.now() - began), 200);
    const stop = new AbortController();
    verify(stop.signal, setFar).then(setVerdict, (failure) => { if (failure.name !== 'AbortError') setError(failure); }).finally(() => { clearInterval(timer); setTook(performance.now() - began); });
    return () => { stop.abort(); clearInterval(timer); };
  }, []);
  const close = html`<button type="button" class="icon-button" aria-label="Close" onClick=${onClose}><${Icon} name="close" size=${14} /></button>`;
  if (error) return html`<div class="pad"><${Failure} error=${error} /></div>`;
  if (!verdict) return html`<div class="pad"><${Notice} kind="running" icon="running"><span role="status">Walking the chain${far.of ? `: row ${number(far.checked)} of ${number(far.of)}` : ''} … ${duration(took)}</span><progress class="wide-bar" aria-label="Verifying" max=${far.of || null} value=${far.of ? far.checked : null}></progress></${Notice}></div>`;
  return html`<div class="pad"><${Notice} kind=${verdict.ok ? 'success' : 'error'}><div class="line"><div class="grow" role="status"><strong>${verdict.ok ? 'The chain is whole.' : 'The chain is broken.'}</strong> ${number(verdict.rows)} rows were checked in ${duration(took)}.${!verdict.ok ? ` First row that does not fit: ${verdict.row_id}. ${verdict.reason}.` : ''}</div>${close}</div></${Notice}></div>`;
}

function Row({ row, onClose }) {
  const facts = [['Tenant', row.tenant_id], ['User', row.user_id], ['Session', row.session_id], ['Chain', row.chain], ['Objective', row.objective], ['Tokens', row.tokens], ['Cost', row.cost && money(row.cost, row.tokens)], ['Took', row.duration_ms !== null && row.duration_ms !== undefined ? duration(row.duration_ms) : ''], ['Code', row.error_code], ['Note', row.note], ['Previous hash', row.previous_hash], ['Hash', row.hash]];
  return html`<div class="detail-in stack wide"><div class="line"><h2 class="grow">Row ${row.id}</h2><button type="button" class="icon-button" aria-label="Close" onClick=${onClose}><${Icon} name="close" size=${14} /></button></div>
    <div class="line wrap"><${Status} status=${row.kind === 'settled' ? row.status : row.kind} /><${Hop} source=${row.origin} target=${row.target} /> <span class="ink-2">${row.capability}</span></div><p>${absolute(row.created_at)}</p>
    <dl class="facts">${facts.filter(([, value]) => value !== null && value !== undefined && value !== '').map(([name, value]) => html`<dt>${name}</dt><dd class=${/hash/i.test(name) ? 'mono' : ''}>${String(value)}</dd>`)}</dl>
    ${row.request_id && html`<div class="line"><a class="button" href=${href('call', row.request_id)}>Open the call</a><${Id} id=${row.request_id} /></div>`}</div>`;
}
