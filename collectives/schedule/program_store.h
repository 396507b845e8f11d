#pragma once
// Programs of very many nodes in little memory. A Program has room for the longest program that a
// node may have; here a program takes the room that it uses, and programs that differ only in their
// node and peers share the rest. Host only.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collectives/schedule/program.h"

namespace espalier {

class ProgramStore {
 public:
  // Which of the different programs; the same for programs that share theirs.
  using Body = std::uint32_t;
  static constexpr Body kNoBody = 0xffffffffu;

  // Keeps the programs of nodes 0, 1, 2, ... one after the other. A table stays where program.table
  // points, and must outlive the store.
  void add(const Program& program);
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  [[nodiscard]] std::size_t bodies() const { return bodies_.size(); }
  // Writes the program of the which-th node added into `out`. `body` says whose rest `out` holds
  // already, of this store (kNoBody: none), and is set to this one's.
  void expect(std::uint32_t which) const { __builtin_prefetch(&nodes_[which]); }
  void load(std::uint32_t which, Program& out, Body& body) const;

 private:
  struct Layout;
  struct Node {
    Body body = 0;
    std::uint32_t node = 0;
    std::size_t first_peer = 0;
  };
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> peers_;
  std::deque<std::string> bodies_;
  std::unordered_map<std::string_view, Body> numbers_;  // of bodies_
};

}  // namespace espalier
