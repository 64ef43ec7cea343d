// The console's icons: 16 px, one stroke, drawn for this page. Text glyphs are missing in some fonts.
import { html } from './vendor.js';

const PATHS = {
  map: 'M5 3.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0ZM14 8a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0ZM5 12.5a1.5 1.5 0 1 1-3 0 1.5 1.5 0 0 1 3 0ZM4.9 4.2 11 7.3M4.9 11.8 11 8.7',
  calls: 'M2.5 4h11M2.5 8h8M2.5 12h5',
  tree: 'M3 3v8.5a1 1 0 0 0 1 1h3M3 7.5h4M9.5 7.5h4M9.5 12.5h4M5.5 3h8',
  sessions: 'M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z',
  handoffs: 'M2 5.5h9m0 0L8.5 3M11 5.5 8.5 8M14 11H5m0 0 2.5-2.5M5 11l2.5 2.5',
  workflows: 'M2 2.5h4v3H2zM10 6.5h4v3h-4zM2 10.5h4v3H2zM6 4h2v8H6M8 8h2',
  insights: 'M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10ZM10.6 10.6 14 14M5 8V6.5M7 8V4.5M9 8V7',
  guidance: 'M8 1.8 13.5 4v4c0 3-2.2 5.2-5.5 6.2C4.7 13.2 2.5 11 2.5 8V4zM5.5 8l1.8 1.8L10.7 6',
  approvals: 'M2 9.5 3.5 3h9L14 9.5v3.5H2zM2 9.5h3.5L6.5 11h3l1-1.5H14',
  audit: 'M4 1.8h8v12.4H4zM6.2 5h3.6M6.2 8h3.6M6.2 11h2',
  playground: 'M4.5 2.8v10.4L13 8z',
  system: 'M2 2.5h12v4.5H2zM2 9h12v4.5H2zM4.5 4.75h.01M4.5 11.25h.01M7 4.75h4M7 11.25h4',
  search: 'M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10ZM10.6 10.6 14 14',
  success: 'M3 8.5 6.5 12 13 4.5',
  partial: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  needs_input: 'M5.5 6a2.5 2.5 0 1 1 3.5 2.3c-.6.3-1 .7-1 1.4M8 12.5h.01',
  refused: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM4.2 4.2l7.6 7.6',
  error: 'M4 4l8 8M12 4l-8 8',
  timeout: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 5v3.3l2.2 1.3',
  cancelled: 'M3.5 8h9',
  running: 'M8 8m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0',
  queued: 'M4 8h.01M8 8h.01M12 8h.01',
  copy: 'M5.5 5.5V2.5h8v8h-3M2.5 5.5h8v8h-8z',
  close: 'M4 4l8 8M12 4l-8 8',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  sun: 'M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9',
  moon: 'M13 9.8A5.5 5.5 0 0 1 6.2 3a5.5 5.5 0 1 0 6.8 6.8Z',
  link: 'M6.5 9.5l3-3M7 4.5 8.5 3a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7',
  out: 'M9.5 2.5H3v11h6.5M6.5 8h7m0 0L11 5.5M13.5 8 11 10.5',
  unfold: 'M3.5 6 8 10.5 12.5 6',
  warn: 'M8 2 14.5 13.5h-13zM8 6.5v3.2M8 11.7h.01',
  eye: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6Z',
  down: 'M8 2.5v8m0 0L4.8 7.3M8 10.5l3.2-3.2M2.5 13.5h11',
  trash: 'M2.5 4h11M6 4V2.5h4V4M4 4l.7 9.5h6.6L12 4M6.8 6.5v4.5M9.2 6.5v4.5',
  fork: 'M4 2.5v11M4 9c4 0 8-1 8-4.5M12 2.5v2M10.5 4 12 2.5 13.5 4',
  person: 'M8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM3 13.5c.4-2.8 2.4-4 5-4s4.6 1.2 5 4',
  key: 'M5.5 10.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8.3 8.5l5.2 0M11 8.5v2.5M13.5 8.5v2',
  left: 'M10 3.5 5.5 8l4.5 4.5',
  right: 'M6 3.5 10.5 8 6 12.5',
  pause: 'M5 3v10M11 3v10',
  plus: 'M8 3v10M3 8h10',
  open: 'M8 8m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0',
};

/** Return an icon; it is decoration, the word stands beside it. */
export function Icon({ name, size = 16 }) {
  const filled = name === 'running' || name === 'open';
  return html`<svg width=${size} height=${size} viewBox="0 0 16 16" fill=${filled ? 'currentColor' : 'none'} stroke="currentColor"
    stroke-width=${filled ? 0 : 1.5} stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">
    <path d=${PATHS[name] || PATHS.cancelled} /></svg>`;
}

/** The mark of the product: two arcs that recognise each other. */
export function Mark() {
  return html`<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" fill="#3b46c4" />
    <g fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"><path d="M15 9.2a7 7 0 1 0 0 13.6" />
    <path d="M17 22.8a7 7 0 1 0 0-13.6" opacity=".62" /></g></svg>`;
}
