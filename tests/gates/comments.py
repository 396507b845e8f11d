#!/usr/bin/python3
"""Gate: every function, type and constant that an installed header declares has a comment, and at most MAX_PUBLIC headers are public.

The headers below include/espalier are installed, those that its meson.build names and no others. They are public, except those in
internal/, which public headers include, directly or not: a header that no public header includes stands beside its sources. The comment is on the lines above the
declaration or at the end of one of its lines. A comment above a group (declarations without a blank line or a further comment
between them) also covers the overloads of the first one, and the declarations that the comment names. A comment above an enum
also covers the enumerators that it names. No comment is needed if a declaration repeats another one (an override, a forward
declaration, a definition outside its class) or the compiler writes the function (= default, = delete).

comments.py ROOT
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

PUBLIC = "include/espalier/"
INTERNAL = PUBLIC + "internal/"
LIST = PUBLIC + "meson.build"
MAX_PUBLIC = 25
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]', re.MULTILINE)
PLAIN = PUBLIC + "communicator.h"  # its users need no nanopb
KINDS = ("function", "type", "enum", "enumerator", "constant")


def installed_headers(root):
    return [file for file in tree.files(root, ".h") if file.startswith("include/")]


def public_headers(root):
    return [file for file in installed_headers(root) if not file.startswith(INTERNAL)]


def reach(root, start, headers):
    """Returns the installed headers that `start` include, directly or not, themselves too, and the names of all that they include."""
    todo, reached, names = list(start), set(start), set()
    while todo:
        for name in INCLUDE.findall(tree.read(root, todo.pop())):
            names.add(name)
            file = "include/" + name
            if file in headers and file not in reached:
                reached.add(file)
                todo.append(file)
    return reached, names


def check_public(root, headers):
    """Finds too many public headers, headers that the list of installed files lacks, internal ones that no public one includes, and
    generated code or nanopb in what PLAIN includes."""
    public = public_headers(root)
    if len(public) > MAX_PUBLIC:
        yield f"{PUBLIC}: {len(public)} public headers, at most {MAX_PUBLIC} are allowed; move what no user reads to {INTERNAL}, or beside its sources"
    listed = set(re.findall(r"'([^']+\.h)'", tree.read(root, LIST) if (pathlib.Path(root) / LIST).is_file() else ""))
    present = {file.removeprefix(PUBLIC) for file in headers}
    yield from (f"{LIST}: {PUBLIC}{name} is {'not there' if name in listed else 'missing'}" for name in sorted(listed ^ present))
    reached, _ = reach(root, public, headers)
    yield from (f"{file}:1: no public header includes it; move it beside its sources" for file in headers if file not in reached)
    if PLAIN in headers:
        yield from (f"{PLAIN}: includes {name}; its users need no nanopb" for name in sorted(reach(root, [PLAIN], headers)[1])
                    if name.endswith(".pb.h") or name.startswith("pb"))


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
    head_last = item.head[-1].last if item.body else item.last  # comments inside the body do not describe the whole
    return item.line - 1 in comment_lines or any(line in trailing_lines for line in range(item.line, head_last + 1))


def comment_above(line, comment_lines, lines):
    """Returns the text of the comment that ends on the line before `line`."""
    first = line
    while first - 1 in comment_lines:
        first -= 1
    return "\n".join(lines[first - 1:line - 1])


def covered_by_group(item, group, text):
    if item.kind != "function":
        return re.search(rf"\b{re.escape(item.name)}\b", text) is not None
    # The word `links` in prose does not mention links(); "links: ..." does.
    return item.name == group.name or re.search(rf"(^|\W){re.escape(item.name)}(\(|: )", text) is not None


def find(root, file):
    source = tree.read(root, file)
    found, comment_lines, trailing_lines = tree.tokens(source)
    lines = source.split("\n")
    groups = {}  # scope -> (the group's first declaration, the comment above it, the group's last line so far)
    for item in tree.declarations(found):
        if item.line - 1 in comment_lines:
            text = comment_above(item.line, comment_lines, lines)
            groups[item.scope] = (item, text, item.last)
            if item.kind == "enum":  # its comment may name the enumerators
                groups[(*item.scope, item.name)] = (item, text, item.line)
        elif item.scope in groups:
            first, text, last = groups[item.scope]
            if item.line in (last, last + 1):
                groups[item.scope] = (first, text, item.last)
            else:
                del groups[item.scope]
        if not needs_comment(item) or has_comment(item, comment_lines, trailing_lines):
            continue
        if item.scope in groups and covered_by_group(item, *groups[item.scope][:2]):
            continue
        yield f"{file}:{item.line}: {item.kind} {'::'.join((*item.scope, item.name))} has no comment"


def main(root):
    headers = installed_headers(root)
    if not headers:
        print(f"comments.py: {root} has no header below {PUBLIC}", file=sys.stderr)
        return 1
    print(f"{len(public_headers(root))} public headers, {len(headers)} installed")
    return tree.report([*check_public(root, headers), *(finding for file in headers for finding in find(root, file))],
                       "say above each what it is or does, with its unit, its preconditions and its errors")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
