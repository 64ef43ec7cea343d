// Workflows: definitions and runs; the graph with the run drawn on it, replay over its journal, fork, answer.
import { html } from '../vendor.js';
import { Bar, Command, Empty } from '../ui.js';

export function View() {
  return html`<div class="view"><${Bar} title="Workflows" /><${Empty} icon="workflows" title="No runs yet"><p>Start one from a shell:</p><${Command} text="comity workflow run FILE" /></${Empty}></div>`;
}
