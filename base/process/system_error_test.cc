#include "base/process/system_error.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>

namespace espalier {
namespace {

// Sets a soft limit while it lives.
class SoftLimit {
 public:
  SoftLimit(decltype(RLIMIT_AS) resource, rlim_t value) : resource_(resource) {
    EXPECT_EQ(getrlimit(resource_, &before_), 0);
    const rlimit changed{value, before_.rlim_max};
    EXPECT_EQ(setrlimit(resource_, &changed), 0);
  }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;
  ~SoftLimit() { EXPECT_EQ(setrlimit(resource_, &before_), 0); }

 private:
  decltype(RLIMIT_AS) resource_;
  rlimit before_{};
};

TEST(SystemError, NamesTheLimitThatExplainsIt) {
  const SoftLimit files(RLIMIT_NOFILE, 50);
  const SoftLimit size(RLIMIT_FSIZE, 1 << 20);
  EXPECT_EQ(system_error_text(EMFILE), "Too many open files; a limit of 50 open files (ulimit -n)");
  EXPECT_EQ(system_error_text(EFBIG),
            "File too large; a file-size limit of 1048576 bytes (ulimit -f)");
  EXPECT_EQ(system_error_text(ENOENT), "No such file or directory");
  const SoftLimit processes(RLIMIT_NPROC, 5);
  const std::string again = "Resource temporarily unavailable; ";
  rlimit memory{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &memory), 0);
  if (memory.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(system_error_text(ENOMEM), "Cannot allocate memory");
    EXPECT_EQ(system_error_text(EAGAIN), again + "a limit of 5 processes (ulimit -u)");
  }
}

TEST(SystemError, NamesTheAddressSpace) {
  if (std::getenv("ESPALIER_EMULATED") != nullptr) {
    GTEST_SKIP() << "qemu-user sets no limit of address space, and says that it did";
  }
  rlimit memory{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &memory), 0);
  if (memory.rlim_max != RLIM_INFINITY) GTEST_SKIP() << "the address space has a limit already";
  const std::string again = "Resource temporarily unavailable; ";
  const SoftLimit space(RLIMIT_AS, rlim_t{1} << 46);
  const std::string limit = "an address-space limit of 70368744177664 bytes (ulimit -v)";
  EXPECT_EQ(system_error_text(ENOMEM), "Cannot allocate memory; " + limit);
  EXPECT_EQ(system_error_text(EAGAIN), again + limit);
}

}  // namespace
}  // namespace espalier
