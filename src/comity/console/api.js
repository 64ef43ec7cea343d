// The client of the node's HTTP API: one function for requests, one class for what went wrong, the token of this tab.
import { signal } from './vendor.js';

const TOKEN_KEY = 'comity.token';
const BASE = new URL('../v1/', document.baseURI);

/** The bearer token of this tab. It lives in the tab's session storage alone: no cookie, so no other port receives it. */
export const token = signal(sessionStorage.getItem(TOKEN_KEY) || '');
/** Who is signed in: the answer of `GET /v1/me`, or null. */
export const me = signal(null);

/** Keep or forget the token of this tab. */
export function setToken(value) {
  token.value = value || '';
  if (value) sessionStorage.setItem(TOKEN_KEY, value);
  else sessionStorage.removeItem(TOKEN_KEY);
}

/** What the API refused or failed to do, in the API's own words. */
export class ApiError extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.message || problem.title || `The node answered with status ${status}.`);
    this.status = status;
    this.code = problem.code || '';
    this.title = status ? '' : problem.title || '';
    this.advice = problem.advice || (status && problem.title !== problem.detail ? problem.title : '') || '';
    this.problems = problem.errors || problem.problems || [];
    this.retryable = Boolean(problem.retryable);
  }
}

/** Return the address of an API path with its query; empty values are left out. */
export function address(path, params = {}) {
  const url = new URL(path.replace(/^\//, ''), BASE);
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined || value === null || value === '' || value === false) continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(one));
  }
  return url;
}

/** Return the path segment for an id that may hold any character. */
export const segment = (id) => encodeURIComponent(id);

/** Send a request with the tab's token, or another `bearer`, and return the response; a lost connection becomes an `ApiError` of status 0. */
export async function send(method, path, { params, body, headers, signal: abort, raw, bearer = token.value } = {}) {
  const given = { ...headers };
  if (bearer) given.Authorization = `Bearer ${bearer}`;
  if (body !== undefined && !raw) given['Content-Type'] = 'application/json';
  try {
    return await fetch(address(path, params), {
      method, headers: given, signal: abort, cache: 'no-store', credentials: 'omit', redirect: 'error',
      body: body === undefined ? undefined : raw ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, { title: 'The node does not answer', detail: `${url(path)} cannot be reached. Is the node still running?`, retryable: true });
  }
}

const url = (path) => `${location.host}/v1/${path.replace(/^\//, '')}`;

async function readBody(response) {
  const text = await response.text();
  if (!text) return null;
  try { return JSON.parse(text); } catch { return text; }
}

/** Return the decoded answer. Raises `ApiError` for everything that is no success, except a reply of a call (`replies`). */
export async function request(method, path, options = {}) {
  const response = await send(method, path, options);
  const body = await readBody(response);
  if (response.ok) return body;
  const isProblem = (response.headers.get('content-type') || '').includes('problem+json');
  if (options.replies && !isProblem && body && typeof body.status === 'string') return body;
  if (response.status === 401 && !options.bearer) setToken('');
  throw new ApiError(response.status, body && typeof body === 'object' ? body : { detail: typeof body === 'string' ? body.slice(0, 400) : '' });
}

export const get = (path, params, options) => request('GET', path, { params, ...options });
export const post = (path, body, options) => request('POST', path, { body: body ?? {}, ...options });
export const put = (path, body, options) => request('PUT', path, { body, ...options });
export const del = (path, params) => request('DELETE', path, { params });

/** Whether the signed-in person holds a right, as `GET /v1/me` lists them. */
export function can(right) {
  const rights = me.value?.rights;
  return !rights || rights.includes('*') || rights.includes(right);
}

/** Download what the API answers as a file; the token travels in the header, never in the address. */
export async function download(path, params, name) {
  const response = await send('GET', path, { params });
  if (!response.ok) throw new ApiError(response.status, (await readBody(response)) || {});
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
