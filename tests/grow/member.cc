// A process of tests/grow/grow.py: a member of a job that takes newcomers, or a newcomer.
//
// grow-member once NEWCOMERS KILLED VICTIM DELAY [JOIN]    one accept(), and a kill meanwhile
// grow-member rounds STOP [JOIN]                      a kill, rejoin() and accept() again and again
// grow-member restarts STOP SIZE             the same, with kills at any moment; SIZE: of the job
//
// NEWCOMERS: so many come. KILLED: none, member or newcomer. VICTIM: this process is killed DELAY
// us after it begins accept(), or as a newcomer its join(): a rank, or - for not this one. STOP:
// the rounds end once this file exists. JOIN: FOLDER,JOB,RANK,SIZE; otherwise as the environment
// says. GROW_PROVIDER and GROW_DEADLINE_MS: JoinOptions::provider and deadline.
//
// Lines: ready | grown SIZE | old TEXT | cause STATUS DETECTOR PEER | final RANK SIZE
// | round NUMBER | error TEXT.

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "espalier/communicator.h"

namespace {

using espalier::Communicator;
using espalier::Op;
using espalier::Result;

// How long to wait for newcomers that come, and for one that may be dead.
constexpr std::chrono::seconds kHangTime(100), kNewcomerTime(5);

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

[[noreturn]] void end_by_error(const std::string& text) {
  say("error " + text);
  std::_Exit(1);
}

std::uint32_t number(const std::string& text) {
  return static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

espalier::JoinOptions options_of(const std::string& join) {
  espalier::JoinOptions options;
  if (const char* provider = std::getenv("GROW_PROVIDER")) options.provider = provider;
  const char* const deadline = std::getenv("GROW_DEADLINE_MS");
  options.deadline = std::chrono::milliseconds(deadline == nullptr ? 4000 : number(deadline));
  if (join.empty()) return options;
  std::istringstream words(join);
  std::string rank, size;
  std::getline(words, options.bootstrap.folder, ',');
  std::getline(words, options.bootstrap.job, ',');
  std::getline(words, rank, ',');
  std::getline(words, size);
  options.bootstrap.rank = number(rank);
  options.bootstrap.size = number(size);
  return options;
}

Communicator join_or_end(const espalier::JoinOptions& options) {
  auto world = join(options);
  if (!world) end_by_error("join: " + world.error().message);
  return *std::move(world);
}

// The sum of ones over all ranks, which must be their number.
Result<void> count_ranks(Communicator& on) {
  std::array<std::uint32_t, 1> one = {1};
  auto done = on.allreduce(one, Op::kSum);
  if (done && one[0] != on.size()) end_by_error("wrong sum " + std::to_string(one[0]));
  return done;
}

void say_cause(const Communicator& of) {
  const espalier::Cause cause = of.cause();
  if (cause.status == espalier::Status::kOk) end_by_error("a failure without a cause");
  say("cause " + std::to_string(static_cast<int>(cause.status)) + ' ' +
      std::to_string(cause.detector) + ' ' + std::to_string(cause.peer));
}

// Runs collectives until a rank has died, says the cause, and returns the survivors.
Communicator survive(Communicator& on) {
  while (count_ranks(on)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  say_cause(on);
  auto rest = on.rejoin();
  if (!rest) end_by_error("rejoin: " + rest.error().message);
  return *std::move(rest);
}

void die_after(std::uint32_t us) {
  std::thread([us] {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    kill(getpid(), SIGKILL);
  }).detach();
}

// The first collective of a communicator that has newcomers tells them which accept() made it: 1
// or 2.
Result<std::uint32_t> agree_on_stage(Communicator& on, std::uint32_t stage) {
  std::array<std::uint32_t, 1> most = {stage};
  auto done = on.allreduce(most, Op::kMax);
  if (!done) return espalier::fail(done.error());
  return most[0];
}

void finish(Communicator& on) {
  if (auto done = count_ranks(on); !done) end_by_error("at the end: " + done.error().message);
  say("final " + std::to_string(on.rank()) + ' ' + std::to_string(on.size()));
  if (auto left = on.leave(); !left) end_by_error("leave: " + left.error().message);
}

// Goes on after the first accept(), until no process dies any more.
Communicator go_on(Communicator grown, const std::string& killed) {
  const auto stage = agree_on_stage(grown, 1);
  if (!stage) {
    if (killed == "none") end_by_error("without a kill: " + stage.error().message);
    return survive(grown);
  }
  return *stage == 1 && killed != "none" ? survive(grown) : std::move(grown);
}

void run_newcomer(const std::vector<std::string>& words) {
  if (words[3] != "-") die_after(number(words[4]));
  auto grown = join_or_end(options_of(""));
  say("grown " + std::to_string(grown.size()));
  Communicator last = go_on(std::move(grown), words[2]);
  finish(last);
}

void run_once(const std::vector<std::string>& words) {
  const std::uint32_t newcomers = number(words[1]);
  const std::string& killed = words[2];
  Communicator world = join_or_end(options_of(words.size() > 5 ? words[5] : ""));
  if (auto done = count_ranks(world); !done) end_by_error(done.error().message);
  say("ready");
  if (words[3] != "-" && number(words[3]) == world.rank()) die_after(number(words[4]));
  auto grown = world.accept(newcomers, killed == "newcomer" ? kNewcomerTime : kHangTime);
  if (grown) {
    say("grown " + std::to_string(grown->size()));
    Communicator last = go_on(*std::move(grown), killed);
    finish(last);
    return;
  }
  say("old " + grown.error().message);
  if (killed == "member") {
    world = survive(world);
  } else if (auto done = count_ranks(world); !done) {
    end_by_error("the old communicator: " + done.error().message);
  }
  auto later = world.accept(newcomers - (killed == "newcomer" ? 1 : 0), kHangTime);
  if (!later) end_by_error("the second accept: " + later.error().message);
  if (auto stage = agree_on_stage(*later, 2); !stage) end_by_error(stage.error().message);
  finish(*later);
}

// Each round: a member is killed from outside, the others rejoin, and a newcomer takes its place.
void run_rounds(const std::vector<std::string>& words) {
  Communicator world = join_or_end(options_of(words.size() > 2 ? words[2] : ""));
  const std::uint32_t whole = world.size();
  for (std::uint32_t round = 0, said = UINT32_MAX;;) {
    std::array<std::uint32_t, 2> state = {
        world.rank() == 0 && std::filesystem::exists(words[1]) ? 1U : 0U, round};
    const auto done = world.allreduce(state, Op::kMax);
    if (done && state[0] != 0) break;
    if (done) {
      round = state[1];
      if (world.rank() == 0 && std::exchange(said, round) != round) {
        say("round " + std::to_string(round));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    auto rest = world.rejoin();
    if (!rest) end_by_error("rejoin: " + rest.error().message);
    auto grown = rest->accept(whole - rest->size(), std::chrono::seconds(60));
    if (!grown) end_by_error(grown.error().message);
    world = *std::move(grown);
    ++round;
  }
  finish(world);
}

// Rejoins and accepts until the communicator is whole again. Processes may die meanwhile.
Communicator become_whole(Communicator world, std::uint32_t size) {
  bool has_failed = true;
  while (has_failed || world.size() < size) {
    if (has_failed) {
      auto rest = world.rejoin();
      if (!rest) end_by_error("rejoin: " + rest.error().message);
      world = *std::move(rest);
    }
    if (world.size() < size) {
      auto grown = world.accept(size - world.size(), std::chrono::seconds(60));
      if (grown) world = *std::move(grown);
    }
    has_failed = !count_ranks(world);
  }
  return world;
}

void run_restarts(const std::vector<std::string>& words) {
  const std::uint32_t size = number(words[2]);
  Communicator world = join_or_end(options_of(""));
  std::printf("process %d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  while (true) {
    std::array<std::uint32_t, 1> stops = {
        world.rank() == 0 && std::filesystem::exists(words[1]) ? 1U : 0U};
    if (!world.allreduce(stops, Op::kMax)) {
      world = become_whole(std::move(world), size);
      say("whole");
    } else if (stops[0] != 0) {
      return finish(world);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_newcomer = std::getenv("ESPALIER_JOIN") != nullptr;
  if (words.size() >= 5 && words[0] == "once") {
    is_newcomer ? run_newcomer(words) : run_once(words);
  } else if (words.size() == 3 && words[0] == "restarts") {
    run_restarts(words);
  } else if (words.size() >= 2 && words[0] == "rounds") {
    run_rounds(words);
  } else {
    std::fprintf(stderr, "grow-member: wrong words; expected those at the top of member.cc\n");
    return 2;
  }
  return 0;
}
