//! The files of this folder as bytes, with the trees of its YAML files as the build script has read them.
//!
//! Reads and validates nothing: `conformant-rulebook` does.

/// A file of the rulebook.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its path inside the folder, `/` between names.
    pub path: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
    /// Its tree in the form of `conformant_yaml::Form`; empty where it is no YAML file that all readers understand alike.
    pub tree: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The file at a path.
pub fn file(path: &str) -> Option<File> {
    let index = FILES.binary_search_by(|file| file.path.cmp(path)).ok()?;
    Some(FILES[index])
}

/// The text of a file that is known to be there.
///
/// # Panics
///
/// Where there is no such file, or it is no text: a mistake of the caller.
pub fn text(path: &str) -> &'static str {
    let file = file(path).expect("the file is embedded");
    std::str::from_utf8(file.bytes).expect("the file is text")
}
