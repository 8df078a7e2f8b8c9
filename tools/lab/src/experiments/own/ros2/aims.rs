//! Aims of docs/measurements/ros2.md and python.md as data: what Pteros's plug-in or
//! wheel may cost, as a ratio to the better of the other plug-ins, or in itself.

use super::rows::{Client, Kind, Row};
use crate::measurement::Better;

/// A figure of a row, with its aim.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The name of its metric.
    pub metric: &'static str,
    /// Which peer is the better one.
    pub better: Better,
    pub aim: Option<Aim>,
}

/// The most that is aimed at.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Aim {
    /// Times the better peer.
    Ratio(f64),
    /// The value itself.
    Value(f64),
}

/// The figures of a row, in the order of the table.
pub fn figures(row: &Row) -> Vec<Figure> {
    let figure = |metric, aim| Figure {
        metric,
        better: Better::Lower,
        aim,
    };
    const FIFTH: Option<Aim> = Some(Aim::Ratio(0.2));
    if row.client == Client::Wheel {
        let of_flow = [("p50", FIFTH), ("cpu ms/s", FIFTH), ("lost", None)];
        let all = match row.kind {
            Kind::Callbacks => vec![("overhead", Some(Aim::Value(2.0)))],
            Kind::Call => vec![("p50", FIFTH)],
            Kind::Start => vec![("ms", Some(Aim::Ratio(0.5)))],
            Kind::Nodes { .. } => vec![("PSS kB", None), ("threads", None)],
            // Its timers fire as often as they can.
            Kind::Typed { message, .. } if message.name == "clock" => of_flow[..2].into(),
            Kind::Typed { message, .. } if message.bytes >= 10_000_000 => {
                let publish = ("publish", Some(Aim::Value(5000.0)));
                [&of_flow[..], &[publish]].concat()
            }
            _ => of_flow.into(),
        };
        let all = all.into_iter();
        return all.map(|(metric, aim)| figure(metric, aim)).collect();
    }
    match row.kind {
        Kind::Two { size, rate } => {
            let is_flood = size.bytes >= 4 << 20 && rate >= 100;
            vec![
                figure("p50", Some(latency(size.bytes))),
                figure("cpu ms/s", Some(Aim::Ratio(0.6))),
                figure("lost", is_flood.then_some(Aim::Value(0.0))),
            ]
        }
        // With rclcpp's intra-process communication the plug-in only wakes.
        Kind::One {
            size,
            intra_process,
        } => vec![figure("p50", (!intra_process).then(|| latency(size.bytes)))],
        Kind::Goodput { .. } => vec![
            Figure {
                metric: "MB/s",
                better: Better::Higher,
                aim: None,
            },
            figure("lost", None),
        ],
        Kind::Nodes { nodes, composed } => {
            let memory = match (nodes, composed) {
                (1, _) => Some(Aim::Ratio(1.0)),
                (_, false) => Some(Aim::Ratio(0.6)),
                _ => None,
            };
            let is_single = nodes == 1 && row.client == Client::Cpp;
            vec![
                figure("PSS kB", memory),
                figure("threads", is_single.then_some(Aim::Value(3.0))),
            ]
        }
        Kind::Meet { processes } => {
            vec![figure("ms", (processes >= 50).then_some(Aim::Ratio(0.3)))]
        }
        // Of the wheel alone.
        Kind::Typed { .. } | Kind::Callbacks | Kind::Call | Kind::Start => Vec::new(),
    }
}

fn latency(bytes: u64) -> Aim {
    if bytes <= 64 << 10 {
        Aim::Ratio(0.6)
    } else {
        Aim::Ratio(0.3)
    }
}

/// A figure of Pteros's plug-in beside those of the peers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evaluation {
    /// Pteros divided by the better peer; none without a peer, or where it has 0.
    pub ratio: Option<f64>,
    /// Whether the aim is met; none without an aim or without what it compares.
    pub met: Option<bool>,
}

impl Figure {
    /// Compares the plug-in's value with those of the peers.
    pub fn evaluate(&self, ours: Option<f64>, peers: &[f64]) -> Evaluation {
        let best = match self.better {
            Better::Higher => peers.iter().copied().reduce(f64::max),
            Better::Lower | Better::Neither => peers.iter().copied().reduce(f64::min),
        };
        let ratio = ours.zip(best).map(|(ours, best)| ours / best);
        let ratio = ratio.filter(|ratio| ratio.is_finite());
        let met = match self.aim {
            Some(Aim::Ratio(most)) => ratio.map(|ratio| ratio <= most),
            Some(Aim::Value(most)) => ours.map(|ours| ours <= most),
            None => None,
        };
        Evaluation { ratio, met }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    fn figure_of(name: &str, metric: &str) -> Figure {
        let rows = rows::all();
        let row = rows.iter().find(|row| row.name == name).expect("the row");
        let mut all = figures(row).into_iter();
        all.find(|figure| figure.metric == metric)
            .expect("the figure")
    }

    #[test]
    fn a_ratio_is_to_the_better_peer() {
        let p50 = figure_of("two-64B-100Hz", "p50");
        let evaluation = p50.evaluate(Some(50.0), &[100.0, 200.0]);
        assert_eq!(
            evaluation,
            Evaluation {
                ratio: Some(0.5),
                met: Some(true)
            }
        );
        assert_eq!(p50.evaluate(Some(61.0), &[100.0, 200.0]).met, Some(false));
        let goodput = figure_of("goodput-1MB", "MB/s");
        assert_eq!(goodput.evaluate(Some(30.0), &[10.0, 20.0]).ratio, Some(1.5));
    }

    #[test]
    fn without_a_peer_only_values_are_judged() {
        let p50 = figure_of("two-1MB-100Hz", "p50");
        assert_eq!(
            p50.evaluate(Some(1.0), &[]),
            Evaluation {
                ratio: None,
                met: None
            }
        );
        let lost = figure_of("two-4MB-100Hz", "lost");
        assert_eq!(lost.evaluate(Some(0.0), &[]).met, Some(true));
        assert_eq!(
            lost.evaluate(Some(1.0), &[0.0]),
            Evaluation {
                ratio: None,
                met: Some(false)
            }
        );
        assert_eq!(lost.evaluate(None, &[3.0]).met, None);
    }

    #[test]
    fn large_messages_have_the_stricter_aim() {
        assert_eq!(figure_of("one-64KB", "p50").aim, Some(Aim::Ratio(0.6)));
        assert_eq!(figure_of("one-1MB", "p50").aim, Some(Aim::Ratio(0.3)));
        assert_eq!(figure_of("one-64B-intra-process", "p50").aim, None);
        assert_eq!(figure_of("nodes-1", "threads").aim, Some(Aim::Value(3.0)));
    }

    #[test]
    fn every_row_of_the_wheel_has_figures() {
        for row in rows::of_wheel() {
            assert!(!figures(&row).is_empty(), "{}", row.name);
        }
        let rows = rows::of_wheel();
        let cloud = rows.iter().find(|row| row.name == "cloud-10Hz");
        let figures = figures(cloud.expect("the row"));
        assert_eq!(figures[3].aim, Some(Aim::Value(5000.0)));
    }
}
