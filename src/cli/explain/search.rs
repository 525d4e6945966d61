//! Finds ids by a part of them, whatever its spelling: `page_size`, `page-size` and `PageSize` are the same.

/// A text without letter case and separators; slashes and dots stay, because they separate names.
fn plain(text: &str) -> String {
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || is_border(*c));
    kept.flat_map(char::to_lowercase).collect()
}

fn is_border(c: char) -> bool {
    matches!(c, '/' | '.' | '[' | '=')
}

/// The ids that are spelled differently only; otherwise those with a name like this; otherwise those that contain it.
pub(super) fn similar<'a>(ids: &[&'a str], wanted: &str) -> Vec<&'a str> {
    const CHARS_MIN: usize = 3;
    let wanted = plain(wanted);
    if wanted.len() < CHARS_MIN {
        return Vec::new();
    }
    let plain_ids: Vec<(String, &str)> = ids.iter().map(|id| (plain(id), *id)).collect();
    let found = |is_found: &dyn Fn(&str) -> bool| -> Vec<&'a str> {
        let matching = plain_ids.iter().filter(|(plain, _)| is_found(plain));
        let mut matching: Vec<&str> = matching.map(|(_, id)| *id).collect();
        matching.sort_unstable();
        matching.dedup();
        matching
    };
    let whole = found(&|id| id == wanted);
    if !whole.is_empty() {
        return whole;
    }
    let named = found(&|id| id.split(is_border).any(|name| name == wanted));
    if !named.is_empty() {
        return named;
    }
    let matching = ids.iter().copied().filter(|id| contains(id, &wanted));
    let mut matching: Vec<&str> = matching.collect();
    matching.sort_unstable();
    matching.dedup();
    matching
}

/// Whether an id contains a text within one of its words, or as several whole words: `nope` is not in `no-personal`.
fn contains(id: &str, wanted: &str) -> bool {
    let whole = plain(id);
    let mut borders = vec![0];
    let mut at = 0;
    for c in id.chars() {
        at += plain(&c.to_string()).len();
        if !c.is_alphanumeric() {
            borders.push(at);
        }
    }
    borders.push(at);
    whole.match_indices(wanted).any(|(begin, found)| {
        let end = begin + found.len();
        let is_in_a_word = !borders
            .iter()
            .any(|border| begin < *border && *border < end);
        // A border character is a word of its own.
        let ends_a_word = borders.contains(&end) || whole[end..].starts_with(is_border);
        is_in_a_word || (borders.contains(&begin) && ends_a_word)
    })
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn spellings_of_one_name_find_the_same_ids() {
        let ids = [
            "flow/read-flows/page-size",
            "chat/page-sizes",
            "limits.rate",
            "flow/x/pagesize[a=b]",
        ];
        let expected = ["flow/read-flows/page-size", "flow/x/pagesize[a=b]"];
        for wanted in ["page_size", "page-size", "PageSize", "pagesize"] {
            assert_eq!(similar(&ids, wanted), expected, "{wanted}");
        }
        assert_eq!(
            similar(&ids, "Flow/ReadFlows/PageSize"),
            ["flow/read-flows/page-size"]
        );
        assert_eq!(similar(&ids, "sizes"), ["chat/page-sizes"]);
        assert_eq!(
            similar(&ids, "flows/page-size"),
            ["flow/read-flows/page-size"]
        );
        assert_eq!(similar(&ids, "readfl"), Vec::<&str>::new());
        assert!(similar(&["auth/token/no-personal-data"], "nope").is_empty());
        assert!(similar(&["flow/execution-operations"], "nope").is_empty());
        assert!(similar(&ids, "none").is_empty() && similar(&ids, "x").is_empty());
    }
}
