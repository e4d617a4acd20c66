"""What was on terminals, as a picture: one that stands still, or one that moves.

Reads from standard input: {"title", "panes": [{"title", "left", "top", "columns", "lines", "frames": [[SECONDS, SCREEN], …]}],
"seconds"}, where SCREEN has the escape sequences of `tmux capture-pane -e`. Each pane begins at a column and a line of the
whole. Writes SVG to standard output; it needs no font of its own and no script, and moves by SMIL.
"""

import json
import re
import sys
from xml.sax.saxutils import escape, quoteattr

from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.console import Console
from rich.terminal_theme import TerminalTheme

WIDTH, HEIGHT, MARGIN = 7.8, 17.0, 12.0
INK, PAPER, FRAME = "#d7dae0", "#16181d", "#3a3f4b"
THEME = TerminalTheme(
    (22, 24, 29),
    (215, 218, 224),
    [(40, 44, 52), (224, 108, 117), (152, 195, 121), (229, 192, 123), (97, 175, 239), (198, 120, 221), (86, 182, 194), (171, 178, 191)],
    [(92, 99, 112), (240, 130, 140), (170, 214, 140), (240, 210, 150), (130, 195, 250), (215, 145, 235), (110, 205, 215), (230, 233, 238)],
)
CONSOLE = Console(file=sys.stderr, force_terminal=True, color_system="truecolor", width=1_000)


def colour(of, is_ink):
    return of.get_truecolor(THEME, foreground=is_ink).hex if of else (INK if is_ink else None)


def runs(line):
    """The parts of a line that look alike: column, width, text, style."""
    column = 0
    for segment in line.render(CONSOLE):
        text = segment.text.rstrip("\n")
        width = cell_len(text)
        if width:
            yield column, width, text, segment.style
        column += width


def drawn(screen, left, top, lines):
    parts = []
    for number, line in enumerate(AnsiDecoder().decode(screen)):
        if number >= lines:
            break
        y = top + (number + 0.75) * HEIGHT
        for column, width, text, style in runs(line):
            x = left + column * WIDTH
            ink, paper = colour(style and style.color, True), colour(style and style.bgcolor, False)
            if style and style.reverse:
                ink, paper = paper or PAPER, ink
            if paper:
                parts.append(f'<rect x="{x:.1f}" y="{top + number * HEIGHT:.1f}" width="{width * WIDTH:.1f}" height="{HEIGHT}" fill="{paper}"/>')
            looks = (' font-weight="700"' if style and style.bold else "") + (' opacity=".65"' if style and style.dim else "")
            # Spaces at an end and several in a row are dropped by those who show it, so what is between them has its own place.
            for words in re.finditer(r"\S+(?: \S+)*", text):
                x = left + (column + cell_len(text[: words.start()])) * WIDTH
                wide = cell_len(words.group()) * WIDTH
                parts.append(
                    f'<text x="{x:.1f}" y="{y:.1f}" textLength="{wide:.1f}" lengthAdjust="spacingAndGlyphs" '
                    f'fill="{ink}"{looks}>{escape(words.group())}</text>'
                )
    return "".join(parts)


def pane(one, seconds):
    left, top = MARGIN + one["left"] * WIDTH, MARGIN + one["top"] * HEIGHT
    width, height = one["columns"] * WIDTH, one["lines"] * HEIGHT
    parts = [
        f'<rect x="{left - 5:.1f}" y="{top - 3:.1f}" width="{width + 10:.1f}" height="{height + HEIGHT + 8:.1f}" rx="5" fill="{PAPER}" stroke="{FRAME}"/>',
        f'<text x="{left:.1f}" y="{top + 0.75 * HEIGHT:.1f}" fill="#8b93a3">{escape(one["title"])}</text>',
    ]
    frames = one["frames"]
    for number, (at, screen) in enumerate(frames):
        shown = drawn(screen, left, top + HEIGHT, one["lines"])
        if len(frames) == 1:
            parts.append(shown)
            continue
        until = frames[number + 1][0] if number + 1 < len(frames) else seconds
        moves = f'<set attributeName="visibility" to="visible" begin="all.begin+{at:.1f}s" dur="{max(until - at, 0.1):.1f}s"/>'
        parts.append(f'<g visibility="hidden">{moves}{shown}</g>')
    return "".join(parts)


def main():
    asked = json.load(sys.stdin)
    panes = asked["panes"]
    width = max(one["left"] + one["columns"] for one in panes) * WIDTH + 2 * MARGIN
    height = max(one["top"] + one["lines"] + 1 for one in panes) * HEIGHT + 2 * MARGIN
    seconds = asked.get("seconds", 0)
    begins = f'<rect width="1" height="1" opacity="0"><animate id="all" attributeName="opacity" from="0" to="0" begin="0s;all.end" dur="{seconds}s"/></rect>'
    sys.stdout.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label={quoteattr(asked["title"])} '
        f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="13">'
        f'<rect width="100%" height="100%" rx="8" fill="#0f1115"/>{begins if seconds else ""}{"".join(pane(one, seconds) for one in panes)}</svg>\n'
    )


main()
