// Run by plain node: `node --test tests/page/`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { layOutBar } from '../../host/web/assets/delivery.js';
import { layOut, lanesOf, MEASURES, pathOf } from '../../host/web/assets/lanes.js';
import { parser } from '../../host/web/assets/stream.js';
import { ago, gap, span } from '../../host/web/assets/time.js';

const dot = { glyph: '○', word: 'stored', tone: 'calm' };
const message = (id, at, from, ...to) => ({ id, at, from, thread: 't', subject: id, recipients: to.map((name) => ({ to: name, dot })) });

test('lanes stand in the order of first appearance, a sender before its recipients', () => {
  assert.deepEqual(lanesOf([message('1', 1, 'bob', 'dave', 'alice'), message('2', 2, 'carol', 'bob')]), ['bob', 'dave', 'alice', 'carol']);
});

test('the same messages give the same drawing, in whatever order they come', () => {
  const all = [message('1', 10, 'a', 'b', 'c'), message('2', 10, 'b', 'a'), message('3', 20, 'c', 'c')];
  assert.equal(JSON.stringify(layOut(all)), JSON.stringify(layOut([...all].reverse())));
});

test('each message is a row, each recipient an arrow from lane to lane', () => {
  const { rows, lanes, width, height } = layOut([message('1', 0, 'a', 'b', 'c'), message('2', 1, 'c', 'a')]);
  const [a, b, c] = lanes.map((lane) => lane.x);
  assert.deepEqual([b - a, c - b], [MEASURES.lane, MEASURES.lane]);
  assert.deepEqual(rows.map((row) => row.arrows.map((arrow) => [arrow.x1, arrow.x2])), [[[a, c], [a, b]], [[c, a]]]);
  assert.equal(rows[1].y - rows[0].y, MEASURES.row);
  assert.ok(c < width && rows[1].y < height);
});

test('a gap of more than a minute has space and its length', () => {
  const { rows, gaps } = layOut([message('1', 0, 'a', 'b'), message('2', 60000, 'a', 'b'), message('3', 120001, 'a', 'b')]);
  assert.deepEqual(gaps.map((one) => [one.key, one.length]), [['3', 60001]]);
  assert.equal(rows[2].y - rows[1].y, MEASURES.row + MEASURES.gap);
  assert.ok(gaps[0].y > rows[1].y && gaps[0].y < rows[2].y);
});

test('mail to oneself is a loop, and nothing is drawn of no messages', () => {
  const { rows } = layOut([message('1', 0, 'a', 'a')]);
  assert.ok(rows[0].arrows[0].isLoop);
  assert.match(pathOf(rows[0].arrows[0]), /^M\d+ \d+h/);
  assert.deepEqual(layOut([]), { width: MEASURES.left + MEASURES.about, height: 0, lanes: [], rows: [], gaps: [] });
});

const recipient = (over, ...steps) => ({
  to: 'bob', dot, over, waits: [],
  steps: steps.map(([what, at], index) => ({ what, at, route: '', evidence: '', gap: index === 0 ? null : at - steps[index - 1][1] })),
});

test('a bar has a segment for each status, at least so wide that it is seen, and is open while something may come', () => {
  const open = layOutBar(recipient(false, ['stored', 0], ['notified', 10], ['shown', 10000]), 20000);
  assert.deepEqual(open.segments.map((one) => one.what), ['stored', 'notified', 'shown']);
  assert.deepEqual(open.segments.map((one) => one.isOpen), [false, false, true]);
  for (const one of open.segments) assert.ok(one.end - one.x >= 13 - 1e-9, one.what);
  assert.ok(Math.abs(open.segments.at(-1).end - 95) < 1e-9);
  const over = layOutBar(recipient(true, ['stored', 0], ['read', 10]), 20000);
  assert.equal(over.isOpen, false);
  assert.equal(over.segments.at(-1).x, over.segments.at(-1).end);
  assert.deepEqual(over.gaps.map((one) => one.length), [10]);
});

test('a refusal is a mark on the status in which it happened', () => {
  const drawn = layOutBar(recipient(true, ['stored', 0], ['refused', 5], ['read', 10]), 10);
  assert.deepEqual(drawn.segments.map((one) => one.what), ['stored', 'read']);
  assert.equal(drawn.marks.length, 1);
  assert.ok(drawn.marks[0].x > drawn.segments[0].x && drawn.marks[0].x < drawn.segments[0].end);
});

test('clocks that differ, and no steps at all, are drawn too', () => {
  const drawn = layOutBar(recipient(false, ['stored', 5000], ['read', 4000]), 3000);
  assert.ok(drawn.segments.every((one) => one.end >= one.x));
  assert.equal(layOutBar(recipient(false), 0).segments.length, 0);
});

test('events come whole, however the stream is cut', () => {
  const text = ': hello\n\nid: 7\nevent: state\ndata: {"a":"\u2028:"}\n\nevent: log\r\ndata: [1,\r\ndata: 2]\r\n\r\n';
  for (let size = 1; size < text.length; size += 1) {
    const parse = parser();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...parse(text.slice(at, at + size)));
    assert.deepEqual(events, [{ event: 'state', data: '{"a":"\u2028:"}', id: '7' }, { event: 'log', data: '[1,\n2]', id: null }]);
  }
});

test('times are said as the terminal says them', () => {
  assert.deepEqual([4999, 5000, 60000, 3600000, 86400000].map((time) => ago(0, time)), ['just now', '5 s ago', '1 min ago', '1 h ago', '1 d ago']);
  assert.deepEqual([0, 119000, 120000, 7200000, 172800000].map(span), ['0 s', '119 s', '2 min', '2 h', '2 days']);
  assert.deepEqual([20, 1500, 60000].map(gap), ['20 ms', '1.5 s', '60 s']);
});
