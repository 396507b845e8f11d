#include "tools/status/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "base/counted.h"
#include "base/one_line.h"
#include "communicator/record/agreements.h"
#include "espalier/base/status.h"
#include "tools/common/table.h"

namespace espalier::status {
namespace {

using record::CommunicatorView;
using record::duration_text;
using record::JobView;
using record::Process;
using record::ProcessState;
using record::RankView;

// The communicator that says most: one that failed, one in whose call the rank is, otherwise the
// one that was used last.
const CommunicatorView* main_communicator(const RankView& rank) {
  const CommunicatorView* best = nullptr;
  const auto weight = [&](const CommunicatorView& each) {
    const bool is_open = !each.has_left;
    const int state = each.wait && is_open ? 3 : each.failure ? 2 : each.begun != each.done ? 1 : 0;
    return std::make_tuple(is_open, state, each.changed_ns);
  };
  for (const CommunicatorView& each : rank.view.communicators) {
    if (best == nullptr || weight(*best) < weight(each)) best = &each;
  }
  return best;
}

// "3", "17 router", "6 board"
std::string rank_text(const Process& process) {
  const char* const role = role_of(process);
  const std::string number = std::to_string(process.rank);
  return std::string(role) == "rank" ? number : number + " " + role;
}

std::string state_text(const JobView& job, const RankView& rank, const RankState& state) {
  const std::string time = duration_text(state.for_s);
  if (state.is_agreeing) {
    const std::string awaited = record::awaited_text(job, rank);
    return "waiting " + time + " in " + record::agreement_text(rank) +
           (awaited.empty() ? "" : " for ") + awaited;
  }
  const CommunicatorView* const of = state.communicator;
  if (state.name == "waiting") {
    const std::string peer =
        record::ranks_text({of->wait->peer_in_job}, rank.view.process.schedule_ranks);
    const bool is_for_peer = of->wait->is_for_peer != 0;
    return "waiting " + time +
           (!is_for_peer                ? ""
            : of->wait->is_sending != 0 ? " to send to " + peer
                                        : " to receive from " + peer);
  }
  if (state.name == "failed" && of != nullptr) {
    return "failed " + time + " ago: " + status_name(static_cast<Status>(of->failure->status));
  }
  if (state.name == "failed") {
    return rank.view.process.schedule_ranks == 0 ? "failed to join" : "failed";
  }
  return state.name + " " + time + (rank.life == record::Life::kEnded ? " ago" : "");
}

using Row = std::array<std::string, 8>;

Row row_of(const JobView& job, const RankView& rank) {
  const RankState state = state_of(rank);
  const Process& process = rank.view.process;
  Row row = {rank_text(process), one_line(process.host), std::to_string(process.pid),
             state_text(job, rank, state)};
  const CommunicatorView* const of = state.communicator;
  if (of == nullptr) return row;
  row[4] = std::to_string(of->number) + "/" + std::to_string(of->begun);
  if (of->calls.empty() || of->calls.back().number != of->begun) return row;
  row[5] = record::short_text(of->calls.back().word);
  row[6] = of->calls.back().algorithm;
  if (of->wait && of->wait->step >= 0) {
    row[7] = std::to_string(of->wait->step) +
             (of->wait->steps == 0 ? "" : " of " + std::to_string(of->wait->steps));
  }
  return row;
}

std::string links_text(const JobView& job) {
  constexpr std::size_t kMaxShown = 8;
  std::string text;
  for (const RankView& rank : job.ranks) {
    if (rank.view.peers.empty()) continue;
    text += "    " + std::to_string(rank.view.process.rank) + ":";
    const std::size_t shown = std::min(rank.view.peers.size(), kMaxShown);
    for (std::size_t i = 0; i < shown; ++i) {
      const record::PeerView& peer = rank.view.peers[i];
      text += (i == 0 ? " " : "; ") + std::to_string(peer.sent) + " to " +
              std::to_string(peer.rank) + ", " + std::to_string(peer.received) + " from " +
              std::to_string(peer.rank);
    }
    if (shown < rank.view.peers.size()) {
      text += "; " + std::to_string(rank.view.peers.size() - shown) + " more links (--json)";
    }
    text += "\n";
  }
  return text.empty() ? "" : "  bytes of complete calls, by rank\n" + text;
}

std::string head_of(const JobView& job) {
  std::set<std::string> hosts;
  for (const RankView& rank : job.ranks) hosts.insert(rank.view.process.host);
  const std::uint32_t routers = job.schedule_ranks == 0 ? 0 : job.size - job.schedule_ranks;
  const std::string nodes = counted(job.size - routers, "rank") +
                            (routers == 0 ? "" : " and " + counted(routers, "router"));
  std::string text = "job " + one_line(job.name) + ": " + nodes + ", " +
                     std::to_string(job.ranks.size()) + " with a record, on " +
                     counted(hosts.size(), "host");
  const Process& process = job.ranks.front().view.process;
  if (process.provider[0] != 0) text += ", over " + one_line(process.provider);
  return text + "\n";
}

}  // namespace

const char* role_of(const Process& process) {
  if (process.board[0] != 0) return "board";
  return process.schedule_ranks != 0 && process.rank >= process.schedule_ranks ? "router" : "rank";
}

RankState state_of(const RankView& rank) {
  const Process& process = rank.view.process;
  RankState state{.communicator = main_communicator(rank)};
  const CommunicatorView* const of = state.communicator;
  const bool has_failed = of != nullptr && of->failure.has_value();
  if (process.state == ProcessState::kJoinFailed) {
    return {.name = "failed", .for_s = rank.age(process.since_ns)};
  }
  if (process.text[0] != 0) return {.name = "failed", .for_s = rank.quiet_s};  // a node
  if (rank.life == record::Life::kEnded && !has_failed) {
    state.name = "ended";
    state.for_s = rank.quiet_s;
  } else if (rank.life == record::Life::kStopped) {
    state.name = "stopped";
    state.for_s = rank.quiet_s;
  } else if (process.state == ProcessState::kJoining) {
    state.name = "joining";
    state.for_s = rank.age(process.since_ns);
  } else if (process.agreement.kind != record::AgreementKind::kNone) {
    state.name = "waiting";
    state.for_s = rank.age(process.agreement.since_ns);
    state.is_agreeing = true;
  } else if (has_failed) {
    state.name = "failed";
    state.for_s = rank.age(of->failure->at_ns);
  } else if (of != nullptr && of->wait) {
    state.name = "waiting";
    state.for_s = rank.age(of->wait->call_since_ns);
  } else if (of != nullptr && of->inside_ns != 0) {
    state.name = "working";
    state.for_s = rank.age(of->inside_ns);
  } else {
    state.name = "computing";
    state.for_s = rank.age(of == nullptr ? process.since_ns : of->changed_ns);
  }
  return state;
}

std::string text_of(const Report& report) {
  std::string text = head_of(report.job);
  for (const record::Suspect& suspect : report.diagnosis.suspects) {
    text += (&suspect == &report.diagnosis.suspects.front() ? "  suspect: " : "  also: ") +
            one_line(suspect.text) + "\n";
  }
  if (report.diagnosis.suspects.empty()) {
    text += std::string("  no suspect: ") + (report.diagnosis.cause.empty()
                                                 ? "no rank has waited for 1 s\n"
                                                 : "the records that are left name none\n");
  }
  if (!report.diagnosis.cause.empty()) {
    text += "  cause: " + one_line(report.diagnosis.cause) + "\n";
  }
  std::vector<Row> rows = {
      {"rank", "host", "process", "state", "communicator/call", "collective", "algorithm", "step"}};
  for (const RankView& rank : report.job.ranks) rows.push_back(row_of(report.job, rank));
  return text + tools::table_text(rows) + links_text(report.job);
}

std::string ended_text(const Report& report) {
  const auto& [job, diagnosis] = report;
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < job.size; ++rank) {
    if (job.find(rank) == nullptr) missing.push_back(rank);
  }
  std::string text = head_of(job);
  text += "  first divergence: " +
          (diagnosis.divergence.empty() ? "none in the last calls of each rank"
                                        : one_line(diagnosis.divergence)) +
          "\n";
  text +=
      "  culprit: " +
      (diagnosis.suspects.empty() ? "none is known" : one_line(diagnosis.suspects.front().text)) +
      "\n";
  text += "  cause: " +
          (diagnosis.cause.empty() ? "no failure was noted: the processes were ended"
                                   : one_line(diagnosis.cause)) +
          "\n";
  text += "  records: " +
          (missing.empty() ? "of all ranks"
                           : record::ranks_text(missing, job.schedule_ranks) +
                                 " left none: " + (missing.size() == 1 ? "it" : "they") +
                                 " left in order, never started, or wrote elsewhere") +
          "\n";
  return text;
}

}  // namespace espalier::status
