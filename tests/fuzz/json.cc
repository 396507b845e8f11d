// Fuzz target: any text is refused as JSON, or is a value that stays the same after writing.

#include "tools/common/json.h"

#include <string>

#include "tests/fuzz/expect.h"

namespace espalier::fuzz {

void run(Input& input) {
  const auto value = tools::Json::parse(input.text());
  if (!value) return;
  const std::string text = value->dump(-1, true);
  for (const char c : text) expect(c >= ' ' && c < 0x7f, "the text is ASCII, on one line");
  const auto again = tools::Json::parse(text);
  expect(again && again->dump(-1, true) == text, "what is written is the same value");
  if (const tools::Json* events = value->find("traceEvents")) (void)events->items();
}

}  // namespace espalier::fuzz
