// Where everything of the swim lanes is. Pure: the same messages give the same drawing.

export const MEASURES = {
  left: 76, lane: 108, row: 30, gap: 26, head: 34, about: 300, bend: 26, longGap: 60000,
};

/** In order of first appearance, senders before their recipients. */
export function lanesOf(messages) {
  const names = [];
  const add = (name) => { if (!names.includes(name)) names.push(name); };
  for (const message of messages) {
    add(message.from);
    for (const recipient of message.recipients) add(recipient.to);
  }
  return names;
}

/**
 * Lanes are columns with time downwards: a row for each message, not to scale. A gap of more than a minute has space
 * of its own. `{width, height, lanes: [{name, x}], rows: [{id, at, y, from, x, arrows}], gaps: [{y, length}]}`; an arrow is
 * `{key, to, x1, x2, y, isLoop, tone, glyph, word}`.
 */
export function layOut(messages, measures = MEASURES) {
  const ordered = [...messages].sort((one, other) => one.at - other.at || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));
  const lanes = lanesOf(ordered).map((name, at) => ({ name, x: measures.left + measures.lane * (at + 0.5) }));
  const xOf = new Map(lanes.map((lane) => [lane.name, lane.x]));
  const rows = [];
  const gaps = [];
  let y = measures.row / 2;
  ordered.forEach((message, at) => {
    if (at > 0) {
      y += measures.row;
      const length = message.at - ordered[at - 1].at;
      if (length > measures.longGap) {
        gaps.push({ y: y - measures.row / 2 + measures.gap / 2, length, key: message.id });
        y += measures.gap;
      }
    }
    const x = xOf.get(message.from);
    const arrows = message.recipients.map((recipient) => ({
      key: `${message.id} ${recipient.to}`, to: recipient.to, x1: x, x2: xOf.get(recipient.to), y,
      isLoop: recipient.to === message.from, tone: recipient.dot.tone, glyph: recipient.dot.glyph, word: recipient.dot.word,
    }));
    // The longest first, so that heads of shorter ones are drawn above its line.
    arrows.sort((one, other) => Math.abs(other.x2 - other.x1) - Math.abs(one.x2 - one.x1) || (one.to < other.to ? -1 : 1));
    rows.push({ id: message.id, at: message.at, thread: message.thread, subject: message.subject, from: message.from, x, y, arrows });
  });
  const width = measures.left + measures.lane * lanes.length + measures.about;
  return { width, height: ordered.length === 0 ? 0 : y + measures.row / 2, lanes, rows, gaps };
}

/** The path of an arrow: a line with a head, or a loop for mail to oneself. The sign of the status stands before the head. */
export function pathOf(arrow, measures = MEASURES) {
  const { x1, x2, y } = arrow;
  if (arrow.isLoop) return `M${x1} ${y - 5}h${measures.bend}v10h${-measures.bend + 19}m5 -4l-5 4l5 4`;
  const way = Math.sign(x2 - x1);
  return `M${x1} ${y}H${x2 - way * 10}m${-way * 6} -4l${way * 6} 4l${-way * 6} 4`;
}
