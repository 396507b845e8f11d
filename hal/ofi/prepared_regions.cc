#include "hal/ofi/prepared_regions.h"

namespace espalier::ofi {
namespace {

bool same(const Region& a, const Region& b) { return a.bytes == b.bytes && a.size == b.size; }

}  // namespace

Status PreparedRegions::prepare(Domain& domain, const Region* regions, std::uint32_t count) {
  std::array<Prepared, Endpoint::kMaxRegions> next;
  std::uint32_t filled = 0;
  const auto repeated = [&](const Region& region) {
    for (std::uint32_t i = 0; i < filled; ++i) {
      if (same(next[i].region, region)) return true;
    }
    return false;
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    const Region& region = regions[i];
    if (region.bytes == nullptr || region.size == 0 || repeated(region)) continue;
    next[filled].region = region;
    for (Prepared& old : prepared_) {
      if (!same(old.region, region)) continue;
      next[filled].registration = old.registration;
      old = {};
    }
    ++filled;
  }
  for (Prepared& old : prepared_) domain.deregister(old.registration);
  prepared_ = next;
  for (std::uint32_t i = 0; i < filled; ++i) {
    Prepared& it = prepared_[i];
    if (it.registration.region != nullptr || !domain.registers_local_memory()) continue;
    if (!domain.register_memory(it.region.bytes, it.region.size, it.registration)) {
      it.region = {};
      return Status::kBackEnd;
    }
  }
  return Status::kOk;
}

Status PreparedRegions::find(Domain& domain, const void* bytes, std::uint64_t size,
                             std::uint64_t& address, std::uint64_t& key) {
  const auto first = reinterpret_cast<std::uintptr_t>(bytes);
  for (Prepared& prepared : prepared_) {
    const auto base = reinterpret_cast<std::uintptr_t>(prepared.region.bytes);
    if (prepared.region.bytes == nullptr || first < base || size > prepared.region.size ||
        first - base > prepared.region.size - size) {
      continue;
    }
    if (prepared.registration.region == nullptr &&
        !domain.register_memory(prepared.region.bytes, prepared.region.size,
                                prepared.registration)) {
      return Status::kBackEnd;
    }
    address = prepared.registration.base + (first - base);
    key = prepared.registration.key;
    return Status::kOk;
  }
  return Status::kBadArgument;
}

void PreparedRegions::clear(Domain& domain) {
  for (Prepared& prepared : prepared_) {
    domain.deregister(prepared.registration);
    prepared = {};
  }
}

}  // namespace espalier::ofi
