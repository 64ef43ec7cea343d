// Workflows: definitions and runs; the graph with the run drawn on it, replay over its history, fork, answer a pause.
import { html, useEffect, useMemo, useState } from '../vendor.js';
import { can, get, me, post, segment } from '../api.js';
import { go, href, route, setParams } from '../router.js';
import { onEvent } from '../live.js';
import { useKeys } from '../keys.js';
import { Graph } from '../graph.js';
import { JsonField, SchemaForm, sample } from '../form.js';
import { Json } from '../json.js';
import { Bar, Command, Empty, Failure, Id, Loaded, Notice, Segmented, Status, When, act, confirm, look, useLoad, words } from '../ui.js';
import { Icon } from '../icons.js';
import { absolute, count, money, number } from '../format.js';

const SIZE = { width: 176, height: 56, gapX: 148, gapY: 26 };
const PLAY_MS = 400;
/** Return what a run cost as a call's row says it; nothing where no token has a price. */
const costOf = (run) => (run.unpriced_tokens && run.unpriced_tokens === run.tokens ? null : run.tokens ? { amount: run.cost, currency: run.currency, unpriced_tokens: run.unpriced_tokens } : null);

export function View() {
  const { id, params } = route.value;
  return html`<div class="view">${id ? html`<${Run} key=${id} id=${id} params=${params} />` : html`<${Home} params=${params} />`}</div>`;
}

function Home({ params }) {
  const tab = params.tab || 'runs';
  return html`<${Bar} title="Workflows"><${Segmented} label="Show" options=${[['runs', 'Runs'], ['definitions', 'Definitions'], ['check', 'Check']]} value=${tab} onPick=${(next) => setParams({ tab: next === 'runs' ? '' : next, name: '' })} /></${Bar}>
    ${tab === 'runs' && html`<${Runs} />`}${tab === 'definitions' && html`<${Definitions} name=${params.name} />`}${tab === 'check' && html`<${Check} />`}`;
}

function Runs() {
  const state = useLoad(() => get('runs', { limit: 200 }), []);
  useEffect(() => {
    let timer = 0;
    const soon = () => { timer ||= setTimeout(() => { timer = 0; state.reload(); }, 400); };
    const stops = ['call', 'run', 'gap'].map((kind) => onEvent(kind, soon));
    return () => { stops.forEach((stop) => stop()); clearTimeout(timer); };
  }, []);
  return html`<div class="body flush"><${Loaded} state=${state} what="Reading runs">${(data) => (data.items.length ? html`<table class="grid"><thead><tr><th>Status</th><th>Workflow</th><th>User</th><th class="num">Steps</th><th class="num">Tokens</th><th class="num">Cost</th><th>Started</th><th>Waits for</th><th>Run</th></tr></thead>
      <tbody>${data.items.map((one) => html`<tr key=${one.run_id}><td><${Status} status=${one.status} /></td><td><a href=${href('workflows', one.run_id)}>${one.workflow}</a> <span class="ink-3">${one.version}</span>${one.forked_from && html` <span class="tag">fork</span>`}</td><td>${one.user_id}</td><td class="num">${number(one.steps || 0)}</td><td class="num">${number(one.tokens || 0)}</td><td class="num">${money(costOf(one), one.tokens)}</td><td class="nowrap"><${When} at=${one.created_at} /></td><td>${(one.questions || []).map((each) => each.text).join('; ') || (one.waits_for || []).join(', ') || ''}</td><td><${Id} id=${one.run_id} /></td></tr>`)}</tbody></table>`
    : html`<${Empty} icon="workflows" title="No runs yet"><p>Start a workflow that the node knows, or add one in Python:</p><${Command} text=${'node.workflows.add(open("flow.yaml").read())'} /><button type="button" class="button primary" onClick=${() => setParams({ tab: 'definitions' })}>Show definitions</button></${Empty}>`)}</${Loaded}></div>`;
}

function Definitions({ name }) {
  const state = useLoad(() => get('workflows'), []);
  return html`<${Loaded} state=${state} what="Reading workflows">${(data) => {
    const open = data.items.find((one) => one.name === name) || data.items[0];
    if (!open) return html`<${Empty} icon="workflows" title="The node knows no workflow"><p>A workflow is a YAML document: nodes that call agents, ask people, aggregate, wait; edges with conditions.</p><${Command} text=${'node.workflows.add("""\nworkflow: greet\nnodes:\n  hello: {call: HELLO/HELLO_SAY, input: {name: "{{input.name}}"}}\n""")'} /></${Empty}>`;
    return html`<div class="split list-left has-both"><nav class="items" aria-label="Workflows">${data.items.map((one) => html`<a key=${one.name} class="item" href=${href('workflows', '', { tab: 'definitions', name: one.name })} aria-current=${one === open ? 'true' : null}><b>${one.name}</b><span class="ink-2">${count(one.nodes.length, 'node')}${one.version ? `, version ${one.version}` : ''}</span></a>`)}</nav>
      <section class="detail" aria-label="Definition"><${Definition} key=${open.name} one=${open} /></section></div>`;
  }}</${Loaded}>`;
}

function Definition({ one }) {
  const [input, setInput] = useState(() => (one.input_schema ? sample(one.input_schema) : {}));
  const [error, setError] = useState(null);
  const start = async (event) => {
    event.preventDefault();
    try { const run = await post(`workflows/${segment(one.name)}/runs`, { input, user_id: me.value?.tenant_id ? undefined : me.value?.user_id }); go(href('workflows', run.run_id)); } catch (failure) { setError(failure); }
  };
  return html`<div class="detail-in stack wide"><div><h2>${one.name}</h2>${one.description && html`<p class="ink-2">${one.description}</p>`}</div>
    <div class="panel scroll"><div class="in"><${Drawing} definition=${one} states=${{}} /></div></div>
    ${can('workflows:run') && html`<form class="stack" onSubmit=${start}><h3>Start a run</h3>${one.input_schema ? html`<${SchemaForm} schema=${one.input_schema} value=${input} onChange=${setInput} />` : html`<label class="field"><span>input, JSON</span><${JsonField} value=${input} onChange=${setInput} rows=${4} /></label>`}
      ${error && html`<${Failure} error=${error} />`}<div><button class="button primary"><${Icon} name="playground" size=${14} />Start</button></div></form>`}
    <section class="part"><h3>Document</h3><${Json} value=${one.document} label="document" /></section></div>`;
}

function Check() {
  const [text, setText] = useState('workflow: greet\nnodes:\n  hello: {call: HELLO/HELLO_SAY}\n');
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { const timer = setTimeout(() => post('workflows/check', { source: text }).then((answer) => { setFound(answer); setError(null); }, setError), 400); return () => clearTimeout(timer); }, [text]);
  return html`<div class="body"><div class="split-even"><label class="field"><span>A definition, YAML or JSON</span><textarea class="yaml" rows="24" spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label>
    <div class="stack">${error && html`<${Failure} error=${error} />`}${found && (found.mistakes.length ? html`<ul class="stack">${found.mistakes.map((one) => html`<li><${Notice} kind="error"><b>line ${one.line}, column ${one.column}</b> <code>${one.path}</code><div class="text">${one.message}</div></${Notice}></li>`)}</ul>` : html`<${Notice} kind="success">No mistakes: it fits the agents of this node.</${Notice}>`)}</div></div></div>`;
}

/** Return the state of each node after so many events of a history, and its last data. */
export function statesAt(history, upTo) {
  const states = {};
  for (const event of history) {
    if (event.number > upTo) break;
    if (!event.node) continue;
    const known = states[event.node] || { status: '', turns: 0, events: [] };
    const status = { scheduled: 'running', asked: 'needs_input', answered: 'success', waiting: 'queued', listening: 'queued', fired: 'success', stopping: 'cancelled', undoing: 'partial', settled: event.status || 'success' }[event.kind];
    states[event.node] = { status: status || known.status, turns: known.turns + (event.kind === 'scheduled' || event.kind === 'asked' ? 1 : 0), events: [...known.events, event] };
  }
  return states;
}

const LOOK = { failure: 'error', clarification_needed: 'needs_input', completed: 'success', retry_with_instruction: 'partial' };

function Drawing({ definition, states, selected, onPick }) {
  const box = (node) => {
    const state = states[node.id];
    const status = state && (LOOK[state.status] || state.status);
    const inside = html`<rect class="graph-box" width=${SIZE.width} height=${SIZE.height} rx="8" />${state && html`<circle class="node-state" cx=${SIZE.width - 16} cy="17" r="5" />`}
      <text class="box-name" x="12" y="22">${cut(node.id, 20)}</text><text class="box-line" x="12" y="41">${cut(state ? `${words(status)}${state.turns > 1 ? `, ${state.turns} times` : ''}` : node.label, 27)}</text>`;
    const name = `${node.id}, ${node.label}${state ? `, ${words(status)}` : ''}`;
    return onPick ? html`<a href=${href('workflows', route.value.id, { ...route.value.params, node: node.id })} aria-label=${name} class=${`step ${status ? `s-${look(status)}` : ''} ${selected === node.id ? 'selected' : ''}`}><title>${node.label}</title>${inside}</a>`
      : html`<g class="step"><title>${name}</title>${inside}</g>`;
  };
  const line = (edge) => ({ label: cut(edge.label, 20), title: edge.label, class: states[edge.source] && states[edge.target] ? 'taken' : '' });
  return html`<${Graph} label=${`Graph of ${definition.name}`} nodes=${definition.nodes} edges=${definition.edges} size=${SIZE} box=${box} line=${line} />`;
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function Run({ id, params }) {
  const state = useLoad(() => get(`runs/${segment(id)}`), [id]);
  const isOver = ['completed', 'failed', 'cancelled'].includes(state.data?.run.status);
  useEffect(() => {
    if (isOver) return undefined;
    const timer = setInterval(() => state.reload(), 1_000);
    return () => clearInterval(timer);
  }, [isOver, id]);
  return html`<${Loaded} state=${state} what="Reading the run">${(data) => html`<${Running} data=${data} params=${params} reload=${() => state.reload()} />`}</${Loaded}>`;
}

function Running({ data, params, reload }) {
  const { run, definition, history } = data;
  const last = history.at(-1)?.number ?? 0;
  const at = params.at === undefined ? last : Math.min(Number(params.at), last);
  const isNow = at >= last;
  const [playing, setPlaying] = useState(false);
  const states = useMemo(() => statesAt(history, at), [history, at]);
  const move = (to) => setParams({ at: to >= last ? undefined : Math.max(0, to) });
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setTimeout(() => { if (at >= last) setPlaying(false); else move(at + 1); }, PLAY_MS);
    return () => clearTimeout(timer);
  }, [playing, at]);
  const play = () => { if (isNow) move(0); setPlaying(!playing); };
  useKeys('Run', [['ArrowLeft', 'One event back', () => move(at - 1)], ['ArrowRight', 'One event on', () => move(at + 1)], ['Escape', 'Back to the runs', () => go(href('workflows'))]]);
  const cancel = async () => {
    if (!await confirm({ title: 'Cancel this run?', consequence: 'What runs is stopped. Steps that declare how they are undone are undone, in reverse order.', action: 'Cancel the run' })) return;
    await act(() => post(`runs/${segment(run.run_id)}/cancel`, {}), 'Cancel was sent');
    reload();
  };
  const isOver = ['completed', 'failed', 'cancelled'].includes(run.status);
  return html`<${Bar} crumb="Workflows" title=${run.workflow}><${Status} status=${run.status} /><span class="ink-2">${count(run.steps || 0, 'step')} · ${number(run.tokens || 0)} tokens${run.tokens ? `, cost ${money(costOf(run), run.tokens)}` : ''} · <${When} at=${run.created_at} /></span><span class="spacer"></span><${Id} id=${run.run_id} />
      <a class="button" href=${href('call', run.run_id)}>Call tree</a>${can('workflows:run') && html`<${Fork} run=${run} at=${at} isNow=${isNow} history=${history} />`}${!isOver && can('workflows:run') && html`<button type="button" class="button danger" onClick=${cancel}>Cancel</button>`}</${Bar}>
    ${(run.questions || []).map((one) => html`<div class="pad" key=${one.question_id}><${Question} run=${run} one=${one} reload=${reload} /></div>`)}
    ${run.error_code && html`<div class="pad"><${Notice} kind="error"><code>${run.error_code}</code> ${run.error_message}</${Notice}></div>`}
    <div class="scrub"><button type="button" class="icon-button" aria-label=${playing ? 'Pause' : 'Play'} onClick=${play}><${Icon} name=${playing ? 'pause' : 'playground'} /></button>
      <input type="range" aria-label="Replay: event" min="0" max=${last} value=${at} onInput=${(event) => { setPlaying(false); move(Number(event.target.value)); }} />
      <span class="nowrap ink-2">event ${number(at + 1)} of ${number(last + 1)}${isNow ? '' : ', as it was'}</span></div>
    <div class="run-canvas"><${Drawing} definition=${definition} states=${states} selected=${params.node} onPick=${true} /></div>
    <div class="split call-split has-both"><${Timeline} history=${history} at=${at} node=${params.node} onMove=${move} /><section class="detail" aria-label="Step"><${Step} definition=${definition} states=${states} node=${params.node} history=${history} at=${at} /></section></div>`;
}

function Question({ run, one, reload }) {
  const [text, setText] = useState('');
  const send = async (value) => { await act(() => post(`runs/${segment(run.run_id)}/answer`, { question_id: one.question_id, answer: value }), 'The answer was sent'); reload(); };
  return html`<${Notice} kind="needs_input"><form class="stack" aria-label="Question" onSubmit=${(event) => { event.preventDefault(); send(text); }}><b class="text">${one.text}</b><span class="hint">${one.node} waits for a person.</span>
    ${can('workflows:run') ? (one.options?.length ? html`<div class="line wrap">${one.options.map((option) => html`<button type="button" class="button" onClick=${() => send(option)}>${String(option)}</button>`)}</div>` : html`<div class="line"><input aria-label="Answer" value=${text} onInput=${(event) => setText(event.target.value)} /><button class="button primary" disabled=${!text.trim()}>Answer</button></div>`) : html`<span class="hint">Your token may look, not answer.</span>`}</form></${Notice}>`;
}

function Fork({ run, at, isNow, history }) {
  const fork = async () => {
    const started = history.find((one) => one.kind === 'started');
    const text = await confirm({ title: isNow ? 'Run it again from the end?' : `Fork from event ${at + 1}?`, consequence: `A new run does what this one did up to event ${at + 1}, without calling anybody again, and goes on from there. This run stays as it is. Leave the field empty to keep the input, or write another as JSON.`, action: 'Fork', danger: false, field: `Input, instead of ${JSON.stringify(started?.data ?? null).slice(0, 200)}` });
    if (!text) return;
    let body = { at: at + 1 }; // the API counts how many events the fork shares
    try { if (text !== true && text.trim()) body = { at: at + 1, input: JSON.parse(text) }; } catch { await act(() => Promise.reject(new Error('The input is not JSON.'))); return; }
    const made = await act(() => post(`runs/${segment(run.run_id)}/fork`, body), 'Forked');
    if (made) go(href('workflows', made.run_id));
  };
  return html`<button type="button" class="button" onClick=${fork}><${Icon} name="fork" size=${14} />Fork here</button>`;
}

function Timeline({ history, at, node, onMove }) {
  const shown = history.filter((one) => !node || one.node === node || !one.node);
  return html`<div class="items" role="group" aria-label="Events" tabindex="0">${shown.map((one, index) => html`<button type="button" key=${index} class=${`item event ${one.number > at ? 'later' : ''}`} aria-current=${one.number === at ? 'true' : null} onClick=${() => onMove(one.number)}><span class="line"><span class="mono ink-3">${one.number + 1}</span><${Status} status=${LOOK[one.status] || { scheduled: 'running', asked: 'needs_input', ended: one.status, started: 'muted' }[one.kind] || one.status || 'muted'}>${words(one.kind)}</${Status}><b class="cut grow">${one.place || one.node || ''}</b><span class="ink-3">${absolute(one.at_ms).slice(11, 23)}</span></span></button>`)}</div>`;
}

function Step({ definition, states, node, history, at }) {
  const found = definition.nodes.find((one) => one.id === node);
  if (!found) {
    const started = history.find((one) => one.kind === 'started'), ended = history.findLast((one) => one.kind === 'ended' && one.number <= at);
    return html`<div class="detail-in stack wide"><section class="part"><h3>Input</h3><${Json} value=${started?.data ?? null} label="input" /></section>${ended && html`<section class="part"><h3>Result</h3><${Json} value=${ended.data ?? null} label="result" /></section>`}<p class="hint">Choose a node to see its step.</p></div>`;
  }
  const state = states[node];
  return html`<div class="detail-in stack wide"><div class="line"><h2>${node}</h2><span class="ink-2 cut">${found.label}</span></div>${state ? state.events.filter((one) => one.data !== undefined && one.data !== null).map((one) => html`<section class="part"><h3>${{ scheduled: 'Given', settled: 'Answered', asked: 'Asked a person' }[one.kind] || words(one.kind)}, event ${one.number + 1}${one.place && one.place !== node ? `, ${one.place}` : ''}</h3><${Json} value=${one.data} label="data" /></section>`) : html`<p class="ink-3">It has not been reached${at < (history.at(-1)?.number ?? 0) ? ' at this event' : ''}.</p>`}</div>`;
}
