// Handoffs: durable work between agents, as a board by state. Accept, answer, cancel; dead letters with their reason.
import { html, useEffect } from '../vendor.js';
import { can, get, post, segment } from '../api.js';
import { go, href, route, setParams } from '../router.js';
import { onEvent } from '../live.js';
import { useKeys } from '../keys.js';
import { Json, Text } from '../json.js';
import { Bar, Command, Empty, Hop, Id, Loaded, Notice, Segmented, Status, When, act, confirm, useLoad, words } from '../ui.js';
import { Icon } from '../icons.js';
import { absolute, count, relative } from '../format.js';

const LANES = [['pending', ['pending']], ['accepted', ['accepted']], ['in_progress', ['in_progress']], ['input_required', ['input_required']], ['ended', ['completed', 'failed', 'rejected', 'cancelled', 'timeout']]];

export function View() {
  const { id, params } = route.value;
  const list = useLoad(() => get('handoffs', { limit: 500 }), []);
  useEffect(() => {
    let timer = 0;
    const soon = () => { timer ||= setTimeout(() => { timer = 0; list.reload(true); }, 500); };
    const stops = [...['handoff', 'call', 'gap'].map((kind) => onEvent(kind, soon)), () => clearTimeout(timer)];
    return () => stops.forEach((stop) => stop());
  }, []);
  useEffect(() => { document.querySelector('.card[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }); }, [id, Boolean(list.data)]);
  const items = list.data?.items || [];
  const open = items.find((one) => one.id === id);
  const look = params.as || 'board';
  useKeys('Handoffs', [['a', 'Accept', () => open && accept(open, list.reload)], ['n', 'Answer', () => open && answer(open, list.reload)], ['c', 'Cancel the handoff', () => open && cancel(open, list.reload)], ['Escape', 'Close', () => go(href('handoffs', '', params))]]);
  return html`<div class="view"><${Bar} title="Handoffs"><span class="ink-3">Durable work from one agent to another</span><span class="spacer"></span><${Segmented} label="Show as" options=${[['board', 'Board'], ['table', 'Table'], ['dead', 'Dead letters']]} value=${look} onPick=${(as) => setParams({ as: as === 'board' ? '' : as })} /></${Bar}>
    <${Loaded} state=${list} what="Reading handoffs">${() => (items.length ? html`<div class=${`split ${open ? 'audit-split has-detail' : 'one'}`}>${look === 'board' ? html`<${Board} items=${items} open=${open} params=${params} />` : look === 'dead' ? html`<${DeadLetters} items=${items.filter((one) => DEAD.includes(one.state))} params=${params} />` : html`<${Table} items=${items} open=${open} params=${params} />`}
        ${open && html`<section class="detail" aria-label="Handoff"><${Detail} key=${open.id} one=${open} reload=${() => list.reload(true)} /></section>`}</div>`
      : html`<${Empty} icon="handoffs" title="No handoffs"><p>An agent leaves work for another with <code>ctx.hand_off(…)</code>; it survives restarts until it is done. From a shell:</p><${Command} text="comity handoff create --to AGENT --task 'what to do'" /></${Empty}>`)}</${Loaded}></div>`;
}

const to = (one) => (one.to_agent === one.capability ? `any with ${one.capability}` : one.to_agent);
const from = (one) => one.from_agent;

function Board({ items, open, params }) {
  return html`<div class="board">${LANES.map(([name, states]) => {
    const mine = items.filter((one) => states.includes(one.state));
    return html`<section class="lane" key=${name} aria-label=${words(name)}><h2>${name === 'ended' ? 'Ended' : html`<${Status} status=${name} />`}<span class="ink-3">${mine.length}</span></h2><div tabindex="0">${mine.slice(0, 100).map((one) => html`<a key=${one.id} class="card" href=${href('handoffs', one.id, params)} aria-current=${one === open ? 'true' : null}>
      ${name === 'ended' && html`<span><${Status} status=${one.state} /></span>`}<span class="clamp">${one.task || one.capability}</span><${Hop} source=${from(one)} target=${to(one)} /><span class="foot">${one.priority && one.priority !== 'normal' && html`<b>${one.priority}</b>`}<${When} at=${one.created_at} />${one.deadline_at && !['completed'].includes(one.state) && html`<span>ends ${relative(one.deadline_at)}</span>`}</span></a>`)}${mine.length > 100 && html`<p class="hint">and ${mine.length - 100} more: the table shows them</p>`}</div></section>`;
  })}</div>`;
}

function Table({ items, open, params }) {
  return html`<div><table class="grid"><thead><tr><th>State</th><th>Task</th><th>From → to</th><th>Created</th><th>Ends</th><th>Id</th></tr></thead><tbody>${items.map((one) => html`<tr><td><${Status} status=${one.state} /></td><td><a href=${href('handoffs', one.id, params)}>${(one.task || one.capability).slice(0, 120)}</a></td><td><${Hop} source=${from(one)} target=${to(one)} /></td><td class="nowrap"><${When} at=${one.created_at} /></td><td class="nowrap">${one.deadline_at ? relative(one.deadline_at) : '–'}</td><td><${Id} id=${one.id} /></td></tr>`)}</tbody></table></div>`;
}

const DEAD = ['failed', 'timeout', 'rejected'];

/** What was never done, and why. */
function DeadLetters({ items, params }) {
  if (!items.length) return html`<${Empty} icon="handoffs" title="No dead letters"><p>Handoffs that failed, ran out of time or were turned away stand here with the reason.</p></${Empty}>`;
  return html`<div><table class="grid"><thead><tr><th>State</th><th>Task</th><th>From → to</th><th>Attempts</th><th>Reason</th><th>Created</th></tr></thead><tbody>${items.map((one) => html`<tr><td><${Status} status=${one.state} /></td><td><a href=${href('handoffs', one.id, params)}>${(one.task || one.capability).slice(0, 120)}</a></td><td><${Hop} source=${from(one)} target=${to(one)} /></td><td class="num">${one.attempts} of ${one.attempts_max}</td><td class="text">${one.error ? html`<code>${one.error.code}</code> ${one.error.message}` : '–'}</td><td class="nowrap"><${When} at=${one.created_at} /></td></tr>`)}</tbody></table></div>`;
}

// What this tab accepted, by id: the lease under which it has it. The tab is the receiver for as long as it is open.
const leases = new Map();
const LEASE_MS = 60_000;

async function accept(one, reload) {
  if (one.state !== 'pending') return;
  const agent_id = one.to_agent;
  const sure = await confirm({ title: 'Do this yourself?', consequence: `You take it in the name of ${agent_id}; no agent gets it meanwhile. This tab holds it: close the tab, and it is given to the next receiver within a minute.`, action: 'Accept', danger: false });
  if (!sure) return;
  const capabilities = to(one).startsWith('any') ? [one.capability] : [];
  const taken = await act(() => post(`handoffs/${segment(one.id)}/accept`, { agent_id, capabilities, lease_ms: LEASE_MS }), 'Accepted');
  if (taken) {
    const timer = setInterval(() => post(`handoffs/${segment(one.id)}/heartbeat`, { lease: taken.lease }).catch(() => { clearInterval(timer); leases.delete(one.id); reload(true); }), LEASE_MS / 3);
    leases.set(one.id, { lease: taken.lease, timer });
  }
  reload(true);
}

/** End what this tab accepted: with a result, a reason, or by giving it back. */
async function end(one, how, reload) {
  const held = leases.get(one.id);
  const ask = {
    complete: { title: 'Complete it', consequence: 'The result goes to the sender of the handoff. JSON is sent as data, anything else as text.', action: 'Complete', danger: false, field: 'Result', fieldRequired: true },
    fail: { title: 'It cannot be done', consequence: 'It ends without a result, for the reason that you give.', action: 'Fail', field: 'Reason', fieldRequired: true },
    release: { title: 'Give it back?', consequence: 'The next receiver gets it.', action: 'Give back', danger: false },
  }[how];
  const said = await confirm(ask);
  if (!said) return;
  let result = said;
  try { result = JSON.parse(said); } catch { /* it is text */ }
  const body = { complete: { result }, fail: { reason: said }, release: {} }[how];
  const done = await act(() => post(`handoffs/${segment(one.id)}/${how}`, { lease: held.lease, ...body }), { complete: 'Completed', fail: 'Ended', release: 'Given back' }[how]);
  if (done) { clearInterval(held.timer); leases.delete(one.id); }
  reload(true);
}

const isOver = (one) => ['completed', 'failed', 'rejected', 'cancelled', 'timeout'].includes(one.state);

async function answer(one, reload) {
  if (one.state !== 'input_required') return;
  const text = await confirm({ title: 'Answer the question', consequence: one.question?.text || 'The receiver asked for input and goes on with what you write.', action: 'Send the answer', danger: false, field: 'Answer', fieldRequired: true });
  if (text) { await act(() => post(`handoffs/${segment(one.id)}/answer`, { answer: text }), 'The answer was sent'); reload(true); }
}

async function cancel(one, reload) {
  if (isOver(one)) return;
  if (await confirm({ title: 'Cancel this handoff?', consequence: `${to(one)} will not do it any more. If it has begun, it is told to stop; what it has done so far is not undone. ${from(one) || 'The sender'} is told that it was cancelled.`, action: 'Cancel the handoff' })) {
    await act(() => post(`handoffs/${segment(one.id)}/cancel`, {}), 'Cancelled');
    reload(true);
  }
}

/** Return in words what is known of something that happened to a handoff. */
function happened(data) {
  if (data === null || data === undefined) return '';
  if (typeof data !== 'object') return String(data);
  return data.reason || data.text || data.message || Object.entries(data).map(([name, value]) => `${words(name)} ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(', ');
}

function Detail({ one, reload }) {
  const state = useLoad(() => get(`handoffs/${segment(one.id)}`), [one.id, one.changed_at]);
  const whole = { ...one, ...state.data };
  return html`<div class="detail-in stack wide"><div class="line wrap"><${Status} status=${one.state} /><span class="spacer"></span><${Id} id=${one.id} /><a class="icon-button" href=${href('handoffs')} aria-label="Close"><${Icon} name="close" size=${14} /></a></div>
    <h2><${Hop} source=${from(one)} target=${to(one)} /></h2><p class="text"><${Text} text=${whole.task || ''} /></p>
    ${can('handoffs:write') && !isOver(one) && html`<div class="line wrap">${one.state === 'pending' && html`<button type="button" class="button primary" onClick=${() => accept(one, reload)}>Accept</button>`}
      ${leases.has(one.id) && html`<button type="button" class="button primary" onClick=${() => end(one, 'complete', reload)}>Complete</button><button type="button" class="button" onClick=${() => end(one, 'fail', reload)}>Fail</button><button type="button" class="button" onClick=${() => end(one, 'release', reload)}>Give back</button>`}
      ${one.state === 'input_required' && html`<button type="button" class="button primary" onClick=${() => answer(one, reload)}>Answer</button>`}<button type="button" class="button danger" onClick=${() => cancel(one, reload)}>Cancel</button></div>`}
    ${whole.error && html`<${Notice} kind=${one.state === 'failed' || one.state === 'timeout' ? 'error' : 'refused'}><code>${whole.error.code}</code> <span class="text">${whole.error.message}</span></${Notice}>`}
    <dl class="facts"><dt>Created</dt><dd>${absolute(one.created_at)}</dd>${one.deadline_at && html`<dt>${isOver(one) ? 'Deadline' : 'Ends'}</dt><dd>${isOver(one) ? absolute(one.deadline_at) : relative(one.deadline_at)}</dd>`}<dt>Priority</dt><dd>${one.priority || 'normal'}</dd>${whole.receiver && html`<dt>Receiver</dt><dd>${whole.receiver}</dd>`}<dt>Attempts</dt><dd>${whole.attempts} of ${whole.attempts_max}</dd><dt>Session</dt><dd><a href=${href('sessions', whole.session_id)}>${whole.session_id}</a></dd></dl>
    ${whole.inputs !== undefined && whole.inputs !== null && html`<section class="part"><h3>Inputs</h3><${Json} value=${whole.inputs} /></section>`}${whole.result !== undefined && whole.result !== null && html`<section class="part"><h3>Result</h3><${Json} value=${whole.result} /></section>`}
    ${whole.history?.length > 0 && html`<section class="part"><h3>History</h3><ol class="stack">${whole.history.map((each) => html`<li class="line"><${Status} status=${each[2]} /><span class="grow text">${happened(each[3])}</span><span class="ink-3"><${When} at=${each[1]} /></span></li>`)}</ol></section>`}</div>`;
}
