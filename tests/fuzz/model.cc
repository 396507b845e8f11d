// Fuzz target: any text is refused with one reason, or is a model that is the same after writing
// and whose times have their bounds for all sizes.

#include "collectives/predict/model.h"

#include <string>

#include "espalier/collectives/schedule/program.h"
#include "espalier/topology/topology.h"
#include "tests/fuzz/expect.h"

namespace espalier::fuzz {
namespace {

void examine(const predict::Model& model) {
  const std::string text = predict::model_text(model);
  const auto again = predict::parse_model(text, "again");
  expect(again.has_value(), "what is written can be read");
  expect(predict::model_text(*again) == text && again->digest() == model.digest(),
         "what is written is the same model");
  expect(model.digest() != 0, "a model has a digest");
  for (const predict::LinkCost& cost : model.links) {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4096},
                                      std::uint64_t{1} << 32, kMaxMessageBytes}) {
      expect(cost.send_time(bytes) <= predict::kMaxPrediction &&
                 cost.latency(bytes) <= predict::kMaxPrediction,
             "a time is at most the greatest");
    }
  }
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1} << 20, kMaxMessageBytes}) {
    (void)model.overhead_time(bytes);
    (void)model.combine_time(Operator{}, bytes);
  }
  for (const predict::Tuning& tuning : model.tunings) {
    expect(model.tuning(tuning.topology, tuning.collective) == &tuning, "a tuning is found");
  }
}

}  // namespace

void run(Input& input) {
  const auto model = predict::parse_model(input.text(), "input");
  if (model) {
    examine(*model);
  } else {
    expect(model.error().message.starts_with("model 'input'") &&
               model.error().message.find("expected ") != std::string::npos,
           "an error says where it is and what is expected");
  }
}

}  // namespace espalier::fuzz
