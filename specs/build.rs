//! Embeds the files of this folder, and reads its YAML when the program is built: that takes longer than most commands take
//! for all else.
//!
//! Validates nothing: a file that cannot be read as YAML has no tree, and the program reports why.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes the folders in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=.");
    let out = std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(&folder) {
        let entry = entry?;
        let names: Vec<_> = entry
            .path()
            .strip_prefix(&folder)?
            .iter()
            .map(|name| name.to_string_lossy())
            .collect();
        let hidden = names.iter().any(|name| name.starts_with('.'));
        let is_data = entry
            .path()
            .extension()
            .is_some_and(|e| e == "yaml" || e == "lock" || e == "md");
        if entry.file_type().is_file() && is_data && !hidden {
            files.push((names.join("/"), entry.into_path()));
        }
    }
    files.sort();
    let mut code = String::from(
        "/// All files, sorted by path.\n#[expect(clippy::unreadable_literal, reason = \"generated\")]\npub static FILES: &[File] = &[\n",
    );
    let mut trees = Vec::new();
    for (path, place) in &files {
        let tree = tree(place)?;
        let (start, end) = (trees.len(), trees.len() + tree.len());
        trees.extend(tree);
        writeln!(
            code,
            "    File {{ path: {path:?}, bytes: include_bytes!({:?}), tree: TREES.split_at({start}).1.split_at({}).0 }},",
            place.display().to_string(),
            end - start
        )?;
    }
    code.push_str("];\n");
    writeln!(
        code,
        "const TREES: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/trees\"));"
    )?;
    std::fs::write(Path::new(&out).join("trees"), trees)?;
    Ok(std::fs::write(Path::new(&out).join("files.rs"), code)?)
}

/// The tree of a YAML file in its compact form; empty where there is none.
fn tree(place: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut form = Vec::new();
    if place.extension().is_some_and(|e| e == "yaml") {
        let text = std::fs::read_to_string(place)?;
        if let Ok(node) = conformant_yaml::read(&text) {
            let mut ambiguous = Vec::new();
            conformant_yaml::ambiguous(&node, &text, &mut ambiguous);
            if ambiguous.is_empty() {
                conformant_yaml::write(&node, &mut form);
            }
        }
    }
    Ok(form)
}
