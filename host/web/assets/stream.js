// The stream of events. It is read by hand, so that the key goes in a header and the status can be seen.

import { Failure, refusal, request } from './api.js';

const HIDDEN_FOR = 60000;
const LONGEST_WAIT = 10000;

/** Splits what comes into events: `{event, data, id}`. Pure, but for what is left over in between. */
export function parser() {
  let rest = '';
  return (text) => {
    rest += text;
    const events = [];
    for (;;) {
      const end = /\r?\n\r?\n/.exec(rest);
      if (!end) return events;
      const event = { event: 'message', data: [], id: null };
      for (const line of rest.slice(0, end.index).split(/\r?\n/)) {
        const colon = line.indexOf(':');
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
        if (field === 'event') event.event = value;
        else if (field === 'data') event.data.push(value);
        else if (field === 'id') event.id = value;
      }
      rest = rest.slice(end.index + end[0].length);
      if (event.data.length > 0 || event.id !== null || event.event !== 'message') {
        events.push({ ...event, data: event.data.join('\n') });
      }
    }
  };
}

/**
 * `onEvent(name, data)` gets what comes; `onConnection({live, since, why})` gets whether it comes.
 */
export function follow(onEvent, onConnection) {
  let thread = null;
  let lastId = null;
  let current = null;
  let wait = 0;
  let timer = null;
  let down = null;
  let hiddenTimer = null;
  let paused = false;
  let live = false;

  function connect() {
    clearTimeout(timer);
    current?.abort();
    if (paused || refusal() !== null) return;
    const mine = new AbortController();
    current = mine;
    run(mine).then(
      () => new Failure(0, 'the server closed the connection'),
      (error) => (error instanceof Failure ? error : new Failure(0, 'the connection broke')),
    ).then((failure) => {
      if (mine !== current || mine.signal.aborted) return;
      current = null;
      live = false;
      down ??= Date.now();
      onConnection({ live: false, since: down, why: failure.message });
      // Another tab may have signed in anew in the meantime.
      if (refusal() !== null) return;
      timer = setTimeout(connect, wait);
      wait = Math.min(LONGEST_WAIT, wait === 0 ? 500 : wait * 2);
    });
  }

  async function run(mine) {
    const query = thread === null ? '' : `?thread=${encodeURIComponent(thread)}`;
    const headers = { accept: 'text/event-stream' };
    if (lastId !== null) headers['last-event-id'] = lastId;
    const response = await request(`/ui/data/events${query}`, { headers, signal: mine.signal });
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const parse = parser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || mine.signal.aborted) return;
      const events = parse(decoder.decode(value, { stream: true }));
      if (events.length === 0) continue;
      if (!live) onConnection({ live: true });
      live = true;
      down = null;
      wait = 0;
      for (const event of events) {
        if (event.id) lastId = event.id;
        let data = null;
        try {
          data = event.data ? JSON.parse(event.data) : null;
        } catch {
          continue;
        }
        try {
          onEvent(event.event, data);
        } catch (error) {
          // A fault of the page must not look like one of the connection.
          reportError(error);
        }
      }
    }
  }

  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) {
      // Browsers allow six connections to a host: tabs that nobody sees give theirs back.
      hiddenTimer = setTimeout(() => {
        paused = true;
        clearTimeout(timer);
        current?.abort();
        current = null;
      }, HIDDEN_FOR);
    } else if (paused) {
      paused = false;
      wait = 0;
      connect();
    }
  });
  addEventListener('online', () => { if (down !== null) connect(); });

  return {
    /** Follows this conversation as well; none for null. */
    open(name, always = false) {
      if (!always && name === thread && current) return;
      thread = name;
      wait = 0;
      connect();
    },
    stop() {
      clearTimeout(timer);
      current?.abort();
      current = null;
    },
  };
}
