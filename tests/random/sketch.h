#pragma once
// One stage of a random collective: tasks in an order that respects their needs, then the steps of
// a modulo schedule. Part of plan.h.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tests/random/plan.h"

namespace espalier::random {

class Sketch {
 public:
  // A place of one block of each round, or of `segment_count` segments of the block.
  struct Cell {
    std::uint32_t node = 0;
    Buffer buffer = Buffer::kNone;
    std::uint32_t segment = 0, block = 0, segment_count = 1;
    bool before = false;                // written in an earlier stage
    std::vector<std::int32_t> writers;  // the last; several where each wrote a part
    std::vector<std::int32_t> readers;  // since then
    // Steps of the first and last access of a round, once they are known.
    std::int64_t first = -1, last = -1;
    std::int32_t ring = -1;
  };

  Sketch(const Plan& plan, std::int64_t stride) : plan_(plan), stride_(stride) {}

  // The cell of a caller's block, or of `segment_count` segments; the same cell for the same block.
  std::int32_t caller(std::uint32_t node, Buffer buffer, std::uint32_t segment, std::uint32_t block,
                      bool before = false, std::uint32_t segment_count = 1);
  // New slots.
  std::int32_t scratch(std::uint32_t node, std::uint32_t segment, std::uint32_t block,
                       std::uint32_t segment_count = 1);

  // `segment_count` segments from segment `from` of one cell to segment `into` of the other.
  struct Part {
    std::uint32_t from = 0, into = 0, segment_count = 1;
  };
  // Tasks read cells as the tasks before them left them.
  void send(std::int32_t from, std::int32_t into) { send(from, into, {}); }
  void send(std::int32_t from, std::int32_t into, Part part);
  void combine(std::int32_t left, std::int32_t right, std::int32_t into);
  void copy(std::int32_t from, std::int32_t into) { copy(from, into, {}); }
  void copy(std::int32_t from, std::int32_t into, Part part);
  // Whether the cell's last write is a receive: an operation waits for one of these only.
  [[nodiscard]] bool is_received(std::int32_t cell) const;

  // Finds the steps: round k of task t in steps[t] + pace * k. False: not with this pace.
  [[nodiscard]] bool schedule(Dice& dice, std::int64_t pace);
  // The least pace that the ports allow.
  [[nodiscard]] std::int64_t least_pace() const;

  // Adds the stage's progressions and rings to the nodes. False: a ring would be too long.
  [[nodiscard]] bool add_to(Plan& plan, std::uint32_t stage, Dice& dice);

  [[nodiscard]] std::size_t size() const { return tasks_.size(); }
  [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }

 private:
  struct Task {
    ActionKind kind = ActionKind::kSend;  // SEND: a whole message
    std::int32_t a = -1, b = -1, into = -1;
    Part part;
    std::int64_t step = 0, after = 0;
    std::vector<std::pair<std::int32_t, std::int64_t>> needs;  // task, and steps that it is later
    std::int32_t awaited = -1;                                 // the receive that `after` is for
  };
  using Uses = std::vector<std::int64_t>;  // by step of the pace

  void need(Task& task, std::int32_t other, std::int64_t later);
  void read(Task& task, std::int32_t cell);
  void write(Task& task, std::int32_t cell);
  void add(ActionKind kind, std::int32_t a, std::int32_t b, std::int32_t into, Part part);
  [[nodiscard]] bool add_rings(Plan& plan, Dice& dice);
  void add_progressions(Plan& plan, std::uint32_t stage, Dice& dice);
  [[nodiscard]] bool fits(const Task& task, std::int64_t step, std::int64_t pace);
  void take(const Task& task, std::int64_t step, std::int64_t pace);
  template <typename Use>
  void each_port(const Task& task, std::int64_t step, std::int64_t pace, const Use& use);
  [[nodiscard]] std::int64_t landed(const Task& task) const;
  void touch(std::int32_t cell, std::int64_t step);
  Spot spot(std::int32_t cell, std::uint32_t part) const;

  const Plan& plan_;
  std::int64_t stride_ = 1, pace_ = 1;
  std::vector<Cell> cells_;
  std::vector<Task> tasks_;
  std::map<std::pair<std::pair<std::uint32_t, int>, std::pair<std::uint32_t, std::uint32_t>>,
           std::int32_t>
      callers_;
  std::map<std::pair<std::uint32_t, int>, Uses> ports_;            // node; send 0, receive 1
  std::map<std::pair<std::uint32_t, std::uint32_t>, Uses> lanes_;  // link
};

}  // namespace espalier::random
