#include "bootstrap/newcomers.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/one_line.h"
#include "base/process/file_limit.h"
#include "base/read_file.h"
#include "base/try.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {

Result<Accepted> Bootstrap::accept(std::uint32_t /*least*/, std::chrono::milliseconds /*time*/) {
  return fail("this membership takes no newcomers; expected one of bootstrap::join()");
}

Result<void> Bootstrap::complete(const Accepted& /*accepted*/, const std::string& /*failure*/) {
  return fail("this membership takes no newcomers; expected one of bootstrap::join()");
}

void Bootstrap::end_accept_by(EndOfAccept /*end*/) {}

std::string job_ticket(const Place& place) {
  if (place.address.empty()) return encode_ticket({place.secret, place.candidates});
  char hex[2 * sizeof(JobSecret) + 1];
  sodium_bin2hex(hex, sizeof hex, place.secret.data(), place.secret.size());
  return place.address + "/" + hex;
}

bool take_job_ticket(const std::string& text, Place& place) {
  if (const auto ticket = decode_ticket(text)) {
    place.secret = ticket->secret;
    place.is_secret = true;
    place.candidates = ticket->server;
    return true;
  }
  const std::size_t slash = text.rfind('/');
  if (slash == std::string::npos) return false;
  std::size_t length = 0;
  const std::string hex = text.substr(slash + 1);
  if (sodium_hex2bin(place.secret.data(), place.secret.size(), hex.data(), hex.size(), nullptr,
                     &length, nullptr) != 0 ||
      length != place.secret.size()) {
    return false;
  }
  place.address = text.substr(0, slash);
  const auto parts = network::split(place.address);
  if (parts && !network::check_host(parts->host)) return false;
  place.is_secret = place.secret != JobSecret{};
  return true;
}

Result<void> write_ticket(const std::string& path, const std::string& ticket) {
  const std::string hidden = path + ".part";
  (void)unlink(hidden.c_str());
  const int descriptor =
      open(hidden.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  const std::string text = ticket + "\n";
  const bool has_room = text.size() <= max_file_bytes();  // otherwise write() raises a signal
  if (!has_room) errno = EFBIG;
  const bool is_written =
      has_room && descriptor >= 0 &&
      write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (descriptor >= 0) close(descriptor);
  if (is_written && rename(hidden.c_str(), path.c_str()) == 0) return {};
  const std::string error = std::strerror(errno);
  if (descriptor >= 0) (void)unlink(hidden.c_str());
  return fail("cannot write '" + one_line(path) + "': " + error);
}

Result<std::string> write_job_file(const std::string& path, const std::string& ticket) {
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0) {
    const auto old = read_ticket(path);
    Place job;
    if (!old || !take_job_ticket(*old, job)) {
      return fail("'" + one_line(path) +
                  "' is there and is no job file; expected the path of a file that is not there");
    }
  }
  ESPALIER_TRY(write_ticket(path, ticket));
  // The program may change its folder before the file is removed.
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

void remove_job_file(const std::string& path, const std::string& ticket) {
  const auto kept = read_ticket(path);
  if (kept && *kept == ticket) (void)unlink(path.c_str());
}

Error malformed_ticket(const std::string& path) {
  return {"the job file '" + one_line(path) + "' is malformed; expected the file that a job wrote"};
}

Result<std::string> read_ticket(const std::string& path) {
  const std::string name = "the job file '" + one_line(path) + "'";
  const Socket file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return fail("cannot read " + name + ": " + std::strerror(errno));
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(name + " is not a regular file");
  }
  if ((status.st_mode & 077) != 0 || status.st_uid != geteuid()) {
    return fail(name + " is not this user's alone; expected mode 0600");
  }
  const std::size_t most = limit_of(FileKind::kSecret).max_bytes;
  std::string text(most + 1, '\0');
  const ssize_t count = pread(file.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (text.size() > most || text.empty() || text.back() != '\n') {
    return fail(malformed_ticket(path));
  }
  text.pop_back();
  return text;
}

}  // namespace espalier::bootstrap
