#pragma once
// fattree:k=K,h=H,c=...: a complete K-ary tree of height H with the K^H ranks at its leaves and
// routers above. Paper 002, section 2; "branch" and "level" are its words: the branches of level l
// join level l-1 with level l.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses what follows "fattree:". c=1: every branch has one lane a direction; c=k: exponential,
// K^(l-1) lanes at level l; c=c1,...,cH: as listed, c1 at the leaves. Null and one line in `error`
// if it is wrong.
[[nodiscard]] std::unique_ptr<Topology> parse_fat_tree(std::string_view text, std::string& error);

}  // namespace espalier::topology
