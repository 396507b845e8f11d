#include "tools/options/workload_options.h"

#include <algorithm>
#include <string_view>

#include "base/splitmix64.h"
#include "planner/make/blocks.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"

namespace espalier::tools {
namespace {

constexpr std::string_view kRandom = "random:";

// The numbers between commas and white space.
std::vector<std::uint64_t> parse_list(const std::string& text) {
  std::vector<std::uint64_t> counts;
  constexpr const char* kBetween = ", \t\r\n";
  for (std::size_t begin = text.find_first_not_of(kBetween); begin != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    counts.push_back(
        whole_number("--counts", text.substr(begin, end - begin), 0, kMaxMessageBytes));
    begin = text.find_first_not_of(kBetween, end);
  }
  return counts;
}

// random:SEED:MAX
std::vector<std::uint64_t> make_random(const std::string& text, std::uint64_t entries) {
  const std::size_t colon = text.find(':', kRandom.size());
  if (colon == std::string::npos) {
    bad_input("--counts '" + one_line(text) + "' has no maximum; expected random:SEED:MAX");
  }
  const std::uint64_t seed = whole_number(
      "--counts random:SEED", text.substr(kRandom.size(), colon - kRandom.size()), 0, ~0ull);
  const std::uint64_t max =
      whole_number("--counts random:SEED:MAX", text.substr(colon + 1), 0, kMaxMessageBytes);
  std::vector<std::uint64_t> counts(entries);
  for (std::uint64_t k = 0; k < entries; ++k) {
    counts[k] = splitmix64(splitmix64(seed) + k) % (max + 1);
  }
  return counts;
}

}  // namespace

void add_operator_options(Command command, OperatorOptions& options) {
  command.text(
      "--op", options.op,
      "Operator of a reduction or scan; affine does not commute, and has a type of its own; "
      "default: sum");
  command.text("--type", options.type, "Element type of a reduction or scan; default: f32");
}

Operator operator_of(Collective collective, const OperatorOptions& options) {
  if (!reference::combines(collective)) {
    const char* given = !options.op.empty() ? "--op" : !options.type.empty() ? "--type" : nullptr;
    if (given == nullptr) return {};
    bad_input(std::string(collective_name(collective)) + " combines nothing; expected no " + given);
  }
  const Operator op =
      or_bad_input(reference::parse_operator(options.op_or_default(), options.type_or_default()));
  if (op.op == Op::kCustom && !options.type.empty()) {
    bad_input("operator '" + options.op + "' has a type of its own; expected no --type");
  }
  return op;
}

reference::ReferenceInput case_of(const Program& program, const OperatorOptions& options) {
  reference::ReferenceInput what{
      .collective = program.collective, .ranks = program.ranks, .root = program.root};
  what.op = operator_of(what.collective, options);
  if (program.needs_commutative && !what.op.commutes) {
    bad_input("operator '" + options.op + "' does not commute, and " +
              collective_name(what.collective) + " by " + one_line(program.algorithm) +
              " with root " + std::to_string(what.root) +
              " does not keep the order of ranks; expected another algorithm, ranks as numbered "
              "(--embedding none), or sum, product, ...");
  }
  return what;
}

void add_counts_option(Command command, std::string& text) {
  command
      .text("--counts", text,
            "Elements of each rank's part instead of --bytes, in order of ranks: 3,0,5,1, @FILE "
            "with such numbers, or random:SEED:MAX. All-to-all: a row for each origin. Elements "
            "are bytes, in a reduce-scatter of --type")
      .excludes(command.option("--bytes"));
}

void set_counts(const std::string& text, reference::ReferenceInput& what) {
  const std::string name = collective_name(what.collective);
  if (!counts_per_rank(what.collective)) {
    bad_input("--counts is for scatter, gather, allgather, reduce-scatter and all-to-all; " +
              with_article(name) + " has one message: expected --bytes");
  }
  const std::uint64_t entries = unequal_entries(what.collective, what.ranks);
  if (text.starts_with(kRandom)) {
    what.counts = make_random(text, entries);
  } else {
    what.counts =
        parse_list(text.starts_with('@') ? read_given(text.substr(1), FileKind::kCounts) : text);
  }
  if (what.counts.size() != entries) {
    std::string expected = std::to_string(entries);
    if (what.collective == Collective::kAllToAll) {
      expected += ", for each of " + counted(what.ranks, "origin") + " a row of " +
                  std::to_string(what.ranks);
    }
    bad_input("--counts has " + counted(what.counts.size(), "number") + ", and " + name + " on " +
              counted(what.ranks, "rank") + " takes " + expected);
  }
  const std::uint64_t largest = *std::max_element(what.counts.begin(), what.counts.end());
  const std::uint64_t max = kMaxMessageBytes / what.ranks / element_bytes(what.op);
  if (largest > max) {
    bad_input("--counts has " + std::to_string(largest) + "; expected at most " +
              counted(max, "element") + " per rank");
  }
  what.bytes = largest * element_bytes(what.op);
}

std::string counts_text(const std::string& text, const std::vector<std::uint64_t>& counts) {
  constexpr std::size_t kMaxPrinted = 16;
  const bool list = !text.starts_with(kRandom) && !text.starts_with('@');
  std::string printed = list ? "" : one_line(text) + " = ";
  for (std::size_t k = 0; k < std::min(counts.size(), kMaxPrinted); ++k) {
    printed += (k == 0 ? "" : ", ") + std::to_string(counts[k]);
  }
  if (counts.size() > kMaxPrinted) printed += ", ... (" + std::to_string(counts.size()) + ")";
  return printed;
}

std::int64_t chosen_blocks(const std::string& text, std::uint64_t most, const Program& program) {
  const auto blocks = static_cast<std::int64_t>(whole_number("--blocks", text, 1, most));
  if (planner::allowed_blocks(program, blocks) == blocks) return blocks;
  const std::string first = std::to_string(planner::allowed_blocks(program, 1));
  const std::string wrong =
      "--blocks " + std::to_string(blocks) + ": the schedule has no such N; expected ";
  if (!planner::cuts_messages(program)) {
    bad_input(wrong + "N = " + first + ", the only one its block table gives");
  }
  bad_input(wrong + "N = " + std::to_string(program.residue) + " mod " +
            std::to_string(program.residue_mod) + ", such as " + first);
}

}  // namespace espalier::tools
