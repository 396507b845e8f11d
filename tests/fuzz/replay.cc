// Runs a fuzz target on kept inputs, without a fuzzer: replay FILE|ARCHIVE.tar...
// An archive is one of tests/fuzz/corpus, written by tests/fuzz/pack.sh: regular files in the ustar
// format. Exit status 2 if an argument cannot be read or there is nothing to run; a target that
// finds something ends the process.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/read_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {

constexpr std::size_t kRecord =
    512;  // bytes; headers and contents of a tar archive begin at multiples

void run(const std::string& name, const std::string& bytes) {
  // Printed first: the last line names the input that ended the process.
  std::printf("%s\n", name.c_str());
  std::fflush(stdout);
  // A copy of exactly this size, so that a sanitizer sees reads beyond it.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

// The size field of a header: octal digits, then a space or zero. Empty if the field has another
// form.
std::optional<std::size_t> size_field(const std::string& archive, std::size_t header) {
  std::size_t size = 0;
  for (std::size_t i = header + 124; i < header + 135; ++i) {
    if (archive[i] < '0' || archive[i] > '7') return {};
    size = size * 8 + static_cast<std::size_t>(archive[i] - '0');
  }
  return size;
}

// Runs every file of the archive; returns their number, or nothing if the archive is damaged.
std::optional<std::size_t> run_archive(const std::string& archive) {
  std::size_t inputs = 0;
  for (std::size_t header = 0; header + kRecord <= archive.size();) {
    if (archive[header] == 0) return inputs;  // the end: records of zeros
    const auto size = size_field(archive, header);
    const bool is_file =
        archive.compare(header + 257, 5, "ustar") == 0 && archive[header + 156] == '0';
    if (!is_file || !size || archive.size() - header - kRecord < *size) return {};
    run(archive.substr(header, 100).c_str(), archive.substr(header + kRecord, *size));
    header += kRecord + (*size + kRecord - 1) / kRecord * kRecord;
    ++inputs;
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t inputs = 0;
  for (int k = 1; k < argc; ++k) {
    const std::string path = argv[k];
    const auto bytes = espalier::read_file(argv[k], espalier::FileKind::kInput);
    if (!bytes) {
      std::fprintf(stderr, "replay: %s\n", bytes.error().message.c_str());
      return 2;
    }
    if (!path.ends_with(".tar")) {
      run(path, *bytes);
      ++inputs;
      continue;
    }
    const auto contained = run_archive(*bytes);
    if (!contained) {
      std::fprintf(stderr, "replay: %s is damaged; expected an archive of tests/fuzz/pack.sh\n",
                   argv[k]);
      return 2;
    }
    inputs += *contained;
  }
  if (inputs == 0) {
    std::fprintf(stderr, "replay: no inputs; expected files or archives of them\n");
    return 2;
  }
  std::printf("%zu inputs\n", inputs);
  return 0;
}
