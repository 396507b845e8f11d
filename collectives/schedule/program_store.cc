#include "collectives/schedule/program_store.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "collectives/schedule/byte_parts.h"

namespace espalier {
namespace {

static_assert(std::is_trivially_copyable_v<Program> && std::is_standard_layout_v<Program>);

// Calls f(array, its number of entries) for each array of which a program uses a part, but peers.
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
  // In the order of the members.
  static constexpr std::array kArrays = {
      byte_part<decltype(Program::node)>(offsetof(Program, node)),
      byte_part<decltype(Program::blocks)>(offsetof(Program, blocks)),
      byte_part<decltype(Program::counts)>(offsetof(Program, counts)),
      byte_part<decltype(Program::indices)>(offsetof(Program, indices)),
      byte_part<decltype(Program::actions)>(offsetof(Program, actions)),
      byte_part<decltype(Program::peers)>(offsetof(Program, peers)),
      byte_part<decltype(Program::terms)>(offsetof(Program, terms)),
      byte_part<decltype(Program::phases)>(offsetof(Program, phases))};
  static constexpr auto kFixed = bytes_between(kArrays, sizeof(Program));
  static constexpr std::size_t kFixedBytes = bytes_of(kFixed);
};

void ProgramStore::add(const Program& program) {
  std::string body(Layout::kFixedBytes, '\0');
  copy_parts_out<Layout::kFixed>(&program, reinterpret_cast<std::uint8_t*>(body.data()));
  for_each_array(program, [&body](const auto& array, std::size_t count) {
    body.append(reinterpret_cast<const char*>(array), count * sizeof array[0]);
  });
  const auto known = numbers_.find(body);
  const Body number = known != numbers_.end() ? known->second : static_cast<Body>(bodies_.size());
  if (known == numbers_.end()) {
    body.shrink_to_fit();
    numbers_.emplace(bodies_.emplace_back(std::move(body)), number);
  }
  nodes_.push_back({number, program.node, peers_.size()});
  peers_.insert(peers_.end(), program.peers, program.peers + program.peers_count);
}

void ProgramStore::load(std::uint32_t which, Program& out, Body& body) const {
  const Node& node = nodes_[which];
  if (body != node.body) {
    body = node.body;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(bodies_[body].data());
    copy_parts_in<Layout::kFixed>(bytes, &out);
    bytes += Layout::kFixedBytes;
    for_each_array(out, [&bytes](auto& array, std::size_t count) {
      std::memcpy(array, bytes, count * sizeof array[0]);
      bytes += count * sizeof array[0];
    });
  }
  out.node = node.node;
  std::memcpy(out.peers, peers_.data() + node.first_peer, out.peers_count * sizeof out.peers[0]);
}

}  // namespace espalier
