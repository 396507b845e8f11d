#include "tools/doctor/versions.h"

#include <gtest/gtest.h>

namespace espalier::tools::doctor {
namespace {

TEST(Versions, AreComparedByNumbers) {
  EXPECT_TRUE(is_newer("2.10.0", "2.9.3"));
  EXPECT_TRUE(is_newer("2.1.1", "2.1"));
  EXPECT_FALSE(is_newer("2.1", "2.1.0"));
  EXPECT_FALSE(is_newer("1.17.0", "2.1.0"));
  EXPECT_FALSE(is_newer("6.0.0rc2", "6.0.0"));
  EXPECT_FALSE(is_newer("unknown", "1.0"));
}

TEST(Versions, ANewerOneIsNamedOnce) {
  const HostFact fact = versions_fact({{"libfabric", "2.4.0"}, {"PMIx", "5.0.7"}, {"Expat", "9.0"}},
                                      {{"PMIx", "5.0.7"}, {"libfabric", "2.1.0"}});
  EXPECT_EQ(fact.value, "libfabric 2.4.0, PMIx 5.0.7, Expat 9.0");
  EXPECT_EQ(fact.problem, "libfabric 2.4.0 is newer than 2.1.0, the newest one tested");
  EXPECT_NE(fact.remedy, "");
}

TEST(Versions, TestedOnesAreNoProblem) {
  const HostFact fact = versions_fact({{"libfabric", "1.17.0"}}, {{"libfabric", "2.1.0"}});
  EXPECT_EQ(fact.problem, "");
  EXPECT_EQ(fact.remedy, "");
}

TEST(Versions, LibrariesSayTheirOwn) {
  for (const LibraryVersion& library : library_versions()) {
    EXPECT_TRUE(is_newer(library.version, "0")) << library.name << " " << library.version;
  }
}

}  // namespace
}  // namespace espalier::tools::doctor
