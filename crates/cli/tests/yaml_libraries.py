"""Reads YAML of ours, metadata.yaml and printed messages, with the libraries of others."""

import json
import pathlib
import struct
import sys

import ruamel.yaml
import yaml

folder = pathlib.Path(sys.argv[1])
expected = json.loads((folder / "expected.json").read_text())
floats = [struct.unpack(">d", bytes.fromhex(digits))[0] for digits in expected["floats"]]


def ruamel_all(text: str) -> list:
    return list(ruamel.yaml.YAML(typ="safe", pure=True).load_all(text))


for name, read_all in [("PyYAML", lambda text: list(yaml.safe_load_all(text))), ("ruamel", ruamel_all)]:
    (metadata,) = read_all((folder / "metadata.yaml").read_text())
    data = metadata["rosbag2_bagfile_information"]["custom_data"]
    for text in expected["texts"]:
        assert data.get(text) == text, f"{name}: {text!r} is {data.get(text)!r}"
    values = [each["data"] for each in read_all((folder / "printed.yaml").read_text()) if each]
    wanted = [*expected["texts"], *floats]
    assert len(values) == len(wanted), f"{name}: {len(values)} of {len(wanted)}"
    for value, want in zip(values, wanted):
        is_same = type(value) is type(want) and repr(value) == repr(want)
        assert is_same, f"{name}: {want!r} is {value!r}"
print("all values are the same")
