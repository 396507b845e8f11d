#include "tools/measure/postal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/testing/contains.h"
#include "collectives/predict/predict.h"
#include "collectives/simulation/cluster.h"
#include "collectives/simulation/node_memory.h"
#include "espalier/collectives/verify/verify.h"
#include "planner/files/loaded_schedule.h"
#include "tools/common/schedules.h"
#include "tools/measure/measured_model.h"
#include "tools/report/measure_report.h"

namespace espalier::tools {
namespace {

planner::LoadedSchedule experiment(Experiment which, std::uint32_t receivers) {
  return load_schedule(experiment_name(which), experiment_file(which, receivers), "");
}

TEST(Postal, ExperimentsAreBroadcastsThatVerify) {
  for (const Experiment which : kExperiments) {
    for (std::uint32_t receivers = 1; receivers <= kMaxReceivers; ++receivers) {
      const verify::Verdict verdict = verdict_of(experiment(which, receivers), {});
      EXPECT_TRUE(verdict.valid) << receivers << verdict.counterexample.message;
    }
  }
  Program program;
  EXPECT_EQ(experiment_program(Experiment::kEcho, 0, 0, 1, program), Status::kBadArgument);
  EXPECT_EQ(experiment_program(Experiment::kEcho, kMaxReceivers + 1, 0, 1, program),
            Status::kBadArgument);
}

// s of virtual time until rank 0 has its last message.
double simulated(Experiment which, std::uint32_t receivers, const sim::Model& model,
                 std::uint64_t bytes) {
  const planner::LoadedSchedule schedule = experiment(which, receivers);
  std::vector<const Program*> programs;
  for (const Program& program : schedule.programs) programs.push_back(&program);
  sim::Cluster cluster(sim::Network(model, sim::links_of(programs)), {});
  std::vector<sim::NodeMemory> memory(programs.size());
  for (std::uint32_t node = 0; node < programs.size(); ++node) {
    Layout layout;
    EXPECT_EQ(make_layout(*programs[node], bytes, 1, layout), Status::kOk);
    memory[node].allocate(*programs[node], layout);
    EXPECT_EQ(cluster.start(node, *programs[node], memory[node].buffers(), Operator{}, bytes),
              Status::kOk);
  }
  const sim::RunResult result = cluster.run();
  EXPECT_EQ(result.status, Status::kOk) << result.message;
  return result.seconds;
}

// On a network that is the postal model the two experiments give its parameters back.
TEST(Postal, ExperimentsFindTheModelsParameters) {
  for (const double lambda : {1.0, 1.8, 5.0}) {
    sim::Model model{.alpha = 2e-6, .beta = 1e-9};
    const std::uint64_t bytes = 1000;
    const double send = model.alpha + model.beta * static_cast<double>(bytes);
    model.latency = (lambda - 1) * send;
    std::vector<Timing> timings;
    for (const Experiment which : kExperiments) {
      for (const std::uint32_t k : {1u, 2u, 4u, 8u}) {
        const double seconds = simulated(which, k, model, bytes);
        const double paper =
            which == Experiment::kEcho ? send * (k - 1 + 2 * lambda) : 2 * send * (k - 1 + lambda);
        EXPECT_NEAR(seconds, paper, 1e-7) << experiment_name(which) << " k " << k << " " << lambda;
        timings.push_back({which, k, seconds});
      }
    }
    const Postal postal = fit_postal(timings);
    EXPECT_NEAR(postal.send_s / send, 1, 0.01);
    EXPECT_NEAR(postal.lambda / lambda, 1, 0.01);
    EXPECT_NEAR(postal.echo_lambda / lambda, 1, 0.02);
    EXPECT_NEAR(postal.return_lambda / lambda, 1, 0.02);
  }
}

// Where all ranks share the processors of one host, the predictions of the experiments give o back,
// within a third.
TEST(Postal, ExperimentsTellTheOverheadOfSharedProcessors) {
  predict::Model model = predict::line_model(1e-9, 0);
  model.overhead_ps = 10'000'000;
  for (const std::uint32_t processors : {1u, 2u, 4u}) {
    model.cores = processors;
    std::vector<Timing> timings;
    for (const Experiment which : kExperiments) {
      for (const std::uint32_t k : {1u, 2u, 4u, 7u}) {
        const planner::LoadedSchedule schedule = experiment(which, k);
        Layout layout;
        ASSERT_EQ(make_layout(schedule.programs.front(), 8, 1, layout), Status::kOk);
        predict::Conditions conditions;
        conditions.ranks_on_host = k + 1;
        const auto found =
            predict::predict(*schedule.topology, schedule.programs, layout, model, conditions);
        timings.push_back({which, k, static_cast<double>(found.time) * 1e-12});
      }
    }
    // Not all processors are busy all the time.
    EXPECT_GE(shared_overhead(timings, processors), 9e-6) << processors;
    EXPECT_LE(shared_overhead(timings, processors), 13.5e-6) << processors;
  }
}

TEST(Postal, StreamsTellTheOverheadOfSharedProcessors) {
  const auto chain_gap = [](std::uint32_t ranks, const predict::Model& model) {
    const planner::LoadedSchedule schedule = load_schedule("stream", stream_file(ranks, 1000), "");
    const auto time_of = [&](std::uint64_t blocks) {
      Layout layout;
      EXPECT_EQ(make_layout(schedule.programs.front(), blocks * 1000, 1, layout), Status::kOk);
      predict::Conditions conditions;
      conditions.ranks_on_host = ranks;
      return predict::predict(*schedule.topology, schedule.programs, layout, model, conditions)
          .time;
    };
    return static_cast<double>(time_of(400) - time_of(200)) * 1e-12 / 200;
  };
  predict::Model model = predict::line_model(1e-6, 1e-9);
  model.cores = 2;
  EXPECT_EQ(shared_overhead(chain_gap(8, model), chain_gap(2, model), 8, 2), 0);
  model.overhead_ps = 1'000'000;
  model.overhead_fs = 2'000'000;
  EXPECT_NEAR(shared_overhead(chain_gap(8, model), chain_gap(2, model), 8, 2), 3e-6, 0.3e-6);
}

TEST(Postal, AFlatTimeHasNoLambda) {
  std::vector<Timing> timings;
  for (const Experiment which : kExperiments) {
    for (const std::uint32_t k : {1u, 2u}) timings.push_back({which, k, 4e-6});
  }
  const Postal postal = fit_postal(timings);
  EXPECT_EQ(postal.lambda, 0);
  EXPECT_NEAR(postal.one_way_s, 2e-6, 1e-12);
}

TEST(Postal, LinesHaveNoNegativeParts) {
  const Line line = fit_line({0, 1000, 2000}, {1e-6, 2e-6, 3e-6});
  EXPECT_NEAR(line.alpha, 1e-6, 1e-12);
  EXPECT_NEAR(line.beta, 1e-9, 1e-15);
  EXPECT_EQ(fit_line({0, 1000}, {2e-6, 1e-6}).beta, 0);
  EXPECT_EQ(fit_line({10, 1000}, {1e-9, 1e-6}).alpha, 0);
}

Measured two_sizes() {
  Measured measured{.provider = "mem", .repetitions = 3, .receivers = {1, 2}};
  for (const std::uint64_t bytes : {8u, 4096u}) {
    MeasuredSize size;
    size.bytes = bytes;
    const double send = 1e-6 + 1e-9 * static_cast<double>(bytes);
    for (const Experiment which : kExperiments) {
      for (const std::uint32_t k : {1u, 2u}) {
        const double t = which == Experiment::kEcho ? send * (k - 1 + 4) : 2 * send * (k - 1 + 2);
        size.timings.push_back({which, k, t});
        size.least.push_back(t);
        size.most.push_back(t);
      }
    }
    measured.sizes.push_back(size);
  }
  evaluate(measured);
  return measured;
}

TEST(Postal, ReportsTellTheParameters) {
  const Measured measured = two_sizes();
  const auto json = nlohmann::json::parse(measured_json(measured));
  EXPECT_NEAR(json["sizes"][1]["lambda"].get<double>(), 2, 1e-9);
  EXPECT_NEAR(json["sizes"][0]["alpha_s"].get<double>(), 2e-6, 1e-12);
  EXPECT_NEAR(json["beta_s_per_byte"].get<double>(), 2e-9, 1e-14);
  EXPECT_PRED2(contains, measured_text(measured), "2.00");
  const std::string svg = measured_svg(measured);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_PRED2(contains, svg, "</svg>");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

SizeTime size_time(std::uint64_t bytes, double seconds) {
  return {bytes, {seconds, seconds * 0.9, seconds * 1.1}};
}

TEST(MeasuredModel, LinesGoThroughTheMeasuredSizes) {
  predict::LinkCost cost;
  cost.lines = lines_through({size_time(8, 2e-6), size_time(1000, 3e-6), size_time(2000, 5e-6),
                              size_time(3000, 9e-6), size_time(4000, 7e-6)});
  const auto near = [&cost](std::uint64_t bytes, double us) {
    EXPECT_NEAR(static_cast<double>(cost.send_time(bytes)), us * 1e6, 10) << bytes;
  };
  near(8, 2);
  near(504, 2.5);
  near(1500, 4);
  near(2500, 7.5);   // a line through 0 and the longer size, for its start would be below 0
  near(100'000, 9);  // a longer block never takes less
  for (const predict::CostLine& line : cost.lines) {
    EXPECT_LE(line.alpha.low, line.alpha_ps);
    EXPECT_GE(line.alpha.high, line.alpha_ps);
    EXPECT_LE(line.beta.low, line.beta_fs);
    EXPECT_GE(line.beta.high, line.beta_fs);
  }
  cost.lines = lines_through({size_time(100, 1e-6)});
  near(100, 1);
}

TEST(MeasuredModel, MedianHasItsInterval) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  const MeasuredTime time = median_time(values);
  EXPECT_EQ(time.seconds, 50);
  EXPECT_EQ(time.low, 40);  // (101 - 1.96 sqrt 101) / 2 = 40.6
  EXPECT_EQ(time.high, 60);
  EXPECT_EQ(median_time({3}).low, 3);
}

TEST(MeasuredModel, StreamsTellTheOverheadFromAlpha) {
  Measured measured{.provider = "mem", .processors = 2, .ranks_on_host = 2};
  for (const std::uint64_t bytes : {8u, 1000u}) {
    MeasuredSize size;
    size.bytes = bytes;
    size.one_way = size_time(bytes, 10e-6 + 1e-9 * static_cast<double>(bytes)).one_way;
    size.gap = size_time(bytes, 4e-6 + 1e-9 * static_cast<double>(bytes - 8)).one_way;
    measured.sizes.push_back(size);
  }
  const predict::Model model =
      measured_model(measured, {{Op::kSum, Type::kF32, 250'000, {}}}, topology::LinkClass::kMemory);
  const predict::LinkCost& cost = model.cost(topology::LinkClass::kMemory);
  EXPECT_NEAR(static_cast<double>(model.overhead_ps), 3.004e6, 10);
  EXPECT_NEAR(static_cast<double>(cost.send_time(8)), 4e6, 10);
  EXPECT_EQ(model.gamma_fs, 250'000u);
  EXPECT_EQ(model.cores, 2u);
  const std::string text = predict::model_text(model);
  const auto read = predict::parse_model(text, "written");
  ASSERT_TRUE(read) << text << read.error().message;
  EXPECT_EQ(read->digest(), model.digest());
}

TEST(MeasuredModel, SharedProcessorsTellTheOverheadToo) {
  Measured measured = two_sizes();
  measured.processors = 1;
  measured.ranks_on_host = 2;
  EXPECT_TRUE(shares_processors(measured));
  const predict::Model model = measured_model(measured, {}, topology::LinkClass::kFabric);
  // A further receiver adds 1.008 us to an echo and 2.016 us to a return, with 4 o each.
  EXPECT_NEAR(static_cast<double>(model.overhead_ps), 0.378e6, 10);
  EXPECT_EQ(model.cores, 1u);
  EXPECT_EQ(model.wake_ps, 0u);
  measured.hop = {5e-6, 5e-6, 5e-6};
  measured.sizes.front().gap = {1e-6, 1e-6, 1e-6};
  const predict::Model waking = measured_model(measured, {}, topology::LinkClass::kFabric);
  EXPECT_NEAR(static_cast<double>(waking.wake_ps), 4e6 - 0.756e6, 10);
}

TEST(MeasuredModel, OperatorsAreTimed) {
  const std::vector<predict::CombineCost> all = time_operators();
  bool has_sum = false;
  for (const predict::CombineCost& one : all) {
    EXPECT_GT(one.gamma_fs, 0u) << op_name(one.op) << type_name(one.type);
    has_sum = has_sum || (one.op == Op::kSum && one.type == Type::kF32);
  }
  EXPECT_TRUE(has_sum);
  EXPECT_GE(all.size(), 60u);
}

}  // namespace
}  // namespace espalier::tools
