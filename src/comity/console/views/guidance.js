// Guidance: what people ask of agents. Edit with validation, preview what it would block, answer open questions.
import { html, useEffect, useState } from '../vendor.js';
import { can, get, post, put, segment } from '../api.js';
import { href, route, setParams } from '../router.js';
import { Bar, Command, Empty, Failure, Hop, Loaded, Notice, Status, Tabs, When, act, confirm, toast, useLoad, words } from '../ui.js';
import { Text } from '../json.js';
import { count } from '../format.js';

export function View() {
  const { params } = route.value;
  const tab = params.tab || 'now';
  const state = useLoad(() => get('guidance'), []);
  const tabs = [{ id: 'now', name: 'In force' }, { id: 'edit', name: 'Edit' }, { id: 'questions', name: 'Questions', count: state.data?.document?.questions?.length ?? state.data?.questions?.length }];
  return html`<div class="view"><${Bar} title="Guidance"><span class="ink-3">What people ask of every agent</span></${Bar}><${Tabs} label="Guidance" tabs=${tabs} current=${tab} onPick=${(next) => setParams({ tab: next === 'now' ? '' : next })} />
    <div class="body"><${Loaded} state=${state} what="Reading the guidance">${(data) => html`${tab === 'now' && html`<${Now} data=${data} />`}${tab === 'edit' && html`<${Edit} data=${data} reload=${() => state.reload(true)} />`}${tab === 'questions' && html`<${Questions} data=${data} reload=${() => state.reload(true)} />`}`}</${Loaded}></div></div>`;
}

const documentOf = (data) => data.document || data;

function Now({ data }) {
  const it = documentOf(data);
  const constraints = it.constraints || [];
  const nothing = !constraints.length && !it.focus && !(it.preferences || []).length && !(it.context || []).length;
  if (nothing) return html`<${Empty} icon="guidance" title="No guidance is set"><p>People set a focus, constraints that block calls, preferences and questions. It holds from the next call on, for every agent.</p><button type="button" class="button primary" onClick=${() => setParams({ tab: 'edit' })}>Write some</button><${Command} text="comity guidance show" /></${Empty}>`;
  return html`<div class="panels">${it.focus && html`<section class="panel"><header><h2>Focus</h2></header><div class="in stack"><p class="text">${typeof it.focus === 'string' ? it.focus : it.focus.reason || (it.focus.areas || []).join(', ') || JSON.stringify(it.focus)}</p></div></section>`}
    <section class="panel"><header><h2>Constraints</h2><span class="ink-3">${constraints.length}</span></header><ul class="in stack">${constraints.map((one) => html`<li class="stack"><div class="line"><${Status} status=${one.severity === 'blocking' ? 'refused' : 'warn'}>${one.severity || 'warning'}</${Status}><code>${one.id || ''}</code></div><div class="text">${one.rule || one.text}</div>${one.reason && html`<div class="hint">${one.reason}</div>`}</li>`)}</ul></section>
    ${(it.preferences || []).length > 0 && html`<section class="panel"><header><h2>Preferences</h2></header><ul class="in bullets">${it.preferences.map((one) => html`<li>${typeof one === 'string' ? one : one.text || one.preference || JSON.stringify(one)}</li>`)}</ul></section>`}
    ${it.context && html`<section class="panel"><header><h2>Context</h2></header><div class="in text">${typeof it.context === 'string' ? it.context : JSON.stringify(it.context, null, 2)}</div></section>`}</div>`;
}

function Edit({ data, reload }) {
  const [text, setText] = useState(data.source ?? data.text ?? JSON.stringify(documentOf(data), null, 2));
  const [error, setError] = useState(null);
  const [preview, setPreview] = useState(null);
  const mayWrite = can('guidance:write') && data.writable !== false;
  const look = async () => {
    try { setPreview(await post('guidance/preview', { source: text })); setError(null); return true; } catch (failure) { setError(failure); setPreview(null); return false; }
  };
  useEffect(() => { const timer = setTimeout(() => { if (text) look(); }, 500); return () => clearTimeout(timer); }, [text]);
  const save = async () => {
    if (!await look()) return;
    if (!await confirm({ title: 'Put this guidance in force?', consequence: 'It holds for every call from now on. Calls that a blocking constraint matches are refused with GUIDANCE_BLOCKED.', action: 'Put in force', danger: false })) return;
    try { await put('guidance', { source: text, version: data.version }); toast('The guidance is in force'); setError(null); reload(); } catch (failure) { setError(failure); }
  };
  const blocked = preview?.blocked || preview?.items || [];
  return html`<div class="split-even"><div class="stack"><label class="field"><span>Guidance, YAML or JSON</span><textarea class="yaml" rows="22" spellcheck="false" value=${text} disabled=${!mayWrite} aria-invalid=${error ? 'true' : 'false'} onInput=${(event) => setText(event.target.value)}></textarea></label>
      ${mayWrite ? html`<div class="line"><button type="button" class="button primary" onClick=${save} disabled=${Boolean(error)}>Save</button><button type="button" class="button" onClick=${look}>Preview</button></div>` : html`<${Notice} kind="muted" icon="key">${data.writable === false ? 'This node reads its guidance from elsewhere; change it there.' : 'Your role may look, not write.'}</${Notice}>`}</div>
    <div class="stack wide">${error && html`<${Failure} error=${error} />`}
      ${preview && !error && html`<section class="panel"><header><h2>What it would have refused</h2><span class="ink-3">${preview.checked !== undefined ? `of ${count(preview.checked, 'recent call')}` : ''}</span></header>${blocked.length ? html`<ul class="in stack">${blocked.slice(0, 100).map((one) => html`<li class="line"><${Status} status="refused" bare> </${Status}><a class="grow cut" href=${href('call', one.request_id)}><${Hop} source=${one.source} target=${one.target} /> ${one.capability}</a><code>${one.constraint || one.constraint_id || ''}</code></li>`)}</ul>` : html`<p class="in ink-3">None of the recent calls.</p>`}</section>`}
      ${preview?.warnings?.length > 0 && html`<${Notice} kind="warn"><ul class="bullets">${preview.warnings.map((one) => html`<li>${one}</li>`)}</ul></${Notice}>`}</div></div>`;
}

function Questions({ data, reload }) {
  const list = documentOf(data).questions || data.questions || [];
  const reply = async (one) => {
    const text = await confirm({ title: 'Answer this question', consequence: one.question || one.text, action: 'Answer', danger: false, field: 'Answer', fieldRequired: true });
    if (text) { await act(() => post(`guidance/questions/${segment(one.id)}/answer`, { answer: text }), 'Answered'); reload(); }
  };
  if (!list.length) return html`<${Empty} icon="guidance" title="No open questions"><p>A question in the guidance is put to the agents; their answers come back as insights with evidence.</p></${Empty}>`;
  return html`<div class="stack">${list.map((one) => html`<article class="panel"><header><${Status} status=${one.status === 'answered' || one.answer ? 'success' : 'needs_input'}>${words(one.status || (one.answer ? 'answered' : 'open'))}</${Status}><b class="grow text">${one.question || one.text}</b>${one.priority && html`<span class="tag">${one.priority}</span>`}</header><div class="in stack">
    ${(one.answers || (one.answer ? [one.answer] : [])).map((each) => html`<div class="stack"><${Text} text=${typeof each === 'string' ? each : each.summary || each.text || JSON.stringify(each)} />${each.agent_id && html`<span class="hint">${each.agent_id} <${When} at=${each.created_at} /></span>`}</div>`)}
    ${!one.answer && !one.answers?.length && html`<p class="ink-3">No answer yet.</p>`}${can('guidance:write') && html`<div><button type="button" class="button small" onClick=${() => reply(one)}>Answer</button></div>`}</div></article>`)}</div>`;
}
