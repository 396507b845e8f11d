#include "tools/report/trace_json.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>

#include "collectives/schedule/expand.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/output.h"
#include "tools/report/show_text.h"

namespace espalier::tools {
namespace {

constexpr std::uint64_t kMaxRecords = 4'000'000;
constexpr std::uint32_t kStepsTrack = 1, kOperationsTrack = 2, kFirstLink = 3;

// The k-th message of a link is the k-th of both its ends.
struct Lane {
  std::vector<std::uint32_t> sends, receives;  // records of the logs of its ends
};

// A line of the file and its sort key.
struct Line {
  std::uint64_t time_ns = 0;
  int order = 0;  // at one time: slices, then the beginnings of arrows, then their ends
  std::string text;
};

class Writer {
 public:
  Writer(const planner::LoadedSchedule& loaded, const std::vector<EventLog>& logs)
      : loaded_(loaded), logs_(logs) {
    begin_ = UINT64_MAX;
    for (std::uint32_t node = 0; node < logs.size(); ++node) {
      const EventLog& log = logs[node];
      trace_.lost += log.lost();
      for (std::uint32_t i = 0; i < log.count(); ++i) {
        begin_ = std::min(begin_, log.times(i).issued);
        const Event& event = log.event(i);
        trace_.unfinished += event.begun && !event.done;
        if (event.link == Event::kNoLink) continue;
        const std::uint32_t peer = peer_of(loaded.programs[node], event.link);
        const bool send = event.kind == ActionKind::kSend;
        Lane& lane = lanes_[send ? std::pair{node, peer} : std::pair{peer, node}];
        (send ? lane.sends : lane.receives).push_back(i);
      }
    }
  }

  Trace write(const std::string& other) {
    for (auto& [link, lane] : lanes_) draw_lane(link.first, link.second, lane);
    for (std::uint32_t node = 0; node < logs_.size(); ++node) {
      draw_operations(node);
      draw_steps(node);
    }
    std::stable_sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) {
      if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
      return a.order < b.order;
    });
    std::string& json = trace_.json;
    json = "{\"displayTimeUnit\":\"ns\",\n\"otherData\":" + other + ",\n\"traceEvents\":[";
    std::string separator = "\n";
    const auto add = [&](const std::string& line) {
      json += separator + line;
      separator = ",\n";
    };
    for (const std::string& line : names()) add(line);
    for (const Line& line : lines_) add(line.text);
    json += "\n]}\n";
    trace_.tracks = tracks_.size();
    return std::move(trace_);
  }

 private:
  [[nodiscard]] const Event& event(std::uint32_t node, std::uint32_t record) const {
    return logs_[node].event(record);
  }
  [[nodiscard]] const EventTimes& times(std::uint32_t node, std::uint32_t record) const {
    return logs_[node].times(record);
  }
  [[nodiscard]] std::string us(std::uint64_t ns) const {
    char text[32];
    std::snprintf(text, sizeof text, "%" PRIu64 ".%03u", ns / 1000,
                  static_cast<unsigned>(ns % 1000));
    return text;
  }
  [[nodiscard]] std::string on(std::uint32_t node, std::uint32_t track) {
    tracks_.insert({node, track});
    return "\"pid\":" + std::to_string(node) + ",\"tid\":" + std::to_string(track);
  }

  // A slice of a record from `from` to `to`.
  void slice(std::uint32_t node, std::uint32_t track, std::uint32_t record, std::uint64_t from,
             std::uint64_t to, std::int64_t peer) {
    const Event& record_event = event(node, record);
    const EventTimes& when = times(node, record);
    std::string text = "{\"ph\":\"X\"," + on(node, track) + ",\"ts\":" + us(from - begin_) +
                       ",\"dur\":" + us(to - from) + ",\"cat\":\"" +
                       kind_name(static_cast<ActionKind>(record_event.kind)) + "\",\"name\":\"" +
                       std::to_string(record_event.segment) + "." +
                       std::to_string(record_event.block) +
                       "\",\"args\":{\"step\":" + std::to_string(record_event.step) +
                       ",\"action\":" + std::to_string(record_event.action) +
                       ",\"segment\":" + std::to_string(record_event.segment) +
                       ",\"block\":" + std::to_string(record_event.block);
    if (peer >= 0) text += ",\"peer\":" + std::to_string(peer);
    text += ",\"issued\":" + us(when.issued - begin_) + ",\"posted\":" + us(when.posted - begin_) +
            ",\"complete\":" + us(when.done - begin_);
    lines_.push_back({from, 0, text + "}}"});
    ++trace_.slices;
  }

  void draw_lane(std::uint32_t from, std::uint32_t to, Lane& lane) {
    std::uint64_t sent = 0, received = 0;  // when the message before was
    const std::uint32_t out = kFirstLink + 2 * link_to(from, to);
    const std::uint32_t in = kFirstLink + 2 * link_to(to, from) + 1;
    for (std::size_t k = 0; k < std::max(lane.sends.size(), lane.receives.size()); ++k) {
      const bool comes = k < lane.receives.size() && event(to, lane.receives[k]).done;
      const std::uint64_t came = comes ? times(to, lane.receives[k]).done : UINT64_MAX;
      const bool goes = k < lane.sends.size() && event(from, lane.sends[k]).done;
      std::uint64_t left = came;
      if (goes) {
        const EventTimes& when = times(from, lane.sends[k]);
        const std::uint64_t end = std::max(sent, std::min(when.done, came));
        left = std::min(std::max(when.posted, sent), end);
        slice(from, out, lane.sends[k], left, end, to);
        sent = end;
      }
      if (!comes) continue;
      const std::uint64_t awaited =
          std::min(std::max(times(to, lane.receives[k]).posted, received), came);
      slice(to, in, lane.receives[k], awaited, came, from);
      received = came;
      if (goes) arrow(from, out, left, to, in, std::max(awaited, left));
    }
  }

  void arrow(std::uint32_t from, std::uint32_t out, std::uint64_t left, std::uint32_t to,
             std::uint32_t in, std::uint64_t came) {
    const std::string id =
        ",\"cat\":\"message\",\"name\":\"message\",\"id\":" + std::to_string(++trace_.arrows);
    lines_.push_back(
        {left, 1, "{\"ph\":\"s\"," + on(from, out) + ",\"ts\":" + us(left - begin_) + id + "}"});
    lines_.push_back(
        {came, 2,
         "{\"ph\":\"f\",\"bp\":\"e\"," + on(to, in) + ",\"ts\":" + us(came - begin_) + id + "}"});
  }

  [[nodiscard]] std::uint32_t link_to(std::uint32_t node, std::uint32_t peer) const {
    const Program& program = loaded_.programs[node];
    for (std::uint32_t link = 0; link < links_count(program); ++link) {
      if (peer_of(program, link) == peer) return link;
    }
    return links_count(program);
  }

  void draw_operations(std::uint32_t node) {
    for (std::uint32_t i = 0; i < logs_[node].count(); ++i) {
      const Event& record_event = event(node, i);
      if (record_event.link != Event::kNoLink || !record_event.done) continue;
      slice(node, kOperationsTrack, i, times(node, i).posted, times(node, i).done, -1);
    }
  }

  // Steps overlap where the window is above 1: one is drawn from when it was the oldest.
  void draw_steps(std::uint32_t node) {
    std::uint64_t before = 0;
    const EventLog& log = logs_[node];
    for (std::uint32_t i = 0; i < log.retired(); ++i) {
      if (i > 0 && log.event(i).step == log.event(i - 1).step) continue;
      const EventTimes& when = log.times(i);
      const std::uint64_t from = std::max(when.issued, before);
      lines_.push_back({from, 0,
                        "{\"ph\":\"X\"," + on(node, kStepsTrack) + ",\"ts\":" + us(from - begin_) +
                            ",\"dur\":" + us(when.retired - from) +
                            ",\"cat\":\"step\",\"name\":\"step " +
                            std::to_string(log.event(i).step) +
                            "\",\"args\":{\"step\":" + std::to_string(log.event(i).step) +
                            ",\"issued\":" + us(when.issued - begin_) + "}}"});
      before = when.retired;
      ++trace_.slices;
    }
  }

  // The lines that name processes and tracks.
  [[nodiscard]] std::vector<std::string> names() {
    std::vector<std::string> lines;
    const auto name = [&](const char* what, std::uint32_t node, std::uint32_t track,
                          const Json& args) {
      Json line = {{"ph", "M"}, {"pid", node}, {"name", what}, {"args", args}};
      if (track > 0) line["tid"] = track;
      lines.push_back(line.dump());
    };
    for (std::uint32_t node = 0; node < logs_.size(); ++node) {
      name("process_name", node, 0, {{"name", loaded_.topology->node_name(node)}});
      name("process_sort_index", node, 0, {{"sort_index", node}});
      ++trace_.nodes;
    }
    for (const auto& [node, track] : tracks_) {
      std::string text = track == kStepsTrack ? "steps" : "combines and copies";
      if (track >= kFirstLink) {
        const std::uint32_t peer = peer_of(loaded_.programs[node], (track - kFirstLink) / 2);
        text = ((track - kFirstLink) % 2 == 0 ? "to " : "from ") + std::to_string(peer);
      }
      name("thread_name", node, track, {{"name", text}});
      name("thread_sort_index", node, track, {{"sort_index", track}});
    }
    return lines;
  }

  const planner::LoadedSchedule& loaded_;
  const std::vector<EventLog>& logs_;
  std::uint64_t begin_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Lane> lanes_;  // by (from, to)
  std::set<std::pair<std::uint32_t, std::uint32_t>> tracks_;       // (node, track) with slices
  std::vector<Line> lines_;
  Trace trace_;
};

}  // namespace

std::vector<std::uint32_t> log_room(const Programs& programs, std::int64_t blocks) {
  std::vector<std::uint32_t> rooms;
  std::uint64_t all = 0;
  for (const Program& program : programs) {
    rooms.push_back(static_cast<std::uint32_t>(expand(program, blocks).size()));
    all += rooms.back();
    if (all <= kMaxRecords) continue;
    bad_input("a trace of N = " + std::to_string(blocks) + " has more than " +
              std::to_string(kMaxRecords) + " messages; expected fewer --bytes");
  }
  return rooms;
}

Trace make_trace(const planner::LoadedSchedule& loaded, const std::vector<EventLog>& logs,
                 std::uint64_t bytes, std::int64_t blocks, const std::string& clock) {
  const Program& program = loaded.programs.front();
  const Json other = {{"schedule", loaded.name},
                      {"schedule_digest", hex(program.schedule_digest)},
                      {"topology", loaded.topology->spec()},
                      {"collective", collective_name(program.collective)},
                      {"algorithm", program.algorithm},
                      {"bytes", bytes},
                      {"blocks", blocks},
                      {"clock", clock}};
  return Writer(loaded, logs).write(other.dump());
}

void write_trace(const std::string& path, const Trace& trace, bool say) {
  write_file(path, trace.json);
  if (!say) return;
  std::printf("  trace      %s: %s, %s, %s, %s", one_line(path).c_str(),
              counted(trace.nodes, "node").c_str(), counted(trace.tracks, "track").c_str(),
              counted(trace.slices, "slice").c_str(), counted(trace.arrows, "arrow").c_str());
  if (trace.lost > 0) std::printf("; %s lost", counted(trace.lost, "record").c_str());
  if (trace.unfinished > 0)
    std::printf("; %s unfinished", counted(trace.unfinished, "one").c_str());
  std::printf("\n");
}

}  // namespace espalier::tools
