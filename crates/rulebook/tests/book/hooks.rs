//! Tests of `hooks`.

use conformant_rulebook::service::ServiceIndex;

/// The table in the authoring guide and the files name the same hooks and arguments.
#[test]
fn the_guide_and_the_hooks_agree() {
    let guide = conformant_specs::text("README.md");
    let index = ServiceIndex::embedded();
    for hook in index.hooks() {
        let row = guide
            .lines()
            .find(|l| l.starts_with("| `") && l.contains(&format!("`{}`", hook.name)))
            .unwrap_or_else(|| panic!("{} is not in specs/README.md", hook.name));
        let arguments: Vec<String> = row
            .split('|')
            .nth(2)
            .unwrap()
            .split('`')
            .skip(1)
            .step_by(2)
            .flat_map(|cell| cell.split(", "))
            .map(|argument| argument.trim_matches(['`', ' ']).to_owned())
            .collect();
        for name in &hook.required {
            assert!(arguments.contains(name), "{}: {name}", hook.name);
        }
        for name in &hook.optional {
            assert!(
                arguments.contains(&format!("{name}?")),
                "{}: {name}?",
                hook.name
            );
        }
    }
    let rows = guide.lines().skip_while(|l| !l.starts_with("## Hooks"));
    let named: usize = rows
        .take_while(|l| !l.starts_with("## Open points"))
        .filter(|l| l.starts_with("| `"))
        .map(|l| l.split('|').nth(1).unwrap().matches('`').count() / 2)
        .sum();
    assert_eq!(named, index.hooks().count());
}
