// The tree of one call on one time axis. Pure functions make rows from flat call rows; the component draws what is in sight.
import { html, useMemo, useState } from './vendor.js';
import { VirtualList } from './list.js';
import { Icon } from './icons.js';
import { look, words } from './ui.js';
import { count, duration, number, toMs } from './format.js';

const FOLD_SIBLINGS = 5; // of one agent and capability: shown as one row until opened
const GAP_SHARE = 0.2; // waiting longer than this share of the axis is drawn short
const GAP_WIDTH = 0.06;

/** Return the tree of flat rows: `{root, byId}`; each node has children, start, end, depth. O(n). */
export function buildTree(rows, at = Date.now()) {
  const byId = new Map();
  const nodes = [];
  for (const row of rows) {
    const start = toMs(row.created_at) ?? 0;
    const took = row.duration_ms ?? (isOpen(row.status) ? Math.max(0, at - start) : 0);
    const node = { row, id: row.request_id, start, end: start + took, children: [], depth: 0, parent: null };
    nodes.push(node);
    if (!byId.has(node.id)) byId.set(node.id, node);
  }
  const roots = [];
  for (const node of nodes) {
    const parent = node.row.parent_id ? byId.get(node.row.parent_id) : null;
    if (parent && parent !== node) { node.parent = parent; parent.children.push(node); } else roots.push(node);
  }
  const stack = [...roots];
  while (stack.length) {
    const node = stack.pop();
    for (const child of node.children) { child.depth = node.depth + 1; stack.push(child); }
  }
  return { roots, nodes, byId };
}

export const isOpen = (status) => !status || ['queued', 'running', 'open', 'paused'].includes(status);
const isBad = (status) => ['error', 'timeout', 'refused', 'cancelled'].includes(status);

/** Return the ids on the critical path: from each call the child that ended last, as long as it ended after the others began to wait. */
export function criticalPath(roots) {
  const found = new Set();
  let node = roots[0];
  while (node) {
    found.add(node.id);
    node = node.children.reduce((last, one) => (!last || one.end > last.end ? one : last), null);
  }
  return found;
}

/** Return what a tree used: its calls, tokens, depth. */
export function totals(nodes) {
  let tokens = 0, depth = 0, refused = 0, failed = 0;
  for (const node of nodes) {
    tokens = Math.max(tokens, node.row.tokens || 0);
    depth = Math.max(depth, node.depth);
    if (node.row.status === 'refused') refused += 1;
    else if (['error', 'timeout'].includes(node.row.status)) failed += 1;
  }
  return { calls: Math.max(0, nodes.length - 1), tokens, depth, refused, failed };
}

/** Return the visible rows: folded siblings as one, closed nodes without their children, `only` as a filter that keeps ancestors. */
export function visibleRows(roots, { closed, opened, only }) {
  const kept = only ? keepWithAncestors(roots, only) : null;
  const rows = [];
  const walk = (nodes, key) => {
    const groups = kept ? null : groupSiblings(nodes);
    for (const node of nodes) {
      if (kept && !kept.has(node)) continue;
      const group = groups?.get(node);
      if (group && !opened.has(group.key + key)) {
        if (group.nodes[0] === node) rows.push({ group, depth: node.depth, key: group.key + key });
        continue;
      }
      rows.push({ node, depth: node.depth, key: node.id });
      if (node.children.length && !closed.has(node.id)) walk(node.children, node.id);
    }
  };
  walk(roots, '');
  return rows;
}

function groupSiblings(nodes) {
  if (nodes.length < FOLD_SIBLINGS) return null;
  const byName = new Map();
  for (const node of nodes) {
    const key = `${node.row.target} ${node.row.capability} `;
    if (!byName.has(key)) byName.set(key, []);
    byName.get(key).push(node);
  }
  const found = new Map();
  for (const [key, list] of byName) {
    if (list.length < FOLD_SIBLINGS) continue;
    const group = { key, nodes: list };
    for (const node of list) found.set(node, group);
  }
  return found;
}

function keepWithAncestors(roots, only) {
  const kept = new Set();
  const stack = [...roots];
  while (stack.length) {
    const node = stack.pop();
    if (only(node)) for (let one = node; one && !kept.has(one); one = one.parent) kept.add(one);
    stack.push(...node.children);
  }
  return kept;
}

/** Return the time axis: `place(ms)` gives 0..1, `gaps` are the waits that were drawn short, `ticks` the marks. */
export function makeAxis(nodes) {
  let from = Infinity, to = -Infinity;
  const waits = [];
  for (const node of nodes) {
    from = Math.min(from, node.start);
    to = Math.max(to, node.end);
    for (const [begin, end] of node.row.waits || []) waits.push([toMs(begin), toMs(end)]);
  }
  if (!Number.isFinite(from)) return { from: 0, to: 1, whole: 0, place: () => 0, gaps: [], ticks: [] };
  const whole = Math.max(to - from, 0.001);
  const gaps = merge(waits).filter(([begin, end]) => end - begin > whole * GAP_SHARE);
  const lost = gaps.reduce((sum, [begin, end]) => sum + end - begin, 0);
  const run = whole - lost;
  const unit = gaps.length ? (1 - GAP_WIDTH * gaps.length) / Math.max(run, 0.001) : 1 / whole;
  const place = (ms) => {
    let at = 0, last = from;
    for (const [begin, end] of gaps) {
      if (ms <= begin) break;
      at += (begin - last) * unit;
      at += GAP_WIDTH * Math.min(1, (ms - begin) / (end - begin));
      if (ms < end) return at;
      last = end;
    }
    return Math.max(0, Math.min(1, at + (ms - last) * unit));
  };
  return { from, to, whole, place, gaps: gaps.map(([begin, end]) => ({ at: place(begin), width: GAP_WIDTH, ms: end - begin })), ticks: gaps.length ? [] : ticks(whole) };
}

function merge(list) {
  const sorted = list.filter(([a, b]) => b > a).sort((a, b) => a[0] - b[0]);
  const found = [];
  for (const one of sorted) {
    const last = found.at(-1);
    if (last && one[0] <= last[1]) last[1] = Math.max(last[1], one[1]);
    else found.push([...one]);
  }
  return found;
}

function ticks(whole) {
  const rough = whole / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) || rough;
  const found = [];
  for (let at = 0; at < whole * 0.97; at += step) found.push({ at: at / whole, text: at ? duration(at) : '0' });
  return found;
}

function Bar({ axis, start, end, status, label, thin }) {
  const left = axis.place(start), right = Math.max(axis.place(end), left + 0.002);
  const late = left > 0.8;
  return html`<span class=${`wf-bar s-${look(status)} ${thin ? 'thin' : ''}`} style=${{ left: `${left * 100}%`, width: `${(right - left) * 100}%` }}></span>
    <span class="wf-ms" style=${late ? { right: `calc(${(1 - left) * 100}% + 6px)` } : { left: `calc(${right * 100}% + ${status === 'refused' ? 12 : 6}px)` }}>${label}</span>`;
}

const PILLS = [['', 'All'], ['failed', 'Errors'], ['refused', 'Refusals'], ['critical', 'Critical path'], ['slow', 'Slow']];

/** Draw the tree; `selected` is a request id, `onSelect(id)` is called for another. */
export function Waterfall({ rows, selected, onSelect, pill = '', onPill, now }) {
  const tree = useMemo(() => buildTree(rows, now), [rows, now]);
  const [closed, setClosed] = useState(() => new Set());
  const [opened, setOpened] = useState(() => new Set());
  const axis = useMemo(() => makeAxis(tree.nodes), [tree]);
  const critical = useMemo(() => criticalPath(tree.roots), [tree]);
  const only = useMemo(() => ({
    failed: (node) => ['error', 'timeout'].includes(node.row.status), refused: (node) => node.row.status === 'refused', critical: (node) => critical.has(node.id),
    slow: (node) => node.end - node.start > axis.whole * 0.7,
  }[pill]), [pill, tree]);
  const visible = useMemo(() => visibleRows(tree.roots, { closed, opened, only }), [tree, closed, opened, only]);
  const at = visible.findIndex((one) => one.node?.id === selected);
  const toggle = (set, change, key) => { const next = new Set(set); if (!next.delete(key)) next.add(key); change(next); };
  const openGroup = (one) => toggle(opened, setOpened, one.key);
  const press = (event) => {
    const one = visible[at];
    if (event.key === 'ArrowLeft' && one?.node && !closed.has(one.node.id)) toggle(closed, setClosed, one.node.id);
    else if (event.key === 'ArrowRight' && one?.node && closed.has(one.node.id)) toggle(closed, setClosed, one.node.id);
  };
  const pick = (index) => { const one = visible[index]; if (one.group) openGroup(one); else onSelect(one.node.id); };
  const draw = (index) => {
    const one = visible[index];
    if (one.group) return html`<${GroupRow} key=${one.key} one=${one} axis=${axis} onOpen=${() => openGroup(one)} />`;
    const { node } = one;
    const { row } = node;
    const isClosed = closed.has(node.id);
    return html`<div class=${`vrow wf-row ${isBad(row.status) ? 'bad' : ''}`} role="option" aria-selected=${node.id === selected ? 'true' : 'false'}
      aria-label=${`${row.target} ${row.capability}, ${words(row.status || 'running')}, ${duration(row.duration_ms)}`} onClick=${() => onSelect(node.id)}>
      <span class="wf-name" style=${{ paddingLeft: `${Math.min(node.depth, 12) * 14}px` }}>
        ${node.children.length ? html`<button type="button" tabindex="-1" class="fold" aria-label=${isClosed ? 'Open' : 'Close'} onClick=${(event) => { event.stopPropagation(); toggle(closed, setClosed, node.id); }}>
          <${Icon} name=${isClosed ? 'right' : 'unfold'} size=${10} /></button>` : html`<span class="fold"></span>`}
        <span class=${`wf-state s-${look(row.status || 'running')}`}><${Icon} name=${look(row.status || 'running')} size=${12} /></span>
        <b>${row.target}</b><span class="cut ink-2">${row.capability}</span>
        ${isClosed && html`<span class="tag">${number(node.children.length)}</span>`}
        ${row.error_code && html`<span class=${`wf-code s-${look(row.status)}`}>${row.error_code}</span>`}</span>
      <span class="wf-axis"><span class="wf-plot">${axis.gaps.map((gap) => html`<i class="wf-gap" style=${{ left: `${gap.at * 100}%`, width: `${gap.width * 100}%` }}></i>`)}
        <${Bar} axis=${axis} start=${node.start} end=${node.end} status=${row.status || 'running'} thin=${pill === 'critical' && !critical.has(node.id)}
          label=${row.status === 'refused' ? 'refused' : duration(row.duration_ms ?? node.end - node.start)} /></span></span></div>`;
  };
  return html`<div class="wf" onKeyDown=${press}>
    <div class="wf-tools">${onPill && html`<div class="segmented" role="group" aria-label="Show">${PILLS.map(([id, name]) => html`<button type="button" aria-pressed=${pill === id ? 'true' : 'false'} onClick=${() => onPill(id)}>${name}</button>`)}</div>`}
      <span class="ink-3">${count(tree.nodes.length, 'call')} · ${duration(axis.whole)}</span></div>
    <div class="vhead wf-row" aria-hidden="true"><span>Call</span><span class="wf-axis"><span class="wf-plot">${axis.ticks.map((tick) => html`<span class="wf-tick" style=${{ left: `${tick.at * 100}%` }}>${tick.text}</span>`)}
      ${axis.gaps.map((gap) => html`<span class="wf-tick" style=${{ left: `${gap.at * 100}%` }}>${duration(gap.ms)} waiting</span>`)}</span></span></div>
    <${VirtualList} label="Calls of the tree" count=${visible.length} row=${draw} selected=${at} onSelect=${pick} onOpen=${pick} version=${visible} /></div>`;
}

/** Return "2.8–35 ms", or both with their units where these differ. */
function range(least, most) {
  const [low, high] = [duration(least), duration(most)];
  return low.split(' ').length === 2 && low.split(' ')[1] === high.split(' ')[1] ? `${low.split(' ')[0]}–${high}` : `${low}–${high}`;
}

function GroupRow({ one, axis, onOpen }) {
  const { nodes } = one.group;
  const bad = nodes.filter((node) => isBad(node.row.status)).length;
  const times = nodes.map((node) => node.end - node.start);
  const start = Math.min(...nodes.map((node) => node.start)), end = Math.max(...nodes.map((node) => node.end));
  return html`<div class="vrow wf-row group" role="option" aria-selected="false" aria-label=${`${nodes.length} calls of ${one.group.key}, open`} onClick=${onOpen}>
    <span class="wf-name" style=${{ paddingLeft: `${Math.min(one.depth, 12) * 14}px` }}><span class="fold"><${Icon} name="right" size=${10} /></span>
      <span class="tag">${number(nodes.length)} ×</span><b>${nodes[0].row.target}</b><span class="cut ink-2">${nodes[0].row.capability}</span>
      ${bad > 0 && html`<span class="wf-code s-error">${bad} not successful</span>`}</span>
    <span class="wf-axis"><span class="wf-plot"><${Bar} axis=${axis} start=${start} end=${end} status=${bad ? 'partial' : 'success'} label=${range(Math.min(...times), Math.max(...times))} /></span></span></div>`;
}
