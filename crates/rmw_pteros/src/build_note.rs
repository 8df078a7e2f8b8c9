//! Build note: version and ABI in the library's file, for programs that read it
//! without loading it (`pteros rmw check`, `pteros doctor`).

/// Major and minor version of the `rmw` whose layouts `abi` has.
#[cfg(test)]
pub(crate) const RMW_ABI: &str = env!("RMW_ABI");

const NOTE: &str = concat!(
    "pteros-rmw-build version=",
    env!("CARGO_PKG_VERSION"),
    " rmw=",
    env!("RMW_ABI"),
    ";"
);

/// The note. It is exported so that the linker keeps it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a symbol of C")]
pub static rmw_pteros_cpp_build_note: [u8; NOTE.len()] = {
    let mut bytes = [0; NOTE.len()];
    let mut at = 0;
    while at < NOTE.len() {
        bytes[at] = NOTE.as_bytes()[at];
        at += 1;
    }
    bytes
};
