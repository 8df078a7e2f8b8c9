//! The files of a bag: those that `metadata.yaml` names, or all in the folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::BagError;
use crate::file_compression::COMPRESSED_ENDING;
use crate::metadata::{BagMetadata, METADATA_FILE};

/// The files of a bag, and its metadata.
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
    if !path.is_dir() {
        return Err(not_a_bag(
            "no such bag; name a folder that pteros bag record made, or an .mcap, .db3 or .bag file",
        ));
    }
    let yaml = path.join(METADATA_FILE);
    let metadata = match std::fs::read_to_string(&yaml) {
        Ok(text) => match BagMetadata::read(&text) {
            Ok(metadata) => Some(metadata),
            // The files themselves say as much.
            Err(problem) => {
                problems.push(format!("{}: {problem}", yaml.display()));
                None
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            problems.push(format!(
                "{}: missing, its recorder was stopped; write it with: pteros bag reindex {}",
                yaml.display(),
                path.display()
            ));
            None
        }
        Err(error) => return Err(BagError::io("reading", &yaml)(error)),
    };
    if let Some(known) = &metadata {
        let files = known.files.iter();
        let named: Vec<PathBuf> = files.map(|file| named_file(path, &file.path)).collect();
        if !named.is_empty() {
            return Ok((metadata, named));
        }
    }
    let listed = std::fs::read_dir(path).map_err(BagError::io("reading", path))?;
    let mut found: Vec<PathBuf> = listed
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|file| is_bag_file(file))
        .collect();
    leave_out_copies(&mut found, problems);
    if found.is_empty() {
        return Err(not_a_bag(
            "a folder without .mcap, .db3 or .bag files is no bag",
        ));
    }
    // bag_10 comes after bag_9.
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

/// Where a file lies that `metadata.yaml` names. Before version 4 the names begin with
/// the bag's folder. rosbag2 lists compressed files under `files` by the names that they
/// had before.
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

/// Leaves out a compressed file whose plain form is there too. The plain one is whole: it
/// goes when the compressed one is, and a recorder that was stopped meanwhile leaves both.
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

/// Whether a file in a bag's folder is one of its files, compressed or not.
fn is_bag_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name
        .strip_suffix(&format!(".{COMPRESSED_ENDING}"))
        .unwrap_or(&name);
    [".mcap", ".db3", ".bag"]
        .iter()
        .any(|ending| name.ends_with(ending))
}
