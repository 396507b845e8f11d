#!/usr/bin/env python3
"""Writes the entry points of every collective, from one table: C's, and Fortran's under Open MPI.

generate.py openmpi|mpich c|fortran

MPICH has a form of each for counts of MPI_Count (MPI_Bcast_c), and its Fortran library calls the functions of C. Open MPI's Fortran
functions call PMPI_*, so each of their names is defined here, too: for mpif.h and `use mpi` with all manglings, and for `use mpi_f08`.
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


def functions(library):
    """Yields (name, routine, form, parameters, is_large) of each function of C."""
    for routine, parameters in ROUTINES.items():
        parameters = parameters.split() + ["comm"]
        initial = {"openmpi": "MPIX_", "mpich": "MPI_"}[library]
        forms = (("MPI_" + routine, []), ("MPI_I" + routine.lower(), ["request"]), (initial + routine + "_init", ["info", "request"]))
        for form, (name, more) in zip(FORMS, forms):
            yield name, routine, form, parameters + more, False
            if library == "mpich" and routine != "Barrier":
                yield name + "_c", routine, form, parameters + more, True


def declaration(parameter, is_large):
    return PARAMETERS[parameter][0].format(parameter, count="MPI_Count" if is_large else "int", offset="MPI_Aint" if is_large else "int")


def assignment(parameter, is_large):
    member = PARAMETERS[parameter][1]
    if member is None:
        return ""
    value = f"Numbers::of_offsets({parameter})" if is_large and parameter.endswith("offsets") else parameter
    return f"  arguments.{member} = {value};\n"


def write_c(library):
    print(HEAD + '#include "bridge/mpi_extensions.h"\n#include "bridge/take.h"\n\nusing namespace espalier::bridge;\n\nextern "C" {\n')
    for name, routine, form, parameters, is_large in functions(library):
        print(f"int {name}({', '.join(declaration(p, is_large) for p in parameters)}) {{")
        print("  Arguments arguments;")
        print("".join(assignment(p, is_large) for p in parameters), end="")
        request = "request" if "request" in parameters else "nullptr"
        print("  int result = MPI_SUCCESS;")
        print(f"  if (is_handled(Routine::{constant(routine)}, Form::k{form}, arguments, {request}, result)) return result;")
        print(f"  return P{name}({', '.join(parameters)});\n}}\n")
    print('}  // extern "C"')


def fortran_names(name):
    """All names under which Open MPI's libraries have a function."""
    lower = name.lower()
    prefix, rest = name.split("_", 1)
    base = "ompi" + prefix[3:].lower() + "_" + rest.lower() + "_f"
    return base, [lower, lower + "_", lower + "__", name.upper(), name + "_f", name + "_f08"]


def define(name, parameters, body):
    """Prints the function and its aliases. `body` uses the parameters, and `error`, a pointer."""
    base, aliases = fortran_names(name)
    types = ", ".join(f"{type_name} {parameter}" for parameter, type_name in parameters)
    print(f"void {base}({types}{', ' if types else ''}MPI_Fint* error) {{\n{body}}}")
    for alias in aliases:
        print(f'void {alias}({types}{", " if types else ""}MPI_Fint* error) __attribute__((alias("{base}")));')
    print()


def next_call(name, parameters):
    base, _ = fortran_names(name)
    types = "".join(f"{type_name}, " for _, type_name in parameters)
    given = "".join(f"{parameter}, " for parameter, _ in parameters)
    return f'reinterpret_cast<void (*)({types}MPI_Fint*)>(find_next("{base}"))({given}error);'


FROM_FORTRAN = {"address": "c_address({})", "value": "*{}", "pointer": "{}", "type": "PMPI_Type_f2c(*{})", "op": "PMPI_Op_f2c(*{})",
                "comm": "PMPI_Comm_f2c(*{})", "info": "PMPI_Info_f2c(*{})", "request": "&c_request", "opaque": "{}"}


def write_collective(name, routine, form, parameters):
    kinds = {parameter: PARAMETERS[parameter][2] for parameter in parameters}
    typed = [(p, "void*" if kinds[p] in ("address", "opaque") else "MPI_Fint*") for p in parameters]
    if "opaque" in kinds.values():
        body = f"  count_below(Routine::{constant(routine)}, Form::k{form}, PMPI_Comm_f2c(*comm));\n  {next_call(name, typed)}\n"
        define(name, typed, body)
        return
    call = f"{name}({', '.join(FROM_FORTRAN[kinds[p]].format(p) for p in parameters)})"
    if "request" in parameters:
        body = f"  MPI_Request c_request = MPI_REQUEST_NULL;\n  const int result = {call};\n"
        body += "  if (result == MPI_SUCCESS) *request = PMPI_Request_c2f(c_request);\n"
    else:
        body = f"  const int result = {call};\n"
    define(name, typed, body + "  if (error != nullptr) *error = result;\n")


def fint(names):
    return [(name, "MPI_Fint*") for name in names.split()]


def write_fortran():
    print(HEAD + '#include "bridge/fortran.h"\n#include "bridge/mpi_extensions.h"\n#include "bridge/take.h"\n\n'
          'using namespace espalier::bridge;\n\nextern "C" {\n')
    for name, routine, form, parameters, _ in functions("openmpi"):
        write_collective(name, routine, form, parameters)
    # The others: what precedes and follows the MPI library's own function.
    for name, parameters, before, after in (
            ("MPI_Init", [], "", "after_init(error);"),
            ("MPI_Init_thread", fint("required provided"), "", "after_init(error);"),
            ("MPI_Finalize", [], "before_finalize();", ""),
            ("MPI_Comm_free", fint("comm"), "before_comm_free(*comm);", ""),
            ("MPI_Comm_disconnect", fint("comm"), "before_comm_free(*comm);", ""),
            ("MPI_Op_create", [("function", "void*")] + fint("commutes op"), "", "after_op_create(function, *commutes, *op, error);"),
            ("MPI_Op_free", fint("op"), "before_op_free(*op);", ""),
            ("MPI_Type_free", fint("type"), "if (is_type_freed_later(type, error)) return;", ""),
            ("MPI_Start", fint("request"), "if (is_started(request, error)) return;", ""),
            ("MPI_Wait", fint("request status"), "wait_for(1, request);", ""),
            ("MPI_Waitall", fint("count requests statuses"), "wait_for(*count, requests);", ""),
            ("MPI_Test", fint("request flag status"), "advance(1, request);", ""),
            ("MPI_Testall", fint("count requests flag statuses"), "advance(*count, requests);", ""),
            ("MPI_Testany", fint("count requests index flag status"), "advance(*count, requests);", ""),
            ("MPI_Testsome", fint("count requests complete indices statuses"), "advance(*count, requests);", ""),
            ("MPI_Request_get_status", fint("request flag status"), "advance(1, request);", ""),
            ("MPI_Request_free", fint("request"), "if (is_free_refused(*request, error)) return;", ""),
            ("MPI_Cancel", fint("request"), "if (is_cancel_refused(*request, error)) return;", "")):
        define(name, parameters, "".join(f"  {line}\n" for line in (before, next_call(name, parameters), after) if line))
    # Loops over the MPI library's tests, so that it makes the statuses.
    testany = next_call("MPI_Testany", fint("count requests index flag status")).replace("flag,", "&flag,")
    waitany = fint("count requests index status")
    define("MPI_Waitany", waitany,
           f"  if (!has_ours_among(*count, requests)) {{\n    {next_call('MPI_Waitany', waitany)}\n    return;\n  }}\n"
           f"  MPI_Fint flag = 0;\n  do {{\n    pause_for(*count, requests, flag);\n    {testany}\n"
           "  } while (is_unfinished(flag, error));\n")
    testsome = next_call("MPI_Testsome", fint("count requests complete indices statuses"))
    waitsome = fint("count requests complete indices statuses")
    define("MPI_Waitsome", waitsome,
           f"  if (!has_ours_among(*count, requests)) {{\n    {next_call('MPI_Waitsome', waitsome)}\n    return;\n  }}\n"
           f"  *complete = 0;\n  do {{\n    pause_for(*count, requests, *complete);\n    {testsome}\n"
           "  } while (is_unfinished(*complete, error));\n")
    define("MPI_Startall", fint("count requests"),
           "  for (MPI_Fint i = 0; i < *count; ++i) {\n    MPI_Request request = PMPI_Request_f2c(requests[i]);\n"
           "    const int result = MPI_Start(&request);\n    if (error != nullptr) *error = result;\n"
           "    if (result != MPI_SUCCESS) return;\n  }\n"
           "  if (error != nullptr && *count <= 0) *error = MPI_SUCCESS;\n")
    print('}  // extern "C"')


def main(library, language):
    if language == "c":
        write_c(library)
    else:
        write_fortran()


if __name__ == "__main__":
    main(*sys.argv[1:])
