// The filter language of every list: `status:refused agent:ANL >500ms tokens>1k cost>0.01 since:1h text`. It becomes the query of the API.
export const CALL_FIELDS = { status: 'status', agent: 'agent', cap: 'capability', capability: 'capability', user: 'user', session: 'session', code: 'code', since: 'since', until: 'until' };
export const AUDIT_FIELDS = { kind: 'kind', agent: 'agent', user: 'user', root: 'root', call: 'request', since: 'since', until: 'until' };
const UNITS = { s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** Return epoch milliseconds of `15m`, `1h`, `2d` before now, or of a date; NaN if it is neither. */
export function moment(text, at = Date.now()) {
  const found = /^(\d+)\s*(s|m|min|h|d)$/.exec(text);
  return found ? at - Number(found[1]) * UNITS[found[2]] : Date.parse(text);
}

function nearest(word, fields) {
  let best = '', least = 3;
  for (const name of Object.keys(fields)) {
    const cost = distance(word, name);
    if (cost < least) { best = name; least = cost; }
  }
  return best;
}

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length];
}

/** Return `{params, chips}`: the query for the API and, in order, what was understood or not. */
export function parseFilter(text, fields = CALL_FIELDS, at = Date.now()) {
  const params = {};
  const chips = [];
  const free = [];
  for (const [word] of (text || '').matchAll(/[^\s"]*"[^"]*"|\S+/g)) {
    const took = /^>(\d+(?:\.\d+)?)(ms|s)$/.exec(word);
    const more = /^(tokens|cost)>(\d+(?:\.\d+)?)(k?)$/.exec(word);
    const field = /^([a-z_]+):(.*)$/.exec(word);
    if (more && fields === CALL_FIELDS) {
      const least = Number(more[2]) * (more[3] ? 1000 : 1);
      params[`min_${more[1]}`] = more[1] === 'tokens' ? Math.round(least) : least;
      chips.push({ word, text: `${more[1]} over ${more[2]}${more[3]}` });
    } else if (took) {
      params.min_ms = Math.round(Number(took[1]) * (took[2] === 's' ? 1000 : 1));
      chips.push({ word, text: `took over ${took[1]} ${took[2]}` });
    } else if (field && fields[field[1]]) {
      const value = field[2].replaceAll('"', '');
      const name = fields[field[1]];
      if (name === 'since' || name === 'until') {
        const ms = moment(value, at);
        if (Number.isNaN(ms)) { chips.push({ word, text: word, problem: 'a time is 15m, 1h, 2d or a date' }); continue; }
        params[name] = Math.round(ms);
      } else if (value) {
        params[name] = value;
      }
      chips.push({ word, text: `${field[1]} ${value}` });
    } else if (field) {
      const close = nearest(field[1], fields);
      chips.push({ word, text: word, problem: close ? `did you mean ${close}:?` : 'no such field' });
    } else {
      free.push(word.replaceAll('"', ''));
      chips.push({ word, text: `“${word.replaceAll('"', '')}”` });
    }
  }
  if (free.length) params.q = free.join(' ');
  return { params, chips };
}

/** Return a filter text with one word added, replaced (same field) or removed. */
export function withWord(text, word) {
  const field = word.split(':')[0];
  const kept = (text || '').split(/\s+/).filter((one) => one && one.split(':')[0] !== field && one !== word);
  return [...kept, ...(word.endsWith(':') ? [] : [word])].join(' ');
}
