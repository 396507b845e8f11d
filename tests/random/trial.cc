#include "tests/random/trial.h"

#include <algorithm>

#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"
#include "tests/mutation/interpreter.h"
#include "tests/random/breaks.h"
#include "tests/random/brute.h"
#include "tests/random/encode.h"
#include "tests/random/far.h"
#include "tests/random/plan.h"

namespace espalier::random {
namespace {

// No proof here needs more; a schedule that is not proven for every N at once is given up sooner.
constexpr std::int64_t kMaxTrialInstances = std::int64_t{1} << 21;

// A message without numbers and names of nodes, for a table.
std::string without_numbers(const std::string& line) {
  std::string text;
  for (const char letter : line) {
    const bool digit = letter >= '0' && letter <= '9';
    if (!digit) {
      text += letter;
    } else if (text.empty() || text.back() != '#') {
      text += '#';
    }
  }
  for (const char* node :
       {"rank # (row #, column #)", "router # (level #)", "router #", "rank #"}) {
    for (std::size_t position = text.find(node); position != std::string::npos;
         position = text.find(node)) {
      text.replace(position, std::string(node).size(), "a node");
    }
  }
  return text;
}

class Judge {
 public:
  Judge(const Plan& plan, Dice& dice, Trial& trial) : plan_(plan), dice_(dice), trial_(trial) {}

  Opinion judge(const Programs& programs) {
    Opinion opinion;
    for (const Program& program : programs) {
      if (check_program(program) != Status::kOk) opinion.answer = Answer::kUnloaded;
    }
    if (opinion.answer == Answer::kUnloaded) return opinion;
    verify::VerifyOptions options{.links = plan_.links, .max_instances_total = kMaxTrialInstances};
    const bool at_once = trial_.seed % kEach != 0 && plan_.pipelined;
    if (at_once) options.method = verify::Method::kPeriodic;
    const verify::Verdict verdict = verify::verdict_of(*plan_.topology, programs, options);
    const bool unproven = verdict.counterexample.too_large || (at_once && !verdict.limited.empty());
    opinion.answer = verdict.for_all ? Answer::kAccepted
                     : verdict.valid ? Answer::kLimited
                     : unproven      ? Answer::kUnproven
                                     : Answer::kRefused;
    const bool why = verdict.valid || (unproven && !verdict.limited.empty());
    opinion.line = why ? verdict.limited : verdict.counterexample.message;
    opinion.reason = without_numbers(opinion.line);
    opinion.wrong = find_wrong(programs, verdict);
    return opinion;
  }

 private:
  // Every N to be run; the N that the verifier found to fail comes first.
  std::vector<std::int64_t> choose_blocks(const verify::Verdict& verdict) {
    std::vector<std::int64_t> all;
    std::int64_t most = kMost;
    if (verdict.valid && !verdict.for_all) most = std::min(most, verdict.proven_blocks);
    const auto add = [&](std::int64_t blocks) {
      const bool known = std::find(all.begin(), all.end(), blocks) != all.end();
      if (blocks >= 1 && blocks <= most && allows(plan_, blocks) && !known) all.push_back(blocks);
    };
    if (!verdict.valid) add(verdict.counterexample.blocks);
    const std::int64_t few = verdict.valid ? kAll : kAllRefused;
    const std::int64_t in_turn = verdict.valid && dice_.one_in(kWhole) ? kMost : few;
    for (std::int64_t blocks = 1; blocks <= in_turn; ++blocks) add(blocks);
    // The N at which the proof stopped, and its neighbours.
    for (const std::int64_t by : {-1, 0, 1}) add(verdict.proven_blocks + by);
    for (int some = verdict.valid ? kSome : kSomeRefused; some > 0; --some) {
      add(dice_.number(kAll + 1, kMost));
    }
    // With a residue, the last N that occurs.
    std::int64_t last = most;
    while (last > 1 && !allows(plan_, last)) --last;
    add(last);
    return all;
  }

  std::string find_wrong(const Programs& programs, const verify::Verdict& verdict) {
    Brute brute(*plan_.topology, programs, plan_.links);
    bool in_place = false;
    for (const std::int64_t blocks : choose_blocks(verdict)) {
      in_place = verdict.valid && verdict.in_place && !in_place;
      ++trial_.runs;
      std::string wrong = brute.check(blocks, in_place ? InPlace::kYes : InPlace::kNo);
      if (!wrong.empty()) return wrong;
    }
    for (const std::int64_t blocks : {std::int64_t{2}, std::int64_t{dice_.number(3, kMaxSkewed)}}) {
      if (!allows(plan_, blocks)) continue;
      if (verdict.valid && !verdict.for_all && blocks > verdict.proven_blocks) continue;
      trial_.skews += kSkews;
      const mutation::Play play = mutation::unroll(*plan_.topology, programs, blocks);
      std::string wrong = mutation::interpret(play, kSkews);
      if (!wrong.empty()) return "N = " + std::to_string(blocks) + ", skewed: " + wrong;
    }
    if (!plan_.pipelined || !verdict.for_all) return {};
    ++trial_.windows;
    return check_far(programs, brute, dice_);
  }

  const Plan& plan_;
  Dice& dice_;
  Trial& trial_;
};

std::vector<std::uint8_t> file_of(const Plan& plan, const Programs& programs) {
  ScheduleFileWriter writer(plan.topology->spec(), plan.topology->digest(), plan.topology->ranks(),
                            static_cast<std::uint32_t>(programs.size()));
  bool good = true;
  for (const Program& program : programs) good = good && writer.add(program) == Status::kOk;
  std::vector<std::uint8_t> file;
  if (!good || writer.finish(file) != Status::kOk) file.clear();
  return file;
}

}  // namespace

bool Attempt::accepted_wrong() const {
  const bool accepted = opinion.answer == Answer::kAccepted || opinion.answer == Answer::kLimited;
  return accepted && !opinion.wrong.empty();
}

bool Trial::accepted_wrong() const {
  const auto bad = [](const Attempt& attempt) { return attempt.accepted_wrong(); };
  return std::any_of(broken.begin(), broken.end(), bad);
}

bool Trial::made_wrong() const { return whole.answer == Answer::kUnloaded || !whole.wrong.empty(); }

Trial run_trial(std::uint64_t seed) {
  Trial trial;
  trial.seed = seed;
  Dice dice(seed);
  const std::optional<Plan> plan = make_plan(dice);
  if (!plan) return trial;
  std::optional<Encoded> encoded = encode(*plan, dice);
  if (!encoded) return trial;
  trial.pipelined = plan->pipelined;
  trial.differ = encoded->differ();
  trial.name = std::string(collective_name(plan->collective)) + " on " + plan->topology->spec() +
               ", window " + std::to_string(plan->window);
  Judge judge(*plan, dice, trial);
  trial.whole = judge.judge(encoded->programs);
  if (!trial.whole.wrong.empty()) trial.file = file_of(*plan, encoded->programs);
  if (trial.whole.answer != Answer::kAccepted) return trial;
  const bool longer = dice.one_in(kLonger);
  for (const bool all : {false, true}) {
    if (all && !longer) continue;
    Programs programs = encoded->programs;
    const Break what = all ? lengthen_windows(programs) : break_one(programs, dice);
    if (what.kind.empty()) continue;
    Attempt attempt{what.kind, what.where, judge.judge(programs), {}};
    if (attempt.accepted_wrong()) attempt.file = file_of(*plan, programs);
    trial.broken.push_back(attempt);
  }
  return trial;
}

}  // namespace espalier::random
