// Small drawings of numbers: a stacked histogram with a brush, a line chart, bars.
import { html, useRef, useState } from './vendor.js';
import { look, words } from './ui.js';
import { absolute, clock, count, number } from './format.js';

const ORDER = ['success', 'partial', 'needs_input', 'refused', 'cancelled', 'timeout', 'error', 'open', 'running'];

/** Draw counts by status over time; `buckets` are `{start, counts: {status: n}}`, a drag calls `onRange(from, to)`, a `note` stands below. */
export function Histogram({ buckets, from, to, note, onRange, height = 52 }) {
  const box = useRef();
  const [drag, setDrag] = useState(null);
  if (!buckets.length) return null;
  const most = Math.max(1, ...buckets.map((one) => Object.values(one.counts).reduce((a, b) => a + b, 0)));
  const width = 1000 / buckets.length;
  const share = (event) => { const r = box.current.getBoundingClientRect(); return Math.max(0, Math.min(1, (event.clientX - r.left) / r.width)); };
  const time = (at) => from + (to - from) * at;
  const end = () => {
    if (drag && Math.abs(drag.b - drag.a) > 0.01) onRange?.(Math.round(time(Math.min(drag.a, drag.b))), Math.round(time(Math.max(drag.a, drag.b))));
    setDrag(null);
  };
  return html`<figure class="histogram" aria-label="Calls over time by status"><svg ref=${box} viewBox=${`0 0 1000 ${height}`} preserveAspectRatio="none" height=${height} role="img" aria-label="Calls over time"
    onPointerDown=${(event) => { const a = share(event); event.currentTarget.setPointerCapture(event.pointerId); setDrag({ a, b: a }); }}
    onPointerMove=${(event) => { if (drag) setDrag({ ...drag, b: share(event) }); }} onPointerUp=${end} onPointerCancel=${() => setDrag(null)}>
    ${buckets.map((one, at) => {
      let y = height;
      const total = Object.values(one.counts).reduce((a, b) => a + b, 0);
      return html`<g key=${at}><title>${`${absolute(one.start)}: ${count(total, 'call')}${ORDER.filter((name) => one.counts[name]).map((name) => `, ${one.counts[name]} ${words(name)}`).join('')}`}</title>
        <rect x=${at * width} y="0" width=${width} height=${height} fill="transparent" />
        ${ORDER.filter((name) => one.counts[name]).map((name) => { const tall = Math.max((one.counts[name] / most) * (height - 4), 1.5); y -= tall; return html`<rect class=${`bar-fill s-${look(name)}`} x=${at * width + width * 0.1} y=${y} width=${width * 0.8} height=${tall} />`; })}</g>`;
    })}
    ${drag && html`<rect class="brush" x=${Math.min(drag.a, drag.b) * 1000} y="0" width=${Math.abs(drag.b - drag.a) * 1000} height=${height} />`}</svg>
    <figcaption><span>${clock(from).slice(0, 8)}</span>${note && html`<span>${note}</span>`}<span>${clock(to).slice(0, 8)}</span></figcaption></figure>`;
}

/** Draw series `{name, points: [[ms, value]]}` as lines with a scale. */
export function Lines({ series, height = 180 }) {
  const points = series.flatMap((one) => one.points);
  if (!points.length) return html`<p class="ink-3">No samples in this range.</p>`;
  const from = Math.min(...points.map((p) => p[0])), to = Math.max(...points.map((p) => p[0]), from + 1);
  const most = Math.max(...points.map((p) => p[1]), 1e-9);
  const x = (at) => 56 + ((at - from) / (to - from)) * 920, y = (value) => height - 24 - (value / most) * (height - 40);
  const shown = series.slice(0, 8);
  return html`<figure class="lines"><svg viewBox=${`0 0 1000 ${height}`} role="img" aria-label="Chart">
    ${[0, 0.5, 1].map((part) => html`<g class="scale"><line x1="56" x2="976" y1=${y(most * part)} y2=${y(most * part)} /><text x="50" y=${y(most * part) + 4} text-anchor="end">${number(Math.round(most * part * 100) / 100)}</text></g>`)}
    ${shown.map((one, at) => html`<polyline key=${one.name} class=${`series c${at}`} points=${one.points.map(([t, v]) => `${x(t)},${y(v)}`).join(' ')} />`)}
    ${shown.map((one, at) => one.points.length < 60 && one.points.map(([t, v]) => html`<circle class=${`series c${at}`} cx=${x(t)} cy=${y(v)} r="2.5"><title>${`${absolute(t)}: ${v}`}</title></circle>`))}
    <text class="tick" x="56" y=${height - 6}>${clock(from).slice(0, 8)}</text><text class="tick" x="976" y=${height - 6} text-anchor="end">${clock(to).slice(0, 8)}</text></svg>
    <ul class="legend">${shown.map((one, at) => html`<li><i class=${`c${at}`}></i>${one.name}</li>`)}${series.length > 8 && html`<li>and ${series.length - 8} more</li>`}</ul></figure>`;
}

/** Draw a share used: a meter with its words. */
export function Meter({ name, used, limit, text, status, title }) {
  const share = limit ? Math.min(1, used / limit) : 0;
  return html`<div class="meter" title=${title || ''}><div class="line"><span class="ink-2 grow">${name}</span><span>${text}</span></div>
    <div class="meter-bar">${share > 0 && html`<span class=${`s-${status || (share > 0.9 ? 'error' : share > 0.7 ? 'warn' : 'accent')}`} style=${{ width: `${share * 100}%` }}></span>`}</div></div>`;
}
