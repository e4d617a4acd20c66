// What a person types: messages and answers. What is typed outlives the view, so that nothing that comes in loses it.

import { act } from './api.js';
import { el, harmless, peer } from './dom.js';
import { failed, note } from './notes.js';
import { agents } from './state.js';
import { clock } from './time.js';

const drafts = new Map();
/** To whom the drafts of messages go. */
const addressed = new Map();

/** A text box whose text is still there when it is shown again. */
export function textBox(key, attributes) {
  const box = el('textarea', { dir: 'auto', rows: 2, ...attributes });
  box.value = drafts.get(key) ?? '';
  box.addEventListener('input', () => drafts.set(key, box.value));
  // Ctrl-Enter sends, as nearly everywhere.
  box.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      box.form?.requestSubmit();
    }
  });
  return box;
}

export function emptied(key, box, sent) {
  // What was typed on while the message was on its way stays.
  if (box.value !== sent) return;
  box.value = '';
  drafts.delete(key);
}

export const hasDraft = (key) => Boolean(drafts.get(key)?.trim());

let composers = 0;

/**
 * A form for a message to agents. `preset()` gives the recipients, as long as the person has neither changed them nor
 * typed anything; after that they stay, so that no text goes to somebody else than was on screen. `repliesTo()` gives the
 * message that is answered, which stays likewise.
 */
export function composer({ key, thread, preset, repliesTo = () => null }) {
  composers += 1;
  const id = `compose-${composers}`;
  let isEdited = hasDraft(`compose:${key}`);
  let { to = [], answered = null } = isEdited ? addressed.get(key) ?? {} : {};
  const text = textBox(`compose:${key}`, { id, placeholder: 'Write a message as yourself', rows: 2 });
  const chips = el('span', { class: 'chips' });
  const options = el('datalist', { id: `${id}-agents` });
  const add = el('input', {
    type: 'text', list: `${id}-agents`, 'aria-label': 'Add a recipient', placeholder: 'add …', size: 10,
    autocomplete: 'off', spellcheck: 'false', onchange: () => adding(), onkeydown: (event) => {
      if (event.key !== 'Enter') return;
      event.preventDefault();
      adding();
    },
  });
  const reply = el('span', { class: 'faint small', hidden: true });
  const send = el('button', { type: 'submit', class: 'main' }, 'Send');
  const form = el('form', { class: 'compose', 'aria-label': 'Write a message', onsubmit: sending },
    el('div', { class: 'to' }, el('span', { class: 'faint', id: `${id}-to` }, 'To'), chips, add, reply, options),
    el('label', { class: 'spoken', for: id }, 'Message'), text,
    el('div', { class: 'row end' }, el('span', { class: 'faint small' }, 'Ctrl-Enter sends'), send));

  function adding() {
    const name = add.value.trim();
    if (!name) return;
    if (!agents().some((agent) => agent.name === name)) {
      note(`no agent is called ${name}`, true);
      return;
    }
    add.value = '';
    isEdited = true;
    if (!to.includes(name)) to.push(name);
    draw();
  }

  function draw() {
    addressed.set(key, { to, answered });
    reply.hidden = !isReply();
    reply.textContent = isReply() ? `in reply to ${clock(answered.at)}` : '';
    chips.replaceChildren(...to.map((name) => el('span', { class: 'chip' }, peer(name),
      el('button', {
        type: 'button', class: 'quiet', 'aria-label': `Remove ${harmless(name)}`, onclick: () => {
          isEdited = true;
          to = to.filter((other) => other !== name);
          draw();
          add.focus();
        },
      }, '×'))));
    if (to.length === 0) chips.append(el('span', { class: 'faint' }, 'no recipient yet'));
  }

  /** Who does not get it is not answered by it. */
  const isReply = () => answered !== null && to.includes(answered.from);

  /** Who is here, and who is at hand, may have changed. */
  function update() {
    const names = agents().map((agent) => agent.name);
    const before = [...options.children].map((option) => option.value);
    if (names.join('\n') !== before.join('\n')) options.replaceChildren(...names.map((name) => el('option', { value: name })));
    if (isEdited || text.value.trim()) return;
    const wanted = preset();
    const reply = repliesTo();
    if (wanted.join('\n') === to.join('\n') && reply?.id === answered?.id) return;
    to = wanted;
    answered = reply && { id: reply.id, from: reply.from, at: reply.at };
    if (!chips.contains(document.activeElement)) draw();
  }

  async function sending(event) {
    event.preventDefault();
    const body = text.value;
    if (send.disabled) return;
    if (!body.trim()) return note('the message has no text', true);
    if (to.length === 0) return note('the message has no recipient', true);
    send.disabled = true;
    try {
      note(await act({ send: { to, body, thread, reply_to: isReply() ? answered.id : null } }));
      emptied(`compose:${key}`, text, body);
      isEdited = false;
      update();
    } catch (error) {
      note(`not sent: ${error.message}. What you typed is still here`, true);
    } finally {
      send.disabled = false;
    }
  }

  draw();
  update();
  return { node: form, update, focus: () => text.focus(), address(names) { to = [...names]; answered = null; isEdited = true; draw(); } };
}

/** A button that does one thing as the person and says what came of it. */
export function doing(label, action, attributes = {}) {
  const button = el('button', {
    type: 'button', ...attributes, onclick: async () => {
      if (button.getAttribute('aria-disabled') === 'true') return;
      // It is not `disabled`, because that would take its focus away.
      button.setAttribute('aria-disabled', 'true');
      try {
        note(await act(action()));
      } catch (error) {
        failed(error);
      } finally {
        button.removeAttribute('aria-disabled');
      }
    },
  }, label);
  return button;
}
