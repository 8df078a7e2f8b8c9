"""Reads a bag of ours with the libraries of others, and writes one with theirs."""

import pathlib
import sys

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

ours, theirs, compression = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]

with open(next(ours.glob("*.mcap")), "rb") as file:
    reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
    summary = reader.get_summary()
    assert summary.statistics.message_count == 25, summary.statistics
    channel = next(iter(summary.channels.values()))
    assert "reliability: reliable" in channel.metadata["offered_qos_profiles"]
    assert channel.metadata["topic_type_hash"].startswith("RIHS01_")
    values = [message.data for _, _, _, message in reader.iter_decoded_messages()]
    assert set(values) == {7}, values
    print(f"mcap: {len(values)} messages, all 7")

with AnyReader([ours]) as reader:
    values = [reader.deserialize(raw, connection.msgtype).data
              for connection, _, raw in reader.messages()]
    assert set(values) == {7}, values
    print(f"rosbags: {len(values)} messages, all 7")

store = get_typestore(Stores.ROS2_JAZZY)
with Writer(theirs, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
    connection = writer.add_connection("/texts", "std_msgs/msg/String", typestore=store)
    for number in range(5):
        message = store.types["std_msgs/msg/String"](data=f"text {number}")
        writer.write(connection, 10 + number, store.serialize_cdr(message, "std_msgs/msg/String"))
