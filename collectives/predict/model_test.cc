// Models: their text, its refusals, their digest, their arithmetic.

#include "collectives/predict/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/testing/results.h"

namespace espalier::predict {
namespace {

constexpr const char* kText = R"(found_by: "by hand"
link {
  line { alpha_ps: 20000000 beta_fs_per_byte: 1000000 alpha_low_ps: 19000000 alpha_high_ps: 21000000 }
  line { from_bytes: 65536 alpha_ps: 30000000 beta_fs_per_byte: 900000 }
  lambda_permille: 1500
  burst_bytes: 10000
}
combine { op: "sum" type: "f32" gamma_fs_per_byte: 250000 }
gamma_fs_per_byte: 400000
overhead_ps: 500000
overhead_fs_per_byte: 3000
copy_fs_per_byte: 70000
cores: 2
wake_ps: 30000
tuning {
  topology: "complete:8"
  collective: "scan"
  size { bytes: 8 factor { candidate: "chain" permille: 2000 } factor { candidate: "two-tree" permille: 1500 } }
  size { bytes: 1008 factor { candidate: "chain" permille: 1000 } }
}
tuning { topology: "mesh:2x2" collective: "barrier" size { factor { candidate: "dissemination" permille: 1 } } }
)";

TEST(Model, TextIsReadAndWrittenBack) {
  const Model model = or_throw(parse_model(kText, "m"));
  const LinkCost& fabric = model.cost(topology::LinkClass::kFabric);
  EXPECT_EQ(fabric.send_time(8), 20'008'000u);
  EXPECT_EQ(fabric.send_time(65536), 30'000'000u + 58'982'400u);
  EXPECT_EQ(fabric.latency(8), 10'004'000u);
  EXPECT_EQ(fabric.lines[0].alpha.high, 21'000'000u);
  EXPECT_EQ(fabric.burst_bytes, 10'000u);
  EXPECT_TRUE(model.is_given[0] && !model.is_given[1]);
  EXPECT_EQ(model.combine_time({.op = Op::kSum, .type = Type::kF32}, 4000), 1'000'000u);
  EXPECT_EQ(model.combine_time({.op = Op::kSum, .type = Type::kF64}, 4000), 1'600'000u);
  EXPECT_EQ(model.ranks_per_core(2), 1u);
  EXPECT_EQ(model.ranks_per_core(5), 3u);
  const Model again = or_throw(parse_model(model_text(model), "again"));
  EXPECT_EQ(model_text(again), model_text(model));
  EXPECT_EQ(again.digest(), model.digest());
}

TEST(Model, DigestCoversWhatDecidesAndNothingElse) {
  const Model model = or_throw(parse_model(kText, "m"));
  std::set<std::uint64_t> digests = {model.digest(), default_model().digest()};
  const auto change = [&](auto edit) {
    Model changed = model;
    edit(changed);
    EXPECT_TRUE(digests.insert(changed.digest()).second);
  };
  change([](Model& m) { ++m.links[0].lines[1].alpha_ps; });
  change([](Model& m) { ++m.links[0].lines[1].beta_fs; });
  change([](Model& m) { ++m.links[0].lines[1].from_bytes; });
  change([](Model& m) { ++m.links[0].lambda_permille; });
  change([](Model& m) { ++m.links[0].burst_bytes; });
  change([](Model& m) { m.links[0].lines.pop_back(); });
  change([](Model& m) { ++m.links[3].lines[0].alpha_ps; });
  change([](Model& m) { ++m.combines[0].gamma_fs; });
  change([](Model& m) { m.combines[0].type = Type::kF64; });
  change([](Model& m) { ++m.gamma_fs; });
  change([](Model& m) { ++m.overhead_ps; });
  change([](Model& m) { ++m.overhead_fs; });
  change([](Model& m) { ++m.wake_ps; });
  change([](Model& m) { ++m.copy_fs; });
  change([](Model& m) { ++m.cores; });
  change([](Model& m) { m.tunings.pop_back(); });
  change([](Model& m) { m.tunings[0].topology = "complete:9"; });
  change([](Model& m) { m.tunings[0].collective = "exscan"; });
  change([](Model& m) { m.tunings[0].sizes.pop_back(); });
  change([](Model& m) { ++m.tunings[0].sizes[0].bytes; });
  change([](Model& m) { m.tunings[0].sizes[0].factors.pop_back(); });
  change([](Model& m) { ++m.tunings[0].sizes[0].factors[0].permille; });
  change([](Model& m) { m.tunings[0].sizes[0].factors[0].candidate = "pairwise"; });
  Model same = model;
  same.found_by = "measured";
  same.links[0].lines[0].alpha = {1, 2};
  std::swap(same.tunings[0], same.tunings[1]);
  std::swap(same.tunings[1].sizes[0].factors[0], same.tunings[1].sizes[0].factors[1]);
  EXPECT_EQ(same.digest(), model.digest());
}

TEST(Model, NonsenseIsRefusedWithItsLine) {
  struct Refusal {
    const char *text, *where, *what;
  };
  constexpr const char* kLine = "line { alpha_ps: 1 beta_fs_per_byte: 1 }";
  for (const Refusal& refusal : {
           Refusal{"", "line 1", "no link"},
           Refusal{"link {", "line 1", "docs/choosing.md"},
           Refusal{"link {\n speed: 3 }", "line 2", "speed"},
           Refusal{"link { }", "line 1", "no line"},
           Refusal{"link {\n line { alpha_ps: 1 } }", "line 2", "without beta_fs_per_byte"},
           Refusal{"link {\n line { beta_fs_per_byte: 1 } }", "line 2", "without alpha_ps"},
           Refusal{"link {\n line { alpha_ps: 0 beta_fs_per_byte: 0 } }", "line 2", "above 0"},
           Refusal{"link {\n line { from_bytes: 1 alpha_ps: 1 beta_fs_per_byte: 1 } }", "line 2",
                   "expected 0"},
           Refusal{"link { @ \n @ }", "line 2", "expected more than 0"},
           Refusal{"link { @ }\nlink { @ }", "line 2", "one per class"},
           Refusal{"link { @ lambda_permille: 999 }", "line 1", "expected 1000 to 64000"},
           Refusal{"link { @ lambda_permille: 64001 }", "line 1", "expected 1000 to 64000"},
           Refusal{"link { @ }\nlink { @ link_class: SERIAL burst_bytes: 1000000000000001 }",
                   "line 2", "burst_bytes is 1000000000000001; expected at most"},
           Refusal{"link { line { alpha_ps: 1000000000000000001 beta_fs_per_byte: 1 } }", "line 1",
                   "alpha_ps is 1000000000000000001; expected at most"},
           Refusal{"link { line { alpha_ps: 1 beta_fs_per_byte: 1000000000000001 } }", "line 1",
                   "beta_fs_per_byte is 1000000000000001; expected at most"},
           Refusal{"link { line { alpha_ps: 9 beta_fs_per_byte: 1 alpha_low_ps: 1 alpha_high_ps: 8 "
                   "} }",
                   "line 1", "outside its interval from 1 to 8"},
           Refusal{"link { @ }\ncombine { op: \"and\" type: \"f32\" gamma_fs_per_byte: 1 }",
                   "line 2", "no such operator and type"},
           Refusal{"link { @ }\ncombine { op: \"sum\" type: \"f32\" }", "line 2",
                   "no gamma_fs_per_byte"},
           Refusal{"link { @ }\ncombine { op: \"sum\" type: \"f32\" gamma_fs_per_byte: 1 }\n"
                   "combine { op: \"sum\" type: \"f32\" gamma_fs_per_byte: 1 }",
                   "line 3", "a second one"},
           Refusal{"link { @ }\noverhead_ps: 1000000000000000001", "line 2", "overhead_ps"},
           Refusal{"link { @ }\ngamma_fs_per_byte: 1000000000000001", "line 2",
                   "gamma_fs_per_byte"},
           Refusal{"link { @ }\nwake_ps: 1", "line 2", "wake_ps without cores"},
           Refusal{"link { @ }\ntuning { topology: \"circle:8\" collective: \"scan\" %1 }",
                   "line 2", "no such topology"},
           Refusal{"link { @ }\ntuning { topology: \"mesh:2x2\" collective: \"sum\" %1 }", "line 2",
                   "no such collective"},
           Refusal{"link { @ }\ntuning { % }", "line 2", "no size"},
           Refusal{"link { @ }\ntuning { % %1 }\ntuning { % %1 }", "line 3", "a second one"},
           Refusal{"link { @ }\ntuning { %\n%1\n%1 }", "line 4", "expected more than 1"},
           Refusal{"link { @ }\ntuning { %\nsize { } }", "line 3", "no factor"},
           Refusal{"link { @ }\ntuning { %\nsize { factor { candidate: \"a\" } } }", "line 3",
                   "permille of 'a' is 0; expected 1 to 1000000"},
           Refusal{"link { @ }\ntuning { %\nsize { factor { permille: 1 } } }", "line 3",
                   "no candidate"},
           Refusal{"link { @ }\ntuning { %\nsize { factor { candidate: \"a\" permille: 1 } "
                   "factor { candidate: \"a\" permille: 2 } } }",
                   "line 3", "twice"},
       }) {
    std::string text = refusal.text;
    const auto replace_all = [&text](const std::string& what, const std::string& by) {
      for (std::size_t at = 0; (at = text.find(what)) != std::string::npos;)
        text.replace(at, what.size(), by);
    };
    replace_all("@", kLine);
    replace_all("%1", "size { bytes: 1 factor { candidate: \"a\" permille: 1 } }");
    replace_all("%", "topology: \"mesh:2x2\" collective: \"scan\"");
    const std::string message = message_of(parse_model(text, "m"));
    EXPECT_NE(message.find("model 'm', "), std::string::npos) << text << ": " << message;
    EXPECT_NE(message.find(refusal.where), std::string::npos) << text << ": " << message;
    EXPECT_NE(message.find(refusal.what), std::string::npos) << text << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Model, FactorsAreInterpolatedByBytes) {
  const Model model = or_throw(parse_model(kText, "m"));
  EXPECT_EQ(model.tuning("complete:8", "reduce"), nullptr);
  EXPECT_EQ(model.tuning("complete:9", "scan"), nullptr);
  const Tuning& scan = *model.tuning("complete:8", "scan");
  EXPECT_EQ(scan.tuned("chain", 0, 1'000'007), 2'000'014u);
  EXPECT_EQ(scan.tuned("chain", 8, 1'000'000), 2'000'000u);
  EXPECT_EQ(scan.tuned("chain", 508, 1'000'000), 1'500'000u);
  EXPECT_EQ(scan.tuned("chain", 1008, 1'000'000), 1'000'000u);
  EXPECT_EQ(scan.tuned("chain", std::uint64_t{1} << 40, 1'000'000), 1'000'000u);
  EXPECT_EQ(scan.tuned("two-tree", 8, 1'000'000), 1'500'000u);
  EXPECT_EQ(scan.tuned("two-tree", 2000, 1'000'000), 1'500'000u) << "its own of 8 bytes";
  EXPECT_EQ(scan.tuned("recursive-doubling", 8, 1'000'000), 2'000'000u) << "the greatest";
  EXPECT_EQ(scan.tuned("chain", 8, kMaxPrediction), kMaxPrediction);
  Tuning slow = scan;
  slow.sizes[1].factors[0].permille = 3000;
  EXPECT_EQ(slow.tuned("two-tree", 2000, 1'000'000), 3'000'000u) << "the greatest";
  slow.sizes.push_back({1'000'000, {{"two-tree", 4000}}});
  EXPECT_EQ(slow.permille("two-tree", 1), 4000u) << "as near as the other, and greater";
  slow.sizes.push_back({2'000'000, {{"chain", 1}}});
  slow.sizes.push_back({3'000'000, {{"chain", 1}}});
  EXPECT_EQ(slow.permille("two-tree", 4), 4000u);
  Tuning wide = scan;
  wide.sizes[1].bytes = std::uint64_t{1} << 50;
  EXPECT_EQ(wide.tuned("chain", std::uint64_t{1} << 49, 1'000'000), 1'500'000u);
}

TEST(Model, ArithmeticSaturates) {
  const Model slow = line_model(1e6, 1);
  EXPECT_EQ(slow.cost(topology::LinkClass::kSerial).send_time(1), 1'000'001'000'000'000'000u);
  EXPECT_EQ(slow.cost(topology::LinkClass::kSerial).send_time(std::uint64_t{1} << 40),
            kMaxPrediction);
  EXPECT_EQ(times(kMaxPrediction / 2, 3), kMaxPrediction);
}

TEST(Model, AStepCostsWhatItsMessageCostsBothNodes) {
  Model model = line_model(1e-6, 1e-9);
  model.overhead_ps = 250'000;
  model.cores = 2;
  const auto topology = or_throw(topology::parse("mesh:2x2"));
  EXPECT_EQ(step_cost(model, *topology, 8).send_time(1000), 2'500'000u);
  EXPECT_EQ(step_cost(model, *topology, 8, 2).send_time(1000), 2'500'000u);
  EXPECT_EQ(step_cost(model, *topology, 8, 3).send_time(1000), 3'000'000u);
  model.wake_ps = 40'000;
  EXPECT_EQ(step_cost(model, *topology, 8, 2).send_time(1000), 2'500'000u);
  EXPECT_EQ(step_cost(model, *topology, 8, 3).send_time(1000), 3'040'000u);
  model.wake_ps = 0;
  model.overhead_fs = 100'000;
  EXPECT_EQ(step_cost(model, *topology, 8, 3).send_time(1000), 3'400'000u);
}

TEST(Model, BlocksOfAPipelineTakeNoLessThanTheirOverhead) {
  Model model = line_model(1e-6, 1e-9);
  const auto topology = or_throw(topology::parse("mesh:2x2"));
  EXPECT_EQ(pipeline_cost(model, *topology, 8).send_time(1000), 2'000'000u);
  model.overhead_ps = 2'000'000;
  model.cores = 2;
  for (const auto& [ranks, least] : {std::pair{1u, 4'000'000u}, {4u, 8'000'000u}}) {
    const LinkCost cost = pipeline_cost(model, *topology, 8, ranks);
    for (const std::uint64_t bytes : {0u, 1000u, 2999u, 3000u, 6999u, 7000u, 100'000u}) {
      EXPECT_EQ(cost.send_time(bytes), std::max<Picoseconds>(least, 1'000'000 + bytes * 1000));
    }
  }
  model.overhead_fs = 250'000;
  for (const std::uint64_t bytes : {0u, 1000u, 5999u, 6000u, 7000u, 100'000u}) {
    EXPECT_EQ(pipeline_cost(model, *topology, 8).send_time(bytes),
              std::max<Picoseconds>(4'000'000 + bytes * 500, 1'000'000 + bytes * 1000));
  }
  model.overhead_fs = 0;
  LinkCost& link = model.links[static_cast<std::size_t>(topology::LinkClass::kFabric)];
  link.lines = {{0, 1000, 0, {}, {}}, {500, 0, 100'000, {}, {}}, {100'000, 0, 200'000, {}, {}}};
  const LinkCost cost = pipeline_cost(model, *topology, 8);
  for (const std::uint64_t bytes :
       {0u, 499u, 500u, 39'999u, 40'000u, 99'999u, 100'000u, 1'000'000u}) {
    EXPECT_EQ(cost.send_time(bytes), std::max<Picoseconds>(4'000'000, link.send_time(bytes)));
  }
}

TEST(Model, NoMessagesTakeLessThanTheLeastTime) {
  LinkCost one{.lines = {{0, 1000, 2000, {}, {}}}};
  EXPECT_EQ(one.least_time(1000, 10, 7), 7 * 1000u + 2000u);
  EXPECT_EQ(one.least_time(0, 0, 3), 3000u);
  // Blocks of 10 bytes cost 3 a byte, of 99 bytes 2.1, and longer ones 4 and more.
  LinkCost dear{.lines = {{0, 10, 2000, {}, {}}, {100, 0, 4000, {}, {}}}};
  EXPECT_EQ(dear.least_time(10'000, 10, 2), 21010u);
  EXPECT_EQ(dear.least_time(10'000, 100, 2), 40000u);
  EXPECT_EQ(dear.least_time(50, 60, 1), 110u);
  for (const LinkCost& cost : {one, dear}) {
    for (const std::uint64_t block : {1u, 10u, 99u, 100u, 250u, 1000u}) {
      const std::uint64_t messages = 10'000 / block;
      EXPECT_GE(times(cost.send_time(block), messages),
                cost.least_time(messages * block, block, messages))
          << block;
    }
  }
}

TEST(Model, DefaultsAreTextToo) {
  const Model model = default_model();
  for (const LinkCost& cost : model.links) EXPECT_GT(cost.send_time(0), 0u);
  const auto topology = or_throw(topology::parse("mesh:2x2"));
  EXPECT_EQ(&slowest(model, *topology, 8), &model.cost(topology::LinkClass::kFabric));
  EXPECT_EQ(&fastest(model, *topology, 8), &model.cost(topology::LinkClass::kFabric));
}

}  // namespace
}  // namespace espalier::predict
