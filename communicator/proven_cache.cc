#include "communicator/proven_cache.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/base/digest.h"

namespace espalier::communicator {
namespace {

// A file that is open and locked while this object lives.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    struct stat status {};
    if (descriptor_ < 0) return;
    const bool is_ours = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) &&
                         status.st_uid == geteuid() && (status.st_mode & 077) == 0;
    if (is_ours && flock(descriptor_, LOCK_EX) == 0) return;
    close(descriptor_);
    descriptor_ = -1;
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

  [[nodiscard]] bool contains(std::uint64_t digest) const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) return false;
    std::vector<std::uint64_t> all(static_cast<std::size_t>(status.st_size) / sizeof(digest));
    const auto bytes = static_cast<ssize_t>(all.size() * sizeof(digest));
    if (pread(descriptor_, all.data(), static_cast<std::size_t>(bytes), 0) != bytes) return false;
    return std::find(all.begin(), all.end(), digest) != all.end();
  }
  // A digest that is written in part is at the end, and never read: contains() reads whole ones.
  void add(std::uint64_t digest) const {
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) return;
    const off_t end =
        status.st_size / static_cast<off_t>(sizeof(digest)) * static_cast<off_t>(sizeof(digest));
    (void)!pwrite(descriptor_, &digest, sizeof(digest), end);
  }

 private:
  int descriptor_;
};

// The program or shared library that this code is in.
struct OwnBinary {
  std::string path;
  std::uint64_t build_id = 0;  // digest of the linker's build id, a hash of the contents; 0: none
};

void read_build_id(const dl_phdr_info& object, const ElfW(Phdr) & notes, OwnBinary& binary) {
  const auto* at = reinterpret_cast<const char*>(object.dlpi_addr + notes.p_vaddr);
  const char* const end = at + notes.p_memsz;
  const auto padded = [](std::uint32_t size) { return (std::size_t{size} + 3) / 4 * 4; };
  ElfW(Nhdr) note;
  while (at + sizeof(note) <= end) {
    std::memcpy(&note, at, sizeof(note));
    const char* const name = at + sizeof(note);
    const char* const id = name + padded(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, 3) == "GNU") {
      binary.build_id = digest_bytes(kDigestSeed, reinterpret_cast<const std::uint8_t*>(id),
                                     std::size_t{note.n_descsz});
    }
    at = id + padded(note.n_descsz);
  }
}

// For dl_iterate_phdr(): returns 1 if this code is in `object`.
int find_own(dl_phdr_info* object, std::size_t, void* found) {
  const auto own = reinterpret_cast<std::uintptr_t>(&find_own);
  const std::span segments(object->dlpi_phdr, object->dlpi_phnum);
  const bool is_own = std::any_of(segments.begin(), segments.end(), [&](const auto& segment) {
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    return segment.p_type == PT_LOAD && own >= begin && own - begin < segment.p_memsz;
  });
  if (!is_own) return 0;
  OwnBinary& binary = *static_cast<OwnBinary*>(found);
  const std::string_view name = object->dlpi_name;
  binary.path = name.empty() ? "/proc/self/exe" : name;  // the program has no name
  for (const auto& segment : segments) {
    if (segment.p_type == PT_NOTE) read_build_id(*object, segment, binary);
  }
  return 1;
}

// Identifies the binary whose code generates and proves. 0: unknown.
std::uint64_t binary_digest() {
  OwnBinary binary;
  (void)dl_iterate_phdr(find_own, &binary);
  if (binary.build_id != 0) return binary.build_id;
  const int descriptor = open(binary.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return 0;
  std::uint64_t digest = kDigestSeed;
  std::vector<std::uint8_t> bytes(1 << 20);
  ssize_t count = 0;
  while ((count = read(descriptor, bytes.data(), bytes.size())) > 0) {
    digest = digest_bytes(digest, bytes.data(), static_cast<std::size_t>(count));
  }
  close(descriptor);
  return count < 0 ? 0 : digest;
}

// What the file holds of a schedule with this digest and verdict.
std::uint64_t entry_of(std::uint64_t digest, Proof proof) {
  return digest_u64(digest, static_cast<std::uint64_t>(proof));
}

std::string cache_folder() {
  if (const char* given = std::getenv("XDG_CACHE_HOME"); given != nullptr && *given == '/') {
    return std::string(given) + "/espalier";
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/espalier" : "";
}

}  // namespace

ProvenCache::ProvenCache() {
  const std::string folder = cache_folder();
  static const std::uint64_t binary = binary_digest();
  if (folder.empty() || binary == 0) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0 || status.st_uid != geteuid() ||
      (status.st_mode & 022) != 0) {
    return;
  }
  char name[40];
  std::snprintf(name, sizeof name, "/proven-%016llx", static_cast<unsigned long long>(binary));
  path_ = folder + name;
}

Proof ProvenCache::obtain(std::uint64_t digest, const std::function<Proof()>& prove) {
  if (path_.empty()) return prove();
  const LockedFile file(path_);
  if (!file.is_open()) return prove();
  for (const Proof known : {Proof::kValidInPlace, Proof::kValid}) {
    if (file.contains(entry_of(digest, known))) return known;
  }
  const Proof proof = prove();
  if (proof != Proof::kInvalid) file.add(entry_of(digest, proof));
  return proof;
}

}  // namespace espalier::communicator
