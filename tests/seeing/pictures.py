#!/usr/bin/python3
"""pictures.py [FOLDER]: makes the pictures of pages in docs/seeing.md anew, in docs/pictures or FOLDER."""
import pathlib
import sys
import tempfile

import browser
import schedules

# Name -> schedule, options of `espalier draw`, keys to press, dark.
PAGES = {
    "page-mesh": (("mesh:4x4", "broadcast", "two-tree", "--links", "hop-by-hop"), ["--blocks", "6", "--step", "8"], "4", False),
    "page-tree": (("fattree:k=4,h=2,c=1", "allgather", "leaf"), ["--blocks", "2", "--step", "7"], "5", True),
    "page-trace": (("mesh:4x4", "broadcast", "two-tree", "--links", "hop-by-hop"), ["--blocks", "8", "--step", "9"], "36", False),
}


def make(folder, chrome):
    """Paths of what was made."""
    made = []
    with tempfile.TemporaryDirectory() as work:
        file, page, trace = (pathlib.Path(work) / name for name in ("schedule.esp", "page.html", "trace.json"))
        for name, (schedule, words, keys, dark) in PAGES.items():
            schedules.compile(file, *schedule)
            if name == "page-trace":
                schedules.espalier("run", file, "--bytes", "64KiB", "--provider", "mem", "--warmup", "1", "--trace", trace)
                words = [*words, "--trace", trace]
            schedules.espalier("draw", file, "-o", page, *words)
            chrome.open(page, dark)
            chrome.press(*keys)
            if "trace" in name:
                chrome.script("document.getElementById('lines-card').scrollIntoView()")
            made.append(folder / f"{name}.png")
            chrome.picture(made[-1])
    return made


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else schedules.ROOT / "docs/pictures"
    viewer = browser.Browser(1320, 1060)
    for path in make(target, viewer):
        print(f"{path}: {path.stat().st_size} bytes")
    viewer.close()
