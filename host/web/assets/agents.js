// Who is here: the agents in groups at the left, and the page of one of them.

import { askList } from './asks.js';
import { el, harmless, keyed, peer, put, setAttribute, setText, spoken } from './dom.js';
import { composer, doing } from './forms.js';
import { table } from './lists.js';
import { address, agent, asks, folded, known } from './state.js';
import { timeOf } from './time.js';

const SIGNS = { busy: '◆', 'needs-input': '▲', idle: '◇', away: '◦', offline: '–' };
const TONES = { busy: 'good', 'needs-input': 'calls', idle: 'calm', away: 'faint', offline: 'faint' };

function sign(one) {
  const calls = one.asks > 0 ? 'needs-input' : one.presence;
  return el('span', { class: 'sign', 'data-tone': TONES[calls], 'aria-hidden': 'true' }, SIGNS[calls] ?? '?');
}

const textOf = (one) => folded([one.name, one.harness, one.task, ...one.details.map(([, value]) => value)].join(' '));

function setAgent(node, one) {
  const isCounted = known.agents?.counted;
  const link = node.firstChild;
  const more = [one.harness, one.task].filter(Boolean).join(' · ');
  put(link, sign(one), el('span', { class: 'name' }, peer(one.name)), spoken(` ${one.presence} `),
    one.paused && el('span', { class: 'badge', 'data-tone': 'warn' }, 'paused'), ' ',
    one.asks > 0 && el('span', { class: 'badge', 'data-tone': 'calls' }, one.asks === 1 ? 'asks' : `${one.asks} asks`), ' ',
    isCounted && one.unread > 0 && el('span', { class: 'badge' }, String(one.unread), spoken(' unread ')),
    el('span', { class: 'more faint' }, peer(more)));
}

/** The list at the left. One flat list, so that an agent keeps focus when it moves to another group. */
export function agentsNav(filter) {
  const box = el('div', {});
  const nothing = el('p', { class: 'faint empty', hidden: true }, 'no agent is known');
  const node = el('nav', { 'aria-label': 'Agents', id: 'agents' }, el('h2', { class: 'spoken' }, 'Agents'), box, nothing);
  let isOfflineOpen = false;
  let current = null;
  const rows = keyed(box, {
    key: (item) => (item.group ? `group ${item.group}` : `agent ${item.agent.name}`),
    make: (item) => {
      if (!item.group) return el('div', { class: 'agent' }, el('a', { href: address.agent(item.agent.name) }));
      if (item.group !== 'Offline') return el('h3', {});
      return el('h3', {}, el('button', {
        type: 'button', class: 'quiet', onclick: () => { isOfflineOpen = !isOfflineOpen; update('agents'); },
      }));
    },
    update: (row, item) => {
      if (item.agent) return setAgent(row, item.agent);
      const heading = row.querySelector('button') ?? row;
      setText(heading, `${item.group === 'Offline' ? (item.isOpen ? '▾ ' : '▸ ') : ''}${item.group} (${item.count})`);
      setAttribute(row, 'data-tone', item.tone);
      if (heading !== row) heading.setAttribute('aria-expanded', String(item.isOpen));
    },
    gone: (at) => (box.children[Math.min(at, box.children.length - 1)]?.querySelector('a') ?? document.querySelector('h1'))?.focus(),
  });

  function mark() {
    for (const link of box.querySelectorAll('a')) link.removeAttribute('aria-current');
    if (current !== null) rows.node(`agent ${current}`)?.querySelector('a').setAttribute('aria-current', 'page');
  }
  function update(kind) {
    if (!known.agents || !['agents', 'filter'].includes(kind)) return;
    const words = folded(filter());
    const items = [];
    for (const group of known.agents.groups) {
      const agents = words ? group.agents.filter((one) => textOf(one).includes(words)) : group.agents;
      if (agents.length === 0) continue;
      const isOpen = group.title !== 'Offline' || isOfflineOpen || words !== '' || agents.some((one) => one.name === current);
      items.push({ group: group.title, tone: group.tone, count: agents.length, isOpen });
      if (isOpen) items.push(...agents.map((one) => ({ agent: one, counted: known.agents.counted })));
    }
    rows.show(items);
    nothing.hidden = items.length > 0;
    setText(nothing, words ? 'no agent has these words' : 'no agent is known');
    mark();
  }
  return {
    node, update,
    choose(name) { current = name; update('agents'); },
    items: () => [...box.querySelectorAll('a')],
    focused: () => (box.contains(document.activeElement) ? agent(nameOf(document.activeElement)) : null),
  };
}

const nameOf = (link) => {
  const match = /^\/ui\/agents\/(.+)$/.exec(link.getAttribute('href') ?? '');
  return match ? decodeURIComponent(match[1]) : null;
};

/** The page of an agent. */
export function agentView(name) {
  const heading = el('h1', { tabindex: -1 }, peer(name));
  const state = el('p', { class: 'row wrap' });
  const fields = el('dl', { class: 'fields' });
  const unknown = el('p', { class: 'empty', hidden: true }, 'No agent of this name is known. ', el('a', { href: '/ui/' }, 'Who is here'));
  const wake = doing('Wake', () => ({ wake: name }), { 'aria-keyshortcuts': 'w' });
  const pause = doing('Pause', () => (agent(name)?.paused ? { resume: name } : { pause: name }), { 'aria-keyshortcuts': 'p' });
  const buttons = el('div', { class: 'row' }, wake, pause);
  const questions = askList({ wanted: () => asks().filter((ask) => ask.agent === name), empty: `${harmless(name)} asks nothing`, heading });
  const write = composer({ key: `agent:${name}`, thread: null, preset: () => [name] });
  const place = el('div', {});
  let threads = null;

  function setThreads() {
    const list = known.lists.threads;
    if (!list) return;
    if (!threads) {
      threads = table({
        columns: list.columns, label: `Conversations of ${harmless(name)}`, href: (row) => address.thread(row.key),
        empty: 'no conversation of it is kept',
      });
      place.replaceChildren(threads.node);
    }
    threads.show(list.rows.filter((row) => row.agents?.includes(name)));
  }

  function update(kind) {
    if (kind === undefined || kind === 'agents') {
      write.update();
      const one = agent(name);
      unknown.hidden = Boolean(one) || !known.agents;
      buttons.hidden = write.node.hidden = !one;
      if (one) {
        const heard = one.heard === null ? null : el('span', { class: 'faint' }, 'heard ', timeOf('ago', one.heard));
        put(state, sign(one), el('strong', {}, one.presence), peer(one.evidence, { class: 'faint' }),
          one.paused && el('span', { class: 'badge', 'data-tone': 'warn' }, 'paused'), heard);
        const unread = known.agents.counted ? [['unread', String(one.unread)]] : [];
        const all = [['harness', one.harness], ['task', one.task], ...one.details, ...unread].filter(([, value]) => value);
        fields.replaceChildren(...all.map(([field, value]) => el('div', {}, el('dt', {}, field), el('dd', {}, peer(value)))));
        setText(pause, one.paused ? 'Resume' : 'Pause');
      }
    }
    if (kind === undefined || kind === 'list:asks') questions.update();
    if (kind === undefined || kind === 'list:threads') setThreads();
  }
  update();
  return {
    name: 'agent', main: el('div', {}, el('header', { class: 'row top wrap' }, heading, el('span', { class: 'push' }, buttons)),
      unknown, state, fields, el('section', { 'aria-label': 'Questions' }, questions.node),
      el('section', { class: 'boxed' }, el('h2', {}, 'Write'), write.node),
      el('section', {}, el('h2', {}, 'Conversations'), place)),
    aside: null, heading, title: () => harmless(name), update, agent: name,
    items: () => threads?.items() ?? [],
    keys: { ...questions.keys, c: () => write.focus(), w: () => wake.click(), p: () => pause.click() },
    back: '/ui/',
  };
}
