// How far a message got with each recipient: a bar of its statuses over time, and the same as a table.

import { el, harmless, keyed, peer, put, setText, svg } from './dom.js';
import { address } from './state.js';
import { clock, gap, now, timeOf } from './time.js';

export const STATUSES = {
  queued: { glyph: '◌', tone: 'faint' },
  stored: { glyph: '○', tone: 'calm' },
  notified: { glyph: '◔', tone: 'calm' },
  accepted: { glyph: '◑', tone: 'calm' },
  shown: { glyph: '◕', tone: 'good' },
  read: { glyph: '●', tone: 'good' },
  acknowledged: { glyph: '✓', tone: 'good' },
  refused: { glyph: '⊘', tone: 'warn' },
};

// In hundredths of the width. What is shorter than the least is drawn so wide all the same, or nobody could see it.
const LEAST = 13;
const LEAST_OF_SMALL = 6;
const WIDE = 95;

/**
 * Where everything of a bar is. Pure: the same recipient at the same time gives the same bar.
 * Segments go from one status to the next; a refusal is a mark on the segment in which it happened.
 */
export function layOutBar(recipient, at, atLeast = LEAST) {
  const steps = recipient.steps;
  if (steps.length === 0) return { segments: [], marks: [], gaps: [], isOpen: !recipient.over, total: 0 };
  const last = steps[steps.length - 1].at;
  const ends = steps.slice(1).map((step) => step.at);
  const isOpen = !recipient.over;
  if (isOpen) ends.push(Math.max(at, last));
  const lengths = ends.map((end, index) => Math.max(0, end - steps[index].at));
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const least = Math.min(atLeast, WIDE / Math.max(1, lengths.length));
  const rest = WIDE - least * lengths.length;
  const xs = [0];
  for (const length of lengths) xs.push(xs[xs.length - 1] + least + (total > 0 ? (rest * length) / total : rest / lengths.length));
  const end = xs[xs.length - 1];
  const segments = [];
  const marks = [];
  steps.forEach((step, index) => {
    if (step.what === 'refused') {
      marks.push({ x: xs[index], what: step.what, route: step.route });
      return;
    }
    const next = steps.findIndex((other, place) => place > index && other.what !== 'refused');
    const isLast = next < 0;
    segments.push({ x: xs[index], end: isLast ? end : xs[next], what: step.what, isOpen: isLast && isOpen });
  });
  const gaps = lengths.map((length, index) => ({
    x: xs[index], end: xs[index + 1],
    length: index + 1 < steps.length ? steps[index + 1].gap : length,
  })).filter((one) => one.length !== null && one.length !== undefined);
  return { segments, marks, gaps, isOpen, total };
}

const percent = (number) => `${Math.round(number * 100) / 100}%`;

function sentence(recipient) {
  const steps = recipient.steps.map((step) => {
    const after = step.gap === null || step.gap === undefined ? '' : ` after ${gap(step.gap)}`;
    return `${step.what}${after}${step.route ? ` by ${harmless(step.route)}` : ''}`;
  });
  return `${harmless(recipient.to)}: ${steps.join(', ')}${recipient.over ? '' : ', still open'}`;
}

/** The bar of a recipient. Its text does not grow with its width, so x and width are in hundredths of it. */
export function bar(recipient, isSmall = false) {
  const drawn = layOutBar(recipient, now(), isSmall ? LEAST_OF_SMALL : LEAST);
  const top = 16;
  const parts = [];
  for (const one of drawn.segments) {
    const { glyph, tone } = STATUSES[one.what] ?? { glyph: '?', tone: 'plain' };
    const width = Math.max(0.4, one.end - one.x);
    parts.push(svg('rect', {
      x: percent(one.x), y: top, width: percent(width), height: 10, class: `segment${one.isOpen ? ' open' : ''}`, 'data-tone': tone,
    }));
    parts.push(svg('line', { x1: percent(one.x), x2: percent(one.x), y1: top - 2, y2: top + 10, class: 'tick', 'data-tone': tone }));
    parts.push(svg('text', { x: percent(one.x), y: 11, class: 'glyph', 'data-tone': tone }, glyph));
  }
  for (const one of drawn.marks) {
    parts.push(svg('line', { x1: percent(one.x), x2: percent(one.x), y1: top - 3, y2: top + 13, class: 'mark', 'data-tone': 'warn' }));
    parts.push(svg('text', { x: percent(one.x), y: 11, class: 'glyph', 'data-tone': 'warn' }, STATUSES.refused.glyph));
  }
  if (drawn.isOpen) parts.push(svg('text', { x: percent(WIDE + 1), y: top + 9, class: 'glyph', 'data-tone': 'faint' }, '…'));
  if (!isSmall) {
    for (const one of drawn.gaps) {
      if (one.end - one.x < 12) continue;
      parts.push(svg('text', { x: percent((one.x + one.end) / 2), y: top + 23, class: 'gap' }, gap(one.length)));
    }
  }
  return svg('svg', { class: 'bar', role: 'img', 'aria-label': sentence(recipient), width: '100%', height: isSmall ? 28 : 44 }, parts);
}

/** The sign, and the word, of how far a message got with somebody. */
export function dot(recipient, withName = true) {
  return el('span', { class: 'dot' },
    el('span', { class: 'glyph', 'data-tone': recipient.dot.tone, 'aria-hidden': 'true' }, recipient.dot.glyph),
    ' ', withName && [peer(recipient.to), ' '], el('span', { 'data-tone': recipient.dot.tone }, recipient.dot.word));
}

function steps(recipient) {
  const cell = (text, attributes) => el('td', attributes, text);
  return el('table', { class: 'steps' },
    el('caption', { class: 'spoken' }, `What happened on the way to ${harmless(recipient.to)}`),
    el('thead', {}, el('tr', {}, ['Time', 'Status', 'Route', 'Gap'].map((name) => el('th', { scope: 'col' }, name)))),
    recipient.steps.map((step) => {
      const { glyph, tone } = STATUSES[step.what] ?? { glyph: '?', tone: 'plain' };
      const told = step.gap === null || step.gap === undefined ? '' : `+${gap(step.gap)}`;
      return el('tbody', {},
        el('tr', {}, cell(clock(step.at), { class: 'number' }),
          cell([el('span', { 'aria-hidden': 'true' }, glyph), ' ', step.what], { 'data-tone': tone }),
          cell(peer(step.route)), cell(told, { class: 'number' })),
        step.evidence && el('tr', {}, el('td'), el('td', { colspan: 3, class: 'evidence' },
          el('span', { class: 'spoken' }, 'Evidence: '), peer(step.evidence))));
    }));
}

/** The delivery of the chosen message. */
export function deliveryPane() {
  const heading = el('h2', { tabindex: -1 }, 'Delivery');
  const about = el('p', { class: 'faint' });
  const box = el('div', {});
  const rows = keyed(box, {
    key: (recipient) => recipient.to,
    make: () => el('section', { class: 'recipient' }),
    update: (node, recipient) => {
      const first = recipient.steps[0]?.at;
      const last = recipient.steps[recipient.steps.length - 1]?.at;
      const took = recipient.over ? last > first && `in ${gap(last - first)}` : last && ['nothing new since ', timeOf('ago', last)];
      put(node, el('h3', { class: 'row wrap' }, dot(recipient), el('span', { class: 'faint small' }, took || '')),
        bar(recipient), ...recipient.waits.map((wait) => el('p', { class: 'waits' }, peer(wait))), steps(recipient));
    },
  });
  const nobody = el('p', { class: 'faint' }, 'It has no recipient.');
  const node = el('div', { class: 'delivery' }, heading, about, box, nobody);
  let shownId = null;
  return {
    node, heading,
    show(message) {
      if (message.id !== shownId) about.replaceChildren(peer(message.from), ` at ${clock(message.at)}`, el('br'),
        el('a', { href: address.message(message.id), class: 'mono small' }, message.id));
      shownId = message.id;
      setText(heading, 'Delivery');
      rows.show(message.recipients);
      nobody.hidden = message.recipients.length > 0;
    },
  };
}
