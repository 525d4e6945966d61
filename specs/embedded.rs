//! The files of this folder as bytes, with the trees of its YAML files from the build script.
//!
//! `conformant-rulebook` reads and validates them.

/// A file of the rulebook.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its path inside the folder, `/` between names.
    pub path: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
    /// Its tree as `conformant_yaml::Form`; empty if it is not a YAML file, or one that YAML readers parse differently.
    pub tree: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The file at a path.
pub fn file(path: &str) -> Option<File> {
    let index = FILES.binary_search_by(|file| file.path.cmp(path)).ok()?;
    Some(FILES[index])
}

/// The text of an existing file.
///
/// # Panics
///
/// If the file does not exist, or is not text.
pub fn text(path: &str) -> &'static str {
    let file = file(path).expect("the file is embedded");
    std::str::from_utf8(file.bytes).expect("the file is text")
}
