#pragma once
// fattree:k=K,h=H,c=...: a complete K-ary tree of height H, with K^H ranks at the leaves and
// routers above. fattree:k=K1x...xKH,c=...: routers of level l have Kl children, and there are
// K1 * ... * KH ranks. "Branch" and "level" are used as in [DD96], section 2: the branches of level
// l connect level l-1 with level l.

#include <memory>
#include <string>
#include <string_view>

#include "espalier/topology/topology.h"

namespace espalier::topology {

// Parses the text after "fattree:". c=1: every branch has one lane per direction; c=k: exponential,
// at level l as many lanes as there are ranks below the branch, K^(l-1); c=c1,...,cH: as listed,
// beginning with c1 at the leaves. A list of arities also begins at the leaves; after it, ",h=H"
// and ",c=..." may be absent, and c is 1 then.
[[nodiscard]] Result<std::unique_ptr<Topology>> parse_fat_tree(std::string_view text);

}  // namespace espalier::topology
