// Fuzz target: any text is refused as JSON, or is a value that stays the same after writing.

#include "tools/common/json.h"

#include <string>

#include "tests/fuzz/expect.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using espalier::fuzz::expect;
  using espalier::tools::Json;
  const auto value = Json::parse({reinterpret_cast<const char*>(bytes), size});
  if (!value) return 0;
  const std::string text = value->dump(-1, true);
  for (const char c : text) expect(c >= ' ' && c < 0x7f, "the text is ASCII, on one line");
  const auto again = Json::parse(text);
  expect(again && again->dump(-1, true) == text, "what is written is the same value");
  if (const Json* events = value->find("traceEvents")) (void)events->items();
  return 0;
}
