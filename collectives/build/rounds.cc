#include "collectives/build/rounds.h"

#include "espalier/internal/base/assert.h"

namespace espalier {
namespace {

// Above every possible number of blocks of a message; this value + 1 is still a valid coefficient.
constexpr std::int32_t kBeyondBlocks = kMaxField - 1;

}  // namespace

Term Rounds::round(std::int32_t coef, std::int32_t ahead) const {
  return floor_term(coef, ahead, period_);
}

Term Rounds::step(std::int32_t coef) const { return floor_term(coef, 0, 0, period_); }

std::uint8_t Rounds::block(std::uint32_t first, std::uint32_t end) {
  ESPALIER_ASSERT(first < end && end <= period_);
  Index row{};
  if (end - first == period_) {
    row.coef = 1;
    row.div = period_;
    return builder_.index(row);
  }
  // floor((i - first) / period) + 1 - floor((i + period - end) / period) is 1 in those steps,
  // otherwise 0.
  const Term begun = round(1 + kBeyondBlocks, -static_cast<std::int32_t>(first));
  const Term ended = round(-kBeyondBlocks, static_cast<std::int32_t>(period_ - end));
  round_last_ = !round_last_;
  return round_last_ ? builder_.index(row, {ended, begun}) : builder_.index(row, {begun, ended});
}

std::uint8_t Rounds::only_block(std::uint32_t first, std::uint32_t end) {
  ESPALIER_ASSERT(first < end && end <= period_);
  if (end - first == period_) return builder_.constant(0);
  // 0 in those steps, otherwise -kBeyondBlocks.
  const Term begun = round(kBeyondBlocks, -static_cast<std::int32_t>(first));
  const Term ended = round(-kBeyondBlocks, static_cast<std::int32_t>(period_ - end));
  return builder_.index(Index{}, {begun, ended});
}

std::uint8_t Rounds::instances(std::uint32_t length) {
  ESPALIER_ASSERT(length <= period_);
  const auto period = static_cast<std::int32_t>(period_);
  return builder_.count(static_cast<std::int32_t>(length) - period, period);
}

std::uint8_t RankRounds::moving(std::int32_t places, std::int32_t sign, const Group& numbers) {
  const auto stride = static_cast<std::int32_t>(numbers.stride);
  Index row{};
  row.base = static_cast<std::int32_t>(numbers.first);
  row.off = stride * (me_ + places);
  row.mod = static_cast<std::uint32_t>(stride * ranks_);
  return builder_.index(row, {step(stride * sign)});
}

std::uint8_t RankRounds::counting(std::int32_t base, std::int32_t sign) {
  Index row{};
  row.base = base;
  return builder_.index(row, {step(sign)});
}

void RankRounds::end_phase(std::uint32_t turns) {
  ESPALIER_ASSERT(turns >= 1);
  builder_.phase(turns, 0, static_cast<std::int32_t>(turns) * (ranks_ - 1));
}

Status RankRounds::finish() {
  end_phase();
  return builder_.finish(0, ranks_ - 1);
}

}  // namespace espalier
