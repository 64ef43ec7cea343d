// A form made from a JSON Schema, with the JSON beside it: either edits the other. What has no field of its own is JSON.
import { html, useState } from './vendor.js';

/** Return a schema with its reference followed and `null` alternatives taken away. */
export function resolve(schema, root, depth = 0) {
  if (!schema || typeof schema !== 'object' || depth > 16) return {};
  if (schema.$ref) {
    const target = schema.$ref.replace(/^#\//, '').split('/').reduce((at, part) => at?.[decodeURIComponent(part.replaceAll('~1', '/').replaceAll('~0', '~'))], root);
    return { ...resolve(target, root, depth + 1), ...without(schema, '$ref') };
  }
  const choices = schema.anyOf || schema.oneOf;
  if (choices) {
    const real = choices.filter((one) => one.type !== 'null');
    if (real.length === 1) return { ...resolve(real[0], root, depth + 1), ...without(schema, 'anyOf', 'oneOf'), nullable: real.length < choices.length };
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((one) => one !== 'null');
    if (types.length === 1) return { ...schema, type: types[0], nullable: true };
  }
  return schema;
}

const without = (object, ...names) => Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

/** Return a first value for a schema: its example, its default, or what its type begins with. */
export function sample(schema, root = schema, depth = 0) {
  const found = resolve(schema, root);
  if (found.examples?.length) return found.examples[0];
  if (found.example !== undefined) return found.example;
  if (found.default !== undefined) return found.default;
  if (found.const !== undefined) return found.const;
  if (found.enum) return found.enum[0];
  if (depth > 4 || found.nullable) return null;
  switch (found.type) {
    case 'string': return '';
    case 'integer': case 'number': return found.minimum ?? 0;
    case 'boolean': return false;
    case 'array': return [];
    default: {
      if (!found.properties) return found.type === 'object' ? {} : null;
      const required = found.required || [];
      return Object.fromEntries(Object.entries(found.properties).filter(([name]) => required.includes(name)).map(([name, inner]) => [name, sample(inner, root, depth + 1)]));
    }
  }
}

function JsonField({ value, onChange, id, rows = 3, placeholder = '' }) {
  const [text, setText] = useState(null);
  const [problem, setProblem] = useState('');
  const shown = text ?? (value === undefined ? '' : JSON.stringify(value, null, rows > 4 ? 2 : 0));
  return html`<textarea id=${id} class="mono" rows=${rows} spellcheck="false" value=${shown} placeholder=${placeholder} aria-invalid=${problem ? 'true' : 'false'} onInput=${(event) => {
    setText(event.target.value);
    try { onChange(event.target.value.trim() ? JSON.parse(event.target.value) : undefined); setProblem(''); } catch (error) { setProblem(error.message); }
  }} onBlur=${() => { if (!problem) setText(null); }}></textarea>${problem && html`<span class="field-error">${problem}</span>`}`;
}

let made = 0;

function Field({ name, schema, root, value, onChange, required, problems, path }) {
  const [id] = useState(() => `f${made += 1}`);
  const found = resolve(schema, root);
  const title = found.title && found.title.toLowerCase().replaceAll(' ', '_') !== name ? found.title : name;
  const mine = (problems || []).filter((one) => (one.pointer || one.path || '').replace(/^[/$.]*(?:inputs[./])?/, '').replaceAll('/', '.') === path.join('.'));
  let input;
  const usual = found.default === undefined || found.default === null ? '' : typeof found.default === 'string' ? found.default : JSON.stringify(found.default);
  if (found.type === 'object' && found.properties) {
    return html`<fieldset class="fields"><legend>${title}</legend><${Fields} schema=${found} root=${root} value=${value || {}} onChange=${onChange} problems=${problems} path=${path} /></fieldset>`;
  }
  if (found.enum) {
    input = html`<select id=${id} value=${JSON.stringify(value)} onChange=${(event) => onChange(JSON.parse(event.target.value))}>${!required && html`<option value="null">–</option>`}${found.enum.map((one) => html`<option value=${JSON.stringify(one)} selected=${one === value}>${String(one)}</option>`)}</select>`;
  } else if (found.type === 'boolean') {
    input = html`<span class="line"><input id=${id} type="checkbox" checked=${Boolean(value)} onChange=${(event) => onChange(event.target.checked)} /><span class="ink-2">${value ? 'yes' : 'no'}</span></span>`;
  } else if (found.type === 'integer' || found.type === 'number') {
    input = html`<input id=${id} type="number" step=${found.type === 'integer' ? 1 : 'any'} min=${found.minimum} max=${found.maximum} value=${value ?? ''} placeholder=${usual} onInput=${(event) => onChange(event.target.value === '' ? undefined : Number(event.target.value))} />`;
  } else if (found.type === 'string') {
    const long = (found.maxLength || 0) > 200 || /text|message|question|description|request|prompt|body/.test(name) || String(value ?? '').length > 60;
    input = long ? html`<textarea id=${id} rows="3" value=${value ?? ''} placeholder=${usual} onInput=${(event) => onChange(event.target.value)}></textarea>`
      : html`<input id=${id} value=${value ?? ''} placeholder=${usual} onInput=${(event) => onChange(event.target.value)} />`;
  } else {
    input = html`<${JsonField} id=${id} value=${value} onChange=${onChange} rows=${found.type === 'array' ? 2 : 3} placeholder=${usual} />`;
  }
  return html`<label class="field" for=${id}><span>${title}${required ? html`<span class="required" title="required"> *</span>` : ''}</span>${input}
    ${found.description && html`<span class="hint">${found.description}</span>`}${mine.map((one) => html`<span class="field-error">${one.detail || one.message}</span>`)}</label>`;
}

function Fields({ schema, root, value, onChange, problems, path = [] }) {
  const change = (name, next) => {
    const copy = { ...value };
    if (next === undefined) delete copy[name]; else copy[name] = next;
    onChange(copy);
  };
  return html`${Object.entries(schema.properties || {}).map(([name, inner]) => html`<${Field} key=${name} name=${name} schema=${inner} root=${root} value=${value?.[name]} required=${(schema.required || []).includes(name)}
    onChange=${(next) => change(name, next)} problems=${problems} path=${[...path, name]} />`)}`;
}

/** Show the fields of a schema for a value; a schema without properties is edited as JSON. */
export function SchemaForm({ schema, value, onChange, problems }) {
  const found = resolve(schema || {}, schema || {});
  if (!found.properties) return html`<label class="field"><span>inputs</span><${JsonField} value=${value} onChange=${onChange} rows=${6} /></label>`;
  if (!Object.keys(found.properties).length) return html`<p class="ink-3">This capability takes no inputs.</p>`;
  return html`<div class="stack wide"><${Fields} schema=${found} root=${schema} value=${value} onChange=${onChange} problems=${problems} /></div>`;
}

export { JsonField };
