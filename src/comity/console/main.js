// The frame: signing in, navigation, command palette, keys, and the view that the address names.
import { html, render, signal, effect, useEffect, useLayoutEffect, useRef, useState } from './vendor.js';
import { address, get, me, post, setToken, token } from './api.js';
import { go, href, route } from './router.js';
import { heardAt, onEvent, start, state as live } from './live.js';
import { bindings, useKeys } from './keys.js';
import { Dialogs, Empty, Failure, Loading, Toasts, copy, toast } from './ui.js';
import { Icon, Mark } from './icons.js';
import { now, toggleUtc, utc } from './format.js';
import { countWaiting, waiting } from './waiting.js';

const VIEWS = [
  ['Observe', 'map', 'Map', 'm'], ['', 'calls', 'Calls', 'c'], ['', 'sessions', 'Sessions', 's'], ['', 'insights', 'Insights', 'i'], ['', 'audit', 'Audit', 'a'],
  ['Decide', 'approvals', 'Approvals', 'n'], ['', 'handoffs', 'Handoffs', 'h'], ['', 'guidance', 'Guidance', 'u'],
  ['Run', 'playground', 'Playground', 'p'], ['', 'workflows', 'Workflows', 'w'], ['', 'system', 'System', 'y'],
];
const PRELOAD_MS = 1_500; // after the frame stands
const loaded = new Map();
/** Read the module of a view. */
const load = (view) => import(`./views/${view}.js`).then((found) => loaded.set(view, found), (error) => loaded.set(view, { error }));
const paletteOpen = signal(false);
const keysOpen = signal(false);

// --- theme ---
const theme = signal(localStorage.getItem('comity.theme') || '');
effect(() => {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
  else delete document.documentElement.dataset.theme;
});
const isDark = () => (theme.value ? theme.value === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches);
function toggleTheme() {
  theme.value = isDark() ? 'light' : 'dark';
  localStorage.setItem('comity.theme', theme.value);
}

// --- signing in ---
/** Exchange the one-time code of a printed link for a token; the code leaves the address at once. */
async function signInByCode() {
  const found = location.hash.match(/^#code=([^&]+)(?:&next=(.*))?$/);
  if (!found) return null;
  history.replaceState(null, '', found[2] ? decodeURIComponent(found[2]) : '#/map');
  dispatchEvent(new HashChangeEvent('hashchange'));
  setToken('');
  try {
    const answer = await post('session', { code: decodeURIComponent(found[1]) });
    setToken(answer.token);
    return null;
  } catch (error) {
    return error;
  }
}

const SECRET_KEY = 'comity.signin';

/** Leave for the provider; the secret that binds its answer to this tab stays here, and its digest goes along. */
async function leaveForProvider() {
  const written = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  const secret = written(crypto.getRandomValues(new Uint8Array(32)));
  sessionStorage.setItem(SECRET_KEY, secret);
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret));
  location.assign(address('signin/start', { bind: written(new Uint8Array(digest)) }));
}

/** Exchange the code that the provider's answer left in the address, with the secret of this tab. */
async function signInByProvider() {
  const found = location.hash.match(/^#signin(_error)?=([^&]+)/);
  if (!found) return null;
  history.replaceState(null, '', '#/map');
  const secret = sessionStorage.getItem(SECRET_KEY) || '';
  sessionStorage.removeItem(SECRET_KEY);
  if (found[1]) return { code: decodeURIComponent(found[2]), message: 'The provider did not sign you in.' };
  try {
    const answer = await post('signin/exchange', { code: decodeURIComponent(found[2]), secret });
    setToken(answer.token);
    return null;
  } catch (error) {
    return error;
  }
}

function SignIn({ problem }) {
  const [text, setText] = useState('');
  const [error, setError] = useState(problem);
  const [busy, setBusy] = useState(false);
  const [provider, setProvider] = useState('');
  useEffect(() => { get('../.well-known/comity.json').then((facts) => setProvider(facts.signin), () => {}); }, []);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      me.value = await get('me', {}, { bearer: text.trim() });
      setToken(text.trim());
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<main class="signin"><div class="signin-card"><div class="brand big"><${Mark} />Comity</div>
    <h1>Sign in to this node</h1>
    <p class="ink-2">Open the link that <code>comity serve</code> printed: it holds a code that works once. Or paste a token.</p>
    ${error && html`<${Failure} error=${error} />`}
    ${provider && html`<button type="button" class="button primary" onClick=${leaveForProvider}>Sign in with ${provider}</button>`}
    <form class="stack" onSubmit=${submit}><label class="field"><span>Token</span>
      <input type="password" autocomplete="off" value=${text} onInput=${(event) => setText(event.target.value)} autofocus /></label>
      <button class="button primary" disabled=${!text.trim() || busy}>Sign in</button></form>
    <p class="hint">The token stays in this tab and goes when the tab closes. No cookie is set.</p></div></main>`;
}

// --- rail ---
function Rail() {
  const current = route.value.view;
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [current]);
  const quiet = live.value === 'live' ? 'Live' : live.value === 'lost' ? `Reconnecting, last event ${heardAt.value ? `${Math.max(0, Math.round((now.value - heardAt.value) / 1000))} s ago` : 'never'}` : 'Connecting';
  const who = me.value || {};
  return html`<header class=${`rail ${open ? 'open' : ''}`}>
    <a class="brand" href="#/map" aria-label="Comity, map"><${Mark} />Comity</a>
    <button type="button" class="find" onClick=${() => { paletteOpen.value = true; }}><${Icon} name="search" size=${14} /><span>Find or do</span><kbd>Ctrl K</kbd></button>
    <button type="button" class="icon-button menu-button" aria-label="Menu" aria-expanded=${open ? 'true' : 'false'} onClick=${() => setOpen(!open)}><${Icon} name="menu" /></button>
    <nav class="nav" aria-label="Views">${VIEWS.map(([group, id, name, key]) => html`${group && html`<div class="nav-group">${group}</div>`}
      <a key=${id} href=${href(id)} aria-current=${current === id || (id === 'calls' && current === 'call') ? 'page' : null} title=${`g ${key}`}><${Icon} name=${id} />${name}${waiting.value[id] > 0
        && html`<span class="badge" aria-label=${`${waiting.value[id]} waiting`}>${waiting.value[id]}</span>`}</a>`)}</nav>
    <div class="rail-foot">
      <div class="line"><span class=${`dot ${live.value}`}></span><span class="grow">${quiet}</span></div>
      <div class="cut" title=${`node ${who.node || ''}${who.store ? `, store ${who.store}` : ''}`}>${who.engine || location.host}${who.node ? ` · ${who.node.slice(0, 8)}` : ''}</div>
      <div class="cut" title=${(who.rights || []).join(', ')}>${who.user_id || ''}${who.tenant_id ? ` · ${who.tenant_id}` : ''}</div>
      <div class="line tools">
        <button type="button" class="icon-button" aria-label=${isDark() ? 'Light theme' : 'Dark theme'} title="Light or dark" onClick=${toggleTheme}><${Icon} name=${isDark() ? 'sun' : 'moon'} size=${14} /></button>
        <button type="button" class="icon-button" aria-label="Keys" title="Keys (?)" onClick=${() => { keysOpen.value = true; }}>?</button>
        <button type="button" class="icon-button" aria-label="Sign out" title="Sign out" onClick=${() => { setToken(''); me.value = null; }}><${Icon} name="out" size=${14} /></button></div>
    </div></header>`;
}

// --- command palette ---
async function lookUp(text) {
  const found = [];
  try {
    const agents = await get('agents', { q: text });
    for (const one of agents.items.slice(0, 8)) found.push({ name: one.id, kind: 'agent', icon: 'map', run: () => go(href('map', one.id)) });
  } catch { /* the palette still offers the rest */ }
  if (/^[\w.:-]{6,}$/.test(text)) {
    found.push({ name: `Open call ${text}`, kind: 'call', icon: 'calls', run: () => go(href('call', text)) });
    found.push({ name: `Open session ${text}`, kind: 'session', icon: 'sessions', run: () => go(href('sessions', text)) });
  }
  if (text) found.push({ name: `Calls with ${text}`, kind: 'filter', icon: 'search', run: () => go(href('calls', '', { q: text })) });
  return found;
}

const COMMANDS = [
  ...VIEWS.map(([, id, name, key]) => ({ name: `Go to ${name}`, kind: `g ${key}`, icon: id, run: () => go(href(id)) })),
  { name: 'Only failed calls', kind: 'filter', icon: 'error', run: () => go(href('calls', '', { q: 'status:error,timeout' })) },
  { name: 'Only refused calls', kind: 'filter', icon: 'refused', run: () => go(href('calls', '', { q: 'status:refused' })) },
  { name: 'Switch between light and dark', kind: 'look', icon: 'moon', run: toggleTheme },
  { name: 'Switch between local time and UTC', kind: 'Z', icon: 'timeout', run: toggleUtc },
  { name: 'Verify the audit', kind: 'audit', icon: 'audit', run: () => go(href('audit', '', { verify: 1 })) },
  { name: 'Copy the link to this page', kind: 'x', icon: 'link', run: () => copy(location.href, 'Link copied') },
  { name: 'Show all keys', kind: '?', icon: 'key', run: () => { keysOpen.value = true; } },
];

function Palette() {
  const element = useRef();
  const [text, setText] = useState('');
  const [more, setMore] = useState([]);
  const [at, setAt] = useState(0);
  useLayoutEffect(() => { element.current.showModal(); }, []);
  useEffect(() => {
    let isOver = false;
    const timer = setTimeout(async () => { const found = text.trim() ? await lookUp(text.trim()) : []; if (!isOver) setMore(found); }, 120);
    return () => { isOver = true; clearTimeout(timer); };
  }, [text]);
  const wanted = text.trim().toLowerCase();
  const items = [...COMMANDS.filter((one) => one.name.toLowerCase().includes(wanted)), ...more];
  const chosen = Math.min(at, Math.max(items.length - 1, 0));
  const close = () => { paletteOpen.value = false; };
  const run = (item) => { close(); item?.run(); };
  const press = (event) => {
    if (event.key === 'ArrowDown') setAt(Math.min(chosen + 1, items.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0));
    else if (event.key === 'Enter') run(items[chosen]);
    else return;
    event.preventDefault();
  };
  useEffect(() => { element.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }); }, [chosen]);
  return html`<dialog class="palette" ref=${element} aria-label="Find or do" onCancel=${close} onClick=${(event) => { if (event.target === element.current) close(); }}>
    <input role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${`palette-${chosen}`} aria-label="Find a view, agent, call, session or command"
      placeholder="Find a view, agent, call, session or command" value=${text} onInput=${(event) => { setText(event.target.value); setAt(0); }} onKeyDown=${press} autofocus />
    <ul id="palette-list" role="listbox" aria-label="Results" tabindex="-1">${items.map((one, index) => html`<li key=${one.name} id=${`palette-${index}`} role="option" aria-selected=${index === chosen ? 'true' : 'false'}
      onMouseMove=${() => setAt(index)} onClick=${() => run(one)}><${Icon} name=${one.icon} /><span class="cut">${one.name}</span><span class="kind">${one.kind}</span></li>`)}</ul></dialog>`;
}

function Keys() {
  const element = useRef();
  useLayoutEffect(() => { element.current.showModal(); }, []);
  const close = () => { keysOpen.value = false; };
  const groups = Map.groupBy ? Map.groupBy(bindings.value, (one) => one.group) : new Map([['Keys', bindings.value]]);
  return html`<dialog class="keys-dialog" ref=${element} aria-labelledby="keys-title" onCancel=${close}><div class="dialog-in">
    <div class="line"><h2 id="keys-title" class="grow">Keys</h2><button class="icon-button" aria-label="Close" onClick=${close} autofocus><${Icon} name="close" /></button></div>
    ${[...groups].map(([group, list]) => html`<section><h3>${group}</h3><div class="keys">${list.map((one) => html`<div><span class="what">${one.what}</span>
      <span>${one.keys.split(' ').map((key) => html`<kbd>${key}</kbd> `)}</span></div>`)}</div></section>`)}</div></dialog>`;
}

// --- the page ---
function View() {
  const { view } = route.value;
  const [, again] = useState(0);
  const entry = loaded.get(view);
  const known = view === 'call' || VIEWS.some(([, id]) => id === view);
  useEffect(() => {
    document.title = `${VIEWS.find(([, id]) => id === view)?.[2] || 'Call'} · Comity`;
    if (entry?.View || !known) return;
    load(view).then(() => again((n) => n + 1));
  }, [view]);
  if (!known) return html`<${Empty} icon="search" title="There is no such view"><p>The address names <code>${view}</code>.</p><a class="button" href="#/map">Go to the map</a></${Empty}>`;
  if (entry?.error) return html`<div class="body"><${Failure} error=${entry.error} retry=${() => location.reload()} /></div>`;
  if (!entry) return html`<${Loading} />`;
  return html`<${entry.View} key=${view} />`;
}

function Frame() {
  useEffect(() => {
    start();
    countWaiting();
    const stops = ['approval', 'handoff', 'gap'].map((kind) => onEvent(kind, countWaiting));
    return () => stops.forEach((stop) => stop());
  }, []);
  useKeys('Anywhere', [
    ['Ctrl k', 'Find or do', () => { paletteOpen.value = true; }, { whileTyping: true }],
    ['?', 'Show keys', () => { keysOpen.value = true; }],
    ['x', 'Copy the link to this page', () => copy(location.href, 'Link copied')],
    ['Z', 'Local time or UTC', () => { toggleUtc(); toast(utc.value ? 'Times in UTC' : 'Times in your zone'); }],
    ...VIEWS.map(([, id, name, key]) => [`g ${key}`, `Go to ${name}`, () => go(href(id))]),
  ]);
  // The views that people open next are read once nothing else is to be done.
  useEffect(() => { setTimeout(() => ['calls', 'call'].forEach((view) => loaded.has(view) || load(view)), PRELOAD_MS); }, []);
  return html`<div class="frame"><a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById('main').focus(); }}>Skip to the content</a>
    <${Rail} /><main class="main" id="main" tabindex="-1"><${View} /></main></div>
    ${paletteOpen.value && html`<${Palette} />`}${keysOpen.value && html`<${Keys} />`}`;
}

const unknown = signal(null); // why the node did not say who signs in

/** Ask the node who signs in: at once where there is a token, before anything is drawn. */
const askWho = () => effect(() => {
  if (!token.value || me.value) return;
  get('me').then((answer) => { me.value = answer; unknown.value = null; }, (failure) => { if (failure.status !== 401) unknown.value = failure; });
});

function App() {
  const error = unknown.value;
  let page = html`<${SignIn} key=${problem.value?.message || ''} problem=${problem.value} />`;
  if (token.value) page = me.value ? html`<${Frame} />` : error ? html`<main class="body"><${Failure} error=${error} retry=${() => location.reload()} /></main>` : html`<${Loading} what="Signing in" />`;
  return html`${page}<${Dialogs} /><${Toasts} />`;
}

// The first view is read while the node is asked who signs in.
const firstView = location.hash.match(/^#\/(\w+)/)?.[1] || 'map';
if (firstView === 'call' || VIEWS.some(([, id]) => id === firstView)) load(firstView);

const problem = signal(null); // why the last link or provider did not sign in

async function signIn() {
  problem.value = await signInByCode() || await signInByProvider();
}

// A link that is opened in a tab where the console already stands changes the address alone.
addEventListener('hashchange', () => { if (/^#(?:code|signin(?:_error)?)=/.test(location.hash)) { me.value = null; signIn(); } });

signIn().then(() => {
  askWho();
  const root = document.getElementById('app');
  root.replaceChildren();
  render(html`<${App} />`, root);
});
