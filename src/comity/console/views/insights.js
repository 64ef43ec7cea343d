// Insights: what agents found out, for one audience; and every span by TraceQL, as table, tree or chart.
import { html, useEffect, useRef, useState } from '../vendor.js';
import { get } from '../api.js';
import { href, route, setParams } from '../router.js';
import { TraceQL } from '../traceql.js';
import { Trace } from '../trace.js';
import { Lines } from '../chart.js';
import { Text } from '../json.js';
import { Bar, Command, Empty, Failure, Id, Loaded, Loading, Segmented, Status, When, useLoad, words } from '../ui.js';
import { absolute, count, duration, number, shortId } from '../format.js';

const AUDIENCES = [['', 'All'], ['executive', 'Executive'], ['manager', 'Manager'], ['developer', 'Developer'], ['operator', 'Operator'], ['agent', 'Agent']];
const EXAMPLES = ['{ span.insight.type = "decision" }', '{ status = error }', '{ duration > 500ms }', '{ } | rate() by (resource.service.name)'];
const RANGE_MS = 3_600_000;
const TREES_MAX = 20;

export function View() {
  const { params } = route.value;
  const tab = params.tab || (params.q ? 'query' : 'insights');
  return html`<div class="view"><${Bar} title="Insights"><${Segmented} label="Show" options=${[['insights', 'Insights'], ['query', 'TraceQL']]} value=${tab} onPick=${(next) => setParams({ tab: next === 'insights' ? '' : next, q: next === 'insights' ? '' : params.q })} />
      ${tab === 'insights' && html`<span class="spacer"></span><${Segmented} label="Audience" options=${AUDIENCES} value=${params.audience || ''} onPick=${(audience) => setParams({ audience })} />`}</${Bar}>
    ${tab === 'insights' ? html`<${List} audience=${params.audience || ''} />` : html`<${Query} q=${params.q || ''} shape=${params.as || 'table'} />`}</div>`;
}

const NONE = html`<${Empty} icon="insights" title="No insights yet"><p>An agent says what it found with <code>ctx.insight(…)</code>; people and agents read it here, each as they like to see it.</p><${Command} text=${'ctx.insight("decision", summary="We enter the market in Q3", confidence=0.9)'} /></${Empty}>`;

function List({ audience }) {
  const state = useLoad(() => (audience ? get(`views/${audience}`, { range: '7d' }) : get('insights', { limit: 200, range: '30d' })), [audience]);
  return html`<div class="body flush"><${Loaded} state=${state} what="Reading insights">${(data) => (audience ? html`<${Personal} view=${data} />` : data.items.length ? data.items.map((one) => html`<${Insight} key=${one.id} one=${one} />`) : NONE)}</${Loaded}></div>`;
}

/** What one audience is shown: agents a text within their token budget, people a document. */
function Personal({ view }) {
  const { audience, as_of: asOf, total, alerts = [], ...rest } = view.document;
  if (!total && !alerts.length) return NONE;
  const figures = Object.entries(rest).filter(([, value]) => typeof value === 'number');
  if (view.text) return html`<div class="pad stack"><p class="ink-3">What an agent is told, about ${number(Math.ceil(view.text.length / 4))} tokens</p><pre class="code-block" tabindex="0">${view.text}</pre></div>`;
  return html`<div class="pad stack wide"><p class="ink-3">${count(total, 'insight')} in the last 7 days, as of ${absolute(asOf)}</p>
    ${alerts.length > 0 && html`<section class="panel"><header><h2>Needs attention</h2></header><div>${alerts.map((one) => html`<${Brief} one=${one} />`)}</div></section>`}
    ${figures.length > 0 && html`<div class="stats">${figures.map(([name, value]) => html`<div class="stat"><span>${words(name)}</span><b>${number(value)}</b></div>`)}</div>`}
    <div class="panels">${Object.entries(rest).filter(([, value]) => typeof value !== 'number').filter(([, value]) => (Array.isArray(value) ? value.length : value !== null && value !== '')).map(([name, value]) => html`<section class="panel"><header><h2>${words(name)}</h2></header><div class=${Array.isArray(value) ? '' : 'in'}>${Array.isArray(value) ? value.map((one) => (typeof one === 'object' ? html`<${Brief} one=${one} />` : html`<p class="in">${String(one)}</p>`)) : typeof value === 'object' ? html`<dl class="facts">${Object.entries(value).map(([key, inner]) => html`<dt>${words(key)}</dt><dd>${typeof inner === 'object' ? JSON.stringify(inner) : String(inner)}</dd>`)}</dl>` : String(value)}</div></section>`)}</div></div>`;
}

const Brief = ({ one }) => html`<article class="insight"><div class="line wrap">${one.type && html`<${Status} status="accent">${words(one.type)}</${Status}>`}${one.agent && html`<b>${one.agent}</b>`}${one.confidence !== undefined && html`<span class="ink-3">${Math.round(one.confidence * 100)} %</span>`}</div>
  <p class="text">${one.summary || Object.entries(one).map(([key, value]) => `${words(key)} ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(', ')}</p>${one.rationale && html`<p class="ink-2 text">${one.rationale}</p>`}</article>`;

function Insight({ one }) {
  return html`<article class="insight"><div class="line wrap"><${Status} status=${{ blocker: 'error', risk: 'warn', decision: 'success' }[one.type] || 'accent'}>${words(one.foreign_type || one.type)}</${Status}><b>${one.agent_id}</b>${one.audience !== 'both' && html`<span class="tag">for ${one.audience}s</span>`}<span class="ink-3">confidence ${one.confidence}</span><span class="spacer"></span><span class="ink-3"><${When} at=${one.created_at} /></span></div>
    <p class="text"><${Text} text=${one.summary} /></p>${one.rationale && html`<p class="ink-2 text"><${Text} text=${one.rationale} /></p>`}
    ${one.evidence?.length > 0 && html`<ul class="bullets ink-2">${one.evidence.map((each) => html`<li>${each.type} <code>${each.ref}</code> ${each.description || ''}</li>`)}</ul>`}
    <div class="line ink-3">${one.session_id && html`<a href=${href('sessions', one.session_id)}>Session</a>`}${one.trace_id && html`<a href=${href('insights', '', { tab: 'query', q: `{ trace:id = "${one.trace_id}" }` })}>Its trace</a>`}${one.supersedes && html`<span>supersedes ${one.supersedes}</span>`}${one.expires_at && html`<span>until ${absolute(one.expires_at)}</span>`}</div></article>`;
}

const isMetrics = (q) => /\|\s*(rate|count_over_time|quantile_over_time|histogram_over_time|min_over_time|max_over_time|avg_over_time|sum_over_time)\s*\(/.test(q);

function Query({ q, shape }) {
  const [state, setState] = useState({ data: null, error: null, loading: false });
  const turn = useRef(0);
  const run = async (text) => {
    const mine = ++turn.current;
    setState((old) => ({ ...old, loading: true, error: null }));
    try {
      const data = isMetrics(text) ? await get('../api/metrics/query_range', { q: text, start: Math.floor((Date.now() - RANGE_MS) / 1000), end: Math.ceil(Date.now() / 1000) }) : await get('../api/search', { q: text, limit: 100, spss: 20 });
      if (mine === turn.current) setState({ data, error: null, loading: false });
    } catch (error) { if (mine === turn.current) setState({ data: null, error, loading: false }); }
  };
  useEffect(() => { if (q) run(q); }, [q]);
  const { error } = state;
  const where = error && columnOf(error.message);
  const shown = error && { message: error.message, column: where ?? -1 };
  return html`<div class="bar query"><${TraceQL} value=${q} error=${shown && error.status < 500 && error.status > 0 ? shown : null} onRun=${(text) => { if (text === q) run(text); else setParams({ q: text, tab: 'query' }); }} />
      <${Segmented} label="Show as" options=${[['table', 'Table'], ['tree', 'Tree'], ['chart', 'Chart']]} value=${shape} onPick=${(as) => setParams({ as: as === 'table' ? '' : as })} /></div>
    <div class="body">${!q && html`<${Empty} icon="insights" title="Ask every span a question"><p>Tempo's language, read by this node's own parser: <kbd>Ctrl Space</kbd> completes, <kbd>Enter</kbd> runs.</p><div class="stack">${EXAMPLES.map((one) => html`<a href=${href('insights', '', { tab: 'query', q: one })}><code>${one}</code></a>`)}</div></${Empty}>`}
      ${state.loading && !state.data && html`<${Loading} what="Asking" />`}${error && (error.status >= 500 || !error.status) && html`<${Failure} error=${error} />`}
      ${state.data && html`<${Results} data=${state.data} shape=${shape} />`}</div>`;
}

/** Return the column that an error of the parser names, from 0. */
const columnOf = (message) => { const found = /\bcol(?:umn)? (\d+)/.exec(message || ''); return found ? Number(found[1]) - 1 : undefined; };

function Results({ data, shape }) {
  if (data.series) return html`<div class="panel"><div class="in"><${Lines} series=${data.series.map((one) => ({ name: label(one.labels), points: (one.samples || []).map((each) => [Number(each.timestampMs), Number(each.value || 0)]) }))} /></div></div>`;
  const traces = data.traces || [];
  if (!traces.length) return html`<${Empty} icon="search" title="No span matches"><p>Widen the condition.</p></${Empty}>`;
  const spans = traces.flatMap((trace) => spansOf(trace).map((span) => ({ ...span, trace })));
  if (shape === 'chart') return html`<div class="panel"><div class="in"><${Lines} series=${[{ name: 'duration of each match, ms', points: spans.map((one) => [one.start, one.ms]).sort((a, b) => a[0] - b[0]) }]} /></div></div>`;
  const columns = [...new Set(spans.flatMap((one) => Object.keys(one.attributes)))].slice(0, 6);
  return html`<p class="ink-3">${count(traces.length, 'trace')}, ${count(spans.length, 'span')}</p>
    ${shape === 'tree' ? html`<div class="stack">${traces.slice(0, TREES_MAX).map((trace, at) => html`<${TraceRow} key=${trace.traceID} trace=${trace} isFirst=${at === 0} />`)}${traces.length > TREES_MAX && html`<p class="hint">and ${traces.length - TREES_MAX} more; a narrower query shows them</p>`}</div>`
      : html`<div class="panel scroll"><table class="grid"><thead><tr><th>Start</th><th>Span</th><th class="num">Took</th>${columns.map((one) => html`<th>${one}</th>`)}<th>Trace</th></tr></thead><tbody>${spans.slice(0, 500).map((one) => html`<tr><td class="nowrap">${absolute(one.start)}</td><td>${one.name || one.trace.rootTraceName}</td><td class="num nowrap">${duration(one.ms)}</td>${columns.map((each) => html`<td class="text">${one.attributes[each] === undefined ? '' : String(one.attributes[each])}</td>`)}<td class="nowrap"><a href=${href('insights', '', { tab: 'query', q: `{ trace:id = "${one.trace.traceID}" }`, as: 'tree' })}>tree</a> <${Id} id=${one.trace.traceID} /></td></tr>`)}</tbody></table></div>`}`;
}

/** One trace of the results; its tree is read when it is opened. */
function TraceRow({ trace, isFirst }) {
  const [isOpen, setOpen] = useState(isFirst);
  const found = spansOf(trace).length;
  return html`<details class="panel trace" open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}><summary><b>${trace.rootServiceName || ''}</b> ${trace.rootTraceName || ''} <span class="ink-3">${duration(trace.durationMs)}, ${count(found, 'match', 'matches')}</span> <span class="mono ink-3">${shortId(trace.traceID)}</span></summary>${isOpen && html`<${Trace} id=${trace.traceID} />`}</details>`;
}

const label = (labels) => (labels || []).map((one) => `${one.key}=${Object.values(one.value || {})[0]}`).join(', ') || 'value';

/** Return the matched spans of a trace as Tempo's search answers them. */
function spansOf(trace) {
  const sets = trace.spanSets || (trace.spanSet ? [trace.spanSet] : []);
  return sets.flatMap((set) => set.spans || []).map((span) => ({
    name: span.name || '', start: Number(span.startTimeUnixNano) / 1e6, ms: Number(span.durationNanos || 0) / 1e6,
    attributes: Object.fromEntries((span.attributes || []).map((one) => [one.key, Object.values(one.value || {})[0]])),
  }));
}
