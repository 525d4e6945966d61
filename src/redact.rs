//! Secrets taken out of text: one redactor for every output.
//!
//! Finds the secrets it was given in every encoding they are likely to be echoed in, and values
//! that stand under a name that announces a secret. Does not read the environment and does not
//! know reports: who writes something out passes it through here first.

use crate::http::{Headers, percent_encode};
use crate::text::{self, CUT};
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// Stands in place of what was taken out.
pub const REDACTED: &str = "[redacted]";

/// Shorter secrets are not searched for: they would tear holes into unrelated text.
pub const SECRET_BYTES_MIN: usize = 4;

/// Header fields whose value is a credential, in lower case; [`is_secret_header`] knows patterns too.
const HEADERS: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-auth-token",
];

/// Query, form and body parameters whose value is a credential, in lower case.
const PARAMETERS: [&str; 11] = [
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "auth_token",
    "client_secret",
    "passwd",
    "password",
    "refresh_token",
    "secret",
    "token",
];

/// What the base64 of `{"` starts with, and with it every JSON Web Token.
const JWT_START: &str = "eyJ";

/// Takes secrets out of text; made once per run, shared by every output.
pub struct Redactor {
    secrets: AhoCorasick,
    /// What `secrets` searches for, to find halves of them in front of a cut.
    spellings: Vec<String>,
    names: AhoCorasick,
}

impl fmt::Debug for Redactor {
    /// Says how much it knows, never what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("spellings", &self.spellings.len())
            .finish_non_exhaustive()
    }
}

impl Default for Redactor {
    /// Knows no secret, and still what stands under telling names.
    fn default() -> Self {
        Self::new::<&str>([])
    }
}

impl Redactor {
    /// A redactor for these secrets; those under [`SECRET_BYTES_MIN`] are left out.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut spellings = BTreeSet::new();
        for secret in secrets {
            if secret.as_ref().len() >= SECRET_BYTES_MIN {
                spell(secret.as_ref(), &mut spellings);
            }
        }
        let spellings: Vec<String> = spellings.into_iter().collect();
        let names = HEADERS.iter().chain(&PARAMETERS).chain(&[JWT_START]);
        Self {
            secrets: searcher(&spellings, false),
            names: searcher(names, true),
            spellings,
        }
    }

    /// The text without secrets; borrowed where there was none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = self.without_secrets(text);
        let text = self.then(text, Self::without_named_values);
        self.then(text, Self::without_cut_secrets)
    }

    /// Redacts a text where it stands.
    pub fn redact_in_place(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// Redacts fields: whole values under telling names, secrets anywhere else.
    #[must_use]
    pub fn redact_headers(&self, headers: &Headers) -> Headers {
        headers
            .iter()
            .map(|(name, value)| {
                let value = if is_secret_header(name) {
                    REDACTED.to_owned()
                } else {
                    self.redact(value).into_owned()
                };
                (name.to_owned(), value)
            })
            .collect()
    }

    fn then<'a>(
        &self,
        text: Cow<'a, str>,
        step: for<'b> fn(&Self, &'b str) -> Cow<'b, str>,
    ) -> Cow<'a, str> {
        match text {
            Cow::Borrowed(text) => step(self, text),
            Cow::Owned(text) => Cow::Owned(step(self, &text).into_owned()),
        }
    }

    fn without_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.secrets.find_iter(text);
        replaced(text, found.map(|found| found.range()))
    }

    fn without_named_values<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut done = 0;
        let values = self.names.find_iter(text).filter_map(|name| {
            if name.start() < done {
                return None;
            }
            let value = if text[name.range()].eq_ignore_ascii_case(JWT_START) {
                jwt_signature(text, name.start())
            } else {
                named_value(text, name.range())
            }?;
            done = value.end;
            Some(value)
        });
        replaced(text, values)
    }

    /// An excerpt may end within a secret; what stands of it in front of the cut goes as well.
    fn without_cut_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let cuts = text.match_indices(CUT).filter_map(|(cut, _)| {
            let halves = self.spellings.iter();
            let half = halves.filter_map(|s| half_at_end(&text[..cut], s)).max()?;
            Some(cut - half..cut)
        });
        replaced(text, cuts)
    }
}

/// True for header fields whose value is a credential.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    HEADERS.contains(&name.as_str())
        || (name.starts_with("x-")
            && ["api-key", "-token", "-secret"]
                .iter()
                .any(|end| name.ends_with(end)))
}

/// True for query, form and body parameters whose value is a credential.
pub fn is_secret_parameter(name: &str) -> bool {
    PARAMETERS.contains(&name.to_ascii_lowercase().as_str())
}

/// Longest first, so that a secret that contains another goes as one.
fn searcher<P: AsRef<[u8]>>(patterns: impl IntoIterator<Item = P>, any_case: bool) -> AhoCorasick {
    AhoCorasickBuilder::new()
        .match_kind(MatchKind::LeftmostLongest)
        .ascii_case_insensitive(any_case)
        .build(patterns)
        .expect("a few hundred short patterns fit the automaton")
}

/// The text with each range replaced; ranges that begin inside an earlier one are passed over.
fn replaced(text: &str, ranges: impl Iterator<Item = Range<usize>>) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for range in ranges {
        if range.start < done || range.is_empty() {
            continue;
        }
        out.push_str(&text[done..range.start]);
        out.push_str(REDACTED);
        done = range.end;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Every spelling in which a server is likely to echo the secret.
fn spell(secret: &str, spellings: &mut BTreeSet<String>) {
    let mut all = vec![secret.to_owned(), xml_escaped(secret)];
    all.extend(base64_spellings(secret.as_bytes()));
    all.extend(percent_spellings(secret));
    all.extend(json_spellings(secret));
    all.extend(pointer_spellings(secret));
    let hex = text::hex(secret.bytes());
    all.extend([hex.to_ascii_uppercase(), hex]);
    spellings.extend(all.into_iter().filter(|s| s.len() >= SECRET_BYTES_MIN));
}

/// The characters that only the secret decides, for each of the three places in a group of three
/// bytes that it can start at, in both alphabets.
fn base64_spellings(secret: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for lead in 0..3 {
        let bytes: Vec<u8> = [&[0; 2][..lead], secret].concat();
        // 8 bits of lead decide 2 characters, 16 bits decide 3; the last group is whole or shared.
        let from = [0, 2, 3][lead];
        let to = bytes.len() * 8 / 6;
        for engine in [&STANDARD, &URL_SAFE] {
            let text = engine.encode(&bytes);
            all.push(text[from..to].to_owned());
        }
    }
    // Three characters decide two bytes: too little to go by.
    all.retain(|text| text.len() > SECRET_BYTES_MIN);
    all
}

fn percent_spellings(secret: &str) -> Vec<String> {
    let once = percent_encode(secret);
    let every = secret
        .bytes()
        .flat_map(|byte| ["%".to_owned(), text::hex([byte]).to_ascii_uppercase()])
        .collect();
    let form: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let punctuation =
        percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC);
    let all = [
        percent_encode(&once),
        once,
        every,
        form,
        punctuation.to_string(),
    ];
    let lower: Vec<String> = all.iter().map(|text| with_lower_hex(text)).collect();
    all.into_iter().chain(lower).collect()
}

/// `%2F` becomes `%2f`; letters outside the escapes stay.
fn with_lower_hex(text: &str) -> String {
    let mut in_escape = 0;
    text.chars()
        .map(|c| {
            let lower = in_escape > 0;
            in_escape = if c == '%' { 2 } else { in_escape.max(1) - 1 };
            if lower { c.to_ascii_lowercase() } else { c }
        })
        .collect()
}

/// Once and twice escaped (JSON in a string is the documents' own habit), in the spellings that
/// encoders differ in.
fn json_spellings(secret: &str) -> Vec<String> {
    let once = json_escaped(secret);
    let slashes = once.replace('/', "\\/");
    let ascii: String = once.chars().map(ascii_escaped).collect();
    let twice = [&once, &slashes, &ascii].map(|text| json_escaped(text));
    [once, slashes, ascii.to_ascii_lowercase(), ascii]
        .into_iter()
        .chain(twice)
        .collect()
}

/// As a segment of a JSON Pointer, where findings name a member that is a secret.
fn pointer_spellings(secret: &str) -> [String; 2] {
    let segment = secret.replace('~', "~0").replace('/', "~1");
    [json_escaped(&segment), segment]
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn ascii_escaped(c: char) -> String {
    if c.is_ascii() {
        return c.to_string();
    }
    let units = c.encode_utf16(&mut [0; 2]).to_vec();
    let spelled = |unit: u16| format!("\\u{}", text::hex(unit.to_be_bytes()));
    units.into_iter().map(spelled).collect()
}

fn xml_escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&apos;")
}

/// How much of the start of `secret` stands at the end of `text`, where it is enough to matter.
fn half_at_end(text: &str, secret: &str) -> Option<usize> {
    (SECRET_BYTES_MIN..secret.len())
        .rev()
        .find(|&len| secret.is_char_boundary(len) && text.ends_with(&secret[..len]))
}

/// The signature of a JSON Web Token that starts here: without it the rest is only readable.
fn jwt_signature(text: &str, start: usize) -> Option<Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let token = text[start..].split(|c| !is_part(c) && c != '.').next()?;
    let mut parts = token.splitn(3, '.');
    let (head, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let from = start + head.len() + payload.len() + 2;
    (!signature.is_empty()).then_some(from..from + signature.len())
}

/// The value that stands under the name at `name`: in a header line, a query or form, a JSON member
/// or an XML element.
fn named_value(text: &str, name: Range<usize>) -> Option<Range<usize>> {
    let before = &text[..name.start];
    if before.ends_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    let rest = &text[name.end..];
    if let Some(end) = ["=", "]=", "%5D=", "%5d="]
        .iter()
        .find(|end| rest.starts_with(**end))
    {
        return parameter_value(text, name.end + end.len());
    }
    if rest.starts_with('>') {
        let from = name.end + 1;
        return Some(from..from + text[from..].find('<')?);
    }
    if let Some(quote) = ["\\\"", "\"", "'"]
        .iter()
        .find(|quote| rest.starts_with(**quote))
    {
        return member_value(text, name.end + quote.len(), quote);
    }
    header_value(text, name)
}

fn parameter_value(text: &str, from: usize) -> Option<Range<usize>> {
    let value = &text[from..];
    let (from, end) = match value.chars().next()? {
        quote @ ('"' | '\'') => (from + 1, value[1..].find(quote)),
        _ => (
            from,
            value.find(|c: char| c.is_whitespace() || "&;#<>\"'\\".contains(c)),
        ),
    };
    Some(from..end.map_or(text.len(), |end| from + end))
}

/// `"name": "value"`, whatever the quote is; a number, too.
fn member_value(text: &str, after_name: usize, quote: &str) -> Option<Range<usize>> {
    let rest = text[after_name..]
        .trim_start()
        .strip_prefix(':')?
        .trim_start();
    if let Some(value) = rest.strip_prefix(quote) {
        let from = text.len() - value.len();
        return Some(from..from + end_of_quoted(value, quote));
    }
    let from = text.len() - rest.len();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    Some(from..from + end)
}

fn end_of_quoted(value: &str, quote: &str) -> usize {
    let mut escaped = false;
    for (at, c) in value.char_indices() {
        if value[at..].starts_with(quote) && !escaped {
            return at;
        }
        escaped = c == '\\' && !escaped;
    }
    value.len()
}

/// `Name: value` to the end of the line, or of the quotes around both as in a shell command.
fn header_value(text: &str, name: Range<usize>) -> Option<Range<usize>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let whole_from = text[..name.start].trim_end_matches(is_name).len();
    if !is_secret_header(&text[whole_from..name.end]) {
        return None;
    }
    let value = text[name.end..]
        .strip_prefix(':')?
        .trim_start_matches([' ', '\t']);
    let from = text.len() - value.len();
    let line_end = value.find(['\r', '\n']).unwrap_or(value.len());
    let end = match text[..whole_from].chars().next_back() {
        Some(quote @ ('"' | '\'')) => end_of_shell_word(&value[..line_end], quote),
        _ => line_end,
    };
    Some(from..from + end)
}

/// Where the quotes close; `'\''` and `\"` do not close them.
fn end_of_shell_word(value: &str, quote: char) -> usize {
    let mut at = 0;
    while let Some(found) = value[at..].find(quote) {
        let end = at + found;
        if value[end..].starts_with("'\\''") {
            at = end + 4;
        } else if quote == '"' && value[..end].ends_with('\\') {
            at = end + 1;
        } else {
            return end;
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    const SECRET: &str = "pä\"ss/w&rd+1";

    fn check(text: &str, expected: &str) {
        let redactor = Redactor::new([SECRET, "k3y-0123456789"]);
        assert_eq!(redactor.redact(text), expected, "{text}");
        assert_eq!(redactor.redact(expected), expected, "redacted twice");
    }

    #[test]
    fn secrets_go_in_every_spelling() {
        let encoded = STANDARD.encode(format!("user:{SECRET}"));
        let gone = Redactor::new([SECRET]).redact(&encoded).into_owned();
        assert!(gone.contains(REDACTED), "{gone}");
        for text in [
            SECRET.to_owned(),
            percent_encode(SECRET),
            percent_encode(SECRET).to_ascii_lowercase(),
            percent_encode(&percent_encode(SECRET)),
            form_urlencoded::byte_serialize(SECRET.as_bytes()).collect(),
            json_escaped(SECRET),
            json_escaped(&json_escaped(SECRET)),
            "p\\u00e4\\\"ss\\/w&rd+1".replace("\\/", "/"),
            xml_escaped(SECRET),
        ] {
            check(&format!("a {text} b"), "a [redacted] b");
        }
    }

    #[test]
    fn values_go_under_telling_names() {
        let cases = [
            (
                "curl -H 'Authorization: Basic x' -v",
                "curl -H 'Authorization: [redacted]' -v",
            ),
            (
                "curl -H \"X-Some-API-Key: a\\\"b\" u",
                "curl -H \"X-Some-API-Key: [redacted]\" u",
            ),
            (
                "Set-Cookie: a=\"b\"; c\nX: 1",
                "Set-Cookie: [redacted]\nX: 1",
            ),
            ("/x?api_key=abc&b=1", "/x?api_key=[redacted]&b=1"),
            (
                "-d 'user[password]=abc&x=1'",
                "-d 'user[password]=[redacted]&x=1'",
            ),
            (
                r#"{"password": "a\"b", "x": 1}"#,
                r#"{"password": "[redacted]", "x": 1}"#,
            ),
            (
                r#""{\"token\":\"abc\"}""#,
                r#""{\"token\":\"[redacted]\"}""#,
            ),
            ("<secret>abc</secret>", "<secret>[redacted]</secret>"),
            ("a eyJh.eyJi.c-_1 b", "a eyJh.eyJi.[redacted] b"),
        ];
        for (text, expected) in cases {
            check(text, expected);
        }
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "token: a string was expected",
            "/x?PageToken=PT1&PageSize=2",
            "tokens=3 and token_type=x",
            "an ordinary sentence, eyJunk",
            "Cookies: two",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn halves_in_front_of_a_cut_go() {
        check("x k3y-01… (7 more bytes)", "x [redacted]… (7 more bytes)");
    }

    #[test]
    fn headers_go_by_name() {
        let mut headers = Headers::default();
        headers.add("cookie", "a=b");
        headers.add("X-Other", "k3y-0123456789");
        headers.add("Accept", "*/*");
        let redacted = Redactor::new(["k3y-0123456789"]).redact_headers(&headers);
        let values: Vec<_> = redacted.iter().map(|(_, value)| value).collect();
        assert_eq!(values, [REDACTED, REDACTED, "*/*"]);
    }

    #[test]
    fn debug_shows_no_secret() {
        assert!(!format!("{:?}", Redactor::new(["k3y-0123456789"])).contains("k3y"));
    }

    static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(["tok…en", SECRET]));

    proptest! {
        #[test]
        fn base64_of_any_surroundings_holds_no_whole_secret(
            before in proptest::collection::vec(any::<u8>(), 0..9),
            after in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let bytes = [&before, SECRET.as_bytes(), &after].concat();
            for engine in [&STANDARD, &URL_SAFE] {
                let text = engine.encode(&bytes);
                prop_assert!(REDACTOR.redact(&text).contains(REDACTED));
            }
        }

        #[test]
        fn no_text_hides_a_secret(text in "(\\PC|token=|\"secret\":|Cookie: |eyJ|['\"\\\\\n…]){0,30}") {
            let redacted = REDACTOR.redact(&format!("{text}{SECRET}{text}")).into_owned();
            prop_assert!(!redacted.contains(SECRET));
        }
    }
}
