// One call: its tree on a time axis, what was asked and answered at each hop, the limits left, why it was refused, its audit.
import { html, useEffect, useMemo, useState } from '../vendor.js';
import { can, get, post, segment } from '../api.js';
import { go, href, route, setParams } from '../router.js';
import { onEvent } from '../live.js';
import { useKeys } from '../keys.js';
import { Meter } from '../chart.js';
import { Waterfall, buildTree, isOpen, totals } from '../waterfall.js';
import { Json, Text } from '../json.js';
import { RULES, ruleOf } from '../rules.js';
import { cli, curl, pythonCode } from '../snippets.js';
import { reveal } from '../reveal.js';
import { askedOf, spanOf, wholeCall } from '../asked.js';
import { Compare } from '../compare.js';
import { AuditTable } from '../audit_rows.js';
import { Bar, Command, Empty, Failure, Hop, Id, Loaded, Loading, Notice, Status, Tabs, When, act, confirm, copy, useLoad, words } from '../ui.js';
import { Icon } from '../icons.js';
import { absolute, clock, count, duration, money, moneyNote, now, number, toMs } from '../format.js';

export function View() {
  const { id, params } = route.value;
  const tree = useLoad(() => get(`calls/${segment(id)}/tree`), [id]);
  const rows = tree.data?.items;
  const isLive = rows?.some((row) => isOpen(row.status));
  useEffect(() => onEvent('call', (event) => {
    if (rows?.length && event.data.root_id === rows[0].root_id) tree.reload(true);
  }), [rows]);
  useEffect(() => onEvent('gap', () => tree.reload(true)), []);
  useEffect(() => {
    if (!isLive) return undefined;
    const timer = setInterval(() => tree.reload(true), 1_500);
    return () => clearInterval(timer);
  }, [isLive]);
  if (!id) return html`<${Empty} icon="calls" title="No call is open"><a class="button" href="#/calls">Show calls</a></${Empty}>`;
  return html`<div class="view">${!tree.data && html`<${Bar} title="Call"><${Id} id=${id} /><span class="spacer"></span><a class="button" href="#/calls">All calls</a></${Bar}>`}<${Loaded} state=${tree} what="Reading the call">${(data) => html`<${Tree} id=${id} tree=${data} params=${params} reload=${() => tree.reload(true)} />`}</${Loaded}></div>`;
}

/** Return the rows with what was left of depth and calls when each began, and when it waited for a person. */
function withLimits({ items, limits, waits }) {
  const paused = new Map();
  for (const one of waits) if (one.until) (paused.get(one.request_id) || paused.set(one.request_id, []).get(one.request_id)).push([one.since, one.until]);
  return items.map((row, at) => ({ ...row, waits: paused.get(row.request_id), left: { depth: Math.max(0, limits.depth_max - (row.depth || 0)), calls: Math.max(0, limits.calls_max - at) } }));
}

/** Return the row to open first: the one the address names; else the deepest call that failed; else the call itself. */
function firstRow(rows, id, selected) {
  if (selected) return selected;
  const own = rows.find((row) => row.request_id === id);
  if (own && own.parent_id) return id;
  const bad = rows.filter((row) => ['error', 'timeout', 'refused'].includes(row.status));
  return (own && ['error', 'timeout', 'refused'].includes(own.status) && bad.length ? bad.at(-1).request_id : id);
}

function Tree({ id, tree, params, reload }) {
  const rows = useMemo(() => withLimits(tree), [tree]);
  const root = rows.find((row) => !row.parent_id) || rows[0];
  const selected = firstRow(rows, id, params.at);
  const row = rows.find((one) => one.request_id === selected) || root;
  const tab = params.tab || 'tree';
  const refusals = rows.filter((one) => one.status === 'refused');
  const move = (step) => {
    const at = rows.findIndex((one) => one.request_id === row.request_id);
    const next = rows[at + step];
    if (next) setParams({ at: next.request_id });
  };
  useKeys('Call', [
    ['j', 'Next row', () => move(1)], ['k', 'Previous row', () => move(-1)], ['Escape', 'Back to the calls', () => history.back()],
    ['1', 'Tree', () => setParams({ tab: '' })], ['2', 'Why refused', () => setParams({ tab: 'why' })], ['3', 'Audit', () => setParams({ tab: 'audit' })], ['4', 'Code', () => setParams({ tab: 'code' })],
  ]);
  const tabs = [{ id: 'tree', name: 'Tree', count: rows.length }, { id: 'why', name: 'Why refused', count: refusals.length }, { id: 'audit', name: 'Audit' }, { id: 'code', name: 'Copy as' }, { id: 'compare', name: 'Compare' }];
  return html`<${Head} root=${root} rows=${rows} tree=${tree} reload=${reload} />
    <${Tabs} label="Call" tabs=${tabs} current=${tab} onPick=${(next) => setParams({ tab: next === 'tree' ? '' : next })} />
    ${tab === 'tree' && html`<div class="split call-split has-both"><${Waterfall} rows=${rows} now=${rows.some((one) => isOpen(one.status)) ? now.value : undefined} selected=${row.request_id} onSelect=${(next) => setParams({ at: next })} pill=${params.show || ''} onPill=${(show) => setParams({ show })} />
      <section class="detail" aria-label="Selected call"><${Detail} key=${row.request_id} row=${row} root=${root} limits=${tree.limits} /></section></div>`}
    ${tab === 'why' && html`<div class="body"><${Why} refusals=${refusals} /></div>`}
    ${tab === 'audit' && html`<div class="body flush"><${AuditTable} params=${{ root: root.request_id }} /></div>`}
    ${tab === 'code' && html`<div class="body"><${Code} id=${row.request_id} /></div>`}
    ${tab === 'compare' && html`<div class="body"><${Compare} id=${id} other=${params.with} onOther=${(other) => setParams({ with: other })} /></div>`}`;
}

function Head({ root, rows, tree, reload }) {
  const used = useMemo(() => totals(buildTree(rows).nodes), [rows]);
  const { limits } = tree;
  const timeout = tree.deadline_at ? tree.deadline_at - root.created_at : null;
  const took = root.duration_ms ?? Math.max(0, now.value - toMs(root.created_at));
  const cancel = async () => {
    const open = rows.filter((row) => isOpen(row.status)).length;
    if (!await confirm({ title: 'Cancel this call?', consequence: `${count(open, 'call')} of this tree ${open === 1 ? 'is' : 'are'} under way and will end as cancelled. What they have done so far is not undone.`, action: 'Cancel the call' })) return;
    await act(() => post(`calls/${segment(root.request_id)}/cancel`), 'Cancel was sent');
    reload();
  };
  return html`<header class="call-head"><div class="line wrap"><a class="icon-button" href="#/calls" aria-label="Back to calls"><${Icon} name="left" /></a>
      <${Status} status=${root.status || 'running'} /><h1><${Hop} source=${root.source} target=${root.target} /> <span class="ink-2">${root.capability}</span></h1>
      <span class="spacer"></span><${Id} id=${root.request_id} />
      ${isOpen(root.status) && can('calls:cancel') && html`<button type="button" class="button danger" onClick=${cancel}>Cancel</button>`}
      <a class="button" href=${href('playground', `${root.target} ${root.capability}`, { from: root.request_id })}>Call again</a></div>
    <div class="head-facts"><span><${When} at=${root.created_at} /></span><span>user <b>${root.user_id}</b></span>
      ${root.session_id && html`<span>session <a href=${href('sessions', root.session_id)}>${root.session_id.slice(0, 16)}</a></span>`}
      ${used.refused > 0 && html`<span class="s-refused tint">${count(used.refused, 'refusal')}</span>`}${used.failed > 0 && html`<span class="s-error tint">${count(used.failed, 'failure')}</span>`}</div>
    <div class="ledger" role="group" aria-label="Limits of the tree" title=${tree.limits_of === 'node' ? 'Limits of the node; this call may have been given less' : 'Limits of this call'}>
      <${Meter} name="Time" used=${took} limit=${timeout} text=${`${duration(took)}${timeout ? ` of ${duration(timeout)}` : ''}`} />
      <${Meter} name="Depth" used=${used.depth} limit=${limits.depth_max} text=${`${used.depth}${limits.depth_max !== undefined ? ` of ${limits.depth_max}` : ''}`} />
      <${Meter} name="Calls" used=${used.calls} limit=${limits.calls_max} text=${`${number(used.calls)}${limits.calls_max ? ` of ${number(limits.calls_max)}` : ''}`} />
      <${Meter} name="Tokens" used=${root.tokens || 0} limit=${limits.tokens_max} text=${`${number(root.tokens || 0)}${limits.tokens_max ? ` of ${number(limits.tokens_max)}` : ', no limit'}`} />
      <${Meter} name="Cost" used=${0} title=${moneyNote(root.cost, root.tokens)} text=${money(root.cost, root.tokens)} /></div></header>`;
}

function Detail({ row, root, limits }) {
  const state = useLoad(() => get(`calls/${segment(row.request_id)}`), [row.request_id, row.status || '']);
  const call = state.data;
  const at = { ...row, left: { ...row.left, ...(call?.deadline_at && { ms: Math.max(0, call.deadline_at - row.created_at) }) } };
  const show = can('data:reveal') ? (token) => reveal(row.session_id || root.session_id, token) : null;
  const reply = call?.reply;
  const error = reply?.error || (row.error_code ? { code: row.error_code, message: row.note, advice: call?.advice } : null);
  return html`<div class="stack wide detail-in"><div class="line wrap"><${Status} status=${row.status || 'running'} /><h2><${Hop} source=${row.source} target=${row.target} /></h2><span class="ink-2">${row.capability}</span><span class="spacer"></span><${Id} id=${row.request_id} /></div>
    ${error && html`<${Notice} kind=${row.status === 'refused' ? 'refused' : 'error'}><div class="stack"><div><code>${error.code}</code></div><div class="text">${error.message}</div>
      ${error.advice && html`<div class="ink-2">${error.advice}</div>`}${row.status === 'refused' && ruleOf(error.code) >= 0 && html`<div>Rule: <a href=${href('call', root.request_id, { tab: 'why', at: row.request_id })}>${RULES[ruleOf(error.code)][1]}</a></div>`}</div></${Notice}>`}
    <${Left} row=${at} limits=${limits} />
    ${call && row.status !== 'refused' && html`<${Part} title="Chain"><p class="chain"><span class="tag"><${Icon} name="person" size=${12} /> ${row.user_id}</span>${[...call.chain, row.target].filter((one, index, all) => one !== all[index - 1]).map((one) => html`<span class="arrow">→</span><b>${one}</b>`)}</p></${Part}>`}
    ${state.error && html`<${Failure} error=${state.error} />`}${!call && !state.error && html`<${Loading} />`}
    ${call?.notes.length > 0 && html`<${Part} title="What was done to it"><ul class="notes">${call.notes.map((one) => html`<li><${Icon} name=${iconOf(one)} size=${14} /><span class="text">${one}</span></li>`)}</ul></${Part}>`}
    ${call && (call.request ? html`<${Asked} asked=${call.request} reveal=${show} />` : row.status !== 'refused' && html`<${AskedBefore} id=${row.request_id} reveal=${show} />`)}
    ${reply && html`<${Reply} reply=${reply} reveal=${show} />`}
    ${(row.target || '').startsWith('model:') && !isOpen(row.status) && html`<${Model} id=${row.request_id} />`}
    <${Part} title="Trace"><a href=${href('insights', '', { tab: 'query', q: `{ span.comity.request.id = "${row.request_id}" }` })}>Its spans</a></${Part}></div>`;
}

/** The icon of a note: a guardrail's verdict, a warning of a constraint, or what was hidden. */
const iconOf = (note) => (note.startsWith('guardrail ') ? 'guidance' : /warn|constraint/.test(note) ? 'warn' : 'eye');

function Asked({ asked, reveal: show }) {
  return html`${asked.objective && html`<${Part} title="Objective"><${Text} text=${asked.objective} reveal=${show} /></${Part}>`}
    ${asked.message && html`<${Part} title="Message"><${Text} text=${asked.message} reveal=${show} /></${Part}>`}
    ${asked.inputs !== undefined && html`<${Part} title="Inputs">${asked.inputs && Object.keys(asked.inputs).length ? html`<${Json} value=${asked.inputs} reveal=${show} label="inputs" />` : html`<span class="ink-3">none</span>`}</${Part}>`}`;
}

/** What an ended call was asked: its span has it where the node records content. */
function AskedBefore({ id, reveal: show }) {
  const state = useLoad(() => askedOf(id), [id]);
  if (state.data) return html`<${Asked} asked=${state.data} reveal=${show} />`;
  return state.loading ? null : html`<${Part} title="Inputs"><p class="hint">Not kept: what a call was asked leaves the store when it ends. To keep it in the spans, start the node with</p><${Command} text="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" /></${Part}>`;
}

const Part = ({ title, children }) => html`<section class="part"><h3>${title}</h3>${children}</section>`;

const MODEL_FACTS = ['gen_ai.provider.name', 'gen_ai.request.model', 'gen_ai.response.model', 'gen_ai.usage.input_tokens', 'gen_ai.usage.output_tokens', 'comity.usage.cost', 'comity.usage.currency', 'gen_ai.response.finish_reasons', 'comity.model.failed_attempts', 'comity.model.attempt_errors'];

const Money = ({ cost, tokens }) => html`<dt>Cost</dt><dd>${money(cost, tokens)}${moneyNote(cost, tokens) && html` <span class="ink-3">${moneyNote(cost, tokens)}</span>`}</dd>`;

/** What the span of a request to a model says: which model, tokens in and out, what they cost, and the attempts that failed before it. */
function Model({ id }) {
  const state = useLoad(() => spanOf(id, MODEL_FACTS), [id]);
  if (state.error) return html`<${Failure} error=${state.error} />`;
  const said = state.data;
  if (!said) return state.loading ? html`<${Loading} />` : html`<p class="hint">The span of this request is not in the store: it was sampled out, has been pruned, or is on its way.</p>`;
  const text = (value) => (typeof value === 'object' ? (value.values || []).map((one) => Object.values(one)[0]).join(', ') : String(value));
  const fact = (name, value) => value !== undefined && html`<dt>${name}</dt><dd>${text(value)}</dd>`;
  const failed = Number(said['comity.model.failed_attempts'] || 0);
  return html`<${Part} title="Model"><dl class="facts">${fact('Model', said['gen_ai.response.model'] || said['gen_ai.request.model'])}${fact('Provider', said['gen_ai.provider.name'])}
    <dt>Tokens</dt><dd>${number(Number(said['gen_ai.usage.input_tokens'] || 0))} in, ${number(Number(said['gen_ai.usage.output_tokens'] || 0))} out</dd><${Money} cost=${said['comity.usage.currency'] && { amount: Number(said['comity.usage.cost'] || 0), currency: said['comity.usage.currency'] }} tokens=${1} />${fact('Ended by', said['gen_ai.response.finish_reasons'])}
    <dt>Retries</dt><dd>${failed ? `${count(failed, 'attempt')} failed before this answer` : 'none'}</dd>${fact('Failed with', said['comity.model.attempt_errors'])}</dl></${Part}>`;
}

/** Return how long a call that has ended stood in line before it ran, in milliseconds. */
const inLine = (row) => (row.settled_at && row.duration_ms !== undefined && row.status !== 'refused' ? Math.max(0, toMs(row.settled_at) - toMs(row.created_at) - row.duration_ms - (row.waits || []).reduce((sum, [since, until]) => sum + until - since, 0)) : undefined);

function Left({ row, limits }) {
  const { left } = row;
  if (!left) return null;
  const waited = inLine(row);
  const cell = (name, value, most) => value !== undefined && value !== null && html`<div><span class="ink-3">${name}</span><b>${typeof value === 'number' ? number(value) : value}</b>${most && html`<span class="ink-3">of ${number(most)}</span>`}</div>`;
  return html`<section class="part"><h3>Left when this call began</h3><div class="left-cells">${cell('time', left.ms === undefined ? undefined : duration(left.ms))}${cell('depth', left.depth, limits.depth_max)}${cell('calls', left.calls, limits.calls_max)}${cell('tokens', left.tokens, limits.tokens_max)}${waited >= 1 && cell('stood in line', duration(waited))}</div></section>`;
}

function Reply({ reply, reveal: show }) {
  return html`${reply.message && html`<${Part} title="Message of the reply"><${Text} text=${reply.message} reveal=${show} /></${Part}>`}
    ${reply.data !== undefined && reply.data !== null && html`<${Part} title="Reply"><${Json} value=${reply.data} reveal=${show} label="reply" /></${Part}>`}
    ${reply.thought && html`<${Part} title="Thought"><${Text} text=${reply.thought} reveal=${show} /></${Part}>`}
    ${reply.warnings?.length > 0 && html`<${Part} title="Warnings"><ul class="bullets">${reply.warnings.map((one) => html`<li>${one}</li>`)}</ul></${Part}>`}
    <dl class="facts">${reply.confidence !== undefined && reply.confidence !== null && html`<dt>Confidence</dt><dd>${reply.confidence}</dd>`}
      ${reply.usage && (reply.usage.prompt_tokens || reply.usage.completion_tokens) ? html`<dt>Tokens</dt><dd>${number(reply.usage.prompt_tokens || 0)} in, ${number(reply.usage.completion_tokens || 0)} out</dd><${Money} cost=${reply.usage.cost} tokens=${1} />` : ''}
      ${reply.duration_ms !== undefined && html`<dt>Took</dt><dd>${duration(reply.duration_ms)}</dd>`}${reply.degraded && html`<dt>Degraded</dt><dd>answered by a fallback</dd>`}</dl>`;
}

/** Why each refused call of the tree was refused: the rules in order, ticks up to the one that said no. */
function Why({ refusals }) {
  if (!refusals.length) return html`<${Empty} icon="guidance" title="Nothing was refused in this tree"><p>Every call passed all ${RULES.length} admission rules.</p></${Empty}>`;
  return html`<div class="stack wide">${refusals.map((row) => html`<${Refusal} key=${row.request_id} row=${row} />`)}</div>`;
}

function Refusal({ row }) {
  const at = ruleOf(row.error_code);
  const state = useLoad(() => get(`calls/${segment(row.request_id)}`), [row.request_id]);
  const error = state.data?.reply?.error || { message: row.note || spoken(row, state.data), advice: state.data?.advice };
  const chain = state.data?.chain || [];
  return html`<article class="panel"><header><${Status} status="refused" /><h2><${Hop} source=${row.source} target=${row.target} /></h2><span class="ink-2">${row.capability}</span><span class="spacer"></span><code>${row.error_code}</code></header>
    <div class="in why"><ol class="rules">${RULES.map(([id, name, what], index) => html`<li key=${id} class=${at < 0 || index < at ? 'passed' : index === at ? 'said-no' : 'not-asked'}>
        <${Icon} name=${at < 0 || index < at ? 'success' : index === at ? 'refused' : 'cancelled'} size=${12} /><b>${name}</b><span class="ink-3">${index === at || at < 0 || index < at ? what : 'not asked'}</span></li>`)}
        ${at < 0 && html`<li class="said-no"><${Icon} name="refused" size=${12} /><b>After admission</b><span class="ink-3">${words((row.error_code || '').toLowerCase())}</span></li>`}</ol>
      <div class="stack wide"><section class="part"><h3>What the caller was told</h3><p class="text">${error.message || row.note || row.error_code}</p>${error.advice && html`<p class="ink-2">${error.advice}</p>`}</section>
        ${error.facts && Object.keys(error.facts).length > 0 && html`<section class="part"><h3>The facts</h3><dl class="facts">${Object.entries(error.facts).map(([name, value]) => html`<dt>${words(name)}</dt><dd>${typeof value === 'object' ? JSON.stringify(value) : String(value)}</dd>`)}</dl></section>`}
        ${chain.length > 0 && html`<section class="part"><h3>Who was waiting for whom</h3><p>${[...chain, row.target].map((one, i) => html`${i > 0 && html` <span class="arrow">→</span> `}<b class=${one === row.target ? 's-refused tint' : ''}>${one}</b>`)}</p></section>`}
        ${row.parent_id && html`<p><a href=${href('call', row.root_id || row.parent_id, { at: row.parent_id })}>The call that asked</a></p>`}</div></div></article>`;
}

/** Return in words why a row was refused, from what the audit keeps of it. */
const spoken = (row, data) => (row.error_code === 'ROUTING_CYCLE_DETECTED' ? `${row.target} is already waiting in ${[...(data?.chain || []), row.target].join(' → ')}` : words((row.error_code || '').toLowerCase()));

function Code({ id }) {
  const state = useLoad(() => wholeCall(id), [id]);
  return html`<${Loaded} state=${state}>${(data) => { const call = { ...data.row, request: data.request }; return html`<div class="stack wide">${[['curl', curl(call)], ['Python', pythonCode(call)], ['Command line', cli(call)]].map(([name, text]) => html`<section class="part"><div class="line"><h3 class="grow">${name}</h3><button type="button" class="button small" onClick=${() => copy(text, `Copied as ${name}`)}><${Icon} name="copy" size=${12} />Copy</button></div><pre class="code-block" tabindex="0">${text}</pre></section>`)}
    <p class="hint">The token is not part of it: <code>export COMITY_TOKEN=…</code> first.${call.request ? '' : ' What was asked was not kept; fill the inputs in.'}</p></div>`; }}</${Loaded}>`;
}
