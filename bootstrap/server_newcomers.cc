// Newcomers of a job: how its processes and the server agree on them.

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "bootstrap/message.h"
#include "bootstrap/threaded_server.h"

namespace espalier::bootstrap {
namespace {

// Newcomers at once; further ones are refused.
constexpr std::ptrdiff_t kMaxNewcomers = 1024;
// The library's own values, which serve one agreement on the processes of the job.
constexpr const char* kOwnKeys = "espalier.";

}  // namespace

void ThreadedServer::enter(Connection& from, const Message& message) {
  const auto others = std::count_if(connections_.begin(), connections_.end(),
                                    [](const Connection& one) { return one.is_newcomer; });
  if (others >= kMaxNewcomers) {
    refuse(from, counted(kMaxNewcomers, "process") + " wait for accept() already", message.number);
    from.is_over = true;
    return;
  }
  from.is_newcomer = true;
  reply(from, {.kind = Kind::kWelcome}, message.number);
}

void ThreadedServer::request_of_newcomer(Connection& from, const Message& message) {
  switch (message.kind) {
    case Kind::kAccept: from.wish = message.number; return decide_accept();
    case Kind::kMissing: return reply(from, {.kind = Kind::kRanks}, message.number);
    case Kind::kLeave:
      from.is_over = true;
      return reply(from, {.kind = Kind::kDone}, message.number);
    // It was accepted, and the others have failed meanwhile.
    case Kind::kPut:
    case Kind::kFence:
    case Kind::kGet:
    case Kind::kComplete: return refuse(from, outcome_, message.number);
    case Kind::kWithdraw: return;  // only members end accept()
    default: from.is_over = true;
  }
}

void ThreadedServer::accept(Connection& from, const Message& message) {
  const auto rank = static_cast<std::uint32_t>(from.rank);
  members_[rank].owes_vote = false;
  const std::uint32_t round = ++members_[rank].accepts;
  if (round <= failed_round_) return refuse(from, failed_reason_, message.number);
  std::string reason = first_end_;
  if (is_rejoining_) reason = "a process of the job calls rejoin()";
  if (is_completing_) reason = "another accept() of the job goes on";
  if (is_accepting_ && message.a != least_) {
    reason = "rank " + std::to_string(rank) + " calls accept() for " +
             counted(message.a, "newcomer") + ", another one for " + std::to_string(least_);
  }
  if (!reason.empty()) {
    if (!is_accepting_) note_failed_round(round, reason);
    fail_growth(reason);
    return refuse(from, reason, message.number);
  }
  if (!is_accepting_) {
    is_accepting_ = true;
    round_ = round;
    least_ = message.a;
    newcomers_ms_ = message.b;
    growth_until_ = Clock::now() + std::chrono::milliseconds(members_ms_of(message));
    awaits_newcomers_ = false;
  }
  members_[rank].waits = Waits::kAccept;
  members_[rank].number = message.number;
  decide_accept();
}

std::vector<ThreadedServer::Connection*> ThreadedServer::newcomers() {
  std::vector<Connection*> all;
  for (Connection& one : connections_) {
    if (one.is_newcomer && one.wish != 0 && !one.is_over) all.push_back(&one);
  }
  return all;
}

std::string ThreadedServer::newcomers_text() {
  if (!is_accepting_ || !awaits_newcomers_) return "";
  return "all ranks have called accept(), and " + std::to_string(newcomers().size()) + " of " +
         counted(least_, "newcomer") + " came";
}

void ThreadedServer::decide_accept() {
  if (!is_accepting_) return;
  for (const Member& member : members_) {
    if (member.is_current && member.waits != Waits::kAccept) return;
  }
  if (!awaits_newcomers_) growth_until_ = Clock::now() + std::chrono::milliseconds(newcomers_ms_);
  awaits_newcomers_ = true;
  const std::vector<Connection*> all = newcomers();
  if (all.size() >= least_) return take(all);
  if (Clock::now() < growth_until_) return;
  fail_growth(std::to_string(all.size()) + " of " + counted(least_, "newcomer") + " came within " +
              std::to_string(newcomers_ms_) +
              " ms; expected more processes that join through the job file");
}

void ThreadedServer::take(const std::vector<Connection*>& all) {
  begin_generation();
  for (Connection* const one : all) {
    auto place = std::find_if(members_.begin(), members_.end(), [](const Member& member) {
      return !member.is_current && !member.is_new;
    });
    if (place == members_.end() && members_.size() == kMaxRanks) break;
    if (place == members_.end()) place = members_.insert(place, Member());
    *place = {.has_joined = true, .is_current = false, .is_new = true, .number = one->wish};
    one->rank = place - members_.begin();
    one->is_newcomer = false;
    one->wish = 0;
  }
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].is_current || members_[rank].is_new) ranks.push_back(rank);
  }
  is_accepting_ = false;
  is_completing_ = true;
  has_vote_ = false;
  outcome_.clear();
  for (const std::uint32_t rank : ranks) {
    members_[rank].waits = Waits::kNothing;
    members_[rank].owes_vote = true;
    Connection* const to = connection_of(rank);
    if (to == nullptr) continue;  // It has just ended.
    reply(*to,
          {.kind = Kind::kAccepted,
           .a = generation_,
           .b = size_,
           .text = std::to_string(rank),
           .data = encode_ranks(ranks)},
          members_[rank].number);
  }
}

void ThreadedServer::decline(Connection& from, const Message& message) {
  const std::uint32_t round = ++members_[static_cast<std::size_t>(from.rank)].accepts;
  if (round <= failed_round_) return refuse(from, failed_reason_, message.number);
  if (!is_accepting_) note_failed_round(round, message.text);
  fail_growth(message.text);
  refuse(from, message.text, message.number);
}

// A member that is in no round any more says nothing of the next one.
void ThreadedServer::withdraw(const Connection& from, const Message& message) {
  const Member& member = members_[static_cast<std::size_t>(from.rank)];
  const bool accepts = is_accepting_ && member.waits == Waits::kAccept;
  const bool votes = is_completing_ && (member.owes_vote || member.waits == Waits::kComplete);
  if (accepts || votes) fail_growth(message.text);
}

void ThreadedServer::note_failed_round(std::uint32_t round, const std::string& reason) {
  failed_round_ = round;
  failed_reason_ = reason;
}

void ThreadedServer::complete(Connection& from, const Message& message) {
  members_[static_cast<std::size_t>(from.rank)].owes_vote = false;
  if (message.a == 0 && !message.text.empty()) return decline(from, message);
  if (!is_completing_ || message.a != generation_) {
    return refuse(from, outcome_.empty() ? "accept() is over" : outcome_, message.number);
  }
  const auto rank = static_cast<std::uint32_t>(from.rank);
  members_[rank].waits = Waits::kComplete;
  members_[rank].number = message.number;
  if (!message.text.empty()) {
    return fail_growth("rank " + std::to_string(rank) + ": " + message.text);
  }
  if (!has_vote_) {
    growth_until_ = Clock::now() + std::chrono::milliseconds(members_ms_of(message));
  }
  has_vote_ = true;
  decide_complete();
}

void ThreadedServer::decide_complete() {
  bool have_all = true;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (!member.is_current && !member.is_new) continue;
    if (member.has_ended) return fail_growth("rank " + std::to_string(rank) + " has ended");
    have_all = have_all && member.waits == Waits::kComplete;
  }
  if (!have_all) return;
  is_completing_ = false;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    Member& member = members_[rank];
    if (member.is_new) member.is_current = true;
    if (member.is_new) member.accepts = round_;
    member.is_new = false;
  }
  answer(Waits::kComplete, "");
}

void ThreadedServer::fail_growth(const std::string& reason) {
  if (is_accepting_) {
    answer(Waits::kAccept, reason);
    note_failed_round(round_, reason);
  }
  is_accepting_ = false;
  if (!is_completing_) return;
  is_completing_ = false;
  outcome_ = reason;
  answer(Waits::kComplete, reason);
  fail_fences(reason);
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    if (!members_[rank].is_new) continue;
    // Its number is free again, and it may wait for the next accept().
    members_[rank] = {.has_ended = true, .has_left = true, .is_current = false};
    if (Connection* const one = connection_of(rank)) {
      one->rank = -1;
      one->is_newcomer = true;
    }
  }
}

void ThreadedServer::answer(Waits what, const std::string& reason) {
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    Member& member = members_[rank];
    if (member.waits != what) continue;
    member.waits = Waits::kNothing;
    Connection* const to = connection_of(rank);
    if (to == nullptr) continue;
    if (reason.empty()) reply(*to, {.kind = Kind::kDone}, member.number);
    if (!reason.empty()) refuse(*to, reason, member.number);
  }
}

void ThreadedServer::end_growth_in_time() {
  if (!is_accepting_ && !is_completing_) return;
  if (is_accepting_) decide_accept();
  const bool is_timed = is_accepting_ ? !awaits_newcomers_ : is_completing_ && has_vote_;
  if (!is_timed || Clock::now() < growth_until_) return;
  const Waits what = is_accepting_ ? Waits::kAccept : Waits::kComplete;
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    if (member.waits == what || (!member.is_current && !member.is_new)) continue;
    return fail_growth(
        "rank " + std::to_string(rank) +
        (is_accepting_ ? " did not call accept() in time" : " did not connect in time"));
  }
}

void ThreadedServer::note_end(std::uint32_t rank) {
  if (members_[rank].is_current && first_end_.empty()) {
    first_end_ = "rank " + std::to_string(rank) + " has ended; expected rejoin() before accept()";
    if (is_accepting_) fail_growth(first_end_);
  }
  if (is_completing_) decide_complete();
}

void ThreadedServer::refuse_stranded() {
  const std::vector<Connection*> waiting = newcomers();
  if (waiting.empty()) return;
  const auto is_there = [](const Member& member) { return !member.has_ended; };
  if (std::any_of(members_.begin(), members_.end(), is_there)) return;
  const auto dead = std::find_if(members_.begin(), members_.end(),
                                 [](const Member& member) { return !member.has_left; });
  if (dead == members_.end()) return;
  const std::string reason = "rank " + std::to_string(dead - members_.begin()) +
                             " has ended, and no process of the job is left that calls accept()";
  for (Connection* const one : waiting) {
    refuse(*one, reason, std::exchange(one->wish, 0));
  }
}

void ThreadedServer::begin_generation() {
  ++generation_;
  first_end_.clear();
  for (Member& member : members_) {
    for (auto* const values : {&member.pending, &member.published}) {
      std::erase_if(*values, [](const auto& one) { return one.first.starts_with(kOwnKeys); });
    }
  }
}

}  // namespace espalier::bootstrap
