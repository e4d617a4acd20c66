// The lists: conversations, reservations, commands, runs, held mail, the log.

import { json } from './api.js';
import { el, harmless, keyed, peer, setAttribute, setText } from './dom.js';
import { failed } from './notes.js';
import { address, folded, known } from './state.js';
import { setTime, timeOf } from './time.js';

const TONES = {
  running: 'good', 'needs-input': 'calls', pending: 'calm', open: 'calm', answered: 'calm', held: 'warn',
  queued: 'warn', taken: 'warn', failed: 'bad', undeliverable: 'bad',
};
const STATE_COLUMNS = ['STATE', 'STATUS', 'OPEN'];
const kindOf = (cell) => ['ago', 'left', 'until'].find((kind) => typeof cell[kind] === 'number');
const title = (column) => column[0] + column.slice(1).toLowerCase();

/** Text of a row, for narrowing lists down. */
export const textOf = (row) => folded(row.cells.map((cell) => cell.text ?? '').join(' ') + (row.key ?? ''));

function setCell(node, cell) {
  const kind = kindOf(cell);
  const inside = node.firstChild;
  if (kind && inside?.nodeName === 'TIME') setTime(inside, kind, cell[kind]);
  else if (kind) node.replaceChildren(timeOf(kind, cell[kind]));
  else if (inside?.nodeName === 'BDI') setText(inside, harmless(cell.text ?? ''));
  else node.replaceChildren(peer(cell.text ?? ''));
}

/**
 * A table whose last column is a link. `href(row)` is where it leads. Roles are named, because the table becomes
 * blocks where it is narrow.
 */
export function table({ columns, label, href, empty }) {
  const body = el('tbody', { role: 'rowgroup' });
  const head = el('tr', { role: 'row' }, columns.map((column) =>
    el('th', { role: 'columnheader', scope: 'col', class: `of-${column.toLowerCase().replace(/[^a-z]+/g, '-')}` }, title(column))));
  const nothing = el('p', { class: 'faint empty', hidden: true }, empty);
  const whole = el('table', { role: 'table', class: 'list', 'aria-label': label }, el('thead', { role: 'rowgroup' }, head), body);
  let chosen = null;
  const rows = keyed(body, {
    key: (row) => row.key,
    make: (row) => el('tr', { role: 'row' }, columns.map((column, at) => {
      const last = at === columns.length - 1;
      const attributes = { role: 'cell', 'data-label': title(column), class: last ? 'about' : '' };
      return el('td', attributes, last ? el('a', { href: href(row) }) : null);
    })),
    update: (node, row) => {
      columns.forEach((column, at) => {
        const cell = node.children[at];
        setCell(at === columns.length - 1 ? cell.firstChild : cell, row.cells[at] ?? { text: '' });
        const isState = STATE_COLUMNS.includes(column) && TONES[row.state];
        setAttribute(cell, 'data-tone', isState ? TONES[row.state] : null);
        cell.toggleAttribute('data-empty', row.cells[at]?.text === '');
      });
    },
    gone: (at) => (body.children[Math.min(at, body.children.length - 1)]?.querySelector('a') ?? whole).focus(),
  });
  whole.tabIndex = -1;
  // A click anywhere in a row follows its link, unless somebody selects text.
  body.addEventListener('click', (event) => {
    if (event.target.closest('a') || String(getSelection())) return;
    event.target.closest('tr')?.querySelector('a')?.click();
  });
  function choose(key) {
    if (chosen !== null) rows.node(chosen)?.querySelector('a').removeAttribute('aria-current');
    chosen = key;
    if (key !== null) rows.node(key)?.querySelector('a').setAttribute('aria-current', 'true');
  }
  return {
    node: el('div', {}, whole, nothing),
    show(items, isKnown = true) {
      rows.show(items);
      choose(chosen);
      whole.hidden = items.length === 0;
      nothing.hidden = items.length > 0 || !isKnown;
    },
    choose,
    items: () => [...body.querySelectorAll('a')],
  };
}

/** What the server says about the chosen row. */
export function detailPane() {
  const heading = el('h2', { tabindex: -1 });
  const lines = el('div', { class: 'lines' });
  const gone = el('p', { class: 'faint', role: 'status', hidden: true });
  const node = el('div', { class: 'detail' }, heading, gone, lines);
  let last = 0;
  async function show(tab, key) {
    const mine = (last += 1);
    try {
      const query = `tab=${encodeURIComponent(tab)}&key=${encodeURIComponent(key)}`;
      const detail = await json(`/ui/data/detail?${query}`);
      if (mine !== last) return;
      setText(heading, harmless(detail.title));
      heading.dir = 'auto';
      gone.hidden = true;
      lines.replaceChildren(...detail.lines.map((line) => {
        const one = peer(line.text || ' ', { 'data-tone': line.tone, class: 'line' }, 'p');
        one.style.paddingInlineStart = `${Math.min(8, line.indent) * 1.25}em`;
        return one;
      }));
    } catch (error) {
      if (mine !== last) return;
      if (error.status === 404) {
        setText(gone, `This is what was last known of it: ${error.message}.`);
        gone.hidden = false;
      } else {
        failed(error);
      }
    }
  }
  return { node, show };
}

export const chosenRow = () => {
  const match = /^#row-(.+)$/.exec(location.hash);
  try {
    return match ? decodeURIComponent(match[1]) : null;
  } catch {
    return null;
  }
};

/** The page of a list. */
export function listView(tab, filter) {
  const list = () => known.lists[tab];
  const heading = el('h1', { tabindex: -1 }, list()?.title ?? tab[0].toUpperCase() + tab.slice(1));
  const more = el('span', { class: 'faint' });
  const place = el('div', {});
  const main = el('div', {}, el('header', { class: 'row top' }, heading, more), place);
  const pane = tab === 'threads' ? null : detailPane();
  let shown = null;
  let key = null;

  function build() {
    const { columns, title: name, empty } = list();
    const href = tab === 'threads' ? (row) => address.thread(row.key) : (row) => `#row-${encodeURIComponent(row.key)}`;
    shown = table({ columns, label: name, href, empty });
    place.replaceChildren(shown.node);
    setText(heading, name);
  }
  function update(kind) {
    if (!list() || (kind !== `list:${tab}` && kind !== 'filter' && kind !== undefined)) return;
    if (!shown) build();
    const rows = tab === 'log' ? known.log : list().rows;
    const words = folded(filter());
    shown.show(words ? rows.filter((row) => textOf(row).includes(words)) : rows);
    const total = tab === 'log' ? rows.length : list().total;
    setText(more, words ? `with “${filter()}”` : total > rows.length ? `the newest ${rows.length} of ${total}` : '');
    // What the log says of an event never changes.
    if (kind === `list:${tab}` && tab !== 'log' && key !== null) pane?.show(tab, key);
    chooseByAddress();
  }
  function chooseByAddress() {
    const wanted = chosenRow();
    shown?.choose(wanted);
    if (wanted === key || !pane) return;
    key = wanted;
    view.aside = key === null ? null : pane.node;
    if (key !== null) pane.show(tab, key);
  }
  const view = {
    name: tab, main, aside: null, heading, title: () => list()?.title ?? tab, update,
    hash: chooseByAddress, items: () => shown?.items() ?? [], keys: {},
  };
  update();
  chooseByAddress();
  return view;
}
