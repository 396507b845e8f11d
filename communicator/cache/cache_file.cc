#include "communicator/cache/cache_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "base/digest.h"
#include "base/one_line.h"
#include "base/process/file_limit.h"
#include "base/process/variables.h"
#include "base/read_file.h"
#include "espalier/internal/base/assert.h"

namespace espalier::communicator {
namespace {

// A second in all.
constexpr int kLockAttempts = 100;
constexpr useconds_t kLockPauseUs = 10'000;

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

std::string cache_folder() {
  if (const char* given = raw_value(Variable::kCacheHome); given != nullptr && *given == '/') {
    return std::string(given) + "/espalier";
  }
  const char* home = raw_value(Variable::kHome);
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/espalier" : "";
}

}  // namespace

std::string cache_path(const std::string& name) {
  static const std::uint64_t binary = binary_digest();
  const std::string folder = cache_folder();
  if (folder.empty() || binary == 0) return "";
  // Not HOME itself, nor folders above that of XDG_CACHE_HOME: they are not ours to make.
  (void)mkdir(folder.substr(0, folder.rfind('/')).c_str(), 0700);
  (void)mkdir(folder.c_str(), 0700);
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0 || status.st_uid != geteuid() ||
      (status.st_mode & 022) != 0) {
    return "";
  }
  char digest[20];
  std::snprintf(digest, sizeof digest, "-%016llx", static_cast<unsigned long long>(binary));
  return folder + "/" + name + digest;
}

CacheFile::CacheFile(const std::string& path)
    : descriptor_(
          path.empty()
              ? -1
              : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)) {
  struct stat status {};
  if (descriptor_ < 0) return;
  const bool is_ours = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) &&
                       status.st_uid == geteuid() && (status.st_mode & 077) == 0;
  if (is_ours && lock(path)) return;
  close(descriptor_);
  descriptor_ = -1;
}

// Another process may compute, which it does faster than a second, or be stopped.
bool CacheFile::lock(const std::string& path) const {
  for (int attempt = 0; attempt <= kLockAttempts; ++attempt) {
    if (attempt > 0) usleep(kLockPauseUs);
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
  }
  if (is_set(Variable::kVerbose)) {
    std::fprintf(stderr, "espalier: another process has locked '%s'; plans without it\n",
                 one_line(path).c_str());
  }
  return false;
}

CacheFile::~CacheFile() {
  if (descriptor_ < 0) return;
  // A child that was forked meanwhile has the descriptor, too, which would keep the lock.
  (void)flock(descriptor_, LOCK_UN);
  close(descriptor_);
}

std::string CacheFile::read() const {
  ESPALIER_ASSERT(is_open());
  const auto most = static_cast<off_t>(limit_of(FileKind::kCache).max_bytes);
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || status.st_size > most) return "";
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  return pread(descriptor_, bytes.data(), bytes.size(), 0) == status.st_size ? bytes : "";
}

void CacheFile::write(std::size_t offset, std::string_view bytes) const {
  ESPALIER_ASSERT(is_open());
  if (offset + bytes.size() > max_file_bytes()) return;  // a write would raise a signal
  (void)!pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
}

void CacheFile::replace(std::string_view bytes) const {
  ESPALIER_ASSERT(is_open());
  if (ftruncate(descriptor_, 0) == 0) write(0, bytes);
}

}  // namespace espalier::communicator
