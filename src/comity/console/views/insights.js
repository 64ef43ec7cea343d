// Insights: what agents found out, for one audience; and every span by TraceQL, as table, tree or chart.
import { html, useEffect, useRef, useState } from '../vendor.js';
import { get } from '../api.js';
import { href, route, setParams } from '../router.js';
import { TraceQL } from '../traceql.js';
import { Lines } from '../chart.js';
import { Json, Text } from '../json.js';
import { Bar, Command, Empty, Failure, Id, Loaded, Loading, Segmented, Status, When, useLoad, words } from '../ui.js';
import { absolute, count, duration, number } from '../format.js';

const AUDIENCES = [['', 'All'], ['executive', 'Executive'], ['manager', 'Manager'], ['developer', 'Developer'], ['agent', 'Agent']];
const EXAMPLES = ['{ span.insight.type = "decision" }', '{ status = error }', '{ duration > 500ms }', '{ } | rate() by (resource.service.name)'];
const RANGE_MS = 86_400_000;

export function View() {
  const { params } = route.value;
  const tab = params.tab || (params.q ? 'query' : 'insights');
  return html`<div class="view"><${Bar} title="Insights"><${Segmented} label="Show" options=${[['insights', 'Insights'], ['query', 'TraceQL']]} value=${tab} onPick=${(next) => setParams({ tab: next === 'insights' ? '' : next, q: next === 'insights' ? '' : params.q })} />
      ${tab === 'insights' && html`<span class="spacer"></span><${Segmented} label="Audience" options=${AUDIENCES} value=${params.audience || ''} onPick=${(audience) => setParams({ audience })} />`}</${Bar}>
    ${tab === 'insights' ? html`<${List} audience=${params.audience || ''} />` : html`<${Query} q=${params.q || ''} shape=${params.as || 'table'} />`}</div>`;
}

function List({ audience }) {
  const state = useLoad(() => get('insights', { audience, limit: 200 }), [audience]);
  return html`<div class="body flush"><${Loaded} state=${state} what="Reading insights">${(data) => (data.items.length ? data.items.map((one) => html`<${Insight} key=${one.id} one=${one} />`)
    : html`<${Empty} icon="insights" title=${audience ? `No insight is meant for this audience` : 'No insights yet'}><p>An agent says what it found with <code>ctx.insight(…)</code>; people and agents read it here, each for their audience.</p><${Command} text="ctx.insight('decision', 'We enter the market in Q3', confidence=0.9, audience='executive')" /></${Empty}>`)}</${Loaded}></div>`;
}

function Insight({ one }) {
  const id = one.request_id || one.trace_id;
  return html`<article class="insight"><div class="line wrap"><${Status} status="accent">${words(one.type)}</${Status}><b>${one.agent_id || one.agent || ''}</b>${one.audience && html`<span class="tag">${one.audience}</span>`}${one.confidence !== undefined && one.confidence !== null && html`<span class="ink-3">confidence ${one.confidence}</span>`}${one.superseded_by && html`<span class="tag">superseded</span>`}<span class="spacer"></span><span class="ink-3"><${When} at=${one.created_at ?? one.at_ms ?? one.timestamp} /></span></div>
    <p class="text"><${Text} text=${one.summary || one.text || ''} /></p>${one.rationale && html`<p class="ink-2 text">${one.rationale}</p>`}
    ${one.evidence?.length > 0 && html`<ul class="bullets ink-2">${one.evidence.map((each) => html`<li>${typeof each === 'string' ? each : `${each.type || ''} ${each.ref || each.description || JSON.stringify(each)}`}</li>`)}</ul>`}
    <div class="line ink-3">${one.request_id && html`<a href=${href('call', one.request_id)}>The call</a>`}${one.trace_id && html`<a href=${href('insights', '', { tab: 'query', q: `{ trace:id = "${one.trace_id}" }` })}>Its trace</a>`}${one.expires_at && html`<span>until ${absolute(one.expires_at)}</span>`}</div></article>`;
}

const isMetrics = (q) => /\|\s*(rate|count_over_time|quantile_over_time|histogram_over_time|min_over_time|max_over_time|avg_over_time|sum_over_time)\s*\(/.test(q);

function Query({ q, shape }) {
  const [state, setState] = useState({ data: null, error: null, loading: false });
  const turn = useRef(0);
  const run = async (text) => {
    const mine = ++turn.current;
    setState((old) => ({ ...old, loading: true, error: null }));
    try {
      const data = isMetrics(text) ? { series: (await get('query/metrics', { q: text, since: Date.now() - RANGE_MS })).series } : await get('query', { q: text, limit: 100 });
      if (mine === turn.current) setState({ data, error: null, loading: false });
    } catch (error) { if (mine === turn.current) setState({ data: null, error, loading: false }); }
  };
  useEffect(() => { if (q) run(q); }, [q]);
  const { error } = state;
  const where = error && (error.problems?.[0]?.column ?? error.column ?? columnOf(error.message));
  const shown = error && { message: error.message, column: where ?? -1 };
  return html`<div class="bar"><${TraceQL} value=${q} error=${shown && error.status < 500 && error.status > 0 ? shown : null} onRun=${(text) => { if (text === q) run(text); else setParams({ q: text, tab: 'query' }); }} />
      <${Segmented} label="Show as" options=${[['table', 'Table'], ['tree', 'Tree'], ['chart', 'Chart']]} value=${shape} onPick=${(as) => setParams({ as: as === 'table' ? '' : as })} /></div>
    <div class="body">${!q && html`<${Empty} icon="insights" title="Ask every span a question"><p>Tempo's language, read by this node's own parser: <kbd>Ctrl Space</kbd> completes, <kbd>Enter</kbd> runs.</p><div class="stack">${EXAMPLES.map((one) => html`<a href=${href('insights', '', { tab: 'query', q: one })}><code>${one}</code></a>`)}</div></${Empty}>`}
      ${state.loading && !state.data && html`<${Loading} what="Asking" />`}${error && (error.status >= 500 || !error.status) && html`<${Failure} error=${error} />`}
      ${state.data && html`<${Results} data=${state.data} shape=${shape} />`}</div>`;
}

const columnOf = (message) => { const found = /(?:column|position|offset|at)\s+(\d+)/i.exec(message || ''); return found ? Math.max(0, Number(found[1]) - (/column/i.test(found[0]) ? 1 : 0)) : undefined; };

function Results({ data, shape }) {
  if (data.series) return html`<div class="panel"><div class="in"><${Lines} series=${data.series.map((one) => ({ name: one.name || label(one.labels), points: (one.samples || one.points || []).map((each) => (Array.isArray(each) ? each : [Number(each.timestampMs ?? each.at_ms), Number(each.value)])) }))} /></div></div>`;
  const traces = data.traces || data.items || [];
  if (!traces.length) return html`<${Empty} icon="search" title="No span matches"><p>${data.rewritten ? html`It was asked as <code>${data.rewritten}</code>.` : 'Widen the condition.'}</p></${Empty}>`;
  const spans = traces.flatMap((trace) => spansOf(trace).map((span) => ({ ...span, trace })));
  if (shape === 'chart') return html`<div class="panel"><div class="in"><${Lines} series=${[{ name: 'duration of each match, ms', points: spans.map((one) => [one.start, one.ms]).sort((a, b) => a[0] - b[0]) }]} /></div></div>`;
  const columns = [...new Set(spans.flatMap((one) => Object.keys(one.attributes)))].slice(0, 6);
  return html`${data.rewritten && html`<p class="hint">Asked as <code>${data.rewritten}</code></p>`}<p class="ink-3">${count(traces.length, 'trace')}, ${count(spans.length, 'span')}</p>
    ${shape === 'tree' ? html`<div class="stack">${traces.map((trace) => html`<details class="panel trace" open=${traces.length < 6}><summary><b>${trace.rootServiceName || ''}</b> ${trace.rootTraceName || ''} <span class="ink-3">${duration(trace.durationMs)}</span> <${Id} id=${trace.traceID} /></summary><ul class="in stack">${spansOf(trace).map((span) => html`<li class="line"><span class="grow">${span.name}</span><span class="ink-2">${duration(span.ms)}</span></li>`)}</ul></details>`)}</div>`
      : html`<div class="panel scroll"><table class="grid"><thead><tr><th>Start</th><th>Span</th><th class="num">Took</th>${columns.map((one) => html`<th>${one}</th>`)}<th>Trace</th></tr></thead><tbody>${spans.slice(0, 500).map((one) => html`<tr><td class="nowrap">${absolute(one.start)}</td><td>${one.name || one.trace.rootTraceName}</td><td class="num nowrap">${duration(one.ms)}</td>${columns.map((each) => html`<td class="text">${one.attributes[each] === undefined ? '' : String(one.attributes[each])}</td>`)}<td><${Id} id=${one.trace.traceID} /></td></tr>`)}</tbody></table></div>`}`;
}

const label = (labels) => (labels || []).map((one) => `${one.key}=${Object.values(one.value || {})[0]}`).join(', ') || 'value';

/** Return the matched spans of a trace as Tempo's search answers them. */
function spansOf(trace) {
  const sets = trace.spanSets || (trace.spanSet ? [trace.spanSet] : []);
  return sets.flatMap((set) => set.spans || []).map((span) => ({
    name: span.name || '', start: Number(span.startTimeUnixNano) / 1e6, ms: Number(span.durationNanos) / 1e6,
    attributes: Object.fromEntries((span.attributes || []).map((one) => [one.key, Object.values(one.value || {})[0]])),
  }));
}
