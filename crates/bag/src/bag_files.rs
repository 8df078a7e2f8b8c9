//! Finds the files of a bag: those in `metadata.yaml`, or all bag files of the folder.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use pteros::msg::regular_file;

use crate::error::BagError;
use crate::file_compression::COMPRESSED_ENDING;
use crate::metadata::{BagMetadata, METADATA_FILE};

/// Bytes of `metadata.yaml` that are read. A thousand topics take one megabyte.
const METADATA_BYTES_MAX: u64 = 64 << 20;

/// Finds the files of a bag, and its metadata.
pub(crate) fn find_files(
    path: &Path,
    problems: &mut Vec<String>,
) -> Result<(Option<BagMetadata>, Vec<PathBuf>), BagError> {
    let not_a_bag = |problem: &str| BagError::NotABag {
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    if path.is_file() {
        return Ok((None, vec![path.to_owned()]));
    }
    if path.exists() && !path.is_dir() {
        return Err(not_a_bag(
            "is a FIFO, socket or device; a bag's files are regular files: copy it into one",
        ));
    }
    if !path.is_dir() {
        let hint = regular_file::close_name_hint(path);
        return Err(not_a_bag(&format!(
            "no such bag{hint}; name a folder that pteros bag record made, or an .mcap, .db3 or .bag file"
        )));
    }
    let metadata = read_metadata(path, problems);
    let known = metadata.iter().flat_map(|known| &known.files);
    let mut found: Vec<PathBuf> = known.map(|file| named_file(path, &file.path)).collect();
    if !found.is_empty() && found.iter().all(|file| file.exists()) {
        return Ok((metadata, found));
    }
    // A missing file may exist under another name.
    let listed = std::fs::read_dir(path).map_err(BagError::io("reading", path))?;
    let mut listed: Vec<PathBuf> = listed
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|file| is_bag_file(file))
        .collect();
    leave_out_copies(&mut listed, problems);
    for missing in found.iter().filter(|file| !file.exists()) {
        problems.push(format!(
            "{}: missing, and {METADATA_FILE} names it",
            missing.display()
        ));
    }
    found.retain(|file| file.exists());
    listed.retain(|file| !found.contains(file));
    found.append(&mut listed);
    if found.is_empty() {
        return Err(not_a_bag(
            "a folder without .mcap, .db3 or .bag files is no bag",
        ));
    }
    // Numeric order: bag_9 before bag_10.
    found.sort_by_key(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split('.').next().unwrap_or_default().to_owned();
        let number = stem
            .rsplit('_')
            .next()
            .and_then(|end| end.parse::<u64>().ok());
        (number, stem)
    });
    Ok((metadata, found))
}

/// Reads the metadata of a folder. If it is unreadable, the files themselves describe the
/// bag.
fn read_metadata(folder: &Path, problems: &mut Vec<String>) -> Option<BagMetadata> {
    let yaml = folder.join(METADATA_FILE);
    let shown = yaml.display();
    let mut content = Vec::new();
    let read = regular_file::open(&yaml)
        .and_then(|file| file.take(METADATA_BYTES_MAX).read_to_end(&mut content));
    if let Err(error) = read {
        problems.push(if error.kind() == std::io::ErrorKind::NotFound {
            format!(
                "{shown}: missing, its recorder was stopped; write it with: pteros bag reindex {}",
                folder.display()
            )
        } else {
            format!("{shown}: {error}; the files are read without it")
        });
        return None;
    }
    let text = String::from_utf8_lossy(&content);
    if let Cow::Owned(_) = &text {
        problems.push(format!(
            "{shown}: it is not UTF-8; wrong bytes are replaced"
        ));
    }
    match BagMetadata::read(&text) {
        Ok(metadata) => Some(metadata),
        Err(problem) => {
            problems.push(format!("{shown}: {problem}"));
            None
        }
    }
}

/// Path of a file that `metadata.yaml` lists. Before version 4 the listed names start
/// with the bag's folder. rosbag2 lists compressed files by their names before
/// compression.
fn named_file(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(name);
    let parent = folder.parent().unwrap_or(Path::new(""));
    let compressed = format!("{name}.{COMPRESSED_ENDING}");
    let others = [parent.join(name), folder.join(compressed)];
    if file.exists() {
        return file;
    }
    let there = others.into_iter().find(|other| other.exists());
    there.unwrap_or(file)
}

/// Skips a compressed file whose uncompressed form exists, too. The uncompressed file is
/// complete: it is removed after the compressed one is durable. A recorder that was
/// killed in between leaves both.
fn leave_out_copies(found: &mut Vec<PathBuf>, problems: &mut Vec<String>) {
    let plain: BTreeSet<PathBuf> = found.iter().cloned().collect();
    found.retain(|file| {
        let is_compressed = file.extension().is_some_and(|end| end == COMPRESSED_ENDING);
        let is_copy = is_compressed && plain.contains(&file.with_extension(""));
        if is_copy {
            problems.push(format!(
                "{}: left out: its recorder was stopped while it compressed, and the file is there without {COMPRESSED_ENDING}; remove this one",
                file.display()
            ));
        }
        !is_copy
    });
}

/// Whether a file in the folder is a bag file, compressed or not.
fn is_bag_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name
        .strip_suffix(&format!(".{COMPRESSED_ENDING}"))
        .unwrap_or(&name);
    [".mcap", ".db3", ".bag"]
        .iter()
        .any(|ending| name.ends_with(ending))
}
