#include "tools/measure/postal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collectives/simulation/cluster.h"
#include "collectives/simulation/node_memory.h"
#include "espalier/collectives/verify/verify.h"
#include "tools/measure/cost_model.h"
#include "tools/report/measure_report.h"
#include "tools/select/loaded_schedule.h"

namespace espalier::tools {
namespace {

LoadedSchedule experiment(Experiment which, std::uint32_t receivers) {
  return load_schedule(experiment_name(which), experiment_file(which, receivers), "");
}

TEST(Postal, ExperimentsAreBroadcastsThatVerify) {
  for (const Experiment which : kExperiments) {
    for (std::uint32_t receivers = 1; receivers <= kMaxReceivers; ++receivers) {
      const LoadedSchedule schedule = experiment(which, receivers);
      const verify::Verdict verdict = verify::verify(
          *schedule.topology,
          [&](std::uint32_t node) -> const Program& { return schedule.programs.at(node); },
          verify::VerifyOptions{});
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
  const LoadedSchedule schedule = experiment(which, receivers);
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
    sim::Model model;
    model.alpha = 2e-6;
    model.beta = 1e-9;
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
  Measured measured;
  measured.provider = "shm";
  measured.repetitions = 3;
  measured.receivers = {1, 2};
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
  EXPECT_NE(measured_text(measured).find("2.00"), std::string::npos);
  const std::string svg = measured_svg(measured);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(CostModel, LinesGoThroughTheMeasuredSizes) {
  const CostModel model({{8, 2e-6}, {1000, 3e-6}, {2000, 8e-6}, {4000, 7e-6}});
  EXPECT_NEAR(model.step(8), 2e-6, 1e-12);
  EXPECT_NEAR(model.step(504), 2.5e-6, 1e-12);
  EXPECT_NEAR(model.step(1500), 5.5e-6, 1e-12);
  EXPECT_GE(model.step(1e6), model.step(4000)) << "a longer block never takes less";
  EXPECT_GE(model.step(0), 0);
  EXPECT_NEAR(CostModel(1e-6, 1e-9).step(1000), 2e-6, 1e-12);
}

}  // namespace
}  // namespace espalier::tools
