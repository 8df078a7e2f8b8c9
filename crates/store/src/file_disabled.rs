//! File of one store, in a build without feature `database`: there is none, and
//! opening one fails with [`StoreError::NotBuilt`]. Has the names of `file`.

use std::path::Path;

use crate::error::StoreError;
use crate::index::LimitExceeded;
use crate::sample::{StoreContents, StoredSample};
use crate::spec::StoreSpec;

/// An open file. It has no value, so the code that writes it is never reached.
#[derive(Debug)]
pub(crate) enum StoreFile {}

impl StoreFile {
    pub fn open(_: &StoreSpec, _: i64) -> Result<(Self, Vec<StoredSample>), StoreError> {
        Err(StoreError::NotBuilt)
    }

    pub fn commit(&mut self, _: &[StoredSample]) -> Result<Vec<LimitExceeded>, StoreError> {
        match *self {}
    }

    pub fn samples(&self) -> usize {
        match *self {}
    }

    pub fn bytes(&self) -> u64 {
        match *self {}
    }
}

/// Reads a store, for tools.
///
/// # Errors
/// [`StoreError::NotBuilt`]: this program has no database.
pub fn read(_: &Path) -> Result<StoreContents, StoreError> {
    Err(StoreError::NotBuilt)
}

#[cfg(test)]
mod tests {
    use crate::retention::{Depth, Retention};
    use crate::spec::Safety;
    use crate::store::Store;

    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn a_store_is_refused_by_name_of_the_feature_and_makes_no_file() {
        let folder = Folder::absent("no-store");
        let spec = StoreSpec {
            folder: folder.to_path_buf(),
            name: "0/camera:info".into(),
            topic: "info".into(),
            type_name: "Text".into(),
            retention: Retention {
                depth: Depth::KeepAll,
                samples_max: 1,
                instances_max: 1,
                samples_per_instance_max: 1,
                bytes_max: 1,
                cleanup_nanos: -1,
            },
            safety: Safety::Disk,
            file_bytes_max: u64::MAX,
        };
        let refused = Store::open(spec, 0, Box::new(|_| {})).unwrap_err();
        assert_eq!(refused, StoreError::NotBuilt);
        assert!(refused.to_string().contains("feature `durable`"));
        assert!(!folder.exists());
    }
}
