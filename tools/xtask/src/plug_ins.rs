//! The middleware plug-ins: one package and one library per distribution of ROS 2.

use std::path::Path;

/// What every distribution calls the library once it is installed.
pub const INSTALLED: &str = "librmw_pteros_cpp.so";

/// The plug-in of a distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlugInPackage {
    pub distribution: &'static str,
    /// Major and minor version of `rmw`.
    pub rmw_abi: &'static str,
    /// The package of cargo.
    pub package: &'static str,
    /// The library that cargo builds.
    pub library: &'static str,
}

/// All of them, the default one first.
pub const PLUG_INS: [PlugInPackage; 4] = [
    PlugInPackage {
        distribution: "jazzy",
        rmw_abi: "7.3",
        package: "pteros-rmw",
        library: INSTALLED,
    },
    PlugInPackage {
        distribution: "humble",
        rmw_abi: "6.1",
        package: "pteros-rmw-humble",
        library: "librmw_pteros_cpp_humble.so",
    },
    PlugInPackage {
        distribution: "kilted",
        rmw_abi: "7.8",
        package: "pteros-rmw-kilted",
        library: "librmw_pteros_cpp_kilted.so",
    },
    PlugInPackage {
        distribution: "lyrical",
        rmw_abi: "7.10",
        package: "pteros-rmw-lyrical",
        library: "librmw_pteros_cpp_lyrical.so",
    },
];

/// Bytes of all libraries in a folder.
///
/// # Errors
/// One is not there.
pub fn bytes_in(folder: &Path) -> std::io::Result<u64> {
    let sizes = PLUG_INS.map(|plug_in| folder.join(plug_in.library).metadata());
    sizes.into_iter().map(|size| Ok(size?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::root;

    #[test]
    fn the_list_is_that_of_the_build_script_and_of_the_manifests() {
        let folder = root().join("crates/rmw_pteros");
        let script = std::fs::read_to_string(folder.join("build.rs")).unwrap();
        assert_eq!(script.matches("    (\"pteros-rmw").count(), PLUG_INS.len());
        for plug_in in PLUG_INS {
            let row = (plug_in.package, plug_in.distribution, plug_in.rmw_abi);
            assert!(script.contains(&format!("{row:?}")), "{row:?}");
            let manifest = match plug_in.library {
                INSTALLED => folder.join("Cargo.toml"),
                _ => folder.join(format!("distributions/{}/Cargo.toml", plug_in.distribution)),
            };
            let text = std::fs::read_to_string(manifest).unwrap();
            assert!(text.contains(&format!("name = {:?}\n", plug_in.package)));
            let library = plug_in.library.trim_start_matches("lib");
            let library = library.trim_end_matches(".so");
            assert!(
                text.contains(&format!("[lib]\nname = {library:?}\n")),
                "{text}"
            );
        }
    }

    /// Cargo cannot share the list of dependencies between packages.
    #[test]
    fn the_packages_differ_only_in_their_names() {
        let folder = root().join("crates/rmw_pteros");
        let dependencies = |path: &str| {
            let text = std::fs::read_to_string(folder.join(path)).unwrap();
            text.split_once("[dependencies]\n").unwrap().1.to_owned()
        };
        for plug_in in &PLUG_INS[1..] {
            let path = format!("distributions/{}/Cargo.toml", plug_in.distribution);
            assert_eq!(dependencies(&path), dependencies("Cargo.toml"), "{path}");
        }
    }
}
