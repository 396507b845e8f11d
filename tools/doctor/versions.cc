#include "tools/doctor/versions.h"

#include <dlfcn.h>
#include <expat.h>
#include <google/protobuf/stubs/common.h>
#include <sodium.h>

#include <cstddef>
#include <cstdlib>

#include "bootstrap/pmix_library.h"
#include "newest_tested.h"

namespace espalier::tools::doctor {
namespace {

// The numbers of a version: {2, 1, 0} of "2.1.0rc1".
std::vector<unsigned long> numbers_of(std::string_view version) {
  std::vector<unsigned long> numbers;
  const std::string text(version);
  const char* at = text.c_str();
  while (*at >= '0' && *at <= '9') {
    char* end = nullptr;
    numbers.push_back(std::strtoul(at, &end, 10));
    at = *end == '.' ? end + 1 : "";
  }
  return numbers;
}

// Returns "4.2.2" of "OpenPMIx 4.2.2rc2 (PMIx Standard: ...)"; empty: no PMIx.
std::string pmix_version() {
  for (const char* name : bootstrap::kPmixLibraries) {
    void* const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    const auto get = reinterpret_cast<const char* (*)()>(dlsym(library, "PMIx_Get_version"));
    const std::string text = get == nullptr ? "" : get();
    dlclose(library);
    const std::size_t begin = text.find_first_of("0123456789");
    if (begin == std::string::npos) return "";
    return text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
  }
  return "";
}

}  // namespace

bool is_newer(std::string_view version, std::string_view other) {
  std::vector<unsigned long> one = numbers_of(version);
  std::vector<unsigned long> two = numbers_of(other);
  const std::size_t length = one.size() > two.size() ? one.size() : two.size();
  one.resize(length);
  two.resize(length);
  return one > two;
}

HostFact versions_fact(const std::vector<LibraryVersion>& libraries,
                       const std::vector<LibraryVersion>& tested) {
  HostFact fact{"versions", "", "", ""};
  for (const LibraryVersion& library : libraries) {
    fact.value += (fact.value.empty() ? "" : ", ") + library.name + " " + library.version;
    for (const LibraryVersion& newest : tested) {
      if (newest.name != library.name || !is_newer(library.version, newest.version)) continue;
      fact.problem += (fact.problem.empty() ? "" : "; ") + library.name + " " + library.version +
                      " is newer than " + newest.version + ", the newest one tested";
    }
  }
  if (!fact.problem.empty()) {
    fact.remedy = "run ./test.sh of Espalier's sources here, or use a version that was tested";
  }
  return fact;
}

std::vector<LibraryVersion> library_versions() {
  const XML_Expat_Version expat = XML_ExpatVersionInfo();
  std::vector<LibraryVersion> libraries = {
      {"Protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)},
      {"Expat", std::to_string(expat.major) + "." + std::to_string(expat.minor) + "." +
                    std::to_string(expat.micro)},
      {"libsodium", sodium_version_string()}};
  if (const std::string pmix = pmix_version(); !pmix.empty()) libraries.push_back({"PMIx", pmix});
  return libraries;
}

std::vector<LibraryVersion> newest_tested() {
  std::vector<LibraryVersion> tested;
  for (const NewestTested& each : kNewestTested) {
    if (*each.name != '\0') tested.push_back({each.name, each.version});
  }
  return tested;
}

}  // namespace espalier::tools::doctor
