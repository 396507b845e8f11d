#include "planner/make/plan_request.h"

namespace espalier::planner {

std::string Placement::name() const {
  switch (kind) {
    case Kind::kAsNumbered: return "none";
    case Kind::kSnake: return "snake";
    case Kind::kZOrder: return "z-order";
    case Kind::kGiven: return given->name;
    default: return "";
  }
}

std::string text_of(const Fraction& fraction) {
  if (!fraction.is_given()) return "";
  return std::to_string(fraction.above) +
         (fraction.below == 1 ? "" : "/" + std::to_string(fraction.below));
}

std::string run_length_text(const PlanRequest& request) {
  if (request.has_own_run_length) return "own";
  return request.run_length == 0 ? "" : std::to_string(request.run_length);
}

std::string candidate_name(const PlanRequest& request) {
  std::string name = request.algorithm->name;
  if (request.run_length != 0) name += ", run length " + std::to_string(request.run_length);
  if (request.radix != 0) name += ", radix " + std::to_string(request.radix);
  if (request.lambda.is_given()) name += ", lambda " + text_of(request.lambda);
  if (request.ratio.is_given()) name += ", ratio " + text_of(request.ratio);
  if (request.placement.kind != Placement::Kind::kBest) {
    name += ", embedding " + request.placement.name();
  }
  if (request.window != 0) name += ", window " + std::to_string(request.window);
  return name;
}

bool is_chosen(const PlanRequest& request) {
  if (request.algorithm == nullptr) return true;
  if (request.run_length != 0 || request.has_own_run_length) return false;
  // An embedding of groups says how many ranks a group has.
  const bool is_placed = request.placement.kind != Placement::Kind::kBest &&
                         request.placement.kind != Placement::Kind::kAsNumbered;
  return takes(*request.algorithm, "--run-length") && !(request.algorithm->has_groups && is_placed);
}

}  // namespace espalier::planner
