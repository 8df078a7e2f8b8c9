//! Rows of the benchmark of ROS 2's programs, as data: one row is one measurement
//! that every middleware plug-in runs.

use super::super::{B64, K1, K64, M1, M4, Size};
use crate::testbed::implementation::{OF_RCLCPP, OF_RCLPY, OF_WHEEL, PTEROS};

/// The client library and its executor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Client {
    /// rclcpp and its SingleThreadedExecutor, with native Pteros beside it.
    Cpp,
    /// rclcpp and its EventsExecutor.
    Events,
    /// rclpy and its SingleThreadedExecutor.
    Python,
    /// The same, where Pteros has rclpy of its wheel instead of the plug-in.
    Wheel,
}

impl Client {
    /// The start of the row's name.
    fn prefix(self) -> &'static str {
        match self {
            Self::Cpp | Self::Wheel => "",
            Self::Events => "events-",
            Self::Python => "py-",
        }
    }

    /// Pteros's plug-in or wheel, then the plug-ins of the peers.
    pub fn plug_ins(self) -> [&'static str; 3] {
        match self {
            Self::Cpp | Self::Events => OF_RCLCPP,
            Self::Python => OF_RCLPY,
            Self::Wheel => OF_WHEEL,
        }
    }

    /// The implementations that run the row.
    pub fn implementations(self) -> Vec<&'static str> {
        let mut all = self.plug_ins().to_vec();
        if self == Self::Cpp {
            all.push(PTEROS);
        }
        all
    }
}

/// The measurement of a row.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// From publish to callback in another process, at a rate in Hz.
    Two { size: Size, rate: u64 },
    /// The same in one process of two nodes.
    One { size: Size, intra_process: bool },
    /// As fast as possible.
    Goodput { size: Size },
    /// Idle nodes, a process each or all in one.
    Nodes { nodes: u32, composed: bool },
    /// Processes that start at once.
    Meet { processes: u32 },
    /// From publish to callback in another process, with messages of a real type.
    Typed { message: Message, rate: u64 },
    /// Callbacks that do nothing, of a timer that is always due.
    Callbacks,
    /// Round trips of a service without data.
    Call,
    /// Start of a process until its first node is there.
    Start,
}

/// A message type of the programs in Python, and the bytes of its data.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Its word for `--type`.
    pub name: &'static str,
    pub bytes: u64,
}

/// One measurement, its name, and whether a quick run includes it.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub client: Client,
    pub kind: Kind,
    pub quick: bool,
}

/// All rows in their order.
pub fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    use Client::{Cpp, Events, Python};
    let mut add = |client: Client, kind: Kind, quick: bool| {
        rows.push(Row {
            name: format!("{}{}", client.prefix(), name(kind)),
            client,
            kind,
            quick,
        });
    };
    for (client, size, rate, quick) in [
        (Cpp, B64, 10, true),
        (Cpp, B64, 100, true),
        (Cpp, B64, 1000, true),
        (Cpp, K1, 100, false),
        (Cpp, K64, 10, false),
        (Cpp, K64, 100, true),
        (Cpp, K64, 1000, true),
        (Cpp, M1, 10, false),
        (Cpp, M1, 100, true),
        (Cpp, M4, 10, true),
        (Cpp, M4, 100, true),
        (Events, B64, 100, true),
        (Events, B64, 1000, false),
        (Events, K64, 100, false),
        (Events, M1, 100, true),
        (Events, M4, 100, false),
        (Python, B64, 100, true),
        (Python, K64, 100, false),
        (Python, M1, 10, false),
        (Python, M1, 100, true),
        (Python, M4, 10, false),
    ] {
        add(client, Kind::Two { size, rate }, quick);
    }
    for (client, size, intra_process, quick) in [
        (Cpp, B64, false, true),
        (Cpp, K64, false, true),
        (Cpp, M1, false, true),
        (Cpp, M4, false, true),
        (Events, B64, false, false),
        (Events, M1, false, false),
        (Python, B64, false, true),
        (Python, M1, false, false),
        (Cpp, B64, true, true),
        (Cpp, M4, true, false),
    ] {
        let kind = Kind::One {
            size,
            intra_process,
        };
        add(client, kind, quick);
    }
    for (size, quick) in [(K1, false), (K64, false), (M1, true)] {
        add(Cpp, Kind::Goodput { size }, quick);
    }
    for (client, nodes, composed, quick) in [
        (Cpp, 1, false, true),
        (Cpp, 20, false, true),
        (Cpp, 20, true, true),
        (Python, 1, false, true),
        (Python, 20, false, false),
    ] {
        add(client, Kind::Nodes { nodes, composed }, quick);
    }
    for processes in [20, 50] {
        add(Cpp, Kind::Meet { processes }, true);
    }
    rows
}

/// The rows of the wheel, in their order.
pub fn of_wheel() -> Vec<Row> {
    let typed = |name, bytes, rate| Kind::Typed {
        message: Message { name, bytes },
        rate,
    };
    let kinds = [
        Kind::Callbacks,
        Kind::Two {
            size: K1,
            rate: 1000,
        },
        typed("tf", 64, 1000),
        typed("clock", 64, 1000),
        typed("image", 1920 * 1080 * 3, 30),
        typed("cloud", 10_000_000, 10),
        Kind::Call,
        Kind::Start,
        Kind::Nodes {
            nodes: 1,
            composed: false,
        },
    ];
    let row = |kind| Row {
        name: name(kind),
        client: Client::Wheel,
        kind,
        quick: true,
    };
    kinds.map(row).into()
}

fn name(kind: Kind) -> String {
    match kind {
        Kind::Two { size, rate } => format!("two-{}-{rate}Hz", size.name),
        Kind::One {
            size,
            intra_process,
        } => format!(
            "one-{}{}",
            size.name,
            if intra_process { "-intra-process" } else { "" }
        ),
        Kind::Goodput { size } => format!("goodput-{}", size.name),
        Kind::Nodes { nodes, composed } => {
            format!("nodes-{nodes}{}", if composed { "-composed" } else { "" })
        }
        Kind::Meet { processes } => format!("meet-{processes}"),
        Kind::Typed { message, rate } => format!("{}-{rate}Hz", message.name),
        Kind::Callbacks => "callbacks".to_owned(),
        Kind::Call => "call".to_owned(),
        Kind::Start => "start".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_kind_is_in_a_quick_run() {
        let rows = all();
        let mut names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        for start in [
            "two-", "events-", "py-", "one-", "goodput-", "nodes-", "meet-",
        ] {
            let quick = |row: &&Row| row.quick && row.name.starts_with(start);
            assert!(rows.iter().any(|row| quick(&row)), "{start}");
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
