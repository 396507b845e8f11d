#pragma once
// Compile-time limits of one node, which determine its static memory. A board overrides any of them
// with -D. The limits of a program's tables (actions, indices, peers, ...): proto/schedule.options.

#include <cstdint>

#ifndef ESPALIER_MAX_LINKS
#define ESPALIER_MAX_LINKS 128  // links of a node, over all its programs; at most 128
#endif
#ifndef ESPALIER_MAX_WINDOW
#define ESPALIER_MAX_WINDOW 16  // steps in flight, at most 64; larger windows are reduced to it
#endif
#ifndef ESPALIER_MAX_PROGRAMS
#define ESPALIER_MAX_PROGRAMS 16  // programs of an image
#endif
#ifndef ESPALIER_MAX_SELECTIONS
// Selections of an image (collectives/schedule/selection.h). 0: none, and no code for them. All
// code of an executable must have the same value.
#if __STDC_HOSTED__
#define ESPALIER_MAX_SELECTIONS 4
#else
#define ESPALIER_MAX_SELECTIONS 0
#endif
#endif
#ifndef ESPALIER_MAX_CURSORS
// Indices with a div, mod or terms that the actions of one phase may read without division. Further
// indices are computed by their formula, with divisions.
#define ESPALIER_MAX_CURSORS 64
#endif
#ifndef ESPALIER_COMPACT_OPERATORS
// 1: one loop for all operators and types. 0: one loop per operator and type, 3 KiB larger and up
// to eight times faster.
#ifdef __OPTIMIZE_SIZE__
#define ESPALIER_COMPACT_OPERATORS 1
#else
#define ESPALIER_COMPACT_OPERATORS 0
#endif
#endif
#ifndef ESPALIER_WITHOUT_DATA
// 1: machines support MachineConfig::no_data, which only simulators use.
#define ESPALIER_WITHOUT_DATA __STDC_HOSTED__
#endif
#ifndef ESPALIER_UNEQUAL_COUNTS
// 1: a collective may have another count for each rank (element_counts.h). All
// code of an executable must have the same value.
#define ESPALIER_UNEQUAL_COUNTS __STDC_HOSTED__
#endif
#ifndef ESPALIER_ROTATED_SCRATCH
// 1: nodes run programs with rotated scratch (collectives/schedule/program.h). 0: they refuse them.
// All code of an executable must have the same value.
#define ESPALIER_ROTATED_SCRATCH __STDC_HOSTED__
#endif
#ifndef ESPALIER_SERIAL_MAC
// 1: framed links may have a key, which authenticates their frames (hal/serial, SerialConfig::key).
// All code of an executable must have the same value.
#define ESPALIER_SERIAL_MAC __STDC_HOSTED__
#endif
#ifndef ESPALIER_SPARES
// 1: nodes can go on after the loss of a link or a node (docs/spares.md). All code of an executable
// must have the same value.
#define ESPALIER_SPARES __STDC_HOSTED__
#endif
#ifndef ESPALIER_SHORT_COLLECTIVES
// 1: machines issue a short collective that is prepared as a whole (Machine::prepare). All code of
// an executable must have the same value.
#define ESPALIER_SHORT_COLLECTIVES __STDC_HOSTED__
#endif
#ifndef ESPALIER_PROGRAM_HOOKS
// 1: machines know of the program that calls them (MachineConfig::before_release, quiet_ns). All
// code of an executable must have the same value.
#define ESPALIER_PROGRAM_HOOKS __STDC_HOSTED__
#endif
#ifndef ESPALIER_UPDATES
// 1: nodes take part in updates of the whole cluster over its fabric (docs/updates.md). All code of
// an executable must have the same value.
#define ESPALIER_UPDATES __STDC_HOSTED__
#endif

// The public classes whose layout depends on a macro above are in one of these inline namespaces,
// whose names contain the values: objects that were compiled with different values do not link.
// Therefore each value is a plain number.
#define ESPALIER_JOINED(a, b, c, d) a##_##b##_##c##_##d
#define ESPALIER_JOIN(a, b, c, d) ESPALIER_JOINED(a, b, c, d)
#define ESPALIER_LINKS_BUILD ESPALIER_JOIN(build, links, ESPALIER_MAX_LINKS, 0)
#define ESPALIER_WINDOW_BUILD ESPALIER_JOIN(build, window, ESPALIER_MAX_WINDOW, 0)
#define ESPALIER_PROGRAM_BUILD \
  ESPALIER_JOIN(build, program, ESPALIER_ROTATED_SCRATCH, ESPALIER_UNEQUAL_COUNTS)
#define ESPALIER_MACHINE_BUILD                                                          \
  ESPALIER_JOIN(ESPALIER_JOIN(build, machine, ESPALIER_MAX_LINKS, ESPALIER_MAX_WINDOW), \
                ESPALIER_JOIN(ESPALIER_MAX_CURSORS, ESPALIER_ROTATED_SCRATCH,           \
                              ESPALIER_UNEQUAL_COUNTS, ESPALIER_SPARES),                \
                ESPALIER_SHORT_COLLECTIVES,                                             \
                ESPALIER_JOIN(ESPALIER_WITHOUT_DATA, ESPALIER_PROGRAM_HOOKS, 0, 0))
#define ESPALIER_SERIAL_BUILD                                                          \
  ESPALIER_JOIN(ESPALIER_JOIN(build, serial, ESPALIER_MAX_LINKS, ESPALIER_MAX_WINDOW), \
                ESPALIER_SERIAL_MAC, ESPALIER_SPARES, 0)

namespace espalier {
// The limits above, as constants: kMaxLinks, kMaxWindow, kMaxPrograms, kMaxSelections and
// kMaxCursors.
inline constexpr std::uint32_t kMaxLinks = ESPALIER_MAX_LINKS;
inline constexpr std::uint32_t kMaxFieldWindow = 65535;  // that a program or endpoint may state
inline constexpr std::uint32_t kMaxWindow = ESPALIER_MAX_WINDOW;
inline constexpr std::uint32_t kMaxPrograms = ESPALIER_MAX_PROGRAMS;
inline constexpr std::uint32_t kMaxSelections = ESPALIER_MAX_SELECTIONS;
inline constexpr std::uint32_t kMaxCursors = ESPALIER_MAX_CURSORS;
static_assert(kMaxLinks <= 128 && kMaxWindow <= 64);
}  // namespace espalier
