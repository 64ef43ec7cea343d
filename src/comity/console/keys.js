// Keys: one listener for the page. A view registers what its keys do while it is shown; `?` lists them.
import { signal, useEffect, useRef } from './vendor.js';

/** What can be pressed now, for the list of keys: `[{keys, what, group}]`. */
export const bindings = signal([]);
let pending = '';
let timer = 0;

const isTyping = (target) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && target.type !== 'checkbox' && target.type !== 'range';

function nameOf(event) {
  const name = event.key;
  return `${event.ctrlKey || event.metaKey ? 'Ctrl ' : ''}${event.altKey ? 'Alt ' : ''}${name.length === 1 && (event.ctrlKey || event.metaKey) ? name.toLowerCase() : name}`;
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return;
  const name = nameOf(event);
  const typing = isTyping(event.target);
  const wanted = pending ? `${pending} ${name}` : name;
  const every = bindings.value;
  const found = every.findLast((one) => one.keys === wanted && (!typing || one.whileTyping));
  clearTimeout(timer);
  pending = '';
  if (found) {
    event.preventDefault();
    found.run(event);
  } else if (!typing && every.some((one) => one.keys.startsWith(`${name} `))) {
    pending = name;
    timer = setTimeout(() => { pending = ''; }, 1_200);
  }
});

/** Register keys while a component is shown: `[[keys, what it does, function, options]]`. */
export function useKeys(group, list) {
  const latest = useRef(list);
  latest.current = list;
  useEffect(() => {
    const mine = list.map(([keys, what, , options], at) => ({ keys, what, group, ...options, run: (event) => latest.current[at][2](event) }));
    bindings.value = [...bindings.value, ...mine];
    return () => { bindings.value = bindings.value.filter((one) => !mine.includes(one)); };
  }, [group, list.map((one) => one[0]).join()]);
}
