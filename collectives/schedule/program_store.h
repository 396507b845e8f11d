#pragma once
// Programs of very many nodes in little memory. A Program has room for the longest program that a
// node may have. In a store, a program takes only the memory that it uses. Programs that differ
// only in their node and peers share the rest. Host only.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "espalier/collectives/schedule/program.h"

namespace espalier {

class ProgramStore;

// Memory for one program of a store. The store owns the table that the program looks up, and must
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
  // Not copied: loaded programs point into the store's tables.
  ProgramStore(const ProgramStore&) = delete;
  ProgramStore& operator=(const ProgramStore&) = delete;

  // Copies the program and its table. Programs get the numbers 0, 1, 2, ...
  void add(const Program& program);
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  // Returns the number of programs that differ in more than their node and peers.
  [[nodiscard]] std::size_t bodies() const { return bodies_.size(); }
  // Writes program `index` into `out`.
  void load(std::uint32_t index, StoredProgram& out) const;
  // Prefetches the memory that load(index) reads first into the processor's cache.
  void expect(std::uint32_t index) const { __builtin_prefetch(&nodes_[index]); }

 private:
  struct Layout;
  struct StoredNode {
    std::uint32_t body = 0;
    std::uint32_t node = 0;
    std::size_t first_peer = 0;
  };
  std::vector<StoredNode> nodes_;
  std::vector<std::uint32_t> peers_;
  std::deque<std::string> bodies_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;  // position in bodies_, by body
};

}  // namespace espalier
