//! Where the configuration is: the file itself, and the lines in it at which targets are written.

use conformant_rulebook::service::ServiceIndex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where each target is written: `FILE:LINE` by service; nothing for what flags alone say.
pub(in crate::cli) fn places(
    config: Option<&Path>,
    index: &ServiceIndex,
) -> BTreeMap<String, String> {
    let Some(path) = found(config) else {
        return BTreeMap::new();
    };
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let shown = path.display().to_string();
    let mut lines = text
        .lines()
        .enumerate()
        .skip_while(|(_, line)| !line.starts_with("targets:"));
    let first = lines.next().map(|(at, _)| at);
    let own = lines.take_while(|(_, line)| line.starts_with([' ', '#']) || line.trim().is_empty());
    let named = own.filter_map(|(at, line)| {
        let name = line.trim_start().split(':').next()?;
        index
            .is_target(name)
            .then(|| (name.to_owned(), format!("{shown}:{}", at + 1)))
    });
    let named: BTreeMap<String, String> = named.collect();
    match first {
        // All in one line: `targets: {flow: {…}}`.
        Some(at) if named.is_empty() => index
            .targets()
            .into_iter()
            .map(|name| (name.to_owned(), format!("{shown}:{}", at + 1)))
            .collect(),
        _ => named,
    }
}

/// The configuration file that is given, or else found; relative to the current folder where it lies below.
pub(in crate::cli) fn found(given: Option<&Path>) -> Option<PathBuf> {
    let path = given.map(Path::to_owned).or_else(find)?;
    let here = std::env::current_dir().unwrap_or_default();
    Some(path.strip_prefix(here).map(Path::to_owned).unwrap_or(path))
}

/// `conformant.yaml` from the current folder upwards to the repository's root.
pub(super) fn find() -> Option<PathBuf> {
    let mut folder = std::env::current_dir().ok()?;
    loop {
        let file = folder.join("conformant.yaml");
        if file.is_file() {
            return Some(file);
        }
        if folder.join(".git").exists() || !folder.pop() {
            return None;
        }
    }
}
