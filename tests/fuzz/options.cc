// Fuzz target: the words of a command line, one per line, are refused with one reason, or give
// options in their ranges. The first byte tells the reader: espalier-node, espalier-gateway, a
// number of the tools, or --counts.

#include "firmware/gateway/options.h"

#include <algorithm>
#include <string>
#include <vector>

#include "espalier/internal/base/limits.h"
#include "firmware/node/boot_options.h"
#include "planner/workload/counts.h"
#include "tests/fuzz/expect.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/options/workload_options.h"

namespace espalier::fuzz {
namespace {

std::vector<std::string> words_of(const Input& input) {
  std::vector<std::string> words;
  const unsigned char* const end = input.rest() + input.left();
  for (const unsigned char* from = input.rest(); from < end;) {
    const unsigned char* const to = std::find(from, end, '\n');
    words.emplace_back(from, to);
    from = to + (to < end ? 1 : 0);
  }
  return words;
}

void check(const node::BootOptions& options) {
  if (options.help || options.lists_providers || options.nodes.empty()) return;
  expect(options.window >= 1 && options.window <= kMaxWindow && options.deadline_ns > 0,
         "numbers are in their ranges");
  expect(options.check_only || options.controls.size() == options.nodes.size(),
         "a node has its control channel");
  expect(options.links.empty() || options.links.size() == options.nodes.size(),
         "a node has its links");
  expect(options.schedules.size() <= kMaxPrograms, "a node has room for its programs");
}

void read_numbers(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    try {
      expect(tools::byte_count("--bytes", word, 1u << 30) <= 1u << 30, "bytes are in their range");
    } catch (const tools::Failure&) {
    }
    try {
      const double number = tools::real_number("--alpha", word, -1, 1e6);
      expect(number >= -1 && number <= 1e6, "a number is in its range");
    } catch (const tools::Failure&) {
    }
  }
}

void read_counts(Input& input) {
  reference::ReferenceInput what{.collective = static_cast<Collective>(input.below(16)),
                                 .ranks = 1 + input.below(20),
                                 .op = {.type = Type::kBytes}};
  const std::string text(reinterpret_cast<const char*>(input.rest()), input.left());
  if (text.starts_with('@')) return;  // a file
  try {
    tools::set_counts(text, what);
  } catch (const tools::Failure&) {
    return;
  }
  expect(what.counts.size() == unequal_entries(what.collective, what.ranks),
         "each part has a count");
  expect(what.bytes <= kMaxMessageBytes, "a message has its limit");
}

}  // namespace

void run(Input& input) {
  const unsigned reader = input.below(4);
  if (reader == 3) {
    read_counts(input);
    return;
  }
  const std::vector<std::string> words = words_of(input);
  if (reader == 0) {
    const auto options = node::parse_options(words);
    expect(options || !options.error().message.empty(), "a refusal has a reason");
    if (options) check(*options);
  } else if (reader == 1) {
    const auto options = gateway::parse_options(words);
    expect(options || !options.error().message.empty(), "a refusal has a reason");
    if (options && !options->help) check(options->node);
  } else {
    read_numbers(words);
  }
}

}  // namespace espalier::fuzz
