#pragma once
// The difference between the clocks of two hosts that exchange frames. Host only.

#include <cstdint>
#include <optional>

namespace espalier::node {

// Bounds of this host's clock minus the other host's clock.
//
// A frame that the other end sent at its time s and that arrives here at this host's time r took no
// less than no time: the difference is at most r - s. The frame that took least gives the best
// bound. The other end knows the same of this host's frames, which bounds the difference from
// below, and states it in its frames. The difference is taken as the middle of the two bounds, as
// NTP does (RFC 5905, section 8), and is wrong by at most half their distance.
//
// The clocks may run at different rates, so a bound gets worse with its age.
class ClockDifference {
 public:
  // By how much two clocks may drift apart: 200 ppm. Each host's clock is right to 100 ppm.
  static constexpr std::int64_t kDriftDivisor = 5000;

  // Takes note of a frame: it was sent at sent_ns of the other host's clock and arrives at now_ns
  // of this host's clock. others_bound is what bound() returned there when it was sent.
  void note(std::uint64_t sent_ns, std::optional<std::int64_t> others_bound, std::uint64_t now_ns);

  // The most by which this host's clock can be ahead of the other's, in ns. Nothing before the
  // first frame.
  [[nodiscard]] std::optional<std::int64_t> bound(std::uint64_t now_ns) const;

  // Added to a time of the other host's clock, `shift` gives the same time of this host's clock, up
  // to error_ns in either direction.
  struct Estimate {
    std::uint64_t shift = 0;
    std::uint64_t error_ns = 0;
  };
  // Nothing until a frame has arrived that was sent after one from here had arrived there.
  [[nodiscard]] std::optional<Estimate> estimate(std::uint64_t now_ns) const;

 private:
  struct Bound {
    std::int64_t ns = 0;
    std::uint64_t noted_ns = 0;  // when it was this good
  };
  static std::int64_t aged(const Bound& bound, std::uint64_t now_ns);
  static void improve(std::optional<Bound>& bound, std::int64_t ns, std::uint64_t now_ns);

  std::optional<Bound> above_;  // this clock minus the other's is at most this
  std::optional<Bound> below_;  // the other clock minus this one is at most this
};

}  // namespace espalier::node
