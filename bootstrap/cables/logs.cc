#include "bootstrap/cables/logs.h"

#include <algorithm>

#include "bootstrap/cables/codec.h"

namespace espalier::cables {
namespace {

// The longest are a value of 64 KiB with its key, and the graph of many hosts.
constexpr std::uint32_t kMaxEntryBytes = 4U << 20;
constexpr std::size_t kMaxSeats = 65'535;
constexpr std::size_t kMaxCables = 65'535;

template <typename Codec, typename Row>
void entry_fields(Codec& codec, Row& entry) {
  codec.number(entry.number);
  codec.number(entry.other);
  codec.number(entry.id);
  codec.text(entry.key);
  codec.text(entry.value);
}

template <typename Codec, typename Row>
void end_fields(Codec& codec, Row& end) {
  codec.number(end.host);
  codec.text(end.interface);
  codec.text(end.address);
}

template <typename Codec, typename Row>
void graph_fields(Codec& codec, Row& graph) {
  codec.rows(graph.hosts, kMaxHosts, [](Codec& inner, auto& host) {
    inner.text(host.name);
    inner.rows(host.ranks, kMaxMembers, [](Codec& last, auto& rank) { last.number(rank); });
  });
  codec.rows(graph.cables, kMaxCables, [](Codec& inner, auto& cable) {
    end_fields(inner, cable.a);
    end_fields(inner, cable.b);
    inner.number(cable.rate_mbits);
    inner.number(cable.mtu);
  });
}

template <typename Codec, typename Row>
void seat_fields(Codec& codec, Row& seats) {
  codec.rows(seats, kMaxSeats, [](Codec& inner, auto& seat) {
    inner.number(seat.rank);
    inner.number(seat.log);
  });
}

std::optional<Proposal> proposal_of(const Entry& entry, LogId proposer) {
  Reader reader(entry.value);
  Proposal proposal{.number = entry.number, .generation = entry.other, .proposer = proposer};
  auto graph = std::make_shared<JobGraph>();
  seat_fields(reader, proposal.seats);
  graph_fields(reader, *graph);
  if (!reader.is_done()) return {};
  for (const JobCable& cable : graph->cables) {
    if (cable.a.host >= graph->hosts.size() || cable.b.host >= graph->hosts.size()) return {};
  }
  proposal.graph = std::move(graph);
  return proposal;
}

// Values of the library itself, which belong to one agreement.
bool is_of_library(const std::pair<const std::string, std::string>& value) {
  return value.first.starts_with("espalier.");
}

}  // namespace

std::string encode(const Entry& entry) {
  Writer fields, all;
  entry_fields(fields, entry);
  all.number(static_cast<std::uint32_t>(fields.bytes.size()));
  all.number(static_cast<std::uint8_t>(entry.kind));
  return all.bytes + fields.bytes;
}

Entry entry_of(const Proposal& proposal) {
  Writer writer;
  seat_fields(writer, proposal.seats);
  graph_fields(writer, *proposal.graph);
  return {.kind = Entry::Kind::kProposal,
          .number = proposal.number,
          .other = proposal.generation,
          .value = std::move(writer.bytes)};
}

std::size_t Log::take(std::uint64_t offset, const std::string& bytes) {
  if (is_malformed_ || offset > bytes_.size() || offset + bytes.size() <= bytes_.size()) return 0;
  if (offset + bytes.size() > kMaxLogBytes) return 0;
  const std::size_t known = bytes_.size() - static_cast<std::size_t>(offset);
  bytes_.append(bytes, known);
  parse();
  return bytes.size() - known;
}

void Log::parse() {
  constexpr std::size_t kHead = sizeof(std::uint32_t) + 1;
  while (!is_malformed_ && bytes_.size() - parsed_ >= kHead) {
    const std::string_view left = std::string_view(bytes_).substr(parsed_);
    std::uint32_t size = 0;
    Entry entry;
    Reader head(left.substr(0, sizeof size));
    head.number(size);
    const auto kind = static_cast<std::uint8_t>(left[sizeof size]);
    is_malformed_ = size > kMaxEntryBytes || kind >= kEntryKinds;
    if (is_malformed_ || left.size() < kHead + size) return;
    entry.kind = static_cast<Entry::Kind>(kind);
    Reader fields(left.substr(kHead, size));
    entry_fields(fields, entry);
    is_malformed_ = !fields.is_done();
    parsed_ += kHead + size;
    if (!is_malformed_) apply(std::move(entry));
  }
}

void Log::apply(Entry entry) {
  using Kind = Entry::Kind;
  const ProposalName name{entry.number, entry.id};
  switch (entry.kind) {
    case Kind::kBegin:
      has_begun_ = true;
      rank_ = entry.number;
      size_ = entry.other;
      return;
    case Kind::kRefused: refusal_ = std::move(entry.value); return;
    case Kind::kPut: pending_.emplace(std::move(entry.key), std::move(entry.value)); return;
    case Kind::kFence:
      ++fences_;
      published_.merge(pending_);
      pending_.clear();
      return;
    case Kind::kRejoin: is_rejoining_ = true; return;
    case Kind::kProposal: {
      auto proposal = proposal_of(entry, id_);
      is_malformed_ = !proposal;
      if (proposal) proposals_.push_back(*std::move(proposal));
      return;
    }
    case Kind::kAccept: accepted_.push_back(name); return;
    case Kind::kDecided:
      if (decided_) {
        std::erase_if(pending_, is_of_library);
        std::erase_if(published_, is_of_library);
      }
      decided_ = name;
      fences_ = 0;
      is_rejoining_ = false;
      return;
    case Kind::kLeft: has_left_ = true; return;
  }
}

const std::string* Log::published(const std::string& key) const {
  const auto found = published_.find(key);
  return found == published_.end() ? nullptr : &found->second;
}

bool Log::has_put(const std::string& key) const {
  return pending_.contains(key) || published_.contains(key);
}

}  // namespace espalier::cables
