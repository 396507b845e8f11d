#include "tools/measure/cost_model.h"

#include <algorithm>
#include <map>

#include "espalier/collectives/schedule/expand.h"
#include "tools/common/failure.h"
#include "tools/common/json.h"
#include "tools/common/output.h"

namespace espalier::tools {

CostModel CostModel::read(const std::string& path) {
  const auto refuse = [&path](const std::string& why) {
    bad_input("'" + one_line(path) + "': " + why +
              "; 'espalier measure --format json' writes such a file");
  };
  const std::optional<Json> json = Json::parse(read_file(path));
  const Json* sizes = json ? json->find("sizes") : nullptr;
  if (sizes == nullptr || sizes->items() == nullptr) refuse("no JSON with a list of \"sizes\"");
  std::vector<Sample> samples;
  for (const Json& row : *sizes->items()) {
    const auto number = [&row](const char* name) {
      const Json* value = row.find(name);
      return value == nullptr ? std::nullopt : value->number();
    };
    const std::optional<double> bytes = number("bytes"), seconds = number("one_way_s");
    if (!bytes || !seconds) refuse("a size without the numbers \"bytes\" and \"one_way_s\"");
    samples.push_back({*bytes, *seconds});
  }
  if (samples.size() < 2) refuse("fewer than two sizes");
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    if (i > 0 && !(sample.bytes > samples[i - 1].bytes)) refuse("its sizes do not ascend");
    if (!(sample.bytes >= 0 && sample.seconds > 0)) refuse("a size or time is not positive");
  }
  return CostModel(std::move(samples));
}

CostModel::Line CostModel::line(double bytes) const {
  if (samples_.empty()) return {alpha_, beta_};
  const auto after =
      std::upper_bound(samples_.begin(), samples_.end(), bytes,
                       [](double b, const Sample& sample) { return b < sample.bytes; });
  const auto last = std::clamp<std::ptrdiff_t>(after - samples_.begin(), 1,
                                               static_cast<std::ptrdiff_t>(samples_.size()) - 1);
  const Sample& right = samples_[static_cast<std::size_t>(last)];
  const Sample& left = samples_[static_cast<std::size_t>(last) - 1];
  // Measured times need not grow between two sizes; a longer block never takes less here.
  const double beta = std::max(0.0, (right.seconds - left.seconds) / (right.bytes - left.bytes));
  const double alpha = left.seconds - beta * left.bytes;
  if (alpha >= 0 || bytes <= 0) return {std::max(0.0, alpha), beta};
  return {0, alpha / bytes + beta};
}

double predict(const Programs& programs, const Layout& layout, const CostModel& model) {
  const auto program = [&programs](std::uint32_t node) -> const Program& { return programs[node]; };
  return predict(static_cast<std::uint32_t>(programs.size()), program, layout, model);
}

double predict(std::uint32_t nodes, const std::function<const Program&(std::uint32_t)>& program,
               const Layout& layout, const CostModel& model) {
  const OwnedProgram first = program(0);
  const double block = static_cast<double>(slot_bytes(layout));
  const double ticks = std::max<std::uint32_t>(1, first.send_ticks);
  const std::int64_t steps = count_value(first.counts[first.steps_ref], layout.blocks);
  bool runs = false;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const Program& node_program = program(node);
    for (std::uint32_t i = 0; i < node_program.actions_count; ++i) {
      runs = runs || (node_program.actions[i].has_a && node_program.actions[i].a.segment_count > 1);
    }
  }
  if (!runs) return static_cast<double>(steps) * model.step(block) / ticks;
  std::map<std::int64_t, std::uint32_t> longest;  // by step
  for (std::uint32_t node = 0; node < nodes; ++node) {
    for (const Instance& instance : expand(program(node), layout.blocks)) {
      if (instance.kind != ActionKind::kSend) continue;
      std::uint32_t& segment_count = longest[instance.step];
      segment_count = std::max(segment_count, instance.a.segment_count);
    }
  }
  double seconds = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto found = longest.find(step);
    seconds += model.step(block * (found == longest.end() ? 1 : found->second)) / ticks;
  }
  return seconds;
}

}  // namespace espalier::tools
