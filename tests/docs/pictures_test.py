#!/usr/bin/python3
"""pictures_test.py: what pictures.py --check refuses."""
import pathlib
import subprocess
import sys
import tempfile

CASES = (
    ("Picture: a: `echo '<svg >' > x.svg`\n", "2 of 2 pictures drawn"),
    ("`echo '<svg >' | tee x.svg > y.svg` draws:\n\n- `x.svg`: a\n- `y.svg`: b\n", "3 of 3 pictures drawn"),
    ("Picture: a: `true x.svg`\n", "x.svg: `true x.svg` does not draw it"),
    ("Picture: a: `false x.svg`\n", "false x.svg: exit status 1"),
    ("`echo '<svg >' | tee x.svg > y.svg` draws:\n\n- `x.svg`: a\n", "y.svg: no page names it"),
    ("Picture: a: `echo text > x.svg`\n", "x.svg: 5 bytes; expected"),
    ("Picture: a: `(echo '<svg >'; seq 9999) > x.svg`\n", "to draw a picture of at most"),
    ("Picture: a: `(echo '<svg >'; date +%N) > x.svg`\n", "each time the same"),
    ("Picture: a: `echo '<svg b' > kept.svg`\n", "docs/pictures/kept.svg is not what `echo '<svg b' > kept.svg` draws"))
for line, expected in CASES:
    with tempfile.TemporaryDirectory() as folder:
        files = {"tests/docs/pictures.toml": "kept = \"echo '<svg a' > kept.svg\"\n", "docs/pictures/kept.svg": "<svg a\n", "docs/results/a.md": line}
        for name, text in files.items():
            (pathlib.Path(folder) / name).parent.mkdir(parents=True)
            (pathlib.Path(folder) / name).write_text(text)
        ran = subprocess.run([pathlib.Path(__file__).with_name("pictures.py"), "--check", f"{folder}/build", folder], capture_output=True, text=True)
    if expected not in ran.stdout + ran.stderr or (ran.returncode == 0) != expected.endswith(" drawn"):
        sys.exit(f"pictures_test.py: {line}: expected '{expected}', not exit status {ran.returncode} and\n{ran.stdout}{ran.stderr}")
