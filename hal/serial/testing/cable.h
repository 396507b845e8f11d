#pragma once
// Two nodes at the ends of a serial cable with a rate, which loses bytes, in virtual time. Host
// only, for tests.

#include <cstdint>

namespace espalier::serial {

struct CableSpec {
  std::uint32_t baud = 115200;
  std::uint32_t lose = 0;  // one byte in so many is lost; 0: none
  unsigned seed = 1;
  std::uint64_t resend_ns = 200'000'000;  // of both ends
  std::uint32_t frames_in_flight = 1;
  std::uint32_t links = 1;  // all over the one cable
  bool both = false;        // messages travel in both directions, otherwise from end 0 to end 1
};

struct CableTimes {
  std::uint32_t correct = 0;     // messages that arrived with their bytes
  std::uint64_t frame_ns = 0;    // the time of the longest frame
  std::uint64_t silence_ns = 0;  // the longest time in which neither end began a frame
  std::uint64_t message_ns = 0;  // the longest time from a message's post to its completion
  std::uint64_t total_ns = 0;
  std::uint64_t bytes = 0;  // that the cable carried from end 0, with the lost ones
};

// Sends `messages` messages of `size` bytes over each link, one after the other.
[[nodiscard]] CableTimes exchange(const CableSpec& spec, std::uint32_t messages,
                                  std::uint32_t size);

}  // namespace espalier::serial
