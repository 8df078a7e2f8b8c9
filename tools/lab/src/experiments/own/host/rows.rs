//! Rows of the host benchmark, as data: one row is one measurement that every
//! implementation runs. A new row is a new line here.

use super::super::{B64, K1, K64, M1, M4, Pinning, SIZES, Size, size};

const B256: Size = size("256B", 256, 4000, 200_000);
const K4: Size = size("4KB", 4 << 10, 4000, 100_000);

/// Sizes whose CPU times are summed.
const SWEEP: [Size; 5] = [B256, K4, K64, M1, M4];
const SWEEP_QUICK: [Size; 2] = [B256, M4];

/// How the receiver waits, and the message rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Regime {
    /// Back to back; a receiver that can poll does not sleep.
    Saturated,
    /// Back to back, asleep until woken.
    Blocked,
    /// 50 times a second, asleep until woken.
    Idle,
}

impl Regime {
    pub fn name(self) -> &'static str {
        match self {
            Self::Saturated => "saturated",
            Self::Blocked => "blocked",
            Self::Idle => "idle",
        }
    }
}

/// The measurement of a row.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Wake-up through a kernel primitive, with almost no payload.
    Wake { how: &'static str, pinning: Pinning },
    /// A copy in one thread.
    Memcpy { size: Size },
    /// Half a round trip between two processes.
    RoundTrip {
        size: Size,
        regime: Regime,
        loan: bool,
        pinning: Pinning,
    },
    /// Latency from publish to callback in one process, with this number of
    /// subscriptions in other processes.
    Intra { size: Size, remote_subscribers: u32 },
    /// 20 Hz to several processes.
    FanOut { size: Size, subscribers: u32 },
    /// As fast as possible, nothing lost.
    Goodput {
        size: Size,
        subscribers: u32,
        loan: bool,
    },
    /// CPU time of both ends at 50 Hz, summed over sizes.
    Cpu {
        sizes: &'static [Size],
        quick: &'static [Size],
    },
    /// Idle nodes, one process each or all in one process.
    Memory { nodes: u32, composed: bool },
    /// Memory that a process stores per node of another process.
    Growth { nodes: u32 },
    /// Discovery time of processes that start at once.
    Discovery { processes: u32 },
}

/// One measurement, its name, and whether a quick run includes it.
pub struct Row {
    pub name: String,
    pub kind: Kind,
    pub quick: bool,
}

/// All rows in their order.
pub fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: String, kind: Kind, quick: bool| rows.push(Row { name, kind, quick });
    use Pinning::{None as Free, OneCpu, TwoCpus};
    for (name, how, pinning) in [
        ("control-futex-1cpu", "futex", OneCpu),
        ("control-futex-2cpus", "futex", TwoCpus),
        ("control-eventfd-1cpu", "eventfd", OneCpu),
        ("control-eventfd-2cpus", "eventfd", TwoCpus),
        ("control-udp-1cpu", "udp", OneCpu),
        ("control-udp-2cpus", "udp", TwoCpus),
        ("control-spin-2cpus", "spin", TwoCpus),
    ] {
        add(name.into(), Kind::Wake { how, pinning }, true);
    }
    for size in SIZES {
        let name = format!("control-memcpy-{}", size.name);
        add(name, Kind::Memcpy { size }, true);
    }
    for size in SIZES {
        let quick = [64, 4 << 20].contains(&size.bytes);
        let name = format!("intra-{}", size.name);
        add(
            name,
            Kind::Intra {
                size,
                remote_subscribers: 0,
            },
            quick,
        );
    }
    let beside = Kind::Intra {
        size: B64,
        remote_subscribers: 1,
    };
    add("intra-64B-beside-1-outside".into(), beside, true);
    inter(&mut add, &SIZES, &[false, true], Free);
    inter(&mut add, &[B64, M1], &[false], OneCpu);
    inter(&mut add, &[B64, M1], &[false], TwoCpus);
    for size in [B64, K64, M4] {
        for subscribers in [1, 5, 10] {
            let name = format!("fanout-{}-{subscribers}subs", size.name);
            let quick = size.bytes == M4.bytes && subscribers < 10;
            add(name, Kind::FanOut { size, subscribers }, quick);
        }
    }
    for (size, subscribers, loan) in [
        (K1, 1, false),
        (K64, 1, false),
        (M1, 1, false),
        (M4, 1, false),
        (M4, 5, false),
        (M4, 1, true),
        (M4, 5, true),
    ] {
        let name = format!(
            "goodput-{}-{subscribers}sub{}{}",
            size.name,
            if subscribers > 1 { "s" } else { "" },
            if loan { "-loaned" } else { "" },
        );
        let kind = Kind::Goodput {
            size,
            subscribers,
            loan,
        };
        add(
            name,
            kind,
            subscribers == 1 && !loan && size.bytes == M4.bytes,
        );
    }
    let sweep = Kind::Cpu {
        sizes: &SWEEP,
        quick: &SWEEP_QUICK,
    };
    add("cpu-50Hz-sweep".into(), sweep, true);
    for nodes in [1, 5, 10, 20, 50] {
        for composed in [false, true] {
            let name = format!("nodes-{nodes}{}", if composed { "-composed" } else { "" });
            let quick = nodes == 1 && !composed || nodes == 20;
            if nodes > 1 || !composed {
                add(name, Kind::Memory { nodes, composed }, quick);
            }
        }
    }
    add("nodes-growth".into(), Kind::Growth { nodes: 50 }, false);
    for processes in [2, 20, 50, 100, 200] {
        let name = format!("discovery-{processes}");
        add(name, Kind::Discovery { processes }, processes == 20);
    }
    rows
}

/// Latencies between two processes: every size, regime and kind of write.
fn inter(
    add: &mut impl FnMut(String, Kind, bool),
    sizes: &[Size],
    loans: &[bool],
    pinning: Pinning,
) {
    for &size in sizes {
        for &loan in loans {
            for regime in [Regime::Saturated, Regime::Blocked, Regime::Idle] {
                // A polling process would keep the other off the only CPU.
                if pinning == Pinning::OneCpu && regime == Regime::Saturated {
                    continue;
                }
                let name = format!(
                    "inter-{}-{}{}{}",
                    size.name,
                    regime.name(),
                    if loan { "-loaned" } else { "" },
                    match pinning {
                        Pinning::None => "",
                        Pinning::OneCpu => "-1cpu",
                        Pinning::TwoCpus => "-2cpus",
                    }
                );
                let kind = Kind::RoundTrip {
                    size,
                    regime,
                    loan,
                    pinning,
                };
                let small = size.bytes == B64.bytes && !loan;
                let large = size.bytes == M4.bytes && regime == Regime::Blocked;
                add(name, kind, pinning == Pinning::None && (small || large));
            }
        }
    }
}

/// Name of the same row with copied messages, if this row has loaned ones.
pub fn copied_twin(name: &str) -> Option<String> {
    name.contains("-loaned")
        .then(|| name.replace("-loaned", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_names_are_unique_and_loaned_rows_have_a_copied_counterpart() {
        let rows = all();
        let mut names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        for name in &names {
            if let Some(twin) = copied_twin(name) {
                assert!(names.contains(&twin.as_str()), "{name} has no {twin}");
            }
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(rows.iter().filter(|row| row.quick).count() < 40);
    }
}
