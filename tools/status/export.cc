// What `espalier status` prints for programs.

#include <cmath>
#include <cstdio>

#include "base/one_line.h"
#include "communicator/record/agreements.h"
#include "communicator/record/call_word.h"
#include "espalier/base/status.h"
#include "tools/status/report.h"

namespace espalier::status {
namespace {

using record::CommunicatorView;
using record::RankView;
using tools::Json;

std::int64_t milliseconds(double seconds) { return std::llround(seconds * 1e3); }

std::string id_text(std::uint64_t id) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(id));
  return text;
}

Json call_json(const record::CallView& call, const RankView& rank) {
  const auto parts = communicator::parts_of(call.word);
  Json json = {{"number", call.number},
               {"collective", parts.collective},
               {"begun_ms_ago", milliseconds(rank.age(call.begun_ns))}};
  if (!call.algorithm.empty()) json.add("algorithm", call.algorithm);
  if (parts.type.empty()) return json;
  if (!parts.has_counts) json.add("count", parts.count);
  json.add("type", parts.type);
  if (!parts.op.empty()) json.add("op", parts.op);
  json.add("root", parts.root);
  return json;
}

Json communicator_json(const CommunicatorView& of, const RankView& rank) {
  Json json = {{"id", id_text(of.id)}, {"number", of.number},     {"rank", of.rank},
               {"size", of.size},      {"has_left", of.has_left}, {"calls_begun", of.begun},
               {"calls_done", of.done}};
  auto calls = Json::array();
  for (const record::CallView& call : of.calls) calls.push_back(call_json(call, rank));
  json.add("last_calls", std::move(calls));
  if (of.wait) {
    Json wait = {{"ms", milliseconds(rank.age(of.wait->call_since_ns))},
                 {"step", of.wait->step},
                 {"steps", of.wait->steps}};
    if (of.wait->is_for_peer != 0) {
      wait.add("rank", of.wait->peer_in_job);
      wait.add("to", of.wait->is_sending != 0 ? "send" : "receive");
    }
    json.add("waits", std::move(wait));
  }
  if (of.failure) {
    json.add("failure", {{"call", of.failure->call},
                         {"status", status_name(static_cast<Status>(of.failure->status))},
                         {"detector", of.failure->detector_in_job},
                         {"peer", of.failure->peer_in_job},
                         {"ms_ago", milliseconds(rank.age(of.failure->at_ns))},
                         {"text", std::string(of.failure->text)}});
  }
  return json;
}

Json rank_json(const record::JobView& job, const RankView& rank) {
  const record::Process& process = rank.view.process;
  const RankState state = state_of(rank);
  auto links = Json::array();
  for (const record::PeerView& peer : rank.view.peers) {
    links.push_back({{"rank", peer.rank}, {"sent", peer.sent}, {"received", peer.received}});
  }
  auto communicators = Json::array();
  for (const CommunicatorView& each : rank.view.communicators) {
    communicators.push_back(communicator_json(each, rank));
  }
  Json json = {
      {"rank", process.rank},
      {"role", role_of(process)},
      {"host", std::string(process.host)},
      {"process", process.pid},
      {"version", std::string(process.library)},
      {"provider", std::string(process.provider)},
      {"state", state.name},
      {"state_ms", milliseconds(state.for_s)},
      {"heartbeat_ms_ago", milliseconds(rank.quiet_s)},
      {"communicators_made", process.communicators},
      {"communicators_unrecorded", process.unrecorded},
      {"failures", process.failures},
      {"communicators", communicators},
      {"links", links},
      {"other_links",
       {{"sent", rank.view.other_peers.sent}, {"received", rank.view.other_peers.received}}}};
  if (const std::string call = record::agreement_text(rank); !call.empty()) {
    json.add("agreement", {{"call", call},
                           {"ms", milliseconds(rank.age(process.agreement.since_ns))},
                           {"ranks", record::awaited_ranks(job, rank)},
                           {"newcomers", process.agreement.newcomers}});
  }
  if (process.board[0] != 0) json.add("board", std::string(process.board));
  if (process.text[0] != 0) json.add("join_failure", std::string(process.text));
  return json;
}

// A sample of one metric. `labels`: NAME="VALUE", ... of a rank.
void add(std::string& text, const std::string& name, const std::string& labels, double value) {
  char number[40];
  std::snprintf(number, sizeof number, value == std::floor(value) ? "%.0f" : "%.3f", value);
  text += "espalier_" + name + "{" + labels + "} " + number + "\n";
}

struct Metric {
  const char* name;
  const char* type;
  const char* help;
  void (*add_rank)(std::string& text, const std::string& labels, const RankView& rank);
};

std::string label(const std::string& name, const std::string& value) {
  std::string text = name + "=\"";
  for (const char letter : one_line(value)) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter;
  }
  return text + "\"";
}

std::string of_communicator(const std::string& labels, const CommunicatorView& of) {
  return labels + "," + label("communicator", std::to_string(of.number));
}

constexpr Metric kMetrics[] = {
    {"heartbeat_age_seconds", "gauge", "Time since the process gave its last sign.",
     [](std::string& text, const std::string& labels, const RankView& rank) {
       add(text, "heartbeat_age_seconds", labels, rank.quiet_s);
     }},
    {"state_seconds", "gauge", "How long the rank has been in its state.",
     [](std::string& text, const std::string& labels, const RankView& rank) {
       const RankState state = state_of(rank);
       add(text, "state_seconds", labels + "," + label("state", state.name), state.for_s);
     }},
    {"calls_begun_total", "counter", "Collectives that the rank began.",
     [](std::string& text, const std::string& labels, const RankView& rank) {
       for (const CommunicatorView& each : rank.view.communicators) {
         add(text, "calls_begun_total", of_communicator(labels, each),
             static_cast<double>(each.begun));
       }
     }},
    {"calls_done_total", "counter", "Collectives that are complete at the rank.",
     [](std::string& text, const std::string& labels, const RankView& rank) {
       for (const CommunicatorView& each : rank.view.communicators) {
         add(text, "calls_done_total", of_communicator(labels, each),
             static_cast<double>(each.done));
       }
     }},
    {"failures_total", "counter", "Communicators that failed at the rank.",
     [](std::string& text, const std::string& labels, const RankView& rank) {
       add(text, "failures_total", labels, rank.view.process.failures);
     }},
    {"link_sent_bytes_total", "counter", "Bytes of complete collectives to another rank.",
     [](std::string& text, const std::string& labels, const RankView& rank) {
       for (const record::PeerView& peer : rank.view.peers) {
         add(text, "link_sent_bytes_total", labels + "," + label("peer", std::to_string(peer.rank)),
             static_cast<double>(peer.sent));
       }
     }},
    {"link_received_bytes_total", "counter", "Bytes of complete collectives from another rank.",
     [](std::string& text, const std::string& labels, const RankView& rank) {
       for (const record::PeerView& peer : rank.view.peers) {
         add(text, "link_received_bytes_total",
             labels + "," + label("peer", std::to_string(peer.rank)),
             static_cast<double>(peer.received));
       }
     }},
};

}  // namespace

Json json_of(const std::vector<Report>& reports) {
  auto jobs = Json::array();
  for (const auto& [job, diagnosis] : reports) {
    auto suspects = Json::array();
    for (const record::Suspect& suspect : diagnosis.suspects) {
      suspects.push_back({{"kind", record::name_of(suspect.kind)},
                          {"ranks", suspect.ranks},
                          {"text", suspect.text}});
    }
    auto ranks = Json::array();
    for (const RankView& rank : job.ranks) ranks.push_back(rank_json(job, rank));
    jobs.push_back({{"job", job.name},
                    {"size", job.size},
                    {"has_ended", job.has_ended},
                    {"suspects", suspects},
                    {"divergence", diagnosis.divergence},
                    {"cause", diagnosis.cause},
                    {"ranks", ranks}});
  }
  return Json({{"version", 1}, {"jobs", jobs}});
}

std::string prometheus_of(const std::vector<Report>& reports) {
  std::string text;
  for (const Metric& metric : kMetrics) {
    text += std::string("# HELP espalier_") + metric.name + " " + metric.help +
            "\n# TYPE espalier_" + metric.name + " " + metric.type + "\n";
    for (const Report& report : reports) {
      for (const RankView& rank : report.job.ranks) {
        const std::string labels = label("job", report.job.name) + "," +
                                   label("rank", std::to_string(rank.view.process.rank)) + "," +
                                   label("host", rank.view.process.host);
        metric.add_rank(text, labels, rank);
      }
    }
  }
  text +=
      "# HELP espalier_suspect Ranks that may hold the job up.\n# TYPE espalier_suspect gauge\n";
  for (const Report& report : reports) {
    for (const record::Suspect& suspect : report.diagnosis.suspects) {
      for (const std::uint32_t rank : suspect.ranks) {
        add(text, "suspect",
            label("job", report.job.name) + "," + label("rank", std::to_string(rank)) + "," +
                label("kind", record::name_of(suspect.kind)),
            1);
      }
    }
  }
  return text;
}

}  // namespace espalier::status
