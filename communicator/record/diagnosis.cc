#include "communicator/record/diagnosis.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "communicator/record/agreements.h"
#include "communicator/record/call_word.h"
#include "communicator/record/losses.h"
#include "espalier/base/status.h"

namespace espalier::record {
namespace {

// A board that others wait for is asked twice a second. Its last answer counts for the first time;
// after the second one the board is silent.
constexpr double kBoardKnownS = 0.9, kBoardSilentS = 2;

using Ranks = std::vector<std::uint32_t>;

bool has_failed(const RankView& rank) {
  return std::any_of(rank.view.communicators.begin(), rank.view.communicators.end(),
                     [](const CommunicatorView& each) { return each.failure.has_value(); });
}

const CommunicatorView* find(const RankView& rank, std::uint64_t id) {
  for (const CommunicatorView& each : rank.view.communicators) {
    if (each.id == id) return &each;
  }
  return nullptr;
}

Suspect make(Suspicion kind, Ranks ranks, std::string text) {
  std::sort(ranks.begin(), ranks.end());
  return {.kind = kind, .ranks = std::move(ranks), .text = std::move(text)};
}

std::string name_of(const JobView& job, std::uint32_t rank) {
  return ranks_text({rank}, job.schedule_ranks);
}

std::string silent_text(const RankView& rank) {
  return process_text(rank) +
         (rank.view.process.board[0] == 0 ? " does not run: no sign for "
                                          : " gives no sign, for ") +
         duration_text(rank.quiet_s);
}

// Which ranks no record names: they never came, or are on a host of which nothing was read.
std::string never_started_text(const JobView& job, const Ranks& missing) {
  std::set<std::string> hosts;
  bool are_far = false;
  for (const RankView& rank : job.ranks) {
    hosts.insert(rank.view.process.host);
    are_far = are_far || rank.view.process.has_far_ranks != 0;
  }
  return ranks_text(missing, job.schedule_ranks) + " never started" +
         (are_far && hosts.size() == 1 ? ", or on a host that was not asked (--host)" : "");
}

void find_missing(const JobView& job, Diagnosis& found) {
  Ranks waiting, failed, missing;
  double longest = 0, until_failure = 0;
  for (const RankView& rank : job.ranks) {
    const Process& process = rank.view.process;
    if (process.state == ProcessState::kJoined) continue;
    if (process.state == ProcessState::kJoinFailed) {
      failed.push_back(process.rank);
      const double time = rank.age(process.joining_ns) - rank.age(process.since_ns);
      until_failure = std::max(until_failure, time);
      continue;
    }
    waiting.push_back(process.rank);
    longest = std::max(longest, rank.age(process.since_ns));
  }
  if (failed.empty() && (waiting.empty() || longest < kLongS)) return;
  for (std::uint32_t rank = 0; rank < job.size; ++rank) {
    if (job.find(rank) == nullptr) missing.push_back(rank);
  }
  if (missing.empty()) return;
  const char* const calls = job.schedule_ranks == 0 ? "join()" : "links";
  std::string text = never_started_text(job, missing) + ": ";
  if (failed.empty()) {
    text += ranks_text(waiting, job.schedule_ranks) + (waiting.size() == 1 ? " waits" : " wait") +
            (job.schedule_ranks == 0 ? " in " : " for ") + calls + ", for " +
            duration_text(longest);
  } else {
    text += std::string(calls) + " failed on " + ranks_text(failed, job.schedule_ranks) +
            " after " + duration_text(until_failure);
  }
  found.suspects.push_back(make(Suspicion::kNeverStarted, missing, text));
}

// A node of a run ended because of what it says itself.
bool has_own_reason(const RankView& rank) {
  return rank.view.process.state == ProcessState::kJoined && rank.view.process.text[0] != 0;
}

void find_own_reasons(const JobView& job, Diagnosis& found) {
  for (const RankView& rank : job.ranks) {
    if (!has_own_reason(rank)) continue;
    found.suspects.push_back(make(Suspicion::kFailed, {rank.view.process.rank},
                                  process_text(rank) + " ended: " + rank.view.process.text));
  }
}

void find_silent(const JobView& job, Diagnosis& found) {
  for (const RankView& rank : job.ranks) {
    const Ranks self = {rank.view.process.rank};
    const std::string quiet = duration_text(rank.quiet_s);
    const bool is_silent = rank.quiet_s >= kSilentS;
    if (has_own_reason(rank)) continue;
    if (rank.life == Life::kEnded) {
      if (has_failed(rank)) continue;
      found.suspects.push_back(make(Suspicion::kEnded, self,
                                    process_text(rank) + " has ended" +
                                        (job.schedule_ranks == 0 ? " without leave(), " : ", ") +
                                        quiet + " ago"));
    } else if (rank.life == Life::kStopped) {
      found.suspects.push_back(
          make(Suspicion::kStopped, self, process_text(rank) + " is stopped, for " + quiet));
    } else if (is_silent && rank.view.process.state == ProcessState::kJoined) {
      found.suspects.push_back(make(Suspicion::kStopped, self, silent_text(rank)));
    }
  }
}

// One call of a communicator, by what the ranks called.
struct SameCall {
  std::uint64_t id = 0, number = 0;
  std::uint32_t communicator = 0;
  std::map<std::uint64_t, Ranks> by_word = {};
};

SameCall call_of(const JobView& job, std::uint64_t id, std::uint64_t number) {
  SameCall call{.id = id, .number = number};
  for (const RankView& rank : job.ranks) {
    const CommunicatorView* const part = find(rank, id);
    const CallView* const its = part == nullptr ? nullptr : part->find(number);
    if (its == nullptr) continue;
    call.communicator = part->number;
    call.by_word[its->word].push_back(rank.view.process.rank);
  }
  return call;
}

// The first call that is not done everywhere, in which two ranks differ. Only calls that are known
// are looked at: ranks may be any number of calls apart.
std::optional<SameCall> first_divergence(const JobView& job, std::uint64_t id) {
  std::set<std::uint64_t> numbers;
  for (const RankView& rank : job.ranks) {
    const CommunicatorView* const part = find(rank, id);
    if (part == nullptr) continue;
    for (const CallView& call : part->calls) {
      if (call.number > part->done) numbers.insert(call.number);
    }
  }
  for (const std::uint64_t number : numbers) {
    SameCall call = call_of(job, id, number);
    if (call.by_word.size() > 1) return call;
  }
  return std::nullopt;
}

void find_divergence(const JobView& job, Diagnosis& found) {
  std::set<std::uint64_t> ids;
  for (const RankView& rank : job.ranks) {
    for (const CommunicatorView& each : rank.view.communicators) ids.insert(each.id);
  }
  for (const std::uint64_t id : ids) {
    const auto call = first_divergence(job, id);
    if (!call) continue;
    const auto largest = std::max_element(
        call->by_word.begin(), call->by_word.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    const bool is_tie =
        std::count_if(call->by_word.begin(), call->by_word.end(), [&](const auto& each) {
          return each.second.size() == largest->second.size();
        }) > 1;
    Ranks culprits;
    std::string others;
    for (const auto& [word, ranks] : call->by_word) {
      if (word == largest->first && !is_tie) continue;
      culprits.insert(culprits.end(), ranks.begin(), ranks.end());
      others += (others.empty() ? "" : ", ") + ranks_text(ranks) + " called " + short_text(word);
    }
    const std::string where = "call " + std::to_string(call->number) + " of communicator " +
                              std::to_string(call->communicator);
    std::string text = "in " + where + ", " + others;
    if (!is_tie) {
      text += "; " + ranks_text(largest->second) + " called " + short_text(largest->first);
    }
    if (found.divergence.empty()) found.divergence = text;
    found.suspects.push_back(make(Suspicion::kDiverged, culprits, std::move(text)));
  }
}

// A wait of one rank for a message of another one.
struct Edge {
  std::uint32_t from = 0, to = 0;  // ranks of the job
  const CommunicatorView* part = nullptr;
  double for_s = 0;
};

// Whether the rank saw that both the call and this message had been waited for so long.
bool is_seen(const Wait& wait, double min_s) {
  const auto seconds = [&](std::uint64_t since_ns) {
    return static_cast<double>(static_cast<std::int64_t>(wait.noted_ns - since_ns)) / 1e9;
  };
  return seconds(wait.call_since_ns) >= min_s && seconds(wait.since_ns) >= min_s / 2;
}

// Returns the longest wait of the rank that has lasted at least `min_s`.
std::optional<Edge> edge_of(const RankView& rank, double min_s) {
  std::optional<Edge> longest;
  for (const CommunicatorView& part : rank.view.communicators) {
    if (!part.wait || part.wait->is_for_peer == 0) continue;
    const double for_s = rank.age(part.wait->call_since_ns);
    // A failure ends a wait, however short it was.
    if (!is_seen(*part.wait, min_s) && !part.failure) continue;
    if (longest && longest->for_s >= for_s) continue;
    longest = Edge{rank.view.process.rank, part.wait->peer_in_job, &part, for_s};
  }
  return longest;
}

std::string step_text(const Wait& wait) {
  return "in step " + std::to_string(wait.step) +
         (wait.steps == 0 ? "" : " of " + std::to_string(wait.steps));
}

Suspect cut(const JobView& job, const Edge& edge, const std::string& why) {
  const Wait& wait = *edge.part->wait;
  const std::string text =
      "the link between " +
      ranks_text({std::min(edge.from, edge.to), std::max(edge.from, edge.to)}, job.schedule_ranks) +
      ": " + name_of(job, edge.from) + " waits " + step_text(wait) + " of call " +
      std::to_string(wait.call) + (wait.is_sending != 0 ? " to send to " : " to receive from ") +
      name_of(job, edge.to) + ", for " + duration_text(edge.for_s) + ", " + why;
  return make(Suspicion::kCut, {edge.from, edge.to}, text);
}

// In a circle of waits, the rank in the earliest step has not got its message.
Suspect cut_of_circle(const JobView& job, const std::vector<Edge>& circle) {
  const auto earliest =
      std::min_element(circle.begin(), circle.end(), [](const Edge& a, const Edge& b) {
        const auto key = [](const Edge& edge) {
          return std::make_pair(edge.part->wait->step, -edge.for_s);
        };
        return key(a) < key(b);
      });
  return cut(job, *earliest,
             "and " + name_of(job, earliest->to) +
                 (circle.size() == 2 ? " waits for it" : " waits for others") + "; both live");
}

// The rank at the end of a chain of waits: it waits for no other. Nothing: it may have come there
// just now.
std::optional<Suspect> end_of_chain(const JobView& job, const Edge& edge, const RankView* last) {
  const std::string name = name_of(job, edge.to);
  if (last == nullptr) {
    return make(Suspicion::kNoRecord, {edge.to},
                name +
                    " has no record: it has left or ended, or is on a host that was not asked; " +
                    name_of(job, edge.from) + " waits for it, for " + duration_text(edge.for_s));
  }
  const CommunicatorView* const part = find(*last, edge.part->id);
  if (part == nullptr) {
    return make(Suspicion::kNoRecord, {edge.to},
                name + " has left the communicator; " + name_of(job, edge.from) +
                    " waits for it in call " + std::to_string(edge.part->begun));
  }
  if (!agreement_text(*last).empty()) return std::nullopt;  // find_agreements() has named both
  const double for_s = last->age(part->inside_ns != 0 ? part->inside_ns : part->changed_ns);
  if (for_s < kLongS) return std::nullopt;
  std::uint64_t most = 0;
  for (const RankView& rank : job.ranks) {
    if (const auto* const other = find(rank, edge.part->id)) most = std::max(most, other->begun);
  }
  const bool is_in_call = part->begun == edge.part->wait->call;
  const std::string behind = is_in_call ? " has begun call " + std::to_string(part->begun)
                                        : " is " + counted(most - part->begun, "call") + " behind";
  if (part->inside_ns != 0) {
    return make(Suspicion::kWorking, {edge.to},
                name + behind + ", working inside a call for " + duration_text(for_s));
  }
  return make(Suspicion::kComputing, {edge.to},
              name + behind + ", computing for " + duration_text(for_s));
}

// Whether the rank that is waited for has not begun the call.
bool is_missed(const JobView& job, const Edge& edge) {
  const RankView* const other = job.find(edge.to);
  const CommunicatorView* const part = other == nullptr ? nullptr : find(*other, edge.part->id);
  return part != nullptr && part->begun < edge.part->wait->call;
}

std::string call_text(const CommunicatorView& part) {
  const CallView* const call = part.find(part.wait->call);
  return "call " + std::to_string(part.wait->call) + " of communicator " +
         std::to_string(part.number) + (call == nullptr ? "" : " (" + short_text(call->word) + ")");
}

// The ranks whose longest wait is in the same call as `part`.
Ranks waiters_of(const JobView& job, const CommunicatorView& part) {
  Ranks ranks;
  for (const RankView& rank : job.ranks) {
    const auto edge = edge_of(rank, 0);
    if (edge && edge->part->id == part.id && edge->part->wait->call == part.wait->call) {
      ranks.push_back(edge->from);
    }
  }
  return ranks;
}

// Ranks that use two communicators in opposite order wait for each other in calls that the others
// have not begun. Nothing: the circle is none of these.
std::optional<Suspect> opposite_order(const JobView& job, const std::vector<Edge>& circle) {
  const Edge* most = nullptr;  // its call has the most ranks
  const Edge* least = nullptr;
  std::size_t most_ranks = 0, least_ranks = 0;
  for (const Edge& edge : circle) {
    if (!is_missed(job, edge)) continue;
    const std::size_t ranks = waiters_of(job, *edge.part).size();
    if (most == nullptr || ranks > most_ranks) most = &edge, most_ranks = ranks;
    if (least == nullptr || ranks <= least_ranks) least = &edge, least_ranks = ranks;
  }
  if (most == nullptr || most->part->id == least->part->id) return std::nullopt;
  const Ranks others = waiters_of(job, *most->part), few = waiters_of(job, *least->part);
  const auto are = [](const Ranks& ranks, const char* one, const char* more) {
    return std::string(ranks.size() == 1 ? one : more);
  };
  Ranks culprits = few;
  if (others.size() == few.size()) culprits.insert(culprits.end(), others.begin(), others.end());
  return make(Suspicion::kDiverged, culprits,
              ranks_text(few) + are(few, " waits in ", " wait in ") + call_text(*least->part) +
                  are(few, ", and has", ", and have") + " not called " + call_text(*most->part) +
                  ", in which " + ranks_text(others) + are(others, " waits", " wait"));
}

// Follows the waits from one rank to the rank or link that holds them up. Nothing: that is not
// clear yet, because some of them have just begun.
std::optional<Suspect> follow(const JobView& job, Edge edge) {
  std::vector<Edge> path = {edge};
  while (true) {
    const RankView* const next = job.find(edge.to);
    const CommunicatorView* const part = next == nullptr ? nullptr : find(*next, edge.part->id);
    if (part == nullptr) return end_of_chain(job, edge, next);
    if (part->done >= edge.part->wait->call) {
      return cut(job, edge, "and " + name_of(job, edge.to) + " has completed that call");
    }
    if (next->view.process.board[0] != 0 && !job.has_ended && next->quiet_s >= kBoardKnownS) {
      if (next->quiet_s < kBoardSilentS) return std::nullopt;
      return make(Suspicion::kStopped, {edge.to}, silent_text(*next));
    }
    const auto onward = edge_of(*next, 0);
    if (!onward) return end_of_chain(job, edge, next);
    const auto seen = std::find_if(path.begin(), path.end(),
                                   [&](const Edge& each) { return each.from == onward->from; });
    if (seen != path.end()) {
      const bool is_long = std::all_of(seen, path.end(), [](const Edge& each) {
        return is_seen(*each.part->wait, kLongS) || each.part->failure;
      });
      if (!is_long) return std::nullopt;
      const std::vector<Edge> circle(seen, path.end());
      auto diverged = opposite_order(job, circle);
      return diverged ? std::move(diverged) : cut_of_circle(job, circle);
    }
    edge = *onward;
    path.push_back(edge);
  }
}

void find_waits(const JobView& job, Diagnosis& found) {
  struct Held {
    Suspect suspect;
    std::size_t ranks = 0;
  };
  std::vector<Held> all;
  for (const RankView& rank : job.ranks) {
    const auto edge = edge_of(rank, kLongS);
    if (!edge) continue;
    auto followed = follow(job, *edge);
    if (!followed) continue;
    Suspect& suspect = *followed;
    if (suspect.kind == Suspicion::kDiverged && found.divergence.empty()) {
      found.divergence = suspect.text;
    }
    const auto known = std::find_if(all.begin(), all.end(), [&](const Held& each) {
      return each.suspect.kind == suspect.kind && each.suspect.ranks == suspect.ranks;
    });
    if (known == all.end()) {
      all.push_back({std::move(suspect), 1});
    } else {
      ++known->ranks;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Held& a, const Held& b) { return a.ranks > b.ranks; });
  for (Held& each : all) {
    const bool is_known =
        std::any_of(found.suspects.begin(), found.suspects.end(),
                    [&](const Suspect& other) { return other.ranks == each.suspect.ranks; });
    // Ranks whose calls differ wait for messages that no rank sends.
    if (each.suspect.kind == Suspicion::kCut && !found.divergence.empty()) continue;
    if (!is_known) found.suspects.push_back(std::move(each.suspect));
  }
}

// Adds a rank that gave no sign for long before the others ended: first, if the waits lead to it.
// `waits`: position of the suspects that the waits found.
void add_silent(const Suspect& silent, std::size_t waits, Diagnosis& found) {
  auto& all = found.suspects;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(waits);
  const auto leads_to_it = [&](const Suspect& each) {
    return std::find(each.ranks.begin(), each.ranks.end(), silent.ranks.front()) !=
           each.ranks.end();
  };
  if (std::any_of(first, all.end(), leads_to_it)) {
    all.insert(first, silent);
  } else {
    all.push_back(silent);
  }
}

// What still matters to a job that runs: not the communicators that it has given up, and no cancel,
// which is the program's own will.
JobView without_past(JobView job) {
  for (RankView& rank : job.ranks) {
    auto& all = rank.view.communicators;
    std::erase_if(all, [](const CommunicatorView& each) { return each.has_left; });
    for (CommunicatorView& each : all) {
      if (!each.failure || static_cast<Status>(each.failure->status) != Status::kCancelled)
        continue;
      each.failure.reset();
      each.wait.reset();
    }
  }
  return job;
}

// What a rank says of this failure: one that was in no call when it failed says nothing.
std::string reason_of(const JobView& job, const Failure& failure) {
  const auto key = [](const Failure& of) {
    return std::make_tuple(of.status, of.detector_in_job, of.peer_in_job);
  };
  std::string text = failure.text;
  for (const RankView& rank : job.ranks) {
    for (const CommunicatorView& part : rank.view.communicators) {
      if (!text.empty()) return text;
      if (part.failure && key(*part.failure) == key(failure)) text = part.failure->text;
    }
  }
  return text;
}

// The failure that a rank noted first. Clocks of hosts may differ.
void find_failure(const JobView& job, Diagnosis& found) {
  const Failure* first = nullptr;
  for (const RankView& rank : job.ranks) {
    for (const CommunicatorView& part : rank.view.communicators) {
      if (part.failure && (first == nullptr || part.failure->at_wall < first->at_wall)) {
        first = &*part.failure;
      }
    }
    if (rank.view.process.state == ProcessState::kJoinFailed && found.cause.empty()) {
      const std::string name = name_of(job, rank.view.process.rank);
      found.cause =
          (job.schedule_ranks == 0 ? "join() failed on " + name : name + " did not start") + ": " +
          rank.view.process.text;
    }
  }
  if (first == nullptr) return;
  found.cause = reason_of(job, *first);
  const bool has_reason = !found.cause.empty();
  if (!has_reason) {
    found.cause = std::string(status_name(static_cast<Status>(first->status))) +
                  ", noted first by " + name_of(job, first->detector_in_job);
  }
  const Ranks both = first->detector_in_job == first->peer_in_job
                         ? Ranks{first->peer_in_job}
                         : Ranks{first->detector_in_job, first->peer_in_job};
  const auto status = static_cast<Status>(first->status);
  if (status == Status::kDeadLink) {
    const RankView* const peer = job.find(first->peer_in_job);
    const std::string name = name_of(job, first->peer_in_job);
    if (peer == nullptr) {
      found.suspects.push_back(make(Suspicion::kNoRecord, {first->peer_in_job},
                                    name + " was found dead, and has no record"));
    } else if (found.suspects.empty()) {
      found.suspects.push_back(make(Suspicion::kCut, both,
                                    "the link between " + ranks_text(both, job.schedule_ranks) +
                                        " was found dead, although both ranks lived"));
    }
    return;
  }
  const Suspicion kind = status == Status::kMismatch ? Suspicion::kDiverged : Suspicion::kFailed;
  // Which of the ranks differs, only the reason tells.
  if (kind == Suspicion::kDiverged && !has_reason) return;
  const bool is_of_one = kind == Suspicion::kFailed && both.size() == 1;
  if (is_of_one || found.suspects.empty()) {
    Suspect suspect = make(kind, both, found.cause);
    // A rank's own reason comes before what the others wait for.
    const auto place = is_of_one ? found.suspects.begin() : found.suspects.end();
    found.suspects.insert(place, std::move(suspect));
  }
}

}  // namespace

const char* name_of(Suspicion suspicion) {
  switch (suspicion) {
    case Suspicion::kNeverStarted: return "never started";
    case Suspicion::kEnded: return "ended";
    case Suspicion::kStopped: return "stopped";
    case Suspicion::kDiverged: return "diverged";
    case Suspicion::kComputing: return "computing";
    case Suspicion::kWorking: return "working";
    case Suspicion::kCut: return "cut";
    case Suspicion::kNoRecord: return "no record";
    case Suspicion::kNewcomers: return "newcomers";
    case Suspicion::kFailed: return "failed";
  }
  return "unknown";
}

Diagnosis diagnose(const JobView& whole) {
  const JobView job = whole.has_ended ? without_end(whole) : without_past(whole);
  const Losses lost = job.has_ended ? find_losses(job) : Losses();
  Diagnosis found;
  find_missing(job, found);
  find_own_reasons(job, found);
  if (!job.has_ended) find_silent(job, found);
  for (const Suspect& each : lost.early) found.suspects.push_back(each);
  find_divergence(job, found);
  find_agreements(job, found);
  const std::size_t waits = found.suspects.size();
  find_waits(job, found);
  for (const Suspect& each : lost.silent) add_silent(each, waits, found);
  for (const Suspect& each : lost.at_end) found.suspects.push_back(each);
  find_failure(job, found);
  return found;
}

}  // namespace espalier::record
