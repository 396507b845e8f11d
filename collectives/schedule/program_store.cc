#include "collectives/schedule/program_store.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/byte_parts.h"

namespace espalier {
namespace {

static_assert(std::is_trivially_copyable_v<espalier_Program> &&
              std::is_standard_layout_v<espalier_Program>);

// Calls f(array, number of entries in use) for each array that a program may use in part, except
// peers.
template <typename P, typename F>
void for_each_array(P& program, F f) {
  f(program.blocks, program.blocks_count);
  f(program.counts, program.counts_count);
  f(program.indices, program.indices_count);
  f(program.actions, program.actions_count);
  f(program.terms, program.terms_count);
  f(program.phases, program.phases_count);
}

}  // namespace

struct ProgramStore::Layout {
  // In the order of the members. All other members are equal in programs that share a body.
  static constexpr std::array kArrays = {
      byte_part<decltype(Program::node)>(offsetof(espalier_Program, node)),
      byte_part<decltype(Program::blocks)>(offsetof(espalier_Program, blocks)),
      byte_part<decltype(Program::counts)>(offsetof(espalier_Program, counts)),
      byte_part<decltype(Program::indices)>(offsetof(espalier_Program, indices)),
      byte_part<decltype(Program::actions)>(offsetof(espalier_Program, actions)),
      byte_part<decltype(Program::peers)>(offsetof(espalier_Program, peers)),
      byte_part<decltype(Program::terms)>(offsetof(espalier_Program, terms)),
      byte_part<decltype(Program::phases)>(offsetof(espalier_Program, phases)),
      byte_part<decltype(Program::table)>(offsetof(espalier_Program, table))};
  static constexpr auto kFixed = bytes_between(kArrays, sizeof(espalier_Program));
  static constexpr std::size_t kFixedBytes = bytes_of(kFixed);
};

void ProgramStore::add(const Program& program) {
  std::string body(Layout::kFixedBytes, '\0');
  copy_parts_out<Layout::kFixed>(static_cast<const espalier_Program*>(&program),
                                 reinterpret_cast<std::uint8_t*>(body.data()));
  for_each_array(program, [&body](const auto& array, std::size_t count) {
    body.append(reinterpret_cast<const char*>(array), count * sizeof array[0]);
  });
  body.append(reinterpret_cast<const char*>(program.table.bytes), program.table.size);
  const auto known = numbers_.find(body);
  const auto number =
      known != numbers_.end() ? known->second : static_cast<std::uint32_t>(bodies_.size());
  if (known == numbers_.end()) {
    body.shrink_to_fit();
    numbers_.emplace(bodies_.emplace_back(std::move(body)), number);
  }
  nodes_.push_back({number, program.node, peers_.size()});
  peers_.insert(peers_.end(), program.peers, program.peers + program.peers_count);
}

void ProgramStore::load(std::uint32_t index, StoredProgram& out) const {
  const StoredNode& node = nodes_[index];
  if (out.store_ != this || out.body_ != node.body) {
    out.store_ = this;
    out.body_ = node.body;
    const std::string& body = bodies_[node.body];
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(body.data());
    const std::uint8_t* const end = bytes + body.size();
    copy_parts_in<Layout::kFixed>(bytes, static_cast<espalier_Program*>(&out));
    bytes += Layout::kFixedBytes;
    for_each_array(out, [&bytes](auto& array, std::size_t count) {
      std::memcpy(array, bytes, count * sizeof array[0]);
      bytes += count * sizeof array[0];
    });
    out.table.bytes = bytes == end ? nullptr : bytes;
    out.table.size = static_cast<std::uint32_t>(end - bytes);
  }
  out.node = node.node;
  std::copy_n(peers_.begin() + static_cast<std::ptrdiff_t>(node.first_peer), out.peers_count,
              out.peers);
}

}  // namespace espalier
