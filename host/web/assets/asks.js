// Questions to the person, each whole, with what can be answered.

import { act } from './api.js';
import { el, keyed, peer } from './dom.js';
import { emptied, hasDraft, textBox } from './forms.js';
import { failed, note } from './notes.js';
import { address, known } from './state.js';
import { timeOf } from './time.js';

const hint = (key) => el('kbd', { 'aria-hidden': 'true' }, key);
const draftOf = (ask) => `answer:${ask.id}`;

/** The answers that are buttons: what is said, what it answers, and its key. */
function buttons(ask) {
  const words = ask.answers.filter((answer) => answer !== 'TEXT');
  for (const extra of [ask.yes, ask.no]) if (extra && !words.includes(extra)) words.push(extra);
  for (const choice of ask.choices) if (!words.includes(choice.id)) words.unshift(choice.id);
  return words.map((word) => {
    const label = ask.choices.find((choice) => choice.id === word)?.label ?? word[0].toUpperCase() + word.slice(1);
    return { word, label, key: word === ask.yes ? 'y' : word === ask.no ? 'n' : null };
  });
}

function card(ask) {
  const title = `ask-${ask.id}`;
  const answer = async (words, after) => {
    if (node.hasAttribute('aria-busy')) return;
    node.setAttribute('aria-busy', 'true');
    try {
      note(await act({ answer: { ask: ask.id, words } }));
      after?.();
      // It may be gone already, and have stayed because of the text that has just been sent.
      node.dispatchEvent(new CustomEvent('put-away'));
    } catch (error) {
      failed(error);
    } finally {
      node.removeAttribute('aria-busy');
    }
  };
  const row = el('div', { class: 'row wrap' }, buttons(ask).map(({ word, label, key }) =>
    el('button', {
      type: 'button', class: key === 'y' ? 'main' : '', 'data-word': word, 'aria-keyshortcuts': key,
      onclick: () => answer(word),
    }, peer(label), key && hint(key))));
  let typing = null;
  if (ask.answers.includes('TEXT')) {
    const box = textBox(draftOf(ask), { 'aria-label': 'Answer in words', rows: 1, placeholder: 'Answer in words' });
    typing = el('form', {
      class: 'row grow', 'aria-label': 'Answer', onsubmit: (event) => {
        event.preventDefault();
        const words = box.value;
        if (!words.trim()) return note('the answer has no words', true);
        answer(words.trim(), () => emptied(draftOf(ask), box, words));
      },
    }, box, el('button', { type: 'submit', class: 'main' }, 'Answer', hint('a')));
  }
  const who = ask.agent === null ? 'a script' : el('a', { href: address.agent(ask.agent) }, peer(ask.agent));
  const node = el('article', { class: 'ask', tabindex: -1, 'data-ask': ask.id, 'aria-labelledby': title },
    el('header', { class: 'row wrap' }, el('h2', { id: title, class: 'small' }, who, ' asks'),
      el('span', { class: 'faint' }, ask.kind, ' · ', timeOf('until', ask.until))),
    peer(ask.what, { class: 'text' }, 'div'),
    ask.reason && el('p', { class: 'faint' }, 'because ', peer(ask.reason)),
    el('p', { class: 'over warn', hidden: true },
      '! This question is over: it was answered elsewhere, or its time ran out. What you typed is still here. ',
      el('button', { type: 'button', onclick: () => node.dispatchEvent(new CustomEvent('put-away')) }, 'Put it away')),
    typing, row);
  return node;
}

/** A list of questions. `wanted()` gives those that are shown. */
export function askList({ wanted, empty = 'no question waits for you', heading = null }) {
  const box = el('div', { class: 'asks' });
  const nothing = el('p', { class: 'faint empty' }, empty);
  let kept = new Map();
  const dropped = new Set();
  let hasSlipped = false;
  const rows = keyed(box, {
    key: (ask) => ask.id,
    make: (ask) => {
      const node = card(ask);
      node.addEventListener('put-away', () => {
        dropped.add(ask.id);
        update();
      });
      return node;
    },
    // The next question must not get an answer that was meant for this one.
    gone: () => {
      hasSlipped = true;
      heading?.focus();
    },
  });

  function update() {
    const current = wanted();
    const ids = new Set(current.map((ask) => ask.id));
    const over = [...kept.values()].filter((ask) => !ids.has(ask.id) && !dropped.has(ask.id) && hasDraft(draftOf(ask)));
    rows.show([...current, ...over]);
    for (const ask of [...current, ...over]) {
      const node = rows.node(ask.id);
      const isOver = !ids.has(ask.id);
      node.querySelector('.over').hidden = !isOver;
      for (const button of node.querySelectorAll('[data-word], [type=submit]')) button.disabled = isOver;
    }
    kept = new Map([...current, ...over].map((ask) => [ask.id, ask]));
    nothing.hidden = current.length + over.length > 0 || known.lists.asks === undefined;
  }

  const focused = () => document.activeElement?.closest?.('.ask');
  /** The question that has focus; if none has, the first one gets it, and the key has to be pressed again. */
  function chosen() {
    const node = focused();
    if (node && box.contains(node)) return node;
    const first = box.querySelector('.ask');
    if (!first) note(empty, true);
    else {
      first.focus();
      first.scrollIntoView({ block: 'nearest' });
      if (hasSlipped) note('the question that you had chosen is gone; another one is chosen now', true);
      hasSlipped = false;
    }
    return null;
  }
  function press(key) {
    const node = chosen();
    if (!node) return;
    const ask = kept.get(node.dataset.ask);
    const word = key === 'y' ? ask?.yes : ask?.no;
    const button = [...node.querySelectorAll('[data-word]')].find((one) => one.dataset.word === word);
    if (button) button.click();
    else note('that question wants words or a choice: press a', true);
  }
  update();
  return {
    node: el('div', {}, box, nothing), update,
    items: () => [...box.children],
    keys: {
      y: () => press('y'),
      n: () => press('n'),
      a: () => (focused() ?? box.querySelector('.ask'))?.querySelector('textarea, button[data-word]')?.focus()
        ?? (box.children.length || note(empty, true)),
    },
    focus: (id) => rows.node(id)?.focus(),
  };
}
