// The keys, the same as in the terminal. They do nothing while a person types.

import { el, isTyping } from './dom.js';
import { STATUSES } from './delivery.js';
import { note } from './notes.js';

const KEYS = [
  ['j k ↓ ↑', 'move'], ['g G', 'to the first, to the last'], ['Enter', 'open'], ['Esc', 'back'],
  ['1 to 7', 'lists'], ['/', 'search'], ['c', 'write'], ['a', 'answer in words'], ['y n', 'agree, refuse'],
  ['w', 'wake the agent'], ['p', 'pause the agent, or let it go on'], ['e', 'export the conversation'], ['?', 'this help'],
];
const DOTS = [
  ...Object.entries(STATUSES).filter(([word]) => word !== 'refused').map(([word, { glyph }]) => [glyph, word]),
  ['!', 'held by the loop guard'], ['✗', 'undeliverable'], ['×', 'expired'], ['⊘', 'a route that refused it'],
];

const pairs = (list) => el('dl', { class: 'keys' }, list.map(([left, right]) => el('div', {}, el('dt', {}, left), el('dd', {}, right))));

/** The dialog that shows them. */
export function keysDialog() {
  const dialog = el('dialog', { 'aria-labelledby': 'keys-title' },
    el('div', { class: 'row' }, el('h2', { id: 'keys-title' }, 'Keys'),
      el('button', { type: 'button', class: 'push', onclick: () => dialog.close() }, 'Close')),
    pairs(KEYS), el('h3', {}, 'Signs of delivery'), pairs(DOTS));
  return dialog;
}

const MISSING = {
  c: 'choose an agent or a conversation first', a: 'choose a question first, or an agent that asks one',
  y: 'choose a question first, or an agent that asks one', n: 'choose a question first, or an agent that asks one',
  w: 'choose the agent to wake first', p: 'choose the agent to pause first', e: 'choose a conversation first',
};

/**
 * Listens to keys. `page` tells what is shown: `view()`, `agents` (the list at the left), `list(number)`, `search()`,
 * `help()`, `go(address, more)`, `agentKey(key, agent)`.
 */
export function listen(page) {
  function move(by) {
    const view = page.view();
    const inAgents = page.agents.node.contains(document.activeElement);
    const items = inAgents ? page.agents.items() : view.items();
    if (items.length === 0) return false;
    const current = items.findIndex((item) => item.contains(document.activeElement));
    const start = current >= 0 ? current : view.current && !inAgents ? items.indexOf(view.current()) : -1;
    const to = by === 'first' ? 0 : by === 'last' ? items.length - 1
      : start < 0 ? (by > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, start + by));
    items[to].focus({ preventScroll: true });
    items[to].scrollIntoView({ block: 'nearest' });
    if (!inAgents) view.moved?.(items[to]);
    return true;
  }

  function act(key) {
    const view = page.view();
    const chosen = page.agents.focused();
    if (chosen && 'cayn'.includes(key)) return page.agentKey(key, chosen);
    if (chosen && 'wp'.includes(key)) return page.agentKey(key, chosen);
    const done = view.keys[key]?.(page.go);
    if (!view.keys[key] || done === false) note(MISSING[key], true);
    return true;
  }

  addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const { key, target } = event;
    if (document.querySelector('dialog[open]')) return;
    if (key === 'Escape') {
      const menu = document.querySelector('details.menu[open]');
      if (menu) {
        menu.open = false;
        menu.querySelector('summary').focus();
      } else if (isTyping(target)) {
        target.blur();
        page.escape(target);
      } else {
        page.back();
      }
      return;
    }
    if (isTyping(target)) return;
    // A box that scrolls keeps its arrows.
    const scrolls = target instanceof Element && target.matches('[role=region]');
    let done = true;
    if (key === 'j' || (key === 'ArrowDown' && !scrolls)) done = move(1);
    else if (key === 'k' || (key === 'ArrowUp' && !scrolls)) done = move(-1);
    else if (key === 'g') done = move('first');
    else if (key === 'G') done = move('last');
    else if (key === '/') page.search();
    else if (key === '?') page.help();
    else if (/^[1-7]$/.test(key)) page.list(Number(key) - 1);
    else if (key in MISSING) act(key);
    else return;
    if (done) event.preventDefault();
  });
}
