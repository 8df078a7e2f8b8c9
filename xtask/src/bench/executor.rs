//! `cargo xtask bench executor [--quick] [--repeats N] [--json FILE]`: callback
//! overhead, dropped messages and latency of an urgent callback for each executor,
//! compared with a plain epoll loop.
//!
//! Every value comes from a separate process (`examples/executor_load`) in a
//! private network. The task reports and never fails. Only numbers of a quiet
//! machine count.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::median;
use crate::{namespace, peers};

const USAGE: &str = "usage: cargo xtask bench executor [--quick] [--repeats N] [--json FILE]";

/// Executor kinds, in the order of the table.
const KINDS: [&str; 6] = ["floor", "single", "static", "chain", "multi", "isolated"];

/// Executor kinds whose throughput under load is measured.
const LOADED: [&str; 4] = ["single", "chain", "multi", "isolated"];

/// The work of a callback in the paper's experiment, µs (Macenski et al. 2023,
/// fig. 5).
const WORK_US: u64 = 500;

/// Largest overhead beyond the work of a callback, µs.
const OVERHEAD_MAX_US: f64 = 2.0;

/// How much more each of two hundred subscriptions may cost than each of ten: a
/// factor, and the noise of a clock in µs.
const FLAT: (f64, f64) = (1.5, 0.1);

/// An urgent callback waits for one other callback at most, plus this margin, µs.
const URGENT_MAX_US: f64 = WORK_US as f64 + 50.0;

/// Published values of other projects, from other machines.
const PUBLISHED: &str = "\
published, on other machines, for orientation:
  rclcpp, single-threaded: 4 000 empty callbacks a second take 70 % of a processor, 175 us each (rclcpp issue 1637)
  rclcpp, wait set rebuilt against kept: 69 us against 184 us in a micro-benchmark of its review (rclcpp pull request 2142)
  rclcpp, multi-threaded: starvation between groups (rclcpp issues 2645 and 2702)
  isolated against multi-threaded containers: the better with more subscriptions than processors, and with timers (Macenski et al. 2023, fig. 5)
";

struct ExecutorBenchPlan {
    quick: bool,
    repeats: usize,
    json: Option<PathBuf>,
}

/// One measurement of one executor.
struct Measurement {
    kind: &'static str,
    what: &'static str,
    subscriptions: usize,
    work_us: u64,
    timers: usize,
}

type NamedValues = BTreeMap<String, f64>;

pub fn run(flags: &[String]) -> Result<ExitStatus> {
    let plan = ExecutorBenchPlan::parse(flags)?;
    super::build(&["executor-load"])?;
    let program = peers::target_folder()?.join("release/executor-load");
    let mut bench = ExecutorBench {
        plan,
        program,
        results: Vec::new(),
    };
    bench.overhead()?;
    bench.load()?;
    bench.urgent()?;
    print!("\n{PUBLISHED}");
    if let Some(file) = &bench.plan.json {
        let text = serde_json::to_string_pretty(&bench.results)?;
        std::fs::write(file, text + "\n").with_context(|| format!("write {}", file.display()))?;
    }
    Command::new("true").status().context("run true")
}

impl ExecutorBenchPlan {
    fn parse(flags: &[String]) -> Result<Self> {
        let (mut quick, mut repeats, mut json) = (false, None, None);
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            let mut value = || {
                let value = flags.next();
                value.with_context(|| format!("{flag} lacks a value\n{USAGE}"))
            };
            match flag.as_str() {
                "--quick" => quick = true,
                "--repeats" => repeats = Some(value()?.parse().context("--repeats")?),
                "--json" => json = Some(value()?.into()),
                other => bail!("{other}: no such option\n{USAGE}"),
            }
        }
        let repeats = repeats.unwrap_or(if quick { 1 } else { 3 });
        if repeats == 0 {
            bail!("--repeats 0: nothing would be measured; measure for at least 1");
        }
        Ok(Self {
            quick,
            repeats,
            json,
        })
    }
}

struct ExecutorBench {
    plan: ExecutorBenchPlan,
    program: PathBuf,
    results: Vec<serde_json::Value>,
}

impl ExecutorBench {
    fn counts(&self) -> &'static [usize] {
        if self.plan.quick {
            &[1, 10, 200]
        } else {
            &[1, 10, 50, 100, 200]
        }
    }

    /// The median of each value over the repeats. `None` if none succeeded.
    fn measure(&mut self, measurement: &Measurement) -> Option<NamedValues> {
        let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for _ in 0..self.plan.repeats {
            match measurement.measure(&self.program, self.plan.quick) {
                Ok(values) => {
                    for (name, value) in values {
                        all.entry(name).or_default().push(value);
                    }
                }
                Err(error) => eprintln!("{}: {error:#}", measurement.line()),
            }
        }
        let values: NamedValues = all.into_iter().map(|(n, v)| (n, median(v))).collect();
        self.results
            .push(json!({"measurement": measurement.line(), "values": values}));
        (!values.is_empty()).then_some(values)
    }

    fn overhead(&mut self) -> Result<()> {
        println!(
            "Callback overhead beyond its work, us, in CPU time; one publisher, N subscriptions on\n\
             N nodes, one message after another. multi has 2 threads. Median of {}.\n",
            self.plan.repeats
        );
        print!("{:>6}{:>9}{:>9}", "N", "work us", "timers");
        KINDS.iter().for_each(|kind| print!("{kind:>11}"));
        println!();
        let mut flat: BTreeMap<(&str, u64, bool), Vec<f64>> = BTreeMap::new();
        for work_us in [0, WORK_US] {
            for with_timers in [false, true] {
                for &subscriptions in self.counts() {
                    let timers = if with_timers { subscriptions } else { 0 };
                    let mut line = format!("{subscriptions:>6}{work_us:>9}{timers:>9}");
                    for kind in KINDS {
                        let measurement = Measurement {
                            kind,
                            what: "overhead",
                            subscriptions,
                            work_us,
                            // The floor has no timers.
                            timers: if kind == "floor" { 0 } else { timers },
                        };
                        let values = self.measure(&measurement);
                        let each = values.and_then(|f| f.get("overhead_us").copied());
                        let mark = match each {
                            Some(each) if kind != "floor" && each > OVERHEAD_MAX_US => "!",
                            _ => " ",
                        };
                        let text = each.map_or("–".into(), |each| format!("{each:.2}{mark}"));
                        write!(line, "{text:>11}")?;
                        if let Some(each) = each.filter(|_| subscriptions >= 10) {
                            let key = (kind, work_us, with_timers);
                            flat.entry(key).or_default().push(each);
                        }
                    }
                    println!("{line}");
                }
            }
        }
        println!(
            "\ntarget: at most {OVERHEAD_MAX_US} us each (! is above it), and flat: at N = 200 at most {} times the value at N = 10, and {} us",
            FLAT.0, FLAT.1
        );
        for ((kind, work_us, with_timers), each) in flat {
            if let [first, .., last] = each[..] {
                let met = last <= first * FLAT.0 + FLAT.1;
                let timers = if with_timers { " with timers" } else { "" };
                println!(
                    "  {kind}, {work_us} us of work{timers}: {first:.2} to {last:.2}: {}",
                    met_text(met)
                );
            }
        }
        Ok(())
    }

    fn load(&mut self) -> Result<()> {
        println!(
            "\n90 % of the threads' time requested, {WORK_US} us of work each: callbacks that ran\n"
        );
        println!(
            "{:>10}{:>6}{:>9}{:>12}{:>14}{:>10}  target: no drops",
            "", "N", "timers", "callbacks", "utilisation", "dropped"
        );
        for kind in LOADED {
            for &subscriptions in self.counts() {
                for timers in [0, subscriptions] {
                    let measurement = Measurement {
                        kind,
                        what: "load",
                        subscriptions,
                        work_us: WORK_US,
                        timers,
                    };
                    let Some(values) = self.measure(&measurement) else {
                        continue;
                    };
                    let of = |name: &str| values.get(name).copied().unwrap_or(f64::NAN);
                    println!(
                        "{kind:>10}{subscriptions:>6}{timers:>9}{:>12}{:>13.1}%{:>10}  {}",
                        of("callbacks"),
                        of("utilisation") * 100.0,
                        of("dropped"),
                        met_text(of("dropped") == 0.0)
                    );
                }
            }
        }
        Ok(())
    }

    fn urgent(&mut self) -> Result<()> {
        println!(
            "\nAn urgent message every 7.3 ms beside that load, N = 10: latency from publish to callback, us\n"
        );
        println!(
            "{:>10}{:>9}{:>9}{:>9}{:>9}  target: p99 at most {URGENT_MAX_US}",
            "", "count", "p50", "p99", "max"
        );
        for kind in LOADED {
            let measurement = Measurement {
                kind,
                what: "urgent",
                subscriptions: 10,
                work_us: WORK_US,
                timers: 0,
            };
            let Some(values) = self.measure(&measurement) else {
                continue;
            };
            let of = |name: &str| values.get(name).copied().unwrap_or(f64::NAN);
            println!(
                "{kind:>10}{:>9}{:>9.0}{:>9.0}{:>9.0}  {}",
                of("urgent"),
                of("urgent_p50_us"),
                of("urgent_p99_us"),
                of("urgent_max_us"),
                met_text(of("urgent_p99_us") <= URGENT_MAX_US)
            );
        }
        println!(
            "(single and multi are fair and have no priorities: earlier ready callbacks run first)"
        );
        Ok(())
    }
}

fn met_text(met: bool) -> &'static str {
    if met { "met" } else { "not met" }
}

impl Measurement {
    fn line(&self) -> String {
        format!(
            "{} {} --subscriptions {} --work-us {} --timers {}",
            self.kind, self.what, self.subscriptions, self.work_us, self.timers
        )
    }

    fn measure(&self, program: &Path, quick: bool) -> Result<NamedValues> {
        let millis = match (self.what, quick) {
            ("overhead", true) => 300,
            ("overhead", false) => 1_000,
            (_, true) => 1_500,
            (_, false) => 5_000,
        };
        let output = namespace::command(true, &program.to_string_lossy())?
            .args(self.line().split(' '))
            .args(["--millis", &millis.to_string()])
            .output()
            .context("run executor-load")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        parse(&String::from_utf8_lossy(&output.stdout))
    }
}

/// Parses lines of a name and a number.
fn parse(text: &str) -> Result<NamedValues> {
    let figure = |line: &str| -> Result<(String, f64)> {
        let (name, value) = line.split_once(' ').context("no value")?;
        Ok((name.to_owned(), value.parse().context("no number")?))
    };
    text.lines()
        .map(|line| figure(line).with_context(|| format!("executor-load printed {line:?}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_line_by_line() {
        let values = parse("overhead_us 0.250\ncallbacks 4\n").unwrap();
        assert_eq!(values["overhead_us"], 0.25);
        assert_eq!(values["callbacks"], 4.0);
        let error = parse("overhead_us many").unwrap_err();
        assert!(format!("{error:#}").contains("overhead_us many"));
    }

    #[test]
    fn unknown_options_are_errors() {
        let parse = |line: &str| {
            let flags: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            ExecutorBenchPlan::parse(&flags)
        };
        assert_eq!(parse("").unwrap().repeats, 3);
        let quick = parse("--quick --json out.json").unwrap();
        assert!(quick.quick && quick.repeats == 1 && quick.json.is_some());
        for wrong in ["--repeats 0", "--repeats", "--fast"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
