"""What programs that write a page of docs/results from a test's output have in common."""
import sys


def main(page, writer):
    """Prints page(PROGRAM) for the arguments PROGRAM; for --check PROGRAM PAGE ends with status 1 if the file is another one."""
    if sys.argv[1] != "--check":
        sys.stdout.write(page(sys.argv[1]))
        return
    program, path = sys.argv[2:]
    now = page(program)
    print(now)
    with open(path, encoding="utf-8") as old:
        if old.read() != now:
            sys.exit(f"{path} is old: {writer} writes it anew")
