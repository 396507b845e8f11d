#!/usr/bin/python3
"""family.py ESPALIER COLLECTIVE ALGORITHM FILE [RUN-LENGTH]: searches embeddings for all meshes and writes them to FILE.

Meshes of R x C ranks, R and C from 1 to 16, from the corner. The file is an EmbeddingFamily (proto/embedding.proto). Meshes whose
embeddings the file has already are not searched again. Meshes for which none is found are left out, and named on stdout."""
import pathlib
import re
import subprocess
import sys
import tempfile

MOST = 16
REVERSED = {"broadcast": "reduce", "allreduce": "allreduce"}  # proto/embedding.proto:EmbeddingFamily.reversed
NODES_A_LINE = 48


def read(path):
    """The rows of the file: (rows, columns) -> text of the nodes."""
    text = path.read_text() if path.exists() else ""
    found = re.findall(r"mesh \{ rows: (\d+) columns: (\d+) nodes:((?:\s*\"[0-9a-f]*\")*) \}", text)
    return {(int(r), int(c)): "".join(re.findall(r"[0-9a-f]+", nodes)) for r, c, nodes in found}


def search(program, words, rows, columns):
    """The nodes, as two hexadecimal digits each: row, column. Nothing if none is found."""
    with tempfile.TemporaryDirectory() as directory:
        output = pathlib.Path(directory) / "embedding.textproto"
        done = subprocess.run([program, *words, "--topology", f"mesh:{rows}x{columns}", "-o", output], capture_output=True, text=True)
        if done.returncode == 1:
            print(f"{rows}x{columns}: {done.stderr.strip()}", flush=True)
            return None
        if done.returncode != 0:
            sys.exit(done.stderr)
        listed = re.search(r"node: \[(.*?)\]", output.read_text(), re.S).group(1)
    return "".join(f"{int(node) // columns:x}{int(node) % columns:x}" for node in listed.split(","))


def write(path, program_words, collective, algorithm, run_length, found):
    head = ["# proto-file: proto/embedding.proto", "# proto-message: EmbeddingFamily", f'collective: "{collective}"',
            f'algorithm: "{algorithm}"']
    if run_length:
        head.append(f"run_length: {run_length}")
    head.append(f'reversed: "{REVERSED[collective]}"')
    head.append(f'found_by: "espalier {" ".join(program_words)} --topology mesh:RxC"')
    lines = []
    for (rows, columns), nodes in sorted(found.items()):
        step = 2 * NODES_A_LINE
        parts = [f'"{nodes[at:at + step]}"' for at in range(0, len(nodes), step)]
        lines.append(f"mesh {{ rows: {rows} columns: {columns} nodes: " + "\n  ".join(parts) + " }")
    path.write_text("\n".join(head + lines) + "\n")


def main():
    program, collective, algorithm, path = sys.argv[1:5]
    run_length = sys.argv[5] if len(sys.argv) > 5 else ""
    path = pathlib.Path(path)
    words = ["embed", "--collective", collective, "--algorithm", algorithm, "--root", "0", "--switching", "cut-through", "--seed", "1"]
    if run_length:
        words += ["--run-length", run_length]
    found = read(path)
    for rows in range(1, MOST + 1):
        for columns in range(1, MOST + 1):
            served = collective == REVERSED[collective] and rows > columns  # by the transposed mesh
            if rows * columns < 2 or served or (rows, columns) in found:
                continue
            nodes = search(program, words, rows, columns)
            if nodes:
                found[rows, columns] = nodes
        write(path, words, collective, algorithm, run_length, found)


if __name__ == "__main__":
    main()
