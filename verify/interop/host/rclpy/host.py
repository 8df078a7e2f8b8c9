"""Program of ROS 2's rclpy for `pteros lab`: the options and lines of host.h, of its
verbs pub, sub, intra, meet and nodes. Other verbs and loans are unsupported (exit 5).

RMW_IMPLEMENTATION names the middleware below it. Nodes have rclpy's default options,
and the main thread spins a SingleThreadedExecutor. `pub` and `intra` publish from it.
Its --executor has the value single alone.
"""

import array
import os
import struct
import sys
import time

UNSUPPORTED, USAGE, LATE = 5, 2, 3
VERBS = ("pub", "sub", "intra", "meet", "nodes")
CHOICES = {
    "--type": ("bytes", "string"),
    "--history": ("keep_last", "keep_all"),
    "--reliability": ("reliable", "best_effort"),
    "--durability": ("volatile", "transient_local"),
    "--loan": ("no", "yes"),
    "--lock-memory": ("no", "yes"),
    "--serialize": ("no", "yes"),
    "--wait": ("block", "poll"),
    "--executor": ("single",),
}
NUMBERS = {
    "--size": 64, "--count": 1000, "--warmup": 100, "--rate": 0, "--depth": 10, "--deadline": 0,
    "--settle": 200, "--subscribers": 1, "--nodes": 1, "--first": 0, "--of": 1, "--timeout": 20,
}
TEXTS = {"--topic": "host", "--to": "host_on", "--samples": ""}
SIZE_MIN = 32


def fail(code, text):
    print(text, file=sys.stderr, flush=True)
    os._exit(code)


def parse(words):
    if not words or len(words) % 2 == 0:
        fail(USAGE, "usage: VERB [--OPTION VALUE]..., see verify/interop/README.md")
    if words[0] not in VERBS:
        fail(UNSUPPORTED, f"unsupported: the program of rclpy has no verb {words[0]}")
    options = {**NUMBERS, **TEXTS, **{name: values[0] for name, values in CHOICES.items()}}
    for name, value in zip(words[1::2], words[2::2]):
        if name not in options:
            fail(USAGE, f"{name}: no such option")
        if name in CHOICES and value not in CHOICES[name]:
            fail(USAGE, f"{name} {value}: expected {' or '.join(CHOICES[name])}")
        if name in NUMBERS and not value.isdigit():
            fail(USAGE, f"{name} {value}: expected a number")
        options[name] = int(value) if name in NUMBERS else value
    for name, value in (("--type", "string"), ("--loan", "yes"), ("--lock-memory", "yes")):
        if options[name] == value:
            fail(UNSUPPORTED, f"unsupported: the program of rclpy has no {name} {value}")
    options["--size"] = max(options["--size"], SIZE_MIN)
    return words[0], options


def say(text):
    print(text, flush=True)


class Traffic:
    """What was sent and received, and when; nanoseconds of the monotonic clock."""

    def __init__(self, options):
        self.options = options
        self.total = options["--warmup"] + options["--count"]
        self.goal = self.total
        self.sent = self.last = self.last_at = self.lost = self.torn = 0
        self.took, self.all = [], []
        self.start = self.end = None
        self.path = "none"

    def fill(self, data):
        self.sent += 1
        struct.pack_into("=QQ", data, 0, self.sent, time.monotonic_ns())
        struct.pack_into("=Q", data, len(data) - 8, self.sent)

    def receive(self, data, path):
        now, warmup = time.monotonic_ns(), self.options["--warmup"]
        if len(data) != self.options["--size"]:
            self.torn += 1
            return
        number, stamp = struct.unpack_from("=QQ", data, 0)
        if struct.unpack_from("=Q", data, len(data) - 8)[0] != number:
            self.torn += 1
            return
        self.path = path
        if number > warmup and self.options["--samples"]:
            self.all.append((number - warmup, now - stamp))
        if number <= self.last:
            return
        self.lost += number - self.last - 1
        self.last, self.last_at = number, now
        if number > warmup:
            self.start = self.start or moment()
            self.took.append(now - stamp)
        if number == self.total:
            self.end = moment()

    def is_over(self):
        return self.last >= self.goal

    def report(self):
        if self.options["--samples"]:
            with open(self.options["--samples"], "w", encoding="ascii") as file:
                file.write("sequence,latency_ns\n")
                file.writelines(f"{number},{took}\n" for number, took in self.all)
        took = sorted(self.took) or [0]
        end = self.end or (self.last_at, moment()[1])
        start = self.start or end
        at = lambda share: took[min(len(took) * share // 100, len(took) - 1)] / 1e3
        lost = self.lost + self.total - self.last
        say(f"took count={len(self.took)} min={at(0):.3f} p50={at(50):.3f} p95={at(95):.3f} "
            f"p99={at(99):.3f} max={at(100):.3f} lost={lost} torn={self.torn} "
            f"{since(start, end)} path={self.path}")


def moment():
    return time.monotonic_ns(), time.process_time_ns()


def since(start, end):
    return f"wall_ms={(end[0] - start[0]) / 1e6:.3f} cpu_ms={(end[1] - start[1]) / 1e6:.3f}"


class Program:
    def __init__(self, verb, options):
        # After the options, because rclpy takes a while to import.
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
        from rclpy.duration import Duration
        from std_msgs.msg import UInt8MultiArray

        rclpy.init(args=[])
        self.verb, self.options, self.traffic = verb, options, Traffic(options)
        self.create_node, self.type = rclpy.create_node, UInt8MultiArray
        self.path = rclpy.get_rmw_implementation_identifier()
        self.executor = SingleThreadedExecutor()
        self.qos = QoSProfile(
            depth=options["--depth"],
            history=getattr(HistoryPolicy, options["--history"].upper()),
            reliability=getattr(ReliabilityPolicy, options["--reliability"].upper()),
            durability=getattr(DurabilityPolicy, options["--durability"].upper()),
        )
        if options["--deadline"]:
            self.qos.deadline = Duration(nanoseconds=options["--deadline"] * 1_000_000)
        self.message = UInt8MultiArray()
        self.message.data = array.array("B", bytes(options["--size"]))
        self.publishers, self.subscriptions = [], []

    def node(self, number):
        node = self.create_node(f"host_{os.getpid()}_{number}")
        self.executor.add_node(node)
        return node

    def add(self, node, out, into):
        if out:
            self.publishers.append(node.create_publisher(self.type, out, self.qos))
        if into:
            received = lambda message: self.traffic.receive(message.data, self.path)
            self.subscriptions.append(node.create_subscription(self.type, into, received, self.qos))

    def publish(self):
        self.traffic.fill(self.message.data)
        self.publishers[-1].publish(self.message)

    def spin_until(self, moment_ns, is_over=lambda: False):
        while not is_over():
            left = moment_ns - time.monotonic_ns()
            if left <= 0:
                return
            self.executor.spin_once(timeout_sec=left / 1e9)

    def wait_matched(self, readers, writers, until):
        def matched():
            of_writer = self.publishers[-1].get_subscription_count() if self.publishers else readers
            of_reader = self.subscriptions[-1].get_publisher_count() if self.subscriptions else writers
            return of_writer >= readers and of_reader >= writers

        while not matched():
            if time.monotonic_ns() >= until:
                fail(LATE, f"not matched with {readers} and {writers} in time")
            self.spin_until(time.monotonic_ns() + 4_000_000)

    def run(self):
        options, topic = self.options, self.options["--topic"]
        if self.verb == "nodes":
            for index in range(options["--first"], options["--first"] + options["--nodes"]):
                of = max(options["--of"], 1)
                name = lambda number: f"{topic}_node{number % of}"
                self.add(self.node(index), name(index), name(index + 1))
            say("ready")
            self.executor.spin()
            return
        until = time.monotonic_ns() + options["--timeout"] * 10**9
        flow = f"{topic}_flow"
        node = self.node(0)
        self.add(node, flow if self.verb != "sub" else None, None)
        if self.verb != "pub":
            # Two nodes share a composed process.
            self.add(self.node(1) if self.verb == "intra" else node, None, flow)
        say("ready")
        if self.verb == "meet":
            self.wait_matched(options["--of"], options["--of"], until)
            say(f"met at={time.monotonic_ns()}")
        elif self.verb == "sub":
            self.listen(until)
        else:
            self.wait_matched(options["--subscribers"], 1, until)
            self.spin_until(time.monotonic_ns() + options["--settle"] * 1_000_000)
            if self.verb == "intra":
                return self.inside(until)
            self.send()
        # The other side may still need a retransmission.
        self.executor.spin()

    def paced(self):
        begin, rate = time.monotonic_ns(), self.options["--rate"]
        for number in range(self.traffic.total):
            if rate:
                self.spin_until(begin + number * 10**9 // rate)
            yield number

    def send(self):
        start = moment()
        for number in self.paced():
            if number == self.options["--warmup"]:
                start = moment()
            self.publish()
        say(f"sent count={self.options['--count']} {since(start, moment())}")

    def inside(self, until):
        for number in self.paced():
            self.traffic.goal = number + 1
            self.publish()
            self.spin_until(until, self.traffic.is_over)
            if not self.traffic.is_over():
                fail(LATE, f"message {number + 1} did not come")
        self.traffic.report()

    def listen(self, until):
        """Ends with the last message, or after a while without any."""
        least = 1 if self.options["--reliability"] == "best_effort" else 3
        quiet = max(least, 3 / self.options["--rate"] if self.options["--rate"] else 0) * 1e9
        before = -1
        while before != self.traffic.last or (before == 0 and time.monotonic_ns() < until):
            before = self.traffic.last
            self.spin_until(time.monotonic_ns() + int(quiet), self.traffic.is_over)
            if self.traffic.is_over():
                break
        self.traffic.report()


def main():
    verb, options = parse(sys.argv[1:])
    if verb == "nodes" and options["--nodes"] == 0:
        say("ready")
        while True:
            time.sleep(3600)
    Program(verb, options).run()


main()
