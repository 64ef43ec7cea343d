// The TraceQL box: a textarea over a highlighted copy. Names and values come from the node's spans, errors from its parser.
import { html, useEffect, useRef, useState } from './vendor.js';
import { get } from './api.js';

const WORD = /[\w.:-]*$/;
const FUNCTIONS = ['rate()', 'count_over_time()', 'quantile_over_time(duration, 0.95)', 'histogram_over_time(duration)', 'count()', 'avg(duration)', 'max(duration)', 'min(duration)', 'sum(duration)', 'by(', 'select('];
const OPERATORS = ['=', '!=', '=~', '!~', '>', '>=', '<', '<='];
let names = null;

/** Return the names of attributes and intrinsics, as a query writes them; read once. */
async function attributeNames() {
  if (!names) {
    const found = await get('../api/v2/search/tags', { limit: 5000 });
    names = found.scopes.flatMap((scope) => scope.tags.map((tag) => ({ text: scope.name === 'intrinsic' ? tag : `${scope.name}.${tag}`, kind: scope.name })));
  }
  return names;
}

/** Return what can stand at the end of `before`: `[{text, kind, from}]`. */
export async function suggest(before) {
  const compare = /([\w.:-]+)\s*(?:=~|!~|!=|>=|<=|=|>|<)\s*("?[^"{}&|=<>!]*)$/.exec(before);
  if (compare && !/\s$/.test(compare[2].trimStart() && compare[2])) {
    const typed = compare[2].replace(/^"/, '').toLowerCase();
    const found = await get(`../api/v2/search/tag/${compare[1].split('/').map(encodeURIComponent).join('/')}/values`, { limit: 200 });
    return found.tagValues.filter((one) => one.value.toLowerCase().includes(typed)).map((one) => ({ text: one.type === 'string' ? JSON.stringify(one.value) : one.value, kind: one.type, from: before.length - compare[2].length }));
  }
  const word = WORD.exec(before)[0];
  const from = before.length - word.length;
  const place = before.slice(0, from).trimEnd();
  const fits = (list) => list.filter((one) => one.text.toLowerCase().includes(word.toLowerCase()) && one.text !== word).map((one) => ({ ...one, from }));
  if (/\|$/.test(place) && !/\|\|$/.test(place)) return fits(FUNCTIONS.map((text) => ({ text, kind: 'function' })));
  if (/[{(]$|&&$|\|\|$/.test(place)) return fits(await attributeNames());
  if (/[\w"]$/.test(place) && !word) return OPERATORS.map((text) => ({ text: `${text} `, kind: 'operator', from }));
  return place ? [] : [{ text: '{ }', kind: 'every span', from }];
}
const PARTS = /("(?:[^"\\]|\\.)*"?|`[^`]*`?)|(\b\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h)?\b)|(\b(?:true|false|nil|error|ok|unset|server|client|internal|producer|consumer|by|count|avg|max|min|sum|rate|select|coalesce|with|quantile_over_time|histogram_over_time|count_over_time|compare)\b)|((?:span|resource|event|link|instrumentation|parent|trace)[.:][\w.-]+|\.[A-Za-z_][\w.-]*|\b(?:name|status|kind|duration|rootName|rootServiceName|traceDuration)\b)/g;

/** Return the highlighted parts of a query: `[class, text]`; `wrong` is the column at which the parser stopped. */
export function highlight(text, wrong = -1) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(PARTS)) {
    if (found.index > at) parts.push(['', text.slice(at, found.index)]);
    parts.push([found[1] ? 'str' : found[2] ? 'num' : found[3] ? 'kw' : 'attr', found[0]]);
    at = found.index + found[0].length;
  }
  if (at < text.length) parts.push(['', text.slice(at)]);
  if (wrong < 0) return parts;
  let seen = 0;
  return parts.flatMap(([kind, part]) => {
    const from = wrong - seen;
    seen += part.length;
    if (from < 0 || from >= part.length) return [[kind, part]];
    return [[kind, part.slice(0, from)], [`${kind} wrong`, part.slice(from)]].filter(([, one]) => one);
  });
}

const SCOPES = /^(?:span|resource|event|link|instrumentation|parent|trace)[.:]/;

/** Return the query as it was perhaps meant, where an attribute without a scope stands at the column of an error. */
export function meant(text, column) {
  const found = column < 0 ? null : /^[A-Za-z_][\w-]*(?:\.[\w-]+)+/.exec(text.slice(column));
  return found && !SCOPES.test(found[0]) ? `${text.slice(0, column)}span.${text.slice(column)}` : '';
}

/** Show the box. `error` is `{message, column}`; `onRun(text)` is called by Enter, Shift+Enter makes a line. */
export function TraceQL({ value, onRun, error, label = 'TraceQL query' }) {
  const [text, setText] = useState(value);
  const [list, setList] = useState([]);
  const [at, setAt] = useState(0);
  const box = useRef();
  const turn = useRef(0);
  useEffect(() => setText(value), [value]);
  const complete = async (query, pos) => {
    const mine = ++turn.current;
    const found = await suggest(query.slice(0, pos)).catch(() => []);
    if (mine === turn.current) { setList(found.slice(0, 50)); setAt(0); }
  };
  const close = () => { turn.current += 1; setList([]); };
  const input = (event) => { setText(event.target.value); complete(event.target.value, event.target.selectionStart); };
  const insert = (one) => {
    const pos = box.current.selectionStart;
    const start = one.from;
    const word = one.text;
    const next = text.slice(0, start) + word + text.slice(pos);
    setText(next);
    close();
    requestAnimationFrame(() => { box.current.focus(); box.current.setSelectionRange(start + word.length, start + word.length); });
  };
  const press = (event) => {
    if (list.length && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) setAt((at + (event.key === 'ArrowDown' ? 1 : list.length - 1)) % list.length);
    else if (list.length && event.key === 'Tab') insert(list[at]);
    else if (event.key === 'Escape' && list.length) { close(); event.stopPropagation(); }
    else if (event.key === 'Enter' && !event.shiftKey) { close(); onRun(text); }
    else if (event.key === ' ' && event.ctrlKey) complete(text, event.target.selectionStart);
    else return;
    event.preventDefault();
  };
  const column = error?.column ?? -1;
  return html`<div class="ql"><div class="ql-box"><pre aria-hidden="true">${highlight(text, text === value ? column : -1).map(([kind, part]) => html`<span class=${kind}>${part}</span>`)}${'\n'}</pre>
    <textarea ref=${box} aria-label=${label} role="combobox" aria-expanded=${list.length ? 'true' : 'false'} aria-controls="ql-list" aria-autocomplete="list" aria-activedescendant=${list.length ? `ql-${at}` : null} aria-invalid=${error ? 'true' : 'false'}
      spellcheck="false" autocomplete="off" rows="1" value=${text} onInput=${input} onKeyDown=${press} onBlur=${close}></textarea></div>
    ${list.length > 0 && html`<ul id="ql-list" class="ql-list" role="listbox" aria-label="Suggestions" tabindex="-1">${list.map((one, index) => html`<li id=${`ql-${index}`} role="option" aria-selected=${index === at ? 'true' : 'false'} onMouseDown=${(event) => { event.preventDefault(); insert(one); }}><span>${one.text}</span><span class="kind">${one.kind}</span></li>`)}</ul>`}
    ${error && text === value && html`<pre class="ql-error" role="alert">${column >= 0 && text.length < 160 && !text.includes('\n') ? `${' '.repeat(column)}^\n` : ''}${error.message}</pre>`}
    ${error && text === value && meant(text, column) && html`<p class="hint">An attribute needs its scope: <button type="button" class="button plain small mono" onClick=${() => { setText(meant(text, column)); onRun(meant(text, column)); }}>${meant(text, column)}</button></p>`}</div>`;
}
