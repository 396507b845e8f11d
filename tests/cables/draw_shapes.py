#!/usr/bin/python3
"""Draws shapes of lab.py side by side.

draw_shapes.py FILE.svg
"""
import math
import pathlib
import sys

import lab

ROOM, RADIUS = 150, 45  # pixels of a shape, and of the circle on which its hosts are
SHAPES = ("triangle", "ring4", "line4", "star5", "four-less-one", "mesh3x3")


def circle(hosts, turn):
    return [(RADIUS * math.cos(2 * math.pi * k / hosts + turn), RADIUS * math.sin(2 * math.pi * k / hosts + turn)) for k in range(hosts)]


def places(shape):
    """Where each host is, from the middle of the shape."""
    hosts = lab.size_of(shape)
    if shape == "line4":
        return [((k - 1.5) * 32, 0) for k in range(hosts)]
    if shape == "mesh3x3":
        return [((k % 3 - 1) * 42, (k // 3 - 1) * 42) for k in range(hosts)]
    if shape == "star5":
        return [(0, 0), *circle(hosts - 1, math.pi / 4)]
    return circle(hosts, -math.pi / 2 if hosts == 3 else -3 * math.pi / 4)


def drawn(shape, left, top):
    at = [(left + ROOM / 2 + x, top + ROOM / 2 + y) for x, y in places(shape)]
    yield f'<text x="{left + ROOM / 2:g}" y="{top + ROOM - 4}">{shape}</text>'
    for a, b in lab.SHAPES[shape]:
        yield '<line x1="{:.0f}" y1="{:.0f}" x2="{:.0f}" y2="{:.0f}"/>'.format(*at[a], *at[b])
    for host, (x, y) in enumerate(at):
        yield f'<circle cx="{x:.0f}" cy="{y:.0f}" r="11"/><text x="{x:.0f}" y="{y + 4:.0f}">{host}</text>'


def main(path):
    lines = [line for k, shape in enumerate(SHAPES) for line in drawn(shape, k % 3 * ROOM, k // 3 * ROOM)]
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {3 * ROOM} {2 * ROOM}" width="{3 * ROOM}" font-family="sans-serif" font-size="11" '
            'text-anchor="middle">')
    style = "<style>line{stroke:#557;stroke-width:2}circle{fill:#fff;stroke:#225;stroke-width:1.5}</style>"
    pathlib.Path(path).write_text("\n".join([head, style, f'<rect width="{3 * ROOM}" height="{2 * ROOM}" fill="#fff"/>', *lines, "</svg>"]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
