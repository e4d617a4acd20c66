// The smaller pages: home, questions, search, a message by its id, an address that is none.

import { json } from './api.js';
import { askList } from './asks.js';
import { el, keyed, peer, setText } from './dom.js';
import { listView } from './lists.js';
import { address, asks, known } from './state.js';
import { timeOf } from './time.js';

/** Home: what needs the person, then the conversations. */
export function homeView(filter) {
  const view = listView('threads', filter);
  const heading = el('h2', { tabindex: -1 }, 'Needs you');
  const questions = askList({ wanted: asks, empty: '', heading });
  const section = el('section', { class: 'needs', 'aria-label': 'Needs you', hidden: true }, heading, questions.node);
  view.main.prepend(section);
  const update = (kind) => {
    if (kind === undefined || kind === 'list:asks') {
      questions.update();
      section.hidden = questions.items().length === 0;
      if (section.hidden && document.activeElement === heading) view.heading.focus();
    }
    view.update(kind);
  };
  update();
  const threadOf = () => known.lists.threads?.rows.find((row) => address.thread(row.key) === document.activeElement?.getAttribute('href'));
  return {
    ...view, name: 'home', update, title: () => '',
    keys: {
      ...questions.keys,
      c: (open) => {
        const row = threadOf();
        if (row) open(address.thread(row.key), { to: row.agents.filter((name) => name !== 'shell') });
        return Boolean(row);
      },
    },
  };
}

export function asksView() {
  const heading = el('h1', { tabindex: -1 }, 'Asks');
  const questions = askList({ wanted: asks, empty: known.lists.asks?.empty, heading });
  return {
    name: 'asks', main: el('div', {}, el('header', { class: 'row top' }, heading), questions.node), aside: null, heading,
    title: () => 'Asks', update: (kind) => { if (kind === 'list:asks') questions.update(); },
    items: questions.items, keys: questions.keys,
    hash() {
      const id = /^#ask-(.+)$/.exec(location.hash)?.[1];
      if (id) questions.focus(decodeURIComponent(id));
    },
  };
}

export function searchView(words) {
  const heading = el('h1', { tabindex: -1, dir: 'auto' }, 'Search');
  const more = el('p', { class: 'faint', role: 'status' }, words ? 'Looking …' : 'Type words into the field above; press / to get there.');
  const list = el('ol', { class: 'hits', 'aria-label': 'Found messages' });
  const hits = keyed(list, {
    key: (hit) => hit.id,
    make: (hit) => el('li', {}, el('a', { href: address.thread(hit.thread, hit.id) },
      el('strong', {}, peer(hit.subject || hit.thread))), el('p', { class: 'faint small' }, peer(hit.from), ' · ', timeOf('ago', hit.at)),
    peer(hit.excerpt, { class: 'text' }, 'p')),
  });
  let isClosed = false;
  async function look() {
    try {
      const found = await json(`/ui/data/search?words=${encodeURIComponent(words)}`);
      if (isClosed) return;
      hits.show(found.hits);
      setText(more, found.hits.length === 0 ? 'No message has these words.'
        : found.found > found.hits.length ? `The newest ${found.hits.length} of ${found.found} messages that have these words.`
          : found.found === 1 ? 'One message has these words.' : `${found.found} messages have these words.`);
    } catch (error) {
      if (!isClosed) setText(more, `The search did not work: ${error.message}`);
    }
  }
  if (words) {
    setText(heading, `Found “${words}”`);
    look();
  }
  return {
    name: 'search', main: el('div', {}, el('header', { class: 'top' }, heading, more), list), aside: null, heading,
    title: () => `Found “${words}”`, update() {}, items: () => [...list.querySelectorAll('a')], keys: {}, back: '/ui/',
    close() { isClosed = true; },
  };
}

/** A message by its id: its conversation is opened at it. */
export function messageView(id, replace) {
  const heading = el('h1', { tabindex: -1 }, 'Message');
  const said = el('p', { class: 'empty', role: 'status' }, 'Looking for it …');
  let isClosed = false;
  json(`/ui/data/messages/${encodeURIComponent(id)}`).then(
    (message) => isClosed || replace(address.thread(message.thread, message.id)),
    (error) => isClosed || said.replaceChildren(`It cannot be shown: ${error.message}. `, el('a', { href: '/ui/' }, 'All conversations')),
  );
  return {
    name: 'message', main: el('div', {}, heading, said), aside: null, heading, title: () => 'Message', update() {}, items: () => [], keys: {},
    back: '/ui/', close() { isClosed = true; },
  };
}

export function unknownView() {
  const heading = el('h1', { tabindex: -1 }, 'There is no such page');
  return {
    name: 'unknown', heading, aside: null, title: () => 'No such page', update() {}, items: () => [], keys: {}, back: '/ui/',
    main: el('div', {}, heading, el('p', { class: 'empty' }, 'This address leads nowhere. ', el('a', { href: '/ui/' }, 'All agents and conversations'))),
  };
}
