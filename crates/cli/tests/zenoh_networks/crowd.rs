//! A hundred nodes on five hosts, each in a process of its own, through one router.

use std::time::{Duration, Instant};

use crate::host::{Host, client_of};
use crate::namespaces::{Lab, Program};

const HOSTS: usize = 5;
/// Talkers of each host, and as many listeners to those of the host before.
const PAIRS: usize = 10;
const NODES: usize = HOSTS * PAIRS * 2;
/// How long a hundred processes may take to start and to meet.
const MEETING: Duration = Duration::from_secs(240);
/// Hosts that crash and start again before memory is measured for the first time.
const WARM_UP: usize = 4;
const ROUNDS: usize = 12;
/// The most that the router may grow by in all later ones.
const GROWTH_MAX: usize = 2 << 20;

fn talker(hosts: &[Host], host: usize, pair: usize) -> Program {
    let words = format!("demo talker --json --ros-args -r __ns:=/h{host}/n{pair}");
    Program::start(hosts[host].pteros(&words))
}

fn listener(hosts: &[Host], host: usize, pair: usize) -> Program {
    let before = (host + HOSTS - 1) % HOSTS;
    let words = format!(
        "demo listener --json --ros-args -r __ns:=/h{host}/l{pair} -r chatter:=/h{before}/n{pair}/chatter"
    );
    Program::start(hosts[host].pteros(&words))
}

struct Nodes {
    _talkers: Vec<Program>,
    listeners: Vec<Program>,
}

impl Nodes {
    fn start(hosts: &[Host], host: usize) -> Self {
        Self {
            _talkers: (0..PAIRS).map(|pair| talker(hosts, host, pair)).collect(),
            listeners: (0..PAIRS).map(|pair| listener(hosts, host, pair)).collect(),
        }
    }
}

#[track_caller]
fn wait_for_nodes(host: &Host, wanted: usize) {
    let end = Instant::now() + MEETING;
    loop {
        let count = host.node_count();
        if count == wanted {
            return;
        }
        assert!(Instant::now() < end, "{count} nodes instead of {wanted}");
    }
}

/// Each listener hears what is sent from now on.
#[track_caller]
fn all_hear(all: &mut [Nodes]) {
    for listener in all.iter_mut().flat_map(|nodes| &mut nodes.listeners) {
        while listener.out.try_recv().is_ok() {}
        listener.wait_for_line(MEETING, |line| line.contains("Hello World"));
    }
}

/// Proportional set size of a process, in bytes.
fn pss(process: u32) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).expect("smaps");
    let line = text.lines().find(|line| line.starts_with("Pss:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1));
    kibibytes.expect("Pss").parse::<usize>().expect("a number") * 1024
}

/// Measures the memory of a process, and starts a hundred: run it alone.
#[test]
#[ignore = "a hundred processes take minutes"]
fn a_hundred_nodes_on_five_hosts_meet_and_the_router_does_not_grow() {
    let Some(lab) = Lab::new() else { return };
    let hosts: Vec<Host> = (0..HOSTS)
        .map(|_| Host::on_zenoh(&lab, &client_of("10.1.0.1")))
        .collect();
    for (host, (name, last)) in hosts.iter().zip(('a'..).zip(1..)) {
        lab.attach(&host.namespace, name, 1, last);
    }
    let router = hosts[0].router("");
    let begun = Instant::now();
    let mut all: Vec<Nodes> = (0..HOSTS).map(|host| Nodes::start(&hosts, host)).collect();
    for host in &hosts {
        wait_for_nodes(host, NODES);
    }
    all_hear(&mut all);
    println!("{NODES} nodes have met after {:?}", begun.elapsed());
    println!("router: {} bytes PSS", pss(router.id()));

    let mut before = None;
    for round in 0..ROUNDS {
        let (gone, witness) = (round % HOSTS, (round + 1) % HOSTS);
        // SIGKILL: nobody says goodbye.
        drop(all.remove(gone));
        wait_for_nodes(&hosts[witness], NODES - 2 * PAIRS);
        all.insert(gone, Nodes::start(&hosts, gone));
        wait_for_nodes(&hosts[witness], NODES);
        all_hear(&mut all);
        let now = pss(router.id());
        println!(
            "round {round}, after {:?}: {now} bytes PSS",
            begun.elapsed()
        );
        if round + 1 == WARM_UP {
            before = Some(now);
        }
    }
    let growth = pss(router.id()).saturating_sub(before.expect("a warm-up"));
    assert!(growth <= GROWTH_MAX, "the router grew by {growth} bytes");
}
