#!/usr/bin/python3
"""links_test.py ROOT: each relative link and picture of every page leads to a file that exists, and its #anchor to a heading of it; each
page of docs/ is linked from docs/README.md or from the index of its folder; the table of folders in CONTRIBUTING.md has each folder with
sources; SVGs are in docs/pictures only, and a page shows each."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gates"))
import tree

root = pathlib.Path(sys.argv[1]).resolve()


def without_code(text):
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page):
    """The anchors of its headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ +(.*?)\s*$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


def links(page):
    return re.findall(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)", without_code(page.read_text()))


def folders():
    """Top folders with a meson.build; of those whose sources are one level down, the folders there."""
    for path in sorted(root.glob("*/meson.build")):
        name = path.parent.name
        if not name.startswith("build") and name != "subprojects":
            below = sorted(path.parent.glob("*/meson.build")) if name in ("collectives", "hal", "firmware") else []
            yield from [f"{name}/{file.parent.name}/" for file in below] or [f"{name}/"]


bad, count, linked = [], 0, {}
pages = [root / name for name in tree.files(root, ".md") if not name.startswith("subprojects/")]
for page in pages:
    name = page.relative_to(root)
    linked[name] = set()
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        count += 1
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists():
            bad.append(f"{name}: no such file: {link}")
            continue
        linked[name].add(target)
        if anchor and target.suffix == ".md" and anchor not in anchors(target):
            bad.append(f"{name}: no such heading: {link}")
for page in pages:
    name = page.relative_to(root)
    if name.parts[0] != "docs" or name == pathlib.Path("docs/README.md"):
        continue
    index = page.parent / "README.md"
    if page.name == "README.md":
        index = page.parent.parent / "README.md"
    if page not in linked.get(index.relative_to(root), set()):
        bad.append(f"{name} is not linked from {index.relative_to(root)}")
for name in tree.files(root, ".svg"):
    if not name.startswith("docs/pictures/") or root / name not in set().union(*linked.values()):
        bad.append(f"{name}: expected only pictures in docs/pictures that a page shows; pages give the commands of others")
table = (root / "CONTRIBUTING.md").read_text().partition("## Where things are")[2].partition("\n##")[0]
bad += [f"CONTRIBUTING.md: the table of folders lacks {name}" for name in folders() if f"| `{name}` |" not in table]
bad += [f"CONTRIBUTING.md: no such folder: {name}" for name in re.findall(r"^\| `([^`]+/)` \|", table, re.M) if not (root / name).is_dir()]
if count < 100:
    bad.append(f"{count} links found; this test reads the pages wrongly")
print("\n".join(bad) or f"{count} links on {len(linked)} pages lead somewhere")
sys.exit(1 if bad else 0)
