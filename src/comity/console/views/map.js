// Map: the agents in layers by who calls whom, live; what needs a person; refusals by rule.
import { html, useEffect, useRef, useState } from '../vendor.js';
import { can, get, post, segment } from '../api.js';
import { go, href, route, setParams } from '../router.js';
import { onEvent } from '../live.js';
import { waiting } from '../waiting.js';
import { Graph } from '../graph.js';
import { ruleOf, RULES } from '../rules.js';
import { Bar, Command, Empty, Loaded, Notice, Segmented, Status, act, confirm, useLoad } from '../ui.js';
import { Icon } from '../icons.js';
import { count, duration, now, number } from '../format.js';

const RANGES = [['15m', '15 min'], ['1h', '1 h'], ['24h', '24 h']];
const RANGE_MS = { '15m': 900_000, '1h': 3_600_000, '24h': 86_400_000 };
const USER = '(user)';
const WORKFLOW = 'comity.workflow'; // in whose name runs call agents
const REFRESH_MS = 5_000;
const RECENT_MAX = 2_000;

export function View() {
  const { id, params } = route.value;
  const range = params.range || '1h';
  const state = useLoad(() => get('map', { since: Date.now() - RANGE_MS[range] }), [range]);
  const [flash, setFlash] = useState({});
  const isPart = useRef(false);
  isPart.current = state.data?.is_whole === false;
  const [recent, setRecent] = useState(() => []); // calls of the last minute: [when, agent], at most RECENT_MAX
  useEffect(() => {
    let dirty = false;
    const timer = setInterval(() => { if (dirty || isPart.current) { dirty = false; state.reload(true); } }, REFRESH_MS);
    const stop = onEvent('call', ({ data }) => {
      dirty = true;
      const edge = `${data.source || USER}>${data.target}`;
      setFlash((old) => ({ ...old, [edge]: Date.now() }));
      if (!data.settled_at) setRecent((old) => [...old.filter(([at]) => at > Date.now() - 60_000).slice(-RECENT_MAX), [Date.now(), data.target.split('/')[0]]]);
    });
    return () => { clearInterval(timer); stop(); };
  }, [range]);
  return html`<div class="view"><${Bar} title="Map"><span class="ink-3">${isPart.current ? 'The newest calls alone: the index of this store is being made' : 'Who calls whom'}</span><span class="spacer"></span>
    <${Segmented} label="Time range" options=${RANGES} value=${range} onPick=${(next) => setParams({ range: next === '1h' ? '' : next })} /></${Bar}>
    <${Loaded} state=${state} what="Drawing the map">${(data) => html`<${Drawing} data=${data} selected=${id} flash=${flash} recent=${recent} range=${range} reload=${() => state.reload(true)} />`}</${Loaded}></div>`;
}

function Drawing({ data, selected, flash, recent, range, reload }) {
  const { edges } = data;
  const since = now.value - 60_000;
  const perMinute = {};
  for (const [at, id] of recent) if (at > since) perMinute[id] = (perMinute[id] || 0) + 1;
  const agents = data.agents.map((one) => ({ ...one, perMinute: perMinute[one.id] || 0, p95_ms: Math.max(0, ...edges.filter((edge) => edge.target.split('/')[0] === one.id).map((edge) => edge.p95_ms)) }));
  if (!agents.length) {
    return html`<${Empty} icon="map" title="No agents yet"><p>Serve a module that defines some:</p><${Command} text=${'from comity import Agent, Node\n\nhello = Agent("HELLO")\n\n@hello.capability("HELLO_SAY")\nasync def say(ctx, name: str) -> str:\n    return f"Hello, {name}"\n\nnode = Node(agents=[hello])   # comity serve module:node'} /></${Empty}>`;
  }
  const links = edges.map((one) => ({ ...one, source: one.source || USER }));
  const known = new Set(agents.map((one) => one.id));
  const foreign = [...new Set(links.flatMap((one) => [one.source, one.target]))].filter((one) => one !== USER && !known.has(one)).map((id) => ({ id, isForeign: true }));
  const nodes = [...(links.some((one) => one.source === USER) ? [{ id: USER }] : []), ...agents, ...foreign];
  const most = Math.max(1, ...links.map((one) => one.calls));
  const line = (edge) => {
    const failing = edge.failed / Math.max(edge.calls, 1);
    const isLive = Date.now() - (flash[`${edge.source}>${edge.target}`] || 0) < 700;
    return {
      class: `${edge.refused && edge.refused >= edge.calls - edge.refused ? 'refusing' : failing > 0.2 ? 'failing' : ''} ${isLive ? 'live' : ''}`, width: 1.3 + 2 * (Math.log10(edge.calls + 1) / Math.max(2, Math.log10(most + 1))),
      label: `${number(edge.calls)}${edge.refused ? ` · ${number(edge.refused)} refused` : ''}${edge.failed ? ` · ${number(edge.failed)} failed` : ''}`,
      title: `${edge.source} to ${edge.target}: ${count(edge.calls, 'call')}, ${edge.failed} failed, ${edge.refused} refused, p95 ${duration(edge.p95_ms)}`,
    };
  };
  const box = (node) => html`<${Box} node=${node} isSelected=${node.id === selected} />`;
  const agent = agents.find((one) => one.id === selected);
  return html`<div class="map"><div class="map-canvas" tabindex="0" role="region" aria-label="Map of agents"><${Graph} label="Agents and the calls between them" nodes=${nodes} edges=${links} size=${{ width: 172, height: 72, gapX: 104, gapY: 26 }} box=${box} line=${line} /></div>
    <aside class="map-side" aria-label=${agent ? `Agent ${agent.id}` : 'Overview'}>${agent ? html`<${AgentCard} key=${agent.id} agent=${agent} edges=${links} reload=${reload} />` : html`<${Overview} agents=${agents} refusals=${data.refusals} range=${range} />`}</aside></div>`;
}

function Box({ node, isSelected }) {
  if (node.id === USER) return html`<g class="user"><rect class="graph-box" width="172" height="72" rx="8" /><text class="box-name" x="14" y="30">Users</text><text class="box-line" x="14" y="50">and other doors</text></g>`;
  if (node.id === WORKFLOW) return html`<a class="foreign" href=${href('workflows')} aria-label="Workflows"><rect class="graph-box" width="172" height="72" rx="8" /><text class="box-name" x="14" y="30">Workflows</text><text class="box-line" x="14" y="50">runs and their steps</text></a>`;
  const broken = Object.values(node.breakers || {}).find((one) => one !== 'closed');
  return html`<a href=${href('map', isSelected ? '' : node.id)} aria-label=${`Agent ${node.id}${broken ? ', breaker open' : ''}`} class=${`${isSelected ? 'selected' : ''} ${node.isForeign ? 'foreign' : ''}`}><rect class="graph-box" width="172" height="72" rx="8" />
    <text class="box-name" x="14" y="25">${node.id.length > 20 ? `${node.id.slice(0, 19)}…` : node.id}<title>${node.id}</title></text>
    ${node.isForeign ? html`<text class="box-line" x="14" y="45">${node.id.startsWith('model:') ? 'a model' : 'not on this node'}</text>` : html`<text class="box-line" x="14" y="43">${load(node)}</text>
    ${broken ? html`<text class="box-bad" x="14" y="60">breaker ${broken.replace('_', ' ')}</text>` : html`<text class="box-line" x="14" y="60">${node.calls ? `${count(node.calls, 'call')} · p95 ${duration(node.p95_ms)}` : 'quiet'}</text>`}`}</a>`;
}

/** Return in words what an agent has to do now. */
const load = (one) => [`${number(one.running)} of ${number(one.concurrency)} running`, one.queued && `${number(one.queued)} queued`, one.perMinute && `${number(one.perMinute)}/min`].filter(Boolean).join(' · ');

function Rank({ items, kind }) {
  const most = Math.max(1, ...items.map((one) => one.value));
  return html`<ul class="rank">${items.map((one) => html`<li class=${kind ? `s-${kind}` : ''}><span class="cut">${one.href ? html`<a href=${one.href}>${one.name}</a>` : one.name}</span><span>${one.text ?? number(one.value)}</span><span class="track"><i style=${{ width: `${(one.value / most) * 100}%` }}></i></span></li>`)}</ul>`;
}

function Overview({ agents, refusals: counts, range }) {
  const open = agents.flatMap((one) => Object.entries(one.breakers).filter(([, state]) => state !== 'closed').map(([capability, state]) => ({ id: one.id, capability, state })));
  const refusals = Object.entries(counts).sort((a, b) => b[1] - a[1]).slice(0, 8);
  const slow = agents.filter((one) => one.p95_ms > 0).sort((a, b) => b.p95_ms - a.p95_ms).slice(0, 5);
  const needs = Object.entries(waiting.value).filter(([, value]) => value > 0);
  return html`<section class="part"><h2>Needs a person</h2>${needs.length ? needs.map(([view, value]) => html`<a href=${href(view)}>${count(value, view === 'approvals' ? 'approval' : view.replace(/s$/, ''))} waiting</a>`) : html`<p class="ink-3">Nothing waits.</p>`}</section>
    <section class="part"><h2>Breakers</h2>${open.length ? open.map((one) => html`<a class="line" href=${href('map', one.id)}><${Status} status="error">${one.state.replace('_', ' ')}</${Status}><span class="cut">${one.id} ${one.capability}</span></a>`) : html`<p class="ink-3">All closed.</p>`}</section>
    <section class="part"><h2>Refused, by rule</h2>${refusals.length ? html`<${Rank} kind="refused" items=${refusals.map(([code, value]) => ({ name: ruleOf(code) >= 0 ? RULES[ruleOf(code)][1] : code, value, href: href('calls', '', { q: `code:${code} since:${range}`, all: 1 }) }))} />` : html`<p class="ink-3">Nothing was refused.</p>`}</section>
    <section class="part"><h2>Slowest agents, p95</h2>${slow.length ? html`<${Rank} items=${slow.map((one) => ({ name: one.id, value: one.p95_ms, text: duration(one.p95_ms), href: href('map', one.id) }))} />` : html`<p class="ink-3">No calls in this range.</p>`}</section>`;
}

function AgentCard({ agent, edges, reload }) {
  const state = useLoad(() => get(`agents/${segment(agent.id)}`), [agent.id]);
  const inbound = edges.filter((one) => one.target === agent.id), outbound = edges.filter((one) => one.source === agent.id);
  const reset = async (breaker) => {
    if (!await confirm({ title: `Close the breaker of ${breaker.capability}?`, consequence: 'Calls are let through again at once. If the capability still fails, the breaker opens again after as many failures as before.', action: 'Close the breaker', danger: false })) return;
    await act(() => post('breakers/reset', { agent: agent.id, capability: breaker.capability }), 'The breaker is closed');
    reload(); state.reload(true);
  };
  return html`<div class="line"><h2 class="grow">${agent.id}</h2><a class="icon-button" href=${href('map')} aria-label="Close"><${Icon} name="close" size=${14} /></a></div>
    ${agent.description && html`<p class="ink-2 text">${agent.description}</p>`}
    <dl class="facts"><dt>Running</dt><dd>${number(agent.running)} of ${number(agent.concurrency)}</dd><dt>Queued</dt><dd>${number(agent.queued)} of ${number(agent.pending_max)}</dd><dt>Last minute</dt><dd>${count(agent.perMinute, 'call')}</dd><dt>Calls</dt><dd>${number(agent.calls)}</dd><dt>Failed</dt><dd>${number(agent.failed)}</dd><dt>Refused</dt><dd>${number(agent.refused)}</dd><dt>p95</dt><dd>${duration(agent.p95_ms)}</dd></dl>
    <div class="line wrap"><a class="button small" href=${href('calls', '', { q: `agent:${agent.id}`, all: 1 })}>Calls</a><a class="button small" href=${href('playground', state.data?.capabilities?.[0] ? `${agent.id} ${state.data.capabilities[0].code}` : '')}>Playground</a></div>
    <${Loaded} state=${state}>${(card) => html`${Object.entries(agent.breakers).filter(([, state]) => state !== 'closed').map(([capability, state]) => ({ capability, state })).map((one) => html`<${Notice} kind="error"><b>${one.capability}</b>: breaker ${one.state.replace('_', ' ')}${can('breakers:reset') && html` <button type="button" class="button small" onClick=${() => reset(one)}>Close it</button>`}</${Notice}>`)}
      <section class="part"><h3>Capabilities</h3><ul class="stack">${card.capabilities.map((one) => html`<li><a href=${href('playground', `${agent.id} ${one.code}`)}>${one.code}</a>${one.description && html`<div class="hint">${one.description}</div>`}</li>`)}</ul></section>
      ${card.can_call && html`<section class="part"><h3>May call</h3><p>${card.can_call.length ? card.can_call.join(', ') : 'no other agent'}</p></section>`}
      ${card.tools_allowed?.length > 0 && html`<section class="part"><h3>Tools</h3><p>${card.tools_allowed.join(', ')}</p></section>`}`}</${Loaded}>
    ${inbound.length > 0 && html`<section class="part"><h3>Called by</h3><${Rank} items=${inbound.map((one) => ({ name: one.source === USER ? 'users' : one.source, value: one.calls }))} /></section>`}
    ${outbound.length > 0 && html`<section class="part"><h3>Calls</h3><${Rank} items=${outbound.map((one) => ({ name: one.target, value: one.calls }))} /></section>`}`;
}
