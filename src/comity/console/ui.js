// The parts that every view is made of: chips, buttons, notices, empty and failed states, dialogs, JSON, loading data.
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from './vendor.js';
import { Icon } from './icons.js';
import { absolute, now, number, relative, shortId } from './format.js';

const WORDS = { needs_input: 'needs input', in_progress: 'in progress', input_required: 'input required', waiting_for_input: 'waiting for input', half_open: 'half open' };
export const words = (text) => WORDS[text] || String(text ?? '').replaceAll('_', ' ');

/** The state colours of the words of other machines, by those of a call. */
const LOOK = {
  completed: 'success', accepted: 'running', pending: 'queued', in_progress: 'running', input_required: 'needs_input', rejected: 'refused',
  failed: 'error', waiting_for_input: 'needs_input', waiting: 'needs_input', closed: 'success', half_open: 'partial', admitted: 'running', settled: 'success', paused: 'needs_input',
  late: 'partial', noted: 'muted', cut: 'muted', approved: 'success', granted: 'success', denied: 'refused', skipped: 'muted', expired: 'timeout', active: 'success', retired: 'muted', maintenance: 'partial',
};
const ICONS = { warn: 'warn', muted: 'cancelled', accent: 'key' };
export const look = (status) => LOOK[status] || status || 'muted';

/** Return the state of something: icon, word, colour. */
export function Status({ status, bare, children }) {
  const kind = look(status);
  return html`<span class=${`chip s-${kind} ${bare ? 'bare' : ''}`}><${Icon} name=${ICONS[kind] || kind} size=${12} />${children || words(status)}</span>`;
}

/** Return a time: how long ago, the exact time in its title. */
export function When({ at, exact }) {
  if (at === null || at === undefined) return html`<span class="ink-3">–</span>`;
  return html`<time title=${exact ? relative(at) : absolute(at)}>${exact ? absolute(at) : relative(at, now.value)}</time>`;
}

const toasts = signal([]);
let toastId = 0;

/** Say something that is over: it goes by itself, errors stay until closed. */
export function toast(text, kind = 'done') {
  const id = ++toastId;
  toasts.value = [...toasts.value.slice(-3), { id, text, kind }];
  if (kind !== 'error') setTimeout(() => { toasts.value = toasts.value.filter((one) => one.id !== id); }, 3_500);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map((one) => html`<div class="toast" key=${one.id}>
    <${Icon} name=${one.kind === 'error' ? 'warn' : 'success'} /><span class="grow text">${one.text}</span>
    <button class="icon-button" aria-label="Close" onClick=${() => { toasts.value = toasts.value.filter((other) => other.id !== one.id); }}><${Icon} name="close" size=${14} /></button>
  </div>`)}</div>`;
}

export async function copy(text, what = 'Copied') {
  try {
    await navigator.clipboard.writeText(text);
    toast(what);
  } catch {
    toast('The browser did not allow copying.', 'error');
  }
}

/** Return an id that is copied by one click. */
export function Id({ id, whole }) {
  if (!id) return html`<span class="ink-3">–</span>`;
  return html`<button type="button" class="copy-id mono" title=${`${id}: copy`} aria-label=${`Copy ${id}`}
    onClick=${(event) => { event.preventDefault(); event.stopPropagation(); copy(id, `Copied ${shortId(id)}`); }}>${whole ? id : shortId(id)}<${Icon} name="copy" size=${12} /></button>`;
}

/** Return a command or a piece of code with a copy button. */
export function Command({ text }) {
  return html`<div class="command"><pre>${text}</pre>
    <button type="button" class="icon-button" aria-label="Copy" title="Copy" onClick=${() => copy(text)}><${Icon} name="copy" size=${14} /></button></div>`;
}

export function Empty({ icon = 'calls', title, children }) {
  return html`<div class="empty"><${Icon} name=${icon} size=${28} /><h2>${title}</h2>${children}</div>`;
}

/** Return an error as the API said it: code, sentence, what to do. */
export function Failure({ error, retry }) {
  const problems = (error.problems || []).slice(0, 20);
  return html`<div class="notice s-error" role="alert"><${Icon} name="warn" /><div class="grow stack">
    <div><strong>${error.title || (error.code ? '' : 'That did not work')}</strong> ${error.code && html`<code>${error.code}</code>`}</div>
    <div class="text">${error.message}</div>
    ${problems.length > 0 && html`<ul>${problems.map((one) => html`<li><code>${one.pointer || one.path || ''}</code> ${one.detail || one.message || ''}</li>`)}</ul>`}
    ${error.advice && html`<div class="ink-2">${error.advice}</div>`}
    ${retry && html`<div><button type="button" class="button small" onClick=${retry}>Try again</button></div>`}
  </div></div>`;
}

export function Notice({ kind = 'accent', icon, children }) {
  return html`<div class=${`notice s-${kind}`}><${Icon} name=${icon || ICONS[kind] || kind} /><div class="grow">${children}</div></div>`;
}

export const Loading = ({ what = 'Loading' }) => html`<div class="loading" role="status">${what} …</div>`;

/** Load something and keep it: `{data, error, loading, reload, set}`. What was there stays while it is loaded again. */
export function useLoad(load, deps) {
  const key = JSON.stringify(deps);
  const [state, setState] = useState({ key, data: undefined, error: null, loading: true });
  const turn = useRef(0);
  const latest = useRef();
  latest.current = { key, load };
  const run = () => { // what is shown now, also by a `reload` that was handed out for other deps
    const mine = ++turn.current;
    const { key, load } = latest.current;
    return Promise.resolve().then(load).then(
      (data) => { if (mine === turn.current) setState({ key, data, error: null, loading: false }); },
      (error) => { if (mine === turn.current && error.name !== 'AbortError') setState((old) => ({ key, data: old.key === key ? old.data : undefined, error, loading: false })); },
    );
  };
  useLayoutEffect(() => { // asked at once: an effect would wait until the empty view is painted
    run();
    return () => { turn.current += 1; };
  }, [key]);
  const shown = state.key === key ? state : { data: undefined, error: null, loading: true }; // what was loaded for other deps is not shown for these
  return { ...shown, reload: run };
}

/** Show what was loaded, or that it is loading, or why it failed; what was there before stays above its error. */
export function Loaded({ state, what, children }) {
  if (state.data === undefined) return state.error ? html`<div class="body"><${Failure} error=${state.error} retry=${() => state.reload()} /></div>` : html`<${Loading} what=${what} />`;
  return html`${state.error && html`<div class="pad"><${Failure} error=${state.error} retry=${() => state.reload()} /></div>`}${children(state.data)}`;
}

const dialog = signal(null);

/** Ask before something that cannot be undone. Resolves with what was entered (or true), null if the person went back. */
export function confirm({ title, consequence, action = 'Continue', danger = true, type, field, fieldRequired, notes }) {
  return new Promise((resolve) => { dialog.value = { title, consequence, action, danger, type, field, fieldRequired, notes, resolve }; });
}

export function Dialogs() {
  const open = dialog.value;
  const element = useRef();
  const [text, setText] = useState('');
  useLayoutEffect(() => {
    setText('');
    if (open && !element.current.open) element.current.showModal();
  }, [open]);
  if (!open) return null;
  const end = (value) => { dialog.value = null; open.resolve(value); };
  const ready = open.type ? text === open.type : !open.fieldRequired || text.trim();
  return html`<dialog ref=${element} aria-labelledby="dialog-title" onCancel=${(event) => { event.preventDefault(); end(null); }}>
    <form class="dialog-in" onSubmit=${(event) => { event.preventDefault(); if (ready) end(open.field || open.type ? text || true : true); }}>
      <h2 id="dialog-title">${open.title}</h2>
      <div class="ink-2 text">${open.consequence}</div>
      ${open.notes && html`<ul class="bullets">${open.notes.map((one) => html`<li>${one}</li>`)}</ul>`}
      ${open.type && html`<label class="field"><span>Type <code>${open.type}</code> to go on</span><input autofocus value=${text} onInput=${(event) => setText(event.target.value)} autocomplete="off" spellcheck="false" /></label>`}
      ${open.field && html`<label class="field"><span>${open.field}</span><textarea autofocus rows="3" value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label>`}
      <div class="actions"><button type="button" class="button" onClick=${() => end(null)}>Back</button>
        <button type="submit" class=${`button primary ${open.danger ? 'danger' : ''}`} disabled=${!ready}>${open.action}</button></div>
    </form></dialog>`;
}

/** Run an action and say how it ended; its error is shown as the API says it. */
export async function act(work, done) {
  try {
    const result = await work();
    if (done) toast(typeof done === 'function' ? done(result) : done);
    return result;
  } catch (error) {
    toast(`${error.code ? `${error.code}: ` : ''}${error.message}`, 'error');
    return undefined;
  }
}

export function Tabs({ tabs, current, onPick, label }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.findIndex((one) => one.id === current);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    onPick(next.id);
    event.currentTarget.querySelector(`[data-tab="${next.id}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>${tabs.map((one) => html`<button type="button" role="tab" key=${one.id}
    data-tab=${one.id} aria-selected=${one.id === current ? 'true' : 'false'} tabindex=${one.id === current ? 0 : -1} onClick=${() => onPick(one.id)}>${one.name}${one.count !== undefined && html`<span class="count">${number(one.count)}</span>`}</button>`)}</div>`;
}

export function Segmented({ options, value, onPick, label }) {
  return html`<div class="segmented" role="group" aria-label=${label}>${options.map(([id, name]) => html`<button type="button" key=${id}
    aria-pressed=${id === value ? 'true' : 'false'} onClick=${() => onPick(id)}>${name}</button>`)}</div>`;
}

/** Return an address as people read it: runs call in the name of `comity.workflow/NODE`. */
const spokenName = (address) => (address?.startsWith('comity.workflow/') ? 'workflow' : address);

/** Return who called whom. */
export const Hop = ({ source, target }) => html`<span class="hop"><span class=${source ? 'cut' : 'ink-3'} title=${source || ''}>${spokenName(source) || 'user'}</span><span class="arrow" aria-label="to">→</span><b title=${target}>${spokenName(target)}</b></span>`;

export const Bar = ({ title, crumb, children }) => html`<div class="bar"><h1>${crumb && html`<span class="crumb">${crumb} / </span>`}${title}</h1>${children}</div>`;
