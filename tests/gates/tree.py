"""Common functions of the gates: they list the files of the source tree and read C++ sources as declarations.

The reader knows only comments, literals, brackets and scopes. That is enough to find functions, types and constants in code
that clang-format has formatted. It is not a compiler: a macro that opens or closes a scope would mislead it.
"""
import dataclasses
import json
import os
import pathlib
import re
import shlex
import sys

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>\#(?:[^\n\\]|\\.)*)
  | (?P<raw>R"(?P<delimiter>[^(\s]*)\(.*?\)(?P=delimiter)")
  | (?P<string>"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)*')
  | (?P<space>\s+)
  | (?P<word>[A-Za-z_0-9]+|::|->|<=>|<=|>=|==|!=|&&|\|\||\+=|-=|.)
""", re.VERBOSE | re.DOTALL)


def files(root, *suffixes):
    """Returns the files below `root` with one of these suffixes, sorted, as relative paths. Hidden folders, and build folders
    directly below the root, are not part of the tree. This does not use git: a copy of the sources need not be a repository."""
    found = []
    for folder, folders, names in os.walk(str(root)):
        hidden = (".", "build") if folder == str(root) else (".",)
        folders[:] = [name for name in folders if not name.startswith(hidden)]
        for name in names:
            if name.endswith(suffixes):
                found.append(os.path.relpath(os.path.join(folder, name), root))
    return sorted(found)


def read(root, file):
    return (pathlib.Path(root) / file).read_text(encoding="utf-8")


def compiled(root, commands):
    """Yields (source, arguments) for each source of the tree that a compile_commands.json compiles; source: relative to the root.
    For a file of a unity build, which includes several sources: each of these sources."""
    root = pathlib.Path(root).resolve()
    for entry in json.loads(pathlib.Path(commands).read_text()):
        file = pathlib.Path(os.path.normpath(pathlib.Path(entry["directory"]) / entry["file"]))
        sources = [file]
        if not file.is_relative_to(root) or "-unity" in file.name:
            included = re.findall(r'^#include ?[<"](\S+\.cc?)[>"]', file.read_text(), re.MULTILINE) if file.exists() else []
            sources = [pathlib.Path(os.path.normpath(name)) for name in included]
        for source in sources:
            if source.is_relative_to(root):
                yield str(source.relative_to(root)), shlex.split(entry["command"])


def report(findings, what_to_do):
    """Prints each finding ("file:line: text") and the total; returns the exit status."""
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} findings; {what_to_do}", file=sys.stderr)
    return 1 if findings else 0


@dataclasses.dataclass
class Token:
    text: str
    line: int  # line of its first character
    last: int  # line of its last character


def tokens(text):
    """Returns (tokens without comments, lines with only a comment, lines with a comment after code)."""
    found, comment_lines, trailing_lines = [], set(), set()
    line = 1
    code_line = 0  # the last line with code on it
    for match in TOKEN.finditer(text):
        piece = match.group()
        last = line + piece.count("\n")
        kind = match.lastgroup if match.lastgroup != "delimiter" else "raw"
        if kind == "comment":
            if code_line == line:
                trailing_lines.add(line)
            else:
                comment_lines.update(range(line, last + 1))
        elif kind == "directive":
            code_line = last
            if "//" in piece:
                trailing_lines.add(last)
        elif kind != "space":
            found.append(Token(piece, line, last))
            code_line = last
        line = last
    return found, comment_lines, trailing_lines


@dataclasses.dataclass
class Declaration:
    """A statement at the scope of a namespace or a type."""
    head: list  # its tokens up to the body's brace, the initializer or the semicolon
    kind: str  # function, type, enum, enumerator, namespace, constant, variable or other
    name: str
    scope: tuple  # the names of the enclosing types and namespaces
    public: bool  # reachable by users: not in an unnamed namespace, not private or protected
    line: int
    last: int
    body: bool = False  # a definition in braces


def matching(found, start):
    """Returns the index of the bracket that closes found[start], or the index of the last token if none does."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    stack = []
    for k in range(start, len(found)):
        text = found[k].text
        if text in pairs:
            stack.append(pairs[text])
        elif stack and text == stack[-1]:
            stack.pop()
            if not stack:
                return k
    return len(found) - 1


def skip_template(found, start):
    """Returns the index after `template <...>`."""
    depth = 0
    for k in range(start + 1, len(found)):
        if found[k].text == "(":
            continue
        depth += found[k].text.count("<") if found[k].text in ("<",) else 0
        depth -= 1 if found[k].text == ">" else 0
        if depth == 0 and k > start + 1:
            return k + 1
    return len(found)


def classify(head):
    """Returns (kind, name) of a statement that begins with these tokens."""
    words = [token.text for token in head]
    plain, k = [], 0
    while k < len(words):  # drops attributes, alignas(...) and template parameters
        if words[k] == "template" and words[k + 1:k + 2] == ["<"]:
            k = skip_template(head, k)
        elif words[k] == "[" and words[k + 1:k + 2] == ["["]:
            k = matching(head, k) + 1
        elif words[k] in ("alignas", "__attribute__") and words[k + 1:k + 2] == ["("]:
            k = matching(head, k + 1) + 1
        else:
            plain.append(words[k])
            k += 1
    if not plain:
        return "other", ""
    if plain[0] in ("namespace", "inline") and "namespace" in plain[:2]:
        return "namespace", "::".join(w for w in plain if re.match(r"\w", w) and w not in ("namespace", "inline"))
    if plain[0] == "extern" and len(plain) == 2:
        return "namespace", "extern"
    if plain[0] in ("friend", "static_assert", "public", "private", "protected"):
        return "other", ""
    if plain[0] == "using":
        return ("type", plain[1]) if "=" in plain else ("other", "")
    if plain[0] == "typedef":
        return "type", plain[-1]
    names = [w for w in plain if re.match(r"[A-Za-z_]", w)]
    if plain[0] in ("class", "struct", "union", "enum") and "(" not in plain:
        kind = "enum" if plain[0] == "enum" else "type"
        rest = [w for w in names if w not in ("class", "struct", "union", "enum", "final")]
        return kind, rest[0] if rest else ""
    stop = next((i for i, w in enumerate(plain) if w in ("=", "{")), len(plain))
    if "operator" in plain:
        at = plain.index("operator")
        return "function", "".join(plain[at:]).split("(")[0] or "operator()"
    opening = next((i for i, w in enumerate(plain[:stop]) if w == "("), None)
    if opening is not None and opening > 0:
        before = plain[opening - 1]
        return "function", ("~" if plain[opening - 2:opening - 1] == ["~"] else "") + before
    name = next((w for w in reversed(plain[:stop]) if re.match(r"[A-Za-z_]\w*$", w)), "")
    if any(re.match(r"::?$", before) and word == name for before, word in zip(plain[:stop], plain[1:stop])):
        return "definition", name  # of a member that its class declares
    constant = "constexpr" in plain or (plain[0] == "const" and "*" not in plain[:stop])  # const T* p: p may change
    return ("constant" if constant else "variable"), name


def enumerators(found, scope, public):
    """Returns the enumerators between the braces of an enum."""
    result, depth, fresh = [], 0, True
    for token in found:
        if token.text in "([{":
            depth += 1
        elif token.text in ")]}":
            depth -= 1
        elif token.text == "," and depth == 0:
            fresh = True
        elif fresh:
            result.append(Declaration([token], "enumerator", token.text, scope, public, token.line, token.last))
            fresh = False
        if result:
            result[-1].last = token.last
    return result


def declarations(found, scope=(), public=True, default_public=True):
    """Returns the statements of a scope and of the namespaces and types in it, but not those in bodies of functions."""
    result, k = [], 0
    access = default_public
    while k < len(found):
        if found[k].text == ";":
            k += 1
            continue
        if found[k].text in ("public", "private", "protected") and found[k + 1:k + 2] and found[k + 1].text == ":":
            access = found[k].text == "public"
            k += 2
            continue
        start = k
        body = None
        assigned = False
        while k < len(found) and found[k].text != ";":
            text = found[k].text
            if text == "=" and found[k - 1].text != "operator":
                assigned = True
            if text in "([":
                k = matching(found, k)
            elif text == "{":
                closing = matching(found, k)
                kind, _ = classify(found[start:k])
                after = found[closing + 1].text if closing + 1 < len(found) else ""
                # A brace in a constructor's list of initializers, or in a variable's initializer, is not a body.
                initializer = assigned or (kind in ("constant", "variable")) or (kind == "function" and (
                    after in (",", "{") and ":" in [t.text for t in found[start:k]]))
                if not initializer:
                    body = (k, closing)
                    k = closing
                    break
                k = closing
            k += 1
        head = found[start:body[0]] if body else found[start:k]
        last = found[min(k, len(found) - 1)].last
        kind, name = classify(head)
        item = Declaration(head, kind, name, scope, public and access, found[start].line, last, body is not None)
        result.append(item)
        if body:
            inner = found[body[0] + 1:body[1]]
            words = [token.text for token in head]
            if kind == "namespace":
                result += declarations(inner, scope + ((name,) if name else ()), public and access and name != "")
            elif kind == "type":
                result += declarations(inner, scope + (name,), public and access, "class" not in words)
            elif kind == "enum":
                result += enumerators(inner, scope + (name,), public and access)
            # The name of a variable may follow a type's brace, up to its semicolon.
            if kind in ("type", "enum"):
                while k + 1 < len(found) and found[k + 1].text != ";":
                    k += 1
        k += 1
    return result


def comment_column(line):
    """Returns the column of the comment that ends this line; -1 if there is none."""
    for match in TOKEN.finditer(line):
        if match.lastgroup == "comment":
            return match.start()
    return -1
