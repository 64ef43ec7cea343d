// Guidance: what people ask of agents. Edit with validation, preview what it would block, answer open questions.
import { html, useEffect, useState } from '../vendor.js';
import { can, get, post, put, segment } from '../api.js';
import { route, setParams } from '../router.js';
import { Bar, Command, Empty, Failure, Loaded, Notice, Status, Tabs, act, confirm, toast, useLoad, words } from '../ui.js';
import { Text } from '../json.js';

export function View() {
  const { params } = route.value;
  const tab = params.tab || 'now';
  const state = useLoad(() => get('guidance'), []);
  const tabs = [{ id: 'now', name: 'In force' }, { id: 'edit', name: 'Edit' }, { id: 'questions', name: 'Questions', count: state.data?.document.questions?.length }];
  return html`<div class="view"><${Bar} title="Guidance"><span class="ink-3">What people ask of every agent</span></${Bar}><${Tabs} label="Guidance" tabs=${tabs} current=${tab} onPick=${(next) => setParams({ tab: next === 'now' ? '' : next })} />
    <div class="body"><${Loaded} state=${state} what="Reading the guidance">${(data) => html`${tab === 'now' && html`<${Now} data=${data} />`}${tab === 'edit' && html`<${Edit} data=${data} reload=${() => state.reload(true)} />`}${tab === 'questions' && html`<${Questions} data=${data} reload=${() => state.reload(true)} />`}`}</${Loaded}></div></div>`;
}

const documentOf = (data) => data.document;

function Now({ data }) {
  const it = documentOf(data);
  const constraints = it.constraints || [];
  if (!Object.keys(it).length) {
    return html`<${Empty} icon="guidance" title="No guidance is set"><p>People set a focus, constraints that block calls, preferences and questions. It holds from the next call on, for every agent.</p>
      ${data.writable ? html`<button type="button" class="button primary" onClick=${() => setParams({ tab: 'edit' })}>Write some</button>` : html`<p>This node was given none:</p><${Command} text=${'Node(agents, guidance=".comity/project.yaml")'} />`}</${Empty}>`;
  }
  return html`<div class="stack wide">${data.failure && html`<${Notice} kind="warn">A newer document has not taken force: ${data.failure}</${Notice}>`}<div class="panels">
    ${it.focus && html`<section class="panel"><header><h2>Focus</h2>${it.focus.until && html`<span class="ink-3">until ${it.focus.until}</span>`}</header><div class="in stack"><p class="text">${(it.focus.areas || []).join(', ')}</p>${it.focus.reason && html`<p class="ink-2 text">${it.focus.reason}</p>`}</div></section>`}
    ${constraints.length > 0 && html`<section class="panel"><header><h2>Constraints</h2><span class="ink-3">${constraints.length}</span></header><ul class="in stack wide">${constraints.map((one) => html`<li class="stack"><div class="line"><${Status} status=${one.severity === 'blocking' ? 'refused' : 'warn'}>${one.severity}</${Status}><code>${one.id}</code><span class="spacer"></span><code class="ink-3">${one.scope || '**'}</code></div><div class="text">${one.rule}</div>${one.reason && html`<div class="hint">${one.reason}</div>`}</li>`)}</ul></section>`}
    ${(it.preferences || []).length > 0 && html`<section class="panel"><header><h2>Preferences</h2></header><ul class="in bullets-in stack">${it.preferences.map((one) => html`<li class="stack"><span class="text">${one.preference}</span>${one.reason && html`<span class="hint">${one.reason}</span>`}</li>`)}</ul></section>`}
    ${(it.context || []).length > 0 && html`<section class="panel"><header><h2>Context</h2></header><ul class="in stack">${it.context.map((one) => html`<li class="stack"><b>${one.topic}</b><span class="text ink-2">${one.content}</span></li>`)}</ul></section>`}</div></div>`;
}

function Edit({ data, reload }) {
  const [text, setText] = useState(data.source);
  const [error, setError] = useState(null);
  const [preview, setPreview] = useState(null);
  const mayWrite = can('guidance:write') && data.writable;
  const look = async () => {
    try { setPreview(await post('guidance/preview', { source: text })); setError(null); return true; } catch (failure) { setError(failure); setPreview(null); return false; }
  };
  useEffect(() => { const timer = setTimeout(() => { if (text) look(); }, 500); return () => clearTimeout(timer); }, [text]);
  const save = async () => {
    if (!await look()) return;
    if (!await confirm({ title: 'Put this guidance in force?', consequence: 'It holds for every call from now on. Calls that a blocking constraint matches are refused with GUIDANCE_BLOCKED.', action: 'Put in force', danger: false })) return;
    try { await put('guidance', { source: text }); toast('The guidance is in force'); setError(null); reload(); } catch (failure) { setError(failure); }
  };
  const concerns = preview?.concerns || [];
  return html`<div class="split-even"><div class="stack"><label class="field"><span>Guidance, YAML or JSON</span><textarea class="yaml" rows="22" spellcheck="false" value=${text} disabled=${!mayWrite} aria-invalid=${error ? 'true' : 'false'} onInput=${(event) => setText(event.target.value)}></textarea></label>
      ${mayWrite ? html`<div class="line"><button type="button" class="button primary" onClick=${save} disabled=${Boolean(error)}>Save</button><button type="button" class="button" onClick=${look}>Preview</button></div>` : html`<${Notice} kind="muted" icon="key">${!data.writable ? 'This node reads its guidance from elsewhere; change it there.' : 'Your token may look, not write.'}</${Notice}>`}</div>
    <div class="stack wide">${error && html`<${Failure} error=${error} />`}
      ${preview && !error && html`<section class="panel"><header><h2>What it would block or warn of</h2></header>${concerns.length ? html`<table class="grid"><thead><tr><th>Capability or tool</th><th>Constraint</th><th>When</th></tr></thead><tbody>${concerns.map((one) => html`<tr><td><b>${one.agent}</b> ${one.capability}</td><td><${Status} status=${one.severity === 'blocking' ? 'refused' : 'warn'}>${one.severity}</${Status}> <code>${one.constraint}</code></td><td>${one.always ? 'always' : html`where its inputs touch <code>${one.scope}</code>`}</td></tr>`)}</tbody></table>` : html`<p class="in ink-3">No capability or tool declares that it touches something a constraint covers.</p>`}</section>`}</div></div>`;
}

function Questions({ data, reload }) {
  const list = documentOf(data).questions || [];
  const reply = async (one) => {
    const text = await confirm({ title: 'Answer this question', consequence: one.question, action: 'Answer', danger: false, field: 'Answer', fieldRequired: true });
    if (text) { await act(() => post(`guidance/questions/${segment(one.id)}/answer`, { answer: text }), 'Answered'); reload(); }
  };
  if (!list.length) return html`<${Empty} icon="guidance" title="No open questions"><p>A question in the guidance is put to the agents; their answers come back as insights with evidence.</p></${Empty}>`;
  return html`<div class="stack">${list.map((one) => html`<article class="panel"><header><${Status} status=${one.status === 'answered' ? 'success' : 'needs_input'}>${words(one.status || 'open')}</${Status}><b class="grow text">${one.question}</b>${one.priority && html`<span class="tag">${one.priority}</span>`}</header><div class="in stack">
    ${(one.answers || []).map((each) => html`<div class="stack"><${Text} text=${each.answer || ''} /><span class="hint">${each.agentId || each.agent_id || ''}, confidence ${each.confidence}</span>${(each.evidence || []).map((proof) => html`<code>${proof.type} ${proof.ref}</code>`)}</div>`)}
    ${!one.answers?.length && html`<p class="ink-3">No answer yet.</p>`}${can('guidance:write') && html`<div><button type="button" class="button small" onClick=${() => reply(one)}>Answer</button></div>`}</div></article>`)}</div>`;
}
