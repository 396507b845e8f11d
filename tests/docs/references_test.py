#!/usr/bin/python3
"""references_test.py: what references.py takes, and what it must refuse."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import references

SOURCE = r'''
#pragma once
// gone(): a comment defines nothing.
#define MACRO(x) macro_body(x)
namespace room {
inline constexpr std::uint32_t kLimit = 1'000;
enum class Colour : std::uint8_t { kRed = 1, kGreen };
struct Pair {
  int left = helper(1), right{2};
  [[nodiscard]] bool same() const { return called(left) == right; }
};
class Machine {
 public:
  Machine(int size) : size_{size}, text_("}; wrong();") {}
  [[nodiscard]] std::vector<std::function<void(int)>> calls(int a = 1) const;
  virtual void post() = 0;

 private:
  struct Step {
    int number = 0;
  };
  Step step(std::uint8_t counter);
  int size_ = 0;
};
template <typename T>
T plan(const T& group) {
  const auto local = [&](int x) { return inner(x); };
  return local(group);
}
template <typename T, typename U = std::vector<T>>
T choose(const U& all) {
  return all[0];
}
int last(int number) {
  return number;
}
static_assert(sizeof(Pair) == 8);
}  // namespace room
void room::Machine::post() {
  if (ready()) return;
  elsewhere();
}
'''


class References(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "room").mkdir()
        (self.root / "build").mkdir()
        (self.root / "room/machine.h").write_text(SOURCE)
        (self.root / "room/tool.py").write_text("class Tool:\n    def run(self):\n        helper()\n")
        (self.root / "room/setup.sh").write_text("fail() {\n  exit 1\n}\n")
        (self.root / "room/schedule.proto").write_text(
            "message Action {\n  Kind kind = 1;\n  repeated uint32 peers = 2;\n}\nenum Kind {\n  SEND = 1;\n}\n")

    def run_on(self, text, *options):
        page = self.root / "page.md"
        page.write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = references.main([*options, str(self.root), str(page)])
        return status, printed.getvalue(), page.read_text()

    def resolves(self, reference):
        return self.run_on(f"See `{reference}`.")[0] == 0

    def test_what_is_defined(self):
        for name in ("kLimit", "Colour", "Colour::kGreen", "Pair", "Pair::same", "Pair::left", "Machine", "Machine::Machine",
                     "Machine::calls", "Machine::post", "Machine::Step", "Machine::Step::number", "Machine::step", "plan", "choose", "last"):
            self.assertTrue(self.resolves(f"room/machine.h:{name}"), name)
        for name in ("Tool", "run"):
            self.assertTrue(self.resolves(f"room/tool.py:{name}"), name)
        for reference in ("room/setup.sh:fail", "room/schedule.proto:Action.peers", "room/schedule.proto:Kind.SEND",
                          "room/schedule.proto:Action", "room/machine.h", "room/"):
            self.assertTrue(self.resolves(reference), reference)

    def test_what_is_not(self):
        for name in ("gone", "macro_body", "MACRO", "helper", "called", "wrong", "inner", "ready", "elsewhere", "local", "calls",
                     "same", "Machine::retire", "Step", "step", "Machine::ready", "Pair::called", "kRed", "sizeof", "post"):
            self.assertFalse(self.resolves(f"room/machine.h:{name}"), name)
        for reference in ("room/machine.cc:Machine", "room/machine.cc", "room/other/", "machine.h:Machine", "room/tool.py:helper",
                          "room/setup.sh:exit", "room/schedule.proto:Action.SEND", "room:Machine", "tools.cc:run"):
            self.assertFalse(self.resolves(reference), reference)

    def test_no_reference_is_a_failure(self):
        self.assertEqual(self.run_on("Nothing `here` and `build/x.h:y`.")[0], 1)
        self.assertEqual(self.run_on("```\n`room/machine.h:plan`\n```\n")[0], 1)

    def test_all_pages(self):
        (self.root / "room/README.md").write_text("`room/machine.h:gone`")
        (self.root / "CHANGELOG.md").write_text("`room/removed.h`")
        (self.root / "build/x.md").write_text("`room/removed.h`")
        (self.root / "page.md").write_text("`room/machine.h:plan`, `room/NAME/board.h`")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(references.main([str(self.root), "--all"]), 1)
        self.assertEqual(len(printed.getvalue().splitlines()), 1, printed.getvalue())

    def test_moved(self):
        (self.root / "base").mkdir()
        (self.root / "room/machine.h").rename(self.root / "base/machine.h")
        (self.root / "base/machine.cc").write_text("int plan(int group) { return group; }\n")
        status, printed, _ = self.run_on("`room/machine.h:plan`")
        self.assertEqual(status, 1)
        self.assertIn("found in base/machine.cc, base/machine.h", printed)
        status, _, page = self.run_on("`room/machine.h:plan` and `room/machine.h`", "--write")
        self.assertEqual((status, page), (0, "`base/machine.h:plan` and `base/machine.h`"))
        (self.root / "base/other.h").write_text("int plan(int group);\n")
        status, _, page = self.run_on("`room/machine.h:plan`", "--write")
        self.assertEqual((status, page), (1, "`room/machine.h:plan`"))
        status, _, page = self.run_on("`room/machine.h:Machine::retire`", "--write")
        self.assertEqual((status, page), (1, "`room/machine.h:Machine::retire`"))


if __name__ == "__main__":
    unittest.main()
