#include "tools/formats/operations.h"

#include <algorithm>
#include <map>
#include <utility>

#include "espalier/collectives/lower/lower.h"
#include "espalier/collectives/verify/verify.h"
#include "tools/common/failure.h"
#include "tools/common/schedules.h"

namespace espalier::tools::formats {
namespace {

std::int64_t chunks_of(const Program& program, Buffer::Value buffer, std::int64_t blocks) {
  switch (buffer_extent(program, buffer)) {
    case Extent::kOwn: return blocks;
    case Extent::kWhole: return program.segments * blocks;
    default: return 0;
  }
}

// Which operations last wrote and since read a chunk.
struct ChunkUse {
  std::int64_t writer = -1;
  std::vector<std::uint32_t> readers;
};

// Fills Operation::after of one node.
class Dependencies {
 public:
  void add(std::uint32_t position, Operation& operation) {
    std::vector<std::uint32_t>& after = operation.after;
    for (const Chunks* read : {&operation.a, &operation.b}) {
      for (std::int64_t i = 0; i < read->count; ++i) {
        ChunkUse& use = uses_[{read->buffer, read->first + i}];
        if (use.writer >= 0) after.push_back(static_cast<std::uint32_t>(use.writer));
        use.readers.push_back(position);
      }
    }
    const Chunks& into = operation.into;
    for (std::int64_t i = 0; i < into.count; ++i) {
      ChunkUse& use = uses_[{into.buffer, into.first + i}];
      if (use.writer >= 0) after.push_back(static_cast<std::uint32_t>(use.writer));
      for (const std::uint32_t reader : use.readers) {
        if (reader != position) after.push_back(reader);
      }
      use = {position, {}};
    }
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
  }

 private:
  std::map<std::pair<Buffer::Value, std::int64_t>, ChunkUse> uses_;
};

class NodeExpander {
 public:
  NodeExpander(const Program& program, std::int64_t blocks) : program_(program), blocks_(blocks) {}

  NodeOperations expand_node() {
    NodeOperations node{.input_chunks = chunks_of(program_, Buffer::kInput, blocks_),
                        .output_chunks = chunks_of(program_, Buffer::kOutput, blocks_),
                        .scratch_chunks = program_.scratch_blocks};
    std::map<std::pair<ActionKind::Value, std::uint32_t>, std::uint32_t> numbers;
    for (const Instance& instance : expand(program_, blocks_)) {
      Operation operation{.kind = instance.kind, .step = instance.step};
      if (is_message(instance.kind)) {
        operation.peer = static_cast<std::uint32_t>(instance.peer);
        operation.number = numbers[{instance.kind, operation.peer}]++;
      }
      operation.into = chunks(instance.into);
      operation.a = chunks(instance.a);
      operation.b = chunks(instance.b);
      operation.data = instance.kind == ActionKind::kSend ? instance.a : instance.into;
      node.operations.push_back(std::move(operation));
    }
    std::stable_sort(node.operations.begin(), node.operations.end(),
                     [](const Operation& a, const Operation& b) {
                       return std::pair(a.step, order(a.kind)) < std::pair(b.step, order(b.kind));
                     });
    Dependencies dependencies;
    for (std::uint32_t i = 0; i < node.operations.size(); ++i) {
      dependencies.add(i, node.operations[i]);
    }
    return node;
  }

 private:
  static bool is_message(ActionKind::Value kind) {
    return kind == ActionKind::kSend || kind == ActionKind::kReceive;
  }
  static int order(ActionKind::Value kind) {
    return kind == ActionKind::kSend ? 0 : kind == ActionKind::kReceive ? 1 : 2;
  }
  [[nodiscard]] Chunks chunks(const OperandAt& operand) const {
    if (operand.buffer == Buffer::kNone) return {};
    if (operand.buffer == Buffer::kScratch) {
      return {operand.buffer, operand.slot, operand.segment_count};
    }
    // A buffer for one segment has it at its beginning.
    const bool own = buffer_extent(program_, operand.buffer) == Extent::kOwn;
    const std::int64_t first = own ? operand.block : operand.segment * blocks_ + operand.block;
    return {operand.buffer, first, operand.segment_count};
  }

  const Program& program_;
  std::int64_t blocks_;
};

}  // namespace

Operations expand_operations(const planner::LoadedSchedule& loaded, std::int64_t blocks) {
  or_bad_input(planner::check_form(loaded, blocks));
  const Program& first = loaded.programs.front();
  Operations expanded{
      .blocks = blocks, .segments = first.segments, .steps = phase_steps(first, blocks)};
  std::size_t count = 0;
  for (const Program& program : loaded.programs) {
    expanded.nodes.push_back(NodeExpander(program, blocks).expand_node());
    count += expanded.nodes.back().operations.size();
    if (count > kMaxOperations) {
      bad_input("'" + one_line(loaded.name) + "' has more than " + std::to_string(kMaxOperations) +
                " operations for N = " + std::to_string(blocks) + "; expected a smaller N");
    }
  }
  return expanded;
}

void cannot_export(const planner::LoadedSchedule& loaded, const std::string& format,
                   const std::string& reason) {
  bad_input("'" + one_line(loaded.name) + "' cannot be exported to " + format + ": " + reason);
}

void prove(const planner::LoadedSchedule& loaded) {
  // Which links messages take is the business of the format's reader.
  const verify::Verdict verdict = verdict_of(loaded, {.links = false, .progress = {}});
  const verify::Counterexample& wrong = verdict.counterexample;
  const std::string name = "'" + one_line(loaded.name) + "' is not exported: ";
  if (wrong.too_large) bad_input(name + "it is too large to verify: " + wrong.message);
  if (!verdict.valid) negative(name + "it is not valid: " + wrong.message);
}

}  // namespace espalier::tools::formats
