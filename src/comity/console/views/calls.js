// Calls: a list of any length, filtered by one line, live; new rows wait until they are asked for, unless it tails.
import { html, useEffect, useMemo, useRef, useState } from '../vendor.js';
import { get } from '../api.js';
import { go, href, route, setParams } from '../router.js';
import { onEvent } from '../live.js';
import { parseFilter, withWord } from '../filter.js';
import { VirtualList } from '../list.js';
import { useKeys } from '../keys.js';
import { Histogram } from '../chart.js';
import { Bar, Command, Empty, Failure, Hop, Loading, Status, When, copy } from '../ui.js';
import { Icon } from '../icons.js';
import { count, duration, money, moneyNote, number, shortId } from '../format.js';

const PAGE_ROWS = 200; // of the first page; the further ones are as large as the API gives
const PAGE_ROWS_MAX = 1_000;
/** Rows a tail keeps; older ones leave the page, and the foot of the list says how many. */
export const TAIL_ROWS_MAX = 10_000;
/** New rows kept aside while the list stands still; more are counted and read again when asked for. */
const ASIDE_MAX = 1_000;

/** The rows of a list that is read page by page and told about changes. Nothing is dropped without being counted. */
export class CallRows {
  constructor(params, onChange) {
    this.params = params;
    this.onChange = onChange;
    this.rows = [];
    this.byId = new Map();
    this.aside = [];
    this.missed = 0; // new rows beyond what is kept aside
    this.dropped = 0; // old rows that left while tailing
    this.next = undefined;
    this.error = null;
    this.isLoading = false;
    this.isStopped = false;
    this.timer = 0;
  }

  async more() {
    if (this.isLoading || this.next === null || this.isStopped) return;
    this.isLoading = true;
    this.changed();
    try {
      const page = await get('calls', { ...this.params, limit: this.next ? PAGE_ROWS_MAX : PAGE_ROWS, cursor: this.next });
      if (this.isStopped) return;
      for (const row of page.items) this.append(row);
      this.next = page.next || null;
      this.error = null;
    } catch (error) {
      this.error = error;
      if (this.next === undefined) this.next = null;
    }
    this.isLoading = false;
    this.changed();
  }

  append(row) {
    if (this.byId.has(row.request_id)) return;
    this.byId.set(row.request_id, row);
    this.rows.push(row);
  }

  /** Take a live row: change it in place if it is shown, else put it first (tail) or aside. */
  take(row, isTail) {
    const known = this.byId.get(row.request_id);
    if (known) {
      Object.assign(known, row);
    } else if (!this.fits(row)) {
      return;
    } else if (isTail) {
      this.byId.set(row.request_id, row);
      this.rows.unshift(row);
      if (this.rows.length > TAIL_ROWS_MAX) {
        for (const old of this.rows.splice(TAIL_ROWS_MAX)) { this.byId.delete(old.request_id); this.dropped += 1; }
        this.next = null;
      }
    } else if (this.aside.length < ASIDE_MAX) {
      this.aside.push(row);
    } else {
      this.missed += 1;
    }
    this.changed();
  }

  /** Whether a live row belongs to the list: each field is compared as the API compares it. */
  fits(row) {
    const { status, agent, capability, user, session, code, q, since, until, roots } = this.params;
    const least = [[this.params.min_ms, row.duration_ms], [this.params.min_tokens, row.tokens], [this.params.min_cost, row.cost?.amount]];
    if (roots && row.parent_id) return false;
    if (status && !status.split(',').includes(row.status)) return false;
    if (agent && row.target.split('/')[0] !== agent) return false;
    if (capability && row.capability !== capability) return false;
    if (user && row.user_id !== user) return false;
    if (session && row.session_id !== session) return false;
    if (code && !(code.endsWith('*') ? (row.error_code || '').startsWith(code.slice(0, -1)) : row.error_code === code)) return false;
    if (q && ![row.request_id, row.target, row.capability].some((one) => one.includes(q))) return false;
    if ((since && row.created_at < since) || (until && row.created_at > until)) return false;
    return least.every(([bound, value]) => bound === undefined || (value ?? -1) >= bound);
  }

  /** Put the rows kept aside first. Returns false if some were missed: then the list is read again. */
  admit() {
    const all = this.missed === 0;
    for (const row of this.aside) if (!this.byId.has(row.request_id)) { this.byId.set(row.request_id, row); this.rows.unshift(row); }
    this.aside = [];
    this.missed = 0;
    this.changed();
    return all;
  }

  changed() {
    if (!this.timer) this.timer = requestAnimationFrame(() => { this.timer = 0; if (!this.isStopped) this.onChange(); });
  }

  stop() { this.isStopped = true; cancelAnimationFrame(this.timer); }
}

export function View() {
  const { params: given, id: selectedId } = route.value;
  const text = given.q || '';
  const tail = given.tail === '1';
  const every = given.all === '1';
  const filter = useMemo(() => parseFilter(text), [text]);
  const [version, change] = useState(0);
  const [draft, setDraft] = useState(text);
  const [turn, setTurn] = useState(0);
  const search = useRef();
  const tailing = useRef(tail);
  tailing.current = tail;
  const list = useMemo(() => new CallRows({ ...filter.params, roots: !every }, () => change((n) => n + 1)), [text, every, turn]);
  useEffect(() => {
    list.more();
    const stops = [onEvent('call', (event) => list.take(event.data, tailing.current)), onEvent('gap', () => setTurn((n) => n + 1))];
    return () => { list.stop(); stops.forEach((stop) => stop()); };
  }, [list]);
  useEffect(() => setDraft(text), [text]);
  useEffect(() => { if (tail && list.aside.length) list.admit(); }, [tail]);
  const submit = (value) => setParams({ q: value }, { id: '' });
  const at = list.rows.findIndex((row) => row.request_id === selectedId);
  const pick = (index) => setParams({}, { id: list.rows[index].request_id });
  const open = (index) => go(href('call', list.rows[index].request_id));
  const fresh = list.aside.length + list.missed;
  const showNew = () => { if (!list.admit()) setTurn((n) => n + 1); };
  useKeys('Calls', [
    ['/', 'Filter', () => search.current.focus()],
    ['e', 'Only failures', () => submit(withWord(text, text.includes('status:error') ? 'status:' : 'status:error,timeout'))],
    ['r', 'Only refusals', () => submit(withWord(text, text.includes('status:refused') ? 'status:' : 'status:refused'))],
    ['t', 'Tail: follow new calls', () => setParams({ tail: tail ? '' : 1 })],
    ['j', 'Next call', () => list.rows.length && pick(Math.min(at + 1, list.rows.length - 1))],
    ['k', 'Previous call', () => list.rows.length && pick(Math.max(at - 1, 0))],
    ['Enter', 'Open the call', () => { if (at >= 0) open(at); }],
    ['c', 'Compare with another call', () => { if (at >= 0) setParams({ with: given.with ? '' : selectedId }); }],
  ]);
  const draw = (index) => {
    const row = list.rows[index];
    return html`<a class="vrow cols-calls" tabindex="-1" role="option" aria-selected=${index === at ? 'true' : 'false'} href=${href('call', row.request_id)}
      onClick=${(event) => { if (given.with && given.with !== row.request_id) { event.preventDefault(); go(href('call', given.with, { tab: 'compare', with: row.request_id })); } }}>
      <span class="ink-2"><${When} at=${row.created_at} /></span><span><${Status} status=${row.status || 'running'} /></span><${Hop} source=${row.source} target=${row.target} />
      <span class="cut">${row.capability}${row.error_code && html` <span class=${`code s-${row.status}`}>${row.error_code}</span>`}</span><span class="num">${row.status === 'refused' ? '–' : duration(row.duration_ms)}</span>
      <span class="num ink-2">${row.tokens ? number(row.tokens) : '–'}</span><span class="num ink-2 cut" title=${moneyNote(row.cost, row.tokens)}>${money(row.cost, row.tokens)}</span><span class="num ink-2">${row.depth || 0}</span><span class="mono ink-3 cut" title=${row.request_id}>${shortId(row.request_id)}</span></a>`;
  };
  return html`<div class="view"><${Bar} title="Calls">
    <form class="search" role="search" onSubmit=${(event) => { event.preventDefault(); submit(draft.trim()); }}><${Icon} name="search" size=${16} />
      <input ref=${search} class="mono" aria-label="Filter calls" placeholder="status:refused agent:ANL cap:ANL_NPV user:u1 >500ms since:1h" value=${draft} spellcheck="false" autocomplete="off"
        onInput=${(event) => setDraft(event.target.value)} onKeyDown=${(event) => { if (event.key === 'Escape') { setDraft(text); event.target.blur(); } }} /></form>
    <button type="button" class="button" aria-pressed=${every ? 'true' : 'false'} onClick=${() => setParams({ all: every ? '' : 1 })} title="Also the calls that agents made">Inner calls</button>
    <button type="button" class="button" aria-pressed=${tail ? 'true' : 'false'} onClick=${() => setParams({ tail: tail ? '' : 1 })} title="t">Tail</button></${Bar}>
    <${Chips} chips=${filter.chips} onRemove=${(word) => submit(text.split(/\s+/).filter((one) => one !== word).join(' '))} />
    <${Times} params=${{ ...filter.params, roots: !every }} onRange=${(from, to) => submit(withWord(withWord(text, `since:${new Date(from).toISOString()}`), `until:${new Date(to).toISOString()}`))} />
    ${given.with && html`<div class="strip s-accent">Choose the call to compare with <code>${shortId(given.with)}</code>. <button type="button" class="button small" onClick=${() => setParams({ with: '' })}>Stop comparing</button></div>`}
    ${fresh > 0 && !tail && html`<button type="button" class="strip new" onClick=${showNew}>${count(fresh, 'new call')}: show</button>`}
    ${list.error && html`<div class="pad"><${Failure} error=${list.error} retry=${() => setTurn((n) => n + 1)} /></div>`}
    <div class="vhead cols-calls" aria-hidden="true"><span>Time</span><span>Status</span><span>Caller → callee</span><span>Capability</span><span class="num">Took</span><span class="num">Tokens</span><span class="num">Cost</span><span class="num">Depth</span><span>Id</span></div>
    <${VirtualList} label="Calls" count=${list.rows.length} row=${draw} selected=${at} onSelect=${pick} onOpen=${open} onEnd=${() => list.more()} version=${version}
      empty=${list.isLoading || list.next === undefined ? html`<${Loading} what="Reading calls" />` : !list.error && html`<${NoCalls} isFiltered=${Boolean(text)} onClear=${() => submit('')} />`} />
    <div class="vfoot"><span>${number(list.rows.length)} shown${list.next ? ', more below' : ''}</span>${list.isLoading && html`<span>reading …</span>`}
      ${list.dropped > 0 && html`<span>${number(list.dropped)} older rows left this list while it tailed (it keeps ${number(TAIL_ROWS_MAX)}); they are in the store</span>`}
      <span class="spacer"></span><button type="button" class="button plain small" onClick=${() => copy(location.href, 'Link copied')}>Copy link</button></div></div>`;
}

function Chips({ chips, onRemove }) {
  if (!chips.length) return null;
  return html`<div class="chips">${chips.map((one) => html`<span key=${one.word} class=${`filter-chip ${one.problem ? 'wrong' : ''}`} title=${one.problem || ''}>${one.text}${one.problem && html`<em>${one.problem}</em>`}
    <button type="button" class="icon-button" aria-label=${`Remove ${one.word}`} onClick=${() => onRemove(one.word)}><${Icon} name="close" size=${12} /></button></span>`)}</div>`;
}

function Times({ params, onRange }) {
  const [data, setData] = useState(null);
  const key = JSON.stringify(params);
  useEffect(() => {
    let isOver = false;
    const read = () => get('calls/histogram', { ...params, buckets: 80 }).then((found) => { if (!isOver) setData(found); }, () => { if (!isOver) setData(null); });
    read();
    const timer = setInterval(read, 15_000);
    return () => { isOver = true; clearInterval(timer); };
  }, [key]);
  if (!data?.buckets?.some((one) => Object.keys(one.counts).length)) return null;
  return html`<${Histogram} buckets=${data.buckets} from=${data.since} to=${data.until} note=${data.is_whole ? '' : 'the newest calls alone: the index of this store is being made'} onRange=${onRange} />`;
}

function NoCalls({ isFiltered, onClear }) {
  if (isFiltered) return html`<${Empty} icon="search" title="No call matches this filter"><p>Take a word away, or widen the time.</p><button type="button" class="button" onClick=${onClear}>Clear the filter</button></${Empty}>`;
  return html`<${Empty} icon="calls" title="No calls yet"><p>Call an agent from the playground, or from a shell:</p><${Command} text="comity call AGENT CAPABILITY --inputs '{}' --user u1" /><a class="button primary" href="#/playground">Open the playground</a></${Empty}>`;
}
