//! A hundred nodes on five hosts, each host in a network of its own, with one router in
//! all of them: everything between the hosts passes it.
//!
//! A node is a process. It publishes to all others on one topic, and to the next one on a
//! topic of its own, which is on another host. The tests run alone: they measure memory.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pteros::NodeOptions;
use pteros::clock::Rate;
use pteros::interfaces::std_msgs::msg::Int64;
use pteros::prelude::*;

use crate::namespaces::{Lab, Program};
use crate::spin_thread::SpinThread;
use crate::zenoh_networks::host::{Host, SOON, client_of};
use crate::zenoh_networks::parts;

const NODES: usize = 100;
const HOSTS: usize = 5;
/// The name of each node, before its number.
const NAME: &str = "member_";
/// The beginning of a node's line.
const STATE: &str = "state ";
/// How long anything may take for all of them, on a loaded machine.
const ALL_SOON: Duration = Duration::from_secs(150);
/// How often a node looks around, and after how many looks it publishes.
const LOOKS_PER_SECOND: f64 = 2.0;
const LOOKS_PER_MESSAGE: usize = 4;
/// How long memory is watched for the documents.
const MEASURED: Duration = Duration::from_secs(150);
/// The most that the memory of the router, and of a node on average, may grow by while
/// nothing changes.
const ROUTER_GROWTH_MAX: u64 = 4 << 20;
const NODE_GROWTH_MAX: u64 = 256 << 10;

/// A node's report of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    /// Nodes in its graph, itself included.
    nodes: usize,
    /// Subscriptions that its publisher to all is matched with.
    readers: usize,
    /// Publishers that its subscription to all is matched with.
    writers: usize,
    /// Nodes whose messages to all have come since it lost one.
    heard: usize,
    /// Whether the one before it has sent its own since then, as 0 or 1.
    neighbour: usize,
}

impl State {
    fn to_line(self) -> String {
        let Self {
            nodes,
            readers,
            writers,
            heard,
            neighbour,
        } = self;
        format!("{STATE}{nodes} {readers} {writers} {heard} {neighbour}")
    }

    fn of_line(line: &str) -> Option<Self> {
        let numbers = line.strip_prefix(STATE)?.split(' ').map(str::parse);
        let numbers: Vec<usize> = numbers.map(Result::ok).collect::<Option<_>>()?;
        let [nodes, readers, writers, heard, neighbour] = *numbers else {
            return None;
        };
        Some(Self {
            nodes,
            readers,
            writers,
            heard,
            neighbour,
        })
    }

    /// Of a node that has met so many, and heard all of them.
    fn met(count: usize, neighbour: bool) -> Self {
        Self {
            nodes: count,
            readers: count,
            writers: count,
            heard: count,
            neighbour: neighbour.into(),
        }
    }
}

/// The reports since a node was lost.
#[derive(Default)]
struct Heard {
    all: BTreeSet<i64>,
    neighbour: bool,
}

fn locked(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of one node, until it is killed. Without `services` it announces its topics
/// alone: eight endpoints less.
pub fn be_member(number: usize, has_services: bool) {
    // The log of the layers below, for the report of a failure.
    let said = tracing_subscriber::fmt().with_writer(std::io::stderr);
    said.with_max_level(tracing::Level::WARN).init();
    let node = parts::context().create_node(
        NodeOptions::new(format!("{NAME}{number}"))
            .start_parameter_services(has_services)
            .start_type_description_service(has_services)
            .start_parameter_event_publisher(has_services),
    );
    let node = node.unwrap();
    let heard = Arc::new(Mutex::new(Heard::default()));
    let own = |number: usize| format!("own_{}", number % NODES);
    let to_all = || "all".keep_last(2 * NODES);
    let publisher: Publisher<Int64> = node.create_publisher(to_all()).unwrap();
    let to_next: Publisher<Int64> = node.create_publisher(own(number)).unwrap();
    let sink = heard.clone();
    let from_all = node.create_subscription(to_all(), move |message: Sample<Int64>| {
        locked(&sink).all.insert(message.data);
    });
    let from_all: Subscription<Int64> = from_all.unwrap();
    let sink = heard.clone();
    let note = move |_: Sample<Int64>| locked(&sink).neighbour = true;
    let before = own(number + NODES - 1);
    let from_one: Subscription<Int64> = node.create_subscription(before, note).unwrap();
    let _spun = SpinThread::of_node(&node, from_one);
    let data = i64::try_from(number).unwrap();
    let mut last = None;
    let mut rate = Rate::new(&node.clock(), LOOKS_PER_SECOND);
    let end = Instant::now() + parts::LIFETIME;
    for look in 0.. {
        let is_turn = look % LOOKS_PER_MESSAGE == 0;
        if is_turn {
            for to in [&publisher, &to_next] {
                to.publish(&Int64 { data }).unwrap();
            }
        }
        let nodes = node.context().graph().nodes();
        let nodes = nodes.iter().filter(|node| node.name.starts_with(NAME));
        let mut sofar = locked(&heard);
        let mut state = State {
            nodes: nodes.count(),
            readers: publisher.matched_count(),
            writers: from_all.matched_count(),
            heard: sofar.all.len(),
            neighbour: sofar.neighbour.into(),
        };
        if last.is_some_and(|last: State| state.writers < last.writers) {
            *sofar = Heard::default();
            (state.heard, state.neighbour) = (0, 0);
        }
        drop(sofar);
        if is_turn || last != Some(state) {
            println!("{}", state.to_line());
        }
        last = Some(state);
        rate.sleep();
        if Instant::now() > end {
            return;
        }
    }
}

/// The hosts, and the nodes that are left.
struct Fleet {
    hosts: Vec<Host>,
    middle: Host,
    router: Program,
    members: Vec<(usize, Program)>,
    begun: Instant,
}

impl Fleet {
    /// Starts everything at once.
    fn start(lab: &Lab, kind: Kind) -> Self {
        let middle = Host::on_zenoh(lab, "");
        let mut hosts = Vec::new();
        for network in 1..=u8::try_from(HOSTS).unwrap() {
            let host = Host::on_zenoh(lab, &client_of(&format!("10.{network}.0.9")));
            let switch = if kind.has_shared_memory { "on" } else { "off" };
            hosts.push(host.with("PTEROS_SHARED_MEMORY", switch));
            lab.attach(&hosts[usize::from(network) - 1].namespace, 'h', network, 1);
            lab.attach(&middle.namespace, 'm', network, 9);
        }
        let router = middle.router("");
        let begun = Instant::now();
        let start = |number: usize| {
            let member =
                hosts[number % HOSTS].begin_part(&format!("member {number} {}", kind.has_services));
            (number, member)
        };
        Self {
            members: (0..NODES).map(start).collect(),
            hosts,
            middle,
            router,
            begun,
        }
    }

    /// Waits until each node prints a state that is wanted of it. Returns the time that
    /// the last one needed.
    #[track_caller]
    fn wait_until(&mut self, is_wanted: impl Fn(usize, State) -> bool) -> Duration {
        let begun = Instant::now();
        for (number, member) in &mut self.members {
            let left = ALL_SOON.saturating_sub(begun.elapsed());
            member.wait_for_line(left, |line| {
                State::of_line(line).is_some_and(|state| is_wanted(*number, state))
            });
        }
        begun.elapsed()
    }

    /// Waits until all that are left have met, and have heard each other.
    #[track_caller]
    fn meet(&mut self) -> Duration {
        let left: BTreeSet<usize> = self.members.iter().map(|(number, _)| *number).collect();
        self.wait_until(|number, state| {
            let neighbour = left.contains(&((number + NODES - 1) % NODES));
            state == State::met(left.len(), neighbour)
        })
    }

    /// Lets time pass: the first node prints a line every two seconds.
    fn pass(&mut self, time: Duration) {
        let begun = Instant::now();
        let (_, first) = &mut self.members[0];
        first.wait_for_line(time + ALL_SOON, |_| begun.elapsed() >= time);
    }

    /// Waits until the command on a host lists so many of the nodes.
    #[track_caller]
    fn is_listed(&self, host: usize) {
        let end = Instant::now() + ALL_SOON;
        let host = &self.hosts[host];
        loop {
            let (_, out, log) = host.run_to_end(host.pteros("node list"));
            let names = out.lines().filter_map(|line| line.strip_prefix('/'));
            let listed = names.filter(|name| name.starts_with(NAME));
            let (listed, wanted) = (listed.count(), self.members.len());
            if listed == wanted {
                return;
            }
            assert!(Instant::now() < end, "{listed} of {wanted}: {log}");
        }
    }

    fn usage(&self) -> Usage {
        let mut usage = Usage {
            router: Process::of(&self.router),
            ..Usage::default()
        };
        for (_, member) in &self.members {
            let one = Process::of(member);
            usage.nodes.anonymous += one.anonymous;
            usage.nodes.proportional += one.proportional;
            usage.nodes.cpu += one.cpu;
        }
        usage
    }

    /// Bytes that have arrived at the router's host, and that have left it.
    fn traffic(&self) -> [u64; 2] {
        let words = ["ip", "-s", "-j", "link", "show", "type", "veth"];
        let shown = self.middle.namespace.command(&words).output().expect("ip");
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        let devices = shown.as_array().expect("devices");
        ["rx", "tx"].map(|way| {
            let bytes = |device: &serde_json::Value| device["stats64"][way]["bytes"].as_u64();
            devices.iter().filter_map(bytes).sum()
        })
    }
}

/// Memory in bytes and CPU time of a process.
#[derive(Clone, Copy, Default, Debug)]
struct Process {
    anonymous: u64,
    proportional: u64,
    cpu: Duration,
}

impl Process {
    fn of(program: &Program) -> Self {
        let read = |file: &str| {
            let path = format!("/proc/{}/{file}", program.id());
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        let kib = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let number = line.expect(name).trim_end_matches("kB").trim();
            number.parse::<u64>().unwrap() << 10
        };
        let stat = read("stat");
        // Behind the name, which may have spaces: the times are the 12th and 13th field.
        let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        let ticks = fields
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().unwrap());
        Self {
            anonymous: kib(&read("status"), "RssAnon:"),
            proportional: kib(&read("smaps_rollup"), "Pss:"),
            cpu: Duration::from_millis(ticks.sum::<u64>() * 10),
        }
    }
}

/// The memory of the router, and of all nodes together.
#[derive(Clone, Copy, Default, Debug)]
struct Usage {
    router: Process,
    nodes: Process,
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Prints memory, and CPU time since then.
fn report(what: &str, since: Option<(Usage, Duration)>, usage: &Usage, count: usize) {
    let count_u64 = u64::try_from(count).unwrap();
    for (who, of, parts) in [
        ("router", usage.router, 1),
        ("one node", usage.nodes, count_u64),
    ] {
        let before = since.map_or(Duration::ZERO, |(before, _)| match parts {
            1 => before.router.cpu,
            _ => before.nodes.cpu,
        });
        let cpu = of.cpu.saturating_sub(before).as_secs_f64() / parts as f64;
        let rate = since.map_or(String::new(), |(_, time)| {
            format!(", {:.2} ms/s", cpu * 1e3 / time.as_secs_f64())
        });
        println!(
            "{what}, {who}: {:.2} MB anonymous, {:.2} MB PSS, CPU {cpu:.2} s{rate}",
            megabytes(of.anonymous / parts),
            megabytes(of.proportional / parts)
        );
    }
}

/// Which nodes.
#[derive(Clone, Copy)]
struct Kind {
    /// Whether those of one host use it.
    has_shared_memory: bool,
    /// Parameters and type descriptions, as most nodes have.
    has_services: bool,
}

/// Runs everything. `rest` is how long the memory is watched for, after as long a
/// warm-up of at most a minute.
fn hundred_nodes(kind: Kind, rest: Duration) {
    let Some(lab) = Lab::new() else { return };
    let mut fleet = Fleet::start(&lab, kind);
    fleet.wait_until(|_, state| [state.nodes, state.readers, state.writers] == [NODES; 3]);
    let met = fleet.begun.elapsed();
    let [arrived, left] = fleet.traffic().map(megabytes);
    let usage = fleet.usage();
    println!("met after {met:.1?}; the router got {arrived:.1} MB and sent {left:.1} MB");
    report("met", None, &usage, NODES);
    fleet.meet();
    println!("all heard after {:.1?}", fleet.begun.elapsed());
    fleet.is_listed(0);

    fleet.pass(rest.min(Duration::from_secs(60)));
    let (before, from, begun) = (fleet.usage(), fleet.traffic(), Instant::now());
    fleet.pass(rest);
    let (after, to, time) = (fleet.usage(), fleet.traffic(), begun.elapsed());
    report("flow", Some((before, time)), &after, NODES);
    let rates = [0, 1].map(|way| (to[way] - from[way]) as f64 / 1e3 / time.as_secs_f64());
    let growth = |of: fn(&Usage) -> u64| of(&after).saturating_sub(of(&before));
    let router = growth(|usage| usage.router.anonymous);
    let node = growth(|usage| usage.nodes.anonymous) / 100;
    println!(
        "in {time:.0?}: kB/s to and from the router {rates:.0?}; the router grew by {router} \
         bytes, a node by {node}"
    );
    assert!(router <= ROUTER_GROWTH_MAX, "the router grew by {router}");
    assert!(node <= NODE_GROWTH_MAX, "each node grew by {node}");

    restart_router(&mut fleet, kind);
    kill_a_fifth(&mut fleet);
}

fn restart_router(fleet: &mut Fleet, kind: Kind) {
    let mut before = fleet.usage();
    before.router = Process::default();
    fleet.router.signal("KILL");
    fleet.router.wait_for_end(SOON);
    // Those of one host share memory, whatever becomes of the router.
    let near = if kind.has_shared_memory {
        NODES / HOSTS
    } else {
        1
    };
    let lost = fleet.wait_until(|_, state| state.nodes == near);
    fleet.router = fleet.middle.router("");
    let begun = Instant::now();
    let met = fleet.meet();
    let usage = fleet.usage();
    println!("router killed: lost after {lost:.1?}; started: met and heard after {met:.1?}");
    report("met again", Some((before, begun.elapsed())), &usage, NODES);
    fleet.is_listed(1);
}

/// Kills four nodes of each host.
fn kill_a_fifth(fleet: &mut Fleet) {
    let begun = Instant::now();
    fleet.members.retain(|(number, member)| {
        let is_left = !(number / HOSTS).is_multiple_of(5);
        if !is_left {
            member.signal("KILL");
        }
        is_left
    });
    fleet.wait_until(|_, state| [state.nodes, state.readers, state.writers] == [NODES * 4 / 5; 3]);
    println!("a fifth killed: gone after {:.1?}", begun.elapsed());
    fleet.meet();
    fleet.is_listed(2);
}

#[test]
#[ignore = "alone, because it measures memory; cargo xtask test --all runs it"]
fn a_hundred_nodes_on_five_hosts_meet_through_one_router() {
    // An unoptimized program handles fewer endpoints in the time.
    let kind = Kind {
        has_shared_memory: true,
        has_services: false,
    };
    hundred_nodes(kind, Duration::from_secs(15));
}

/// For docs/measurements/zenoh.md, optimized.
#[test]
#[ignore = "measures for minutes"]
fn measured_with_shared_memory() {
    let kind = Kind {
        has_shared_memory: true,
        has_services: true,
    };
    hundred_nodes(kind, MEASURED);
}

/// The same where all of a host speak Zenoh to each other, too.
#[test]
#[ignore = "measures for minutes"]
fn measured_without_shared_memory() {
    let kind = Kind {
        has_shared_memory: false,
        has_services: true,
    };
    hundred_nodes(kind, MEASURED);
}
