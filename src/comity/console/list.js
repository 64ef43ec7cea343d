// A list of any length with rows of one height: only what is in sight is in the page. Its elements are used again: a row that
// leaves gives its element to the one that comes, so scrolling makes no elements and moves none.
import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor.js';

const OVERSCAN = 6;
export const ROW_PX = 28;
// Browsers cap the height of an element; above this many pixels the scroll position is scaled.
const HEIGHT_MAX_PX = 15_000_000;

/** Show `count` rows by `row(index)`. `selected` is kept in sight; `onEnd` is called when the last rows come near. */
export function VirtualList({ count, row, rowHeight = ROW_PX, selected = -1, onSelect, onOpen, onEnd, label, onScroll, version, empty }) {
  const element = useRef();
  const [view, setView] = useState({ top: 0, height: 600 });
  const frame = useRef(0);
  const height = Math.min(count * rowHeight, HEIGHT_MAX_PX);
  const scale = height ? (count * rowHeight) / height : 1;
  const read = () => {
    frame.current = 0;
    const box = element.current;
    if (!box) return;
    const next = { top: box.scrollTop, height: box.clientHeight };
    setView((old) => (old.top === next.top && old.height === next.height ? old : next));
    onScroll?.(next.top);
  };
  const schedule = () => { if (!frame.current) frame.current = requestAnimationFrame(read); };
  useLayoutEffect(() => {
    read();
    const watch = new ResizeObserver(schedule);
    watch.observe(element.current);
    return () => { watch.disconnect(); cancelAnimationFrame(frame.current); };
  }, []);
  const at = view.top * scale;
  const first = Math.max(0, Math.floor(at / rowHeight) - OVERSCAN);
  const last = Math.min(count, Math.ceil((at + view.height) / rowHeight) + OVERSCAN);
  useEffect(() => { if (onEnd && last >= count - 50) onEnd(); }, [last, count, version]);
  useLayoutEffect(() => {
    const box = element.current;
    if (selected < 0 || !box) return;
    const top = (selected * rowHeight) / scale;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
  }, [selected]);
  const press = (event) => {
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1);
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -count, End: count }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step && onSelect && count) onSelect(Math.max(0, Math.min(count - 1, (selected < 0 ? (step > 0 ? -1 : 1) : selected) + step)));
    else if (event.key === 'Enter' && selected >= 0 && onOpen) onOpen(selected);
    else return;
    event.preventDefault();
  };
  // Element n shows the one row of the window whose number leaves n when divided by the number of elements.
  const slots = Math.max(1, Math.ceil(view.height / rowHeight) + 2 * OVERSCAN + 1);
  const kept = useRef({ slots: 0, row: null, drawn: [] });
  if (kept.current.slots !== slots || kept.current.row !== row) kept.current = { slots, row, drawn: [] };
  const { drawn } = kept.current;
  const shift = view.top - at;
  for (let slot = 0; slot < slots; slot += 1) {
    const index = first + ((slot - first) % slots + slots) % slots;
    const top = index * rowHeight + shift;
    const known = drawn[slot];
    if (index >= last) drawn[slot] = null;
    else if (!known || known.index !== index || known.top !== top) {
      drawn[slot] = { index, top, shown: html`<div key=${slot} class="slot" role="presentation" style=${{ transform: `translateY(${top}px)` }}>${row(index)}</div>` };
    }
  }
  return html`<div class="vlist" ref=${element} tabindex="0" role="listbox" aria-label=${label} onScroll=${schedule} onKeyDown=${press}>
    ${count === 0 && empty}
    <div class="sizer" role="presentation" style=${{ height: `${height}px` }}>${drawn.map((one) => one?.shown)}</div></div>`;
}
