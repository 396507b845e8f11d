#pragma once
// Changes of a program that a fuzz target draws from its input.

#include <array>
#include <cstdint>

#include "espalier/collectives/schedule/programs.h"
#include "tests/fuzz/expect.h"
#include "tests/mutation/edits.h"

namespace espalier::fuzz {

// The table that terms may look up: small numbers, and one very low number.
inline constexpr auto kEntries = [] {
  std::array<std::uint8_t, 64> entries{};
  for (std::size_t i = 0; i + 2 < entries.size(); i += 2) {
    entries[i] = static_cast<std::uint8_t>(i * 7 % 11);
  }
  entries.back() = 128;
  return entries;
}();

// Any number, mostly a small one.
inline std::int32_t number(Input& input) {
  const unsigned size = input.below(4);
  if (size == 3) return static_cast<std::int32_t>(input.word());
  return static_cast<std::int32_t>(input.byte()) - (size == 0 ? 0 : 128);
}

template <typename Row, typename Size, std::size_t Capacity>
Row* row_of(Input& input, Row (&rows)[Capacity], Size count) {
  const unsigned row = input.below(Capacity);
  return count == 0 ? nullptr : &rows[row % count];
}

// Sets one of `fields` to any number.
template <typename... Field>
void set_one(Input& input, Field&... fields) {
  const unsigned chosen = input.below(sizeof...(fields));
  const std::int32_t value = number(input);
  unsigned at = 0;
  ((at++ == chosen ? static_cast<void>(fields = static_cast<Field>(value)) : void()), ...);
}

// Gives a number of the program any value.
inline void set_number(Input& input, Program& program) {
  switch (input.below(7)) {
    case 0:
      set_one(input, program.window, program.scratch_blocks, program.segments, program.residue_mod,
              program.residue, program.root, program.ranks, program.node, program.ring_peers);
      break;
    case 1:
      if (Count* row = row_of(input, program.counts, program.counts_count)) {
        set_one(input, row->a, row->b, row->c, row->d, row->e);
      }
      break;
    case 2:
      if (Index* row = row_of(input, program.indices, program.indices_count)) {
        set_one(input, row->base, row->coef, row->off, row->div, row->mod, row->first_term,
                row->terms);
      }
      break;
    case 3:
      if (program.terms_count == 0) program.terms_count = 1;
      program.table.bytes = kEntries.data();
      program.table.size = static_cast<std::uint32_t>(kEntries.size());
      if (Term* row = row_of(input, program.terms, program.terms_count)) {
        set_one(input, row->coef, row->mul, row->add, row->div, row->mod, row->base, row->digits,
                row->table);
      }
      break;
    case 4:
      if (Action* row = row_of(input, program.actions, program.actions_count)) {
        set_one(input, row->t0_ref, row->instances_ref, row->link_ref, row->after,
                row->into.segment_ref, row->into.block_ref, row->into.slot_ref, row->a.segment_ref,
                row->a.block_ref, row->a.slot_ref, row->b.segment_ref, row->b.block_ref,
                row->b.slot_ref);
      }
      break;
    case 5:
      if (Phase* row = row_of(input, program.phases, program.phases_count)) {
        set_one(input, row->steps_ref, row->period, row->actions);
      }
      break;
    default:
      if (auto* peer = row_of(input, program.peers, program.peers_count)) set_one(input, *peer);
  }
}

// Makes one of the changes of tests/mutation/edits.h.
inline void edit_field(Input& input, OwnedProgram& program, mutation::Scope scope) {
  const std::size_t edits = mutation::count_edits(program, scope);
  mutation::Edit edit;
  const unsigned at = input.below(65536);
  if (edits > 0) (void)mutation::make_edit(program, scope, at % edits, edit);
}

}  // namespace espalier::fuzz
