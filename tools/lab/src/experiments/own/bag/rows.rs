//! Rows of the benchmark of bags, as data.

use std::fmt;

/// Messages of one size on some topics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    pub name: &'static str,
    pub bytes: u64,
    pub topics: u64,
    /// Messages per second, of all topics together.
    pub rate: u64,
    /// Depth of the publishers' histories.
    pub depth: u64,
}

const fn load(name: &'static str, bytes: u64, topics: u64, rate: u64, depth: u64) -> Load {
    Load {
        name,
        bytes,
        topics,
        rate,
        depth,
    }
}

/// A gigabyte a second, in images of 1 MB and of 4 MB.
pub const IMAGES: Load = load("1MB-1000Hz", 1_000_000, 1, 1000, 10);
const LARGE_IMAGES: Load = load("4MB-250Hz", 4_000_000, 1, 250, 10);
/// What a disk and a compressor of one core can take.
const FEW_IMAGES: Load = load("1MB-100Hz", 1_000_000, 1, 100, 10);
const FEW_LARGE_IMAGES: Load = load("4MB-25Hz", 4_000_000, 1, 25, 10);
const SMALL: Load = load("64B-100kHz", 64, 1, 100_000, 1000);
pub const MANY_SMALL: Load = load("64B-300kHz", 64, 1, 300_000, 1000);
const TOPICS: Load = load("200x1KB-100Hz", 1000, 200, 20_000, 10);
/// A flow beside a recorder.
const CONTROL: Load = load("64B-1kHz", 64, 1, 1000, 10);

/// Where the bag lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    Tmpfs,
    Disk,
}

/// Compression of the chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    None,
    Lz4,
    Zstd,
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tmpfs => "tmpfs",
            Self::Disk => "disk",
        })
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        })
    }
}

/// The measurement of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A publisher and a recorder.
    Record {
        load: Load,
        packing: Packing,
        store: Store,
    },
    /// A publisher and a subscription, without and with a recorder.
    Beside { load: Load },
    /// A player and a bare timer, at that many messages per second.
    Play { rate: u64 },
}

/// One measurement, its name, and whether a quick run includes it.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    pub kind: Kind,
    pub quick: bool,
}

impl Row {
    /// Whether other recorders are measured too: where nothing but the recorder is a limit.
    pub fn has_others(&self) -> bool {
        matches!(
            self.kind,
            Kind::Record {
                packing: Packing::None,
                store: Store::Tmpfs,
                ..
            }
        )
    }
}

/// Rows of a smoke run: one of each kind.
pub const SMOKE: [&str; 4] = [
    "record-64B-100kHz-none-tmpfs",
    "record-1MB-100Hz-lz4-disk",
    "beside-64B-1kHz",
    "play-1000Hz",
];

/// All rows in their order.
pub fn all() -> Vec<Row> {
    use Packing::{Lz4, None as Plain, Zstd};
    use Store::{Disk, Tmpfs};
    let mut rows = Vec::new();
    let mut add = |kind: Kind, quick: bool| {
        let name = match kind {
            Kind::Record {
                load,
                packing,
                store,
            } => format!("record-{}-{packing}-{store}", load.name),
            Kind::Beside { load } => format!("beside-{}", load.name),
            Kind::Play { rate } => format!("play-{rate}Hz"),
        };
        rows.push(Row { name, kind, quick });
    };
    for load in [IMAGES, LARGE_IMAGES, MANY_SMALL] {
        let kind = Kind::Record {
            load,
            packing: Plain,
            store: Tmpfs,
        };
        add(kind, true);
    }
    for load in [FEW_IMAGES, FEW_LARGE_IMAGES, SMALL, TOPICS] {
        for store in [Tmpfs, Disk] {
            for packing in [Plain, Lz4, Zstd] {
                let kind = Kind::Record {
                    load,
                    packing,
                    store,
                };
                // Compression is measured where no disk limits it.
                let quick = packing == Plain || (store == Tmpfs && load != FEW_LARGE_IMAGES);
                add(kind, quick);
            }
        }
    }
    for load in [CONTROL, FEW_IMAGES] {
        add(Kind::Beside { load }, true);
    }
    add(Kind::Play { rate: 1000 }, true);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_rows_of_a_smoke_run_exist() {
        let rows = all();
        let mut names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        for name in SMOKE {
            assert!(names.contains(&name), "{name}");
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
