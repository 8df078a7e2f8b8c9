//! The page: files of the folder `page`, which the program contains.

/// A file of the page.
pub struct PageFile {
    /// The path of its URL.
    pub path: &'static str,
    pub content_type: &'static str,
    pub content: &'static [u8],
}

/// Defines the table from names of files and content types.
macro_rules! page_files {
    ($($name:literal $content_type:expr;)*) => {
        /// All files of the page.
        pub const FILES: &[PageFile] = &[$(PageFile {
            path: concat!("/", $name),
            content_type: $content_type,
            content: include_bytes!(concat!("../page/", $name)),
        }),*];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

page_files! {
    "index.html" HTML;
    "app.js" JAVASCRIPT;
}

/// The file at a path.
pub fn find(path: &str) -> Option<&'static PageFile> {
    let path = if path == "/" { "/index.html" } else { path };
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Paths of the files below a folder, as URLs have them.
    fn paths(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{prefix}/{}", entry.file_name().to_string_lossy());
            if entry.file_type().unwrap().is_dir() {
                paths(&entry.path(), &path, found);
            } else {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let mut found = Vec::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        paths(&folder, "", &mut found);
        let is_text = |path: &String| !path.ends_with(".md") && !path.contains("/LICENSE");
        for path in found.iter().filter(|path| is_text(path)) {
            assert!(find(path).is_some(), "{path}: add it to the table");
        }
        assert_eq!(find("/").map(|file| file.path), Some("/index.html"));
        assert!(find("/nothing").is_none());
    }
}
