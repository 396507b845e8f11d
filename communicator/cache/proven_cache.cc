#include "communicator/cache/proven_cache.h"

#include <cstring>

#include "base/digest.h"
#include "communicator/cache/cache_file.h"

namespace espalier::communicator {
namespace {

// What the file holds of a schedule with this digest and verdict.
std::uint64_t entry_of(std::uint64_t digest, Proof proof) {
  return digest_u64(digest, static_cast<std::uint64_t>(proof));
}

bool contains(const std::string& entries, std::uint64_t entry) {
  for (std::size_t at = 0; at + sizeof(entry) <= entries.size(); at += sizeof(entry)) {
    if (std::memcmp(entries.data() + at, &entry, sizeof(entry)) == 0) return true;
  }
  return false;
}

}  // namespace

Proof obtain_proof(std::uint64_t digest, const std::function<Proof()>& prove) {
  const CacheFile file(cache_path("proven"));
  if (!file.is_open()) return prove();
  const std::string entries = file.read();
  for (const Proof known : {Proof::kValidInPlace, Proof::kValid}) {
    if (contains(entries, entry_of(digest, known))) return known;
  }
  const Proof proof = prove();
  if (proof == Proof::kInvalid) return proof;
  // An entry that was written in part is at the end. It is never read, and overwritten.
  const std::uint64_t entry = entry_of(digest, proof);
  file.write(entries.size() / sizeof(entry) * sizeof(entry),
             {reinterpret_cast<const char*>(&entry), sizeof(entry)});
  return proof;
}

}  // namespace espalier::communicator
