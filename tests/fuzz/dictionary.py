#!/usr/bin/python3
"""Prints a dictionary for libFuzzer: the words that a target's parser knows, from the sources. dictionary.py TARGET"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Schemas give the names of their fields and values, code gives its strings without spaces. A target without sources has no dictionary.
SOURCES = {
    "board": ["proto/board.proto"],
    "cache": ["communicator/cache/cache_file.cc", "communicator/cache/chosen_cache.cc", "communicator/cache/proven_cache.cc"],
    "embedding": ["proto/embedding.proto", "topology/embedding.cc"],
    "faults": ["hal/fault/faults.cc"],
    "hosts": ["tools/launch/hosts.cc"],
    "job": ["tools/launch/frames.cc", "tools/launch/frames.h"],
    "key": ["firmware/image/key_file.cc"],
    "model": ["proto/model.proto", "collectives/predict/model_file.cc"],
    "msccl": ["tools/formats/msccl.cc", "tools/formats/msccl_file.cc"],
    "options": ["firmware/node/boot_options.cc", "firmware/gateway/options.cc", "tools/options/workload_options.cc"],
    "topology": ["proto/topology.proto", "topology/topology.cc", "topology/fat_tree.cc", "topology/grid.cc", "topology/dragonfly.cc", "topology/custom_content.cc"],
}


def words(path):
    text = (ROOT / path).read_text()
    if path.endswith(".proto"):
        return re.findall(r"(\w+) = [0-9]+[;\[ ]", re.sub(r"//.*", "", text))
    text = re.sub(r"^\s*(#include|//).*", "", text, flags=re.M)
    return re.findall(r'"([^"\\\s]{1,32})"', text)


def dictionary(target):
    """Returns the lines, one word each; an empty list if the target has none."""
    found = {}
    for path in SOURCES.get(target, []):
        for word in words(path):
            found[word] = None
    prefix = "--" if target == "options" else ""
    return [f'"{prefix}{word}"' for word in found]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("dictionary.py: expected the name of a target")
    print(*dictionary(sys.argv[1]), sep="\n")
