#include "communicator/record/agreements.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"

namespace espalier::record {
namespace {

const CommunicatorView* part_of(const RankView& rank, std::uint64_t id) {
  const auto& all = rank.view.communicators;
  const auto found =
      std::find_if(all.begin(), all.end(), [id](const auto& each) { return each.id == id; });
  return found == all.end() ? nullptr : &*found;
}

const Agreement& agreement_of(const RankView& rank) { return rank.view.process.agreement; }

bool is_in(const RankView& rank, const Agreement& agreement) {
  return agreement_of(rank).kind == agreement.kind &&
         agreement_of(rank).communicator == agreement.communicator;
}

// What a rank does that is in another call, or in none.
struct Doing {
  Suspicion kind = Suspicion::kComputing;
  std::string text = {};
};

Doing doing(const JobView& job, const RankView& rank, std::uint64_t communicator) {
  const std::string quiet = duration_text(rank.quiet_s);
  if (!job.has_ended) {
    if (rank.life == Life::kEnded) {
      return {Suspicion::kEnded, "its process has ended, " + quiet + " ago"};
    }
    if (rank.life == Life::kStopped) {
      return {Suspicion::kStopped, "its process is stopped, for " + quiet};
    }
    if (rank.quiet_s >= kSilentS) {
      return {Suspicion::kStopped, "its process does not run: no sign for " + quiet};
    }
  }
  if (const std::string other = agreement_text(rank); !other.empty()) {
    return {Suspicion::kDiverged, "it waits in " + other + ", for " +
                                      duration_text(rank.age(agreement_of(rank).since_ns))};
  }
  for (const CommunicatorView& each : rank.view.communicators) {
    if (!each.wait || each.failure) continue;
    const CallView* const call = each.find(each.begun);
    return {Suspicion::kDiverged, "it waits in " +
                                      (call == nullptr ? "a call" : short_text(call->word)) +
                                      ", for " + duration_text(rank.age(each.wait->call_since_ns))};
  }
  const CommunicatorView* const part = part_of(rank, communicator);
  if (part == nullptr) return {};
  if (part->inside_ns != 0) {
    return {Suspicion::kWorking,
            "working inside a call for " + duration_text(rank.age(part->inside_ns))};
  }
  return {Suspicion::kComputing, "computing for " + duration_text(rank.age(part->changed_ns))};
}

std::string not_called(const JobView& job, const RankView& rank, const Agreement& agreement,
                       const std::string& call) {
  return "rank " + std::to_string(rank.view.process.rank) + " has not called " + call + ": " +
         doing(job, rank, agreement.communicator).text;
}

// The ranks of a job that wait in one call of accept() or rejoin().
struct Group {
  Agreement agreement = {};
  std::string call = {};
  const RankView* first = nullptr;
  std::vector<std::uint32_t> ranks = {};
  double longest_s = 0;
};

std::vector<Group> groups_of(const JobView& job) {
  std::vector<Group> groups;
  for (const RankView& rank : job.ranks) {
    const std::string call = agreement_text(rank);
    if (call.empty() || (!job.has_ended && rank.life == Life::kEnded)) continue;
    const Agreement& own = agreement_of(rank);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& each) { return is_in(rank, each.agreement); });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {.agreement = own, .call = call, .first = &rank});
    }
    group->ranks.push_back(rank.view.process.rank);
    group->longest_s = std::max(group->longest_s, rank.age(own.since_ns));
  }
  return groups;
}

std::string wait_text(const Group& group) {
  return ranks_text(group.ranks) + (group.ranks.size() == 1 ? " waits in " : " wait in ") +
         group.call + ", for " + duration_text(group.longest_s);
}

// All ranks with a record have called it.
void find_others(const JobView& job, const Group& group, Diagnosis& found) {
  const CommunicatorView* const part = part_of(*group.first, group.agreement.communicator);
  const std::size_t size = part == nullptr ? 1 : part->size;
  if (group.ranks.size() >= size) {
    if (group.agreement.newcomers == 0) return;
    // How many did, only the server knows.
    const std::uint32_t newcomers = group.agreement.newcomers;
    const std::string text = newcomers == 1
                                 ? "1 newcomer did not come"
                                 : "not all of " + counted(newcomers, "newcomer") + " came";
    found.suspects.push_back(
        {.kind = Suspicion::kNewcomers, .text = text + ": " + wait_text(group)});
    return;
  }
  if (size != job.size) return;  // which ranks it has is not known
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < job.size; ++rank) {
    if (job.find(rank) == nullptr) missing.push_back(rank);
  }
  if (missing.empty()) return;
  std::string text = ranks_text(missing) + (missing.size() == 1 ? " has" : " have") +
                     " no record: ended, or on a host that was not asked; " + wait_text(group);
  found.suspects.push_back(
      {.kind = Suspicion::kNoRecord, .ranks = std::move(missing), .text = std::move(text)});
}

}  // namespace

std::string agreement_text(const RankView& rank) {
  switch (agreement_of(rank).kind) {
    case AgreementKind::kNone: return "";
    case AgreementKind::kAccept: return "accept()";
    case AgreementKind::kRejoin: return "rejoin()";
  }
  return "";
}

std::vector<std::uint32_t> awaited_ranks(const JobView& job, const RankView& rank) {
  const Agreement& agreement = agreement_of(rank);
  std::vector<std::uint32_t> ranks;
  for (const RankView& other : job.ranks) {
    if (is_in(other, agreement)) continue;
    // The survivors do not wait for a process that has ended.
    if (!job.has_ended && other.life == Life::kEnded) continue;
    if (part_of(other, agreement.communicator) == nullptr) continue;
    ranks.push_back(other.view.process.rank);
  }
  return ranks;
}

std::string awaited_text(const JobView& job, const RankView& rank) {
  const auto ranks = awaited_ranks(job, rank);
  if (!ranks.empty()) return ranks_text(ranks);
  const std::uint32_t newcomers = agreement_of(rank).newcomers;
  return newcomers == 0 ? "" : counted(newcomers, "newcomer");
}

std::string absent_text(const JobView& job, const RankView& waiting,
                        const std::vector<std::uint32_t>& ranks) {
  const std::string call = agreement_text(waiting);
  if (call.empty()) return "";
  std::string text;
  for (const std::uint32_t rank : ranks) {
    const RankView* const other = job.find(rank);
    if (other == nullptr || is_in(*other, agreement_of(waiting))) continue;
    text += (text.empty() ? "" : "; ") + not_called(job, *other, agreement_of(waiting), call);
  }
  return text;
}

void find_agreements(const JobView& job, Diagnosis& found) {
  for (const Group& group : groups_of(job)) {
    if (group.longest_s < kLongS) continue;
    const auto awaited = awaited_ranks(job, *group.first);
    if (awaited.empty()) find_others(job, group, found);
    for (const std::uint32_t rank : awaited) {
      const bool is_known = std::any_of(
          found.suspects.begin(), found.suspects.end(),
          [rank](const Suspect& other) { return other.ranks == std::vector<std::uint32_t>{rank}; });
      if (is_known) continue;
      const RankView& other = *job.find(rank);
      found.suspects.push_back({.kind = doing(job, other, group.agreement.communicator).kind,
                                .ranks = {rank},
                                .text = not_called(job, other, group.agreement, group.call)});
    }
  }
}

}  // namespace espalier::record
