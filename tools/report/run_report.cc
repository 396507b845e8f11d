#include "tools/report/run_report.h"

#include <algorithm>
#include <cstdio>

#include "tools/common/json.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/options/workload_options.h"

namespace espalier::run_command {
namespace {

using tools::Json;

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  char text[1024];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

Json node_json(const NodeResult& node) {
  Json out;
  out[node.router ? "router" : "rank"] = node.node;
  if (node.router) out["name"] = node.name;
  out["pid"] = node.pid;
  out["seconds"] = node.seconds;
  if (node.has_bytes) out["sha256"] = node.sha256;
  out["checked"] = node.checked;
  if (node.checked) out["right"] = node.right;
  out["status"] = node.status;
  out["failed"] = node.failed;
  if (node.disturbed) out["disturbed"] = true;
  if (!node.cause.empty()) {
    out["cause"] = {{"status", node.cause}, {"detector", node.detector}, {"peer", node.peer}};
    if (node.after_disturbance > 0) out["after_disturbance_s"] = node.after_disturbance;
  }
  return out;
}

void add_nodes(const SizeResult& size, std::string& text) {
  std::size_t width = 4;
  for (const NodeResult& node : size.nodes) width = std::max(width, node.name.size());
  const int column = static_cast<int>(width);
  text += format("%-*s      pid         bytes        time  result  SHA-256\n", column, "node");
  for (const NodeResult& node : size.nodes) {
    const char* verdict = node.failed     ? "FAILED"
                          : !node.checked ? "-"
                          : node.right    ? "ok"
                                          : "WRONG";
    text += format("%-*s  %7d  %12llu  %10s  %-6s  %s\n", column, node.name.c_str(), node.pid,
                   static_cast<unsigned long long>(node.bytes),
                   tools::seconds_text(node.seconds).c_str(), verdict,
                   node.has_bytes ? node.sha256.c_str() : "-");
  }
}

// The process table of a hop-by-hop run: by node its endpoints.
void add_endpoints(const RunResult& result, std::string& text) {
  std::size_t name = 4, address = 8, interface = 0;
  for (const EndpointResult& row : result.endpoints) {
    name = std::max({name, row.name.size(), row.peer_name.size()});
    address = std::max(address, row.address.size());
    interface = std::max(interface, row.interface.size());
  }
  const int wide = static_cast<int>(name);
  const int middle = static_cast<int>(address);
  if (interface != 0) interface = std::max<std::size_t>(interface, 9) + 2;
  const int cable = static_cast<int>(interface);
  text += format("%-*s      pid  link  lane  %-*s%-*s  %-*s  its peer's\n", wide, "node", cable,
                 cable == 0 ? "" : "interface", middle, "endpoint", wide, "peer");
  std::uint32_t before = UINT32_MAX;
  for (const EndpointResult& row : result.endpoints) {
    const bool again = row.node == before;
    before = row.node;
    text += format("%-*s  %7s  %4u  %4u  %-*s%-*s  %-*s  %s\n", wide, again ? "" : row.name.c_str(),
                   again ? "" : std::to_string(row.pid).c_str(), row.link, row.lane, cable,
                   row.interface.c_str(), middle, row.address.c_str(), wide, row.peer_name.c_str(),
                   row.peer_address.c_str());
  }
}

Json endpoints_json(const RunResult& result) {
  Json all = Json::array();
  std::uint32_t before = UINT32_MAX;
  for (const EndpointResult& row : result.endpoints) {
    if (row.node != before) {
      all.push_back(
          {{"node", row.node}, {"name", row.name}, {"pid", row.pid}, {"endpoints", Json::array()}});
    }
    before = row.node;
    all.back()["endpoints"].push_back({{"link", row.link},
                                       {"lane", row.lane},
                                       {"peer", row.peer},
                                       {"peer_name", row.peer_name},
                                       {"address", row.address},
                                       {"peer_address", row.peer_address}});
    if (!row.interface.empty()) all.back()["endpoints"].back()["interface"] = row.interface;
  }
  return all;
}

void add_failures(const SizeResult& size, std::string& text) {
  for (const NodeResult& node : size.nodes) {
    if (!node.failed) continue;
    text += format("%s: %s", node.name.c_str(), node.status.c_str());
    if (node.after_disturbance > 0 && !node.cause.empty()) {
      text += "; ended " + tools::seconds_text(node.after_disturbance) + " after the disturbance";
    }
    text += "\n";
  }
}

double median_of(const SizeResult& size) {
  return size.times.empty() ? 0 : tools::median(size.times);
}

// "12.34", or "-"
std::string number_text(std::optional<double> number) {
  return number ? format("%.3g", *number) : "-";
}

// With unequal counts: of the mean part.
Bandwidth bandwidth_for(const RunResult& result, const SizeResult& size, double seconds) {
  auto bytes = static_cast<double>(size.bytes);
  if (!result.counts.empty()) {
    const double largest =
        static_cast<double>(*std::max_element(result.counts.begin(), result.counts.end()));
    double sum = 0;
    for (const std::uint64_t count : result.counts) sum += static_cast<double>(count);
    bytes = sum == 0 ? 0 : bytes / largest * sum / static_cast<double>(result.counts.size());
  }
  return bandwidth_of(result.kind, result.ranks, bytes, seconds);
}

void add_table(const RunResult& result, std::string& text) {
  text += format("%12s %8s %9s %8s %8s %11s %11s %9s %9s  %s\n",
                 !result.counts.empty()  ? "longest part"
                 : result.bytes_per_rank ? "bytes/rank"
                                         : "bytes",
                 "N", "block B", "steps", "bound", "predicted", "time", "algbw", "busbw", "result");
  for (const SizeResult& size : result.sizes) {
    const double seconds = median_of(size);
    const Bandwidth bandwidth = bandwidth_for(result, size, seconds);
    const bool failed = std::any_of(size.nodes.begin(), size.nodes.end(),
                                    [](const NodeResult& node) { return node.failed; });
    text += format("%12llu %8u %9llu %8lld %8lld %11s %11s %9s %9s  %s\n",
                   static_cast<unsigned long long>(size.bytes), size.blocks,
                   static_cast<unsigned long long>(size.block_bytes),
                   static_cast<long long>(size.steps), static_cast<long long>(size.bound_steps),
                   tools::seconds_text(size.predicted).c_str(),
                   size.times.empty() ? "-" : tools::seconds_text(seconds).c_str(),
                   number_text(bandwidth.algorithm).c_str(), number_text(bandwidth.bus).c_str(),
                   size.right ? "ok"
                   : failed   ? "FAILED"
                              : "WRONG");
  }
}

// Explains the columns of the table.
std::string legend(const RunResult& result) {
  std::string text = "time: the slowest rank's";
  const std::size_t repetitions = result.sizes.empty() ? 0 : result.sizes.front().times.size();
  if (repetitions > 1) text += format(", median of %zu", repetitions);
  if (result.back_to_back > 1) text += format(", each of %u back to back", result.back_to_back);
  text += "; bound: the least steps that any schedule takes; algbw, busbw: GB/s as in nccl-tests\n";
  if (result.processors > 0 && result.nodes > result.processors) {
    text += std::to_string(result.nodes) + " nodes share " +
            tools::counted(result.processors, "processor") +
            " and take turns: the time is not that of a fabric\n";
  }
  if (!result.default_model || result.sizes.empty()) return text;
  const SizeResult& size = result.sizes.front();
  return text + "predicted: with the default alpha and beta, not measured here (alpha " +
         tools::seconds_text(size.alpha) + format(", beta %.3g ns/B", size.beta * 1e9) +
         "); 'espalier measure' measures them\n";
}

Json result_json(const RunResult& result) {
  Json out = {{"topology", result.topology},
              {"collective", result.collective},
              {"algorithm", result.algorithm}};
  if (!result.chosen.empty()) out["chosen"] = result.chosen;
  if (result.rooted) out["root"] = result.root;
  out["ranks"] = result.ranks;
  out["routers"] = result.nodes - result.ranks;
  out["nodes_per_process"] = result.nodes_per_process;
  if (result.processors > 0) out["processors"] = result.processors;
  out["provider"] = result.provider;
  out["links"] = result.hop_by_hop ? "hop-by-hop" : "routed";
  if (result.hop_by_hop) out["processes"] = endpoints_json(result);
  out["type"] = result.type;
  out["op"] = result.op;
  out["proven_blocks"] = result.proven_blocks;
  out["proven_for"] = result.proven_for;
  out["descriptor_bytes"] = result.descriptor_bytes;
  out["bytes_are"] = !result.counts.empty()  ? "longest part"
                     : result.bytes_per_rank ? "per rank"
                                             : "whole message";
  if (!result.counts.empty()) out["counts"] = result.counts;
  out["back_to_back"] = result.back_to_back;
  out["runs"] = Json::array();
  for (const SizeResult& size : result.sizes) {
    Json run = {{"bytes", size.bytes},
                {"blocks", size.blocks},
                {"block_bytes", size.block_bytes},
                {"steps", size.steps},
                {"alpha_s", size.alpha},
                {"beta_s_per_byte", size.beta},
                {"bound_steps", size.bound_steps},
                {"predicted_s", size.predicted},
                {"alpha_is_default", result.default_model},
                {"beta_is_default", result.default_model}};
    const Bandwidth bandwidth = bandwidth_for(result, size, median_of(size));
    run["algbw_gb_per_s"] = bandwidth.algorithm ? Json(*bandwidth.algorithm) : Json();
    run["busbw_gb_per_s"] = bandwidth.bus ? Json(*bandwidth.bus) : Json();
    run["median_s"] = size.times.empty() ? Json() : Json(tools::median(size.times));
    run["times_s"] = size.times;
    run["span_s"] = size.spans;
    run["right"] = size.right;
    run["ranks"] = Json::array();
    run["routers"] = Json::array();
    for (const NodeResult& node : size.nodes) {
      run[node.router ? "routers" : "ranks"].push_back(node_json(node));
    }
    out["runs"].push_back(run);
  }
  out["right"] = result.right;
  return out;
}

std::string result_text(const RunResult& result, bool ranks) {
  std::string text = format("%s by %s on %s", result.collective.c_str(), result.algorithm.c_str(),
                            result.topology_title.c_str());
  if (result.rooted) text += format(", root %u", result.root);
  if (result.combines) text += format(", %s of %s", result.op.c_str(), result.type.c_str());
  text +=
      format(", over %s%s; proven for %s; descriptors up to %llu bytes\n", result.provider.c_str(),
             result.hop_by_hop ? ", hop by hop" : "", result.proven_for.c_str(),
             static_cast<unsigned long long>(result.descriptor_bytes));
  if (result.hop_by_hop) {
    if (ranks) add_endpoints(result, text);
    text += format("%zu endpoints, each joined to its peer's and to no other\n",
                   result.endpoints.size());
  }
  if (!result.chosen.empty()) text += result.chosen_by + ": " + result.chosen + "\n";
  if (!result.counts.empty()) {
    text += "counts: " + tools::counts_text(result.counts_option, result.counts) + " elements\n";
  }
  text += legend(result);
  add_table(result, text);
  std::size_t checked = 0, correct = 0;
  for (const SizeResult& size : result.sizes) {
    if (ranks) add_nodes(size, text);
    add_failures(size, text);  // always
    for (const NodeResult& node : size.nodes) {
      checked += node.checked ? 1 : 0;
      correct += node.checked && node.right && !node.failed ? 1 : 0;
    }
  }
  text +=
      format("%s: %zu of %zu results correct\n", result.right ? "ok" : "FAILED", correct, checked);
  return text;
}

}  // namespace

Bandwidth bandwidth_of(Collective collective, std::uint32_t ranks, double bytes, double seconds) {
  if (seconds <= 0 || collective == Collective::kBarrier) return {};
  const double all = bytes * (counts_per_rank(collective) ? ranks : 1);
  const double algorithm = all / seconds * 1e-9;
  // Each rank has its own part already.
  const double others = ranks > 1 ? (ranks - 1.0) / ranks : 1;
  switch (collective.value()) {
    case Collective::kBroadcast:
    case Collective::kReduce: return {algorithm, algorithm};
    case Collective::kAllreduce: return {algorithm, algorithm * 2 * others};
    case Collective::kScan:
    case Collective::kExscan: return {algorithm, std::nullopt};
    default: return {algorithm, algorithm * others};
  }
}

std::string to_json(const std::vector<RunResult>& results) {
  if (results.size() == 1) return result_json(results.front()).dump(2) + "\n";
  Json schedules = Json::array();
  bool right = true;
  for (const RunResult& result : results) {
    schedules.push_back(result_json(result));
    right = right && result.right;
  }
  const RunResult& first = results.front();
  const std::string algorithm = first.chosen_by == "run length" ? first.algorithm : "auto";
  const Json out = {{"algorithm", algorithm}, {"schedules", schedules}, {"right", right}};
  return out.dump(2) + "\n";
}

std::string to_text(const std::vector<RunResult>& results, bool ranks) {
  std::string text;
  for (const RunResult& result : results) text += result_text(result, ranks);
  return text;
}

}  // namespace espalier::run_command
