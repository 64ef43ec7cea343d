// JSON as a tree that folds, with personal data shown as tokens. Text of agents is text: it never becomes markup.
import { html, useState } from './vendor.js';
import { copy } from './ui.js';
import { Icon } from './icons.js';

const CUT_CHARS = 20_000;
const OPEN_DEPTH = 3;
const ITEMS_SHOWN = 200;
// As the node writes them in place of what it hid: [[EMAIL_1_kqzwbxyp]].
const TOKEN = /(\[\[[A-Z][A-Z_]{0,22}[A-Z]_[1-9]\d{0,5}(?:v[1-9]\d{0,5})?_[a-z]{8,32}\]\])/;
/** Return a text with its tokens of personal data written short, for places that hold plain text alone. */
export const plainTokens = (text) => text.split(TOKEN).map((part, at) => (at % 2 ? `⟨${shortToken(part)}⟩` : part)).join('');
const shortToken = (token) => token.replace(/^\[\[([A-Z_]+)_(\d+)(?:v(\d+))?_.*$/, (_, kind, number) => `${kind.toLowerCase().replaceAll('_', ' ')} ${number}`);

/** Return text in which the tokens of personal data can be told apart; `reveal(token)` is offered where there is one. */
export function Text({ text, reveal }) {
  const [whole, setWhole] = useState(false);
  const shown = whole || text.length <= CUT_CHARS ? text : text.slice(0, CUT_CHARS);
  const parts = shown.split(TOKEN);
  return html`<span class="text">${parts.map((part, at) => (at % 2 ? html`<${Token} token=${part} reveal=${reveal} />` : part))}${shown !== text
    && html`<button type="button" class="button small" onClick=${() => setWhole(true)}>Show ${text.length - CUT_CHARS} more characters</button>`}</span>`;
}

const FLAT_MAX = 12;

/** Return what an agent said as people read it: words as words, a flat object as names and values, anything else as a tree. */
export function Spoken({ text, reveal }) {
  let value;
  try { value = /^\s*[{[]/.test(text) ? JSON.parse(text) : undefined; } catch { /* words that begin with a bracket */ }
  if (value === undefined) return html`<${Text} text=${text} reveal=${reveal} />`;
  const entries = Array.isArray(value) ? [] : Object.entries(value);
  const isFlat = entries.length > 0 && entries.length <= FLAT_MAX && entries.every(([, one]) => one === null || typeof one !== 'object');
  if (!isFlat) return html`<div class="json"><${Node} value=${value} depth=${1} reveal=${reveal} /></div>`;
  return html`<dl class="facts">${entries.map(([name, one]) => html`<dt>${name.replaceAll('_', ' ')}</dt><dd>${typeof one === 'string' ? html`<${Text} text=${one} reveal=${reveal} />` : String(one)}</dd>`)}</dl>`;
}

function Token({ token, reveal }) {
  const [value, setValue] = useState(null);
  if (!reveal) return html`<span class="pii" title=${`${token}: hidden personal data`}>${shortToken(token)}</span>`;
  return html`<button type="button" class="pii" title=${value === null ? 'Hidden personal data: reveal' : 'Revealed: hide again'}
    onClick=${async () => setValue(value === null ? await reveal(token) : null)}>${value ?? shortToken(token)}</button>`;
}

function Leaf({ value, reveal }) {
  if (typeof value === 'string') return html`<span class="str">"<${Text} text=${value} reveal=${reveal} />"</span>`;
  return html`<span class="lit">${String(value)}</span>`;
}

function Node({ name, value, depth, reveal }) {
  const [all, setAll] = useState(false);
  const key = name === undefined ? '' : html`<span class="k">${name}: </span>`;
  if (value === null || typeof value !== 'object') return html`<span class="leaf">${key}<${Leaf} value=${value} reveal=${reveal} /></span>`;
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  if (!entries.length) return html`<span class="leaf">${key}<span class="lit">${isList ? '[]' : '{}'}</span></span>`;
  const shown = all ? entries : entries.slice(0, ITEMS_SHOWN);
  return html`<details open=${depth < OPEN_DEPTH && entries.length <= 50}><summary>${key}<span class="sum">${isList ? `[${entries.length}]` : `{${entries.length}}`}</span></summary>
    <ul>${shown.map(([item, inner]) => html`<li key=${item}><${Node} name=${item} value=${inner} depth=${depth + 1} reveal=${reveal} /></li>`)}
    ${shown.length < entries.length && html`<li><button type="button" class="button small" onClick=${() => setAll(true)}>Show ${entries.length - shown.length} more</button></li>`}</ul></details>`;
}

/** Return a JSON value as a tree. */
export function Json({ value, reveal, label }) {
  if (value === undefined) return html`<span class="ink-3">nothing</span>`;
  return html`<div class="json-box"><button type="button" class="icon-button json-copy" aria-label=${`Copy ${label || 'JSON'}`} title="Copy JSON"
    onClick=${() => copy(JSON.stringify(value, null, 2))}><${Icon} name="copy" size=${14} /></button>
    <div class="json"><${Node} value=${value} depth=${0} reveal=${reveal} /></div></div>`;
}
