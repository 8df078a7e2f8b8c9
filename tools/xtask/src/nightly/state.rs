//! Accumulated results of all nights: `docs/measurements/assurance.json`, and the
//! page `assurance.md` made from it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::part::{Outcome, PARTS, Part};
use crate::checkout::root;
use crate::fuzz;

/// Finds that are kept; the oldest goes.
const FINDS_MAX: usize = 100;

/// When and on what a part ran.
pub struct Occasion {
    /// `2026-11-23`, UTC.
    pub date: String,
    /// The abbreviated commit, with `+` if the checkout had changes.
    pub commit: String,
}

/// What all nights have done so far.
pub struct State {
    parts: Map<String, Value>,
    finds: Vec<Value>,
}

impl State {
    /// The file.
    pub fn path() -> PathBuf {
        root().join("docs/measurements/assurance.json")
    }

    /// Reads the state. Nothing has run yet if there is no file.
    pub fn load() -> Result<Self> {
        let path = Self::path();
        if !path.exists() {
            return Self::parse("{}");
        }
        let text = std::fs::read_to_string(&path)?;
        Self::parse(&text).with_context(|| {
            format!(
                "{}: no state of xtask nightly; restore it with git",
                path.display()
            )
        })
    }

    /// Reads the state from JSON.
    pub fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text)?;
        let object = value.as_object().context("not an object")?;
        let parts = object.get("parts").map(|parts| parts.as_object().cloned());
        let finds = object.get("finds").map(|finds| finds.as_array().cloned());
        Ok(Self {
            parts: parts.unwrap_or_default().unwrap_or_default(),
            finds: finds.unwrap_or_default().unwrap_or_default(),
        })
    }

    /// A total of a part.
    pub fn total(&self, part: &str, what: &str) -> f64 {
        let value = self.parts.get(part).and_then(|part| part.get(what));
        value.and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// The first seed that a part has not tried, of those that it tries in order.
    pub fn next_seed(&self, part: &str) -> u64 {
        let number = |what| self.parts.get(part)?.get(what)?.as_u64();
        let in_order = || number("seeds").map(|seeds| seeds + 1);
        number("next_seed").or_else(in_order).unwrap_or(1)
    }

    /// Adds what a part has done. `chosen`: its first seed was named by the user, so the
    /// order of the others does not change.
    pub fn add(&mut self, part: &Part, outcome: &Outcome, on: &Occasion, chosen: bool) {
        let whole = |what: &str| self.total(part.name, what) as u64;
        let ran = outcome.skipped.is_none();
        let tried = if chosen { 0 } else { outcome.seeds };
        let sound_before = if outcome.finds.is_empty() {
            whole("sound_seeds")
        } else {
            0
        };
        let entry = json!({
            "seconds": (whole("seconds") + outcome.seconds.round() as u64),
            "cpu_seconds": (whole("cpu_seconds") + outcome.cpu_seconds.round() as u64),
            "executions": whole("executions") + outcome.executions,
            "seeds": whole("seeds") + outcome.seeds,
            "next_seed": self.next_seed(part.name) + tried,
            "sound_seeds": sound_before + outcome.sound_seeds,
            "simulated_seconds":
                (whole("simulated_seconds") + outcome.simulated_seconds.round() as u64),
            "finds": whole("finds") + outcome.finds.len() as u64,
            "runs": whole("runs") + u64::from(ran),
            "last": {
                "date": on.date,
                "commit": on.commit,
                "result": outcome.result(),
            },
        });
        self.parts.insert(part.name.into(), entry);
        for find in &outcome.finds {
            self.finds.push(json!({
                "date": on.date,
                "commit": on.commit,
                "part": part.name,
                "text": find,
            }));
        }
        let excess = self.finds.len().saturating_sub(FINDS_MAX);
        self.finds.drain(..excess);
    }

    /// Writes the state and the page.
    pub fn save(&self) -> Result<()> {
        let json = json!({ "parts": self.parts, "finds": self.finds });
        std::fs::write(Self::path(), format!("{json:#}\n"))?;
        std::fs::write(Self::path().with_extension("md"), self.page())?;
        Ok(())
    }

    pub fn page(&self) -> String {
        let mut page = format!("{HEAD}{}{TABLE}", self.hours());
        for part in PARTS {
            let hours = self.total(part.name, "seconds") / 3_600.0;
            let cpu_hours = self.total(part.name, "cpu_seconds") / 3_600.0;
            let last = self.parts.get(part.name).and_then(|part| part.get("last"));
            let last = last.map_or("never".to_string(), |last| {
                let word = |key: &str| last.get(key).and_then(Value::as_str).unwrap_or_default();
                format!(
                    "{} at {}: {}",
                    word("date"),
                    word("commit"),
                    cell(word("result"))
                )
            });
            let number = |what: &str| self.total(part.name, what) as u64;
            page += &format!(
                "| {} | {} | {hours:.2} | {cpu_hours:.2} | {} | {} | {} | {last} |\n",
                part.name,
                part.does,
                number("executions"),
                number("seeds"),
                number("finds"),
            );
        }
        page += "\n## Finds\n";
        if self.finds.is_empty() {
            page += "None yet.\n";
        }
        for find in self.finds.iter().rev() {
            let word = |key: &str| find.get(key).and_then(Value::as_str).unwrap_or_default();
            page += &format!(
                "- {} at {}, {}: {}\n",
                word("date"),
                word("commit"),
                word("part"),
                cell(word("text"))
            );
        }
        page
    }

    /// How many hours stand behind the words of the page, and what they are worth.
    fn hours(&self) -> String {
        let hours = |part: &str| self.total(part, "seconds") / 3_600.0;
        let simulated = (self.total("sim", "simulated_seconds")
            + self.total("nodes", "simulated_seconds"))
            / 3_600.0;
        let simulation = hours("sim") + hours("nodes");
        let fuzzing = hours("fuzz");
        let mut text = format!(
            "**{simulation:.1} hours of simulation stand behind this page** ({:.1} of graphs, {:.1} of whole nodes; \
             {simulated:.0} hours passed in them since these are counted), **and {fuzzing:.1} hours of fuzzing**, \
             {:.1} minutes a target.\n",
            hours("sim"),
            hours("nodes"),
            60.0 * fuzzing / fuzz::TARGETS.len() as f64,
        );
        for (part, few) in [("simulation", simulation), ("fuzzing", fuzzing)] {
            if few < HOURS_MIN {
                text += &format!(
                    "Less than {HOURS_MIN:.0} hours of {part} say little about rare defects.\n"
                );
            }
        }
        for (part, what) in [("sim", "graphs"), ("nodes", "rounds of whole nodes")] {
            let sound = self.total(part, "sound_seeds") as u64;
            // The rule of three: no find in n trials bounds the rate by 3/n.
            if sound >= 3 * SOUND_SEEDS_MIN {
                text += &format!(
                    "The last {sound} {what} violated nothing: with a confidence of 95 %, fewer than one in {} does.\n",
                    sound / 3
                );
            } else if sound > 0 {
                text += &format!("The last {sound} {what} violated nothing.\n");
            }
        }
        text.push('\n');
        text
    }
}

/// Text that cannot end a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "/").replace('\n', " ")
}

/// The page until the hours.
const HEAD: &str = "\
# Assurance

This page counts the work of all nights: what searches for defects have run, for how long, and what they found.
`cargo xtask nightly` writes it, and adds to it with each run. Do not edit it; `assurance.json` beside it has the numbers.

Executions are inputs of the fuzzer, tests of the other parts, and packages of the audit. A seed is one simulated graph. A
find ends the command with an error, and becomes a named test. Hours are on the clock, without builds; parts may run side
by side. CPU hours say how much a busy machine left for them.

";

/// Hours of a search below which the page warns.
const HOURS_MIN: f64 = 24.0;

/// Seeds in a row of which a bound of the rate is told, in thirds.
const SOUND_SEEDS_MIN: u64 = 100;

/// The head of the table.
const TABLE: &str = "\
| part | what it does | hours | CPU hours | executions | seeds | finds | last run |
|---|---|---|---|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::*;

    fn occasion() -> Occasion {
        Occasion {
            date: "2026-11-23".into(),
            commit: "abc1234".into(),
        }
    }

    #[test]
    fn results_accumulate_over_nights() {
        let mut state = State::parse("{}").unwrap();
        let sim = PARTS.iter().find(|part| part.name == "sim").unwrap();
        assert_eq!(state.next_seed("sim"), 1);
        let outcome = Outcome {
            seconds: 1_800.0,
            cpu_seconds: 900.0,
            executions: 7,
            seeds: 500,
            sound_seeds: 400,
            simulated_seconds: 7_200.0,
            finds: vec!["graph, seed 9|fails".into()],
            skipped: None,
        };
        state.add(sim, &outcome, &occasion(), false);
        let text = json!({ "parts": state.parts, "finds": state.finds }).to_string();
        let mut state = State::parse(&text).unwrap();
        state.add(sim, &outcome, &occasion(), false);
        assert_eq!(state.next_seed("sim"), 1_001);
        let page = state.page();
        assert!(page.contains("| 1.00 | 0.50 | 14 | 1000 | 2 |"), "{page}");
        assert!(page.contains("abc1234, sim: graph, seed 9/fails"), "{page}");
    }

    /// The hours of simulation and fuzzing, and the seeds since the last find.
    #[test]
    fn the_page_says_how_many_hours_stand_behind_it() {
        let part = |name| PARTS.iter().find(|part| part.name == name).unwrap();
        let mut state = State::parse("{}").unwrap();
        let found = Outcome {
            seconds: 5_400.0,
            seeds: 700,
            sound_seeds: 200,
            simulated_seconds: 36_000.0,
            finds: vec!["graphs, seed 9".into()],
            ..Outcome::default()
        };
        state.add(part("sim"), &found, &occasion(), false);
        let sound = Outcome {
            seeds: 1_000,
            sound_seeds: 1_000,
            finds: Vec::new(),
            ..found
        };
        state.add(part("sim"), &sound, &occasion(), true);
        state.add(part("nodes"), &sound, &occasion(), true);
        let page = state.page();
        for words in [
            "**4.5 hours of simulation stand behind this page** (3.0 of graphs, 1.5 of whole nodes; 30 hours",
            "0.0 hours of fuzzing",
            "Less than 24 hours of simulation",
            "The last 1200 graphs violated nothing: with a confidence of 95 %, fewer than one in 400 does.",
        ] {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert_eq!(state.next_seed("sim"), 701, "chosen seeds do not count");
    }

    /// A state of an older version has no seeds since the last find.
    #[test]
    fn seeds_go_on_behind_those_of_an_older_state() {
        let state = State::parse(r#"{"parts": {"sim": {"seeds": 8124}}}"#).unwrap();
        assert_eq!(state.next_seed("sim"), 8_125);
    }

    #[test]
    fn a_skipped_part_keeps_its_totals_and_says_why() {
        let mut state = State::parse("{}").unwrap();
        let miri = PARTS.iter().find(|part| part.name == "miri").unwrap();
        state.add(
            miri,
            &Outcome::skipped("miri is not installed"),
            &occasion(),
            false,
        );
        assert_eq!(state.total("miri", "runs"), 0.0);
        assert!(state.page().contains("skipped: miri is not installed"));
    }

    #[test]
    fn a_damaged_state_is_an_error() {
        assert!(State::parse("[]").is_err());
        assert!(State::parse("{").is_err());
    }
}
