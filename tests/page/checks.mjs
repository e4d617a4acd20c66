// Checks of the page against a server: `node checks.mjs NAME BASE_URL CODE [JSON]`. Exits with 0, or prints what was
// wrong and exits with 1. What a check needs is in JSON; each says below what that is. Where something has to happen
// outside, the check prints `waiting` and goes on when it sees it, or when it reads a line.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { live, modules, open, signIn } from './browser.mjs';

const [name, base, code, ...rest] = process.argv.slice(2);
const NOT_SIGNED_IN = 'This page is not signed in. Run relay-mesh ui --web in a terminal of this machine.';

function ensure(isSo, sentence) {
  if (!isSo) throw new Error(sentence);
}
const waiting = () => console.log('waiting');
let lines = null;
async function line() {
  lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  return (await lines.next()).value ?? '';
}
async function eventually(isSo, sentence, time = 10000) {
  for (const end = Date.now() + time; Date.now() < end;) {
    if (await isSo()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(sentence);
}
const threadPath = (thread) => `/ui/threads/${encodeURIComponent(thread)}`;
const focused = (page) => page.evaluate(() => {
  const node = document.activeElement;
  return { tag: node.localName, text: node.textContent.trim().slice(0, 80), href: node.getAttribute('href'), label: node.getAttribute('aria-label') };
});
const messagesOf = (page) => page.getByRole('list', { name: 'Messages' });

const checks = {
  /** Nothing is needed. */
  async sign_in({ context, page }) {
    await page.goto(`${base}/ui/`);
    await page.getByRole('alert').getByText(NOT_SIGNED_IN).waitFor();
    const other = await context.newPage();
    await other.goto(`${base}/ui/asks#code=wrong`);
    await other.getByRole('alert').getByText('The server said:').waitFor();
    ensure(new URL(other.url()).hash === '', 'a wrong code stayed in the address');
    await signIn(other, base, code, '/ui/asks');
    ensure(other.url() === `${base}/ui/asks`, `the code stayed in the address: ${other.url()}`);
    ensure(await other.evaluate(() => Boolean(localStorage.getItem('relay-mesh-key'))), 'the key was not kept');
    ensure(!(await other.evaluate(() => document.cookie)), 'scripts can read the cookie');
    await live(page);
    ensure(await page.getByRole('alert').isHidden(), 'the other tab still says that it is not signed in');
    await other.getByText('Menu', { exact: true }).click();
    await other.getByRole('button', { name: 'Sign out' }).click();
    await other.getByRole('alert').getByText(NOT_SIGNED_IN).waitFor();
    await page.getByRole('alert').getByText(NOT_SIGNED_IN).waitFor();
    ensure(!(await other.evaluate(() => localStorage.getItem('relay-mesh-key'))), 'the key was kept after signing out');
  },

  /** `{"thread", "text"}`: once it prints `waiting`, the caller sends a message with this text in this thread. */
  async live({ page }, { thread, text }) {
    await signIn(page, base, code, threadPath(thread));
    await messagesOf(page).getByRole('listitem').first().waitFor();
    await page.evaluate(() => { window.marker = 1; });
    const before = await messagesOf(page).getByRole('listitem').count();
    waiting();
    await messagesOf(page).getByText(text).first().waitFor({ timeout: 20000 });
    ensure(await page.evaluate(() => window.marker === 1), 'the page was loaded again');
    ensure(await messagesOf(page).getByRole('listitem').count() > before, 'no message was added');
    ensure(await messagesOf(page).getByRole('listitem').filter({ hasText: text }).count() === 1, 'the message is shown twice');
  },

  /**
   * `{"thread", "before", "after"}`: texts of messages of the thread. It prints `waiting`; the caller ends the server
   * and writes a line; it prints `waiting` again; the caller starts the server at the same address, sends `after` and
   * writes a line, with a new code if the old session is not known any more.
   */
  async reconnect({ page }, { thread, before, after }) {
    await signIn(page, base, code, threadPath(thread));
    await messagesOf(page).getByText(before).first().waitFor();
    await page.getByRole('textbox', { name: 'Message' }).fill('typed before the end');
    waiting();
    await line();
    await page.getByText('Not connected since').waitFor({ timeout: 20000 });
    ensure(await messagesOf(page).getByText(before).first().isVisible(), 'what was shown went away with the server');
    ensure(/last known/.test(await page.getByText('Not connected since').textContent()), 'what is shown is not marked as last known');
    waiting();
    const [, fresh] = (await line()).trim().split(/\s+/);
    if (fresh) {
      await page.getByRole('alert').getByText(NOT_SIGNED_IN).waitFor({ timeout: 20000 });
      await page.evaluate((hash) => { location.hash = hash; }, `code=${fresh}`);
    }
    await live(page, 30000);
    await messagesOf(page).getByText(after).first().waitFor({ timeout: 20000 });
    ensure(await page.getByText('Not connected since').isHidden(), 'it still says that it is not connected');
    ensure(await page.getByRole('textbox', { name: 'Message' }).inputValue() === 'typed before the end', 'what was typed is lost');
  },

  /**
   * `{"thread", "to": [names], "text", "outside"}`: writes `text` to these agents. If `outside` is given it prints
   * `waiting` while it has typed half of it, and the caller sends a message with that text in the thread.
   */
  async compose({ page }, { thread, to, text, outside }) {
    await signIn(page, base, code, threadPath(thread));
    const form = page.getByRole('form', { name: 'Write a message' });
    const box = form.getByRole('textbox', { name: 'Message' });
    await messagesOf(page).getByRole('listitem').first().waitFor();
    while (await form.getByRole('button', { name: /^Remove / }).count() > 0) await form.getByRole('button', { name: /^Remove / }).first().click();
    for (const one of to) {
      await form.getByLabel('Add a recipient').fill(one);
      await form.getByLabel('Add a recipient').press('Enter');
      await form.getByRole('button', { name: `Remove ${one}`, exact: true }).waitFor();
    }
    const half = text.slice(0, Math.ceil(text.length / 2));
    await box.click();
    await page.keyboard.type(half);
    if (outside) {
      waiting();
      await messagesOf(page).getByText(outside).first().waitFor({ timeout: 20000 });
      ensure(await box.inputValue() === half, 'what was typed is lost because something came in');
      ensure(await box.evaluate((node) => node === document.activeElement), 'the box has lost focus because something came in');
      for (const one of to) ensure(await form.getByRole('button', { name: `Remove ${one}`, exact: true }).count() === 1, 'the recipients have changed');
    }
    await page.keyboard.type(text.slice(half.length));
    await form.getByRole('button', { name: 'Send' }).click();
    await page.locator('.note').first().waitFor();
    ensure(await page.locator('.note.bad').count() === 0, `it was not sent: ${await page.locator('.note').first().textContent()}`);
    await eventually(async () => await box.inputValue() === '', 'the box was not emptied');
    await messagesOf(page).getByRole('listitem').filter({ hasText: text }).first().waitFor();
  },

  /** `{"message", "from", "text"}`: answers the message with this id, which is from this agent. */
  async reply({ page }, { message, from, text }) {
    await signIn(page, base, code, `/ui/messages/${message}`);
    const form = page.getByRole('form', { name: 'Write a message' });
    await form.getByText('in reply to').waitFor();
    await form.getByRole('button', { name: `Remove ${from}`, exact: true }).waitFor();
    await form.getByRole('textbox', { name: 'Message' }).fill(text);
    await form.getByRole('button', { name: 'Send' }).click();
    await messagesOf(page).getByRole('listitem').filter({ hasText: text }).filter({ hasText: 'reply to' }).first().waitFor();
  },

  /** `{"agent", "question", "words"}` or `"button"`, the name of one, instead of `words`. */
  async answer({ page }, { agent, question, words, button }) {
    await signIn(page, base, code, '/ui/asks');
    const ask = page.getByRole('article', { name: `${agent} asks` }).filter({ hasText: question });
    await ask.waitFor();
    ensure(/^\(\d+\) /.test(await page.title()), `the title does not say that something waits: ${await page.title()}`);
    if (words) {
      await ask.getByRole('textbox', { name: 'Answer in words' }).fill(words);
      await ask.getByRole('button', { name: /^Answer/ }).click();
    } else {
      await ask.getByRole('button', { name: button }).click();
    }
    await ask.waitFor({ state: 'detached' });
    await page.locator('.note').first().waitFor();
    ensure(await page.locator('.note.bad').count() === 0, `it was not answered: ${await page.locator('.note').first().textContent()}`);
  },

  /** `{"thread", "texts": [what must be seen as it is], "paths": [further addresses], "words"}`. */
  async hostile({ page, wrong }, { thread, texts = [], paths = [], words }) {
    await signIn(page, base, code, threadPath(thread));
    const all = [threadPath(thread), `${threadPath(thread)}?tab=lanes`, `${threadPath(thread)}?tab=delivery`, '/ui/', '/ui/lanes', '/ui/log', '/ui/asks',
      ...(words ? [`/ui/search?words=${encodeURIComponent(words)}`] : []), ...paths];
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 760 });
      for (const path of all) {
        await page.goto(base + path);
        await live(page);
        if (path === threadPath(thread)) await messagesOf(page).getByRole('listitem').first().waitFor();
        await page.waitForTimeout(300);
        const faults = await page.evaluate(harm);
        ensure(faults.length === 0, `${path} at ${width}: ${faults.join('; ')}`);
      }
    }
    await page.goto(base + threadPath(thread));
    for (const text of texts) await messagesOf(page).getByText(text).first().waitFor();
    const whole = page.getByRole('button', { name: /^Show all/ }).first();
    if (await whole.count() > 0) {
      const start = Date.now();
      await whole.click();
      await page.getByRole('region', { name: 'Text of the message' }).first().waitFor();
      await page.keyboard.press('j');
      ensure(Date.now() - start < 8000, 'a long text keeps the page busy');
      const faults = await page.evaluate(harm);
      ensure(faults.length === 0, `with the whole text: ${faults.join('; ')}`);
    }
    ensure(wrong.length === 0, wrong.join('; '));
  },

  /** `{"thread", "agent", "message", "words"}`: an open thread, an agent, the id of a message, words that are found. */
  async axe({ page, wrong }, { thread, agent, message, words = 'the' }) {
    const source = readFileSync(modules.resolve('axe-core/axe.min.js'), 'utf8');
    const faults = [];
    await page.goto(`${base}/ui/`);
    await page.getByRole('alert').waitFor();
    const paths = ['/ui/', `/ui/agents/${encodeURIComponent(agent)}`, threadPath(thread), `${threadPath(thread)}?tab=lanes`,
      `${threadPath(thread)}?tab=delivery`, `/ui/messages/${encodeURIComponent(message)}`, '/ui/asks', '/ui/reservations', '/ui/commands',
      '/ui/runs', '/ui/held', '/ui/log', '/ui/lanes', `/ui/search?words=${encodeURIComponent(words)}`, '/ui/nothing/here/at/all'];
    const look = async (path, what) => {
      await page.evaluate(source);
      const { violations } = await page.evaluate(() => globalThis.axe.run(document));
      for (const { id, help, nodes } of violations) faults.push(`${path} ${what}: ${id} (${help}): ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`);
    };
    await look('/ui/', 'not signed in');
    await signIn(page, base, code, '/ui/');
    for (const path of paths) {
      await page.goto(base + path);
      await live(page);
      await page.waitForTimeout(300);
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 760 });
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          await look(path, `${width} ${colorScheme}`);
        }
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (over > 0) faults.push(`${path} ${width}: the page is ${over} px wider than the window`);
      }
    }
    await page.keyboard.press('?');
    await look('?', 'the dialog of keys');
    ensure(faults.length === 0, faults.join('\n'));
    ensure(wrong.length === 0, wrong.join('; '));
  },

  /** `{"thread", "words", "outside"}`: a thread that is on the first page; `outside` as for `compose`, sent in it. */
  async keyboard({ page, wrong }, { thread, words = 'the', outside }) {
    await signIn(page, base, code);
    const press = (key) => page.keyboard.press(key);
    const at = (path, sentence) => eventually(() => new URL(page.url()).pathname === path, `${sentence}: ${page.url()}`);
    const link = page.getByRole('table', { name: 'Threads' }).getByRole('link');
    await link.first().waitFor();

    await press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await press('Escape');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor({ state: 'hidden' });
    for (const [at_, list] of ['', 'asks', 'reservations', 'commands', 'runs', 'held', 'log'].entries()) {
      await press(String(at_ + 1));
      await at(`/ui/${list}`, `${at_ + 1} did not lead to its list`);
    }
    await press('1');
    await link.first().waitFor();

    const path = threadPath(thread);
    for (let tries = 0; ; tries += 1) {
      ensure(tries < 310, 'j does not reach the thread');
      await press('j');
      if ((await focused(page)).href === path) break;
    }
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    ensure(outline !== 'none', 'focus cannot be seen');
    if (outside) {
      waiting();
      await page.getByText(outside).first().waitFor({ state: 'attached', timeout: 20000 });
      await page.waitForTimeout(1000);
      ensure((await focused(page)).href === path, 'focus was lost when the list changed');
    }
    await press('Enter');
    await at(path, 'Enter did not open the thread');
    await messagesOf(page).getByRole('listitem').first().waitFor();
    await press('g');
    const first = await focused(page);
    ensure(first.href?.includes('#message-'), `g does not choose the first message but ${JSON.stringify(first)}`);
    await press('G');
    const count = await messagesOf(page).getByRole('listitem').count();
    ensure(count < 2 || (await focused(page)).href !== first.href, 'G does not choose the last message');
    await page.getByRole('complementary').getByRole('heading', { name: 'Delivery' }).waitFor();
    await press('c');
    await page.keyboard.type('jk?1');
    ensure(await page.getByRole('textbox', { name: 'Message' }).inputValue() === 'jk?1', 'keys act while one types');
    await press('Escape');
    ensure(await page.getByRole('textbox', { name: 'Message' }).inputValue() === 'jk?1', 'Esc loses what was typed');
    await press('e');
    await page.getByRole('button', { name: 'HTML, to be read' }).waitFor();
    await press('Escape');
    await page.getByRole('button', { name: 'HTML, to be read' }).waitFor({ state: 'hidden' });
    await press('Escape');
    await at('/ui/', 'Esc did not lead back');
    await press('/');
    await page.keyboard.type(words);
    await press('Enter');
    await at('/ui/search', 'the search did not open');
    await page.getByRole('list', { name: 'Found messages' }).getByRole('link').first().waitFor();
    await press('Escape');
    await press('Escape');
    await at('/ui/', 'Esc did not lead back from the search');

    // Everything is reached by Tab, and the first stop leads past the rest.
    await page.reload();
    await live(page);
    await press('Tab');
    ensure((await focused(page)).text === 'To the content', 'the first stop is not the link to the content');
    const stops = new Set();
    for (let count_ = 0; count_ < 60; count_ += 1) {
      await press('Tab');
      const where = await focused(page);
      stops.add(where.tag === 'input' ? 'search' : where.text.split(/[\s(]/)[0]);
    }
    for (const stop of ['search', 'Menu', 'Threads', 'Lanes']) ensure(stops.has(stop), `Tab does not reach ${stop}`);
    ensure(wrong.length === 0, wrong.join('; '));
  },

  /** `FILE WIDTH SCHEME [PATH]` instead of JSON. */
  async screenshot({ page }, [file, width, scheme, path = '/ui/']) {
    await page.setViewportSize({ width: Number(width), height: Number(width) < 500 ? 760 : 800 });
    await page.emulateMedia({ colorScheme: scheme });
    await signIn(page, base, code, path);
    await page.waitForTimeout(700);
    await page.screenshot({ path: file });
  },
};

/** Runs in the page: what peer text has become that it must not. */
function harm() {
  const faults = [];
  if (window.harmed) faults.push('a script of a message ran');
  const known = new Set(('a article aside bdi body br button caption circle code datalist dd details dialog div dl dt footer form g h1 h2 h3 header input kbd label li line '
    + 'main nav noscript ol option p path rect section span strong summary svg table tbody td text textarea th thead time title tr ul').split(' '));
  for (const node of document.body.querySelectorAll('*')) {
    if (!known.has(node.localName)) faults.push(`there is an element ${node.localName}`);
    for (const { name } of node.attributes) if (name.startsWith('on')) faults.push(`${node.localName} has ${name}`);
    const href = node.getAttribute('href');
    if (href !== null && !/^(\/ui\/|#)/.test(href)) faults.push(`a link leads to ${href.slice(0, 60)}`);
  }
  for (const node of document.querySelectorAll('.peer')) if (node.children.length > 0) faults.push('text of an agent has elements');
  if (document.getElementById('made-of-text')) faults.push('an element was made of text');
  const odd = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.exec(document.body.textContent);
  if (odd) faults.push(`the character ${odd[0].codePointAt(0).toString(16)} is shown raw`);
  const over = document.documentElement.scrollWidth - innerWidth;
  if (over > 0) faults.push(`the page is ${over} px wider than the window`);
  return faults;
}

async function run() {
  const check = checks[name];
  if (!check || !base || !code) throw new Error(`usage: node checks.mjs NAME BASE_URL CODE [JSON]\nNAME is one of ${Object.keys(checks).join(', ')}`);
  const browser = await open();
  try {
    await check(browser, name === 'screenshot' ? rest : JSON.parse(rest[0] ?? '{}'));
    if (!['axe', 'hostile', 'keyboard'].includes(name)) ensure(browser.wrong.length === 0, browser.wrong.join('; '));
  } finally {
    await browser.close();
  }
}

run().then(() => process.exit(0), (error) => {
  console.error(`${name}: ${error.message}`);
  process.exit(1);
});
