// System: the node, its store and how it grows, what keeps up and what does not, tokens and keys, the doctor.
import { html, useEffect } from '../vendor.js';
import { can, del, get, me, post, segment } from '../api.js';
import { onEvent } from '../live.js';
import { Bar, Failure, Id, Loaded, Notice, Status, When, act, confirm, useLoad, words } from '../ui.js';
import { absolute, bytes, count, duration, number } from '../format.js';

export function View() {
  const state = useLoad(() => get('system'), []);
  useEffect(() => { const timer = setInterval(() => state.reload(true), 5_000); return () => clearInterval(timer); }, []);
  return html`<div class="view"><${Bar} title="System"><span class="ink-3">${me.value?.node} · Comity ${me.value?.version || ''}</span></${Bar}><div class="body"><div class="stack wide">
    <${Loaded} state=${state} what="Asking the node">${(data) => html`<${Node} data=${data} />`}</${Loaded}><${Tokens} /><${Doctor} /></div></div></div>`;
}

const Stat = ({ name, children }) => html`<div class="stat"><span>${name}</span><b>${children}</b></div>`;

function Node({ data }) {
  const { store = {}, node = {} } = data;
  return html`<div class="stats"><${Stat} name="Up since"><${When} at=${node.started_at} /></${Stat}><${Stat} name="Running calls">${number(node.running ?? 0)}</${Stat}><${Stat} name="Agents">${number(node.agents ?? 0)}</${Stat}>
      ${store.bytes !== undefined && html`<${Stat} name="Store">${bytes(store.bytes)}</${Stat}>`}${store.spans_bytes !== undefined && html`<${Stat} name="Spans">${bytes(store.spans_bytes)}</${Stat}>`}${store.audit_rows !== undefined && html`<${Stat} name="Audit rows">${number(store.audit_rows)}</${Stat}>`}${store.calls !== undefined && html`<${Stat} name="Calls kept">${number(store.calls)}</${Stat}>`}${node.memory_bytes && html`<${Stat} name="Memory">${bytes(node.memory_bytes)}</${Stat}>`}</div>
    <div class="panels"><section class="panel"><header><h2>Node</h2></header><dl class="facts in">${facts(node)}</dl></section><section class="panel"><header><h2>Store</h2></header><dl class="facts in">${facts(store)}</dl></section>
      ${data.nodes?.length > 0 && html`<section class="panel"><header><h2>Nodes of the cluster</h2></header><ul class="in stack">${data.nodes.map((one) => html`<li class="line"><${Status} status=${one.state || 'active'} />${one.id}<span class="spacer"></span><${When} at=${one.seen_at} /></li>`)}</ul></section>`}
      ${(data.exporters || []).map((one) => html`<section class="panel"><header><h2>Exporter ${one.name || ''}</h2></header><dl class="facts in">${facts(one)}</dl></section>`)}</div>`;
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

function Doctor() {
  const state = useLoad(() => get('doctor'), []);
  if (state.error?.status === 404) return null;
  return html`<section class="panel"><header><h2 class="grow">Doctor</h2><button type="button" class="button small" onClick=${() => state.reload()}>Check again</button></header><div class="in"><${Loaded} state=${state} what="Checking">${(data) => html`<ul class="stack">${(data.checks || data.items || []).map((one) => html`<li class="line"><${Status} status=${one.ok ? 'success' : one.severity === 'warning' ? 'warn' : 'error'}>${one.ok ? 'fine' : one.severity || 'problem'}</${Status}><b>${one.name}</b><span class="grow text ink-2">${one.message || one.detail || ''}</span></li>`)}</ul>`}</${Loaded}></div></section>`;
}
