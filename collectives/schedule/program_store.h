#pragma once
// Programs of very many nodes in little memory. A Program has room for the longest program that a
// node may have; in a store a program takes the room that it uses, and programs that differ only in
// their node and peers share the rest. Host only.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

class ProgramStore;

// Room for one program of a store. The store owns the table that the program looks up, and must
// outlive the StoredProgram.
class StoredProgram : public Program {
 public:
  StoredProgram() { clear(); }

 private:
  friend class ProgramStore;
  static constexpr std::uint32_t kNoBody = 0xffffffffu;
  const ProgramStore* store_ = nullptr;
  std::uint32_t body_ = kNoBody;
};

class ProgramStore {
 public:
  ProgramStore() = default;
  // Programs that were loaded look up the store's tables.
  ProgramStore(const ProgramStore&) = delete;
  ProgramStore& operator=(const ProgramStore&) = delete;

  // Copies the program, its table included. Programs get the numbers 0, 1, 2, ...
  void add(const Program& program);
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  // Number of programs that differ in more than their node and peers.
  [[nodiscard]] std::size_t bodies() const { return bodies_.size(); }
  // Writes program `which` into `out`.
  void load(std::uint32_t which, StoredProgram& out) const;
  // Fetches into the processor's cache what load(which) will read first.
  void expect(std::uint32_t which) const { __builtin_prefetch(&nodes_[which]); }

 private:
  struct Layout;
  struct Node {
    std::uint32_t body = 0;
    std::uint32_t node = 0;
    std::size_t first_peer = 0;
  };
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> peers_;
  std::deque<std::string> bodies_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  // of bodies_
};

}  // namespace espalier
