// What a call was asked. The store keeps it while the call is open; afterwards its span has it, where the node records content.
import { get, segment } from './api.js';

const SAID = ['gen_ai.input.messages', 'gen_ai.tool.call.arguments', 'handoff.task'];

/** Return the attributes of the span of a call, those named by `select`; null if the store has no such span. */
export async function spanOf(id, select) {
  const found = await get('../api/search', { q: `{ span.comity.request.id = ${JSON.stringify(id)} } | select(${select.map((one) => `span.${one}`).join(', ')})`, limit: 1, spss: 1 });
  const span = found.traces?.[0]?.spanSets?.[0]?.spans?.[0];
  return span ? Object.fromEntries(span.attributes.map((one) => [one.key, Object.values(one.value)[0]])) : null;
}

const parsed = (text) => { try { return JSON.parse(text); } catch { return undefined; } };

/** Return `{inputs, objective, message}` as the span of an ended call has it, or null where spans hold no content. */
export async function askedOf(id) {
  const said = await spanOf(id, SAID);
  if (said?.['gen_ai.tool.call.arguments'] !== undefined) return { inputs: parsed(said['gen_ai.tool.call.arguments']) ?? {}, message: said['handoff.task'] || '', objective: '' };
  const messages = parsed(said?.['gen_ai.input.messages'] || '');
  if (!Array.isArray(messages)) return null;
  const texts = messages.flatMap((one) => one.parts || []).map((part) => part.content).filter((text) => typeof text === 'string');
  const inputs = parsed(texts.at(-1));
  if (inputs === undefined || typeof inputs !== 'object') return { message: texts.join('\n'), objective: '' }; // of a model: no inputs, only words
  const words = texts.slice(0, -1); // objective, then message; either may be missing
  return { inputs, message: words.at(-1) || '', objective: words.length > 1 ? words[0] : '' };
}

/** Return a call as the API has it, with what it was asked also where only its span knows. */
export async function wholeCall(id) {
  const call = await get(`calls/${segment(id)}`);
  return call.request ? call : { ...call, request: await askedOf(id).catch(() => null) };
}
