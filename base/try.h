#pragma once
// Passing errors on, in functions that return a Result. Host only.

#include <utility>

#include "espalier/base/result.h"

// Returns the error of a Result, if it is one.
#define ESPALIER_TRY(...) \
  if (auto tried = (__VA_ARGS__); !tried) return ::espalier::fail(std::move(tried).error())

// The same; otherwise initializes or assigns `target` with the value.
#define ESPALIER_TRY_TO(target, ...)                                      \
  auto ESPALIER_TRIED(__LINE__) = (__VA_ARGS__);                          \
  if (!ESPALIER_TRIED(__LINE__)) {                                        \
    return ::espalier::fail(std::move(ESPALIER_TRIED(__LINE__)).error()); \
  }                                                                       \
  target = *std::move(ESPALIER_TRIED(__LINE__))
#define ESPALIER_TRIED(line) ESPALIER_TRIED_AT(line)
#define ESPALIER_TRIED_AT(line) tried_##line
