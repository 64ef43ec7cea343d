// Chat: a conversation with one agent in one session. The answer grows while it is written, and beside it the calls it takes.
import { html, useEffect, useRef, useState } from './vendor.js';
import { can, me } from './api.js';
import { go, href, setParams } from './router.js';
import { Waterfall } from './waterfall.js';
import { Spoken } from './json.js';
import { Empty, Failure, Notice, Status } from './ui.js';
import { now } from './format.js';
import { Icon } from './icons.js';

const TURNS_MAX = 200; // kept in the page; the session has all

/** What an agent said: its message, else the text that streamed, else the one text or the whole of its data. */
export function said(turn) {
  const { reply } = turn;
  if (!reply) return turn.text;
  if (reply.message || turn.text) return reply.message || turn.text;
  if (typeof reply.data === 'string') return reply.data;
  const texts = Object.values(reply.data || {}).filter((one) => typeof one === 'string');
  return texts.length === 1 ? texts[0] : JSON.stringify(reply.data ?? null, null, 2);
}

/** Whether a capability can be talked to: it needs a message and no inputs. */
export const isTalk = (capability) => !(capability.input_schema?.required || []).length;

export function Chat({ agent, capability, run, session }) {
  const [turns, setTurns] = useState([]);
  const [text, setText] = useState('');
  const [at, setAt] = useState(-1);
  const end = useRef();
  const isBusy = run.isRunning;
  const latest = turns.length - 1;
  useEffect(() => { // the last turn is what the run says
    if (!turns.length) return;
    const { id, rows, text: grown, notes, reply, error } = run;
    setTurns((old) => old.map((one, index) => (index === old.length - 1 ? { ...one, id, rows, text: grown, notes, reply, error } : one)));
    if (reply?.session_id && reply.session_id !== session) setParams({ session: reply.session_id });
  }, [run.id, run.rows, run.text, run.reply, run.error]);
  useEffect(() => { end.current?.scrollIntoView({ block: 'end' }); }, [turns.length, run.text, run.reply]);
  const say = (event) => {
    event.preventDefault();
    const message = text.trim();
    if (!message || isBusy) return;
    setTurns((old) => [...old.slice(-TURNS_MAX), { message, text: '', rows: [], notes: [], reply: null }]);
    setText('');
    setAt(-1);
    run.start({ target: agent.id, capability: capability.code, inputs: {}, message, user_id: me.value?.user_id || 'u1', ...(session && { session_id: session }) });
  };
  const press = (event) => { if (event.key === 'Enter' && !event.shiftKey) say(event); };
  const shown = turns[at < 0 ? latest : at];
  const begin = () => { setTurns([]); setParams({ session: '' }); };
  return html`<section class="play-form chat" aria-label="Chat"><div class="line wrap"><h2>${agent.id} <span class="ink-2">${capability.code}</span></h2><span class="spacer"></span>
      <button type="button" class="button small" onClick=${() => setParams({ as: 'form' })}>Form</button>${session && html`<a class="button small" href=${href('sessions', session)}>Session</a><button type="button" class="button small" onClick=${begin}>New conversation</button>`}</div>
    <div class="turns" role="log" aria-label="Conversation" tabindex="0">${!turns.length && html`<${Empty} icon="playground" title=${`Talk to ${agent.id}`}><p>What you say and what it answers stays in one session.</p></${Empty}>`}
      ${turns.map((turn, index) => html`<div class="turn you"><span class="sr">You: </span><span class="text">${turn.message}</span></div>
      <div class="turn agent"><div class="line"><b>${agent.id}</b>${turn.reply ? html`<${Status} status=${turn.reply.status} />` : turn.error ? null : html`<${Status} status="running" />`}<span class="spacer"></span>
        <button type="button" class="button plain small" aria-pressed=${turn === shown ? 'true' : 'false'} onClick=${() => setAt(index)}>Calls</button>${turn.id && html`<a class="button plain small" href=${href('call', turn.id)}>Open</a>`}</div>
        ${turn.error && html`<${Failure} error=${turn.error} />`}${turn.reply?.error && html`<div><code>${turn.reply.error.code}</code> <span class="text">${turn.reply.error.message}</span></div>`}
        ${(!turn.reply || !turn.reply.error) && html`<div class="text"><${Spoken} text=${said(turn)} /></div>`}
        ${!turn.reply && (turn.notes || []).slice(-1).map((one) => html`<p class="hint">${one.who}: ${typeof one.data === 'string' ? one.data : JSON.stringify(one.data)}</p>`)}</div>`)}<div ref=${end}></div></div>
    ${can('calls:create') ? html`<form class="line say" aria-label="Say" onSubmit=${say}><textarea class="grow" rows="2" aria-label="Message" placeholder="Say something; Enter sends, Shift Enter begins a line" value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${press}></textarea>
      ${isBusy ? html`<button type="button" class="button danger" onClick=${run.cancel}>Cancel</button>` : html`<button class="button primary" disabled=${!text.trim()}><${Icon} name="playground" size=${14} />Send</button>`}</form>`
      : html`<${Notice} kind="muted" icon="key">Your token may look, not call.</${Notice}>`}</section>
    <section class="play-out" aria-label="Calls of the turn">${shown?.rows.length ? html`<${Waterfall} rows=${shown.rows} now=${isBusy && shown === turns[latest] ? now.value : undefined} selected="" onSelect=${(id) => { if (shown.id) go(href('call', shown.id, { at: id })); }} />`
      : html`<${Empty} icon="tree" title="No calls yet"><p>Which agents are asked for an answer appears here while it happens.</p></${Empty}>`}</section>`;
}
