// Requests to the server, and whether this page is signed in.

const KEY = 'relay-mesh-key';

/** What a request came to: a sentence for the person, and the status; 0 if there was no answer. */
export class Failure extends Error {
  constructor(status, sentence, hint) {
    super(hint ? `${sentence} (${hint})` : sentence);
    this.status = status;
  }
}

const session = { key: read(), refused: null, listeners: [] };

function read() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(key) {
  session.key = key;
  try {
    if (key) localStorage.setItem(KEY, key);
    else localStorage.removeItem(KEY);
  } catch {
    // Without storage the key lasts as long as the page.
  }
}

/** Called with null once signed in, and with the reason once not. */
export function onSession(listener) {
  session.listeners.push(listener);
}

export const refusal = () => session.refused;

function setRefused(reason) {
  if (session.refused === reason) return;
  session.refused = reason;
  for (const listener of session.listeners) listener(reason);
}

/** A response, or a `Failure`. Nothing is tried while the page is not signed in. */
export async function request(path, { method = 'GET', body, headers, signal, signingIn = false } = {}) {
  if (session.refused !== null && !signingIn) throw new Failure(401, 'this page is not signed in');
  const sentKey = session.key;
  const all = { accept: 'application/json', ...headers };
  if (sentKey) all['x-relay-mesh-key'] = sentKey;
  if (body !== undefined) all['content-type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {
      method, signal, headers: all, cache: 'no-store', credentials: 'same-origin',
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Failure(0, 'the server does not answer');
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  const failure = new Failure(response.status, said.error || `the server answered ${response.status}`, said.hint);
  // A request that left before somebody signed in says nothing about the new key.
  if (response.status === 401 && !signingIn && sentKey === session.key) setRefused(failure.message);
  throw failure;
}

export async function json(path, options) {
  const response = await request(path, options);
  try {
    return await response.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Failure(response.status, 'the answer of the server was cut off');
  }
}

/** Does something as the person, and gives the sentence about it. */
export const act = async (action) => (await json('/ui/data/actions', { method: 'POST', body: action })).done;

/** Takes the code out of the address and signs in with it: whether there was one, and why it did not work. */
export async function signInByAddress() {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  if (!code) return { had: false, failure: null };
  history.replaceState(history.state, '', location.pathname + location.search);
  try {
    const { key } = await json('/ui/session', { method: 'POST', body: { code: decoded(code) }, signingIn: true });
    keep(key);
    setRefused(null);
    return { had: true, failure: null };
  } catch (error) {
    // A code works once: with a link that was used before, an older session may still be good.
    if (!session.key) setRefused(error.message);
    return { had: true, failure: session.key ? error : null };
  }
}

export const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

export async function signOut() {
  await request('/ui/session', { method: 'DELETE' });
  keep(null);
  setRefused('you have signed out');
}

/** Follows other tabs that sign in or out. */
export function followOtherTabs() {
  addEventListener('storage', (event) => {
    if (event.key !== KEY) return;
    session.key = event.newValue;
    setRefused(event.newValue ? null : 'another tab has signed out');
  });
}
