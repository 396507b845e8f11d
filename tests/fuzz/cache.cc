// Fuzz target: whatever a cache file of the communicator has in it, the caller gets a choice that
// keeps the rules, or a verdict, and the file then keeps it. The first byte tells which of the two
// files the rest is.

#include <cstdlib>
#include <fstream>
#include <string>

#include "communicator/cache/cache_file.h"
#include "communicator/cache/chosen_cache.h"
#include "communicator/cache/proven_cache.h"
#include "tests/fuzz/expect.h"
#include "tests/fuzz/folder.h"

namespace espalier::fuzz {
namespace {

using communicator::KeptChoice;
using communicator::Proof;

void write(const std::string& name, const Input& input) {
  static const Folder folder;  // the cache
  expect(setenv("XDG_CACHE_HOME", folder.path().c_str(), 1) == 0, "the host has an environment");
  const std::string path = communicator::cache_path(name);
  expect(!path.empty(), "the cache has a path");
  { const communicator::CacheFile file(path); }  // with its mode
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(input.rest()), static_cast<long>(input.left()));
}

void check(const KeptChoice& choice) {
  expect(!choice.origins.empty(), "a choice has a schedule");
  expect(choice.rows.empty() == (choice.origins.size() == 1), "several schedules have rows");
  expect(choice.rows.size() <= kMaxSelectionRows, "a choice is a selection");
  for (const SelectionRow& row : choice.rows) {
    expect(row.program < choice.origins.size(), "a row has a schedule");
  }
}

// All origins are of this request.
planner::PlanRequest request() {
  planner::PlanRequest wanted{.topology = *topology::parse("complete:4"),
                              .collective = Collective::kAllreduce};
  wanted.algorithm = *planner::find_entry(wanted.collective, "ring");
  return wanted;
}

void obtain_choice(const Input& input) {
  static const planner::PlanRequest wanted = request();
  write("choice", input);
  bool is_kept = false;
  const auto keeps = [&](const KeptChoice& choice) {
    check(choice);
    return is_kept = true;
  };
  const auto choose = []() -> Result<KeptChoice> {
    return KeptChoice{{planner::ChosenOrigin{wanted}}, {}};
  };
  const KeptChoice first = *communicator::obtain_choice("choice", wanted, keeps, choose);
  check(first);
  bool is_anew = false;
  const KeptChoice again = *communicator::obtain_choice("choice", wanted, keeps, [&] {
    is_anew = true;
    return choose();
  });
  expect(!is_anew && is_kept, "a choice is kept");
  expect(again.origins.size() == first.origins.size() && again.rows.size() == first.rows.size(),
         "the same choice is kept");
}

void obtain_proof(Input& input) {
  const std::uint64_t digest = input.word();
  write("proven", input);
  const auto ask = [&](bool& is_anew) {
    return communicator::obtain_proof(digest, [&] {
      is_anew = true;
      return Proof::kValid;
    });
  };
  bool is_anew = false, is_anew_again = false;
  const Proof first = ask(is_anew);
  expect(ask(is_anew_again) == first && !is_anew_again, "a verdict is kept");
}

}  // namespace

void run(Input& input) {
  if (input.below(2) == 0) {
    obtain_choice(input);
  } else {
    obtain_proof(input);
  }
}

}  // namespace espalier::fuzz
