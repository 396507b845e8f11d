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

// The features of a build. Six configurations exist; a build names one, and CI builds each
// (tests/boards/configurations_test.py prints the table). All code of an executable must have the
// same configuration.
#define ESPALIER_HOST 1           // all features
#define ESPALIER_SMALL_BOARD 2    // none
#define ESPALIER_ROTATED_BOARD 3  // rotated scratch
#define ESPALIER_KEYED_BOARD 4    // link keys
#define ESPALIER_SPARES_BOARD 5   // spares
#define ESPALIER_FULL_BOARD 6     // all that a board can have
#ifndef ESPALIER_CONFIGURATION
#if __STDC_HOSTED__
#define ESPALIER_CONFIGURATION ESPALIER_HOST
#else
#define ESPALIER_CONFIGURATION ESPALIER_SMALL_BOARD
#endif
#endif
#if defined(ESPALIER_ROTATED_SCRATCH) || defined(ESPALIER_SERIAL_MAC) || \
    defined(ESPALIER_SPARES) || defined(ESPALIER_UPDATES)
#error "a feature alone; expected -DESPALIER_CONFIGURATION, 1 to 6, as in base/limits.h"
#elif ESPALIER_CONFIGURATION < ESPALIER_HOST || ESPALIER_CONFIGURATION > ESPALIER_FULL_BOARD
#error "no such ESPALIER_CONFIGURATION; expected 1 to 6, as in base/limits.h"
#endif
// Host only. Machines support MachineConfig::no_data, which simulators use; a collective may have
// another count for each rank (element_counts.h); machines issue a short collective that is
// prepared as a whole (Machine::prepare); machines know of the program that calls them
// (MachineConfig::before_release, quiet_ns).
#if ESPALIER_CONFIGURATION == ESPALIER_HOST
#define ESPALIER_WITHOUT_DATA 1
#define ESPALIER_UNEQUAL_COUNTS 1
#define ESPALIER_SHORT_COLLECTIVES 1
#define ESPALIER_PROGRAM_HOOKS 1
#else
#define ESPALIER_WITHOUT_DATA 0
#define ESPALIER_UNEQUAL_COUNTS 0
#define ESPALIER_SHORT_COLLECTIVES 0
#define ESPALIER_PROGRAM_HOOKS 0
#endif
// 1: nodes run programs with rotated scratch (collectives/schedule/program.h). 0: they refuse them.
#if ESPALIER_CONFIGURATION == ESPALIER_HOST || ESPALIER_CONFIGURATION == ESPALIER_FULL_BOARD || \
    ESPALIER_CONFIGURATION == ESPALIER_ROTATED_BOARD
#define ESPALIER_ROTATED_SCRATCH 1
#else
#define ESPALIER_ROTATED_SCRATCH 0
#endif
// 1: framed links may have a key, which authenticates their frames (hal/serial, SerialConfig::key).
#if ESPALIER_CONFIGURATION == ESPALIER_HOST || ESPALIER_CONFIGURATION == ESPALIER_FULL_BOARD || \
    ESPALIER_CONFIGURATION == ESPALIER_KEYED_BOARD
#define ESPALIER_SERIAL_MAC 1
#else
#define ESPALIER_SERIAL_MAC 0
#endif
// 1: nodes can go on after the loss of a link or a node (docs/spares.md).
#if ESPALIER_CONFIGURATION == ESPALIER_HOST || ESPALIER_CONFIGURATION == ESPALIER_FULL_BOARD || \
    ESPALIER_CONFIGURATION == ESPALIER_SPARES_BOARD
#define ESPALIER_SPARES 1
#else
#define ESPALIER_SPARES 0
#endif
// 1: nodes take part in updates of the whole cluster over its fabric (docs/updates.md).
#if ESPALIER_CONFIGURATION == ESPALIER_HOST || ESPALIER_CONFIGURATION == ESPALIER_FULL_BOARD
#define ESPALIER_UPDATES 1
#else
#define ESPALIER_UPDATES 0
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
