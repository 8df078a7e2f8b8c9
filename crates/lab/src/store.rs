//! The folder of a run: what was measured stays there, whatever happens next.
//!
//! `EXPERIMENT/samples.csv` has every raw sample, a line each, `EXPERIMENT/measured.jsonl`
//! a line per finished repeat of a cell, written after its samples and with the bytes
//! of the file that these are. Only samples that a whole line speaks of count, and a line counts only
//! where its samples are there; the rest is cut off before the next repeat. `lab.json` says how much was wanted, so that a run is gone on with only
//! by one of its kind.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::experiment::{Cell, Delivery, Experiment, Extent, Measured};
use crate::experiments;

/// One repeat of one cell as it was written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Parameters by name.
    pub case: Vec<(String, String)>,
    /// The contestant's name.
    pub contestant: String,
    /// Counted from 0.
    pub repeat: usize,
    /// Single figures by name.
    pub figures: BTreeMap<String, f64>,
    /// What became of the messages.
    pub delivery: Option<Delivery>,
    /// The path that the stack told.
    pub path: Option<String>,
    /// What else is to be said.
    pub notes: Vec<String>,
    /// The share of the machine's CPU time that others used meanwhile, 0 to 1.
    pub others: f64,
    /// Why there is nothing; the stack has no such thing, or it failed.
    pub failure: Option<(bool, String)>,
    /// Its samples are the bytes from here …
    samples_begin: u64,
    /// … up to here.
    samples_end: u64,
}

/// What a repeat came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Measured.
    Measured(Measured),
    /// The stack has no such thing: it is not asked again.
    Unsupported(String),
    /// It failed: another run asks again.
    Failed(String),
}

impl Entry {
    /// Whether it need not be asked again.
    pub fn is_final(&self) -> bool {
        self.failure
            .as_ref()
            .is_none_or(|(unsupported, _)| *unsupported)
    }

    fn to_json(&self) -> Value {
        let case: serde_json::Map<String, Value> = self
            .case
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        json!({
            "case": case,
            "contestant": self.contestant,
            "repeat": self.repeat,
            "figures": self.figures,
            "delivery": self.delivery.map(delivery_json),
            "path": self.path,
            "notes": self.notes,
            "others": self.others,
            "unsupported": self.failure.as_ref().map(|f| f.0),
            "failure": self.failure.as_ref().map(|f| &f.1),
            "samples_begin": self.samples_begin,
            "samples_end": self.samples_end,
        })
    }

    /// As it stands in the journal.
    fn line(&self) -> String {
        format!("{}\n", self.to_json())
    }

    fn from_json(value: &Value) -> Option<Self> {
        let texts = |value: &Value| -> Option<Vec<(String, String)>> {
            let pair = |(k, v): (&String, &Value)| Some((k.clone(), v.as_str()?.to_owned()));
            value.as_object()?.iter().map(pair).collect()
        };
        let figures = value["figures"].as_object()?.iter();
        let notes = value["notes"].as_array()?.iter();
        Some(Self {
            case: texts(&value["case"])?,
            contestant: value["contestant"].as_str()?.to_owned(),
            repeat: usize::try_from(value["repeat"].as_u64()?).ok()?,
            figures: figures
                .map(|(name, value)| Some((name.clone(), value.as_f64()?)))
                .collect::<Option<_>>()?,
            delivery: delivery_of(&value["delivery"]),
            path: value["path"].as_str().map(str::to_owned),
            notes: notes
                .map(|note| Some(note.as_str()?.to_owned()))
                .collect::<Option<_>>()?,
            others: value["others"].as_f64()?,
            failure: value["failure"]
                .as_str()
                .map(|why| (value["unsupported"] == true, why.to_owned())),
            samples_begin: value["samples_begin"].as_u64()?,
            samples_end: value["samples_end"].as_u64()?,
        })
    }
}

/// For results and journal alike.
pub fn delivery_json(d: Delivery) -> Value {
    json!({
        "expected": d.expected,
        "received": d.received,
        "lost": d.lost(),
        "duplicates": d.duplicates,
        "disordered": d.disordered,
        "late": d.late,
        "initial_loss": d.initial_loss,
    })
}

fn delivery_of(value: &Value) -> Option<Delivery> {
    let of = |name: &str| value[name].as_u64();
    Some(Delivery {
        expected: of("expected")?,
        received: of("received")?,
        duplicates: of("duplicates")?,
        disordered: of("disordered")?,
        late: of("late")?,
        initial_loss: of("initial_loss")?,
    })
}

/// The folder of a run.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Opens or makes the folder for a run of that extent.
    ///
    /// # Errors
    /// It cannot be written, or has a run of another extent.
    pub fn create(folder: &Path, extent: Extent) -> Result<Self> {
        let place = || format!("--out {}", folder.display());
        fs::create_dir_all(folder).with_context(place)?;
        let store = Self {
            folder: folder.to_owned(),
        };
        let file = folder.join("lab.json");
        if file.exists() {
            let before = store.extent()?;
            if before != extent {
                bail!(
                    "{} holds a --{before} run, which a --{extent} run cannot go on with; choose another folder",
                    place()
                );
            }
            return Ok(store);
        }
        let text = json!({ "format": 1, "extent": extent.name() });
        write(&file, &format!("{text:#}\n"))?;
        Ok(store)
    }

    /// Opens a folder that a run has left.
    ///
    /// # Errors
    /// There is none.
    pub fn open(folder: &Path) -> Result<Self> {
        let store = Self {
            folder: folder.to_owned(),
        };
        store.extent()?;
        Ok(store)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether anything was written down.
    pub fn has_measured(&self) -> bool {
        let mut journals = experiments::ALL.iter().map(|e| self.journal(e.id));
        journals.any(|file| file.exists())
    }

    fn journal(&self, id: &str) -> PathBuf {
        self.folder.join(id).join("measured.jsonl")
    }

    /// How much was wanted.
    ///
    /// # Errors
    /// No run lies there.
    pub fn extent(&self) -> Result<Extent> {
        let file = self.folder.join("lab.json");
        let text = fs::read_to_string(&file)
            .with_context(|| format!("{}: no run of the lab lies there", self.folder.display()))?;
        let value: Value =
            serde_json::from_str(&text).with_context(|| format!("read {}", file.display()))?;
        let all = [Extent::Smoke, Extent::Quick, Extent::Full];
        all.into_iter()
            .find(|extent| value["extent"] == extent.name())
            .with_context(|| format!("{}: no extent that is known", file.display()))
    }

    /// Writes a file of the run anew.
    ///
    /// # Errors
    /// The system's, with the file.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        write(&self.folder.join(name), text)
    }

    /// Reads a file of the run; `None` if it is not there.
    pub fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }

    /// What was written down of an experiment, in order; of repeats that were asked
    /// again the last. A line that was cut off, or whose samples are not all there, is
    /// none: that repeat is measured again.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn entries(&self, id: &str) -> Result<Vec<Entry>> {
        let file = self.journal(id);
        if !file.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let samples = fs::metadata(self.folder.join(id).join("samples.csv"));
        let length = samples.map_or(0, |samples| samples.len());
        let is_whole =
            |entry: &Entry| entry.samples_begin <= entry.samples_end && entry.samples_end <= length;
        let mut entries: Vec<Entry> = Vec::new();
        // What follows the last line break is not whole, whatever it looks like.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        for line in text.get(..whole).unwrap_or_default().lines() {
            let value = serde_json::from_str::<Value>(line).ok();
            let entry = value.as_ref().and_then(Entry::from_json);
            let Some(entry) = entry.filter(is_whole) else {
                continue;
            };
            entries.retain(|e| {
                e.repeat != entry.repeat || e.contestant != entry.contestant || e.case != entry.case
            });
            entries.push(entry);
        }
        Ok(entries)
    }

    /// The raw samples of an experiment, whole repeats only.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn samples(&self, id: &str) -> Result<Vec<Sample>> {
        let file = self.folder.join(id).join("samples.csv");
        if !file.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        let mut samples = Vec::new();
        for entry in self.entries(id)? {
            let place = |at| usize::try_from(at).unwrap_or(usize::MAX);
            let range = place(entry.samples_begin)..place(entry.samples_end);
            let lines = text.get(range).unwrap_or_default();
            for line in String::from_utf8_lossy(lines).lines() {
                let sample = Sample::parse(line);
                samples.push(sample.with_context(|| format!("{}: {line:?}", file.display()))?);
            }
        }
        Ok(samples)
    }

    /// Where the next repeats of an experiment are written, behind what is whole; what
    /// is not is gone then.
    ///
    /// # Errors
    /// The system's, with the file.
    pub fn append(&self, experiment: &Experiment, parameters: &[&str]) -> Result<Journal> {
        let folder = self.folder.join(experiment.id);
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let entries = self.entries(experiment.id)?;
        let end = entries.iter().map(|entry| entry.samples_end).max();
        let lines: String = entries.iter().map(Entry::line).collect();
        // First of all, so that no line ever speaks of samples that come later.
        write(&folder.join("measured.jsonl"), &lines)?;
        let open = |name: &str| {
            let path = folder.join(name);
            let opened = OpenOptions::new().create(true).append(true).open(&path);
            opened.with_context(|| format!("write {}", path.display()))
        };
        let (samples, lines) = (open("samples.csv")?, open("measured.jsonl")?);
        let mut journal = Journal {
            folder: folder.clone(),
            samples,
            lines,
            end: end.unwrap_or(0),
        };
        journal.mend(parameters)?;
        Ok(journal)
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    // Whole or not at all, for whoever reads while a disk fills up.
    let new = path.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .with_context(|| format!("write {}", path.display()))
}

/// A raw sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// `value,value,contestant`: the cell.
    pub cell: String,
    /// Counted from 0.
    pub repeat: usize,
    /// The metric's name.
    pub metric: String,
    /// In the metric's unit.
    pub value: f64,
}

impl Sample {
    fn parse(line: &str) -> Option<Self> {
        let mut from_end = line.rsplitn(6, ',');
        let value = from_end.next()?.parse().ok()?;
        let (_index, _unit) = (from_end.next()?, from_end.next()?);
        let metric = from_end.next()?.to_owned();
        let repeat = from_end.next()?.parse().ok()?;
        Some(Self {
            cell: from_end.next()?.to_owned(),
            repeat,
            metric,
            value,
        })
    }
}

/// The files that grow.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    samples: File,
    lines: File,
    end: u64,
}

impl Journal {
    /// Cuts off the samples that an interrupted repeat has left, or begins them.
    fn mend(&mut self, parameters: &[&str]) -> Result<()> {
        let broken = || format!("write {}", self.folder.display());
        if self.end == 0 {
            self.samples.set_len(0).with_context(broken)?;
            let header = [parameters, &["contestant,repeat,metric,unit,index,value\n"]].concat();
            let header = header.join(",");
            self.samples
                .write_all(header.as_bytes())
                .with_context(broken)?;
            self.end = header.len() as u64;
        }
        self.samples.set_len(self.end).with_context(broken)
    }

    /// Writes a repeat down.
    ///
    /// # Errors
    /// The system's, with the folder: the disk is full. What was written before
    /// stays good.
    pub fn add(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        repeat: usize,
        others: f64,
        outcome: Outcome,
    ) -> Result<()> {
        let (mut measured, failure) = match outcome {
            Outcome::Measured(measured) => (measured, None),
            Outcome::Unsupported(why) => (Measured::default(), Some((true, why))),
            Outcome::Failed(why) => (Measured::default(), Some((false, why))),
        };
        // JSON has no word for what is no number.
        measured.figures.retain(|(name, value)| {
            let is_number = value.is_finite();
            if !is_number {
                measured.notes.push(format!("{name} is no number: {value}"));
            }
            is_number
        });
        let values: Vec<&str> = cell.case.iter().map(|(_, value)| value.as_str()).collect();
        let head = [values.as_slice(), &[cell.contestant]].concat().join(",");
        let mut rows = String::new();
        for (name, samples) in &measured.samples {
            let unit = experiment.metric(name).map_or("", |metric| metric.unit);
            for (index, value) in samples.iter().enumerate() {
                rows += &format!("{head},{repeat},{name},{unit},{index},{value}\n");
            }
        }
        let full = || {
            format!(
                "write to {}; what was measured before is kept",
                self.folder.display()
            )
        };
        self.samples.write_all(rows.as_bytes()).with_context(full)?;
        let entry = Entry {
            case: cell
                .case
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            contestant: cell.contestant.to_owned(),
            repeat,
            figures: measured
                .figures
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
            delivery: measured.delivery,
            path: measured.path,
            notes: measured.notes,
            others,
            failure,
            samples_begin: self.end,
            samples_end: self.end + rows.len() as u64,
        };
        self.lines
            .write_all(entry.line().as_bytes())
            .with_context(full)?;
        self.end = entry.samples_end;
        Ok(())
    }
}
