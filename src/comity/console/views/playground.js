// Playground: any capability as a form made from its schema, or a chat with an agent; the call tree grows beside it.
import { html, useEffect, useRef, useState } from '../vendor.js';
import { can, get, me, post, segment, send } from '../api.js';
import { go, href, route, setParams } from '../router.js';
import { readEvents } from '../live.js';
import { useKeys } from '../keys.js';
import { wholeCall } from '../asked.js';
import { Chat, isTalk } from '../chat.js';
import { JsonField, SchemaForm, sample } from '../form.js';
import { Waterfall, isOpen } from '../waterfall.js';
import { Json, Text } from '../json.js';
import { RULES, ruleOf } from '../rules.js';
import { Bar, Command, Empty, Failure, Loaded, Notice, Segmented, Status, toast, useLoad } from '../ui.js';
import { duration, now } from '../format.js';
import { Icon } from '../icons.js';

const TALKS = ['message', 'ORC_ROUTE']; // of an agent with a model, and of the orchestrator: shown as a chat at first

export function View() {
  const { id, params } = route.value;
  const agents = useLoad(() => get('agents'), []);
  return html`<div class="view"><${Bar} title="Playground"><span class="ink-3">Run any capability. Every rule that holds elsewhere holds here.</span></${Bar}>
    <${Loaded} state=${agents} what="Reading agents">${(data) => html`<${Ground} agents=${data.items} id=${id} params=${params} />`}</${Loaded}></div>`;
}

function Ground({ agents, id, params }) {
  const [text, setText] = useState('');
  const [agentId, code] = id.split(' ');
  const agent = agents.find((one) => one.id === agentId);
  const capability = agent?.capabilities.find((one) => one.code === code);
  const wanted = text.toLowerCase();
  if (!agents.length) {
    return html`<${Empty} icon="playground" title="This node has no agents"><p>Serve a module that has some:</p><${Command} text=${'from comity import Agent, Node\n\nanalyst = Agent("ANL", description="Financial analysis")\n\n@analyst.capability("ANL_NPV")\nasync def npv(ctx, cash_flows: list[float], discount_rate: float) -> dict:\n    return {"npv": sum(c / (1 + discount_rate) ** t for t, c in enumerate(cash_flows))}\n\nnode = Node(agents=[analyst])   # comity serve module:node'} /></${Empty}>`;
  }
  return html`<div class="play"><nav class="play-list" aria-label="Capabilities"><input aria-label="Find a capability" placeholder="Find a capability" value=${text} onInput=${(event) => setText(event.target.value)} />
      ${agents.map((one) => {
        const shown = one.capabilities.filter((each) => `${one.id} ${each.code} ${each.description || ''}`.toLowerCase().includes(wanted));
        return shown.length > 0 && html`<h3 title=${one.description || ''}>${one.id}<span class="ink-3">${shown.length}</span></h3>${shown.map((each) => html`<a key=${each.code} href=${href('playground', `${one.id} ${each.code}`)} aria-current=${one.id === agentId && each.code === code ? 'true' : null}><span class="cut">${each.code}</span></a>`)}`;
      })}</nav>
    ${capability ? html`<${Chosen} key=${id} agent=${agent} code=${code} params=${params} />`
      : html`<div class="play-form"><${Empty} icon="playground" title="Choose a capability"><p>Its inputs become a form. What a call does, down to the last agent, is drawn while it runs.</p></${Empty}></div><div></div>`}</div>`;
}

/** Read the schemas of one agent, then show the form. */
function Chosen({ agent, code, params }) {
  const state = useLoad(() => get(`agents/${segment(agent.id)}`), [agent.id]);
  const capability = state.data?.capabilities.find((one) => one.code === code);
  return capability ? html`<${Run} agent=${agent} capability=${capability} params=${params} />` : html`<div class="play-form"><${Loaded} state=${state} what="Reading the schema">${() => html`<p>${agent.id} has no ${code}.</p>`}</${Loaded}></div><div></div>`;
}

function Run({ agent, capability, params }) {
  const schema = capability.input_schema || {};
  const isChat = isTalk(capability) && (params.as ? params.as === 'chat' : TALKS.includes(capability.code));
  const [inputs, setInputs] = useState(() => capability.examples?.[0]?.inputs ?? capability.examples?.[0] ?? sample(schema) ?? {});
  const [message, setMessage] = useState('');
  const [mode, setMode] = useState('form');
  const [options, setOptions] = useState({ user_id: me.value?.user_id || 'u1', timeout_ms: '', session_id: params.session || '' });
  const run = useRun();
  useEffect(() => {
    if (!params.from) return;
    wholeCall(params.from).then(({ request }) => { if (request) { setInputs(request.inputs ?? {}); setMessage(request.message || ''); } else toast('What this call was asked was not kept; the form begins with examples.'); }, () => {});
  }, [params.from]);
  const body = () => ({
    target: agent.id, capability: capability.code, inputs, ...(message && { message }), ...(options.user_id && { user_id: options.user_id }),
    ...(options.session_id && { session_id: options.session_id }), ...(options.timeout_ms && { timeout_ms: Number(options.timeout_ms) }),
  });
  const [dry, setDry] = useState(null);
  const start = () => { if (!isChat) { setDry(null); run.start(body()); } };
  const rehearse = () => post('calls/rehearsal', body()).then(setDry, (error) => setDry({ failure: error }));
  useEffect(() => setDry(null), [inputs, message]);
  useKeys('Playground', [['Ctrl Enter', 'Run', start, { whileTyping: true }]]);
  if (isChat) return html`<${Chat} agent=${agent} capability=${capability} run=${run} session=${params.session || ''} />`;
  const problems = run.reply?.error?.problems || run.error?.problems;
  const mayCall = can('calls:create');
  return html`<form class="play-form" aria-label="Request" onSubmit=${(event) => { event.preventDefault(); start(); }}>
      <div class="stack"><div class="line wrap"><h2>${agent.id} <span class="ink-2">${capability.code}</span></h2><span class="spacer"></span>${isTalk(capability) && html`<button type="button" class="button small" onClick=${() => setParams({ as: 'chat' })}>Chat</button>`}<${Segmented} label="Edit as" options=${[['form', 'Form'], ['json', 'JSON']]} value=${mode} onPick=${setMode} /></div>
        ${capability.description && html`<p class="ink-2">${capability.description}</p>`}</div>
      ${mode === 'form' ? html`<${SchemaForm} schema=${schema} value=${inputs} onChange=${setInputs} problems=${problems} />` : html`<label class="field"><span>inputs</span><${JsonField} value=${inputs} onChange=${(value) => setInputs(value ?? {})} rows=${12} /></label>`}
      <label class="field"><span>Message</span><textarea rows="1" value=${message} placeholder="optional" onInput=${(event) => setMessage(event.target.value)}></textarea></label>
      <details class="more"><summary>User, session, time</summary><div class="stack"><div class="two">
        <label class="field"><span>User</span><input value=${options.user_id} onInput=${(event) => setOptions({ ...options, user_id: event.target.value })} /></label>
        <label class="field"><span>Timeout, ms</span><input type="number" min="1" value=${options.timeout_ms} placeholder=${capability.timeout_ms || 30000} onInput=${(event) => setOptions({ ...options, timeout_ms: event.target.value })} /></label></div>
        <label class="field"><span>Session</span><input class="mono" value=${options.session_id} placeholder="a new one" onInput=${(event) => setOptions({ ...options, session_id: event.target.value })} /></label></div></details>
      ${mayCall ? html`<div class="line run-bar"><button class="button primary" disabled=${run.isRunning}><${Icon} name="playground" size=${14} />Run</button><kbd>Ctrl ↵</kbd><button type="button" class="button" disabled=${run.isRunning} onClick=${rehearse} title="Ask the admission rules; nothing runs">Dry run</button><span class="spacer"></span>${run.isRunning && html`<button type="button" class="button danger" onClick=${run.cancel}>Cancel</button>`}</div>`
        : html`<${Notice} kind="muted" icon="key">Your token may look, not call.</${Notice}>`}
      ${dry && html`<${Rehearsal} dry=${dry} />`}${run.error && html`<${Failure} error=${run.error} />`}</form>
    <section class="play-out" aria-label="Result"><${Result} run=${run} onSession=${(session) => setOptions({ ...options, session_id: session })} /></section>`;
}

/** What the admission rules would say: nothing has run. */
function Rehearsal({ dry }) {
  if (dry.failure) return html`<${Failure} error=${dry.failure} />`;
  const rule = RULES.find(([id]) => id === dry.rule);
  if (dry.admitted) return html`<${Notice} kind="success" icon="success"><b>It would be admitted.</b> <span class="ink-2">All ${dry.passed.length} rules pass now; nothing has run.</span></${Notice}>`;
  return html`<${Notice} kind="refused"><div class="stack"><div><b>It would be refused</b> by the rule “${rule ? rule[1] : dry.rule}”, after ${dry.passed.length} that pass; nothing has run.</div><div><code>${dry.error.code}</code> <span class="text">${dry.error.message}</span></div>
    ${dry.error.advice && html`<div class="ink-2">${dry.error.advice}</div>`}${(dry.error.problems || []).map((one) => html`<div><code>${one.path}</code> ${one.message}</div>`)}</div></${Notice}>`;
}

/** Start a call, follow its events, keep its tree: `{rows, text, reply, error, isRunning, start, cancel}`. */
function useRun() {
  const [state, setState] = useState({ id: '', rows: [], text: '', notes: [], reply: null, error: null, isRunning: false });
  const stop = useRef(null);
  useEffect(() => () => stop.current?.abort(), []);
  const start = async (body) => {
    stop.current?.abort();
    const abort = new AbortController();
    stop.current = abort;
    const now = { id: '', rows: [], text: '', notes: [], reply: null, error: null, isRunning: true };
    const show = () => { if (!abort.signal.aborted) setState({ ...now, rows: [...now.rows] }); };
    show();
    try {
      const started = await post('calls', body, { params: { wait: 'false' }, replies: true, signal: abort.signal });
      now.id = started.request_id;
      if (!isOpen(started.status)) now.reply = started;
      else {
        const response = await send('GET', `calls/${segment(now.id)}/events`, { headers: { Accept: 'text/event-stream' }, signal: abort.signal });
        if (response.ok) {
          let painted = 0;
          await readEvents(response.body, ({ event, data }) => {
            if (event === 'reply') now.reply = data; else take(now, event, data);
            if (!painted) painted = requestAnimationFrame(() => { painted = 0; show(); });
          });
        }
      }
    } catch (error) {
      if (error.name === 'AbortError') return;
      now.error = error;
    }
    now.isRunning = false;
    show();
  };
  const cancel = () => { if (state.id) post(`calls/${segment(state.id)}/cancel`).catch(() => {}); };
  return { ...state, start, cancel };
}

/** Take one event of a call tree into what is shown. */
function take(now, kind, event) {
  if (!event?.request_id) return;
  let row = now.rows.find((one) => one.request_id === event.request_id);
  if (!row) {
    row = { request_id: event.request_id, parent_id: event.parent_id, target: event.target, capability: event.capability, created_at: event.at_ms, status: 'queued' };
    now.rows.push(row);
  }
  if (kind === 'started') row.status = 'running';
  else if (kind === 'text') { if (!event.parent_id) now.text += typeof event.data === 'string' ? event.data : event.data?.text || ''; }
  else if (kind === 'progress') now.notes = [...now.notes.slice(-20), { who: event.target, data: event.text || event.data }];
  else if (kind === 'refused') Object.assign(row, { status: 'refused', error_code: event.data?.code, note: event.data?.message, duration_ms: 0 });
  else if (kind === 'settled') Object.assign(row, { status: event.data?.status, error_code: event.data?.code, duration_ms: event.data?.ms });
}

function Result({ run, onSession }) {
  const [selected, setSelected] = useState('');
  if (!run.rows.length && !run.reply && !run.isRunning) return html`<${Empty} icon="tree" title="Nothing has run yet"><p>The answer and the tree of calls appear here while they happen.</p></${Empty}>`;
  const { reply } = run;
  return html`<div class="stream"><div class="line wrap"><${Status} status=${reply?.status || 'running'} />${reply && html`<span class="ink-2">${duration(reply.duration_ms)}</span>`}<span class="spacer"></span>
      ${reply?.session_id && html`<button type="button" class="button small" onClick=${() => onSession(reply.session_id)} title="Use this session for the next call">Go on in this session</button>`}${run.id && html`<a class="button small" href=${href('call', run.id)}>Open the call</a>`}</div>
    ${run.text && !reply && html`<p class="text">${run.text}</p>`}
    ${!reply && run.notes.slice(-3).map((one) => html`<p class="hint">${one.who}: ${typeof one.data === 'string' ? one.data : JSON.stringify(one.data)}</p>`)}
    ${reply?.error && html`<div class="stack"><div><code class=${`s-${reply.status} tint`}>${reply.error.code}</code>${reply.status === 'refused' && ruleOf(reply.error.code) >= 0 && html` <span class="ink-2">refused by the rule “${RULES[ruleOf(reply.error.code)][1]}”</span>`}</div><span class="text">${reply.error.message}</span>${reply.error.advice && html`<span class="ink-2">${reply.error.advice}</span>`}${(reply.error.problems || []).map((one) => html`<div><code>${one.path}</code> ${one.message}</div>`)}</div>`}
    ${reply?.message && html`<p><${Text} text=${reply.message} /></p>`}${reply?.data !== undefined && reply?.data !== null && html`<${Json} value=${reply.data} label="reply" />`}</div>
    <${Waterfall} rows=${run.rows} now=${run.isRunning ? now.value : undefined} selected=${selected} onSelect=${(id) => { setSelected(id); if (!run.isRunning) go(href('call', run.id, { at: id })); }} />`;
}
