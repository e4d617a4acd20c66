// The drawing of the swim lanes, of a conversation or of the whole mesh.

import { json } from './api.js';
import { el, harmless, keepingFocus, setText, svg } from './dom.js';
import { layOut, MEASURES, pathOf } from './lanes.js';
import { failed } from './notes.js';
import { address } from './state.js';
import { clock, span } from './time.js';

const cut = (text, most) => {
  const letters = [...harmless(text).slice(0, most * 4)];
  return letters.length > most ? `${letters.slice(0, most - 1).join('')}…` : letters.join('');
};

function arrowNode(row, arrow) {
  const name = `${harmless(row.from)} to ${harmless(arrow.to)}: ${cut(row.subject || 'no subject', 80)}, ${arrow.word}, ${clock(row.at)}`;
  const headX = arrow.isLoop ? arrow.x1 + 10 : arrow.x2;
  const headY = arrow.isLoop ? arrow.y + 5 : arrow.y;
  const left = Math.min(arrow.x1, headX) - 8;
  return svg('a', {
    href: address.thread(row.thread, row.id), class: 'arrow', 'aria-label': name, 'data-tone': arrow.tone, 'data-key': arrow.key,
  },
  svg('title', {}, name),
  svg('rect', { x: left, y: arrow.y - 11, width: Math.abs(headX - arrow.x1) + 16 + (arrow.isLoop ? MEASURES.bend : 0), height: 22, rx: 4, class: 'hit' }),
  svg('path', { d: pathOf(arrow), class: 'line' }),
  svg('circle', { cx: headX, cy: headY, r: 8, class: 'behind' }),
  svg('text', { x: headX, y: headY + 4.5, class: 'glyph' }, arrow.glyph));
}

/** A drawing that is kept up to date by `show(messages)`. */
export function lanesDrawing(label) {
  const head = svg('svg', { class: 'lanes-head', preserveAspectRatio: 'xMinYMin meet', 'aria-hidden': 'true' });
  const body = svg('svg', { class: 'lanes', role: 'group', 'aria-label': `${label}: each arrow is a message, time goes down` });
  const box = el('div', { class: 'lanes-box', role: 'region', 'aria-label': label, tabindex: 0, hidden: true }, head, body);
  const nothing = el('p', { class: 'faint empty', hidden: true }, 'no message is kept');
  let before = null;

  function draw(drawn) {
    const { width, height, lanes, rows, gaps } = drawn;
    for (const [node, tall] of [[head, MEASURES.head], [body, height]]) {
      node.setAttribute('width', width);
      node.setAttribute('height', tall);
      node.setAttribute('viewBox', `0 0 ${width} ${tall}`);
    }
    const about = MEASURES.left + MEASURES.lane * lanes.length + 16;
    head.replaceChildren(...lanes.map((lane) => svg('text', { x: lane.x, y: 21, class: 'lane' }, svg('title', {}, harmless(lane.name)), cut(lane.name, 14))));
    keepingFocus(body, () => body.replaceChildren(
      ...lanes.map((lane) => svg('line', { x1: lane.x, x2: lane.x, y1: 0, y2: height, class: 'lane' })),
      ...gaps.map((gap) => svg('g', { class: 'gap' },
        svg('line', { x1: MEASURES.left, x2: about, y1: gap.y, y2: gap.y }),
        svg('text', { x: 8, y: gap.y + 4 }, `${span(gap.length)} later`))),
      ...rows.map((row) => svg('g', { class: 'row' },
        svg('text', { x: 8, y: row.y + 4, class: 'time' }, clock(row.at)),
        ...row.arrows.map((arrow) => arrowNode(row, arrow)),
        svg('circle', { cx: row.x, cy: row.y, r: 3.5, class: 'start' }),
        svg('text', { x: about, y: row.y + 4, class: 'about' }, cut(row.subject, 42))))));
  }

  return {
    node: el('div', {}, box, nothing),
    show(messages) {
      const drawn = layOut(messages);
      const text = JSON.stringify(drawn);
      if (text === before) return;
      before = text;
      const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
      draw(drawn);
      box.hidden = drawn.rows.length === 0;
      nothing.hidden = drawn.rows.length > 0;
      if (isAtEnd) box.scrollTop = box.scrollHeight;
    },
    end: () => { box.scrollTop = box.scrollHeight; },
    items: () => [...body.querySelectorAll('a')],
  };
}

const EVERY = 2000;

/** The page with the lanes of the whole mesh. */
export function meshLanesView() {
  const heading = el('h1', { tabindex: -1 }, 'Lanes');
  const more = el('span', { class: 'faint' }, 'the newest 100 messages of the mesh, newest at the bottom');
  const drawing = lanesDrawing('Lanes of the mesh');
  let timer = null;
  let last = 0;
  let isClosed = false;

  async function load() {
    timer = null;
    last = Date.now();
    try {
      const { messages } = await json('/ui/data/lanes');
      if (isClosed) return;
      drawing.show(messages);
    } catch (error) {
      failed(error);
    }
  }
  const soon = () => { timer ??= setTimeout(load, Math.max(0, last + EVERY - Date.now())); };
  load().then(drawing.end);
  setText(heading, 'Lanes');
  return {
    name: 'lanes', main: el('div', {}, el('header', { class: 'row top wrap' }, heading, more), drawing.node), aside: null, heading,
    title: () => 'Lanes', items: drawing.items, keys: {},
    update(kind) { if (kind === 'message' || kind === 'connected') soon(); },
    close() { isClosed = true; clearTimeout(timer); },
  };
}
