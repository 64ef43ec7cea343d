// The whole of what the console takes from others, as one file: the view library, its hooks, tagged templates, signals.
import { h, render, Fragment } from 'preact';
import htm from 'htm';

export { h, render, Fragment };
export { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback } from 'preact/hooks';
export { signal, computed, effect, batch } from '@preact/signals';
export const html = htm.bind(h);
