//! File of one store: a table of samples in the order in which they were written,
//! and a table that describes them. Every change is one transaction: it is written
//! whole, or not at all.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::Once;

use redb::backends::FileBackend;
use redb::{
    Builder, CommitError, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend,
    StorageError, TableDefinition, TableError, TransactionError,
};

use crate::backend::Backend;
use crate::error::{StoreError, io_error};
use crate::index::{Index, LimitExceeded};
use crate::sample::{StoreContents, StoredSample};
use crate::spec::{Safety, StoreSpec};

const SAMPLES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("samples");
const ABOUT: TableDefinition<'_, &str, &str> = TableDefinition::new("about");
const NUMBERS: TableDefinition<'_, &str, u32> = TableDefinition::new("numbers");

/// Version of the tables' format.
const FORMAT: u32 = 1;

/// The database's cache; the file is read once, when it is opened.
const CACHE_BYTES: usize = 4 << 20;

const UNWRITABLE: &str = "make it writable, or name another folder in PTEROS_STORE_DIR";
const UNREADABLE: &str = "check the disk and the rights of the file";

/// An open file.
#[derive(Debug)]
pub(crate) struct StoreFile {
    path: PathBuf,
    database: Database,
    index: Index,
}

impl StoreFile {
    /// Opens or creates the file, and returns its samples, oldest first. A damaged
    /// file of a store that need not survive a power cut is moved aside. Any other
    /// damaged file is left unchanged and is an error.
    pub fn open(
        spec: &StoreSpec,
        wall_nanos: i64,
    ) -> Result<(Self, Vec<StoredSample>), StoreError> {
        match Self::open_once(spec, wall_nanos) {
            Err(StoreError::Corrupt { path, reason }) if spec.safety == Safety::Process => {
                let aside = move_aside(&path)?;
                tracing::warn!(
                    "store {} is damaged ({reason}), as a power cut leaves a transient one; moved \
                     to {} and started empty",
                    path.display(),
                    aside.display()
                );
                Self::open_once(spec, wall_nanos)
            }
            other => other,
        }
    }

    fn open_once(
        spec: &StoreSpec,
        wall_nanos: i64,
    ) -> Result<(Self, Vec<StoredSample>), StoreError> {
        let path = spec.path();
        let database = catch_panics(&path, || database(spec, &path))?;
        let known = catch_panics(&path, || contents(&database, &path))?;
        let mut file = Self {
            index: Index::new(spec.retention),
            path,
            database,
        };
        let Some((contents, numbers)) = known else {
            file.found(spec)?;
            return Ok((file, Vec::new()));
        };
        if (&contents.topic, &contents.type_name) != (&spec.topic, &spec.type_name) {
            return Err(StoreError::Other {
                path: file.path,
                topic: contents.topic,
                type_name: contents.type_name,
                wanted: format!("{:?} of type {:?}", spec.topic, spec.type_name),
            });
        }
        let samples = file.apply_retention(wall_nanos, numbers, contents.samples)?;
        Ok((file, samples))
    }

    /// Applies the current retention to the samples found.
    fn apply_retention(
        &mut self,
        wall_nanos: i64,
        numbers: Vec<u64>,
        samples: Vec<StoredSample>,
    ) -> Result<Vec<StoredSample>, StoreError> {
        let mut kept: BTreeMap<u64, StoredSample> = BTreeMap::new();
        for (number, sample) in numbers.into_iter().zip(samples) {
            self.index.restore(number, &sample);
            kept.insert(number, sample);
        }
        let mut leaving = self.index.clean_up(wall_nanos);
        let (held, bytes) = (self.index.len(), self.index.bytes());
        let Some(shrunk) = self.index.shrink() else {
            let retention = self.index.retention();
            return Err(StoreError::Full {
                path: self.path.clone(),
                samples: held,
                bytes,
                samples_max: retention.samples_max(),
                bytes_max: retention.bytes_max,
            });
        };
        leaving.extend(shrunk);
        for number in &leaving {
            kept.remove(number);
        }
        if !leaving.is_empty() {
            self.write(&leaving, &BTreeMap::new())?;
        }
        Ok(kept.into_values().collect())
    }

    /// Adds samples, oldest first, as one transaction. Returns the exceeded limits
    /// of samples that were not added. After an error the file must be opened
    /// again.
    pub fn commit(&mut self, batch: &[StoredSample]) -> Result<Vec<LimitExceeded>, StoreError> {
        let mut arriving: BTreeMap<u64, &StoredSample> = BTreeMap::new();
        let mut leaving = Vec::new();
        let mut refused = Vec::new();
        for sample in batch {
            let number = self.index.next_number();
            match self.index.admit(number, sample) {
                Ok(replaced) => {
                    arriving.insert(number, sample);
                    leaving.extend(replaced);
                }
                Err(exceeded) => refused.push(exceeded),
            }
            if sample.disposed {
                leaving.extend(self.index.clean_up(sample.ended_nanos));
            }
        }
        // Samples that were added and removed within the batch are never written.
        leaving.retain(|number| arriving.remove(number).is_none());
        if !(arriving.is_empty() && leaving.is_empty()) {
            self.write(&leaving, &arriving)?;
        }
        Ok(refused)
    }

    pub fn samples(&self) -> usize {
        self.index.len()
    }

    pub fn bytes(&self) -> u64 {
        self.index.bytes()
    }

    fn found(&self, spec: &StoreSpec) -> Result<(), StoreError> {
        self.transaction(|change| {
            let mut numbers = change.open_table(NUMBERS)?;
            numbers.insert("format", FORMAT)?;
            let mut about = change.open_table(ABOUT)?;
            about.insert("name", spec.name.as_str())?;
            about.insert("topic", spec.topic.as_str())?;
            about.insert("type", spec.type_name.as_str())?;
            change.open_table(SAMPLES)?;
            Ok(())
        })
    }

    fn write(
        &self,
        leaving: &[u64],
        arriving: &BTreeMap<u64, &StoredSample>,
    ) -> Result<(), StoreError> {
        self.transaction(|change| {
            let mut samples = change.open_table(SAMPLES)?;
            for number in leaving {
                samples.remove(number)?;
            }
            for (number, sample) in arriving {
                samples.insert(number, sample.encode().as_slice())?;
            }
            Ok(())
        })
    }

    fn transaction(
        &self,
        fill: impl FnOnce(&redb::WriteTransaction) -> Result<(), FileFailure>,
    ) -> Result<(), StoreError> {
        catch_panics(&self.path, || {
            let change = self.database.begin_write()?;
            fill(&change)?;
            Ok(change.commit()?)
        })
    }
}

/// Reads a store that no publisher has open, for tools.
///
/// # Errors
/// See [`StoreError`]. A file that does not exist is not created.
pub fn read(path: &Path) -> Result<StoreContents, StoreError> {
    let open = || {
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE_BYTES);
        let database = builder.open(path)?;
        contents(&database, path)
    };
    match catch_panics(path, open)? {
        Some((contents, _)) => Ok(contents),
        None => Err(StoreError::Corrupt {
            path: path.to_owned(),
            reason: "the description of its content is missing".into(),
        }),
    }
}

fn database(spec: &StoreSpec, path: &Path) -> Result<Database, FileFailure> {
    let (file, is_new) = backend(spec, path)?;
    let backend = Backend {
        file,
        syncs: spec.safety == Safety::Disk,
        file_bytes_max: spec.file_bytes_max,
    };
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    let mut database = builder.create_with_backend(backend)?;
    if !is_new {
        // The whole file is read anyway; this also detects bit errors of the disk.
        database.check_integrity()?;
    }
    Ok(database)
}

/// Opens or creates the file. Returns it, and whether it is new.
fn backend(spec: &StoreSpec, path: &Path) -> Result<(Box<dyn StorageBackend>, bool), FileFailure> {
    #[cfg(test)]
    if let Some(simulated) = crate::simulated_disk::backend_of_thread() {
        return Ok(simulated);
    }
    fs::create_dir_all(&spec.folder)?;
    let is_new = !path.exists();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    if is_new && spec.safety == Safety::Disk {
        // Otherwise a power cut may lose the file's name.
        fs::File::open(&spec.folder)?.sync_all()?;
    }
    Ok((Box::new(FileBackend::new(file)?), is_new))
}

/// The content of a database with its sample numbers; `None` when it is new.
fn contents(
    database: &Database,
    path: &Path,
) -> Result<Option<(StoreContents, Vec<u64>)>, FileFailure> {
    let view = database.begin_read()?;
    let numbers = match view.open_table(NUMBERS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        other => other?,
    };
    let format = numbers.get("format")?.map_or(0, |format| format.value());
    if format != FORMAT {
        return Err(FileFailure::Store(if format > FORMAT {
            StoreError::Newer {
                path: path.to_owned(),
                found: format,
                known: FORMAT,
            }
        } else {
            corrupt(path, format!("its format is {format}"))
        }));
    }
    let about = view.open_table(ABOUT)?;
    let text = |key: &str| -> Result<String, FileFailure> {
        let value = about.get(key)?;
        Ok(value.map_or_else(String::new, |text| text.value().to_owned()))
    };
    let mut contents = StoreContents {
        name: text("name")?,
        topic: text("topic")?,
        type_name: text("type")?,
        samples: Vec::new(),
    };
    let mut places = Vec::new();
    for entry in view.open_table(SAMPLES)?.iter()? {
        let (number, value) = entry?;
        let Some(sample) = StoredSample::decode(value.value()) else {
            let reason = format!("sample {} is too short for its header", number.value());
            return Err(FileFailure::Store(corrupt(path, reason)));
        };
        places.push(number.value());
        contents.samples.push(sample);
    }
    Ok(Some((contents, places)))
}

/// Renames the file to a free name beside it.
fn move_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let free = (1..=DAMAGED_MAX)
        .map(|n| path.with_extension(format!("damaged-{n}")))
        .find(|candidate| !candidate.exists());
    let Some(aside) = free else {
        let reason = format!("{DAMAGED_MAX} damaged files are in its folder already");
        return Err(corrupt(path, reason));
    };
    match fs::rename(path, &aside) {
        Ok(()) => Ok(aside),
        Err(e) => Err(io_error(path, "move it aside", e, UNWRITABLE)),
    }
}

/// Limit of damaged transient stores kept beside a new one.
const DAMAGED_MAX: u32 = 9;

/// An error before the file's name is known.
enum FileFailure {
    Store(StoreError),
    Io(io::Error),
    Database(redb::Error),
}

impl From<io::Error> for FileFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

macro_rules! database_failures {
    ($( $error:ty ),+) => {
        $( impl From<$error> for FileFailure {
            fn from(error: $error) -> Self {
                Self::Database(error.into())
            }
        } )+
    };
}

database_failures!(
    DatabaseError,
    TransactionError,
    TableError,
    StorageError,
    CommitError
);

thread_local! {
    /// Whether a panic of this thread is caught, and becomes an error.
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the process's panic hook quiet about panics that become errors, from the first
/// use on.
fn silence_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if !CATCHES.get() {
                report(panic);
            }
        }));
    });
}

/// Runs `work` on the file and converts its errors. The database asserts what it
/// reads in places: a panic there means a damaged file.
fn catch_panics<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, FileFailure>,
) -> Result<T, StoreError> {
    silence_caught_panics();
    let outer = CATCHES.replace(true);
    let caught = catch_unwind(AssertUnwindSafe(work));
    CATCHES.set(outer);
    match caught {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(named(path, failure)),
        Err(_) => Err(corrupt(path, "the database cannot read it".into())),
    }
}

fn named(path: &Path, failure: FileFailure) -> StoreError {
    use redb::Error;
    match failure {
        FileFailure::Store(error) => error,
        FileFailure::Io(e) => io_error(path, "open it", e, UNWRITABLE),
        FileFailure::Database(Error::DatabaseAlreadyOpen) => StoreError::Locked {
            path: path.to_owned(),
        },
        // The file is not a database, or too short.
        FileFailure::Database(Error::Io(e))
            if [io::ErrorKind::InvalidData, io::ErrorKind::UnexpectedEof].contains(&e.kind()) =>
        {
            corrupt(path, e.to_string())
        }
        FileFailure::Database(Error::Io(e)) if e.kind() == io::ErrorKind::StorageFull => {
            io_error(path, "write it", e, "free space on the disk")
        }
        FileFailure::Database(Error::Io(e)) => io_error(path, "read or write it", e, UNREADABLE),
        FileFailure::Database(Error::UpgradeRequired(found)) => corrupt(
            path,
            format!("the database's own format {found} is no longer read"),
        ),
        FileFailure::Database(error) => corrupt(path, error.to_string()),
    }
}

fn corrupt(path: &Path, reason: String) -> StoreError {
    StoreError::Corrupt {
        path: path.to_owned(),
        reason,
    }
}
