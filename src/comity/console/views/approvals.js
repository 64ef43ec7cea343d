// Approvals: what waits for a person, what it would do, who asked through whom; decided ones stay with who decided.
import { html, useEffect, useState } from '../vendor.js';
import { can, get, post, segment } from '../api.js';
import { href, route, setParams } from '../router.js';
import { onEvent } from '../live.js';
import { useKeys } from '../keys.js';
import { countWaiting } from '../waiting.js';
import { Json } from '../json.js';
import { Bar, Command, Empty, Id, Loaded, Notice, Segmented, Status, When, act, confirm, useLoad } from '../ui.js';
import { Icon } from '../icons.js';

export function View() {
  const { id, params } = route.value;
  const state = params.state || 'waiting';
  const list = useLoad(() => get('approvals', { state, limit: 200 }), [state]);
  useEffect(() => {
    const again = () => { list.reload(true); countWaiting(); };
    const stops = ['approval', 'gap'].map((kind) => onEvent(kind, again));
    return () => stops.forEach((stop) => stop());
  }, [state]);
  const [asks, setAsks] = useState(() => 'Notification' in window && Notification.permission === 'default');
  const items = list.data?.items || [];
  const open = items.find((one) => one.id === id) || items[0];
  useKeys('Approvals', [
    ['j', 'Next', () => step(items, open, 1)], ['k', 'Previous', () => step(items, open, -1)],
    ['y', 'Grant', () => open && decide(open, true, list.reload)], ['n', 'Deny', () => open && decide(open, false, list.reload)],
  ]);
  return html`<div class="view"><${Bar} title="Approvals"><span class="ink-3">Tools that ask a person first</span><span class="spacer"></span>
      ${asks && html`<button type="button" class="button" onClick=${async () => { await Notification.requestPermission(); setAsks(false); }}>Notify me</button>`}
      <${Segmented} label="Show" options=${[['waiting', 'Waiting'], ['decided', 'Decided']]} value=${state} onPick=${(next) => setParams({ state: next === 'waiting' ? '' : next }, { id: '' })} /></${Bar}>
    <${Loaded} state=${list} what="Reading approvals">${() => (items.length ? html`<div class="split list-left has-both"><nav class="items" aria-label="Approvals">${items.map((one) => html`<a key=${one.id} class="item" href=${href('approvals', one.id, params)} aria-current=${one === open ? 'true' : null}>
        <span class="line"><b class="grow cut">${one.tool}</b><${Status} status=${stateOf(one)} /></span><span class="line ink-2"><span class="cut grow">${one.agent} for ${one.user_id}</span><${When} at=${one.asked_at} /></span></a>`)}</nav>
        <section class="detail" aria-label="Approval"><${Detail} key=${open.id} one=${open} reload=${list.reload} /></section></div>`
      : html`<${Empty} icon="approvals" title=${state === 'waiting' ? 'Nothing waits for you' : 'Nothing was decided yet'}><p>A tool of high risk, <code>Tool(…, risk="high")</code>, stops here, wherever in a tree it is used, until a person decides.</p><${Command} text="comity approvals list" /></${Empty}>`)}</${Loaded}></div>`;
}

const stateOf = (one) => one.state;

function step(items, open, by) {
  const next = items[items.indexOf(open) + by];
  if (next) setParams({}, { id: next.id });
}

async function decide(one, granted, reload) {
  const sure = await confirm({
    title: granted ? `Grant ${one.tool}?` : `Deny ${one.tool}?`,
    consequence: granted ? `${one.agent} will run ${one.tool} with exactly the inputs shown, once, and its call goes on.` : `${one.agent} is told that a person said no, with your reason, and goes on without it.`,
    action: granted ? 'Grant' : 'Deny', danger: !granted, field: 'Reason (optional)',
  });
  if (!sure) return;
  const reason = typeof sure === 'string' ? sure.trim() : '';
  await act(() => post(`approvals/${segment(one.id)}/${granted ? 'grant' : 'deny'}`, reason ? { reason } : {}), granted ? 'Granted' : 'Denied');
  reload(true);
  countWaiting();
}

function Detail({ one, reload }) {
  const waits = stateOf(one) === 'waiting';
  return html`<div class="detail-in stack wide"><div class="line wrap"><${Status} status=${stateOf(one)} /><h2>${one.tool}</h2><span class="spacer"></span><${Id} id=${one.id} /></div>
    ${waits && (can('approvals:decide') ? html`<div class="line"><button type="button" class="button primary" onClick=${() => decide(one, true, reload)}><${Icon} name="success" size=${14} />Grant</button><button type="button" class="button danger" onClick=${() => decide(one, false, reload)}>Deny</button>
      <span class="ink-3"><kbd>y</kbd> <kbd>n</kbd></span></div>` : html`<${Notice} kind="muted" icon="key">Your token may look, not decide.</${Notice}>`)}
    <section class="part"><h3>Agent, on behalf of a user</h3><p class="chain"><span class="tag"><${Icon} name="person" size=${12} /> ${one.user_id}</span>${[...one.chain, one.agent].filter((each, at, all) => each !== all[at - 1]).map((each) => html`<span class="arrow">→</span><b>${each}</b>`)}<span class="arrow">→</span><code>${one.tool}</code></p></section>
    <section class="part"><h3>What will be done</h3><p>Run <code>${one.tool}</code>${one.risk ? ` (risk: ${one.risk})` : ''} with these inputs:</p><${Json} value=${one.inputs} label="inputs" /></section>
    ${waits && one.ended && html`<${Notice} kind="muted" icon="timeout">The call that asked has ended; nothing waits for the answer any more.</${Notice}>`}
    <dl class="facts"><dt>Asked</dt><dd><${When} at=${one.asked_at} /></dd>${one.decided_at && html`<dt>Decided</dt><dd><${When} at=${one.decided_at} /> by ${one.decided_by}</dd>`}${one.reason && html`<dt>Reason</dt><dd class="text">${one.reason}</dd>`}
      ${html`<dt>Call</dt><dd><a href=${href('call', one.root_id)}>Open the call tree</a></dd>`}${one.session_id && html`<dt>Session</dt><dd><a href=${href('sessions', one.session_id)}>${one.session_id}</a></dd>`}</dl></div>`;
}
