// How the processes of a job that is joined over its cables come together.

#include <algorithm>
#include <cstdio>

#include "base/network/address.h"
#include "base/one_line.h"
#include "base/try.h"
#include "bootstrap/cables/membership.h"
#include "bootstrap/cables/ports.h"

namespace espalier::cables {
namespace {

// For the last word of a process that cannot join to reach the others.
constexpr Time kRefusalTime = std::chrono::milliseconds(500);

std::string host_text(const HostRecord& host, const Logs& logs) {
  std::vector<std::uint32_t> ranks;
  for (const LogId id : host.members) {
    const auto log = logs.find(id);
    if (log != logs.end() && log->second.has_begun()) ranks.push_back(log->second.rank());
  }
  std::sort(ranks.begin(), ranks.end());
  return host.name + " (" + ranks_text(ranks) + ")";
}

}  // namespace

std::vector<Seat> CablesMembership::candidates() const {
  std::vector<Seat> all;
  for (const auto& [id, log] : shared_.flood.logs()) {
    const bool runs = running_.contains(id) || id == shared_.own;
    if (!runs || !log.has_begun() || log.has_left() || log.decided()) continue;
    all.push_back({log.rank(), id});
  }
  std::sort(all.begin(), all.end(), [](const Seat& a, const Seat& b) {
    return std::make_pair(a.rank, a.log) < std::make_pair(b.rank, b.log);
  });
  return all;
}

// Why these processes cannot be one job; empty: they can.
std::string CablesMembership::conflict(const std::vector<Seat>& seats) const {
  const auto host_of = [this](LogId log) {
    const auto place = running_.find(log);
    return place == running_.end() ? std::string("this host")
                                   : "host " + hosts_[place->second].name;
  };
  for (const LogId id : shared_.seen) {
    const Log* const log = log_of(id);
    if (log != nullptr && !log->decided() && !log->refusal().empty()) return log->refusal();
  }
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const Log* const log = log_of(seats[i].log);
    if (!log->refusal().empty()) return log->refusal();
    if (log->size() != size_) {
      return "rank " + std::to_string(seats[i].rank) + " on " + host_of(seats[i].log) +
             " is of a job of " + std::to_string(log->size()) + ", but rank " +
             std::to_string(rank_) + " of one of " + std::to_string(size_) +
             "; expected the same WORLD_SIZE everywhere";
    }
    if (i > 0 && seats[i].rank == seats[i - 1].rank) {
      return "rank " + std::to_string(seats[i].rank) + " is there twice, on " +
             host_of(seats[i - 1].log) + " and on " + host_of(seats[i].log) +
             "; expected another RANK for each process";
    }
  }
  return "";
}

Result<void> CablesMembership::refuse(std::unique_lock<std::mutex>& lock) {
  add({.kind = Entry::Kind::kRefused, .value = refusal_});
  lock.unlock();
  participant_->flush(kRefusalTime);
  lock.lock();
  return fail(one_line(refusal_));
}

Result<void> CablesMembership::propose_first(const std::vector<Seat>& seats) {
  if (own_proposal_ && own_proposal_->seats == seats) return {};
  auto graph = std::make_shared<const JobGraph>(graph_between(hosts_, seats));
  const auto parts = parts_of(*graph);
  if (parts.size() > 1) {
    std::string text = "the cables do not connect all ranks:";
    const char* separator = " ";
    for (const auto& part : parts) {
      text += separator + ranks_text(part);
      separator = "; ";
    }
    const std::string odd = oddities(hosts_);
    refusal_ = text + (odd.empty() ? "" : "; " + odd);
    return fail(refusal_);
  }
  propose(seats, std::move(graph), true);
  return {};
}

Result<bool> CablesMembership::join_step() {
  const Logs& logs = shared_.flood.logs();
  if (const Proposal* const decided = find_decided(logs, shared_.own, 0)) {
    adopt(*decided);
    return true;
  }
  const std::vector<Seat> seats = candidates();
  refusal_ = conflict(seats);
  if (!refusal_.empty()) return fail(refusal_);
  accept_newest(true);
  const bool is_complete = seats.size() == size_;
  if (!is_complete) complete_at_ = Time(0);
  if (is_complete && complete_at_ == Time(0)) complete_at_ = now();
  if (rank_ != 0 || !is_complete) return false;
  const bool is_one_host = std::all_of(seats.begin(), seats.end(), [&](const Seat& each) {
    const auto place = running_.find(each.log), own = running_.find(shared_.own);
    return place != running_.end() && own != running_.end() && place->second == own->second;
  });
  if (is_one_host || is_settled(complete_at_)) ESPALIER_TRY(propose_first(seats));
  return false;
}

CablesMembership::Missing CablesMembership::missing_from_join() const {
  const Logs& logs = shared_.flood.logs();
  std::vector<bool> is_here(size_);
  std::vector<std::uint32_t> missing, former;
  for (const Seat& each : candidates()) {
    if (each.rank < size_) is_here[each.rank] = true;
  }
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (!is_here[rank]) missing.push_back(rank);
  }
  for (const auto& [id, host] : running_) {
    const Log* const log = log_of(id);
    if (log != nullptr && log->decided()) former.push_back(log->rank());
  }
  std::sort(former.begin(), former.end());
  std::vector<std::string> facts;
  if (!missing.empty() && !former.empty()) {
    facts.push_back("a job with this secret runs: " + ranks_text(former));
  }
  std::string reached;
  for (const HostRecord& host : hosts_) {
    reached += (reached.empty() ? "cables reach " : ", ") + host_text(host, logs);
  }
  if (!reached.empty()) facts.push_back(reached);
  if (const std::string odd = oddities(hosts_); !odd.empty()) facts.push_back(odd);
  Missing all{.who = missing.empty() ? "the agreement on the cables"
                                     : ranks_text(missing) + " of " + std::to_string(size_)};
  for (const std::string& each : facts) all.facts += (all.facts.empty() ? "" : "; ") + each;
  return all;
}

Result<void> CablesMembership::join() {
  std::unique_lock lock(shared_.mutex);
  add({.kind = Entry::Kind::kBegin, .number = rank_, .other = size_});
  const auto first_waiting = [this] {
    const auto all = candidates();
    return all.empty() ? rank_ : all.front().rank;
  };
  auto done = await(lock, {.until = now() + deadline_,
                           .step = [this] { return join_step(); },
                           .missing = [this] { return missing_from_join(); },
                           .first_waiting = first_waiting});
  if (!done && !refusal_.empty()) return refuse(lock);
  if (!done) return done;
  if (graph_->hosts.size() < 2) return {};
  for (const JobCable& cable : graph_->cables) {
    for (const JobEnd* const end : {&cable.a, &cable.b}) {
      const auto& ranks = graph_->hosts[end->host].ranks;
      if (std::find(ranks.begin(), ranks.end(), rank_) == ranks.end()) continue;
      local_address_ = end->address + "%" + end->interface;
      return {};
    }
  }
  return {};
}

}  // namespace espalier::cables
