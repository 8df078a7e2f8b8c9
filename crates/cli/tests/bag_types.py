"""Reads every message of a bag of ours with two libraries, compares what they read, and
writes it again with rosbags: as MCAP and as sqlite3."""

import dataclasses
import pathlib
import sys

import numpy as np
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin, Writer

ours, theirs, sqlite = (pathlib.Path(word) for word in sys.argv[1:4])
PLACEHOLDER = "structure_needs_at_least_one_member"


def plain(value: object) -> object:
    """Numbers, texts, lists and maps of them."""
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return list(value)
    if isinstance(value, (np.generic,)):
        return value.item()
    if dataclasses.is_dataclass(value):
        # Constants are fields too, in upper case.
        names = [f.name for f in dataclasses.fields(value) if f.name.islower()]
        names = [name for name in names if name != "__msgtype__"]
    elif hasattr(value, "__slots__"):
        names = list(value.__slots__)
    else:
        return value
    return {name: plain(getattr(value, name)) for name in names if name != PLACEHOLDER}


def same(one: object, other: object) -> bool:
    """Equal, but for bytes, which one library takes as signed and the other not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    is_byte = isinstance(one, int) and isinstance(other, int) and -128 <= min(one, other) < 0
    return one == other or (is_byte and abs(one - other) == 256)


read = {}
with open(next(ours.glob("*.mcap")), "rb") as file:
    reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
    for schema, _, message, decoded in reader.iter_decoded_messages():
        read[message.log_time] = (schema.name, plain(decoded))
print(f"mcap: {len(read)} messages, {len({name for name, _ in read.values()})} types")

with AnyReader([ours]) as reader:
    messages = [(c, time, raw) for c, time, raw in reader.messages()]
    store = reader.typestore
    for connection, time, raw in messages:
        decoded = store.deserialize_cdr(raw, connection.msgtype)
        name, known = read[time]
        assert name == connection.msgtype, (name, connection.msgtype)
        assert same(plain(decoded), known), (name, plain(decoded), known)
    print(f"rosbags: {len(messages)} messages, {len({c.msgtype for c, _, _ in messages})} types")
    for folder, plugin in ((theirs, StoragePlugin.MCAP), (sqlite, StoragePlugin.SQLITE3)):
        with Writer(folder, version=9, storage_plugin=plugin) as writer:
            connections = {}
            for connection, time, raw in messages:
                topic, kind = connection.topic, connection.msgtype
                if topic not in connections:
                    connections[topic] = writer.add_connection(topic, kind, typestore=store)
                decoded = store.deserialize_cdr(raw, kind)
                writer.write(connections[topic], time, store.serialize_cdr(decoded, kind))
