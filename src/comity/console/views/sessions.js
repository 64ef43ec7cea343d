// Sessions: the conversation as people read it; beside it which agent did what, and what is remembered. Export, erase.
import { html, useEffect } from '../vendor.js';
import { can, del, download, get, segment } from '../api.js';
import { go, href, route, setParams } from '../router.js';
import { onEvent } from '../live.js';
import { useKeys } from '../keys.js';
import { Spoken, Text, plainTokens } from '../json.js';
import { reveal } from '../reveal.js';
import { Bar, Empty, Hop, Id, Loaded, Status, When, act, confirm, toast, useLoad } from '../ui.js';
import { Icon } from '../icons.js';
import { count, duration, number } from '../format.js';

export function View() {
  const { id, params } = route.value;
  const list = useLoad(() => get('sessions', { user: params.user, limit: 200 }), [params.user || '']);
  useEffect(() => onEvent('gap', () => list.reload(true)), []);
  const items = list.data?.items || [];
  const at = items.findIndex((one) => one.id === id);
  useKeys('Sessions', [['j', 'Next session', () => items.length && go(href('sessions', items[Math.min(at + 1, items.length - 1)].id, params))], ['k', 'Previous session', () => items.length && go(href('sessions', items[Math.max(at - 1, 0)].id, params))]]);
  return html`<div class="view"><${Bar} title="Sessions"><form class="search" role="search" onSubmit=${(event) => { event.preventDefault(); setParams({ user: new FormData(event.target).get('user') }); }}><${Icon} name="search" /><input name="user" aria-label="User" placeholder="Sessions of one user" value=${params.user || ''} /></form></${Bar}>
    <${Loaded} state=${list} what="Reading sessions">${() => (items.length || id ? html`<div class=${`split list-left ${id ? 'has-detail' : ''}`}><nav class="items" aria-label="Sessions">${items.map((one) => html`<a key=${one.id} class="item" href=${href('sessions', one.id, params)} aria-current=${one.id === id ? 'true' : null}>
        <span class="line"><b class="grow cut">${one.title ? plainTokens(one.title) : one.user_id}</b><span class="ink-3"><${When} at=${one.used_at} /></span></span><span class="line ink-2"><span class="cut grow mono">${one.id}</span>${one.turns !== undefined && html`<span>${count(one.turns, 'turn')}</span>`}</span></a>`)}</nav>
      <section class="detail" aria-label="Session">${id ? html`<${Session} key=${id} id=${id} onErased=${() => { list.reload(true); go(href('sessions')); }} />` : html`<${Empty} icon="sessions" title="Choose a session" />`}</section></div>`
      : html`<${Empty} icon="sessions" title="No sessions yet"><p>Each call belongs to a session; calls that name the same one share facts, decisions and history.</p><a class="button primary" href="#/playground">Open the playground</a></${Empty}>`)}</${Loaded}></div>`;
}

function Session({ id, onErased }) {
  const state = useLoad(() => get(`sessions/${segment(id)}`), [id]);
  const calls = useLoad(() => get('calls', { session: id, limit: 200 }), [id]);
  useEffect(() => onEvent('call', (event) => { if (event.data.session_id === id) { state.reload(true); calls.reload(true); } }), [id]);
  return html`<${Loaded} state=${state}>${(one) => html`<${Conversation} one=${one} calls=${calls.data?.items || []} onErased=${onErased} />`}</${Loaded}>`;
}

function Conversation({ one, calls, onErased }) {
  const show = can('data:reveal') ? (token) => reveal(one.id, token) : null;
  const { turns } = one;
  const erase = async () => {
    const typed = await confirm({
      title: 'Erase this session?', consequence: 'It cannot be undone. The audit keeps that the calls were made, without what was said.', action: 'Erase', type: one.id,
      notes: [`${count(turns.length, 'turn')} of conversation`, `${count(one.facts.length, 'fact')} and ${count(one.decisions.length, 'decision')}`, `what ${count(calls.length, 'call')} asked and answered`, 'the personal data that was hidden in it'],
    });
    if (!typed) return;
    const done = await act(() => del(`sessions/${segment(one.id)}`));
    if (done !== undefined) { toast('The session was erased'); onErased(); }
  };
  return html`<div class="detail-in stack wide"><div class="line wrap"><h2>${one.user_id}</h2><${Id} id=${one.id} whole /><span class="spacer"></span>
      ${can('data:reveal') && html`<button type="button" class="button" onClick=${() => act(() => download(`sessions/${segment(one.id)}/export`, {}, `session-${one.id}.json`), 'Exported')}><${Icon} name="down" size=${14} />Export</button>`}
      ${can('data:erase') && html`<button type="button" class="button danger" onClick=${erase}><${Icon} name="trash" size=${14} />Erase</button>`}</div>
    <div class="session-split"><div class="turns">${turns.length ? turns.map((turn) => html`<${Turn} turn=${turn} show=${show} />`) : html`<p class="ink-3">Nothing was said in words; the calls are beside.</p>`}</div>
      <aside class="stack wide"><section class="part"><h3>Which agent did what</h3>${calls.length ? html`<ul class="stack">${calls.slice(0, 60).map((call) => html`<li class="line"><${Status} status=${call.status || 'running'} bare> </${Status}><a class="cut grow" href=${href('call', call.request_id)}><${Hop} source=${call.source} target=${call.target} /> <span class="ink-3">${call.capability}</span></a><span class="ink-3">${duration(call.duration_ms)}</span></li>`)}</ul>` : html`<p class="ink-3">No calls are kept.</p>`}</section>
        ${!one.facts.length && !one.decisions.length && html`<section class="part"><h3>Facts and decisions</h3><p class="ink-3">None yet. An agent notes them with <code>ctx.session.learn(…)</code> and <code>.decide(…)</code>.</p></section>`}<${List} title="Facts" items=${one.facts} show=${show} /><${List} title="Decisions" items=${one.decisions} show=${show} /><${List} title="Remembered of the user" items=${one.memory} show=${show} />
        ${Object.keys(one.hidden).length > 0 && html`<section class="part"><h3>Hidden personal data</h3><dl class="facts">${Object.entries(one.hidden).map(([kind, value]) => html`<dt>${kind.toLowerCase().replaceAll('_', ' ')}</dt><dd>${number(value)}</dd>`)}</dl></section>`}</aside></div></div>`;
}

function Turn({ turn, show }) {
  const isUser = turn.role === 'user';
  return html`<div class=${`turn ${isUser ? 'user' : ''}`}><div class="by"><b>${isUser ? 'User' : turn.role}</b>${turn.status && html`<${Status} status=${turn.status} />`}${turn.at_ms && html`<${When} at=${turn.at_ms} />`}${turn.request_id && html`<a href=${href('call', turn.request_id)}>call</a>`}</div>
    <div class="say"><${Spoken} text=${turn.text || turn.task || '(nothing in words)'} reveal=${show} /></div></div>`;
}

function List({ title, items, show }) {
  if (!items?.length) return null;
  return html`<section class="part"><h3>${title}</h3><ul class="bullets">${items.map((one) => html`<li><${Text} text=${one} reveal=${show} /></li>`)}</ul></section>`;
}
