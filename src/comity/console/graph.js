// Layered layout of a directed graph, left to right, and its drawing. Back edges are turned, long edges get bends.
import { html } from './vendor.js';

const SWEEPS = 8;
const COLUMNS_ALONE = 4; // of nodes that nothing links

/** Return `{nodes: Map(id → {x, y}), edges: [{…edge, points}], width, height}` for nodes `{id}` and edges `{source, target}`. */
export function layout(nodes, edges, { width = 168, height = 64, gapX = 84, gapY = 22 } = {}) {
  const known = new Set(nodes.map((one) => one.id));
  const links = edges.filter((one) => known.has(one.source) && known.has(one.target) && one.source !== one.target);
  const linked = new Set(links.flatMap((one) => [one.source, one.target]));
  const ids = nodes.map((one) => one.id).filter((id) => linked.has(id));
  const turned = backEdges(ids, links);
  const forward = links.map((one) => (turned.has(one) ? { from: one.target, to: one.source, edge: one } : { from: one.source, to: one.target, edge: one }));
  const rank = ranks(ids, forward);
  const layers = [];
  const put = (id, at) => { (layers[at] ||= []).push(id); };
  for (const id of ids) put(id, rank.get(id));
  const bends = new Map();
  const segments = [];
  let made = 0;
  for (const link of forward) {
    let last = link.from;
    const path = [];
    for (let at = rank.get(link.from) + 1; at < rank.get(link.to); at += 1) {
      const id = `\u0000${made += 1}`;
      put(id, at);
      path.push(id);
      segments.push([last, id]);
      last = id;
    }
    segments.push([last, link.to]);
    bends.set(link.edge, path);
  }
  for (let at = 0; at < layers.length; at += 1) layers[at] ||= [];
  order(layers, segments);
  const place = coordinates(layers, segments, { width, height, gapX, gapY });
  const boxes = new Map(ids.map((id) => [id, place.get(id)]));
  const drawn = links.map((edge) => {
    // Straight past the boxes of each layer between: a curve would run behind its neighbours.
    const path = bends.get(edge).flatMap((id) => [0, width].map((along) => ({ x: place.get(id).x + along, y: place.get(id).y + height / 2 })));
    if (turned.has(edge)) path.reverse();
    const a = boxes.get(edge.source), b = boxes.get(edge.target);
    const back = turned.has(edge);
    const start = { x: back ? a.x : a.x + width, y: a.y + height / 2 + (back ? 10 : 0) };
    const end = { x: back ? b.x + width : b.x, y: b.y + height / 2 + (back ? 10 : 0) };
    return { ...edge, back, points: [start, ...path, end] };
  });
  let right = 0, bottom = 0;
  for (const one of place.values()) { right = Math.max(right, one.x + width); bottom = Math.max(bottom, one.y + height); }
  const alone = nodes.filter((one) => !boxes.has(one.id)); // in rows below the rest
  const columns = Math.max(links.length ? 1 : COLUMNS_ALONE, Math.floor((right + gapY) / (width + gapY)));
  alone.forEach((one, at) => boxes.set(one.id, { x: (at % columns) * (width + gapY), y: bottom + 2 * gapY + Math.floor(at / columns) * (height + gapY) }));
  if (alone.length) right = Math.max(right, Math.min(alone.length, columns) * (width + gapY) - gapY);
  if (alone.length) bottom += 2 * gapY + Math.ceil(alone.length / columns) * (height + gapY) - gapY;
  return { nodes: boxes, edges: drawn, width: right, height: bottom };
}

function backEdges(ids, links) {
  const out = new Map(ids.map((id) => [id, []]));
  const incoming = new Map(ids.map((id) => [id, 0]));
  for (const one of links) { out.get(one.source).push(one); incoming.set(one.target, incoming.get(one.target) + 1); }
  const state = new Map();
  const turned = new Set();
  const starts = [...ids].sort((a, b) => incoming.get(a) - incoming.get(b));
  for (const start of starts) {
    if (state.has(start)) continue;
    const stack = [[start, 0]];
    state.set(start, 1);
    while (stack.length) {
      const top = stack.at(-1);
      const edge = out.get(top[0])[top[1]];
      top[1] += 1;
      if (!edge) { state.set(top[0], 2); stack.pop(); continue; }
      const seen = state.get(edge.target);
      if (seen === 1) turned.add(edge);
      else if (!seen) { state.set(edge.target, 1); stack.push([edge.target, 0]); }
    }
  }
  return turned;
}

function ranks(ids, forward) {
  const incoming = new Map(ids.map((id) => [id, 0]));
  const out = new Map(ids.map((id) => [id, []]));
  for (const one of forward) { incoming.set(one.to, incoming.get(one.to) + 1); out.get(one.from).push(one.to); }
  const rank = new Map(ids.map((id) => [id, 0]));
  const ready = ids.filter((id) => !incoming.get(id));
  while (ready.length) {
    const id = ready.pop();
    for (const to of out.get(id)) {
      rank.set(to, Math.max(rank.get(to), rank.get(id) + 1));
      incoming.set(to, incoming.get(to) - 1);
      if (!incoming.get(to)) ready.push(to);
    }
  }
  return rank;
}

function order(layers, segments) {
  const up = new Map(), down = new Map();
  for (const [a, b] of segments) { (down.get(a) || down.set(a, []).get(a)).push(b); (up.get(b) || up.set(b, []).get(b)).push(a); }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    const from = isDown ? 1 : layers.length - 2;
    for (let at = from; isDown ? at < layers.length : at >= 0; at += isDown ? 1 : -1) {
      const fixed = new Map(layers[isDown ? at - 1 : at + 1].map((id, i) => [id, i]));
      const near = isDown ? up : down;
      const weight = new Map(layers[at].map((id, i) => {
        const linked = (near.get(id) || []).filter((one) => fixed.has(one));
        return [id, linked.length ? linked.reduce((sum, one) => sum + fixed.get(one), 0) / linked.length : i];
      }));
      layers[at].sort((a, b) => weight.get(a) - weight.get(b));
    }
  }
}

function coordinates(layers, segments, { width, height, gapX, gapY }) {
  const place = new Map();
  const tall = Math.max(...layers.map((layer) => layer.length), 1) * (height + gapY);
  layers.forEach((layer, at) => layer.forEach((id, i) => {
    place.set(id, { x: at * (width + gapX), y: (tall - layer.length * (height + gapY)) / 2 + i * (height + gapY) });
  }));
  const near = new Map();
  for (const [a, b] of segments) for (const [one, other] of [[a, b], [b, a]]) (near.get(one) || near.set(one, []).get(one)).push(other);
  for (let turn = 0; turn < 12; turn += 1) { // pull towards the neighbours without changing the order
    for (const layer of layers) {
      layer.forEach((id, i) => {
        const linked = near.get(id);
        if (!linked) return;
        const wanted = linked.reduce((sum, one) => sum + place.get(one).y, 0) / linked.length;
        const above = i ? place.get(layer[i - 1]).y + height + gapY : -Infinity;
        const below = i < layer.length - 1 ? place.get(layer[i + 1]).y - height - gapY : Infinity;
        place.get(id).y = Math.max(above, Math.min(below, wanted));
      });
    }
  }
  const top = Math.min(...[...place.values()].map((one) => one.y), Infinity);
  for (const one of place.values()) one.y -= top;
  return place;
}

/** Return the curve through an edge's points. */
export function curve(points) {
  let path = `M${points[0].x} ${points[0].y}`;
  for (let at = 1; at < points.length; at += 1) {
    const a = points[at - 1], b = points[at];
    const bend = (b.x - a.x) / 2;
    path += `C${a.x + bend} ${a.y} ${b.x - bend} ${b.y} ${b.x} ${b.y}`;
  }
  return path;
}

/** Return the middle of an edge, where its label stands. */
function middle({ points }) {
  const at = Math.floor((points.length - 1) / 2);
  return { x: (points[at].x + points[at + 1].x) / 2, y: (points[at].y + points[at + 1].y) / 2 };
}

/** Draw a graph: `box(node, place)` returns the inside of a node as SVG, `line(edge)` its class, label and title. */
export function Graph({ nodes, edges, size = { width: 168, height: 64 }, box, line, label }) {
  const found = layout(nodes, edges, size);
  const shown = found.edges.map((edge) => ({ edge, drawn: line(edge), key: `${edge.source}>${edge.target}${edge.id || ''}` })); // labels stand above every line
  const w = found.width + 32, h = found.height + 44;
  return html`<svg class="graph" role="group" aria-label=${label} style=${{ width: `${w}px`, minWidth: `${Math.round(w * 0.7)}px` }} viewBox=${`-16 -22 ${w} ${h}`}>
    <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" class="tip" /></marker></defs>
    ${shown.map(({ edge, drawn, key }) => html`<g key=${key} class=${`edge ${drawn.class || ''}`}><path d=${curve(edge.points)} style=${{ strokeWidth: drawn.width || 1.5 }} marker-end="url(#tip)"><title>${drawn.title || ''}</title></path></g>`)}
    ${shown.map(({ edge, drawn, key }) => drawn.label && html`<g key=${`${key} label`} class=${`edge ${drawn.class || ''}`}><rect class="under" x=${middle(edge).x - drawn.label.length * 3 - 4} y=${middle(edge).y + (edge.back ? 5 : -7)} width=${drawn.label.length * 6 + 8} height="15" rx="3" /><text x=${middle(edge).x} y=${middle(edge).y + (edge.back ? 16 : 4)} text-anchor="middle">${drawn.label}</text></g>`)}
    ${nodes.map((node) => html`<g key=${node.id} transform=${`translate(${found.nodes.get(node.id).x} ${found.nodes.get(node.id).y})`}>${box(node)}</g>`)}</svg>`;
}
