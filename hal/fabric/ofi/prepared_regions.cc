#include "hal/fabric/ofi/prepared_regions.h"

#include <algorithm>

namespace espalier::ofi {
namespace {

bool same(const Region& a, const Region& b) { return a.bytes == b.bytes && a.size == b.size; }

std::uint64_t offset_in(const Region& region, const void* bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes) - reinterpret_cast<std::uintptr_t>(region.bytes);
}

bool contains(const Region& region, const void* bytes, std::uint64_t size) {
  return region.bytes != nullptr && bytes >= region.bytes && size <= region.size &&
         offset_in(region, bytes) <= region.size - size;
}

bool overlap(const Region& a, const Region& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(a.bytes);
  const auto second = reinterpret_cast<std::uintptr_t>(b.bytes);
  return first < second + b.size && second < first + a.size;
}

}  // namespace

Status PreparedRegions::prepare(Domain& domain, const Region* regions, std::uint32_t count) {
  std::array<Prepared, Endpoint::kMaxRegions> next;
  ESPALIER_ASSERT(count <= Endpoint::kMaxRegions);
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
  end_forgotten(domain);
  for (std::uint32_t i = 0; i < filled; ++i) {
    Prepared& it = prepared_[i];
    if (it.registration.region != nullptr || !domain.registers_local_memory()) continue;
    if (kept_around(it.region.bytes, it.region.size) != nullptr) continue;
    has_registrations_ = true;
    if (!domain.register_memory(it.region.bytes, it.region.size, it.registration)) {
      it.region = {};
      return Status::kBackEnd;
    }
  }
  return Status::kOk;
}

bool PreparedRegions::is_used(const Region& region) const {
  return std::any_of(prepared_.begin(), prepared_.end(), [&region](const Prepared& prepared) {
    return prepared.region.bytes != nullptr && overlap(prepared.region, region);
  });
}

const PreparedRegions::Kept* PreparedRegions::kept_around(const void* bytes,
                                                          std::uint64_t size) const {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [=](const Kept& kept) {
    return !kept.is_over && contains(kept.region, bytes, size);
  });
  return found == kept_.end() ? nullptr : &*found;
}

Status PreparedRegions::keep(Domain& domain, std::span<const Region> regions) {
  kept_.reserve(kept_.size() + regions.size());  // throws before anything is registered
  for (std::size_t i = 0; i < regions.size(); ++i) {
    Kept kept;
    kept.region = regions[i];
    has_registrations_ = true;
    if (!domain.register_memory(kept.region.bytes, kept.region.size, kept.registration)) {
      forget(domain, regions.first(i));
      return Status::kBackEnd;
    }
    kept_.push_back(kept);
  }
  ESPALIER_ASSERT(kept_.empty() || has_registrations_);
  return Status::kOk;
}

void PreparedRegions::forget(Domain& domain, std::span<const Region> regions) {
  for (const Region& region : regions) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&region](const Kept& kept) {
      return !kept.is_over && same(kept.region, region);
    });
    if (found == kept_.end()) continue;  // clear() ended it.
    found->is_over = true;
    if (is_used(region)) continue;
    domain.deregister(found->registration);
    kept_.erase(found);
  }
}

void PreparedRegions::end_forgotten(Domain& domain) {
  if (kept_.empty()) return;
  for (Kept& kept : kept_) {
    if (kept.is_over) domain.deregister(kept.registration);
  }
  std::erase_if(kept_, [](const Kept& kept) { return kept.is_over; });
}

Status PreparedRegions::find(Domain& domain, std::uint32_t port, const void* bytes,
                             std::uint64_t size, std::uint64_t& address, std::uint64_t& key) {
  for (Prepared& prepared : prepared_) {
    if (!contains(prepared.region, bytes, size)) continue;
    const Prepared* registered = &prepared;
    has_registrations_ = true;
    if (prepared.registration.region == nullptr) {
      const Kept* const kept = kept_around(bytes, size);
      if (kept != nullptr) {
        registered = kept;
      } else if (!domain.register_memory(prepared.region.bytes, prepared.region.size,
                                         prepared.registration)) {
        return Status::kBackEnd;
      }
    }
    ESPALIER_ASSERT(registered->registration.region != nullptr);
    ESPALIER_ASSERT(contains(registered->region, bytes, size));
    address = registered->registration.base + offset_in(registered->region, bytes);
    key = domain.key(registered->registration, port);
    return Status::kOk;
  }
  return Status::kBadArgument;
}

void PreparedRegions::release(Domain& domain) {
  for (Prepared& prepared : prepared_) {
    domain.deregister(prepared.registration);
    prepared = {};
  }
  end_forgotten(domain);
  has_registrations_ = !kept_.empty();
}

void PreparedRegions::clear(Domain& domain) {
  release(domain);
  for (Kept& kept : kept_) domain.deregister(kept.registration);
  kept_.clear();
}

}  // namespace espalier::ofi
