// Elements are made here and nowhere else. Text goes in as text: no string ever becomes HTML.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An element: `el('p', {class: 'faint'}, 'text', other)`. `onclick` and so on add listeners. */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Puts other children into an element. */
export function put(node, ...children) {
  node.replaceChildren();
  return fill(node, {}, children);
}

/** The same for a drawing. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Control characters, and characters that turn the order of text around or that nobody sees.
// The server escapes them too; the page does not rely on that.
const HARMFUL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Text of others with what is harmful in it spelt out. */
export function harmless(text) {
  return String(text ?? '').replace(HARMFUL, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}

/** Text of others, kept apart from the order of the text around it. */
export function peer(text, attributes = {}, tag = 'bdi') {
  return el(tag, { dir: 'auto', ...attributes, class: `peer ${attributes.class ?? ''}`.trim() }, harmless(text));
}

/** Words for those who cannot see the sign or colour beside them. */
export const spoken = (text) => el('span', { class: 'spoken' }, text);

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value === null || value === false || value === undefined) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Puts nodes in this order below a parent. The one that has focus is never moved, because moving takes focus away. */
function place(parent, nodes) {
  const focused = document.activeElement;
  const pivot = nodes.findIndex((node) => node.contains(focused));
  let next = pivot < 0 ? null : nodes[pivot];
  for (let at = pivot - 1; at >= 0; at -= 1) {
    if (next.previousSibling !== nodes[at]) parent.insertBefore(nodes[at], next);
    next = nodes[at];
  }
  let before = pivot < 0 ? null : nodes[pivot];
  for (let at = pivot + 1; at < nodes.length; at += 1) {
    const here = before ? before.nextSibling : parent.firstChild;
    if (here !== nodes[at]) parent.insertBefore(nodes[at], here);
    before = nodes[at];
  }
}

/**
 * A list whose rows are updated in place by their keys.
 * `make(item)` gives the node, `update(node, item)` is called if the item has changed, `gone(index)` if the row that
 * had focus went away. `sign(item)` is a text that changes with what `update` shows.
 */
export function keyed(parent, { key, make, update, gone, sign = JSON.stringify }) {
  const rows = new Map();
  const show = (items) => {
    const wanted = new Set(items.map(key));
    let lost = -1;
    for (const [name, row] of rows) {
      if (wanted.has(name)) continue;
      if (row.node.contains(document.activeElement)) lost = [...parent.children].indexOf(row.node);
      row.node.remove();
      rows.delete(name);
    }
    const nodes = [];
    const seen = new Set();
    for (const item of items) {
      const name = key(item);
      if (seen.has(name)) continue;
      seen.add(name);
      const text = sign(item);
      let row = rows.get(name);
      if (!row) {
        row = { node: make(item), text: null };
        rows.set(name, row);
      }
      if (row.text !== text) update?.(row.node, item);
      row.text = text;
      nodes.push(row.node);
    }
    place(parent, nodes);
    if (lost >= 0) gone?.(lost);
  };
  return { show, node: (name) => rows.get(name)?.node ?? null };
}

/** Draws something anew and gives focus back to the part of the same key. */
export function keepingFocus(parent, draw) {
  const key = parent.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  draw();
  if (key) [...parent.querySelectorAll('[data-key]')].find((node) => node.dataset.key === key)?.focus();
}

/** Whether a person types here. */
export const isTyping = (node) =>
  node instanceof HTMLElement && (node.matches('textarea, select, input') || node.isContentEditable);
