#include "collectives/schedule/program_store.h"

#include <pb_common.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

#include "base/byte_parts.h"

namespace espalier {
namespace {

static_assert(std::is_trivially_copyable_v<espalier_Program> &&
              std::is_standard_layout_v<espalier_Program>);

// Calls f(array, number of entries that `counts` uses) for each array that a program may use in
// part, except peers.
template <typename P, typename F>
void for_each_array(P& program, const espalier_Program& counts, F f) {
  f(program.blocks, counts.blocks_count);
  f(program.counts, counts.counts_count);
  f(program.indices, counts.indices_count);
  f(program.actions, counts.actions_count);
  f(program.terms, counts.terms_count);
  f(program.phases, counts.phases_count);
}

// Sets all bytes of the message's members to 0xff, and none between them.
void mark_members(const pb_msgdesc_t* type, void* message) {
  pb_field_iter_t field;
  if (!pb_field_iter_begin(&field, type, message)) return;
  do {
    if (PB_HTYPE(field.type) == PB_HTYPE_REPEATED) {
      std::memset(field.pSize, 0xff, sizeof(pb_size_t));
    } else if (PB_HTYPE(field.type) == PB_HTYPE_OPTIONAL && field.pSize != nullptr) {
      std::memset(field.pSize, 0xff, sizeof(bool));
    }
    for (std::size_t i = 0; i < field.array_size; ++i) {
      auto* const entry = static_cast<std::uint8_t*>(field.pData) + i * field.data_size;
      if (field.submsg_desc != nullptr) {
        mark_members(field.submsg_desc, entry);
      } else {
        std::memset(entry, 0xff, field.data_size);
      }
    }
  } while (pb_field_iter_next(&field));
}

// Returns a program with all bits of its members set, and zeros between its members. Equal programs
// may differ there: a compiler copies any bytes.
const espalier_Program& members() {
  static const auto marked = [] {
    auto program = std::make_unique<espalier_Program>();
    std::memset(program.get(), 0, sizeof *program);
    mark_members(&espalier_Program_msg, program.get());
    return program;
  }();
  return *marked;
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

  // Returns `program` without its table, with as many entries of each array as `counts` uses.
  static std::string pack(const espalier_Program& program, const espalier_Program& counts) {
    std::string body(kFixedBytes, '\0');
    copy_parts_out<kFixed>(&program, reinterpret_cast<std::uint8_t*>(body.data()));
    for_each_array(program, counts, [&body](const auto& array, std::size_t count) {
      body.append(reinterpret_cast<const char*>(array), count * sizeof array[0]);
    });
    return body;
  }
};

void ProgramStore::add(const Program& program) {
  std::string body = Layout::pack(program, program);
  const std::string mask = Layout::pack(members(), program);
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(body[i] & mask[i]);
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
    for_each_array(out, out, [&bytes](auto& array, std::size_t count) {
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
