#pragma once
// The images of four nodes with selections and single programs, for the table of calls.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/selection_writer.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "firmware/image/image_writer.h"

namespace espalier::nodes {

inline constexpr std::uint32_t kRanks = 4;
inline constexpr std::uint64_t kTopology = 0x0123456789abcdef;

struct ScheduleName {
  Collective collective;
  std::uint32_t root;
  const char* algorithm;
};
// A selection of schedules that follow each other in kSchedules.
struct SelectionPlan {
  std::uint32_t first, count;
  std::vector<SelectionRow> rows;
};

// Reduces by circulant need an operator that commutes, those by binomial and chain to root 0 none.
inline const std::vector<ScheduleName> kSchedules = {
    {Collective::kBroadcast, 0, "binomial"},    {Collective::kBroadcast, 0, "chain"},
    {Collective::kReduce, 0, "circulant"},      {Collective::kReduce, 0, "chain"},
    {Collective::kBroadcast, 0, "two-tree"},    {Collective::kReduce, 0, "binomial"},
    {Collective::kReduce, 1, "circulant"},      {Collective::kReduce, 1, "binomial"},
    {Collective::kReduce, 2, "circulant"},      {Collective::kAllreduce, 0, "two-tree"},
    {Collective::kBarrier, 0, "dissemination"},
};
inline const std::vector<SelectionPlan> kSelections = {
    {0, 2, {{0, false, 0}, {1000, false, 1}}},
    {2, 2, {{0, true, 0}, {1000, true, 1}}},
};

// One node's program of a schedule, as it is outside of selections.
inline std::unique_ptr<Program> program_of(const ScheduleName& name, std::uint32_t node) {
  auto program = std::make_unique<Program>();
  program->clear();
  const Algorithm* const algorithm = find_algorithm(name.collective, name.algorithm);
  const CollectiveParameters parameters = {
      .ranks = kRanks, .root = name.root, .topology_digest = kTopology};
  if (algorithm == nullptr || algorithm->generate(parameters, node, *program) != Status::kOk) {
    program->clear();
  }
  return program;
}

inline ImageContent content_of(std::uint32_t node, const std::string& board) {
  ImageContent content{.board = board, .topology_digest = kTopology, .node = node, .release = 1};
  for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
    if (peer != node) content.links.push_back({peer, 0, static_cast<std::uint16_t>(peer)});
  }
  std::vector<std::unique_ptr<Program>> programs;
  for (std::uint32_t i = 0; i < kSchedules.size(); ++i) {
    programs.push_back(program_of(kSchedules[i], node));
    programs[i]->schedule_digest = i + 1;  // the same on all nodes
  }
  for (const SelectionPlan& plan : kSelections) {
    SelectionTable table = {};
    table.format_version = kSelectionVersion;
    table.topology_digest = kTopology;
    table.collective = kSchedules[plan.first].collective;
    table.root = kSchedules[plan.first].root;
    for (std::uint32_t i = 0; i < plan.count; ++i) {
      table.schedules[table.schedules_count++] = programs[plan.first + i]->schedule_digest;
    }
    for (const SelectionRow& row : plan.rows) table.rows[table.rows_count++] = row;
    const std::vector<std::uint8_t> bytes = selection_bytes(table);
    const std::uint64_t digest = selection_digest(bytes.data(), bytes.size());
    for (std::uint32_t i = 0; i < plan.count; ++i) {
      programs[plan.first + i]->schedule_digest = digest_in_selection(digest, table.schedules[i]);
    }
    content.selections.push_back({plan.first, bytes});
  }
  for (std::uint32_t i = 0; i < kSchedules.size(); ++i) {
    const ScheduleName& name = kSchedules[i];
    std::vector<std::uint8_t> bytes(kMaxDescriptorBytes);
    std::size_t written = 0;
    (void)encode_program(*programs[i], bytes.data(), bytes.size(), written);
    bytes.resize(written);
    content.programs.push_back({name.collective, name.root, name.algorithm, std::move(bytes)});
  }
  return content;
}

}  // namespace espalier::nodes
