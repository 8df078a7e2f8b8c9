#!/usr/bin/env python3
"""Peer on Eclipse Cyclone DDS, through the PyPI package `cyclonedds`.

Options and lines: ../README.md, its verbs `pub` and `sub`, and `look`.
The structure is that of ../cyclone/peer.c: listeners receive everything, the
main thread only writes at the rate and checks the time.
"""

import argparse
import signal
import sys
import threading
import time
import zlib
from dataclasses import dataclass, field

from cyclonedds.builtin import (BuiltinDataReader, BuiltinTopicDcpsParticipant,
                                BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription)
from cyclonedds.core import DDSException, Listener, Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.dynamic import get_types_for_typeid
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final, key
from cyclonedds.idl.types import int32, sequence, uint8, uint32
from cyclonedds.internal import InvalidSample
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.sub import DataReader, Subscriber
from cyclonedds.topic import Topic
from cyclonedds.util import duration

EXIT_OK, EXIT_USAGE, EXIT_TIME, EXIT_DDS = 0, 2, 3, 4


@dataclass
@final
class String(IdlStruct, typename="std_msgs::msg::dds_::String_"):
    data: str = ""


@dataclass
@final
class Dimension(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayDimension_"):
    label: str = ""
    size: uint32 = 0
    stride: uint32 = 0


@dataclass
@final
class Layout(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayLayout_"):
    dim: sequence[Dimension] = field(default_factory=list)
    data_offset: uint32 = 0


@dataclass
@final
class Bytes(IdlStruct, typename="std_msgs::msg::dds_::UInt8MultiArray_"):
    layout: Layout = field(default_factory=Layout)
    data: sequence[uint8] = field(default_factory=list)


def shape_type(name):
    """The demonstration's type, under the name that the other side gives it."""
    @dataclass
    @final
    class Shape(IdlStruct, typename=name):
        color: str
        key("color")
        x: int32 = 0
        y: int32 = 0
        shapesize: int32 = 0
        additional_payload_size: sequence[uint8] = field(default_factory=list)

    return Shape


STATES = {16: "alive", 32: "disposed", 64: "no_writers"}

# Names in Cyclone's numbering, whose last two policies differ from the standard.
POLICIES = (
    "INVALID USER_DATA DURABILITY PRESENTATION DEADLINE LATENCY_BUDGET OWNERSHIP "
    "OWNERSHIP_STRENGTH LIVELINESS TIME_BASED_FILTER PARTITION RELIABILITY "
    "DESTINATION_ORDER HISTORY RESOURCE_LIMITS ENTITY_FACTORY WRITER_DATA_LIFECYCLE "
    "READER_DATA_LIFECYCLE TOPIC_DATA GROUP_DATA TRANSPORT_PRIORITY LIFESPAN "
    "DURABILITY_SERVICE PROPERTY TYPE_CONSISTENCY_ENFORCEMENT DATA_REPRESENTATION"
).split()

stop = threading.Event()
say_lock = threading.Lock()


def say(line):
    with say_lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def say_sample(word, seq, content, text):
    tail = f" text={text[:60]}" if text is not None else ""
    say(f"{word} seq={seq} size={len(content)} crc={zlib.crc32(content):08x}{tail}")


def policy_name(number):
    number = int(number)
    return POLICIES[number] if number < len(POLICIES) else "UNKNOWN"


class Reports(Listener):
    """Prints events; counts matches and samples for the main thread."""

    def __init__(self):
        super().__init__()
        self.matched = 0
        self.received = 0
        self.taking = threading.Lock()

    def _match(self, status):
        self.matched = status.current_count
        say(f"matched {status.current_count}")

    def on_publication_matched(self, writer, status):
        self._match(status)

    def on_subscription_matched(self, reader, status):
        self._match(status)

    def on_offered_deadline_missed(self, writer, status):
        say(f"deadline_missed total={status.total_count}")

    def on_requested_deadline_missed(self, reader, status):
        say(f"deadline_missed total={status.total_count}")

    def on_liveliness_lost(self, writer, status):
        say(f"liveliness_lost total={status.total_count}")

    def on_liveliness_changed(self, reader, status):
        say(f"liveliness alive={status.alive_count} not_alive={status.not_alive_count}")

    def on_offered_incompatible_qos(self, writer, status):
        say(f"incompatible_qos policy={policy_name(status.last_policy_id)} total={status.total_count}")

    def on_requested_incompatible_qos(self, reader, status):
        say(f"incompatible_qos policy={policy_name(status.last_policy_id)} total={status.total_count}")

    def on_sample_lost(self, reader, status):
        say(f"lost total={status.total_count}")

    def on_data_available(self, reader):
        # The binding may call before the reader's object is complete; the main thread
        # takes the samples received until then.
        if hasattr(reader, "_topic"):
            with self.taking:
                self.take(reader)

    def take(self, reader):
        for sample in reader.take(N=32):
            if isinstance(sample, String):
                content, text = sample.data.encode(), sample.data
            elif isinstance(sample, Bytes):
                content, text = bytes(sample.data), None
            elif not isinstance(sample, InvalidSample):
                text = f"{sample.color} {sample.x}"
                content = text.encode()
            else:
                # Types without a key have an instance too, which is not reported.
                if hasattr(sample.key_sample, "color"):
                    state = STATES[int(sample.sample_info.instance_state)]
                    say(f"instance color={sample.key_sample.color} state={state}")
                continue
            say_sample("received", self.received + 1, content, text)
            self.received += 1


def fill(size, seq, printable):
    """The pattern of fill_payload in peer.h."""
    values = ((i * 31 + (i >> 8) + seq * 7) & 0xFFFFFFFF for i in range(size))
    if printable:
        return bytes(97 + v % 26 for v in values)
    return bytes(v & 0xFF for v in values)


def parse():
    parser = argparse.ArgumentParser(prog="peer", description=__doc__, allow_abbrev=False)
    parser.add_argument("verb", choices=["pub", "sub", "look", "typeof"])
    parser.add_argument("--topic", default="rt/chatter")
    parser.add_argument("--type", choices=["string", "bytes", "shape"], default="string")
    parser.add_argument("--type-name", default="ShapeType")
    parser.add_argument("--text")
    parser.add_argument("--reliability", choices=["best_effort", "reliable"], default="reliable")
    parser.add_argument("--durability", choices=["volatile", "transient_local"], default="volatile")
    parser.add_argument("--history", default="keep_last:10")
    parser.add_argument("--liveliness", default="automatic",
                        choices=["automatic", "manual_participant", "manual_topic"])
    for name in ["deadline", "lease", "lifespan", "size", "count", "domain", "wait-matched"]:
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--start", choices=["now", "stdin"], default="now")
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--timeout", type=float, default=0)
    parser.add_argument("--settle", type=float, default=0.3)
    parser.add_argument("--linger", type=float, default=0)
    parser.add_argument("--partition")
    parser.add_argument("--autodispose", choices=["on", "off"], default="on")
    parser.add_argument("--exclusive", type=int)
    parser.add_argument("--typehash")
    parser.add_argument("--enclave", default="/")
    return parser.parse_args()


def history(text):
    if text == "keep_all":
        return Policy.History.KeepAll
    if text.startswith("keep_last:") and text[10:].isdigit() and int(text[10:]) > 0:
        return Policy.History.KeepLast(int(text[10:]))
    print(f"peer: --history {text}: expected keep_all or keep_last:N", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def endpoint_qos(o):
    kept = history(o.history)
    lease = duration(milliseconds=o.lease) if o.lease else duration(infinite=True)
    live = Policy.Liveliness
    policies = [
        Policy.Reliability.Reliable(duration(seconds=10))
        if o.reliability == "reliable"
        else Policy.Reliability.BestEffort,
        Policy.Durability.TransientLocal
        if o.durability == "transient_local"
        else Policy.Durability.Volatile,
        kept,
        {"automatic": live.Automatic, "manual_participant": live.ManualByParticipant,
         "manual_topic": live.ManualByTopic}[o.liveliness](lease),
    ]
    if o.verb == "pub" and o.durability == "transient_local":
        unlimited = -1
        policies.append(Policy.DurabilityService(
            cleanup_delay=0, history=kept, max_samples=unlimited,
            max_instances=unlimited, max_samples_per_instance=unlimited))
    if o.deadline:
        policies.append(Policy.Deadline(duration(milliseconds=o.deadline)))
    if o.lifespan and o.verb == "pub":
        policies.append(Policy.Lifespan(duration(milliseconds=o.lifespan)))
    if o.exclusive is not None:
        policies.append(Policy.Ownership.Exclusive)
        if o.verb == "pub":
            policies.append(Policy.OwnershipStrength(o.exclusive))
    if o.verb == "pub" and o.autodispose == "off":
        policies.append(Policy.WriterDataLifecycle(autodispose=False))
    if o.typehash:
        policies.append(Policy.Userdata(f"typehash={o.typehash};".encode()))
    return Qos(*policies)


def write_sample(o, writer, seq):
    if o.type == "bytes":
        content = fill(64 if o.size is None else o.size, seq, False)
        writer.write(Bytes(data=content))
        say_sample("sent", seq, content, None)
        return
    text = o.text or f"Hello World: {seq}"
    if o.size is not None:
        text = fill(o.size, seq, True).decode()
    writer.write(String(data=text))
    say_sample("sent", seq, text.encode(), text)


def stay_until(moment):
    while not stop.is_set() and time.monotonic() < moment:
        stop.wait(max(0.0, min(0.02, moment - time.monotonic())))


def run_pub(o, participant, topic, reports, end):
    group = Publisher(participant, qos=Qos(Policy.Partition([o.partition])) if o.partition else None)
    writer = DataWriter(group, topic, qos=endpoint_qos(o), listener=reports)
    say("ready")
    while reports.matched < (o.wait_matched or 0) and not stop.is_set():
        if time.monotonic() > end:
            print(f"peer: no {o.wait_matched} readers matched in time", file=sys.stderr)
            return EXIT_TIME
        time.sleep(0.001)
    if o.start == "stdin":
        sys.stdin.readline()
    if o.wait_matched:
        stop.wait(o.settle)
    if o.type == "shape":
        return draw(writer, topic.data_type)
    seq, following = 0, time.monotonic()
    while not stop.is_set() and (not o.count or seq < o.count) and time.monotonic() < end:
        seq += 1
        write_sample(o, writer, seq)
        if o.rate > 0 and seq != o.count:
            following += 1 / o.rate
            stay_until(following)
    complete = not o.count or seq == o.count
    if o.reliability == "reliable" and not stop.is_set():
        if not writer.wait_for_acks(duration(seconds=10)):
            say("unacknowledged")
    stay_until(time.monotonic() + o.linger)
    say(f"ended sent={seq}")
    return EXIT_OK if complete or stop.is_set() else EXIT_TIME


def draw(writer, shape):
    """Executes the commands of stdin until its end: WORD COLOR [X]."""
    words = {"write": writer.write, "dispose": writer.dispose,
             "unregister": writer.unregister_instance, "write_dispose": writer.write_dispose}
    for line in sys.stdin:
        word, color, *x = line.split()
        words[word](shape(color, int(x[0]) if x else 0))
        say(f"did {line.strip()}")
    say("ended drawing")
    return EXIT_OK


def run_sub(o, participant, topic, reports, end):
    group = Subscriber(participant, qos=Qos(Policy.Partition([o.partition])) if o.partition else None)
    reader = DataReader(group, topic, qos=endpoint_qos(o), listener=reports)
    say("ready")
    while not stop.is_set() and time.monotonic() < end and (not o.count or reports.received < o.count):
        reports.on_data_available(reader)
        time.sleep(0.01)
    complete = not o.count or reports.received >= o.count
    stay_until(time.monotonic() + o.linger)
    say(f"ended received={reports.received}")
    del reader
    return EXIT_OK if complete or stop.is_set() else EXIT_TIME


def user_data(qos):
    policy = qos[Policy.Userdata] if Policy.Userdata in qos else None
    return bytes(policy.data).decode(errors="replace") if policy else ""


def run_look(o, participant, _topic, _reports, end):
    """Prints each discovered participant and endpoint."""
    participants = BuiltinDataReader(participant, BuiltinTopicDcpsParticipant)
    endpoints = {"publication": BuiltinDataReader(participant, BuiltinTopicDcpsPublication),
                 "subscription": BuiltinDataReader(participant, BuiltinTopicDcpsSubscription)}
    say("ready")
    told = {}
    while not stop.is_set() and time.monotonic() < end:
        for found in participants.take(N=32):
            if found.key != participant.guid and getattr(found, "qos", None):
                told[found.key] = user_data(found.qos)
                say(f"participant key={found.key} user_data={told[found.key]}")
        for word, reader in endpoints.items():
            for found in reader.read(N=32):
                seen = (word, found.key)
                enclave = told.get(found.participant_key)
                if seen in told or enclave is None or not found.topic_name:
                    continue
                told[seen] = ""
                say(f"{word} topic={found.topic_name} type={found.type_name} "
                    f"user_data={user_data(found.qos)} {enclave}")
        time.sleep(0.02)
    say("ended looking")
    return EXIT_OK


def run_typeof(o, participant, _topic, _reports, end):
    """Requests the type of the first remote endpoint on the topic, as the command
    `cyclonedds typeof` does."""
    readers = [BuiltinDataReader(participant, BuiltinTopicDcpsPublication),
               BuiltinDataReader(participant, BuiltinTopicDcpsSubscription)]
    say("ready")
    while not stop.is_set() and time.monotonic() < end:
        for found in (found for reader in readers for found in reader.read(N=32)):
            if found.topic_name == o.topic and found.participant_key != participant.guid and found.type_id:
                shown, _ = get_types_for_typeid(participant, found.type_id, duration(seconds=10))
                say(" ".join(["type", shown.__idl_typename__.replace(".", "::"), *shown.__annotations__]))
                return EXIT_OK
        time.sleep(0.02)
    return EXIT_TIME


def main():
    o = parse()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    end = time.monotonic() + o.timeout if o.timeout > 0 else float("inf")
    enclave = Qos(Policy.Userdata(f"enclave={o.enclave};".encode()))
    participant = DomainParticipant(o.domain or 0, qos=enclave)
    types = {"string": String, "bytes": Bytes, "shape": shape_type(o.type_name)}
    topic = Topic(participant, o.topic, types[o.type])
    run = {"pub": run_pub, "sub": run_sub, "look": run_look, "typeof": run_typeof}[o.verb]
    return run(o, participant, topic, Reports(), end)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DDSException as error:
        print(f"peer: {error}", file=sys.stderr)
        sys.exit(EXIT_DDS)
