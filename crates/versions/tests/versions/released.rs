//! Tests of `released`.

use conformant_versions::Released;

#[test]
fn no_released_version_was_edited() {
    let book = conformant_judge::load::embedded().unwrap_or_else(|p| panic!("{p}"));
    let lock = conformant_specs::text("events/released.lock");
    let released = Released::parse(lock).unwrap();
    assert_eq!(released.lock(), lock, "its form");
    assert_eq!(released.problems(&book), Vec::<String>::new());
}
