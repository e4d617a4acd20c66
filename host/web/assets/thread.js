// An open conversation: its messages, its lanes, its deliveries, and the box in which one writes to it.

import { json, request } from './api.js';
import { el, harmless, keyed, peer, setText, spoken } from './dom.js';
import { bar, deliveryPane, dot } from './delivery.js';
import { composer } from './forms.js';
import { lanesDrawing } from './lanes_view.js';
import { failed, note } from './notes.js';
import { address, known } from './state.js';
import { clock, timeOf } from './time.js';

const SELF = 'shell';
// A longer text gets a box of its own that scrolls.
const LONG = 4000;
// So many recipients are named in a message; its delivery has all.
const DOTS = 8;
const TABS = [['messages', 'Messages'], ['lanes', 'Lanes'], ['delivery', 'Delivery']];

const name = (agent) => (agent === SELF ? el('span', {}, 'you ', el('span', { class: 'faint' }, '(shell)')) : peer(agent));
const commas = (nodes) => nodes.flatMap((node, at) => (at === 0 ? [node] : [', ', node]));
const size = (bytes) => (bytes < 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024)} KB`);

function setBody(box, text) {
  const isLong = text.length > LONG || text.split('\n', 61).length > 60;
  box.replaceChildren(peer(text, {
    class: isLong ? 'text long' : 'text', ...(isLong ? { tabindex: 0, role: 'region', 'aria-label': 'Text of the message' } : {}),
  }, 'div'));
}

function wholeButton(message, box) {
  const button = el('button', {
    type: 'button', onclick: async () => {
      button.setAttribute('aria-disabled', 'true');
      try {
        const whole = await json(`/ui/data/messages/${encodeURIComponent(message.id)}`);
        setBody(box, whole.body);
        box.querySelector('[tabindex]')?.focus();
        button.remove();
      } catch (error) {
        failed(error);
        button.removeAttribute('aria-disabled');
      }
    },
  }, `Show all ${size(message.bytes)}`);
  return button;
}

function messageNode(message, { find, about, onDelivery }) {
  const text = el('div', { class: 'body' });
  setBody(text, message.body);
  const first = message.body.split('\n', 5).find((line) => line.trim()) ?? '';
  // What the heading or the text itself says is not said again.
  const tells = message.subject && message.subject !== about() && !first.trim().startsWith(message.subject.replace(/…$/, ''));
  const answered = message.reply_to && find(message.reply_to);
  const badges = [
    message.priority !== 'normal'
      && el('span', { class: 'badge', 'data-tone': { urgent: 'bad', high: 'warn' }[message.priority] ?? 'faint' }, message.priority),
    message.broadcast && el('span', { class: 'badge' }, 'to everybody'),
    ...message.tags.map((tag) => peer(tag, { class: 'badge' })),
  ];
  const node = el('li', { class: message.from === SELF ? 'message own' : 'message', id: `message-${message.id}` },
    el('header', { class: 'row wrap' },
      el('a', { class: 'who', href: address.thread(message.thread, message.id) },
        el('span', { class: 'from' }, name(message.from)), el('span', { class: 'faint', 'aria-hidden': 'true' }, ' → '), spoken(' to '),
        el('span', { class: 'recipients' }, commas(message.to.slice(0, DOTS).map(name)),
          message.to.length > DOTS && ` and ${message.to.length - DOTS} more`)),
      badges, el('span', { class: 'push faint' }, timeOf('ago', message.at))),
    message.reply_to && el('p', { class: 'reply faint' }, el('span', { 'aria-hidden': 'true' }, '↩ '), 'reply to ',
      el('a', { href: answered ? address.thread(message.thread, message.reply_to) : address.message(message.reply_to) },
        answered ? [peer(answered.from), ': ', peer(answered.subject || answered.body.slice(0, 60))] : 'an earlier message')),
    tells && el('p', { class: 'subject' }, peer(message.subject)),
    text,
    message.cut && el('p', { class: 'row wrap' }, wholeButton(message, text), el('span', { class: 'faint small' }, 'The beginning is shown.')),
    el('footer', { class: 'row wrap' }, el('span', { class: 'dots row wrap' }),
      el('button', { type: 'button', class: 'quiet narrow push', onclick: () => onDelivery(message.id) }, 'Delivery')));
  return node;
}

// Nothing else of a message ever changes, and its text may be long.
const recipientsOf = (message) => JSON.stringify(message.recipients);

function setDots(node, message) {
  const shown = message.recipients.slice(0, DOTS).map((recipient) => dot(recipient));
  const more = message.recipients.length - shown.length;
  node.querySelector('.dots').replaceChildren(...shown, ...(more > 0 ? [el('span', { class: 'faint' }, `and ${more} more`)] : []));
}

async function download(thread, form) {
  try {
    const response = await request(`/ui/data/export?thread=${encodeURIComponent(thread)}&form=${form}`, { headers: { accept: '*/*' } });
    const url = URL.createObjectURL(await response.blob());
    const file = `${thread.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 60) || 'thread'}.${form}`;
    el('a', { href: url, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
    note(`the conversation was saved as ${file}`);
  } catch (error) {
    failed(error);
  }
}

/** The page of a conversation. `addressed` are recipients that were chosen before it was opened. */
export function threadView(thread, { addressed }) {
  const messages = () => known.thread?.thread === thread ? known.thread.messages ?? [] : [];
  const find = (id) => messages().find((message) => message.id === id);
  let chosen = null;
  let tab = null;
  let isFirst = true;

  const heading = el('h1', { tabindex: -1, dir: 'auto' }, harmless(thread));
  const sub = el('p', { class: 'faint' });
  const exporting = el('details', { class: 'menu' }, el('summary', {}, 'Export'), el('div', { class: 'sheet' },
    [['html', 'HTML, to be read'], ['md', 'Markdown'], ['json', 'JSON']].map(([form, label]) =>
      el('button', { type: 'button', onclick: () => { exporting.open = false; download(thread, form); } }, label))));
  const tabs = el('nav', { class: 'tabs', 'aria-label': 'Views of this conversation' }, TABS.map(([key, label]) =>
    el('a', { href: `/ui/threads/${encodeURIComponent(thread)}${key === 'messages' ? '' : `?tab=${key}`}`, 'data-tab': key }, label)));
  const list = el('ol', { class: 'messages', 'aria-label': 'Messages' });
  const earlier = el('p', { class: 'faint empty', hidden: true });
  const gone = el('p', { class: 'empty', hidden: true });
  const pane = deliveryPane();
  const lanes = lanesDrawing('Lanes of this conversation');
  const deliveries = el('ol', { class: 'deliveries', 'aria-label': 'Deliveries' });
  const write = composer({ key: `thread:${thread}`, thread, preset: recipients, repliesTo });
  const panels = { messages: el('div', {}, earlier, list), lanes: lanes.node, delivery: el('div', {}, deliveries) };
  const foot = el('div', { class: 'foot' }, write.node);
  const main = el('div', { class: 'thread' },
    el('header', { class: 'top' }, el('div', { class: 'row' }, heading, el('span', { class: 'push' }, exporting)), sub, tabs),
    gone, ...Object.values(panels), foot);

  /** To the sender of the chosen message, else to everybody in it but the person. */
  function recipients() {
    const message = find(chosen);
    if (!message) return [];
    return message.from === SELF ? message.to.filter((to) => to !== SELF) : [message.from];
  }

  /** The chosen message, if a message to its sender would answer it. */
  function repliesTo() {
    const message = find(chosen);
    return message && message.from !== SELF ? message : null;
  }

  const rows = keyed(list, {
    key: (message) => message.id,
    make: (message) => messageNode(message, {
      find, about: () => known.thread?.subject, onDelivery: (id) => { choose(id); pane.heading.focus(); },
    }),
    update: setDots,
    sign: recipientsOf,
    gone: () => heading.focus(),
  });
  list.addEventListener('click', (event) => {
    if (event.target.closest('a, button') || String(getSelection())) return;
    const id = event.target.closest('.message')?.id.slice('message-'.length);
    if (id) choose(id);
  });
  const bars = keyed(deliveries, {
    key: (message) => message.id,
    sign: recipientsOf,
    make: (message) => el('li', {}, el('a', { href: `${location.pathname}?tab=delivery#message-${encodeURIComponent(message.id)}` },
      clock(message.at), ' ', peer(message.from), el('span', { class: 'faint' }, ' ', peer(message.subject))), el('div', {})),
    update: (node, message) => node.lastChild.replaceChildren(...message.recipients.map((recipient) =>
      el('div', { class: 'one-bar' }, dot(recipient), bar(recipient, true)))),
  });

  function mark() {
    for (const node of [...list.children, ...deliveries.children]) {
      const isChosen = node === rows.node(chosen) || node === bars.node(chosen);
      node.classList.toggle('chosen', isChosen);
      const link = node.querySelector('a');
      if (isChosen) link?.setAttribute('aria-current', 'true');
      else link?.removeAttribute('aria-current');
    }
  }

  function choose(id, { scroll = false } = {}) {
    const message = find(id);
    if (!message) return;
    chosen = id;
    pane.show(message);
    view.aside = pane.node;
    mark();
    write.update();
    const hash = `#message-${encodeURIComponent(id)}`;
    try {
      if (location.hash !== hash) history.replaceState(history.state, '', location.pathname + location.search + hash);
    } catch {
      // Some browsers take no more than a hundred changes in half a minute; the address follows later.
    }
    if (scroll) (tab === 'delivery' ? bars : rows).node(id)?.scrollIntoView({ block: 'nearest' });
    view.changed?.();
  }

  const byAddress = () => {
    const match = /^#message-(.+)$/.exec(location.hash);
    try {
      return match ? decodeURIComponent(match[1]) : null;
    } catch {
      return null;
    }
  };

  function showTab() {
    const wanted = new URLSearchParams(location.search).get('tab');
    tab = TABS.some(([key]) => key === wanted) ? wanted : 'messages';
    for (const [key, panel] of Object.entries(panels)) panel.hidden = key !== tab;
    for (const link of tabs.children) {
      if (link.dataset.tab === tab) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
  }

  function update(kind) {
    write.update();
    if (kind !== undefined && kind !== 'thread' && kind !== 'message') return;
    const open = known.thread;
    if (open?.thread !== thread) return;
    gone.hidden = !open.gone;
    foot.hidden = sub.hidden = tabs.hidden = exporting.hidden = Boolean(open.gone);
    if (open.gone) setText(gone, harmless(open.gone));
    const all = messages();
    const subject = open.subject || thread;
    setText(heading, harmless(subject));
    const people = new Set(all.flatMap((message) => [message.from, ...message.to]));
    const count = all.length + (open.earlier ?? 0);
    setText(sub, `${count} ${count === 1 ? 'message' : 'messages'} · ${[...people].map(harmless).join(', ')}`);
    earlier.hidden = !open.earlier;
    if (open.earlier) setText(earlier, `${open.earlier} earlier messages are not shown here; an export has them.`);
    const isAtEnd = (list.lastElementChild?.getBoundingClientRect().bottom ?? 0) <= innerHeight + 40;
    rows.show(all);
    bars.show(all);
    lanes.show(all);
    if (isFirst && all.length > 0) {
      isFirst = false;
      const wanted = byAddress();
      if (wanted && !find(wanted)) note('that message is among the earlier ones, or is not kept any more', true);
      const id = wanted && find(wanted) ? wanted : all[all.length - 1].id;
      choose(id);
      (tab === 'delivery' ? bars : rows).node(id)?.scrollIntoView({ block: id === wanted ? 'center' : 'end' });
      if (id !== wanted && tab === 'messages') toEnd();
      lanes.end();
    } else if (chosen && find(chosen)) {
      pane.show(find(chosen));
      mark();
      if (isAtEnd && tab === 'messages') toEnd();
    }
    write.update();
  }
  const toEnd = () => foot.scrollIntoView({ block: 'end' });

  const view = {
    name: 'thread', thread, main, aside: null, heading,
    title: () => harmless(known.thread?.thread === thread ? known.thread.subject || thread : thread),
    update,
    hash() {
      showTab();
      const id = byAddress();
      if (id && id !== chosen) choose(id, { scroll: true });
    },
    items: () => (tab === 'lanes' ? lanes.items() : [...(tab === 'delivery' ? deliveries : list).children].map((node) => node.querySelector('a'))),
    current: () => (tab === 'delivery' ? bars : rows).node(chosen)?.querySelector('a'),
    moved(node) {
      const item = node.closest('li');
      const message = messages().find(({ id }) => rows.node(id) === item || bars.node(id) === item);
      if (message) choose(message.id, { scroll: true });
    },
    keys: {
      c: () => write.focus(),
      e: () => { exporting.open = true; exporting.querySelector('button').focus(); },
    },
    back: '/ui/',
  };
  if (addressed) write.address(addressed);
  showTab();
  update();
  return view;
}
