// The frame of the page: addresses, the connection, and which view is shown.

import { decoded, followOtherTabs, onSession, refusal, signInByAddress, signOut, act } from './api.js';
import { agentsNav, agentView } from './agents.js';
import { el, harmless, setAttribute, setText } from './dom.js';
import { keysDialog, listen } from './keys.js';
import { meshLanesView } from './lanes_view.js';
import { listView } from './lists.js';
import { failed, note, notes, say } from './notes.js';
import { asksView, homeView, messageView, searchView, unknownView } from './pages.js';
import { address, known, LISTS, take, waiting } from './state.js';
import { follow } from './stream.js';
import { threadView } from './thread.js';
import { clock, keepTelling } from './time.js';

const by = (id) => document.getElementById(id);
const main = by('main');
const aside = by('aside');
const field = by('words');
let view = null;
let words = '';
let isLive = false;
let addressed = null;
let shown = null;
let started = false;

const agents = agentsNav(() => words);
by('agents-place').replaceWith(agents.node);
document.body.append(...notes);
const dialog = keysDialog();
document.body.append(dialog);

function make() {
  const parts = location.pathname.replace(/\/$/, '').split('/').slice(2).map(decoded);
  const [first, second] = parts;
  if (parts.length === 0 || (parts.length === 1 && first === 'threads')) return homeView(() => words);
  if (parts.length === 1) {
    if (first === 'asks') return asksView();
    if (first === 'lanes') return meshLanesView();
    if (first === 'search') return searchView((new URLSearchParams(location.search).get('words') ?? '').trim());
    if (LISTS.includes(first)) return listView(first, () => words);
  }
  if (parts.length === 2 && second) {
    if (first === 'agents') return agentView(second);
    if (first === 'threads') {
      const to = addressed;
      addressed = null;
      return threadView(second, { addressed: to });
    }
    if (first === 'messages') return messageView(second, (to) => go(to, { replace: true }));
  }
  return unknownView();
}

function showAside() {
  const wanted = view.aside;
  if (aside.firstChild !== wanted) aside.replaceChildren(...(wanted ? [wanted] : []));
  aside.hidden = !wanted;
  document.body.classList.toggle('has-aside', Boolean(wanted));
}

function openThread() {
  const name = /^\/ui\/threads\/([^/]+)\/?$/.exec(location.pathname)?.[1];
  return name === undefined ? null : decoded(name);
}

/** Shows the view of the address. Focus goes to its heading, so that the keyboard and screen readers follow. */
function show({ focus = true, scroll = true } = {}) {
  view?.close?.();
  shown = { pathname: location.pathname, search: location.search };
  words = '';
  if (!location.pathname.startsWith('/ui/search')) field.value = '';
  const name = openThread();
  if (known.thread && known.thread.thread !== name) known.thread = null;
  view = make();
  view.changed = showAside;
  main.replaceChildren(view.main);
  document.body.dataset.view = view.name;
  if (scroll) {
    main.scrollTop = 0;
    scrollTo(0, 0);
  }
  view.update();
  view.hash?.();
  showAside();
  agents.choose(view.agent ?? null);
  agents.update('filter');
  for (const link of by('lists').querySelectorAll('a')) {
    const isHere = link.pathname === location.pathname || (link.pathname === '/ui/' && view.name === 'thread');
    setAttribute(link, 'aria-current', isHere ? 'page' : null);
  }
  setTitle();
  if (focus) view.heading.focus({ preventScroll: true });
  stream.open(name);
}

function setTitle() {
  const count = waiting();
  const title = view?.title();
  document.title = `${count > 0 ? `(${count}) ` : ''}${title ? `${title} · ` : ''}relay-mesh`;
}

function go(to, { replace = false, to: recipients = null } = {}) {
  const url = new URL(to, location.href);
  const isSame = url.pathname === location.pathname && url.search === location.search;
  const isSamePage = url.pathname === location.pathname && view.name === 'thread';
  addressed = recipients;
  if (url.href !== location.href) history[replace ? 'replaceState' : 'pushState'](null, '', url);
  if (isSame || isSamePage) view.hash?.();
  else show();
  if (isSame || isSamePage) showAside();
  if (recipients) view.keys.c?.();
}

addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest?.('a[href]');
  // A link of a drawing has an object for its href.
  const href = link?.getAttribute('href');
  if (!href || link.hasAttribute('download') || (!href.startsWith('/ui/') && !href.startsWith('#'))) return;
  if (href.startsWith('#') && !href.startsWith('#row-')) return;
  event.preventDefault();
  go(href);
});
addEventListener('popstate', () => {
  if (!started) return;
  const isSame = location.pathname === shown.pathname && (location.search === shown.search || view.name === 'thread');
  if (!isSame) return show({ focus: false, scroll: false });
  view.hash?.();
  showAside();
});
addEventListener('hashchange', () => { signInByAddress().then(({ had, failure }) => had && begin(failure)); });

// What is known has changed.
function changed(kind, data) {
  if (kind === null) return;
  agents.update(kind);
  view.update(kind, data);
  showAside();
  if (kind === 'state') setState();
  if (kind.startsWith('list:')) setCounts();
  if (kind === 'agents' || kind === 'list:asks' || kind === 'thread') setTitle();
  if (kind === 'message') say(`${data.from} to ${data.to.join(', ')}: ${data.subject}`.slice(0, 300));
}

function setCounts() {
  for (const link of by('lists').querySelectorAll('a[data-tab]')) {
    const list = known.lists[link.dataset.tab];
    const count = link.dataset.tab === 'log' || !list || list.total === 0 ? '' : String(list.total);
    setText(link.querySelector('.count'), count);
  }
}

function setState() {
  const { machine, version, lost, damaged = [] } = known.state;
  setText(by('machine'), harmless(machine));
  setText(by('version'), `relay-mesh ${version}`);
  setText(by('lost'), lost ? `! What is shown is only the last known state: ${harmless(lost)}` : '');
  by('lost').hidden = !lost;
  by('damaged').replaceChildren(...damaged.map((sentence) => el('li', { dir: 'auto' }, `! ${harmless(sentence)}`)));
  by('damaged').hidden = damaged.length === 0;
}

function setConnection({ live, since, why }) {
  const wasLive = isLive;
  isLive = live;
  const word = live ? 'live' : refusal() !== null ? 'not signed in' : 'not connected';
  setText(by('connection'), `${live ? '●' : '○'} ${word}`);
  by('connection').dataset.tone = live ? 'good' : 'warn';
  const isDown = !live && refusal() === null;
  by('down').hidden = !isDown;
  setText(by('down'), isDown ? `! Not connected since ${clock(since)}: ${why}. What is shown is the last known state; trying again.` : '');
  document.body.classList.toggle('last-known', !live);
  if (live && !wasLive) view.update('connected');
}

function setSession(reason) {
  by('signed-out').hidden = reason === null;
  setText(by('refusal'), reason === null ? '' : `The server said: ${harmless(reason)}.`.replace(/\.\.$/, '.'));
  if (reason !== null) {
    stream.stop();
    setConnection({ live: false, since: Date.now(), why: reason });
  } else if (started) {
    begin();
  }
}

const stream = follow((name, data) => changed(take(name, data), data), setConnection);

// These ask the server once; the others hold what a person may have typed, and are not made anew.
const ASK_ONCE = ['search', 'message', 'lanes'];

function begin(failure = null) {
  if (failure) note(`signing in with the code failed: ${failure.message}`, true);
  const isFirst = !started;
  started = true;
  if (isFirst || ASK_ONCE.includes(view.name)) show({ focus: false });
  else stream.open(openThread(), true);
}

// The field narrows lists down while one types; Enter looks through the texts of all mail.
field.addEventListener('input', () => {
  words = field.value.trim();
  agents.update('filter');
  view.update('filter');
});
by('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const wanted = field.value.trim();
  if (!wanted) return note('there is no word to look for', true);
  go(`/ui/search?words=${encodeURIComponent(wanted)}`);
});
by('show-keys').addEventListener('click', () => {
  by('menu').open = false;
  dialog.showModal();
});
by('sign-out').addEventListener('click', () => {
  by('menu').open = false;
  signOut().catch(failed);
});
addEventListener('click', (event) => {
  for (const menu of document.querySelectorAll('details.menu[open]')) if (!menu.contains(event.target)) menu.open = false;
});

listen({
  view: () => view,
  agents,
  list: (number) => go(address.list(LISTS[number])),
  search: () => { field.focus(); field.select(); },
  help: () => dialog.showModal(),
  go,
  back: () => { if (view.back) go(view.back); },
  escape(node) {
    if (node !== field) return view.heading.focus({ preventScroll: true });
    field.value = words = '';
    agents.update('filter');
    view.update('filter');
    view.heading.focus({ preventScroll: true });
  },
  agentKey(key, agent) {
    const does = { w: { wake: agent.name }, p: agent.paused ? { resume: agent.name } : { pause: agent.name } }[key];
    if (does) {
      act(does).then((done) => note(done), failed);
    } else if (key === 'c' || agent.asks > 0) {
      go(address.agent(agent.name));
      // The question is shown first: it takes a second press to answer it.
      if (key === 'a' || key === 'c') view.keys[key]();
      else view.items && document.querySelector('.ask')?.focus();
    } else {
      note(`${agent.name} asks nothing`, true);
    }
    return true;
  },
});

onSession(setSession);
followOtherTabs();
keepTelling();
signInByAddress().then(({ failure }) => begin(failure));
