#!/usr/bin/python3
"""Gate: every function, type and constant that a public header declares has a comment.

Public are the headers below include/espalier: `meson install` installs that folder. The comment stands on the lines above the
declaration or at the end of one of its lines. None is needed by what repeats another declaration (an override, a forward
declaration, a definition outside its class) and by what the compiler writes (= default, = delete).

comments.py ROOT
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

PUBLIC = "include/espalier/"
KINDS = ("function", "type", "enum", "enumerator", "constant")


def public_headers(root):
    return [file for file in tree.files(root, ".h") if file.startswith(PUBLIC)]


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


def main(root):
    headers = public_headers(root)
    if not headers:
        print(f"comments.py: {root} has no header below {PUBLIC}", file=sys.stderr)
        return 1
    print(f"{len(headers)} public headers")
    return tree.report([finding for file in headers for finding in find(root, file)],
                       "say above each what it is or does, with its unit, its preconditions and its errors")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
