//! Tests of `render`.

use conformant_versions::{Direction, Format, schemas};
use serde_json::json;

#[test]
fn code_spans_show_backticks_and_cells_have_no_bars() {
    let of = |form: &str| json!({"type": form});
    let mut comparison = schemas(&of("string"), &of("integer"), Direction::Response);
    let mut shown = |name: &str, id: &str| {
        name.clone_into(&mut comparison.old);
        id.clone_into(&mut comparison.changes[0].id);
        comparison.render(Format::Markdown).unwrap()
    };
    for (name, code) in [
        ("a|b", " `a|b` "),
        ("at `/from`", " `` at `/from` `` "),
        ("a ``` b ` c", " ````a ``` b ` c```` "),
        ("  ", " (empty) "),
    ] {
        let text = shown(name, "a");
        assert!(text.contains(code), "{name:?}: {text}");
    }
    let text = shown("a", "a|`b`");
    assert!(text.contains("| `` a\\x7c`b` `` |"), "{text}");
}
