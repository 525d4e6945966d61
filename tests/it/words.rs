//! Counts the words of `tests/words.txt` in comments, string literals and pages.
//!
//! - `tests/words-left.txt` records how many hits each area still has. The test fails when a number differs.
//! - `BLESS=1` records lower numbers, never a higher total.
//! - `WORDS=PATH` with `--nocapture` lists the hits below an area or path.
//! - Not counted: identifiers, `code spans`, literals without a space, data, and generated files.
//!
//! Uses `std` only, so that it also compiles by itself in seconds:
//! `CARGO_MANIFEST_DIR=$PWD rustc --edition 2024 --test -o target/words tests/it/words.rs && target/words`
#![expect(
    clippy::disallowed_methods,
    reason = "BLESS and WORDS are settings of the tests, not of the program"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const LIST: &str = "tests/words.txt";
const LEFT: &str = "tests/words-left.txt";
/// Folders and files whose text is data, generated, or no text of the project.
const EXCLUDED: [&str; 11] = [
    ".git",
    "target",
    "fixtures",
    "reports",
    "tests/corpus",
    "docs/book",
    "docs/examples/rust/target",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    LIST,
    LEFT,
];
/// Stands for code in prose: a phrase does not continue across it.
const GAP: char = '\u{1}';

/// Listed phrases and their exceptions, by first word.
struct Phrases(BTreeMap<String, Vec<Phrase>>);

struct Phrase {
    words: Vec<String>,
    is_exception: bool,
}

/// One phrase in a file.
#[derive(Debug, PartialEq)]
struct Hit {
    line: usize,
    phrase: String,
}

/// A word of prose. `is_joined` is true where only white space separates it from the word before.
struct Word {
    text: String,
    line: usize,
    is_joined: bool,
}

impl Phrases {
    /// Reads a list: one phrase a line, `!` before an exception, `#` before a comment.
    fn read(list: &str) -> Self {
        let mut phrases: BTreeMap<String, Vec<Phrase>> = BTreeMap::new();
        for line in list.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words = line.trim_start_matches('!').split_whitespace();
            let words: Vec<String> = words.map(str::to_lowercase).collect();
            let is_exception = line.starts_with('!');
            let entry = phrases.entry(words[0].clone()).or_default();
            entry.push(Phrase {
                words,
                is_exception,
            });
        }
        for entry in phrases.values_mut() {
            // The longest first, so that an exception is found before the phrase that it begins with.
            entry.sort_by_key(|phrase| std::cmp::Reverse(phrase.words.len()));
        }
        Self(phrases)
    }

    fn hits(&self, words: &[Word]) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let found = self.0.get(&words[at].text).and_then(|phrases| {
                phrases
                    .iter()
                    .find(|phrase| starts_with(&words[at..], &phrase.words))
            });
            if let Some(phrase) = found
                && !phrase.is_exception
            {
                hits.push(Hit {
                    line: words[at].line,
                    phrase: phrase.words.join(" "),
                });
            }
            at += found.map_or(1, |phrase| phrase.words.len());
        }
        hits
    }
}

fn starts_with(words: &[Word], phrase: &[String]) -> bool {
    words.len() >= phrase.len()
        && phrase.iter().enumerate().all(|(index, expected)| {
            words[index].text == *expected && (index == 0 || words[index].is_joined)
        })
}

/// The words of prose. Names such as `a-b`, `a/b`, `a.b` or `{a}` are skipped, and `a's` is the word `a`.
fn words(prose: &str, has_keys: bool) -> Vec<Word> {
    let is_part = |c: char| c.is_alphanumeric() || "_-/.:$@%{}'\u{2019}\\".contains(c);
    let mut words = Vec::new();
    let mut is_joined = false;
    for (index, line) in prose.lines().enumerate() {
        let mut rest = line;
        let mut is_key_place = true;
        while let Some(first) = rest.chars().next() {
            if !is_part(first) {
                is_joined &= first.is_whitespace();
                is_key_place = "{,".contains(first) || (is_key_place && first.is_whitespace());
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            rest = after;
            let word = name.trim_matches(['.', ':', '\'', '\u{2019}']);
            let stem = word.strip_suffix("'s").or(word.strip_suffix("\u{2019}s"));
            let stem = stem.unwrap_or(word).to_lowercase();
            let is_key = has_keys && is_key_place && name.ends_with(':');
            is_key_place = name == "{" || (is_key_place && name == "-");
            let is_word = !stem.is_empty() && stem.chars().all(char::is_alphabetic);
            if is_word && !is_key {
                words.push(Word {
                    text: stem,
                    line: index + 1,
                    is_joined: is_joined && name.starts_with(word),
                });
            }
            is_joined = is_word && !is_key && name == word;
        }
    }
    words
}

/// How prose is marked in source code.
#[derive(Clone, Copy, PartialEq)]
enum Syntax {
    Rust,
    /// JavaScript, TypeScript, Go, Java and CSS.
    Braces,
    /// Shell and Python.
    Script,
}

impl Syntax {
    fn quotes(self) -> &'static str {
        match self {
            Self::Rust => "\"",
            Self::Braces => "\"'`",
            Self::Script => "\"'",
        }
    }

    fn is_comment(self, rest: &str, before: char) -> bool {
        match self {
            Self::Rust | Self::Braces => rest.starts_with("//"),
            Self::Script => rest.starts_with('#') && before.is_whitespace(),
        }
    }
}

/// The comments and string literals of source code, with a gap in place of everything else.
fn prose_of_code(code: &str, syntax: Syntax) -> String {
    let mut prose = String::new();
    let mut rest = code;
    let mut before = '\n';
    while let Some(first) = rest.chars().next() {
        if syntax.is_comment(rest, before) {
            let (comment, after) = rest.split_at(rest.find('\n').unwrap_or(rest.len()));
            prose.push_str(comment.trim_start_matches(['/', '!', '#']));
            rest = after;
        } else if syntax != Syntax::Script && rest.starts_with("/*") {
            let (comment, after) = rest.split_at(rest.find("*/").map_or(rest.len(), |at| at + 2));
            prose.push_str(&comment.replace(['*', '/'], " "));
            rest = after;
        } else if let Some(hashes) =
            raw_literal(rest).filter(|_| syntax == Syntax::Rust && !is_name(before))
        {
            let body = &rest[hashes + 2..];
            let end = format!("\"{}", "#".repeat(hashes));
            let (literal, after) = body.split_once(&end).unwrap_or((body, ""));
            push_literal(&mut prose, literal);
            rest = after;
        } else if syntax == Syntax::Rust && first == '\'' {
            let is_escape = rest[1..].starts_with('\\');
            let end = rest.char_indices().skip(2).find(|(_, c)| *c == '\'');
            let is_char = end.is_some_and(|(at, _)| is_escape || rest[1..at].chars().count() == 1);
            // Otherwise a lifetime. The closing quote of `'\''` comes after an escaped one.
            let length = match end {
                Some((at, _)) if rest.starts_with("'\\''") => at + 2,
                Some((at, _)) if is_char => at + 1,
                _ => 1,
            };
            prose.push(GAP);
            rest = &rest[length..];
        } else if syntax.quotes().contains(first) {
            let body = &rest[first.len_utf8()..];
            let end = literal_end(body, first, syntax);
            push_literal(&mut prose, &unescaped(&body[..end]));
            // A line that ends a literal stays, so that lines count.
            let after = &body[end..];
            rest = after.strip_prefix(first).unwrap_or(after);
        } else {
            prose.push(if first.is_whitespace() { first } else { GAP });
            rest = &rest[first.len_utf8()..];
        }
        before = first;
    }
    prose
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The number of `#` where a raw literal begins.
fn raw_literal(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('r')?;
    let quote = body.trim_start_matches('#');
    quote.starts_with('"').then_some(body.len() - quote.len())
}

/// Where a literal ends. In JavaScript a quote may also stand in a regular expression, so that a line ends it, too.
fn literal_end(body: &str, quote: char, syntax: Syntax) -> usize {
    let is_one_line = syntax == Syntax::Braces && quote != '`';
    let mut is_escaped = false;
    for (at, c) in body.char_indices() {
        if (c == quote && !is_escaped) || (c == '\n' && is_one_line) {
            return at;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    body.len()
}

/// A literal with spaces in place of `\n` and the like. Line breaks stay, so that lines count.
fn unescaped(literal: &str) -> String {
    let mut text = String::new();
    let mut rest = literal.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some('n' | 't' | 'r') => text.push(' '),
                Some(other) => text.push(other),
                None => {}
            },
            _ => text.push(c),
        }
    }
    text
}

/// A literal without a space is a name, so that only its line breaks are kept.
fn push_literal(prose: &mut String, literal: &str) {
    prose.push(GAP);
    if literal.trim().contains(char::is_whitespace) {
        prose.push_str(literal);
    } else {
        prose.extend(literal.chars().filter(|c| *c == '\n'));
    }
    prose.push(GAP);
}

/// Replaces `code spans` by gaps.
fn without_code_spans(prose: &str) -> String {
    let mut text = String::new();
    for line in prose.split_inclusive('\n') {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('`') {
            let Some((_, after)) = after.split_once('`') else {
                break;
            };
            text.push_str(before);
            text.push(GAP);
            rest = after;
        }
        text.push_str(rest);
    }
    text
}

/// A page, without the marks of comments and quotations at the beginning of a line.
fn prose_of_page(page: &str) -> String {
    let mut prose = String::new();
    for line in page.split_inclusive('\n') {
        let text = line.trim_start_matches([' ', '\t']);
        prose.push_str(text.trim_start_matches(['#', '>']));
        if line.trim().is_empty() {
            prose.push(GAP);
        }
    }
    prose
}

/// A page in HTML: its text, the titles and labels of its elements, and the prose of its scripts.
fn prose_of_html(page: &str) -> String {
    let blocks = [
        ("<script", "</script>"),
        ("<style", "</style>"),
        ("{{", "}}"),
        ("{%", "%}"),
        ("<", ">"),
    ];
    let mut prose = String::new();
    let mut rest = page;
    while let Some(first) = rest.chars().next() {
        let Some((open, close)) = blocks.iter().find(|(open, _)| rest.starts_with(open)) else {
            prose.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let end = rest.find(close).map_or(rest.len(), |at| at + close.len());
        let (block, after) = rest.split_at(end);
        rest = after;
        match *open {
            "<script" => prose.push_str(&prose_of_code(block, Syntax::Braces)),
            "<" => prose.push_str(&labels(block)),
            _ => prose.extend(block.chars().filter(|c| *c == '\n')),
        }
        prose.push(GAP);
    }
    prose
}

/// What a tag shows to people, with its line breaks.
fn labels(tag: &str) -> String {
    let mut prose = String::new();
    let mut rest = tag;
    while let Some((before, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"').unwrap_or((after, ""));
        let is_shown = ["title", "aria-label", "placeholder", "alt", "content"]
            .iter()
            .any(|name| before.ends_with(name));
        prose.extend(before.chars().filter(|c| *c == '\n'));
        if is_shown {
            prose.push(GAP);
            prose.push_str(value);
            prose.push(GAP);
        } else {
            prose.extend(value.chars().filter(|c| *c == '\n'));
        }
        rest = after;
    }
    prose.extend(rest.chars().filter(|c| *c == '\n'));
    prose
}

/// The hits in one file; `None` for data.
fn hits_in(path: &str, text: &str, phrases: &Phrases) -> Option<Vec<Hit>> {
    let name = path.trim_end_matches(".in").trim_end_matches(".jinja");
    let name = name.rsplit('/').next().unwrap_or(name);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let prose = match ending {
        "rs" => prose_of_code(text, Syntax::Rust),
        "js" | "mjs" | "ts" | "go" | "java" | "css" | "mod" => prose_of_code(text, Syntax::Braces),
        "py" | "sh" => prose_of_code(text, Syntax::Script),
        _ if text.starts_with("#!") => prose_of_code(text, Syntax::Script),
        "html" => prose_of_html(text),
        "json" | "ndjson" | "lock" => return None,
        _ => prose_of_page(text),
    };
    let has_keys = ["yaml", "yml", "toml", "md"].contains(&ending);
    Some(phrases.hits(&words(&without_code_spans(&prose), has_keys)))
}

/// The unit in which hits are counted: a module or crate, a folder, or a file at the top.
fn area(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [file] => (*file).to_owned(),
        [top @ ("src" | "crates" | "specs" | "tests"), below, _, ..] => format!("{top}/{below}"),
        [top, ..] => (*top).to_owned(),
        [] => String::new(),
    }
}

/// The files below a folder, as sorted paths from the root.
fn files(folder: &Path, into: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("folders of the project are readable") {
        let path = entry.expect("entries of the project are readable").path();
        let shown = path.strip_prefix(ROOT).expect("it is below the root");
        let shown = shown.to_string_lossy().replace('\\', "/");
        let is_excluded = EXCLUDED.contains(&shown.as_str()) || shown.ends_with("/target");
        if is_excluded || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(shown);
        }
    }
    into.sort();
}

/// `path:line: phrase` of every hit, by area.
fn all_hits() -> BTreeMap<String, Vec<String>> {
    let list = std::fs::read_to_string(Path::new(ROOT).join(LIST)).expect("the list is readable");
    let phrases = Phrases::read(&list);
    let mut paths = Vec::new();
    files(Path::new(ROOT), &mut paths);
    let mut by_area: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths {
        let Ok(text) = std::fs::read_to_string(Path::new(ROOT).join(&path)) else {
            continue;
        };
        for hit in hits_in(&path, &text, &phrases).unwrap_or_default() {
            let shown = format!("{path}:{}: {}", hit.line, hit.phrase);
            by_area.entry(area(&path)).or_default().push(shown);
        }
    }
    by_area
}

/// The recorded numbers: `AREA COUNT` a line.
fn read_left(text: &str) -> BTreeMap<String, usize> {
    let row = |line: &str| {
        let (area, count) = line.rsplit_once(' ').expect("a line is AREA COUNT");
        (area.to_owned(), count.parse().expect("COUNT is a number"))
    };
    text.lines().map(row).collect()
}

/// Whether `BLESS=1` may record `now` in place of `left`. Code that moves to `crates/` takes its hits along.
fn may_record(now: &BTreeMap<String, usize>, left: &BTreeMap<String, usize>) -> bool {
    let is_lower = |(area, count): (&String, &usize)| {
        area.starts_with("crates/") || *count <= left.get(area).copied().unwrap_or(0)
    };
    now.iter().all(is_lower) && now.values().sum::<usize>() <= left.values().sum()
}

#[test]
fn every_area_has_the_recorded_number_of_words_to_replace() {
    let hits = all_hits();
    if let Ok(wanted) = std::env::var("WORDS") {
        for hit in hits
            .values()
            .flatten()
            .filter(|hit| hit.starts_with(&wanted))
        {
            println!("{hit}");
        }
    }
    let now: BTreeMap<String, usize> = hits.iter().map(|(k, v)| (k.clone(), v.len())).collect();
    let file = Path::new(ROOT).join(LEFT);
    let left = read_left(&std::fs::read_to_string(&file).expect("the numbers are readable"));
    let may_record = may_record(&now, &left);
    if std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none() && may_record {
        let rows = now.iter().map(|(area, count)| format!("{area} {count}\n"));
        std::fs::write(&file, rows.collect::<String>()).expect("the numbers are writable");
        return;
    }
    let mut problems = String::new();
    for area in left
        .keys()
        .chain(now.keys().filter(|a| !left.contains_key(*a)))
    {
        let (count, recorded) = (
            now.get(area).copied().unwrap_or(0),
            left.get(area).copied().unwrap_or(0),
        );
        if count > recorded {
            let found = hits[area].join("\n  ");
            let _ = writeln!(
                problems,
                "{area}: {count}, {recorded} recorded. Hits:\n  {found}"
            );
        } else if count < recorded {
            let _ = writeln!(problems, "{area}: {count}, {recorded} recorded");
        }
    }
    let repair = if may_record {
        "record the lower numbers: BLESS=1 cargo test --test it words"
    } else {
        "write these in plain words: tests/words.txt"
    };
    assert!(problems.is_empty(), "{problems}{repair}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHRASES: &str = "# comment\nalpha\nbeta gamma\n!beta gamma delta\n";

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let hits = hits_in(path, text, &Phrases::read(PHRASES)).expect("it has prose");
        hits.into_iter().map(|hit| (hit.line, hit.phrase)).collect()
    }

    #[test]
    fn comments_and_literals_of_rust_count_and_code_does_not() {
        let code = "// Alpha\nlet alpha = 'a'; /* alpha */\nf::<'a>(\"an alpha\", r#\"raw \"alpha\"\"#, \"alpha\", '\"');\n// `alpha` {alpha}\n";
        let lines: Vec<usize> = found("x.rs", code).iter().map(|hit| hit.0).collect();
        assert_eq!(lines, [1, 2, 3, 3]);
    }

    #[test]
    fn pages_in_html_count_text_labels_and_scripts() {
        let page = "<p class=\"alpha\"\n title=\"an alpha\">alpha</p>\n<style>.alpha{}</style>\n\
                    <script>alpha(/[\"']/);\nx(\"an alpha\")</script>{{ alpha }}";
        let lines: Vec<usize> = found("x.html", page).iter().map(|hit| hit.0).collect();
        assert_eq!(lines, [2, 2, 5]);
    }

    #[test]
    fn phrases_match_whole_words_across_lines_except_exceptions() {
        assert_eq!(
            found("x.rs", "// X Beta\n// gamma Y"),
            [(1, "beta gamma".to_owned())]
        );
        assert_eq!(found("x.md", "A beta gamma delta. Beta. Gamma."), []);
        assert_eq!(found("x.md", "alphas, pre-alpha, x/alpha, alpha.rs"), []);
        assert_eq!(found("x.md", "# X\n\n> **Alpha's**\n")[0].0, 3);
        assert_eq!(found("x.rs", "x(\"a beta\"); // gamma").len(), 0);
    }

    #[test]
    fn keys_of_yaml_are_names_and_values_are_prose() {
        let yaml = "alpha: alpha\n- alpha: { alpha: an alpha }\n# the alpha: x\n";
        let lines: Vec<usize> = found("x.yaml", yaml).iter().map(|hit| hit.0).collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn numbers_are_recorded_only_where_they_fall_or_move_to_a_crate() {
        let left = read_left("src/judge 3\ndocs 2\n");
        assert!(may_record(&read_left("crates/judge 3\ndocs 1\n"), &left));
        assert!(!may_record(&read_left("src/judge 2\ndocs 3\n"), &left));
        assert!(!may_record(&read_left("crates/judge 4\ndocs 2\n"), &left));
    }
}
