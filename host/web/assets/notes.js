// Sentences about what came of something: seen for a while, and said by screen readers.

import { el, harmless, setText } from './dom.js';

const box = el('div', { class: 'notes', role: 'status', 'aria-live': 'polite' });
const mail = el('p', { class: 'spoken', 'aria-live': 'polite' });

/** Where they are shown. */
export const notes = [box, mail];

/** Shows a sentence. One that says that something failed stays until it is closed. */
export function note(sentence, isFailure = false) {
  const line = el('div', { class: isFailure ? 'note bad' : 'note' },
    el('span', { dir: 'auto' }, (isFailure ? '✗ ' : '✓ ') + harmless(sentence)),
    el('button', { type: 'button', class: 'quiet', 'aria-label': 'Close this note', onclick: () => line.remove() }, '×'));
  while (box.children.length > 2) box.firstChild.remove();
  box.append(line);
  if (!isFailure) setTimeout(() => line.remove(), 8000);
}

export const failed = (error) => {
  if (error.name !== 'AbortError' && error.status !== 401) note(error.message, true);
};

/** Says that mail has come, to those who do not see it. */
export function say(sentence) {
  setText(mail, harmless(sentence));
}
