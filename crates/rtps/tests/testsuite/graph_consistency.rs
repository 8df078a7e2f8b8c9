//! Random tests of a small graph: participants join, leave, crash and restart, and
//! endpoints are added and removed. The network loses and duplicates datagrams, and
//! single directions are cut.
//!
//! After the network heals, the graph of every participant equals the truth, and
//! its events add up to that graph (invariants I6 and I12). A seed is a test.

use pteros_test_support::rtps::domain;

use domain::{Domain, config};
use pteros_rtps::id::Guid;
use pteros_rtps::participant::RemoteEndpoint;
use pteros_rtps::qos::{EndpointQos, Reliability};
use pteros_rtps::time::Duration;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

struct GraphRun {
    domain: Domain,
    random: Random,
    /// Nodes by place; a restart is a new node at the same place.
    places: Vec<usize>,
    generations: u8,
    endpoints: Vec<(usize, Guid)>,
}

impl GraphRun {
    fn new(seed: u64) -> Self {
        let mut domain = Domain::new(seed);
        let places = (0..4).map(|place| domain.join(config(place, 0))).collect();
        Self {
            domain,
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            places,
            generations: 0,
            endpoints: Vec::new(),
        }
    }

    fn one_event(&mut self) {
        let place = self.random.below(4);
        let node = self.places[place];
        match self.random.below(20) {
            0 => self.restart(place, true),
            1 => self.restart(place, false),
            2..=4 => {
                let other = self.places[self.random.below(4)];
                self.domain.cuts.push((node, other));
            }
            5..=8 => {
                self.domain.cuts.clear();
            }
            9 => self.domain.loss = [0, 10, 30][self.random.below(3)],
            10 => self.domain.duplication = [0, 20, 50][self.random.below(3)],
            11..=12 => {
                if !self.endpoints.is_empty() {
                    let index = self.random.below(self.endpoints.len());
                    let (owner, guid) = self.endpoints.swap_remove(index);
                    self.domain.remove(owner, guid);
                }
            }
            _ => self.add_endpoint(node),
        }
        let pause = [1, 50, 500, 3000][self.random.below(4)];
        self.domain.run_for(Duration::from_millis(pause));
    }

    fn add_endpoint(&mut self, node: usize) {
        let topic = format!("rt/{}", self.random.below(3));
        let reliability = if self.random.below(4) == 0 {
            Reliability::BestEffort
        } else {
            Reliability::Reliable
        };
        let qos = EndpointQos {
            reliability,
            ..EndpointQos::default()
        };
        let guid = if self.random.below(2) == 0 {
            self.domain.add_writer(node, &topic, qos)
        } else {
            self.domain.add_reader(node, &topic, qos)
        };
        self.endpoints.push((node, guid));
    }

    fn restart(&mut self, place: usize, politely: bool) {
        let node = self.places[place];
        if politely {
            self.domain.leave(node);
        }
        self.domain.nodes[node].dead = true;
        self.endpoints.retain(|(owner, _)| *owner != node);
        self.generations += 1;
        let mut again = config(place, self.generations);
        again.lease = Duration::from_secs([5, 10, 20][self.random.below(3)]);
        self.places[place] = self.domain.join(again);
    }

    fn heal(&mut self) {
        self.domain.loss = 0;
        self.domain.duplication = 0;
        self.domain.cuts.clear();
        // The longest lease and two announcements.
        self.domain.run_for(Duration::from_secs(27));
    }

    fn compare(&self, seed: u64) {
        for node in &self.places {
            let machine = &self.domain.nodes[*node].machine;
            assert_eq!(machine.participants().count(), 3, "seed {seed} node {node}");
            let known: Vec<Guid> = machine
                .endpoints()
                .remotes()
                .map(RemoteEndpoint::guid)
                .collect();
            let mut truth: Vec<Guid> = self
                .endpoints
                .iter()
                .filter(|(owner, _)| owner != node)
                .map(|(_, guid)| *guid)
                .collect();
            truth.sort();
            assert_eq!(known, truth, "seed {seed} node {node}");
            assert_eq!(
                self.domain.matches(*node),
                self.expected_matches(*node),
                "seed {seed} node {node}"
            );
        }
    }

    /// The pairs that should be matched, from the endpoints' own descriptions.
    fn expected_matches(&self, node: usize) -> Vec<(Guid, Guid)> {
        let described = |owner: usize, guid: Guid| {
            let machine = &self.domain.nodes[owner].machine;
            machine
                .endpoints()
                .local(guid)
                .cloned()
                .expect("our own endpoint")
        };
        let mut pairs = Vec::new();
        for (_, local) in self.endpoints.iter().filter(|(owner, _)| *owner == node) {
            for (owner, remote) in self.endpoints.iter().filter(|(owner, _)| *owner != node) {
                let (l, r) = (described(node, *local), described(*owner, *remote));
                let (writer, reader) = if l.is_writer() { (&l, &r) } else { (&r, &l) };
                if l.is_writer() != r.is_writer()
                    && l.topic == r.topic
                    && writer.qos.reliability >= reader.qos.reliability
                {
                    pairs.push((*local, *remote));
                }
            }
        }
        pairs.sort();
        pairs
    }
}

#[test]
fn after_any_faults_all_participants_know_the_true_graph() {
    for seed in 1..=60 {
        let mut world = GraphRun::new(seed);
        for _ in 0..40 {
            world.one_event();
        }
        world.heal();
        world.compare(seed);
    }
}
