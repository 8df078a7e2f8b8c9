//! Temporary folder of one test.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that no other test uses, deleted when dropped. It dereferences to its
/// path.
pub struct Folder {
    parent: PathBuf,
    path: PathBuf,
}

impl Folder {
    /// An empty folder of that name, in a new folder below the system's temporary one.
    pub fn new(name: &str) -> Folder {
        let folder = Folder::absent(name);
        fs::create_dir_all(&folder).expect("a writable temporary folder");
        folder
    }

    /// As [`new`](Self::new), for a folder that the test itself creates, or a file.
    pub fn absent(name: &str) -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let parent = std::env::temp_dir().join(format!("pteros-{}-{count}", std::process::id()));
        // A killed process of the same id left it.
        let _ = fs::remove_dir_all(&parent);
        fs::create_dir_all(&parent).expect("a writable temporary folder");
        let path = parent.join(name);
        Folder { parent, path }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file below the folder, creates the folders between, and returns its
    /// path.
    pub fn write(&self, name: &str, content: &(impl AsRef<[u8]> + ?Sized)) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Writes a file that all may execute, and returns its path.
    pub fn write_script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a file of ours");
        path
    }

    /// The text of a file below the folder.
    pub fn read(&self, name: &str) -> String {
        let path = self.path.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The path of a file below the folder, as text.
    pub fn text(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// The names of the files and folders in it, sorted; none without the folder.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten();
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.map(|n| n.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.parent);
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<OsStr> for Folder {
    fn as_ref(&self) -> &OsStr {
        self.path.as_os_str()
    }
}
