// What is known of the mesh. Only the stream writes here; views read it and are told what has changed.

import { setClock } from './time.js';

const LOG_ROWS = 1000;

export const LISTS = ['threads', 'asks', 'reservations', 'commands', 'runs', 'held', 'log'];

export const known = { state: null, agents: null, lists: {}, thread: null, log: [] };

/** Takes an event of the stream. Gives the kind of what has changed: an event's name, or `list:TAB`. */
export function take(name, data) {
  switch (name) {
    case 'state':
      setClock(data.now);
      known.state = data;
      return name;
    case 'agents':
      known.agents = data;
      return name;
    case 'list':
      known.lists[data.tab] = data;
      return `list:${data.tab}`;
    case 'thread':
      known.thread = data;
      return name;
    case 'message': {
      const open = known.thread;
      if (open && open.thread === data.thread) {
        const messages = open.messages ?? [];
        if (!messages.some((message) => message.id === data.id)) {
          known.thread = { subject: data.subject, earlier: 0, ...open, gone: undefined, messages: [...messages, data] };
        }
      }
      return name;
    }
    case 'log': {
      const keys = new Set(known.log.map((row) => row.key));
      known.log = [...data.rows.filter((row) => !keys.has(row.key)).reverse(), ...known.log].slice(0, LOG_ROWS);
      return 'list:log';
    }
    case 'reset':
      known.log = [];
      return 'list:log';
    default:
      return null;
  }
}

export const agents = () => (known.agents?.groups ?? []).flatMap((group) => group.agents);
export const agent = (name) => agents().find((one) => one.name === name);
export const asks = () => (known.lists.asks?.rows ?? []).map((row) => row.ask).filter(Boolean);

/** How much waits for the person: agents that need them, and questions of no agent that is listed. */
export function waiting() {
  const calling = (known.agents?.groups ?? []).filter((group) => group.tone === 'calls').flatMap((group) => group.agents);
  const names = new Set(calling.map((one) => one.name));
  return calling.length + asks().filter((ask) => !names.has(ask.agent)).length;
}

/** Text as it is compared while lists are narrowed down. */
export const folded = (text) => String(text ?? '').toLocaleLowerCase();

export const address = {
  thread: (name, message) =>
    `/ui/threads/${encodeURIComponent(name)}${message ? `#message-${encodeURIComponent(message)}` : ''}`,
  agent: (name) => `/ui/agents/${encodeURIComponent(name)}`,
  message: (id) => `/ui/messages/${encodeURIComponent(id)}`,
  list: (tab) => (tab === 'threads' ? '/ui/' : `/ui/${tab}`),
};
