#!/usr/bin/python3
"""Gate: what a source takes from the standard library, it or a header of this tree that it includes asks for by name; and so for the
macros of this tree.

includes.py ROOT     every std:: name of NAMES has its header among the includes of its file and of the tree's headers that
                     this file includes, directly or not; every macro that a header of this tree defines has one of its headers there

One standard library's headers include others that the next release's do not. A header of another library does not count. A macro whose
header is not included is 0 in #if, and takes code away in silence; other sources of the same target may have hidden that.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
NAME = re.compile(r"\bstd::([A-Za-z_0-9]+)")
DEFINITION = re.compile(r"^#[ ]*define[ ]+(ESPALIER_\w+)", re.MULTILINE)
MACRO = re.compile(r"\bESPALIER_\w+")
NAMES = {
    "algorithm": """adjacent_find all_of any_of binary_search clamp copy_if copy_n count count_if equal equal_range fill fill_n find_first_of
        find_if find_if_not for_each generate generate_n includes inplace_merge is_sorted lexicographical_compare lower_bound max max_element merge min
        min_element minmax mismatch next_permutation none_of nth_element partial_sort partition remove_if replace replace_if reverse
        rotate search set_difference set_intersection set_union shuffle sort stable_partition stable_sort transform unique upper_bound""",
    "array": "array",
    "atomic": "atomic atomic_thread_fence atomic_signal_fence atomic_ref memory_order_relaxed memory_order_acquire memory_order_release "
              "memory_order_seq_cst",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero endian has_single_bit popcount",
    "charconv": "from_chars to_chars",
    "cmath": "ceil cos exp fabs floor fma hypot isfinite isinf isnan ldexp llround log log2 lround nextafter pow round signbit sin sqrt",
    "condition_variable": "condition_variable",
    "cstdint": "int8_t int16_t int32_t int64_t intptr_t uint8_t uint16_t uint32_t uint64_t uintptr_t",
    "cstdio": "FILE fclose fflush fopen fprintf fputs fread fwrite printf puts remove rename snprintf sscanf vsnprintf",
    "cstdlib": "_Exit abort atexit atoi atof calloc exit free getenv malloc quick_exit realloc strtod strtol strtoll strtoul strtoull system",
    "cstring": "memchr memcmp memcpy memmove memset strchr strcmp strerror strlen strncmp strrchr strstr",
    "ctime": "clock_gettime gmtime localtime strftime timespec",
    "deque": "deque",
    "exception": "current_exception exception_ptr rethrow_exception set_terminate terminate uncaught_exceptions",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "function greater less ref reference_wrapper",
    "iostream": "cerr cin cout",
    "limits": "numeric_limits",
    "map": "map multimap",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex scoped_lock unique_lock",
    "new": "bad_alloc launder nothrow",
    "numeric": "accumulate exclusive_scan gcd inclusive_scan inner_product iota lcm partial_sum reduce",
    "optional": "make_optional nullopt optional",
    "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64 random_device uniform_int_distribution uniform_real_distribution",
    "set": "multiset set",
    "shared_mutex": "shared_lock shared_mutex",
    "span": "span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "invalid_argument logic_error out_of_range runtime_error",
    "string": "getline stod stoi stol stoll stoul stoull string to_string",
    "string_view": "string_view",
    "system_error": "error_code system_error",
    "thread": "jthread this_thread thread",
    "tuple": "get tie tuple",
    "type_traits": "conditional_t decay_t enable_if_t is_same_v is_trivially_copyable_v is_unsigned_v is_signed_v make_unsigned_t remove_cvref_t",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "utility": "exchange forward make_pair move pair swap",
    "variant": "holds_alternative variant visit",
    "vector": "vector",
}
HEADERS = {}
for header, names in NAMES.items():
    for name in names.split():
        HEADERS.setdefault(name, set()).add(header)
# A name that several headers must define.
HEADERS["get"] |= {"array", "utility", "variant"}
for name, more in {"string_view": "string", "move": "algorithm", "swap": "algorithm", "remove": "algorithm", "getline": "istream",
                   "reduce": "algorithm", "pair": "map", "exception_ptr": "stdexcept", "nothrow": "memory"}.items():
    HEADERS[name].add(more)


class Tree:
    def __init__(self, root):
        self.root, self.known, self.texts, self.own = pathlib.Path(root), {}, {}, {}

    def text(self, file):
        if file not in self.texts:
            self.texts[file] = tree.read(self.root, file)
        return self.texts[file]

    def find(self, name):
        for file in (name, "include/" + name):
            if (self.root / file).is_file():
                return file
        return None  # made by the build

    def included(self, file):
        """Returns the standard and other headers that the file, or the tree's headers that it includes, include."""
        if file not in self.known:
            self.known[file] = set()  # of a file that includes itself
            found = set()
            for own, other in INCLUDE.findall(self.text(file)):
                within = self.find(own) if own else None
                found |= self.included(within) if within else {other or own}
            self.known[file] = found
        return self.known[file]

    def files(self, file):
        """Returns the file and the tree's files that it includes, directly or not."""
        if file not in self.own:
            self.own[file] = {file}  # of a file that includes itself
            for name, _ in INCLUDE.findall(self.text(file)):
                within = self.find(name) if name else None
                self.own[file] = self.own[file] | (self.files(within) if within else set())
        return self.own[file]


def find(root):
    sources = Tree(root)
    definers = {}
    for file in tree.files(root, ".h"):
        for name in DEFINITION.findall(sources.text(file)):
            definers.setdefault(name, set()).add(file)
    for file in tree.files(root, ".cc", ".h"):
        has = set(sources.included(file))
        missing = {name: headers for name, headers in definers.items() if not headers & sources.files(file)}
        for number, line in enumerate(sources.text(file).splitlines(), 1):
            line = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line.split("//")[0])
            for found in NAME.finditer(line):
                headers = HEADERS.get(found[1], has)
                if headers and not headers & has:
                    has |= headers  # one line for each header
                    yield f"{file}:{number}: std::{found[1]} without <{'> or <'.join(sorted(headers))}>"
            for name in MACRO.findall(line):
                if headers := missing.pop(name, None):
                    yield f'{file}:{number}: {name} without "{sorted(headers)[0].removeprefix("include/")}"'


if __name__ == "__main__":
    sys.exit(tree.report(list(find(sys.argv[1])), "include the header"))
