// Times as people say them. They are told by the server's clock, because the two may differ.

import { el, setText } from './dom.js';

let offset = 0;

/** The server says what time it is. */
export function setClock(now) {
  offset = now - Date.now();
}

export const now = () => Date.now() + offset;

export function span(milliseconds) {
  const seconds = Math.ceil(Math.max(0, milliseconds) / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

export function ago(at, from = now()) {
  const seconds = Math.floor(Math.max(0, from - at) / 1000);
  if (seconds < 5) return 'just now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

/** A gap between two statuses, more exact than `span` where it is short. */
export function gap(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 10000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return span(milliseconds);
}

const SAID = {
  ago,
  left: (at) => (at > now() ? span(at - now()) : 'over'),
  until: (at) => (at > now() ? `${span(at - now())} left` : 'over'),
};

const two = (number) => String(number).padStart(2, '0');

/** The hour of the day, to the second. */
export function clock(at) {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const exact = (at) => {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
};

/** A time that goes on being told: `kind` is ago, left or until. */
export function timeOf(kind, at) {
  return setTime(el('time', {}), kind, at);
}

export function setTime(node, kind, at) {
  node.dataset.kind = kind;
  node.dataset.at = at;
  node.dateTime = exact(at);
  node.title = `${clock(at)}, ${exact(at)}`;
  setText(node, SAID[kind](at));
  return node;
}

function refresh() {
  if (document.hidden) return;
  for (const node of document.querySelectorAll('time[data-kind]')) {
    setText(node, SAID[node.dataset.kind](Number(node.dataset.at)));
  }
}

export function keepTelling() {
  setInterval(refresh, 10000);
  document.addEventListener('visibilitychange', refresh);
}
