//! Store: the folder of a run. Finished results stay valid whatever happens next.
//!
//! `EXPERIMENT/samples.csv` has every raw sample, one per line.
//! `EXPERIMENT/measured.jsonl` is the journal: a line per finished repeat of a
//! configuration, written after its samples, with their byte range. Samples count
//! only if a complete line names them, and a line only if its samples exist. The
//! rest is cut off before the next repeat. `lab.json` has the extent, so that only
//! a run of the same extent resumes.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::measurement::{Configuration, Delivery, Extent, Measurement, Metric};

/// File of the journal, in the folder of an experiment.
const JOURNAL: &str = "measured.jsonl";

/// A journal entry: one repeat of one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEntry {
    /// Parameters by name.
    pub case: Vec<(String, String)>,
    /// Name of the implementation.
    pub implementation: String,
    /// Number of the repeat, from 0.
    pub repeat: usize,
    /// Single values by name.
    pub values: BTreeMap<String, f64>,
    /// Delivery counts.
    pub delivery: Option<Delivery>,
    /// The reported transport.
    pub path: Option<String>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Share of the machine's CPU time that other processes used, from 0 to 1.
    pub other_load: f64,
    /// Why there is no result: whether the stack lacks the feature, and the reason.
    pub failure: Option<(bool, String)>,
    /// Start of the byte range of its samples.
    samples_begin: u64,
    /// End of the byte range of its samples.
    samples_end: u64,
}

#[derive(Clone, Debug)]
pub enum RepeatOutcome {
    Measured(Measurement),
    /// The stack does not have the feature. It is not run again.
    Unsupported(String),
    /// It failed. The next run tries again.
    Failed(String),
}

impl JournalEntry {
    /// Whether it need not run again.
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
            "implementation": self.implementation,
            "repeat": self.repeat,
            "values": self.values,
            "delivery": self.delivery.map(delivery_json),
            "path": self.path,
            "notes": self.notes,
            "other_load": self.other_load,
            "unsupported": self.failure.as_ref().map(|f| f.0),
            "failure": self.failure.as_ref().map(|f| &f.1),
            "samples_begin": self.samples_begin,
            "samples_end": self.samples_end,
        })
    }

    /// Its line in the journal.
    fn line(&self) -> String {
        format!("{}\n", self.to_json())
    }

    fn from_json(value: &Value) -> Option<Self> {
        let texts = |value: &Value| -> Option<Vec<(String, String)>> {
            let pair = |(k, v): (&String, &Value)| Some((k.clone(), v.as_str()?.to_owned()));
            value.as_object()?.iter().map(pair).collect()
        };
        let values = value["values"].as_object()?.iter();
        let notes = value["notes"].as_array()?.iter();
        Some(Self {
            case: texts(&value["case"])?,
            implementation: value["implementation"].as_str()?.to_owned(),
            repeat: usize::try_from(value["repeat"].as_u64()?).ok()?,
            values: values
                .map(|(name, value)| Some((name.clone(), value.as_f64()?)))
                .collect::<Option<_>>()?,
            delivery: delivery_of(&value["delivery"]),
            path: value["path"].as_str().map(str::to_owned),
            notes: notes
                .map(|note| Some(note.as_str()?.to_owned()))
                .collect::<Option<_>>()?,
            other_load: value["other_load"].as_f64()?,
            failure: value["failure"]
                .as_str()
                .map(|why| (value["unsupported"] == true, why.to_owned())),
            samples_begin: value["samples_begin"].as_u64()?,
            samples_end: value["samples_end"].as_u64()?,
        })
    }
}

/// JSON of delivery counts, for results and journal.
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
    /// Opens or creates the folder for a run of that extent.
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
                    "{} holds a --{before} run, which a --{extent} run cannot resume; choose another folder",
                    place()
                );
            }
            return Ok(store);
        }
        let text = json!({ "format": 1, "extent": extent.name() });
        write(&file, &format!("{text:#}\n"))?;
        Ok(store)
    }

    /// Opens the folder of an earlier run.
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

    /// Its path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether it has any result.
    pub fn has_measured(&self) -> bool {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut journals = folders.map(|folder| folder.path().join(JOURNAL));
        journals.any(|file| file.exists())
    }

    fn journal(&self, id: &str) -> PathBuf {
        self.folder.join(id).join(JOURNAL)
    }

    /// The extent of the run.
    ///
    /// # Errors
    /// The folder has no run.
    pub fn extent(&self) -> Result<Extent> {
        let file = self.folder.join("lab.json");
        let text = fs::read_to_string(&file)
            .with_context(|| format!("{}: no run of the lab there", self.folder.display()))?;
        let value: Value =
            serde_json::from_str(&text).with_context(|| format!("read {}", file.display()))?;
        let all = [Extent::Smoke, Extent::Quick, Extent::Full];
        all.into_iter()
            .find(|extent| value["extent"] == extent.name())
            .with_context(|| format!("{}: unknown extent", file.display()))
    }

    /// Replaces a file of the run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        write(&self.folder.join(name), text)
    }

    /// Reads a file of the run. `None` if it does not exist.
    pub fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }

    /// The journal of an experiment in order, with the last entry of each repeat.
    /// An incomplete line, or one without all its samples, is skipped and measured
    /// again.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn entries(&self, id: &str) -> Result<Vec<JournalEntry>> {
        let file = self.journal(id);
        if !file.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let samples = fs::metadata(self.folder.join(id).join("samples.csv"));
        let length = samples.map_or(0, |samples| samples.len());
        let is_whole = |entry: &JournalEntry| {
            entry.samples_begin <= entry.samples_end && entry.samples_end <= length
        };
        let mut entries: Vec<JournalEntry> = Vec::new();
        // A line without a line break is incomplete.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        for line in text.get(..whole).unwrap_or_default().lines() {
            let value = serde_json::from_str::<Value>(line).ok();
            let entry = value.as_ref().and_then(JournalEntry::from_json);
            let Some(entry) = entry.filter(is_whole) else {
                continue;
            };
            entries.retain(|e| {
                e.repeat != entry.repeat
                    || e.implementation != entry.implementation
                    || e.case != entry.case
            });
            entries.push(entry);
        }
        Ok(entries)
    }

    /// The raw samples of an experiment, of complete repeats only.
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

    /// Opens the files of an experiment for more repeats, and removes incomplete
    /// data.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn append(
        &self,
        id: &str,
        metrics: &'static [Metric],
        parameters: &[&str],
    ) -> Result<Journal> {
        let folder = self.folder.join(id);
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let entries = self.entries(id)?;
        let end = entries.iter().map(|entry| entry.samples_end).max();
        let lines: String = entries.iter().map(JournalEntry::line).collect();
        // Written first, so that no line ever names samples that come later.
        write(&folder.join(JOURNAL), &lines)?;
        let open = |name: &str| {
            let path = folder.join(name);
            let opened = OpenOptions::new().create(true).append(true).open(&path);
            opened.with_context(|| format!("write {}", path.display()))
        };
        let (samples, lines) = (open("samples.csv")?, open(JOURNAL)?);
        let mut journal = Journal {
            folder: folder.clone(),
            metrics,
            samples,
            lines,
            end: end.unwrap_or(0),
        };
        journal.mend(parameters)?;
        Ok(journal)
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    // Atomic replacement, for readers while the disk fills up.
    let new = path.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .with_context(|| format!("write {}", path.display()))
}

/// A raw sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The configuration as `value,value,implementation`.
    pub configuration: String,
    /// Number of the repeat, from 0.
    pub repeat: usize,
    /// The metric's name.
    pub metric: String,
    /// Value in the metric's unit.
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
            configuration: from_end.next()?.to_owned(),
            repeat,
            metric,
            value,
        })
    }
}

/// The journal and samples files, open for appending.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    metrics: &'static [Metric],
    samples: File,
    lines: File,
    end: u64,
}

impl Journal {
    /// Removes the samples of an interrupted repeat, or writes the header.
    fn mend(&mut self, parameters: &[&str]) -> Result<()> {
        let broken = || format!("write {}", self.folder.display());
        if self.end == 0 {
            self.samples.set_len(0).with_context(broken)?;
            let header = [
                parameters,
                &["implementation,repeat,metric,unit,index,value\n"],
            ]
            .concat();
            let header = header.join(",");
            self.samples
                .write_all(header.as_bytes())
                .with_context(broken)?;
            self.end = header.len() as u64;
        }
        self.samples.set_len(self.end).with_context(broken)
    }

    /// Appends a repeat.
    ///
    /// # Errors
    /// The disk is full. Earlier results stay valid.
    pub fn add(
        &mut self,
        configuration: &Configuration,
        repeat: usize,
        other_load: f64,
        outcome: RepeatOutcome,
    ) -> Result<()> {
        let (mut measured, failure) = match outcome {
            RepeatOutcome::Measured(measured) => (measured, None),
            RepeatOutcome::Unsupported(why) => (Measurement::default(), Some((true, why))),
            RepeatOutcome::Failed(why) => (Measurement::default(), Some((false, why))),
        };
        // JSON has no NaN or infinity.
        measured.values.retain(|(name, value)| {
            let is_number = value.is_finite();
            if !is_number {
                measured.notes.push(format!("{name} is no number: {value}"));
            }
            is_number
        });
        let values: Vec<&str> = configuration
            .case
            .iter()
            .map(|(_, value)| value.as_str())
            .collect();
        let head = [values.as_slice(), &[configuration.implementation]]
            .concat()
            .join(",");
        let mut rows = String::new();
        for (name, samples) in &measured.samples {
            let unit = self.metrics.iter().find(|metric| metric.name == *name);
            let unit = unit.map_or("", |metric| metric.unit);
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
        let entry = JournalEntry {
            case: configuration
                .case
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            implementation: configuration.implementation.to_owned(),
            repeat,
            values: measured
                .values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
            delivery: measured.delivery,
            path: measured.path,
            notes: measured.notes,
            other_load,
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
