#!/usr/bin/python3
"""Shows that each gate passes a good tree and fails a bad one, naming the file and the line."""
import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import arrows
import comments
import first_page
import folders
import format as formatter
import generated
import includes
import lengths
import sentences
import tidy
import timeouts
import tree
import words

ARROWS = """base
proto base   # a comment
hal base
collectives/machine hal
tests collectives/machine
"""


class GateTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, file, text):
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_gate(self, function, *arguments):
        """Returns (exit status, output)."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            status = function(*arguments)
        return status, out.getvalue()


class Includes(GateTest):
    def test_names_have_headers(self):
        self.write("base/a.h", "#pragma once\n#include <string>\n")
        good = self.write("base/a.cc", '#include "base/a.h"\n#include <vector>\nstd::string s;  // std::map\nstd::vector<int> v;\n')
        self.assertEqual(list(includes.find(self.root)), [])
        good.write_text(good.read_text() + 'int n = std::min(1, 2);\nint m = std::max(1, 2);\nauto t = "std::map";\n')
        self.assertEqual(list(includes.find(self.root)), ["base/a.cc:5: std::min without <algorithm>"])

    def test_a_header_of_another_library_does_not_count(self):
        self.write("base/a_test.cc", "#include <gtest/gtest.h>\nstd::string s;\n")
        self.assertEqual(list(includes.find(self.root)), ["base/a_test.cc:2: std::string without <string>"])

    def test_macros_have_headers(self):
        self.write("include/espalier/internal/base/limits.h", "#pragma once\n#ifndef ESPALIER_SPARES\n#define ESPALIER_SPARES 1\n#endif\n")
        self.write("base/a.h", '#pragma once\n#include "espalier/internal/base/limits.h"\n')
        self.write("base/a.cc", '#include "base/a.h"\n#if ESPALIER_SPARES && ESPALIER_OF_THE_BUILD\n#endif\n')
        self.assertEqual(list(includes.find(self.root)), [])
        self.write("base/b.cc", "// ESPALIER_SPARES\n#if ESPALIER_SPARES\n#elif ESPALIER_SPARES\n#endif\n")
        self.assertEqual(list(includes.find(self.root)), ['base/b.cc:2: ESPALIER_SPARES without "espalier/internal/base/limits.h"'])


class Declarations(GateTest):
    def read(self, text):
        found, _, _ = tree.tokens(text)
        return [(item.kind, "::".join((*item.scope, item.name)), item.public) for item in tree.declarations(found)
                if item.kind != "other"]

    def test_kinds(self):
        self.assertEqual(self.read("""
            namespace a::b {
            struct S;
            using Name = std::array<int, 3>;
            enum class E : unsigned char { kOne, kTwo = f(1, 2), kThree };
            inline constexpr int kMany = 3;
            class C final : public D<int> {
              int secret() const;
             public:
              explicit C(int x) : D{x}, y_{2} { go([&](int z) { return z; }); }
              ~C() override = default;
              [[nodiscard]] bool operator==(const C& other) const { return y_ == other.y_; }
              template <typename T, int n = 3>
              T get(const std::vector<T>& in = {}) const noexcept;
             private:
              int y_ = 0;
            };
            namespace { int hidden() { return '{'; } }
            int shown(const char* text = "}", int (*callback)(int) = nullptr);
            }"""), [
                ("namespace", "a::b", True), ("type", "a::b::S", True), ("type", "a::b::Name", True), ("enum", "a::b::E", True),
                ("enumerator", "a::b::E::kOne", True), ("enumerator", "a::b::E::kTwo", True),
                ("enumerator", "a::b::E::kThree", True), ("constant", "a::b::kMany", True), ("type", "a::b::C", True),
                ("function", "a::b::C::secret", False), ("function", "a::b::C::C", True), ("function", "a::b::C::~C", True),
                ("function", "a::b::C::operator==", True), ("function", "a::b::C::get", True), ("variable", "a::b::C::y_", False),
                ("namespace", "a::b::", True), ("function", "a::b::hidden", False), ("function", "a::b::shown", True)])

    def test_comments_and_literals_hide_brackets(self):
        self.assertEqual(self.read('int a() { return "{"[0]; } // {\n/* { */ int b() { return R"x({)x"[0] + 1\'000; }\nint c();'),
                         [("function", "a", True), ("function", "b", True), ("function", "c", True)])


class Lengths(GateTest):
    def body(self, lines):
        return "int f() {\n" + "  go();\n" * (lines - 2) + "}\n"

    def test_the_limit(self):
        self.write("a.cc", self.body(70))
        self.assertEqual(self.run_gate(lengths.main, self.root)[0], 0)

    def test_one_line_more(self):
        self.write("b/a.cc", "// A comment.\nnamespace n {\n\n" + self.body(71) + "}\n")
        status, text = self.run_gate(lengths.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("b/a.cc:4: n::f has 71 lines", text)

    def test_every_language(self):
        longer = {
            "a.c": self.body(71),
            "a.cc": "template <typename T = int>\n" + self.body(71),
            "b.cc": "const auto f = [] {\n" + "  go();\n" * 69 + "};\n",
            "c.cc": "class A {\n  friend int f(A a) {\n" + "    go();\n" * 69 + "  }\n};\n",
            "d.cc": "int f() try {\n" + "  go();\n" * 68 + "} catch (...) {\n}\n",
            "e.cc": "#define f() \\\n" + "  go(); \\\n" * 69 + "\n",
            "d.sh": "f()\n{\n" + "  go\n" * 68 + "}\n",
            "a.html": "<script>\nfunction f(x) {\n" + "  go();\n" * 69 + "}\n</script>\n",
            "a.py": "class A:\n    def f(self):\n" + "        go()\n" * 70,
            "a.sh": "f() { go; }\nf() {\n" + "  go\n" * 69 + "}\n",
            "b.sh": "function f {\n" + "  go\n" * 69 + "}\n",
            "a.bash": "f () {  # why\n" + "  go\n" * 69 + "}\n",
            "c.sh": "f() (\n" + "  go\n" * 69 + ")\n",
            "a.js": "class A {\n  f(x) {\n" + "    if (x) {\n    }\n" * 34 + "    go();\n  }\n}\n",
            "b.js": "export async function f(x) {\n" + "  go();\n" * 69 + "}\n",
            "c.js": "const f = async (x) => {\n" + "  go();\n" * 69 + "};\n",
            "d.js": "const a = {\n  f: function (x) {\n" + "    go();\n" * 69 + "  },\n};\n",
            "e.js": "class A {\n  static async f(x) {\n" + "    go();\n" * 69 + "  }\n}\n",
            "b.F90": "module a\ncontains\n  pure integer function f(n)\n" + "    call go()\n" * 69 + "  end function\nend module\n",
            "a.F90": "module a\ncontains\n  subroutine f()\n" + "    call go()\n" * 69 + "  end subroutine\nend module\n",
        }
        for file, text in longer.items():
            with self.subTest(file=file):
                path = self.write(file, text)
                status, printed = self.run_gate(lengths.main, self.root)
                self.assertEqual(status, 1)
                self.assertRegex(printed, rf"{file}:\d: .*(f\b|__anon).* has 71 lines")
                shorter = next(line for line in text.splitlines(keepends=True) if "go" in line and "{" not in line)
                path.write_text(text.replace(shorter, "", 1))
                self.assertEqual(self.run_gate(lengths.main, self.root)[0], 0)
                path.unlink()

    def test_a_fortran_program_ends_where_its_functions_begin(self):
        self.write("a.F90", "program a\n" + "  call f()\n" * 50 + "contains\n  subroutine f()\n" + "    call go()\n" * 50 + "  end subroutine\nend program\n")
        self.assertEqual(self.run_gate(lengths.main, self.root)[0], 0)

    def test_build_folders_are_not_read(self):
        self.write("build-x/a.cc", self.body(99))
        self.write("a.cc", self.body(2))
        self.assertEqual(self.run_gate(lengths.main, self.root)[0], 0)
        self.write("a/build/a.cc", self.body(99))  # not right below the root
        self.assertEqual(self.run_gate(lengths.main, self.root)[0], 1)


class Folders(GateTest):
    def test_the_limit(self):
        for number in range(40):
            self.write(f"a/{number}.cc", "ESPALIER_ASSERT(true);\n")
        self.write("a/b/1_test.cc", "int one();\nint two();\n")
        self.write("a/data.json", "")
        status, text = self.run_gate(folders.main, self.root)
        self.assertEqual(status, 0)
        self.assertRegex(text, r"a +40 +2 +40\nall +40 +2 +40\n")
        self.write("a/test.py", "")
        status, text = self.run_gate(folders.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("a: 41 files, at most 40 are allowed", text)
        self.write("b/x.hpp", "")
        self.assertIn("b/x.hpp: no gate reads this suffix", self.run_gate(folders.main, self.root)[1])

    def test_growth(self):
        def commit():
            folders.git(self.root, "add", "--all")
            folders.git(self.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "a")

        folders.git(self.root, "init", "-q")
        self.write("a/old.cc", "int a();\nint b();\nint c();\nint d();\n")
        self.write("b/gone.py", "1\n2\n")
        commit()
        (self.root / "b/gone.py").unlink()
        (self.root / "a/old.cc").unlink()
        self.write("c/moved.cc", "int a();\nint b();\nint c();\nint d();\nint e();\nESPALIER_ASSERT(true);\n")
        self.write("c/page.md", "words\n")
        commit()
        self.assertEqual(folders.growth(self.root, "HEAD~1"), {"b": -2, "c": 1})


class Comments(GateTest):
    def setUp(self):
        super().setUp()
        self.write(comments.LIST, "install_headers('a.h')\n")

    def names(self, text):
        self.write("include/espalier/a.h", text)
        status, printed = self.run_gate(comments.main, self.root)
        self.assertEqual(status, 1 if "has no comment" in printed else 0)
        return [line.split()[2] for line in printed.splitlines() if "has no comment" in line]

    def test_all_is_commented(self):
        self.assertEqual(self.names("""// A file.
            // What it is.
            struct S {
              int field = 0;
              S() = default;
              int f() const;  // What it does.
              // What it does.
              template <typename T>
              void g(T t);
              void h() override;
            };
            struct Later;
            enum class E {  // What it is.
              kOne,  // Which.
            };
            // What it is.
            inline constexpr int kSize = 3;
            namespace { int hidden(); }
            inline void S::g(int) {}
            """), [])

    def test_what_has_no_comment_is_found(self):
        self.assertEqual(self.names("""// A file.
            #include <x>
            struct S {  // A set.
              int f() const;
              // What it does.
              int g() const { return 1; }
              int h() const {
                return 2;  // not of the function, but in it
              }
             private:
              int i() const;
            };

            using Other = S;
            enum E { kOne, kTwo };  // What they are.
            constexpr int kSize = 3;
            """), ["S::f", "S::h", "Other", "kSize"])

    def test_a_comment_above_a_group(self):
        self.assertEqual(self.names("""// A file.
            #pragma once
            // f() and g() return it; h() does not. kMany: how often.
            int f();
            int f(int x);
            int g() {
              return 1;
            }
            inline constexpr int kMany = 3;
            int other();
            int it();
            int h();

            int g(long x);
            // A struct with constants, which are defined below it.
            struct S { static const int kOfS; };
            inline constexpr int S::kOfS = 3;
            // What they are.
            enum E {
              kOne, kTwo,
              // kThree to kFour: which.
              kThree,
              kFour,
              kFive,
            };
            // Which: it stands above its enumerators' line, too.
            enum F { kSix, kSeven };
            // kNine.
            enum G {
              kNine,
              kTen,
            };
            """), ["other", "it", "g", "E::kOne", "E::kTwo", "E::kFive", "G::kTen"])

    def test_a_further_comment_ends_a_group(self):
        self.assertEqual(self.names("""// A file.
            #pragma once
            // f() and g() return it.
            int f();
            // What it does.
            int h();
            int g();
            """), ["g"])

    def test_a_field_that_points_to_a_constant_is_not_one(self):
        self.assertEqual(self.names("""// What it is.
            struct S {
              const int* field = nullptr;
              const int count = 3;
            };
            """), ["S::count"])

    def test_the_line(self):
        self.write("include/espalier/a.h", "#pragma once\n// A file.\n\nint f();\n")
        self.write("a.h", "int internal();\n")
        self.assertEqual(self.run_gate(comments.main, self.root)[1].splitlines()[:2],
                         ["1 public headers, 1 installed", "include/espalier/a.h:4: function f has no comment"])

    def test_no_header(self):
        self.assertEqual(self.run_gate(comments.main, self.root)[0], 1)

    def write_headers(self, count):
        names = [f"h{k}.h" for k in range(count)]
        for name in names:
            self.write(f"include/espalier/{name}", "// A file.\n")
        self.write("include/espalier/h0.h", '#include "espalier/internal/base/a.h"\n')
        self.write("include/espalier/internal/base/a.h", '#include "espalier/internal/base/b.h"\n')
        self.write("include/espalier/internal/base/b.h", "// A file.\n")
        self.write(comments.LIST, "".join(f"'{name}'\n" for name in [*names, "internal/base/a.h", "internal/base/b.h"]))

    def test_the_limit(self):
        self.write_headers(comments.MAX_PUBLIC)
        status, text = self.run_gate(comments.main, self.root)
        self.assertEqual((status, text.splitlines()[0]), (0, f"{comments.MAX_PUBLIC} public headers, {comments.MAX_PUBLIC + 2} installed"))

    def test_one_public_header_more(self):
        self.write_headers(comments.MAX_PUBLIC + 1)
        status, text = self.run_gate(comments.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("26 public headers, at most 25 are allowed", text)

    def test_the_list_of_installed_headers(self):
        self.write_headers(2)
        self.write(comments.LIST, "'h0.h' 'h2.h' 'internal/base/a.h' 'internal/base/b.h'")
        status, text = self.run_gate(comments.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("include/espalier/h1.h is missing", text)
        self.assertIn("include/espalier/h2.h is not there", text)

    def test_generated_code_in_the_communicator(self):
        self.write_headers(1)
        self.write(comments.LIST, "'h0.h' 'communicator.h' 'internal/base/a.h' 'internal/base/b.h'")
        self.write("include/espalier/communicator.h", '#include "espalier/h0.h"\n')
        self.assertEqual(self.run_gate(comments.main, self.root)[0], 0)
        self.write("include/espalier/internal/base/b.h", '#include "espalier/internal/proto/schedule.pb.h"\n')
        status, text = self.run_gate(comments.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("communicator.h: includes espalier/internal/proto/schedule.pb.h", text)

    def test_an_internal_header_that_nobody_includes(self):
        self.write_headers(1)
        self.write("include/espalier/h0.h", "// A file.\n")
        status, text = self.run_gate(comments.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("include/espalier/internal/base/a.h:1: no public header includes it", text)
        self.assertIn("include/espalier/internal/base/b.h:1: no public header includes it", text)


class Arrows(GateTest):
    def setUp(self):
        super().setUp()
        self.write(arrows.TABLE, ARROWS)
        self.write(arrows.PAGE, f"# Page\n\n{arrows.BEGIN}\n{arrows.END}\n\nThe end.\n")
        self.write("base/status.h", "#include <cstdint>\n")
        self.write("proto/p.cc", '#include "base/status.h"\n')
        self.write("include/espalier/hal/endpoint.h", '#include "espalier/base/status.h"\n')
        self.write("hal/sim.cc", '#include "espalier/hal/endpoint.h"\n')
        self.write("collectives/machine/machine.cc", '#include "schedule.pb.h"\n#include "hal/endpoint.h"\n#include "base/status.h"\n')
        self.write("tests/a.cc", '#include "collectives/machine/machine.cc"\n')
        self.write("hal/sim_test.cc", '#include "collectives/machine/machine.cc"\n')
        self.run_gate(arrows.main, self.root, "--write")

    def fails(self, *expected):
        status, text = self.run_gate(arrows.main, self.root)
        self.assertEqual(status, 1)
        for piece in expected:
            self.assertIn(piece, text)

    def test_generated_headers_are_protos(self):
        self.fails('collectives/machine/machine.cc:1: collectives/machine must not include proto ("schedule.pb.h")')

    def good(self):
        self.write("collectives/machine/machine.cc", '#include "hal/endpoint.h"\n#include "base/status.h"\n')

    def test_a_good_tree(self):
        self.good()
        self.assertEqual(self.run_gate(arrows.main, self.root)[0], 0)
        page = (self.root / arrows.PAGE).read_text()
        self.assertIn("| 2 | `collectives/machine` | `hal` |", page)
        self.assertTrue(page.endswith("The end.\n"))

    def test_an_arrow_that_goes_up(self):
        self.good()
        self.write("hal/up.h", '// x\n#include "collectives/machine/machine.h"\n')
        self.write("collectives/machine/machine.h", "")
        self.fails("hal/up.h:2: hal must not include collectives/machine")

    def test_an_arrow_up_as_a_user_includes(self):
        self.good()
        self.write("include/espalier/collectives/machine/machine.h", "")
        self.write("hal/up.h", "#include <espalier/collectives/machine/machine.h>\n")
        self.fails("hal/up.h:1: hal must not include collectives/machine")

    def test_a_circle_of_relative_names(self):
        self.good()
        self.write("hal/a/b/one.h", '#include "../../c/two.h"\n')
        self.write("hal/c/two.h", '#include "../a/b/one.h"\n')
        self.fails('hal/c/two.h:1: includes "../a/b/one.h": of a circle of folders: hal/a/b, hal/c')

    def test_a_macro_that_is_included(self):
        self.good()
        self.write("hal/up.h", "#include NEXT\n")
        self.fails("hal/up.h:1: includes the macro NEXT")

    def test_an_arrow_up_among_public_headers(self):
        self.good()
        self.write("include/espalier/base/clock.h", '#include "espalier/hal/endpoint.h"\n')
        self.fails("include/espalier/base/clock.h:1: base must not include hal")

    def test_an_arrow_up_among_internal_headers(self):
        self.write("include/espalier/internal/base/clock.h", '#include "espalier/hal/endpoint.h"\n')
        self.fails("include/espalier/internal/base/clock.h:1: base must not include hal")

    def test_folders_of_one_row_that_include_each_other(self):
        self.good()
        self.write("hal/a/one.h", '#include "hal/b/two.h"\n')
        self.write("hal/b/two.h", '#include "hal/c/three.h"\n')
        self.write("hal/c/three.h", "\n")
        self.assertEqual(self.run_gate(arrows.main, self.root)[0], 0)
        self.write("hal/c/three.h", '\n#include "hal/a/four.h"\n')
        self.write("hal/a/four.h", "")
        self.fails('hal/c/three.h:2: includes "hal/a/four.h": of a circle of folders: hal/a, hal/b, hal/c', "hal/a/one.h:1: ")

    def test_installed_headers_of_a_circle(self):
        """A header under include/ counts as one of its sources' folder; an internal one in a folder below it, too."""
        self.good()
        self.write("hal/a/one.cc", '#include "espalier/internal/hal/b/two.h"\n')
        self.write("include/espalier/internal/hal/b/two.h", "\n")
        self.assertEqual(self.run_gate(arrows.main, self.root)[0], 0)
        self.write("include/espalier/internal/hal/b/two.h", '#include "espalier/hal/a/one.h"\n')
        self.write("include/espalier/hal/a/one.h", "")
        self.fails('include/espalier/internal/hal/b/two.h:1: includes "espalier/hal/a/one.h": of a circle of folders: hal/a, hal/b',
                   "hal/a/one.cc:1: ")

    def test_a_product_file_that_includes_a_test(self):
        self.good()
        self.write("tests/help.h", "")
        self.write("hal/x.cc", '#include "tests/help.h"\n')
        self.fails("hal/x.cc:1: hal must not include tests")

    def test_a_folder_that_the_table_does_not_know(self):
        self.good()
        self.write("other/x.cc", "")
        self.fails("other/x.cc:1:")

    def test_bad_tables(self):
        self.good()
        self.write(arrows.TABLE, "hal base\n" + ARROWS + "nowhere base\n")
        self.fails("arrows.txt:1: 'base' has no line above this one", "arrows.txt:4: 'hal' has a line above",
                   "arrows.txt:7: there is no folder 'nowhere'")

    def test_a_page_that_shows_another_table(self):
        self.good()
        page = (self.root / arrows.PAGE).read_text()
        self.write(arrows.PAGE, page.replace("`hal`", "`base`"))
        self.fails("docs/architecture.md:3: not the table")
        self.write(arrows.PAGE, "# no marks\n")
        self.fails("docs/architecture.md:1: expected the marks")

    def freestanding(self, file):
        commands = self.write("build/compile_commands.json", json.dumps([
            {"directory": str(self.root), "file": "hal/f.cc", "command": "c++ -fno-exceptions -c hal/f.cc"},
            {"directory": str(self.root), "file": "hal/h.cc", "command": "c++ -c hal/h.cc"}]))
        self.write("hal/h.cc", "#include <string>\n")
        self.write("hal/f.cc", file)
        return self.run_gate(arrows.main, self.root, "--freestanding", commands)

    def test_freestanding(self):
        self.write("hal/free.h", '#include <algorithm>\n#include "base/status.h"\n')
        self.assertEqual(self.freestanding('#include "free.h"\n')[0], 0)
        self.write("hal/host.h", "// x\n#include <vector>\n")
        self.write("hal/free.h", '#include "hal/host.h"\n')
        status, text = self.freestanding('#include "free.h"\n')
        self.assertEqual(status, 1)
        self.assertIn("hal/host.h:2: <vector> is not freestanding, but hal/f.cc must be", text)

    def test_freestanding_sources_of_a_unity_build(self):
        self.write("hal/f.cc", "\n#include <vector>\n")
        self.write("build/x-unity0.cpp", f"#include<{self.root}/build/../hal/f.cc>\n")
        commands = self.write("build/compile_commands.json", json.dumps([
            {"directory": str(self.root / "build"), "file": "x-unity0.cpp", "command": "c++ -fno-exceptions -c x-unity0.cpp"}]))
        status, text = self.run_gate(arrows.main, self.root, "--freestanding", commands)
        self.assertEqual(status, 1)
        self.assertIn("hal/f.cc:2: <vector> is not freestanding", text)

    def test_no_freestanding_source(self):
        commands = self.write("build/compile_commands.json", "[]")
        self.assertEqual(self.run_gate(arrows.main, self.root, "--freestanding", commands)[0], 1)


class Format(GateTest):
    def setUp(self):
        super().setUp()
        # All releases format these sources alike.
        kept = mock.patch.object(formatter, "RELEASE", formatter.installed_release())
        kept.start()
        self.addCleanup(kept.stop)

    def test_another_release(self):
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("a.cc", "int   a;\n")
        formatter.RELEASE += 1
        status, text = self.run_gate(formatter.main, self.root)
        self.assertEqual(status, 77)
        self.assertIn("skipped: clang-format", text)

    def test_both(self):
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("a/good.cc", "int f() { return 1; }\n")
        self.assertEqual(self.run_gate(formatter.main, self.root)[0], 0)
        bad = self.write("a/bad.h", "int a;\nint   f( );\n")
        status, text = self.run_gate(formatter.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("a/bad.h:2:", text)
        self.assertNotIn("good", text)
        self.run_gate(formatter.main, self.root, "--write")
        self.assertEqual(bad.read_text(), "int a;\nint f();\n")

    def test_long_comments(self):
        self.write(".clang-format", "BasedOnStyle: Google\nReflowComments: false\n")
        self.write("a.cc", "// " + "x " * 48 + "x\nint a;\n")  # 100 columns
        self.assertEqual(self.run_gate(formatter.main, self.root)[0], 0)
        self.write("b.cc", "int a;\n// " + "x " * 49 + "\n")
        status, text = self.run_gate(formatter.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("b.cc:2: a comment of 101 columns", text)
        self.assertNotIn("a.cc", text)

    def test_no_style(self):
        self.write("a.cc", "int a;\n")
        self.assertEqual(self.run_gate(formatter.main, self.root)[0], 1)


class FirstPage(GateTest):
    def test_the_limit(self):
        self.write("README.md", "a\n" * first_page.LINES)
        self.assertEqual(self.run_gate(first_page.main, self.root)[0], 0)
        self.write("README.md", "a\n" * (first_page.LINES + 1))
        status, text = self.run_gate(first_page.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("README.md:101: 101 lines", text)


class Sentences(GateTest):
    def found(self, file, text):
        self.write(file, text)
        return list(sentences.find(self.root, file))

    def test_beginnings(self):
        self.assertEqual(self.found("a.cc", "// Of course. The bytes of a block.\nint a;  // That is so. Those blocks, of two.\n"), [])
        for word in ("Of", "That of", "Those of", "These of"):
            self.assertEqual(self.found("a.cc", f"// Sends.\n//\n// Waits. {word} two nodes the lower waits.\nint a;\n"),
                             [f"a.cc:3: begins with '{word}': {word} two nodes the lower waits."])
        self.assertIn("begins with 'Of'", self.found("a.h", "int a;  // Of two nodes\n        // the lower.\n")[0])

    def test_pronouns(self):
        self.assertEqual(sentences.pronouns("It takes those of the root and the first one, if it has these, or more than that."),
                         ["those", "the first one", "these", "that", "It", "it"])
        self.assertEqual(sentences.pronouns("Each rank's part is that of its peer, and longer than those that are sent."), ["that of", "those"])
        self.assertEqual(sentences.pronouns("A link that fails is one of two; that link ends its message, that is, these bytes."), [])
        many = "The node sends its blocks and those of its peer, after the first one, if the peer has these.\n"
        self.assertIn("a.md:3: points back by those, the first one, these: The node", self.found("a.md", f"# Of\n\n{many}")[0])
        self.assertEqual(self.found("a.md", many.replace("those of", "the blocks of")), [])

    def test_what_is_not_read(self):
        for text in ("```\nOf two.\n```\n", "    Of two.\n", "# Of two\n", "`Of two.`\n", "<!-- Of two. -->\n"):
            self.assertEqual(self.found("a.md", text), [])
        self.assertEqual(self.found("a.cc", 'const char* a = "// Of two.";\n'), [])
        self.assertEqual(len(self.found("a.md", "| a | Of two. |\n\n- One.\n- Of three.\n")), 2)

    def test_printed_pages(self):
        self.write("docs/results/a.md", "Of two.\n")
        self.assertEqual(self.run_gate(sentences.main, self.root)[0], 0)
        self.write("docs/a.md", "Of two.\n")
        status, text = self.run_gate(sentences.main, self.root)
        self.assertEqual(status, 1)
        self.assertIn("docs/a.md:1: begins with 'Of'", text)


class Timeouts(GateTest):
    def test_both(self):
        info = self.root / "meson-info"
        info.mkdir()
        (info / "intro-tests.json").write_text('[{"name": "a", "timeout": 30}]')
        self.assertEqual(list(timeouts.find(self.root)), [])
        (info / "intro-tests.json").write_text('[{"name": "a", "timeout": 30}, {"name": "b", "timeout": 0}]')
        self.assertIn("the test 'b' has timeout : 0", list(timeouts.find(self.root))[0])


class Generated(GateTest):
    def build(self, order):
        self.write("build.ninja", "rule make\n  command = echo > $out\nrule use\n  command = echo o: made.h > o.d && echo > $out\n"
                                  f"  depfile = o.d\n  deps = gcc\nbuild made.h: make\nbuild o: use {order}\n")
        subprocess.run(["ninja", "-C", self.root, "made.h", "o"], check=True, stdout=subprocess.DEVNULL)
        return list(generated.find(self.root))

    def test_both(self):
        self.assertEqual(self.build("|| made.h"), [])
        self.assertIn("o includes made.h and does not depend on it", self.build("")[0])

    def test_no_build(self):
        self.assertIn("ninja -t missingdeps says", list(generated.find(self.root))[0])


class Words(GateTest):
    def setUp(self):
        super().setUp()
        self.write("tests/a/page.py", "")
        self.write("tests/a/meson.build", "executable('a', 'a.cc')\n")
        self.page("docs/results/a.md", "tests/a/page.py --write build/tests/a/a", 10)
        self.page("docs/algorithms/b.md", "build/tests/a/a >docs/algorithms/b.md", 10)
        self.write("docs/results/README.md", "# Results\n" + 8 * "word ")
        self.write("docs/c.md", "# Page\n" + 8 * "word ")
        self.write("README.md", "not in docs\n")

    def page(self, file, command, count):
        """A printed page of so many words."""
        text = f"# Page\n\nWritten by `{command}`.\n\n"
        self.write(file, text + (count - len(text.split())) * "| ")

    def limits(self, **limits):
        kept = mock.patch.multiple(words, **limits)
        kept.start()
        self.addCleanup(kept.stop)

    def fails(self, *expected):
        status, text = self.run_gate(words.main, self.root)
        self.assertEqual(status, 1, text)
        for piece in expected:
            self.assertIn(piece, text)

    def test_counts(self):
        self.write("docs/results/more.json", "no page")
        status, text = self.run_gate(words.main, self.root)
        self.assertEqual(status, 0, text)
        lines = [line.split() for line in text.splitlines()[1:]]
        self.assertEqual(lines, [["docs", "1", "0", "10", "0", "10"], ["docs/algorithms", "1", "10", "0", "0", "10"],
                                 ["docs/results", "2", "10", "10", "0", "20"], ["all", "4", "20", "20", "0", "40"]])
        self.write("docs/c.md", "# Page\n" + 9 * "word ")
        self.assertEqual(self.run_gate(words.main, self.root, "1")[1], "    11 docs/c.md\n")

    def test_other_pages(self):
        self.write("docs/results/more.txt", "a page")
        self.fails("docs/results/more.txt: pages are .md files")

    def test_what_people_wrote(self):
        self.assertEqual(words.written("# One two\n\n- three `four`\n\n    code\n    more\n\n```\n$ a\n```\n<!-- b -->\nfive\n"), 7)
        self.assertEqual(words.written("one\n<!-- a: printed by b -->\n| x |\n<!-- end of a -->\ntwo\n"), 2)
        self.assertEqual(words.written("1. one\n\n    - two three\n"), 5)

    def test_limits(self):
        self.limits(MAX_WORDS=40, MAX_PRINTED=10, MAX_WRITTEN=20)
        self.assertEqual(self.run_gate(words.main, self.root)[0], 0)
        self.page("docs/results/a.md", "tests/a/page.py", 11)
        self.fails("docs/results/a.md:1: 11 words, a printed page has at most 10", "docs/: 41 words, at most 40 are allowed")
        self.page("docs/results/a.md", "tests/a/page.py", 8)
        self.write("docs/c.md", "# Page\n" + 9 * "word ")
        self.fails("docs/: people wrote 21 words, at most 20 are allowed")
        self.assertNotIn("at most 40", self.run_gate(words.main, self.root)[1])

    def test_printed_pages_say_so(self):
        for text in ("# Page\n\nPrinted by `tests/a/page.py`.\n", "# Page\n\nA table. Written by `tests/a/page.py`.\n", ""):
            self.write("docs/results/a.md", text)
            self.fails("docs/results/a.md:3: expected 'Written by `COMMAND`' below the title")

    def test_programs_exist(self):
        for program in ("tests/a/pages.py", "build/tests/a/b", "build/tests/b/a"):
            self.page("docs/c.md", f"{program} --write", 10)
            self.fails(f"docs/c.md:3: 'Written by `{program}`', which is no program of this tree")
        self.page("docs/c.md", "build-m3/tests/a/a", 10)
        self.assertEqual(self.run_gate(words.main, self.root)[0], 0)

    def test_printed_parts(self):
        self.limits(MAX_PRINTED=12, MAX_WRITTEN=30)
        begin, end = "<!-- part: printed by tests/a/page.py --write -->\n", "<!-- end of part -->\n"
        self.write("docs/c.md", f"# Page\n{begin}{12 * '| '}{end}")
        self.assertEqual(self.run_gate(words.main, self.root)[0], 0)
        self.assertEqual(words.look(self.root, "docs/c.md")[:2], (12, 2))
        self.write("docs/c.md", f"# Page\n{begin}{13 * '| '}{end}")
        self.fails("docs/c.md: 13 printed words, a page has at most 12")
        self.write("docs/c.md", f"# Page\n{begin}| ")
        self.fails("docs/c.md: a part that is printed has no end; expected '<!-- end of NAME -->'")
        self.write("docs/c.md", f"# Page\n{begin.replace('page.py', 'pages.py')}{end}")
        self.fails("docs/c.md: the part part is printed by 'tests/a/pages.py', which is no program of this tree")

    def test_no_page(self):
        shutil.rmtree(self.root / "docs")
        self.fails("docs/: there is no page")


@unittest.skipUnless(shutil.which("clang-tidy"), "clang-tidy is of ./setup.sh tidy")
class Tidy(GateTest):
    def test_both(self):
        self.write(".clang-tidy", "Checks: '-*,bugprone-sizeof-expression,readability-identifier-naming'\nCheckOptions:\n"
                                  "  - {key: readability-identifier-naming.FunctionCase, value: lower_case}\n")
        self.write("a.cc", "int good() { return 1; }\n")
        self.write("build/compile_commands.json", json.dumps([
            {"directory": str(self.root), "file": "a.cc", "command": "c++ -std=c++20 -Wno-restrict -Werror -O3 -c a.cc"}]))
        arguments = [str(self.root), str(self.root / "build")]
        self.assertEqual(self.run_gate(tidy.main, arguments)[0], 0)
        self.write("a.cc", "\nint BadName() { return 1; }\n")
        status, text = self.run_gate(tidy.main, arguments)
        self.assertEqual(status, 1)
        self.assertIn("a.cc:2: invalid case style for function 'BadName'", text)


if __name__ == "__main__":
    unittest.main()
