#pragma once
// How a command reports failure: it throws a Failure; run_program() in tools/commands/program.cc
// catches it.

#include "planner/failure.h"

namespace espalier::tools {

using planner::bad_input;
using planner::Failure;
using planner::kBadInput;
using planner::kNegative;
using planner::negative;
using planner::or_bad_input;

}  // namespace espalier::tools
