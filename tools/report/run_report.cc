#include "tools/report/run_report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/common/numbers.h"
#include "tools/common/output.h"

namespace espalier::run {
namespace {

using nlohmann::ordered_json;

template <typename... Args>
std::string format(const char* pattern, Args... args) {
  char text[1024];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

ordered_json node_json(const NodeResult& node) {
  ordered_json out;
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
                          : node.right    ? "right"
                                          : "WRONG";
    text += format("%-*s  %7d  %12llu  %10s  %-6s  %s\n", column, node.name.c_str(), node.pid,
                   static_cast<unsigned long long>(node.bytes),
                   tools::seconds_text(node.seconds).c_str(), verdict,
                   node.has_bytes ? node.sha256.c_str() : "-");
  }
}

// The process table of a modelled run: by node its endpoints.
void add_endpoints(const RunResult& result, std::string& text) {
  std::size_t name = 4;
  std::size_t address = 8;
  for (const EndpointResult& row : result.endpoints) {
    name = std::max({name, row.name.size(), row.peer_name.size()});
    address = std::max(address, row.address.size());
  }
  const int wide = static_cast<int>(name);
  const int middle = static_cast<int>(address);
  text += format("%-*s      pid  link  lane  %-*s  %-*s  its peer's\n", wide, "node", middle,
                 "endpoint", wide, "peer");
  std::uint32_t before = UINT32_MAX;
  for (const EndpointResult& row : result.endpoints) {
    const bool again = row.node == before;
    before = row.node;
    text += format("%-*s  %7s  %4u  %4u  %-*s  %-*s  %s\n", wide, again ? "" : row.name.c_str(),
                   again ? "" : std::to_string(row.pid).c_str(), row.link, row.lane, middle,
                   row.address.c_str(), wide, row.peer_name.c_str(), row.peer_address.c_str());
  }
  text +=
      format("%zu endpoints, each joined to its peer's and to no other\n", result.endpoints.size());
}

ordered_json endpoints_json(const RunResult& result) {
  ordered_json all = ordered_json::array();
  std::uint32_t before = UINT32_MAX;
  for (const EndpointResult& row : result.endpoints) {
    if (row.node != before) {
      all.push_back({{"node", row.node},
                     {"name", row.name},
                     {"pid", row.pid},
                     {"endpoints", ordered_json::array()}});
    }
    before = row.node;
    all.back()["endpoints"].push_back({{"link", row.link},
                                       {"lane", row.lane},
                                       {"peer", row.peer},
                                       {"peer_name", row.peer_name},
                                       {"address", row.address},
                                       {"peer_address", row.peer_address}});
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

void add_size(const RunResult& result, const SizeResult& size, std::string& text) {
  text += format("%llu bytes%s: %lld steps of blocks up to %llu bytes (N = %u)\n",
                 static_cast<unsigned long long>(size.bytes),
                 result.bytes_per_rank ? " a rank" : "", static_cast<long long>(size.steps),
                 static_cast<unsigned long long>(size.block_bytes), size.blocks);
  text += format("predicted %s: alpha %s + beta %.3g ns/B * the longest message, each step\n",
                 tools::seconds_text(size.predicted).c_str(),
                 tools::seconds_text(size.alpha).c_str(), size.beta * 1e9);
  if (size.times.empty()) return;
  const auto [least, most] = std::minmax_element(size.times.begin(), size.times.end());
  text += "measured  " + tools::seconds_text(tools::median(size.times));
  if (size.times.size() > 1) {
    text += format(" (median of %zu; %s to %s)", size.times.size(),
                   tools::seconds_text(*least).c_str(), tools::seconds_text(*most).c_str());
  }
  if (result.back_to_back > 1) text += format(", each of %u back to back", result.back_to_back);
  text += "\n";
}

}  // namespace

std::string to_json(const RunResult& result) {
  ordered_json out;
  out["topology"] = result.topology;
  out["collective"] = result.collective;
  out["algorithm"] = result.algorithm;
  out["root"] = result.root;
  out["ranks"] = result.ranks;
  out["routers"] = result.nodes - result.ranks;
  out["nodes_per_process"] = result.nodes_per_process;
  out["provider"] = result.provider;
  out["links"] = result.modelled ? "modelled" : "direct";
  if (result.modelled) out["processes"] = endpoints_json(result);
  out["type"] = result.type;
  out["op"] = result.op;
  out["proven_blocks"] = result.proven_blocks;
  out["descriptor_bytes"] = result.descriptor_bytes;
  out["bytes_are"] = result.bytes_per_rank ? "per rank" : "whole message";
  out["back_to_back"] = result.back_to_back;
  out["runs"] = ordered_json::array();
  for (const SizeResult& size : result.sizes) {
    ordered_json run;
    run["bytes"] = size.bytes;
    run["blocks"] = size.blocks;
    run["block_bytes"] = size.block_bytes;
    run["steps"] = size.steps;
    run["alpha_s"] = size.alpha;
    run["beta_s_per_byte"] = size.beta;
    run["predicted_s"] = size.predicted;
    run["median_s"] = size.times.empty() ? ordered_json() : ordered_json(tools::median(size.times));
    run["times_s"] = size.times;
    run["span_s"] = size.spans;
    run["right"] = size.right;
    run["ranks"] = ordered_json::array();
    run["routers"] = ordered_json::array();
    for (const NodeResult& node : size.nodes) {
      run[node.router ? "routers" : "ranks"].push_back(node_json(node));
    }
    out["runs"].push_back(run);
  }
  out["right"] = result.right;
  return out.dump(2) + "\n";
}

std::string to_text(const RunResult& result) {
  std::string text = format("%s %s on %s", result.collective.c_str(), result.algorithm.c_str(),
                            result.topology_title.c_str());
  if (result.rooted) text += format(", root %u", result.root);
  if (result.combines) {
    text += format(", %s of %s", result.op.c_str(), result.type.c_str());
  }
  text += format(", over %s%s; verified for every N up to %lld; descriptors up to %llu bytes\n",
                 result.provider.c_str(), result.modelled ? ", modelled" : "",
                 static_cast<long long>(result.proven_blocks),
                 static_cast<unsigned long long>(result.descriptor_bytes));
  if (result.modelled) add_endpoints(result, text);
  std::size_t checked = 0;
  std::size_t right = 0;
  for (const SizeResult& size : result.sizes) {
    // With several sizes the nodes' lines are many; failures are always told.
    if (result.sizes.size() == 1) add_nodes(size, text);
    add_size(result, size, text);
    add_failures(size, text);
    for (const NodeResult& node : size.nodes) {
      checked += node.checked ? 1 : 0;
      right += node.checked && node.right && !node.failed ? 1 : 0;
    }
  }
  text += format("%s: %zu of %zu results right\n", result.right ? "ok" : "FAILED", right, checked);
  return text;
}

}  // namespace espalier::run
