//! Removes given secrets from text, in any encoding.
//!
//! - Searches the text and views of it with encodings undone step by step.
//! - The views of a text may total [`WORK_MAX`] times its size. A text that needs more is redacted whole.
//! - A text without any possible encoding is scanned once.

use super::names::{self, Names};
use super::patterns::{Pattern, patterns};
use super::view::{Joining, Order, View};
use crate::http::Headers;
use crate::text::CUT;
use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// Replacement for a secret.
pub const REDACTED: &str = "[redacted]";

/// Shorter secrets are ignored: removing them would damage unrelated text.
pub const SECRET_BYTES_MIN: usize = 4;

/// Nested encodings undone. An excerpt of a body with JSON in a string has three.
const LAYERS_MAX: usize = 7;
/// Nested levels of base64 undone.
const BASE64_MAX: usize = 3;
/// Fewest readable bytes in decoded base64 that are searched further.
const STRETCH_MIN: usize = 8;
/// Total size of the views, as a multiple of the text.
const WORK_MAX: usize = 96;
/// Total size of the views that a small text may always use, in bytes.
const WORK_FREE: usize = 1 << 20;

/// Removes secrets from text; created once per run, shared by every output.
pub struct Redactor {
    secrets: AhoCorasick,
    /// The patterns of `secrets`, in order.
    patterns: Vec<Pattern>,
    /// Prefixes of the patterns, to find partial secrets before a cut.
    beginnings: AhoCorasick,
    /// Fewest bytes of base64 that may contain a secret.
    base64_min: usize,
    names: Names,
}

impl fmt::Debug for Redactor {
    /// Prints counts only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("patterns", &self.patterns.len())
            .finish_non_exhaustive()
    }
}

impl Default for Redactor {
    /// Knows no secret; still redacts values under secret names.
    fn default() -> Self {
        Self::new::<&str>([])
    }
}

impl Redactor {
    /// A redactor for these secrets. Those shorter than [`SECRET_BYTES_MIN`] are ignored.
    pub fn new<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Self {
        let mut all = BTreeSet::new();
        let mut shortest = usize::MAX;
        for secret in secrets {
            let secret = secret.as_ref();
            if secret.len() >= SECRET_BYTES_MIN {
                shortest = shortest.min(secret.len());
                patterns(secret, &mut all);
            }
        }
        let all: Vec<Pattern> = all.into_iter().collect();
        let beginnings = all.iter().map(|p| &p.bytes[..SECRET_BYTES_MIN]);
        Self {
            secrets: searcher(all.iter().map(|p| &p.bytes[..]), MatchKind::LeftmostLongest),
            beginnings: searcher(beginnings, MatchKind::Standard),
            base64_min: shortest.saturating_mul(4) / 3,
            patterns: all,
            names: Names::default(),
        }
    }

    /// The text without secrets; borrowed if unchanged.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = self.without_secrets(text);
        let named = replaced(&text, &self.names.values(&text));
        match named {
            None => text,
            Some(text) => Cow::Owned(text),
        }
    }

    pub fn redact_in_place(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.redact(text) {
            *text = redacted;
        }
    }

    /// Redacts headers: the whole value under a secret name, known secrets elsewhere.
    #[must_use]
    pub fn redact_headers(&self, headers: &Headers) -> Headers {
        headers
            .iter()
            .map(|(name, value)| {
                let value = if names::is_secret_header(name) {
                    REDACTED.to_owned()
                } else {
                    self.redact(value).into_owned()
                };
                (self.redact(name).into_owned(), value)
            })
            .collect()
    }

    fn without_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.patterns.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut search = Search {
            redactor: self,
            found: Vec::new(),
            left: WORK_FREE + text.len().saturating_mul(WORK_MAX),
        };
        let joinings = [Joining::Lines, Joining::Forms, Joining::Chunks];
        let whole = View::new(text);
        let views = [whole.unchunked(), Some(whole)].into_iter().flatten();
        let mut searched = views.map(|view| search.all(&view, &joinings, LAYERS_MAX, BASE64_MAX));
        if searched.any(|searched| searched.is_err()) {
            return Cow::Owned(REDACTED.to_owned());
        }
        let found = merged(text, search.found);
        replaced(text, &found).map_or(Cow::Borrowed(text), Cow::Owned)
    }
}

/// The views exceed [`WORK_MAX`].
struct TooMuch;

/// The search of one text.
struct Search<'a> {
    redactor: &'a Redactor,
    /// Ranges to remove, in order of discovery.
    found: Vec<Range<usize>>,
    /// Bytes of views that may still be created.
    left: usize,
}

impl Search<'_> {
    /// Searches a view, and the view with its parts joined.
    fn all(
        &mut self,
        view: &View<'_>,
        joinings: &[Joining],
        layers: usize,
        base64: usize,
    ) -> Result<(), TooMuch> {
        let mut orders = vec![Order::AtOnce];
        if view.may_part_backslashes() {
            orders.push(Order::BackslashesLast);
        }
        for order in orders {
            self.joinings(view, joinings, order, layers, base64)?;
        }
        Ok(())
    }

    fn joinings(
        &mut self,
        view: &View<'_>,
        joinings: &[Joining],
        order: Order,
        layers: usize,
        base64: usize,
    ) -> Result<(), TooMuch> {
        self.layers(view, Joining::No, order, layers, base64)?;
        // Escaped breaks appear in deeper layers.
        let may_be_broken = |b: &u8| matches!(b, b'\n' | b'\r' | b'\\' | b'%' | b'&' | b'=');
        if view.bytes().iter().any(may_be_broken) {
            let is_plus = |pair: &[u8]| pair[0] == b'+' || pair.eq_ignore_ascii_case(b"2b");
            let is_form = view.bytes().contains(&b'%') && view.bytes().windows(2).any(is_plus);
            let joinings = joinings.iter().copied();
            for joining in joinings.filter(|j| *j != Joining::Forms || is_form) {
                let joined = view.joined(joining);
                self.layers(
                    joined.as_ref().unwrap_or(view),
                    joining,
                    order,
                    layers,
                    base64,
                )?;
            }
        }
        Ok(())
    }

    /// Searches a view and the views with its encodings undone.
    fn layers(
        &mut self,
        view: &View<'_>,
        joining: Joining,
        order: Order,
        layers: usize,
        base64: usize,
    ) -> Result<(), TooMuch> {
        self.search(view)?;
        if layers == 0 {
            return Ok(());
        }
        if base64 > 0 {
            self.base64(view, layers - 1, base64 - 1)?;
        }
        if let Some(unescaped) = view.unescaped(order) {
            let joined = unescaped.joined(joining).unwrap_or(unescaped);
            self.layers(&joined, joining, order, layers - 1, base64)?;
        }
        Ok(())
    }

    fn base64(&mut self, view: &View<'_>, layers: usize, base64: usize) -> Result<(), TooMuch> {
        for run in view.base64_runs(self.redactor.base64_min) {
            for skipped in 0..4_usize.min(run.len()) {
                let decoded = view.base64(&run, skipped);
                self.search(&decoded)?;
                if view.is_cut(run.end) {
                    self.half(&decoded, decoded.bytes().len());
                }
                for stretch in decoded.readable(self.redactor.base64_min.min(STRETCH_MIN)) {
                    let joinings = [Joining::Lines, Joining::Forms];
                    self.all(&stretch, &joinings, layers, base64)?;
                }
            }
        }
        Ok(())
    }

    fn search(&mut self, view: &View<'_>) -> Result<(), TooMuch> {
        let bytes = view.bytes();
        self.left = self.left.checked_sub(bytes.len()).ok_or(TooMuch)?;
        for found in self.redactor.secrets.find_iter(bytes) {
            let pattern = &self.redactor.patterns[found.pattern().as_usize()];
            let from = found.start().saturating_sub(usize::from(pattern.before));
            let to = (found.end() + usize::from(pattern.after)).min(bytes.len());
            self.found.push(view.origin(from..to));
        }
        let cut = CUT.to_string();
        for at in memchr::memmem::find_iter(bytes, cut.as_bytes()) {
            self.half(view, at);
        }
        Ok(())
    }

    /// Removes a partial secret before the cut of an excerpt.
    fn half(&mut self, view: &View<'_>, cut: usize) {
        let longest = self.redactor.patterns.iter().map(|p| p.bytes.len()).max();
        for end in [cut, view.untorn(cut)] {
            let from = end.saturating_sub(longest.unwrap_or_default());
            let window = &view.bytes()[from..end];
            let first = self
                .redactor
                .beginnings
                .find_overlapping_iter(window)
                .find(|found| {
                    let pattern = &self.redactor.patterns[found.pattern().as_usize()];
                    pattern.bytes.starts_with(&window[found.start()..])
                });
            if let Some(found) = first {
                self.found.push(view.origin(from + found.start()..cut));
            }
        }
    }
}

fn searcher<P: AsRef<[u8]>>(patterns: impl IntoIterator<Item = P>, kind: MatchKind) -> AhoCorasick {
    AhoCorasickBuilder::new()
        .match_kind(kind)
        .build(patterns)
        .expect("a few hundred short patterns fit the automaton")
}

/// Sorted ranges of whole characters; overlapping ranges are merged.
fn merged(text: &str, mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for mut range in ranges {
        while !text.is_char_boundary(range.start) {
            range.start -= 1;
        }
        while !text.is_char_boundary(range.end) {
            range.end += 1;
        }
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The text with each range replaced; `None` without ranges.
fn replaced(text: &str, ranges: &[Range<usize>]) -> Option<String> {
    let mut out = String::new();
    let mut done = 0;
    for range in ranges {
        out.push_str(&text[done..range.start]);
        out.push_str(REDACTED);
        done = range.end;
    }
    (!ranges.is_empty()).then(|| out + &text[done..])
}
