#include "communicator/padded_parts.h"

#include <cstring>

namespace espalier::communicator {

PaddedParts::PaddedParts(const Call& call, const Place& place) : given_(call), equal_(call) {
  const std::size_t ranks = place.ranks;
  const std::uint64_t size = element_bytes(call.op);
  equal_.count = largest_count(call);
  equal_.counts = {};
  part_bytes_ = equal_.count * size;
  Part sent, received;
  for (std::size_t other = 0; other < ranks; ++other) {
    sent.bytes = call.counts[place.rank * ranks + other] * size;
    received.bytes = call.counts[other * ranks + place.rank] * size;
    sent_.push_back(sent);
    received_.push_back(received);
    sent.offset += sent.bytes;
    received.offset += received.bytes;
  }
  input_.resize(ranks * part_bytes_);
  output_.resize(ranks * part_bytes_);
  equal_.send = input_.data();
  equal_.receive = output_.data();
}

void PaddedParts::pack() {
  const auto* const from = static_cast<const std::uint8_t*>(given_.send);
  for (std::size_t other = 0; other < sent_.size(); ++other) {
    const Part& part = sent_[other];
    if (part.bytes == 0) continue;
    std::memcpy(input_.data() + other * part_bytes_, from + part.offset, part.bytes);
  }
}

void PaddedParts::unpack() {
  auto* const into = static_cast<std::uint8_t*>(given_.receive);
  for (std::size_t other = 0; other < received_.size(); ++other) {
    const Part& part = received_[other];
    if (part.bytes == 0) continue;
    std::memcpy(into + part.offset, output_.data() + other * part_bytes_, part.bytes);
  }
}

}  // namespace espalier::communicator
