#include "tests/mutation/wild.h"

#include <algorithm>

#include "base/crc32.h"
#include "base/testing/results.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/internal/base/limits.h"
#include "espalier/topology/topology.h"
#include "tests/mutation/edits.h"
#include "tests/mutation/schedules.h"

namespace espalier::mutation {
namespace {

constexpr std::size_t kMaxFileBytes = 16384;
constexpr const char* kTopologies[] = {
    "complete:4",
    "mesh:2x3",
    "hosts:2x2",
    "crossbar:2x2",
    "fattree:k=2,h=2,c=1",
    "custom:name: \"t\" ranks: 3 routers: 1 link { from: 0 to: 3 } link { from: 1 to: 3 } link { "
    "from: 2 to: 3 } link { from: 0 to: 1 one_way: true }"};

std::int32_t any_number(std::mt19937_64& dice) {
  const auto bits = static_cast<unsigned>(dice() % 31);
  const auto number = static_cast<std::int32_t>(dice() & ((std::uint64_t{1} << bits) - 1));
  return dice() % 3 == 0 ? -number : number;
}

std::size_t below(std::size_t limit, std::mt19937_64& dice) { return dice() % limit; }

// Gives a number of the program any value. An earlier change may have left a table without rows.
void change_number(Program& program, std::mt19937_64& dice) {
  const std::int32_t number = any_number(dice);
  const auto natural = static_cast<std::uint32_t>(std::abs(number));
  const auto kind = dice() % 6;
  const std::uint32_t rows[] = {
      program.peers_count, program.counts_count, program.indices_count, program.indices_count, 1,
      program.phases_count};
  if (rows[kind] == 0) return;
  switch (kind) {
    case 0: program.peers[below(program.peers_count, dice)] = natural; break;
    case 1: {
      Count& count = program.counts[below(program.counts_count, dice)];
      std::int32_t* const fields[] = {&count.a, &count.d};
      *fields[dice() % 2] = number;
      break;
    }
    case 2: {
      Index& index = program.indices[below(program.indices_count, dice)];
      std::int32_t* const fields[] = {&index.base, &index.coef, &index.off};
      *fields[dice() % 3] = number;
      break;
    }
    case 3: {
      Index& index = program.indices[below(program.indices_count, dice)];
      (dice() % 2 == 0 ? index.mod : index.div) = natural;
      break;
    }
    case 4: program.residue_mod = natural; break;
    default: program.phases[below(program.phases_count, dice)].period = natural;
  }
}

void change_field(Programs& programs, std::mt19937_64& dice) {
  const Scope scope = dice() % 2 == 0 ? Scope::kRank : Scope::kShared;
  OwnedProgram& first = programs[below(programs.size(), dice)];
  const std::size_t edit = below(std::max<std::size_t>(1, count_edits(first, scope)), dice);
  Edit words;
  if (scope == Scope::kRank) {
    (void)make_edit(first, scope, edit, words);
    return;
  }
  for (OwnedProgram& program : programs) {
    if (edit < count_edits(program, scope)) (void)make_edit(program, scope, edit, words);
  }
}

std::uint32_t load(const std::uint8_t* bytes) {
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<std::uint32_t>(bytes[3]) << 24;
}

void store(std::uint8_t* bytes, std::uint32_t value) {
  for (int k = 0; k < 4; ++k) bytes[k] = static_cast<std::uint8_t>(value >> (8 * k));
}

// Changes a byte of a descriptor, and the checksums over it (file.h).
void change_byte(std::vector<std::uint8_t>& file, std::mt19937_64& dice) {
  constexpr std::size_t kHeader = 44, kRow = 16;
  const std::size_t table = (kHeader + load(&file[40]) + 7) / 8 * 8;
  const std::size_t nodes = load(&file[16]);
  std::uint8_t* row = &file[table + below(nodes, dice) * kRow];
  std::uint8_t* bytes = &file[load(row)];
  const std::size_t length = load(row + 8);
  bytes[below(length, dice)] = static_cast<std::uint8_t>(dice());
  store(row + 12, crc32(0, bytes, length));
  store(&file[12], crc32(0, &file[16], table + nodes * kRow - 16));
}

}  // namespace

std::vector<WildBase> wild_bases() {
  std::vector<WildBase> bases;
  for (const char* spec : kTopologies) {
    const auto topology = or_throw(topology::parse(spec));
    const auto add = [&](const Made& made) {
      WildBase base{made.name, topology->spec(), topology->digest(), topology->ranks(),
                    made.programs};
      const std::vector<std::uint8_t> file = file_of(base, base.programs);
      if (!file.empty() && file.size() <= kMaxFileBytes) bases.push_back(std::move(base));
    };
    for_schedules(*topology, {0}, 4, add);
    for_lowered_schedules(*topology, {0}, 4, add);
  }
  return bases;
}

std::vector<std::uint8_t> file_of(const WildBase& base, const Programs& programs) {
  ScheduleFileWriter writer(base.spec, base.digest, base.ranks,
                            static_cast<std::uint32_t>(programs.size()));
  for (const Program& program : programs) {
    if (writer.add(program) != Status::kOk) return {};
  }
  std::vector<std::uint8_t> file;
  if (writer.finish(file) != Status::kOk) file.clear();
  return file;
}

std::vector<std::uint8_t> any_mutant(const WildBase& base, std::mt19937_64& dice) {
  Programs programs = base.programs;
  const bool bytes = dice() % 3 == 0;
  const auto changes = 1 + dice() % 3;
  for (std::uint64_t k = 0; k < changes && !bytes; ++k) {
    if (dice() % 2 == 0) {
      change_field(programs, dice);
    } else if (dice() % 2 == 0) {
      change_number(programs[below(programs.size(), dice)], dice);
    } else {
      const std::mt19937_64 same = dice;  // the same change in all programs
      for (OwnedProgram& program : programs) {
        std::mt19937_64 again = same;
        change_number(program, again);
      }
      dice.discard(8);
    }
  }
  std::vector<std::uint8_t> file = file_of(base, programs);
  for (std::uint64_t k = 0; k < changes && bytes && !file.empty(); ++k) change_byte(file, dice);
  return file;
}

Programs late_mutant(const WildBase& base, std::mt19937_64& dice) {
  Programs programs = base.programs;
  // The smallest tables: a row that all programs have.
  std::uint32_t rows = programs[0].counts_count;
  for (const Program& program : programs) {
    rows = std::min<std::uint32_t>(rows, program.counts_count);
  }
  const auto changes = 1 + dice() % 2;
  for (std::uint64_t k = 0; k < changes; ++k) {
    const std::size_t row = below(rows, dice);
    const auto late = static_cast<std::uint32_t>(std::uint64_t{1} << (4 + dice() % 26));
    const auto slope = static_cast<std::int32_t>(dice() % 5) - 2;
    const auto from = dice() % 2 == 0 ? static_cast<std::int32_t>(late) : 0;
    const auto steps = static_cast<std::int32_t>(dice() % 7) - 3;
    const bool all = dice() % 4 != 0;
    for (OwnedProgram& program : programs) {
      Count& count = program.counts[row];
      count.c = slope == 0 ? 1 : slope;
      count.d = -from;
      count.e = late;
      count.a += steps;
      if (!all) break;
    }
  }
  return programs;
}

}  // namespace espalier::mutation
