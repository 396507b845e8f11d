#!/usr/bin/python3
"""Gate: every function, type and constant that a public header declares has a comment.

A public header is one that `meson install` installs; meson says which those are. The comment stands on the lines above the
declaration or at the end of one of its lines. None is needed by what repeats another declaration (an override, a forward
declaration, a definition outside its class) and by what the compiler writes (= default, = delete).

comments.py ROOT BUILD           the headers that BUILD installs from ROOT
comments.py ROOT --header FILE   one header, for the test of this gate
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

KINDS = ("function", "type", "enum", "enumerator", "constant")
MACRO = re.compile(r"#\s*define\s+(\w+)")


def public_headers(root, build):
    """The installed headers that stand in the source tree, as paths relative to it."""
    listed = subprocess.run(["meson", "introspect", "--installed", str(build)], check=True, capture_output=True, text=True)
    root = pathlib.Path(root).resolve()
    sources = [pathlib.Path(source) for source in json.loads(listed.stdout)]
    return sorted(str(source.relative_to(root)) for source in sources
                  if source.suffix == ".h" and source.is_relative_to(root) and source.exists()
                  and not source.is_relative_to(pathlib.Path(build).resolve()))


def needs_comment(item):
    words = [token.text for token in item.head]
    if not item.public or item.kind not in KINDS or not item.name:
        return False
    if item.kind in ("type", "enum") and not item.body and "=" not in words:
        return False  # a forward declaration
    if item.kind == "function":
        if "override" in words or words[-2:] in (["=", "default"], ["=", "delete"]) or item.name.startswith("~"):
            return False
        arguments = words.index("(") if "(" in words else len(words)
        if "::" in words[max(0, arguments - 2):arguments]:
            return False  # a definition outside its class
    return True


def has_comment(item, comment_lines, trailing_lines):
    return item.line - 1 in comment_lines or any(line in trailing_lines for line in range(item.line, item.last + 1))


def find(root, file):
    found, comment_lines, trailing_lines = tree.tokens(tree.read(root, file))
    for item in tree.declarations(found):
        head_last = item.head[-1].last
        if item.body:  # comments inside the body say nothing of the whole
            item.last = min(item.last, head_last)
        if needs_comment(item) and not has_comment(item, comment_lines, trailing_lines):
            yield f"{file}:{item.line}: {item.kind} {'::'.join((*item.scope, item.name))} has no comment"


def main(root, build, header=None):
    headers = [header] if header else public_headers(root, build)
    if not headers:
        print(f"comments.py: {build} installs no header of {root}", file=sys.stderr)
        return 1
    print(f"{len(headers)} public headers")
    return tree.report([finding for file in headers for finding in find(root, file)],
                       "say above each what it is or does, with its unit, its preconditions and its errors")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3], sys.argv[3] if sys.argv[2:3] == ["--header"] else None))
