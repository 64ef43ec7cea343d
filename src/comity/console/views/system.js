// System: the node, its store and how it grows, what keeps up and what does not, tokens and keys, the doctor.
import { html, useEffect, useState } from '../vendor.js';
import { can, get, me, post } from '../api.js';
import { Bar, Command, Id, Loaded, Notice, Status, When, act, confirm, useLoad } from '../ui.js';
import { absolute, bytes, count, duration, number } from '../format.js';

export function View() {
  const state = useLoad(() => get('system'), []);
  useEffect(() => { const timer = setInterval(() => state.reload(true), 5_000); return () => clearInterval(timer); }, []);
  return html`<div class="view"><${Bar} title="System"><span class="ink-3">${me.value?.node} · Comity ${me.value?.version || ''}</span></${Bar}><div class="body" tabindex="0" role="region" aria-label="State of the node"><div class="stack wide">
    <${Loaded} state=${state} what="Asking the node">${(data) => html`<${Node} data=${data} />`}</${Loaded}><${Tokens} /></div></div></div>`;
}

const Stat = ({ name, children }) => html`<div class="stat"><span>${name}</span><b>${children}</b></div>`;

/** Return a bound of the retention in words. */
function kept(bound) {
  if (!bound || (bound.age_ms === null && bound.count === null)) return 'for good';
  return [bound.age_ms !== null && `for ${duration(bound.age_ms)}`, bound.count !== null && `the newest ${number(bound.count)}`].filter(Boolean).join(', ');
}

function Node({ data }) {
  const { node, kinds, files, checks, recording, export: sent } = data;
  const lost = sent.dropped + sent.refused + sent.unstored;
  return html`<div class="stats"><${Stat} name="Up since"><${When} at=${node.started_at} /></${Stat}><${Stat} name="Running calls">${number(node.running)}</${Stat}><${Stat} name="Agents">${number(node.agents)}</${Stat}><${Stat} name="Open streams">${number(node.streams)}</${Stat}>
      ${files.length > 0 && html`<${Stat} name="On disk">${bytes(files.reduce((sum, one) => sum + one.bytes, 0))}</${Stat}>`}</div>
    <section class="panel"><header><h2>Doctor</h2><span class="ink-3">${checks.every((one) => one.level === 'ok') ? 'all is well' : 'something needs a look'}</span></header><ul class="in stack">${checks.map((one) => html`<li class="check"><${Status} status=${{ ok: 'success', warning: 'warn', failed: 'error' }[one.level]}>${one.level}</${Status}><b class="check-name">${one.name}</b><span class="grow text ink-2">${one.detail}</span></li>`)}</ul></section>
    ${kinds.length > 0 ? html`<section class="panel scroll"><header><h2>Store</h2><span class="ink-3 cut mono" title=${data.store}>${data.store.split('/').pop()}</span></header><table class="grid"><thead><tr><th>Kind</th><th class="num">Rows</th><th class="num">About</th><th class="num">Last day</th><th>Oldest</th><th>Kept</th></tr></thead><tbody>${kinds.map((one) => html`<tr><td>${one.name}</td><td class="num">${number(one.rows)}</td><td class="num">${bytes(one.bytes)}</td><td class="num">+${number(one.last_day)}</td><td><${When} at=${one.oldest_at} /></td><td class="ink-2">${kept(data.retention[one.name])}</td></tr>`)}
      ${files.map((one) => html`<tr class="file"><td class="mono">${one.path.split('/').pop()}</td><td></td><td class="num">${bytes(one.bytes)}</td><td class="num ink-3">${bytes(one.free_bytes)} free</td><td></td><td></td></tr>`)}</tbody></table></section>`
      : html`<${Notice} kind="warn">This node keeps everything in memory: it is gone when the process ends. <code>Node(store="work.db")</code> keeps it.</${Notice}>`}
    <div class="panels"><section class="panel"><header><h2>Process</h2></header><dl class="facts in"><dt>Node</dt><dd class="mono">${node.id}</dd><dt>Comity</dt><dd>${node.version}</dd><dt>Python</dt><dd>${node.python}</dd><dt>Started</dt><dd>${absolute(node.started_at)}</dd><dt>Other nodes</dt><dd>${node.peers.length ? node.peers.map((one) => html`<code>${one}</code> `) : html`<span class="ink-3">none share its store</span>`}</dd><dt>Requests</dt><dd>${number(node.in_flight)} being answered</dd></dl></section>
      <section class="panel"><header><h2>Spans</h2></header><dl class="facts in"><dt>Exported to</dt><dd>${recording.exported_to ? html`<code>${recording.exported_to}</code>` : html`<span class="ink-3">nowhere; set <code>OTEL_EXPORTER_OTLP_ENDPOINT</code></span>`}</dd><dt>Exported</dt><dd>${number(sent.exported)}</dd><dt>Waiting</dt><dd>${number(sent.waiting)}</dd><dt>Lost</dt><dd class=${lost ? 's-error tint' : ''}>${number(lost)}${lost ? ` (${number(sent.dropped)} for want of room, ${number(sent.refused)} refused, ${number(sent.unstored)} not stored)` : ''}</dd>
        ${sent.last_error && html`<dt>Last error</dt><dd class="text">${sent.last_error}</dd>`}<dt>Traces kept</dt><dd>${Math.round(recording.ratio * 100)} %</dd><dt>What was said</dt><dd>${recording.has_content ? 'is recorded, personal data hidden' : 'is not recorded'}</dd></dl></section></div>`;
}

function Tokens() {
  const state = useLoad(() => (can('tokens:manage') ? get('keys') : null), []);
  const [token, setToken] = useState('');
  if (state.data === null) return null;
  const revoke = async (event) => {
    event.preventDefault();
    if (!await confirm({ title: 'Revoke this token?', consequence: 'Requests with it are refused within a second, on every node that shares these keys. It cannot be made good again; issue another.', action: 'Revoke' })) return;
    if (await act(() => post('tokens/revoke', { token: token.trim() }), (done) => `${done.id.slice(0, 24)} is revoked`)) setToken('');
    state.reload();
  };
  return html`<section class="panel"><header><h2>Tokens and keys</h2>${state.data && html`<span class="ink-3">${state.data.issuer} signs by ${state.data.algorithm}</span>`}</header><${Loaded} state=${state} what="Reading the keys">${(data) => html`<table class="grid"><thead><tr><th>Key</th><th>State</th><th>Made</th><th>Retired</th></tr></thead><tbody>${data.keys.map((one) => html`<tr><td><${Id} id=${one.id} /></td><td><${Status} status=${{ signing: 'success', retired: 'muted', revoked: 'error' }[one.state]}>${one.state}</${Status}></td><td><${When} at=${one.created_at} /></td><td><${When} at=${one.retired_at} /></td></tr>`)}
      ${data.peers.map((one) => html`<tr><td><b>${one.issuer}</b></td><td><${Status} status="accent">trusted</${Status}></td><td colspan="2"><code>${one.scope}</code> <span class="ink-3">${one.tenants.join(', ')}</span></td></tr>`)}</tbody></table>
    <div class="in stack"><p class="ink-2">${Object.keys(data.revoked).length ? `${count(Object.keys(data.revoked).length, 'token')} revoked and not yet expired.` : 'No token is revoked.'} New ones are made, and keys rotated, at the command line:</p><${Command} text="comity token issue --user ann --role viewer" />
      <form class="line" onSubmit=${revoke}><input class="grow mono" type="password" autocomplete="off" aria-label="Token to revoke" placeholder="a token, or its id" value=${token} onInput=${(event) => setToken(event.target.value)} /><button class="button danger" disabled=${!token.trim()}>Revoke</button></form></div>`}</${Loaded}></section>`;
}
