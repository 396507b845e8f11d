"""The deepest stack that a linked program can need, from the compiler's call graphs."""
import functools
import pathlib
import re

import toolchain

SCHEMA = pathlib.Path(__file__).parents[2] / "proto/schedule.proto"

# May call itself: nanopb follows the schema's messages inside messages.
NESTING = re.compile(r"^(pb_|decode_|encode_)")
# Other functions that call themselves, and how deep.
RECURSION = [
    (r"ReceiveSearch::search\(", 32),  # once a round of a circulant schedule: collectives/algorithms/circulant/schedule.h:kMaxRounds
]
# Who may call what through a pointer: (callers, targets), both patterns of demangled names; the first row that names
# the caller counts. A function whose address is taken, but which no row has as a target, is an error, and so is a
# call through a pointer by a function that no row names.
INDIRECT = [
    # Calls the callbacks of callback fields that have one; the schema's has not.
    (r"^pb_default_field_callback$", r"^$"),
    # nanopb: streams over memory, and its field callbacks: its own, and the callback of a program's table.
    (r"^pb_write$", r"^buf_write$"),
    (r"^(pb_enc|encode_)", r"^(buf_write|pb_default_field_callback)$|^bool espalier_program_table\("),
    (r"^(pb_read|buf_)", r"^buf_read$"),
    (r"^(pb_|decode_|load_|default_)", r"^(buf_read|pb_default_field_callback)$|^bool espalier_program_table\("),
    # The machine and the bare node's server call their endpoints, the machine the operator's function.
    (r"espalier::(Machine::(poll|take_completions)|bare::Server::)", r"(Serial|Wired)Endpoint::(poll|post_\w+|prepare|now|release)\("),
    (r"espalier::(Machine|FailureDetector|EventLog)::",
     r"(Serial|Wired)Endpoint::(post_\w+|prepare|now|release|node|links|peer|window|eager_bytes)\(|espalier::Endpoint::release_regions\(|"
     r"void espalier::\{anonymous\}::\w+\(void\*, const void\*, const void\*, uint64_t, void\*\)"),
    (r"^void espalier::combine\(", r"void espalier::\{anonymous\}::\w+\(void\*, const void\*, const void\*, uint64_t, void\*\)"),
    # The serial port and its links: the carrier, the clock, and the owner of the links.
    (r"espalier::SerialLinks::(admit|take_\w+|heard|arrived)\(", r"SerialEndpoint::(_ZThn|granted|opened|controlled|broken)"),
    (r"^bool espalier::bare::run_node\(", r"Lan9118::|ByteCarrier::"),
    (r"espalier::(SerialPort|SerialLinks|SerialEndpoint)::", r"NotedCarrier::|Timers::|Caller(Carrier|Clock)::|WiredClock::|SerialEndpoint::broken\(|espalier::Carrier::down\("),
    (r"NotedCarrier::", r"Lan9118::|ByteCarrier::|espalier::Carrier::down\("),
    (r"espalier::ByteCarrier::", r"(Uart1Stream|ByteStream|Cable(<[\w, ]+>)?|ByteWire::Stream)::"),
    # A node in a C firmware: its clocks, and the caller's functions.
    (r"espalier::Wired(Endpoint|Clock)::", r"(WiredClock|CallerClock)::"),
    (r"Caller(Carrier|Clock)::|ByteWire::Stream::", r"^probe_\w+$"),
    # Scans: the distance between partners, by step.
    (r"add_scan_links", r"uint32_t espalier::\{anonymous\}::doubled(_123)?\(uint32_t\)"),
    # Planning without an image goes through the table of algorithms.
    (r"^int main\(\)$|plan\(\)", r"espalier::Status espalier::(\{anonymous\}::)?\w+\(const .*CollectiveParameters&, .*Program&\)"),
    # Slots call the flash, the board's counter, and the board to judge an image; the image check calls the verifier of signatures.
    (r"espalier::Slots::(examine|choose|boot|finish)", r"(EmulatedFlash|PageFlash|CfiFlash|OneTimeCounter)::|bare::.*::accept\("),
    (r"espalier::(Slots::|StartCounter::|whole_flash)", r"(EmulatedFlash|PageFlash|CfiFlash|OneTimeCounter)::"),
    (r"espalier::OneTimeCounter::", r"EmulatedFuses::"),
    (r"espalier::\{anonymous\}::check_|espalier::check_image", r"espalier::\{anonymous\}::verify\("),
    # The vector table; and functions that are never called: the machine never waits, and no object is abstract.
    (r"^$", r"^void (reset|fault|report_fault|__cxa_pure_virtual)\((const uint32_t\*)?\)$|^reset$|(Serial|Wired)Endpoint::wait\("),
]


class Graph:
    """frame: name -> bytes; calls: name -> names; label: name -> demangled; dynamic: names with unbounded frames."""

    def __init__(self, files):
        self.frame, self.calls, self.label, self.dynamic = {}, {}, {}, set()
        for file in files:
            for line in file.read_text().splitlines():
                self.read(line)

    def read(self, line):
        node = re.match(r'^node: \{ title: "([^"]+)" label: "([^"]*)"', line)
        edge = re.match(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', line)
        if node:
            name, parts = bare(node.group(1)), node.group(2).split("\\n")
            size = re.match(r"^(\d+) bytes \((.*)\)$", parts[-1])
            if size:
                # C's global functions have no label. The namespaces of include/espalier/internal/base/limits.h are left out.
                self.label[name] = re.sub(r"\bbuild_[a-z]+(_\d+)+::", "", parts[0]) if len(parts) > 2 else name
                self.frame[name] = max(self.frame.get(name, 0), int(size.group(1)))
                if size.group(2) not in ("static", "dynamic,bounded"):
                    self.dynamic.add(name)
        elif edge:
            self.calls.setdefault(bare(edge.group(1)), set()).add(bare(edge.group(2)))


def bare(title):
    """Static functions are titled file:name."""
    return title.rsplit(":", 1)[-1]


def resolve_indirect(graph, taken, complaints):
    """Replaces calls through pointers by calls of their possible targets."""
    taken = {name for name in taken if name in graph.frame}
    used = set()
    for caller in [name for name, callees in graph.calls.items() if "__indirect_call" in callees]:
        graph.calls[caller].discard("__indirect_call")
        label = graph.label.get(caller, caller)
        row = next((targets for callers, targets in INDIRECT if re.search(callers, label)), None)
        if row is None:
            complaints.append(f"stack: {label} calls through a pointer, and no row of INDIRECT in stack.py names it")
            continue
        targets = {name for name in taken if re.search(row, graph.label[name])}
        used |= targets
        graph.calls[caller] |= targets
    for name in sorted(taken - used):
        if not any(re.search(targets, graph.label[name]) for _, targets in INDIRECT):
            complaints.append(f"stack: the address of {graph.label[name]} is taken, and no row of INDIRECT in stack.py "
                              "says who calls it")


def add_unknown_frames(graph, elf):
    """Frames of functions that came without a call graph: functions of libgcc, by their instructions, and second names."""
    linked = {name: address for name, kind, _, address in toolchain.symbols(elf) if kind in "TtWw"}
    frames = toolchain.disassembly_frames(elf, set(linked) - set(graph.frame))
    for name, (size, callees) in frames.items():
        graph.frame[name], graph.label[name], graph.calls[name] = size, name, callees
    at = {linked[name]: name for name in graph.frame if name in linked}
    for name in sorted(set(linked) - set(graph.frame)):
        if linked[name] in at:
            graph.frame[name], graph.label[name], graph.calls[name] = 0, name, {at[linked[name]]}


def components(graph, root):
    """Strongly connected components of what root reaches, callees first (Tarjan, without recursion)."""
    index, low, on_stack, stack, result = {}, {}, set(), [], []
    work = [(root, iter(sorted(graph.calls.get(root, ()))))]
    index[root] = low[root] = 0
    stack.append(root)
    on_stack.add(root)
    while work:
        name, callees = work[-1]
        for callee in callees:
            if callee not in index:
                index[callee] = low[callee] = len(index)
                stack.append(callee)
                on_stack.add(callee)
                work.append((callee, iter(sorted(graph.calls.get(callee, ())))))
                break
            if callee in on_stack:
                low[name] = min(low[name], index[callee])
        else:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[name])
            if low[name] == index[name]:
                part = set(stack[stack.index(name):])
                del stack[stack.index(name):]
                on_stack -= part
                result.append(part)
    return result


@functools.cache
def message_depth():
    """How deep messages nest in the schema: Program > Action > Place is 3."""
    fields = {name: set(re.findall(r"^\s*(?:repeated\s+)?(\w+)\s+\w+\s*=", body, re.M))
              for name, body in re.findall(r"^message (\w+) \{(.*?)^\}", SCHEMA.read_text(), re.M | re.S)}

    def depth(name, above):
        if name in above:
            raise SystemExit(f"size: message {name} contains itself: nothing bounds the decoder's stack")
        return 1 + max((depth(field, above | {name}) for field in fields[name] if field in fields), default=0)

    return max(depth(name, frozenset()) for name in fields)


def deepest(graph, root, complaints):
    """(bytes, path of (name, times)) of the deepest chain of calls from root. nanopb's functions that call each other count
    as often as the schema nests messages (message_depth()); others as RECURSION says."""
    return all_deepest(graph, root, complaints)[root]


def all_deepest(graph, root, complaints):
    """The same of each function that root reaches, by name."""
    best = {}
    for part in components(graph, root):
        cyclic = len(part) > 1 or any(name in graph.calls.get(name, ()) for name in part)
        if cyclic:
            labels = sorted(graph.label.get(name, name) for name in part)
            known = [times for pattern, times in RECURSION if all(re.search(pattern, label) for label in labels)]
            if not known and not all(NESTING.search(label) for label in labels):
                complaints.append(f"stack: nothing bounds the recursion of {', '.join(labels)}")
        times = (known or [message_depth()])[0] if cyclic else 1
        own = times * sum(graph.frame.get(name, 0) for name in part)
        below = [best[callee] for name in part for callee in graph.calls.get(name, ()) if callee not in part]
        size, path = max(below, default=(0, []))
        name = sorted(part, key=lambda item: -graph.frame.get(item, 0))[0]
        for item in part:
            best[item] = (own + size, [(name, times)] + path)
            if item in graph.dynamic:
                complaints.append(f"stack: the frame of {graph.label[item]} has no bound at compile time")
            if item not in graph.frame:
                complaints.append(f"stack: the frame of {item} is not known")
    return best
