// A double of the server, with made-up data, for trying the page alone: `node mock.mjs [PORT]` prints an address to
// open; MANY=1 adds a lot of mail. What it says proves nothing about the real server; `checks.mjs` runs against that one.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname } from 'node:path';
import { hostile } from './hostile.mjs';

const ASSETS = new URL('../../host/web/assets/', import.meta.url);
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' };
const CSP = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";
const CODE = 'code-of-the-mock';
const KEY = process.env.MOCK_KEY ?? 'key-of-the-mock';
const DOTS = {
  queued: ['◌', 'faint'], stored: ['○', 'calm'], notified: ['◔', 'calm'], accepted: ['◑', 'calm'], shown: ['◕', 'good'],
  read: ['●', 'good'], acknowledged: ['✓', 'good'], held: ['!', 'warn'], undeliverable: ['✗', 'bad'],
};
const start = Date.now();
const minutes = (number) => start - number * 60000;

let ids = 0;
// Ids of messages that are sent later must not come again once the mock is started anew.
let prefix = '01MOCK';
const newId = () => prefix + String((ids += 1)).padStart(26 - prefix.length, '0');

function recipient(to, at, path, more = {}) {
  let time = at;
  let gap = null;
  const steps = path.map(([what, after, route = '', evidence = ''], index) => {
    time += after;
    gap = index === 0 ? null : after;
    return { at: time, what, route, evidence, gap };
  });
  const reached = steps.filter((step) => step.what !== 'refused').at(-1).what;
  const word = more.word ?? reached;
  const [glyph, tone] = DOTS[word];
  return {
    to, dot: { glyph, word, tone }, over: ['read', 'acknowledged', 'undeliverable'].includes(word), steps, waits: more.waits ?? [],
  };
}
const stored = ['stored', 0];
const full = (seconds) => [stored, ['notified', 40, 'wake-file', 'file=~/.relay/wakes/bob'], ['accepted', 300, 'hook'],
  ['shown', seconds * 1000, 'hook', 'event=PostToolUse session=9f1c'], ['read', 900, 'read']];

const messages = [];
function message(at, from, to, subject, body, recipients, more = {}) {
  const one = {
    id: newId(), at, from, to, subject, body, bytes: Buffer.byteLength(body), cut: false, thread: 'build', reply_to: null,
    priority: 'normal', tags: [], broadcast: false, recipients: recipients ?? to.map((name) => recipient(name, at, [stored])), ...more,
  };
  messages.push(one);
  return one;
}

const first = message(minutes(42), 'carol', ['bob', 'dave', 'erin'], 'the build is red',
  'the build is red\n\nerror[E0308]: mismatched types\n  --> host/store/src/files/gate.rs:118:9\n   |\n118 |         lease.holder\n   |         ^^^^^^^^^^^^ expected `AgentName`, found `String`\n\nSince 9ae31f7. Who has touched the gate?',
  [recipient('bob', minutes(42), full(130)), recipient('dave', minutes(42), [stored, ['refused', 90, 'app-server', 'no turn is running'], ['notified', 20, 'wake-file']]),
    recipient('erin', minutes(42), [stored], { word: 'held', waits: ['held: 8 messages in a row without a person'] })],
  { priority: 'high', tags: ['ci', 'store'] });
message(minutes(38), 'bob', ['carol'], 'the build is red', 'That was me. `holder` became an AgentName on main while I was on my branch; I will parse at the edge and push in ten minutes.',
  [recipient('carol', minutes(38), full(4))], { reply_to: first.id });
message(minutes(21), 'bob', ['carol', 'dave'], 'the build is red', 'Pushed. Green here.',
  [recipient('carol', minutes(21), [...full(2), ['acknowledged', 5000, 'ack']]), recipient('dave', minutes(21), [stored, ['notified', 30, 'wake-file'], ['shown', 61000, 'hook', 'event=UserPromptSubmit']])]);
message(minutes(20.5), 'carol', ['bob'], 'the build is red', 'Thank you, the tests pass again.', [recipient('bob', minutes(20.5), full(1))]);
message(minutes(2), 'shell', ['erin'], 'Please look at the flaky test in nats_logins when you are through.', 'Please look at the flaky test in nats_logins when you are through.',
  [recipient('erin', minutes(2), [stored, ['notified', 60, 'wake-file']], { waits: ['it is idle and has no route that wakes it'] })]);
message(minutes(61), 'bob', ['carol'], 'The staging database has moved to port 5433', 'The staging database has moved to port 5433', [recipient('carol', minutes(61), full(12))], { thread: 'staging' });
message(minutes(60), 'carol', ['bob'], 'Re: staging', 'Thank you, the tests pass again', [recipient('bob', minutes(60), [['queued', 0], ['stored', 4000]])], { thread: 'staging' });
for (const [at, [subject, body]] of hostile.entries()) {
  const long = body.length > 16384;
  const one = message(minutes(90 - at), 'dave', ['alice', 'erin'], subject, body, undefined, { thread: 'hostile', tags: ['<b>tag</b>'] });
  if (long) Object.assign(one, { whole: body, body: body.slice(0, 16384), cut: true });
}

if (process.env.MANY) {
  for (let at = 0; at < 400; at += 1) {
    const time = minutes(500 - at);
    message(time, ['bob', 'carol', 'dave'][at % 3], ['erin', 'alice'], `number ${at}`, `Text of number ${at}. `.repeat(60), [recipient('erin', time, full(9)), recipient('alice', time, full(4))], { thread: 'many' });
    message(time, 'bob', ['carol'], `subject ${at}`, 'short', undefined, { thread: `thread-${at}` });
  }
}

const agent = (name, presence, more = {}) => ({
  name, presence, evidence: 'a hook said so', paused: false, unread: 0, asks: 0, harness: 'Claude Code', task: '', heard: minutes(3),
  details: [['model', 'claude-opus-4'], ['project', '~/project'], ['machine', 'laptop']], ...more,
});
const people = {
  alice: agent('alice', 'needs-input', { evidence: 'has asked its user something', asks: 1, task: 'fixes the build', harness: 'command line' }),
  bob: agent('bob', 'busy', { evidence: 'ran a tool 3 s ago', unread: 2, task: 'parse names at the edge' }),
  carol: agent('carol', 'busy', { harness: 'Codex', task: 'reviews the store' }),
  dave: agent('dave', 'idle', { unread: 1, harness: 'OpenCode', paused: true }),
  erin: agent('erin', 'idle', { unread: 12, harness: 'Gemini CLI', task: '<img src=x onerror=alert(1)>' }),
  frank: agent('frank', 'offline', { evidence: 'its session has ended', heard: minutes(900) }),
};
let asks = [
  { id: 'ask1', agent: 'alice', kind: 'question', what: 'Which port shall the server use?\n\n8080 is taken on this machine by the proxy.', reason: 'the tests need a fixed one', choices: [], answers: ['TEXT', 'refuse'], yes: null, no: 'refuse', until: start + 600000 },
  { id: 'ask2', agent: null, kind: 'consent', what: 'May deploy.sh push to staging?', reason: null, choices: [], answers: ['allow', 'refuse'], yes: 'allow', no: 'refuse', until: start + 95000 },
];

const text = (value) => ({ text: String(value) });
const threadsOf = () => [...new Set(messages.map((one) => one.thread))];
const inThread = (name) => messages.filter((one) => one.thread === name).sort((one, other) => one.at - other.at);
const shown = ({ whole, ...one }) => one;

function state(lost = process.env.MANY ? 'the store does not answer' : null) {
  return { machine: 'laptop', version: '0.1.0', now: Date.now(), lost, damaged: process.env.MANY ? ['mail of erin cannot be read: <b>its file</b> is damaged'] : [] };
}
function agents() {
  const group = (title, tone, pick) => ({ title, tone, agents: Object.values(people).filter(pick) });
  const needs = (one) => one.asks > 0 || one.presence === 'needs-input';
  const groups = [group('Needs you', 'calls', needs), ...[['Busy', 'good'], ['Idle', 'calm'], ['Away', 'faint'], ['Offline', 'faint']]
    .map(([title, tone]) => group(title, tone, (one) => !needs(one) && one.presence === title.toLowerCase()))];
  return { counted: true, groups: groups.filter(({ agents }) => agents.length > 0) };
}
const names = (one) => [one.from, ...one.to];
function list(tab) {
  const of = (title, empty, columns, rows) => ({ tab, title, empty, columns, total: rows.length, rows });
  switch (tab) {
    case 'threads':
      return of('Threads', 'no conversation is kept', ['LAST', 'MSGS', 'OPEN', 'AGENTS', 'ABOUT'], threadsOf().map((name) => {
        const all = inThread(name);
        const open = all.flatMap((one) => one.recipients).filter((one) => !one.over).length;
        const who = [...new Set(all.flatMap(names))];
        return { key: name, state: open ? 'open' : '', agents: who, at: all.at(-1).at, cells: [{ ago: all.at(-1).at }, text(all.length), text(open || ''), text(who.join(', ')), text(all[0].subject)] };
      }).sort((one, other) => other.at - one.at));
    case 'asks':
      return of('Asks', 'no question waits for you', ['AGENT', 'KIND', 'LEFT', 'WHAT'], asks.map((ask) => ({
        key: ask.id, state: 'needs-input', ask, cells: [text(ask.agent ?? 'a script'), text(ask.kind), { left: ask.until }, text(ask.what.split('\n')[0])],
      })));
    case 'reservations':
      return of('Reservations', 'nothing is reserved', ['AGENT', 'MODE', 'LEFT', 'PATHS'], [
        { key: 'r1', state: 'held', cells: [text('bob'), text('exclusive'), { left: start + 1500000 }, text('host/store/src/files/**')] },
        { key: 'r2', state: '', cells: [text('carol'), text('shared'), { left: start + 300000 }, text('docs/*.md')] }]);
    case 'commands':
      return of('Commands', 'no command waits or runs', ['FROM → TO', 'STATUS', 'WHEN', 'COMMAND'], [
        { key: 'c1', state: 'running', cells: [text('carol → bob'), text('running'), { ago: minutes(1) }, text('/review host/store')] },
        { key: 'c2', state: 'pending', cells: [text('bob → erin'), text('pending'), { until: start + 240000 }, text('/test nats_logins')] },
        { key: 'c3', state: 'failed', cells: [text('bob → dave'), text('failed'), { ago: minutes(33) }, text('/bench 100000')] }]);
    case 'runs':
      return of('Runs', 'no run is kept; `relay-mesh run HARNESS TASK` starts one', ['HARNESS', 'STATE', 'WHEN', 'TASK'], []);
    case 'held':
      return of('Held', 'no mail is held, queued or undeliverable', ['FROM → TO', 'STATE', 'MSGS', 'WHY'], [
        { key: 'h1', state: 'held', cells: [text('carol → erin'), text('held'), text(1), text('8 messages in a row without a person')] }]);
    default:
      return of('Log', 'nothing has happened in the last hours', ['WHEN', 'EVENT', 'DETAILS'], []);
  }
}
const TABS = ['threads', 'asks', 'reservations', 'commands', 'runs', 'held', 'log'];
function thread(name) {
  const all = inThread(name);
  if (all.length === 0) return { thread: name, gone: `no conversation ${name} is kept` };
  return { thread: name, subject: all[0].subject, earlier: name === 'build' ? 3 : 0, messages: all.map(shown) };
}
const log = messages.map((one, at) => ({ key: `l${at}`, state: '', cells: [{ ago: one.at }, text('message'), text(`${one.from} to ${one.to.join(', ')}: ${one.subject}`)] }));

const streams = new Set();
function put(stream, event, data, id) {
  stream.response.write(`${id ? `id: ${id}\n` : ''}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}
function everyone(change) {
  for (const stream of streams) change(stream);
}
function arrived(one) {
  people[one.to[0]] && (people[one.to[0]].unread += 1);
  const row = { key: `l${log.length}`, state: '', cells: [{ ago: one.at }, text('message'), text(`${one.from} to ${one.to.join(', ')}: ${one.subject}`)] };
  log.push(row);
  everyone((stream) => {
    put(stream, 'message', shown(one));
    put(stream, 'log', { rows: [row] }, String(log.length));
    put(stream, 'list', list('threads'));
    put(stream, 'agents', agents());
    if (stream.thread === one.thread) put(stream, 'thread', thread(one.thread));
  });
  setTimeout(() => {
    one.recipients = one.to.map((to) => recipient(to, one.at, [stored, ['notified', 700, 'wake-file']]));
    everyone((stream) => stream.thread === one.thread && put(stream, 'thread', thread(one.thread)));
  }, 700);
}

function acted(body) {
  if (body.send) {
    const { to, body: said } = body.send;
    if (said.includes('REFUSE')) return [422, { error: 'the message was refused, as you asked' }];
    const unknown = to.find((name) => !people[name]);
    if (unknown) return [422, { error: `no agent named \`${unknown}\` has joined`, hint: 'run `relay-mesh agents` to see who is here' }];
    arrived(message(Date.now(), body.send.from ?? 'shell', to, said.split('\n')[0].slice(0, 60), said, undefined, { thread: body.send.thread ?? newId() }));
    return [200, { done: `sent to ${to.join(', ')}` }];
  }
  if (body.answer) {
    const ask = asks.find((one) => one.id === body.answer.ask);
    if (!ask) return [422, { error: 'that question is over' }];
    asks = asks.filter((one) => one !== ask);
    if (people[ask.agent]) Object.assign(people[ask.agent], { asks: 0, presence: 'busy' });
    everyone((stream) => { put(stream, 'list', list('asks')); put(stream, 'agents', agents()); });
    return [200, { done: `answered: ${body.answer.words}` }];
  }
  const [verb, name] = Object.entries(body)[0] ?? [];
  if (!people[name]) return [422, { error: `no agent named \`${name}\` has joined` }];
  if (verb !== 'wake') people[name].paused = verb === 'pause';
  everyone((stream) => put(stream, 'agents', agents()));
  return [200, { done: `${name}: ${verb} done` }];
}

async function answer(request, response) {
  const url = new URL(request.url, 'http://localhost');
  const json = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json', 'content-security-policy': CSP, 'x-content-type-options': 'nosniff' });
    response.end(JSON.stringify(body));
  };
  const path = url.pathname;
  let body = '';
  for await (const part of request) body += part;
  if (path.startsWith('/ui/assets/')) {
    try {
      const file = readFileSync(new URL(path.slice('/ui/assets/'.length), ASSETS));
      response.writeHead(200, { 'content-type': TYPES[extname(path)], 'content-security-policy': CSP });
      return response.end(file);
    } catch {
      return json(404, { error: 'there is no such file' });
    }
  }
  if (path === '/ui/session' && request.method === 'POST') {
    if (JSON.parse(body).code !== CODE) return json(401, { error: 'that code is not known, or was used' });
    response.setHeader('set-cookie', 'relay-mesh=1; HttpOnly; SameSite=Strict; Path=/ui');
    return json(200, { key: KEY });
  }
  if (path.startsWith('/ui/data/') || path === '/ui/session') {
    if (request.headers['x-relay-mesh-key'] !== KEY) return json(401, { error: 'no key came with the request' });
    if (path === '/ui/session') return response.writeHead(204).end();
    const query = (name) => url.searchParams.get(name);
    switch (path) {
      case '/ui/data/events': {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
        const stream = { response, thread: query('thread') };
        streams.add(stream);
        response.on('close', () => streams.delete(stream));
        put(stream, 'state', state());
        put(stream, 'agents', agents());
        for (const tab of TABS) put(stream, 'list', list(tab));
        if (stream.thread !== null) put(stream, 'thread', thread(stream.thread));
        const last = Number(request.headers['last-event-id'] ?? 0);
        if (log.length > last) put(stream, 'log', { rows: log.slice(last) }, String(log.length));
        return undefined;
      }
      case '/ui/data/detail':
        return json(200, { title: `${query('tab')} ${query('key')}`, lines: [{ indent: 0, tone: 'strong', text: 'held' }, { indent: 0, tone: 'plain', text: 'host/store/src/files/**' }, { indent: 1, tone: 'faint', text: 'because it renames types' }, { indent: 1, tone: 'warn', text: '<script>alert(1)</script>' }] });
      case '/ui/data/search': {
        const hits = messages.filter((one) => one.body.toLowerCase().includes(query('words').toLowerCase()))
          .map(({ id, at, from, thread: name, subject, body: said }) => ({ id, at, from, thread: name, subject, excerpt: said.slice(0, 200) }));
        return json(200, { words: query('words'), found: hits.length, hits });
      }
      case '/ui/data/lanes':
        return json(200, { messages: [...messages].sort((one, other) => one.at - other.at).slice(-100).map(shown) });
      case '/ui/data/export':
        response.writeHead(200, { 'content-type': 'text/plain' });
        return response.end('exported');
      case '/ui/data/actions':
        return json(...acted(JSON.parse(body)));
      default: {
        const one = messages.find(({ id }) => path === `/ui/data/messages/${id}`);
        return one ? json(200, { ...shown(one), body: one.whole ?? one.body, cut: false }) : json(404, { error: 'no such message is kept' });
      }
    }
  }
  if (path.startsWith('/ui')) {
    response.writeHead(200, { 'content-type': TYPES['.html'], 'content-security-policy': CSP });
    return response.end(readFileSync(new URL('index.html', ASSETS)));
  }
  return json(404, { error: 'there is no such page' });
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    if (!response.headersSent) response.writeHead(500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: `the mock broke: ${error.message}` }));
  });
});
prefix = `01MOCK${start}`;
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/ui/#code=${CODE}`);
});
