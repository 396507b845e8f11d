#pragma once
// Inputs for a run and its expected results, by plain loops that know nothing of schedules. The
// values are integers small enough that every order of combining gives the same bits; `affine`
// shows the order. Host only.

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/collectives/machine/operators.h"
#include "espalier/collectives/schedule/program.h"

namespace espalier::reference {

struct ReferenceInput {
  Collective collective = Collective::kBroadcast;
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;
  Operator op = {};         // kNone of bytes where nothing is combined
  std::uint64_t bytes = 0;  // of one rank's part if counts are per rank, otherwise of the message
  // Elements of each rank's part: scatter, gather, allgather, reduce-scatter. All-to-all: entry
  // o * ranks + d goes from rank o to rank d. Empty: every part has `bytes`. Otherwise `bytes` are
  // those of the longest part.
  std::vector<std::uint64_t> counts = {};
};

// Returns the operator that a user calls `op` on `type` (of "affine",
// collectives/machine/affine.h, the type is its own). Error: there is none.
[[nodiscard]] Result<Operator> parse_operator(const std::string& op, const std::string& type);
// Returns the name by which parse_operator() knows the operator.
[[nodiscard]] std::string operator_name(const Operator& op);
// Returns the operator of a collective for which the user names none: sum of f32, or kNone of bytes
// if the collective combines nothing.
[[nodiscard]] Operator default_operator(Collective collective);
// Whether ranks' inputs are combined.
[[nodiscard]] bool combines(Collective collective);

// Error: a run cannot check this collective, operator, type and size exactly.
[[nodiscard]] Result<void> check_supported(const ReferenceInput& run);

// The part of that which a run without data needs. Error: the bytes are not a whole number of
// elements.
[[nodiscard]] Result<void> check_whole_elements(const ReferenceInput& run);

// Elements to start the collective with, if there are no `counts`.
[[nodiscard]] std::uint64_t count(const ReferenceInput& run);
// Bytes that rank gives and gets; 0 where it gives or gets nothing.
[[nodiscard]] std::uint64_t input_bytes(const ReferenceInput& run, std::uint32_t rank);
[[nodiscard]] std::uint64_t result_bytes(const ReferenceInput& run, std::uint32_t rank);
// The same for a message of any size: whether there is a buffer at all.
[[nodiscard]] bool has_input(const ReferenceInput& run, std::uint32_t rank);
[[nodiscard]] bool has_result(const ReferenceInput& run, std::uint32_t rank);

// Writes rank's input of the given repetition: input_bytes(), different each repetition.
void fill_input(const ReferenceInput& run, std::uint32_t rank, std::uint32_t repetition,
                std::uint8_t* out);

// The expected results of one repetition.
class Results {
 public:
  Results(const ReferenceInput& run, std::uint32_t repetition)
      : run_(run), repetition_(repetition) {}
  // result_bytes() of a rank that has a result; valid until the next call. Ask in ascending order
  // of ranks: scans continue from the rank before.
  [[nodiscard]] const std::vector<std::uint8_t>& of(std::uint32_t rank);
  // Whether of() has found one result for all ranks: then it may be asked again, in any order.
  [[nodiscard]] bool same_for_all() const { return made_; }

 private:
  void move(std::uint32_t rank);
  void scan(std::uint32_t rank);

  ReferenceInput run_;
  std::uint32_t repetition_;
  std::vector<std::uint8_t> result_;
  bool made_ = false;                  // result_ is every rank's
  std::vector<std::uint64_t> prefix_;  // of scans: ranks 0 .. scanned_ - 1, two numbers an element
  std::uint32_t scanned_ = 0;
};

}  // namespace espalier::reference
