#!/usr/bin/python3
"""references.py [--write] ROOT (--all | PAGE...): each file that a page names in backticks exists, and defines the name after its colon.

A reference is `FILE` or `FILE:NAME` in backticks, FILE relative to ROOT and below one of its folders. NAME is a function, a type
or a constant, members with their class: `collectives/machine/window.cc:Machine::retire`. `PROTO:Message.field` names a field.
Prints a line for each reference that does not resolve, with the files that do define the name; exit status 1 if there is any.
--all: every page of the tree, except the changelog, which may name files that are gone. NAME in a path is a placeholder.
--write is for after files were moved: it puts the new file into the page if exactly one file of that kind defines the name."""
import ast
import pathlib
import re
import sys

REFERENCE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)(?::([A-Za-z_~][\w:.~]*))?`")
SOURCES = {".cc", ".h", ".c", ".py", ".sh", ".proto"}
# What may stand before a parenthesis and is not the name of a function.
NOT_NAMES = {"if", "for", "while", "switch", "return", "static_assert", "decltype", "alignas", "sizeof", "defined", "noexcept"}


def without_comments(text):
    """C++ without comments, strings, characters, preprocessor lines and attributes."""
    text = re.sub(r'R"\((.*?)\)"', '""', text, flags=re.S)
    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text)  # 1'000
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/',
                  lambda found: " " if found.group().startswith("/") else '""', text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    return re.sub(r"\[\[.*?\]\]", "", text)


def past_braces(text, at):
    """The position after the block that begins at text[at]."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(text, at):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return found.end()
    return len(text)


def without_template_arguments(head):
    before = None
    while before != head:
        before, head = head, re.sub(r"<[^<>;{}]*>", "", head)
    return head


def function_name(head):
    """The function that a declaration's head names, or none."""
    for name in re.findall(r"(~?[A-Za-z_][\w:]*)\s*\(", without_template_arguments(head)):
        if name not in NOT_NAMES:
            return name
    return None


def scan(text, scope, names):
    """Adds what is declared at this level of C++ (a namespace or a class) and in the classes in it."""
    at = start = depth = 0
    while at < len(text):
        letter = text[at]
        if letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == ";" and depth == 0:
            declare(text[start:at], scope, names)
            start = at + 1
        elif letter == "{":
            end = past_braces(text, at)
            head = text[start:at].strip()
            head = re.sub(r"^(?:public|private|protected)\s*:", "", head).strip()
            kind = re.match(r"(?:template\s*<.*?>\s*)?(?:typedef\s+|inline\s+)?(namespace|extern|enum|class|struct|union)\b"
                            r"(?:\s+(?:class|struct))?\s*([\w:]*)", head, re.S)
            plain = without_template_arguments(head)  # whose defaults have a "=", too
            function = None if kind else function_name(plain.split("=")[0] if "operator" not in plain else plain)
            if kind and kind.group(1) in ("namespace", "extern"):
                scan(text[at + 1:end - 1], scope, names)
                start = end
            elif kind and "(" not in head:
                names.add(scope + kind.group(2))
                if kind.group(1) == "enum":
                    names.update(scope + kind.group(2) + "::" + value
                                 for value in re.findall(r"(?:^|,)\s*(\w+)", text[at + 1:end - 1]))
                else:
                    scan(text[at + 1:end - 1], scope + kind.group(2) + "::", names)
                start = end
            elif function and depth == 0 and text[at - 1] in " \n)":
                names.add(scope + function)
                start = end
            at = end
            continue
        at += 1


def declare(head, scope, names):
    head = re.sub(r"^\s*(?:public|private|protected)\s*:", "", head).strip()
    alias = re.match(r"using\s+(\w+)\s*=", head)
    constant = re.match(r"(?:inline\s+|static\s+)*constexpr\s[^=({]*?\b(\w+)(?:\[\w*\])?\s*(?:=|$)", head, re.S)
    field = re.match(r"[\w:<>,\s*&]+?[\s*&](\w+)(?:\[[^\]]*\])?(?:\s*=.*)?$", head, re.S)
    for found in (alias, constant, field):
        if found and not head.startswith(("return", "friend", "typedef")):
            names.add(scope + found.group(1))
            return
    function = function_name(head)
    if function:
        names.add(scope + function)


def defined_names(path):
    """What the file declares or defines: functions, types, constants, members."""
    text = path.read_text(errors="replace")
    names = set()
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
    elif path.suffix == ".sh":
        names.update(re.findall(r"^([a-z_]\w*)\(\) *\{", text, re.M))
    elif path.suffix == ".proto":
        for kind, name, body in re.findall(r"^(message|enum) (\w+) \{(.*?)^\}", text, re.M | re.S):
            names.add(name)
            pattern = r"^\s*(?:repeated\s+)?\w+\s+(\w+)\s*=\s*\d+;" if kind == "message" else r"^\s*(\w+)\s*=\s*\d+;"
            names.update(f"{name}.{field}" for field in re.findall(pattern, body, re.M))
    else:
        scan(without_comments(text), "", names)
    return names


class Tree:
    """The files below a folder, and what they define, read when asked for."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.folders = {path.name for path in self.root.iterdir() if path.is_dir() and not self.foreign(path.name)}
        self.names = {}

    @staticmethod
    def foreign(name):
        return name.startswith((".", "build")) or name == "subprojects"

    def defines(self, file, name):
        path = self.root / file
        if path not in self.names:
            self.names[path] = defined_names(path) if path.suffix in SOURCES else set()
        return name in self.names[path]

    def pages(self):
        for path in sorted(self.root.rglob("*.md")):
            if not self.foreign(path.relative_to(self.root).parts[0]) and path.name != "CHANGELOG.md":
                yield path

    def files(self):
        for folder in sorted(self.folders):
            yield from (path for path in sorted((self.root / folder).rglob("*")) if path.is_file())

    def where(self, name):
        """The files that define the name, or, for a page's file without a name, those called so."""
        return [str(path.relative_to(self.root)) for path in self.files()
                if path.suffix in SOURCES and self.defines(path.relative_to(self.root), name)]

    def called(self, file):
        return [str(path.relative_to(self.root)) for path in self.files() if path.name == pathlib.PurePath(file).name]


def check(tree, page):
    """(reference, what is wrong, files that would do) for each reference of the page that does not resolve; and their number."""
    bad, count = [], 0
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for found in dict.fromkeys(REFERENCE.findall(text)):
        file, name = found
        if "NAME" in file.split("/"):
            continue
        if file.split("/")[0] not in tree.folders or "/" not in file:
            if name and pathlib.PurePath(file).suffix in SOURCES:
                bad.append((f"{file}:{name}", "no such file; expected a path from the root of the sources", tree.where(name)))
            continue
        count += 1
        path = tree.root / file
        reference = f"{file}:{name}" if name else file
        if not path.exists():
            bad.append((reference, "no such file", tree.where(name) if name else tree.called(file)))
        elif name and not (path.is_file() and tree.defines(file, name)):
            bad.append((reference, f"{file} does not define {name}", tree.where(name)))
    return bad, count


def main(arguments):
    write = "--write" in arguments
    root, *given = [argument for argument in arguments if argument not in ("--write", "--all")]
    tree = Tree(root)
    pages = list(tree.pages() if "--all" in arguments else map(pathlib.Path, given))
    failed, total = False, 0
    for page in pages:
        bad, count = check(tree, page)
        total += count
        for reference, what, files in bad:
            name = reference.partition(":")[2]
            suffix = pathlib.PurePath(reference.partition(":")[0]).suffix
            same = [file for file in files if pathlib.PurePath(file).suffix == suffix]
            if write and len(same) == 1:
                new = same[0] + (":" + name if name else "")
                page.write_text(page.read_text().replace(f"`{reference}`", f"`{new}`"))
                print(f"{page}: `{reference}` is now `{new}`")
                continue
            failed = True
            print(f"{page}: `{reference}`: {what}" + (f"; found in {', '.join(files)}" if files else ""))
    if total == 0:
        print("no reference found; this test reads the pages wrongly")
    elif not failed:
        print(f"{total} references on {len(pages)} pages resolve")
    return 1 if failed or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
