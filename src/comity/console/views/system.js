// System: the node, its store and how it grows, what keeps up and what does not, tokens and keys, the doctor.
import { html, useEffect } from '../vendor.js';
import { can, del, get, me, segment } from '../api.js';
import { Bar, Failure, Id, Loaded, Notice, Status, When, act, confirm, useLoad, words } from '../ui.js';
import { absolute, bytes, duration, number } from '../format.js';

export function View() {
  const state = useLoad(() => get('system'), []);
  useEffect(() => { const timer = setInterval(() => state.reload(true), 5_000); return () => clearInterval(timer); }, []);
  return html`<div class="view"><${Bar} title="System"><span class="ink-3">${me.value?.node} · Comity ${me.value?.version || ''}</span></${Bar}><div class="body" tabindex="0" role="region" aria-label="State of the node"><div class="stack wide">
    <${Loaded} state=${state} what="Asking the node">${(data) => html`<${Node} data=${data} />`}</${Loaded}><${Tokens} /></div></div></div>`;
}

const Stat = ({ name, children }) => html`<div class="stat"><span>${name}</span><b>${children}</b></div>`;

function Node({ data }) {
  const { node, kinds, files, checks } = data;
  return html`<div class="stats"><${Stat} name="Up since"><${When} at=${node.started_at} /></${Stat}><${Stat} name="Running calls">${number(node.running)}</${Stat}><${Stat} name="Agents">${number(node.agents)}</${Stat}><${Stat} name="Open streams">${number(node.streams)}</${Stat}>
      ${files.length > 0 && html`<${Stat} name="On disk">${bytes(files.reduce((sum, one) => sum + one.bytes, 0))}</${Stat}>`}</div>
    <section class="panel"><header><h2>Checks</h2></header><ul class="in stack">${checks.map((one) => html`<li class="check"><${Status} status=${{ ok: 'success', warning: 'warn', failed: 'error' }[one.level]}>${one.level}</${Status}><b class="check-name">${one.name}</b><span class="grow text ink-2">${one.detail}</span></li>`)}</ul></section>
    ${kinds.length > 0 ? html`<section class="panel scroll"><header><h2>Store</h2><span class="ink-3 cut mono">${data.store}</span></header><table class="grid"><thead><tr><th>Kind</th><th class="num">Rows</th><th class="num">About</th><th class="num">Last day</th><th>Oldest</th></tr></thead><tbody>${kinds.map((one) => html`<tr><td>${one.name}</td><td class="num">${number(one.rows)}</td><td class="num">${bytes(one.bytes)}</td><td class="num">+${number(one.last_day)}</td><td><${When} at=${one.oldest_at} /></td></tr>`)}
      ${files.map((one) => html`<tr><td class="mono">${one.path.split('/').pop()}</td><td></td><td class="num">${bytes(one.bytes)}</td><td class="num ink-3">${bytes(one.free_bytes)} free</td><td></td></tr>`)}</tbody></table></section>`
      : html`<${Notice} kind="warn">This node keeps everything in memory: it is gone when the process ends. <code>Node(store="work.db")</code> keeps it.</${Notice}>`}
    <div class="panels"><section class="panel"><header><h2>Process</h2></header><dl class="facts in">${facts(node)}</dl></section><section class="panel"><header><h2>Export of spans</h2></header><dl class="facts in">${facts(data.export)}</dl></section></div>`;
}

const facts = (object) => Object.entries(object).filter(([, value]) => value !== null && value !== undefined && value !== '').map(([name, value]) => html`<dt>${words(name)}</dt><dd>${show(name, value)}</dd>`);

function show(name, value) {
  if (name.endsWith('_bytes') || name === 'bytes') return bytes(value);
  if (name.endsWith('_at')) return absolute(value);
  if (name.endsWith('_ms')) return duration(value);
  if (typeof value === 'number') return number(value);
  if (Array.isArray(value)) return value.join(', ') || 'none';
  return typeof value === 'object' ? html`<code>${JSON.stringify(value)}</code>` : String(value);
}

function Tokens() {
  const state = useLoad(() => (can('tokens:manage') ? get('tokens', { limit: 100 }) : null), []);
  if (state.error?.status === 404 || state.data === null) return null;
  const revoke = async (one) => {
    if (!await confirm({ title: 'Revoke this token?', consequence: `Requests with it are refused within a second. It belongs to ${one.subject}.`, action: 'Revoke' })) return;
    await act(() => del(`tokens/${segment(one.id)}`), 'Revoked');
    state.reload(true);
  };
  return html`<section class="panel"><header><h2>Tokens and keys</h2></header>${state.error ? html`<div class="in"><${Failure} error=${state.error} /></div>` : html`<table class="grid"><thead><tr><th>Subject</th><th>Kind</th><th>Roles</th><th>Ends</th><th>Id</th><th></th></tr></thead><tbody>${(state.data?.items || []).map((one) => html`<tr><td>${one.subject}</td><td>${one.kind}</td><td>${(one.roles || one.scopes || []).join(', ')}</td><td><${When} at=${one.expires_at} /></td><td><${Id} id=${one.id} /></td><td class="num">${can('tokens:manage') && html`<button type="button" class="button small danger" onClick=${() => revoke(one)}>Revoke</button>`}</td></tr>`)}</tbody></table>`}</section>`;
}
