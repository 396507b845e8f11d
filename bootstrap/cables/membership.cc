#include "bootstrap/cables/membership.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/counted.h"
#include "base/one_line.h"
#include "base/try.h"
#include "bootstrap/cables/ports.h"
#include "bootstrap/cables/search.h"

namespace espalier::cables {
namespace {

using bootstrap::FirstWord;

constexpr Time kLook = std::chrono::milliseconds(20);  // the longest pause between looks
// The graph is relied on once it has been as it is for this time, or all are there for the longer.
constexpr Time kSettleTime = std::chrono::milliseconds(300);
constexpr Time kLongestSettling = std::chrono::seconds(5);
constexpr Time kFlushTime = std::chrono::seconds(1);
// A host that ended, or was cut off, is noticed by now.
constexpr Time kNoticeTime = kSilenceTime + std::chrono::milliseconds(500);
// A process that no cable leads to is waited for, because its host may only be slow.
constexpr Time kCutTime = std::chrono::seconds(3);
constexpr Time kAgreementTime = std::chrono::seconds(5);  // after the deadline
constexpr std::size_t kMaxValue = std::size_t{64} << 10, kMaxKey = 512;

std::string seconds_text(std::chrono::milliseconds time) {
  const auto ms = time.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& each : parts) text += (text.empty() ? "" : separator) + each;
  return text;
}

}  // namespace

CablesMembership::CablesMembership(const bootstrap::CablesPlace& place,
                                   std::chrono::milliseconds deadline,
                                   std::unique_ptr<Participant> participant)
    : rank_(place.rank),
      size_(place.size),
      secret_(place.secret),
      deadline_(deadline),
      participant_(std::move(participant)),
      shared_(participant_->shared()) {}

// In a forked child the membership stays the parent's.
CablesMembership::~CablesMembership() {
  if (generation_of_process_ != process_generation()) {
    keep_for_parent(participant_.release());
    return;
  }
  {
    const std::lock_guard lock(shared_.mutex);
    add({.kind = Entry::Kind::kLeft});
  }
  participant_->flush(kFlushTime);
}

Result<void> CablesMembership::check_process() const {
  if (generation_of_process_ == process_generation()) return {};
  return fail("this process was forked from rank " + std::to_string(rank_) +
              " of the job and has no rank of its own");
}

const Log* CablesMembership::log_of(LogId id) const {
  const auto found = shared_.flood.logs().find(id);
  return found == shared_.flood.logs().end() ? nullptr : &found->second;
}

void CablesMembership::look() {
  if (looked_ == shared_.records_count) return;
  looked_ = shared_.records_count;
  hosts_ = hosts_with_members(shared_.records);
  running_ = running(hosts_);
  for (const auto& [log, host] : running_) networks_[log] = hosts_[host].network;
  find_near();
}

void CablesMembership::find_near() {
  near_.clear();
  for (const Seat& each : connected_seats(hosts_, seats_, rank_)) near_.insert(each.log);
}

CablesMembership::State CablesMembership::state_of(const Seat& seat, Time at) {
  const Log* const log = log_of(seat.log);
  if (log != nullptr && log->has_left()) return State::kEnded;
  if (seat.log == shared_.own) return State::kRuns;
  if (running_.contains(seat.log)) {
    if (near_.empty() || near_.contains(seat.log)) {
      cut_since_.erase(seat.rank);
      return State::kRuns;
    }
  } else if (const auto home = networks_.find(seat.log); home != networks_.end()) {
    for (const HostRecord& each : hosts_) {
      if (each.network == home->second) return State::kEnded;
    }
  }
  cut_since_.try_emplace(seat.rank, at);
  return State::kCut;
}

void CablesMembership::say(const Wait& wait) const {
  if (!FirstWord::is_watched() && wait.first_waiting() != rank_) return;
  const Missing missing = wait.missing();
  if (missing.who.empty()) return;
  const std::string who = FirstWord::is_watched() ? "rank " + std::to_string(rank_) + " waits for "
                                                  : std::string("waiting for ");
  std::fprintf(stderr, "espalier: %s%s\n", who.c_str(),
               one_line(missing.who + missing.described()).c_str());
}

Result<void> CablesMembership::await(std::unique_lock<std::mutex>& lock, const Wait& wait) {
  FirstWord word;
  while (true) {
    look();
    ESPALIER_TRY_TO(const bool is_over, wait.step());
    if (is_over) return {};
    if (!shared_.failure.empty()) return fail(shared_.failure);
    const Time at = now();
    if (at >= wait.until) {
      const Missing missing = wait.missing();
      return fail(one_line(missing.who + " did not come within " + seconds_text(deadline_) +
                           missing.described()));
    }
    if (word.is_due()) say(wait);
    (void)shared_.changed.wait_for(lock, std::min(kLook, wait.until - at));
  }
}

bool CablesMembership::is_settled(Time since) const {
  const Time at = now();
  if (at - since > kLongestSettling) return true;
  for (const HostRecord& host : hosts_) {
    for (const PortRecord& port : host.ports) {
      if (port.port.state == PortState::kBeginning) return false;
    }
  }
  return at - shared_.records_at >= kSettleTime;
}

void CablesMembership::propose(std::vector<Seat> seats, std::shared_ptr<const JobGraph> graph,
                               bool is_first) {
  Proposal proposal{.number = next_number(shared_.flood.logs()),
                    .proposer = shared_.own,
                    .seats = std::move(seats),
                    .graph = std::move(graph)};
  if (!is_first) proposal.generation = proposal.number - first_number_;
  add(entry_of(proposal));
  own_proposal_ = std::move(proposal);
}

void CablesMembership::accept_newest(bool is_first) {
  const Proposal* const proposal =
      to_accept(shared_.flood.logs(), shared_.own, current_.first, is_first);
  if (proposal == nullptr) return;
  add({.kind = Entry::Kind::kAccept, .number = proposal->number, .id = proposal->proposer});
}

void CablesMembership::adopt(const Proposal& proposal) {
  current_ = {proposal.number, proposal.proposer};
  if (proposal.generation == 0) {
    first_number_ = proposal.number;
    for (const Seat& seat : proposal.seats) {
      all_[seat.rank] = seat.log;
      shared_.needed.push_back(seat.log);
    }
  }
  generation_ = proposal.generation;
  seats_ = proposal.seats;
  graph_ = proposal.graph;
  fences_ = 0;
  own_proposal_.reset();
  cut_since_.clear();
  find_near();
  add({.kind = Entry::Kind::kDecided, .number = proposal.number, .id = proposal.proposer});
  shared_.is_idle = true;
}

Result<void> CablesMembership::put(const std::string& key, const std::string& value) {
  ESPALIER_TRY(check_process());
  if (value.size() > kMaxValue || key.size() > kMaxKey) {
    return fail("'" + key.substr(0, 40) + "' has " + counted(value.size(), "byte") +
                "; expected at most 65536, and a key of at most 512");
  }
  const std::lock_guard lock(shared_.mutex);
  const Log* const own = log_of(shared_.own);
  if (own != nullptr && own->has_put(key)) return fail("key '" + key + "' is used twice");
  if (!shared_.failure.empty()) return fail(shared_.failure);
  add({.kind = Entry::Kind::kPut, .key = key, .value = value});
  return {};
}

Result<std::string> CablesMembership::get(std::uint32_t rank, const std::string& key) {
  ESPALIER_TRY(check_process());
  const std::lock_guard lock(shared_.mutex);
  const auto seat = all_.find(rank);
  const Log* const log = seat == all_.end() ? nullptr : log_of(seat->second);
  const std::string* const value = log == nullptr ? nullptr : log->published(key);
  if (value != nullptr) return *value;
  return fail("rank " + std::to_string(rank) + " has published no '" + key + "'");
}

Result<bool> CablesMembership::fence_step() {
  const Time at = now();
  bool is_over = true;
  for (const Seat& seat : seats_) {
    const Log* const log = log_of(seat.log);
    if (log != nullptr && log->decided() && log->decided()->first > current_.first) {
      return fail("the other ranks called rejoin() and went on without this one");
    }
    const bool is_here = log != nullptr && log->decided() == current_;
    if (is_here && log->fences() >= fences_) continue;
    is_over = false;
    const std::string name = "rank " + std::to_string(seat.rank);
    if (is_here && log->is_rejoining()) return fail("a process of the job calls rejoin()");
    const State state = state_of(seat, at);
    if (state == State::kEnded) return fail(name + " has ended");
    if (state == State::kCut && at - cut_since_[seat.rank] > kCutTime) return fail(cut_text(at));
  }
  return is_over;
}

std::string CablesMembership::cut_text(Time at) {
  std::vector<std::uint32_t> here, away;
  for (const Seat& seat : seats_) {
    const State state = state_of(seat, at);
    if (state == State::kRuns) here.push_back(seat.rank);
    if (state == State::kCut) away.push_back(seat.rank);
  }
  return ranks_text(here) + (here.size() == 1 ? " is" : " are") + " cut from " + ranks_text(away);
}

CablesMembership::Missing CablesMembership::missing_from_fence(Time at) {
  std::vector<std::uint32_t> missing;
  std::vector<std::string> facts;
  for (const Seat& seat : seats_) {
    const Log* const log = log_of(seat.log);
    if (log != nullptr && log->decided() == current_ && log->fences() >= fences_) continue;
    missing.push_back(seat.rank);
    const auto host = running_.find(seat.log);
    const std::string name = "rank " + std::to_string(seat.rank);
    if (state_of(seat, at) == State::kCut) {
      facts.push_back(name + " is not reached over any cable");
    } else if (host != running_.end()) {
      facts.push_back(name + " on host " + hosts_[host->second].name +
                      " has joined, and does something else");
    }
  }
  if (missing.empty()) return {};
  const std::string odd = oddities(hosts_);
  return {ranks_text(missing) + " of " + std::to_string(size_),
          joined(facts, ", ") + (odd.empty() ? "" : "; " + odd)};
}

Result<void> CablesMembership::fence() {
  ESPALIER_TRY(check_process());
  std::unique_lock lock(shared_.mutex);
  add({.kind = Entry::Kind::kFence});
  ++fences_;
  const auto first_waiting = [this] {
    for (const Seat& seat : seats_) {
      const Log* const log = log_of(seat.log);
      if (log != nullptr && log->fences() >= fences_ && running_.contains(seat.log)) {
        return seat.rank;
      }
    }
    return rank_;
  };
  return await(lock, {.until = now() + deadline_,
                      .step = [this] { return fence_step(); },
                      .missing = [this] { return missing_from_fence(now()); },
                      .first_waiting = first_waiting});
}

Result<bool> CablesMembership::rejoin_step(Time called_at) {
  const Logs& logs = shared_.flood.logs();
  if (const Proposal* const decided = find_decided(logs, shared_.own, current_.first)) {
    adopt(*decided);
    return true;
  }
  for (const Seat& seat : seats_) {
    const Log* const log = log_of(seat.log);
    if (log == nullptr || !log->decided() || log->decided()->first <= current_.first) continue;
    const auto decider = logs.find(log->decided()->second);
    if (decider == logs.end()) continue;
    for (const Proposal& each : decider->second.proposals()) {
      const bool has_own = std::any_of(each.seats.begin(), each.seats.end(),
                                       [this](const Seat& one) { return one.log == shared_.own; });
      if (each.number != log->decided()->first || has_own) continue;
      std::vector<std::uint32_t> ranks;
      for (const Seat& one : each.seats) ranks.push_back(one.rank);
      return fail("rejoin(): " + ranks_text(ranks) + " went on without rank " +
                  std::to_string(rank_));
    }
  }
  accept_newest(false);
  lead(called_at);
  return false;
}

// The lowest rank that calls rejoin() and is connected proposes.
void CablesMembership::lead(Time called_at) {
  const Time at = now(), waited = at - called_at;
  std::vector<Seat> pending;
  std::vector<std::uint32_t> away;
  bool has_busy = false;
  for (const Seat& seat : seats_) {
    const Log* const log = log_of(seat.log);
    const State state = state_of(seat, at);
    const bool calls = log != nullptr && log->is_rejoining();
    if (state == State::kRuns && calls) pending.push_back(seat);
    has_busy |= state == State::kRuns && !calls;
    if (state == State::kCut) away.push_back(seat.rank);
  }
  if (waited < kNoticeTime || !is_settled(called_at) || (has_busy && waited < deadline_) ||
      (!away.empty() && waited < kCutTime)) {
    return;
  }
  std::vector<Seat> seats = connected_seats(hosts_, pending, rank_);
  if (seats.empty() || seats.front().rank != rank_) return;
  const bool is_same = own_proposal_ && own_proposal_->seats == seats;
  if (is_same && !is_overtaken(shared_.flood.logs(), *own_proposal_)) return;
  if (!away.empty()) {
    std::vector<std::uint32_t> here;
    for (const Seat& seat : seats) here.push_back(seat.rank);
    std::fprintf(stderr, "espalier: %s %s cut from %s\n", ranks_text(here).c_str(),
                 here.size() == 1 ? "is" : "are", ranks_text(away).c_str());
  }
  auto graph = std::make_shared<const JobGraph>(graph_between(hosts_, seats));
  propose(std::move(seats), std::move(graph), false);
}

CablesMembership::Missing CablesMembership::missing_from_rejoin() {
  std::vector<std::uint32_t> missing;
  for (const Seat& seat : seats_) {
    const Log* const log = log_of(seat.log);
    const bool calls = log != nullptr && log->is_rejoining();
    if (!calls && state_of(seat, now()) == State::kRuns) missing.push_back(seat.rank);
  }
  if (missing.empty()) return {"the agreement of the ranks that call rejoin()"};
  return {ranks_text(missing) + " of " + std::to_string(size_),
          missing.size() == 1 ? "it has not called rejoin()" : "they have not called rejoin()"};
}

Result<bootstrap::Survivors> CablesMembership::rejoin() {
  ESPALIER_TRY(check_process());
  std::unique_lock lock(shared_.mutex);
  shared_.is_idle = false;
  own_proposal_.reset();
  add({.kind = Entry::Kind::kRejoin});
  const Time called_at = now();
  const auto first_waiting = [this] {
    for (const Seat& seat : seats_) {
      const Log* const log = log_of(seat.log);
      if (log != nullptr && log->is_rejoining() && running_.contains(seat.log)) return seat.rank;
    }
    return rank_;
  };
  auto done = await(lock, {.until = called_at + deadline_ + kAgreementTime,
                           .step = [this, called_at] { return rejoin_step(called_at); },
                           .missing = [this] { return missing_from_rejoin(); },
                           .first_waiting = first_waiting});
  shared_.is_idle = true;
  if (!done) return fail(std::move(done.error()));
  bootstrap::Survivors survivors{.generation = generation_};
  for (const Seat& seat : seats_) survivors.ranks.push_back(seat.rank);
  return survivors;
}

Result<bootstrap::Accepted> CablesMembership::accept(std::uint32_t, std::chrono::milliseconds) {
  return fail(
      "a job that is joined over its cables takes no newcomers; expected another way to join");
}

}  // namespace espalier::cables

namespace espalier::bootstrap {

Result<std::unique_ptr<Bootstrap>> join_over_cables(const CablesPlace& place,
                                                    std::chrono::milliseconds deadline) {
  ESPALIER_TRY_TO(auto participant, cables::Participant::start({.secret = place.secret,
                                                                .interfaces = place.interfaces,
                                                                .ports = place.ports,
                                                                .port = cables::kSearchPort}));
  auto members =
      std::make_unique<cables::CablesMembership>(place, deadline, std::move(participant));
  ESPALIER_TRY(members->join());
  return members;
}

}  // namespace espalier::bootstrap
