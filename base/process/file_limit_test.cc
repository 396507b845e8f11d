#include "base/process/file_limit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "base/testing/child.h"

namespace espalier {
namespace {

TEST(FileLimit, IsTheSystemsLimit) {
  const int status = status_of_child([] {
    const rlimit limit = {4096, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    fail_beyond_file_limit();
    const int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const char bytes[8192] = {};
    return max_file_bytes() == 4096 &&
           file_limit_text() == "a file-size limit of 4096 bytes (ulimit -f)" &&
           write(file, bytes, sizeof bytes) == 4096 && write(file, bytes, sizeof bytes) == -1 &&
           errno == EFBIG;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace espalier
