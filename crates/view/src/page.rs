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
const CSS: &str = "text/css; charset=utf-8";
const SVG: &str = "image/svg+xml";
/// Licences of others, which go with their files.
const TEXT: &str = "text/plain; charset=utf-8";

page_files! {
    "index.html" HTML;
    "actions.js" JAVASCRIPT;
    "app.js" JAVASCRIPT;
    "asked_panel.js" JAVASCRIPT;
    "cdr.js" JAVASCRIPT;
    "channel.js" JAVASCRIPT;
    "clouds.js" JAVASCRIPT;
    "components.js" JAVASCRIPT;
    "connection.js" JAVASCRIPT;
    "diagnostics.js" JAVASCRIPT;
    "displays.js" JAVASCRIPT;
    "dom.js" JAVASCRIPT;
    "form.js" JAVASCRIPT;
    "frames.js" JAVASCRIPT;
    "gamepad.js" JAVASCRIPT;
    "goals.js" JAVASCRIPT;
    "graph.js" JAVASCRIPT;
    "graph_layout.js" JAVASCRIPT;
    "grid.js" JAVASCRIPT;
    "icon.svg" SVG;
    "image_card.js" JAVASCRIPT;
    "images.js" JAVASCRIPT;
    "joints.js" JAVASCRIPT;
    "lifecycle.js" JAVASCRIPT;
    "logs.js" JAVASCRIPT;
    "markers.js" JAVASCRIPT;
    "meshes.js" JAVASCRIPT;
    "panels.css" CSS;
    "params.js" JAVASCRIPT;
    "pixels.js" JAVASCRIPT;
    "plot.js" JAVASCRIPT;
    "pose_tools.js" JAVASCRIPT;
    "reference.js" JAVASCRIPT;
    "robot_model.js" JAVASCRIPT;
    "rviz.js" JAVASCRIPT;
    "rviz_files.js" JAVASCRIPT;
    "scene.js" JAVASCRIPT;
    "schema.js" JAVASCRIPT;
    "schemas.js" JAVASCRIPT;
    "services.js" JAVASCRIPT;
    "socket.js" JAVASCRIPT;
    "style.css" CSS;
    "teleop.js" JAVASCRIPT;
    "tf.js" JAVASCRIPT;
    "topics.js" JAVASCRIPT;
    "tree.js" JAVASCRIPT;
    "urdf.js" JAVASCRIPT;
    "viewport.js" JAVASCRIPT;
    "xml.js" JAVASCRIPT;
    "vendor/three/ColladaLoader.js" JAVASCRIPT;
    "vendor/three/LICENSE" TEXT;
    "vendor/three/OBJLoader.js" JAVASCRIPT;
    "vendor/three/OrbitControls.js" JAVASCRIPT;
    "vendor/three/STLLoader.js" JAVASCRIPT;
    "vendor/three/TGALoader.js" JAVASCRIPT;
    "vendor/three/three.core.min.js" JAVASCRIPT;
    "vendor/three/three.module.min.js" JAVASCRIPT;
    "vendor/uplot/LICENSE" TEXT;
    "vendor/uplot/uPlot.iife.min.js" JAVASCRIPT;
    "vendor/uplot/uPlot.min.css" CSS;
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
        for path in found.iter().filter(|path| !path.ends_with(".md")) {
            assert!(find(path).is_some(), "{path}: add it to the table");
        }
        assert_eq!(find("/").map(|file| file.path), Some("/index.html"));
        assert!(find("/nothing").is_none());
    }
}
