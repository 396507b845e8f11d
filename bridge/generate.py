#!/usr/bin/env python3
"""Writes the entry points of every collective, from one table: C's, and Fortran's under Open MPI and MPICH.

generate.py openmpi|mpich|abi c VERSION      of the MPI library
generate.py openmpi|mpich fortran VERSION

MPICH, Open MPI 6 and the standard's ABI have a form of each for counts of MPI_Count (MPI_Bcast_c). A Fortran function that calls PMPI_* has to be
defined here: all of Open MPI's, with the manglings of mpif.h and `use mpi`, and those of MPICH's module mpi_f08 that have no buffer.
"""

import sys

# Parameters: C's type, the member of Arguments, and what Fortran passes.
PARAMETERS = {
    "send": ("const void* {}", "send", "address"),
    "receive": ("void* {}", "receive", "address"),
    "send_count": ("{count} {}", "send_count", "value"),
    "receive_count": ("{count} {}", "receive_count", "value"),
    "send_counts": ("const {count}* {}", "send_counts", "pointer"),
    "receive_counts": ("const {count}* {}", "receive_counts", "pointer"),
    "send_offsets": ("const {offset}* {}", "send_offsets", "pointer"),
    "receive_offsets": ("const {offset}* {}", "receive_offsets", "pointer"),
    "send_type": ("MPI_Datatype {}", "send_type", "type"),
    "receive_type": ("MPI_Datatype {}", "receive_type", "type"),
    "op": ("MPI_Op {}", "op", "op"),
    "root": ("int {}", "root", "value"),
    "comm": ("MPI_Comm {}", "comm", "comm"),
    # Only of routines that the MPI library takes.
    "send_displacements": ("const MPI_Aint* {}", None, "opaque"),
    "receive_displacements": ("const MPI_Aint* {}", None, "opaque"),
    "send_types": ("const MPI_Datatype* {}", None, "opaque"),
    "receive_types": ("const MPI_Datatype* {}", None, "opaque"),
    "info": ("MPI_Info {}", None, "info"),
    "request": ("MPI_Request* {}", None, "request"),
}

ONE = "send send_count send_type receive receive_count receive_type"
REDUCTION = "send receive receive_count receive_type op"
EACH_RECEIVED = "send send_count send_type receive receive_counts receive_offsets receive_type"
EACH_BOTH = "send send_counts send_offsets send_type receive receive_counts receive_offsets receive_type"
TYPES_BOTH = "send send_counts send_offsets send_types receive receive_counts receive_offsets receive_types"
ROUTINES = {
    "Barrier": "",
    "Bcast": "receive receive_count receive_type root",
    "Reduce": REDUCTION + " root",
    "Allreduce": REDUCTION,
    "Scan": REDUCTION,
    "Exscan": REDUCTION,
    "Scatter": ONE + " root",
    "Scatterv": "send send_counts send_offsets send_type receive receive_count receive_type root",
    "Gather": ONE + " root",
    "Gatherv": EACH_RECEIVED + " root",
    "Allgather": ONE,
    "Allgatherv": EACH_RECEIVED,
    "Reduce_scatter_block": REDUCTION,
    "Reduce_scatter": "send receive receive_counts receive_type op",
    "Alltoall": ONE,
    "Alltoallv": EACH_BOTH,
    "Alltoallw": TYPES_BOTH,
    "Neighbor_allgather": ONE,
    "Neighbor_allgatherv": EACH_RECEIVED,
    "Neighbor_alltoall": ONE,
    "Neighbor_alltoallv": EACH_BOTH,
    "Neighbor_alltoallw": TYPES_BOTH.replace("offsets", "displacements"),
}
FORMS = ("Blocking", "Nonblocking", "Persistent")
HEAD = "// Written by bridge/generate.py: do not edit.\n"


def constant(routine):
    return "k" + "".join(part.capitalize() for part in routine.split("_"))


def functions(library, version):
    """Yields (name, routine, form, parameters, is_large) of each function of C."""
    for routine, parameters in ROUTINES.items():
        parameters = parameters.split() + ["comm"]
        # Open MPI 4.1 has the persistent collectives as an extension.
        major = int(version.split(".")[0])
        initial = "MPIX_" if library == "openmpi" and major < 5 else "MPI_"
        forms = (("MPI_" + routine, []), ("MPI_I" + routine.lower(), ["request"]), (initial + routine + "_init", ["info", "request"]))
        for form, (name, more) in zip(FORMS, forms):
            yield name, routine, form, parameters + more, False
            if (library != "openmpi" or major >= 6) and routine != "Barrier":
                yield name + "_c", routine, form, parameters + more, True


def declaration(parameter, is_large):
    return PARAMETERS[parameter][0].format(parameter, count="MPI_Count" if is_large else "int", offset="MPI_Aint" if is_large else "int")


def assignment(parameter, is_large):
    member = PARAMETERS[parameter][1]
    if member is None:
        return ""
    value = f"Numbers::of_offsets({parameter})" if is_large and parameter.endswith("offsets") else parameter
    return f"  arguments.{member} = {value};\n"


def write_c(library, version):
    print(HEAD + '#include "bridge/mpi_extensions.h"\n#include "bridge/take.h"\n\nusing namespace espalier::bridge;\n\nextern "C" {\n')
    for name, routine, form, parameters, is_large in functions(library, version):
        print(f"int {name}({', '.join(declaration(p, is_large) for p in parameters)}) {{")
        print("  Arguments arguments;")
        print("".join(assignment(p, is_large) for p in parameters), end="")
        request = "request" if "request" in parameters else "nullptr"
        print("  int result = MPI_SUCCESS;")
        print(f"  if (is_handled(Routine::{constant(routine)}, Form::k{form}, arguments, {request}, result)) return result;")
        print(f"  return P{name}({', '.join(parameters)});\n}}\n")
    print('}  // extern "C"')


# Functions that Open MPI's module mpi_f08 calls under a name of PMPI.
F08_CALLS_BELOW = ("MPI_Op_create", "MPI_Request_get_status", "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Waitall",
                   "MPI_Cart_create", "MPI_Cart_sub", "MPI_Dist_graph_create", "MPI_Dist_graph_create_adjacent", "MPI_Graph_create", "MPI_Intercomm_merge")


def fortran_names(name, is_f08):
    """The names under which the libraries have a function: the first, and others for the same. is_f08: that of module mpi_f08 alone."""
    lower = name.lower()
    if is_f08:
        return lower + "_f08_", []
    prefix, rest = lower.split("_", 1)
    return f"o{prefix}_{rest}_f", [lower, lower + "_", lower + "__", name.upper(), name + "_f", name + "_f08"]


def define(name, parameters, body, is_f08):
    """Prints the function and its aliases. `body` uses the parameters, and `error`, a pointer."""
    base, aliases = fortran_names(name, is_f08)
    types = "".join(f"{type_name} {parameter}, " for parameter, type_name in parameters)
    print(f"void {base}({types}MPI_Fint* error) {{\n{body}}}")
    for alias in aliases:
        print(f'void {alias}({types}MPI_Fint* error) __attribute__((alias("{base}")));')
    print()


def next_call(name, parameters, is_f08):
    base, _ = fortran_names(name, is_f08)
    types = "".join(f"{type_name}, " for _, type_name in parameters)
    given = "".join(f"{parameter}, " for parameter, _ in parameters)
    return f'reinterpret_cast<void (*)({types}MPI_Fint*)>(find_next("{base}"))({given}error);'


FROM_FORTRAN = {"address": "c_address({})", "value": "*{}", "pointer": "{}", "type": "MPI_Type_f2c(*{})", "op": "MPI_Op_f2c(*{})",
                "comm": "MPI_Comm_f2c(*{})", "info": "MPI_Info_f2c(*{})", "request": "&c_request", "opaque": "{}"}


def write_collective(name, routine, form, parameters, is_f08):
    kinds = {parameter: PARAMETERS[parameter][2] for parameter in parameters}
    typed = [(p, "void*" if kinds[p] in ("address", "opaque") else "MPI_Fint*") for p in parameters]
    if "opaque" in kinds.values():
        body = f"  count_below(Routine::{constant(routine)}, Form::k{form}, MPI_Comm_f2c(*comm));\n  {next_call(name, typed, is_f08)}\n"
        define(name, typed, body, is_f08)
        return
    call = f"{name}({', '.join(FROM_FORTRAN[kinds[p]].format(p) for p in parameters)})"
    if "request" in parameters:
        body = f"  MPI_Request c_request = MPI_REQUEST_NULL;\n  const int result = {call};\n"
        body += "  if (result == MPI_SUCCESS) *request = MPI_Request_c2f(c_request);\n"
    else:
        body = f"  const int result = {call};\n"
    define(name, typed, body + "  if (error != nullptr) *error = result;\n", is_f08)


def fint(names):
    return [(name, "MPI_Fint*") for name in names.split()]


# The other functions: what precedes and follows the MPI library's own.
OTHERS = {
    "MPI_Init": ([], "", "after_init(error);"),
    "MPI_Init_thread": (fint("required provided"), "", "after_init(error);"),
    "MPI_Finalize": ([], "before_finalize();", ""),
    "MPI_Comm_free": (fint("comm"), "before_comm_free(*comm);", ""),
    "MPI_Comm_disconnect": (fint("comm"), "before_comm_free(*comm);", ""),
    "MPI_Op_create": ([("function", "void*")] + fint("commutes op"), "", "after_op_create(function, *commutes, *op, error);"),
    "MPI_Op_free": (fint("op"), "before_op_free(*op);", ""),
    "MPI_Type_free": (fint("type"), "if (is_type_freed_later(type, error)) return;", ""),
    "MPI_Start": (fint("request"), "if (is_started(request, error)) return;", ""),
    "MPI_Wait": (fint("request status"), "wait_for(1, request);", ""),
    "MPI_Waitall": (fint("count requests statuses"), "wait_for(*count, requests);", ""),
    "MPI_Test": (fint("request flag status"), "advance(1, request);", ""),
    "MPI_Testall": (fint("count requests flag statuses"), "advance(*count, requests);", ""),
    "MPI_Testany": (fint("count requests index flag status"), "advance(*count, requests);", ""),
    "MPI_Testsome": (fint("count requests complete indices statuses"), "advance(*count, requests);", ""),
    "MPI_Request_get_status": (fint("request flag status"), "advance(1, request);", ""),
    "MPI_Request_free": (fint("request"), "if (is_free_refused(*request, error)) return;", ""),
    "MPI_Cancel": (fint("request"), "if (is_cancel_refused(*request, error)) return;", ""),
}
# Functions that make a communicator, which is their last parameter. Those that do not wait for other processes are not among them:
# state.h:attached_at_last().
MAKERS = {
    "MPI_Comm_dup": "comm", "MPI_Comm_dup_with_info": "comm info", "MPI_Comm_split": "comm color key",
    "MPI_Comm_split_type": "comm type key info", "MPI_Comm_create": "comm group", "MPI_Comm_create_group": "comm group tag",
    "MPI_Intercomm_merge": "comm high", "MPI_Cart_create": "comm dimensions sizes periods reorder", "MPI_Cart_sub": "comm remain",
    "MPI_Graph_create": "comm nodes index edges reorder",
    "MPI_Dist_graph_create": "comm count sources degrees destinations weights info reorder",
    "MPI_Dist_graph_create_adjacent": "comm indegree sources in_weights outdegree destinations out_weights info reorder"}
OTHERS |= {name: (fint(parameters + " made"), "MPI_Fint own_error = 0;\n  if (error == nullptr) error = &own_error;",
                  "after_comm_made(*made, error);") for name, parameters in MAKERS.items()}


def write_other(name, is_f08):
    parameters, before, after = OTHERS[name]
    lines = (before, next_call(name, parameters, is_f08), after)
    define(name, parameters, "".join(f"  {line}\n" for line in lines if line), is_f08)


def write_loop(name, test, parameters, flag, is_f08):
    """A wait for some of several: a loop over the MPI library's tests, so that it makes the statuses."""
    tested = OTHERS[test][0]
    call = next_call(test, tested, is_f08)
    local = ""
    if flag not in dict(parameters):
        local = f"  MPI_Fint {flag} = 0;\n"
        call = call.replace(f", {flag},", f", &{flag},")
    else:
        local = f"  *{flag} = 0;\n"
        flag = "*" + flag
    define(name, parameters,
           f"  if (!has_ours_among(*count, requests)) {{\n    {next_call(name, parameters, is_f08)}\n    return;\n  }}\n{local}"
           f"  bool is_first = true;\n  do {{\n    pause_for(*count, requests, is_first);\n    is_first = false;\n    {call}\n"
           f"  }} while (is_unfinished({flag}, error));\n", is_f08)


def write_fortran(library, version):
    print(HEAD + '#include "bridge/fortran.h"\n#include "bridge/mpi_extensions.h"\n#include "bridge/take.h"\n\n'
          'using namespace espalier::bridge;\n\nextern "C" {\n')
    is_f08 = library == "mpich"
    for name, routine, form, parameters, is_large in functions(library, version):
        if not is_large and (not is_f08 or routine == "Barrier"):
            write_collective(name, routine, form, parameters, is_f08)
    for name in OTHERS:
        write_other(name, is_f08)
        if not is_f08 and name in F08_CALLS_BELOW:
            write_other(name, True)
    write_loop("MPI_Waitany", "MPI_Testany", fint("count requests index status"), "flag", is_f08)
    write_loop("MPI_Waitsome", "MPI_Testsome", fint("count requests complete indices statuses"), "complete", is_f08)
    define("MPI_Startall", fint("count requests"),
           "  for (MPI_Fint i = 0; i < *count; ++i) {\n    MPI_Request request = MPI_Request_f2c(requests[i]);\n"
           "    const int result = MPI_Start(&request);\n    if (error != nullptr) *error = result;\n"
           "    if (result != MPI_SUCCESS) return;\n  }\n"
           "  if (error != nullptr && *count <= 0) *error = MPI_SUCCESS;\n", is_f08)
    print('}  // extern "C"')


def main(library, language, version):
    if language == "c":
        write_c(library, version)
    else:
        write_fortran(library, version)


if __name__ == "__main__":
    main(*sys.argv[1:])
