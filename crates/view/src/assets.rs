//! Assets: meshes and textures of robot models, by `package://PACKAGE/PATH`. Only files of
//! these kinds below a package's share folder are served, and no path that leaves it.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::client::Client;
use crate::protocol::{self, id};
use crate::server::Server;

/// Kinds of files, as foxglove_bridge has them.
const EXTENSIONS: [&str; 14] = [
    "dae", "fbx", "glb", "gltf", "jpeg", "jpg", "mtl", "obj", "png", "stl", "tif", "tiff", "urdf",
    "webp",
];
/// Largest file.
const BYTES_MAX: u64 = 32 << 20;

/// Answers `fetchAsset`.
///
/// # Errors
/// The request has no id.
pub fn fetch(server: &Server, client: &Client, message: &Value) -> Result<(), String> {
    let request = id(&message["requestId"]).ok_or("fetchAsset: requestId is a number")?;
    let uri = message["uri"].as_str().unwrap_or_default();
    let read = path_of(server, uri).and_then(|path| read(&path));
    let content = match &read {
        Ok(content) => Ok(content.as_slice()),
        Err(reason) => Err(reason.as_str()),
    };
    client.outbox.send(protocol::asset_frame(request, content));
    Ok(())
}

fn path_of(server: &Server, uri: &str) -> Result<PathBuf, String> {
    let (package, path) = parse(uri)?;
    let folder = (server.options.find_package)(package);
    let folder = folder.ok_or_else(|| format!("{uri}: package {package} is not installed here"))?;
    Ok(folder.join(path))
}

/// The package and the path in it, if the kind is served.
fn parse(uri: &str) -> Result<(&str, &Path), String> {
    let rest = uri.strip_prefix("package://");
    let parts = rest.and_then(|rest| rest.split_once('/'));
    let (package, path) = parts.ok_or_else(|| format!("{uri}: not package://PACKAGE/PATH"))?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let path = Path::new(path);
    let mut components = path.components();
    let is_inside = components.all(|part| matches!(part, Component::Normal(_)));
    if package.is_empty() || !package.chars().all(is_name) || !is_inside {
        return Err(format!("{uri}: leaves its package"));
    }
    let extension = path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    if !EXTENSIONS.contains(&extension.as_str()) {
        return Err(format!("{uri}: only {} are served", EXTENSIONS.join(", ")));
    }
    Ok((package, path))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    // Before it is opened: a pipe would block.
    let is_file = std::fs::metadata(path).map_err(fail)?.is_file();
    let mut content = Vec::new();
    if !is_file {
        return Err(format!("{}: no file", path.display()));
    }
    let file = File::open(path).map_err(fail)?;
    file.take(BYTES_MAX + 1)
        .read_to_end(&mut content)
        .map_err(fail)?;
    if content.len() as u64 > BYTES_MAX {
        return Err(format!("{}: above {BYTES_MAX} bytes", path.display()));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_meshes_inside_a_package_are_served() {
        let (package, path) = parse("package://arm/meshes/link.STL").unwrap();
        assert_eq!((package, path), ("arm", Path::new("meshes/link.STL")));
        for wrong in [
            "file:///etc/passwd",
            "package://arm",
            "package://arm/../../secret.stl",
            "package://../a.stl",
            "package://arm//etc/a.stl",
            "package://arm/./a.stl",
            "package://arm/package.xml",
            "package://arm/.stl",
            "package:///a.stl",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
