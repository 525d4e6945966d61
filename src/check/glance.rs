//! A glance at a document: whether it breaks no rule, told from its tokens without building a tree.
//!
//! It knows two answers: nothing is broken, or not sure. What it is not sure of is judged the
//! careful way, so that every finding comes from there. A kind whose schema says more than is
//! understood here has no glance.

use crate::json::{join, segments};
use crate::judge::Judgement;
use crate::rulebook::rules::Check;
use crate::rulebook::{OTHER_FIELDS_KEY, Origin, RULE_KEY, Rulebook};
use serde_json::Value;

/// Larger documents might hold more values than the careful reader allows.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// Containers within each other; the careful reader allows more.
const DEPTH_MAX: usize = 32;
/// Objects with rules of their own in one document.
const OBJECTS_MAX: usize = 16;
/// Members of one object that no schema lists; telling their names apart grows with the square.
const UNLISTED_MAX: usize = 32;

const NULL: u8 = 1;
const BOOLEAN: u8 = 2;
const INTEGER: u8 = 4;
const FRACTION: u8 = 8;
const STRING: u8 = 16;
const ARRAY: u8 = 32;
const OBJECT: u8 = 64;
const ANY: u8 = 127;

/// What is compiled of one kind.
#[derive(Debug)]
pub(super) struct Glance {
    root: Place,
    /// Which rules each object gives something to judge for.
    judged: Vec<Judged>,
    rules: Vec<String>,
}

/// Rules of one object, as indexes.
#[derive(Debug, Default)]
struct Judged {
    always: Vec<usize>,
    /// By listed member.
    present: Vec<Vec<usize>>,
}

/// What may stand somewhere.
#[derive(Debug)]
struct Place {
    types: u8,
    text: Option<Text>,
    object: Option<Box<Object>>,
    items: Option<Box<Place>>,
}

/// What a text must be like.
#[derive(Debug, Default)]
struct Text {
    options: Option<Vec<Box<str>>>,
    patterns: Vec<Pattern>,
    characters_min: usize,
    characters_max: Option<usize>,
    is_date_time: bool,
}

#[derive(Debug)]
enum Pattern {
    /// A literal start, then so many characters of one class, and nothing else.
    Run {
        start: Box<str>,
        class: [bool; 128],
        count: usize,
    },
    /// Anything else, on the linear engine.
    Other(regex::Regex),
}

/// What members an object may have.
#[derive(Debug)]
struct Object {
    /// Index into [`Glance::judged`]; none where nothing is judged by its members.
    index: Option<usize>,
    members: Vec<(Name, Place)>,
    /// Bits of the members that must be there.
    required: u64,
    /// What other members may be; none where there may not be any.
    others: Option<Place>,
}

/// A member's name in its quotes, made for comparing.
#[derive(Debug)]
struct Name {
    quoted: Box<[u8]>,
    head: u64,
    head_mask: u64,
}

// --- compiling -------------------------------------------------------------------------------

/// A schema with the document that its references point into.
#[derive(Clone, Copy)]
struct Part<'a> {
    root: &'a Value,
    schema: &'a Value,
    /// Part of the kind's own schema, whose properties are rules.
    is_own: bool,
}

struct Compiler<'a> {
    judged: Vec<Judged>,
    rules: Vec<String>,
    /// Written rules with the pointer that they look at.
    written: Vec<(&'a str, &'a str, &'a Value)>,
    /// How many of them were met on the way.
    reached: usize,
}

impl Glance {
    /// Compiles a kind; nothing where its rules say more than a glance understands.
    pub(super) fn of(rulebook: &Rulebook, kind: &str) -> Option<Self> {
        let known = rulebook.kinds.get(kind)?;
        if known.page_of.is_some() {
            return None;
        }
        let mut written = Vec::new();
        let mut of_all = Vec::new();
        for rule in rulebook.rules.values() {
            let Origin::Written(check) = &rule.origin else {
                continue;
            };
            // What it objects to, a mark or a name that comes twice, is nothing that a glance passes.
            let of_service = kind.split('/').next() == Some(rule.service.as_str());
            if matches!(check, Check::PlainJson {}) && of_service {
                of_all.push(rule.id.clone());
            }
            if check.kind() != Some(kind) {
                continue;
            }
            let Check::Conforms { at, schema, .. } = check else {
                return None;
            };
            written.push((at.as_str(), rule.id.as_str(), schema));
        }
        let mut compiler = Compiler {
            judged: Vec::new(),
            rules: Vec::new(),
            written,
            reached: 0,
        };
        let own = Part {
            root: &known.schema,
            schema: &known.schema,
            is_own: true,
        };
        let root = compiler.place("", vec![own], true)?;
        let whole = root.object.as_ref().and_then(|o| o.index);
        compiler.judge_once(whole)?;
        for rule in of_all {
            compiler.judged[whole?].always.push(compiler.rules.len());
            compiler.rules.push(rule);
        }
        let is_understood =
            compiler.reached == compiler.written.len() && compiler.judged.len() <= OBJECTS_MAX;
        is_understood.then_some(Self {
            root,
            judged: compiler.judged,
            rules: compiler.rules,
        })
    }
}

impl<'a> Compiler<'a> {
    /// What all these schemas together allow at a place; `is_single`: no document has two of it.
    fn place(&mut self, pointer: &str, mut parts: Vec<Part<'a>>, is_single: bool) -> Option<Place> {
        if segments(pointer).count() > DEPTH_MAX {
            return None;
        }
        for (at, _, schema) in &self.written {
            if *at == pointer {
                self.reached += 1;
                parts.push(Part {
                    root: schema,
                    schema,
                    is_own: false,
                });
            }
        }
        let mut place = Place {
            types: ANY,
            text: None,
            object: None,
            items: None,
        };
        if parts.is_empty() {
            return Some(place);
        }
        let parts = expanded(parts)?;
        let mut text = Text::default();
        for part in &parts {
            let Value::Object(keywords) = part.schema else {
                continue;
            };
            for (keyword, value) in keywords {
                understand(keyword, value, &mut place.types, &mut text)?;
            }
        }
        if place.types & STRING != 0 {
            place.text = text.says_something().then_some(text);
        }
        if place.types & OBJECT != 0 {
            place.object = Some(Box::new(self.object(pointer, &parts, is_single)?));
        }
        if place.types & ARRAY != 0 {
            let inside: Vec<Part<'a>> = beneath(&parts, |part| part.schema.get("items"));
            place.items = Some(Box::new(self.place(
                &format!("{pointer}/*"),
                inside,
                false,
            )?));
        }
        Some(place)
    }

    fn object(&mut self, pointer: &str, parts: &[Part<'a>], is_single: bool) -> Option<Object> {
        // The order of the schema is the order in which documents are likely to have them.
        let mut names: Vec<&'a str> = Vec::new();
        for part in parts {
            let properties = part.schema.get("properties").and_then(Value::as_object);
            for name in properties.into_iter().flat_map(|p| p.keys()) {
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
        }
        let required: Vec<&str> = parts
            .iter()
            .filter_map(|part| part.schema.get("required").and_then(Value::as_array))
            .flatten()
            .map(Value::as_str)
            .collect::<Option<_>>()?;
        if names.len() > 64 || required.iter().any(|name| !names.contains(name)) {
            return None;
        }
        let mut judged = Judged::default();
        if pointer.is_empty() {
            let rules = self.written_at(pointer);
            judged.always.extend(rules);
        }
        let mut object = Object {
            index: None,
            members: Vec::new(),
            required: 0,
            others: None,
        };
        for (bit, name) in names.iter().enumerate() {
            let at = join(pointer, name);
            let own = parts.iter().filter(|part| part.is_own);
            let own = own.filter_map(|part| listed(part, name)?.get(RULE_KEY)?.as_str());
            let mut rules: Vec<usize> = own
                .collect::<Vec<_>>()
                .into_iter()
                .map(|rule| self.rule(rule))
                .collect();
            if required.contains(name) {
                object.required |= 1 << bit;
                judged.always.append(&mut rules);
            }
            rules.extend(self.written_at(&at));
            judged.present.push(rules);
            let here = beneath(parts, |part| {
                listed(part, name).or_else(|| part.schema.get("additionalProperties"))
            });
            object
                .members
                .push((Name::new(name)?, self.place(&at, here, is_single)?));
        }
        object.others = self.others(pointer, parts, &mut judged)?;
        judged.always.sort_unstable();
        judged.always.dedup();
        if !judged.always.is_empty() || judged.present.iter().any(|p| !p.is_empty()) {
            if !is_single {
                return None;
            }
            object.index = Some(self.judged.len());
            self.judged.push(judged);
        }
        Some(object)
    }

    #[expect(
        clippy::option_option,
        reason = "outside: can it be told at a glance; inside: may there be any"
    )]
    /// What members that no schema lists may be; inner none where there may not be any.
    fn others(
        &mut self,
        pointer: &str,
        parts: &[Part<'a>],
        judged: &mut Judged,
    ) -> Option<Option<Place>> {
        let own = parts.iter().filter(|part| part.is_own);
        let closed: Vec<&str> = own
            .filter_map(|part| part.schema.get(OTHER_FIELDS_KEY)?.as_str())
            .collect();
        if closed.len() > 1 {
            return None;
        }
        for rule in &closed {
            let rule = self.rule(rule);
            judged.always.push(rule);
        }
        let refuses =
            |part: &Part<'_>| part.schema.get("additionalProperties") == Some(&Value::Bool(false));
        if !closed.is_empty() || parts.iter().any(refuses) {
            return Some(None);
        }
        let inside = beneath(parts, |part| part.schema.get("additionalProperties"));
        self.place(&format!("{pointer}/*"), inside, false).map(Some)
    }

    /// A rule that the whole document always gives to judge is not judged again further inside.
    /// Nothing where two objects inside share one.
    fn judge_once(&mut self, root: Option<usize>) -> Option<()> {
        let always = root
            .map(|root| self.judged[root].always.clone())
            .unwrap_or_default();
        let mut seen = always.clone();
        for (index, judged) in self.judged.iter_mut().enumerate() {
            let is_root = Some(index) == root;
            for rules in judged.present.iter_mut().chain([&mut judged.always]) {
                if !is_root {
                    rules.retain(|rule| !always.contains(rule));
                }
            }
            let rules = judged
                .present
                .iter()
                .flatten()
                .chain(judged.always.iter().filter(|_| !is_root));
            for rule in rules {
                if seen.contains(rule) {
                    return None;
                }
                seen.push(*rule);
            }
        }
        Some(())
    }

    fn rule(&mut self, id: &str) -> usize {
        self.rules
            .iter()
            .position(|rule| rule == id)
            .unwrap_or_else(|| {
                self.rules.push(id.to_owned());
                self.rules.len() - 1
            })
    }

    /// Written rules that look at that very place.
    fn written_at(&mut self, pointer: &str) -> Vec<usize> {
        let ids: Vec<&str> = self
            .written
            .iter()
            .filter(|(at, ..)| *at == pointer)
            .map(|(_, id, _)| *id)
            .collect();
        ids.into_iter().map(|id| self.rule(id)).collect()
    }
}

fn listed<'a>(part: &Part<'a>, name: &str) -> Option<&'a Value> {
    part.schema.get("properties")?.get(name)
}

/// The schemas that apply further inside.
fn beneath<'a>(
    parts: &[Part<'a>],
    inside: impl Fn(&Part<'a>) -> Option<&'a Value>,
) -> Vec<Part<'a>> {
    parts
        .iter()
        .filter_map(|part| {
            Some(Part {
                schema: inside(part)?,
                ..*part
            })
        })
        .collect()
}

/// The schemas with all that they refer to.
fn expanded(mut waiting: Vec<Part<'_>>) -> Option<Vec<Part<'_>>> {
    let mut found: Vec<Part<'_>> = Vec::new();
    while let Some(part) = waiting.pop() {
        if found.iter().any(|f| std::ptr::eq(f.schema, part.schema)) {
            continue;
        }
        if let Some(reference) = part.schema.get("$ref") {
            let target = part.root.pointer(reference.as_str()?.strip_prefix('#')?)?;
            waiting.push(Part {
                schema: target,
                ..part
            });
        }
        for schema in part
            .schema
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            waiting.push(Part { schema, ..part });
        }
        found.push(part);
    }
    Some(found)
}

/// Takes up what one keyword says of a value as such; nothing where it is not understood.
fn understand(keyword: &str, value: &Value, types: &mut u8, text: &mut Text) -> Option<()> {
    match keyword {
        // Understood where members and items are looked at, or of no consequence.
        "properties"
        | "required"
        | "additionalProperties"
        | "items"
        | "$ref"
        | "allOf"
        | "$schema"
        | "$id"
        | "$defs"
        | "$comment"
        | "title"
        | "description"
        | "examples"
        | "deprecated"
        | "default" => {}
        name if name.starts_with("x-") => {}
        "type" => *types &= types_of(value)?,
        "not" => {
            let denied = value.as_object().filter(|o| o.len() == 1)?.get("type")?;
            *types &= !types_of(denied)?;
        }
        "const" => options(std::slice::from_ref(value), types, text)?,
        "enum" => options(value.as_array()?, types, text)?,
        "pattern" => text.patterns.push(Pattern::new(value.as_str()?)?),
        "minLength" => {
            text.characters_min = text
                .characters_min
                .max(usize::try_from(value.as_u64()?).ok()?);
        }
        "maxLength" => {
            let limit = usize::try_from(value.as_u64()?).ok()?;
            text.characters_max = Some(text.characters_max.map_or(limit, |known| known.min(limit)));
        }
        "format" if value == "date-time" => text.is_date_time = true,
        _ => return None,
    }
    Some(())
}

fn types_of(value: &Value) -> Option<u8> {
    let one = |value: &Value| {
        Some(match value.as_str()? {
            "null" => NULL,
            "boolean" => BOOLEAN,
            "integer" => INTEGER,
            "number" => INTEGER | FRACTION,
            "string" => STRING,
            "array" => ARRAY,
            "object" => OBJECT,
            _ => return None,
        })
    };
    match value {
        Value::Array(several) => several
            .iter()
            .try_fold(0, |types, value| Some(types | one(value)?)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            one(value)
        }
    }
}

/// An enumeration of texts and null.
fn options(values: &[Value], types: &mut u8, text: &mut Text) -> Option<()> {
    let mut allowed = 0;
    let mut words = Vec::new();
    for value in values {
        match value {
            Value::Null => allowed |= NULL,
            Value::String(word) => {
                allowed |= STRING;
                words.push(word.as_str().into());
            }
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => return None,
        }
    }
    if text.options.is_some() {
        return None;
    }
    *types &= allowed;
    text.options = Some(words);
    Some(())
}

impl Text {
    fn says_something(&self) -> bool {
        self.options.is_some()
            || !self.patterns.is_empty()
            || self.characters_min > 0
            || self.characters_max.is_some()
            || self.is_date_time
    }

    fn fits(&self, text: &str) -> bool {
        if let Some(options) = &self.options
            && !options.iter().any(|option| **option == *text)
        {
            return false;
        }
        if self.characters_min > 0 || self.characters_max.is_some() {
            let length = if text.is_ascii() {
                text.len()
            } else {
                text.chars().count()
            };
            if length < self.characters_min || self.characters_max.is_some_and(|most| length > most)
            {
                return false;
            }
        }
        self.patterns.iter().all(|pattern| pattern.fits(text))
            && (!self.is_date_time || crate::schema::is_date_time(text))
    }
}

impl Pattern {
    /// Reads `^START[CLASS]{N}$`; other patterns run as they are, those with look-around not at all.
    fn new(pattern: &str) -> Option<Self> {
        Self::run(pattern).or_else(|| regex::Regex::new(pattern).ok().map(Self::Other))
    }

    fn run(pattern: &str) -> Option<Self> {
        let inside = pattern.strip_prefix('^')?.strip_suffix("}$")?;
        let (start, rest) = inside.split_once('[')?;
        let (class, count) = rest.split_once("]{")?;
        if !start
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_')
        {
            return None;
        }
        let mut allowed = [false; 128];
        let mut class = class.as_bytes();
        while let [first, rest @ ..] = class {
            let last = match rest {
                [b'-', last, ..] => *last,
                _ => *first,
            };
            class = if last == *first { rest } else { &rest[2..] };
            if !first.is_ascii_alphanumeric() || !last.is_ascii_alphanumeric() {
                return None;
            }
            (*first..=last).for_each(|b| allowed[usize::from(b)] = true);
        }
        Some(Self::Run {
            start: start.into(),
            class: allowed,
            count: count.parse().ok()?,
        })
    }

    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Run {
                start,
                class,
                count,
            } => text.strip_prefix(&**start).is_some_and(|run| {
                run.len() == *count
                    && run
                        .bytes()
                        .all(|b| class.get(usize::from(b)).is_some_and(|is_in| *is_in))
            }),
            Self::Other(regex) => regex.is_match(text),
        }
    }
}

impl Name {
    /// Nothing where the name would stand escaped in a document.
    fn new(name: &str) -> Option<Self> {
        if name.bytes().any(|b| b == b'"' || b == b'\\' || b < b' ') {
            return None;
        }
        let quoted = format!("\"{name}\"").into_bytes();
        let mut head = [0; 8];
        let mut mask = [0; 8];
        for (at, byte) in quoted.iter().take(8).enumerate() {
            head[at] = *byte;
            mask[at] = u8::MAX;
        }
        let (head, head_mask) = (u64::from_le_bytes(head), u64::from_le_bytes(mask));
        Some(Self {
            quoted: quoted.into(),
            head,
            head_mask,
        })
    }

    /// True when the text begins with this name in its quotes.
    fn begins(&self, text: &[u8]) -> bool {
        let is_likely = text
            .first_chunk()
            .is_none_or(|head| u64::from_le_bytes(*head) & self.head_mask == self.head);
        is_likely && text.starts_with(&self.quoted)
    }
}

// --- looking -----------------------------------------------------------------------------------

/// Looks at documents of one kind and counts what they gave to judge.
#[derive(Debug)]
pub(super) struct Look<'g> {
    glance: &'g Glance,
    /// Documents that broke nothing.
    documents: usize,
    /// For each object, the members that were there last, and in how many documents.
    runs: Vec<(u64, usize)>,
    counts: Vec<usize>,
    scratch: Scratch,
}

impl<'g> Look<'g> {
    pub(super) fn new(glance: &'g Glance) -> Self {
        let runs = vec![(0, 0); glance.judged.len()];
        let counts = vec![0; glance.rules.len()];
        Self {
            glance,
            documents: 0,
            runs,
            counts,
            scratch: Scratch::default(),
        }
    }

    /// True when the document surely breaks nothing; then it is counted.
    pub(super) fn passes(&mut self, document: &str) -> bool {
        self.scratch.met.clear();
        self.scratch.names.clear();
        let mut tokens = Tokens {
            text: document,
            bytes: document.as_bytes(),
            at: 0,
            scratch: &mut self.scratch,
        };
        let passes = document.len() <= DOCUMENT_BYTES_MAX
            && tokens.value(&self.glance.root, 0).is_some()
            && tokens.is_at_end();
        if passes {
            self.documents += 1;
            for index in 0..self.scratch.met.len() {
                let (object, members) = self.scratch.met[index];
                if self.runs[object].0 == members {
                    self.runs[object].1 += 1;
                } else {
                    self.settle(object);
                    self.runs[object] = (members, 1);
                }
            }
        }
        passes
    }

    /// Adds up a run of documents in which an object had the same members.
    fn settle(&mut self, object: usize) {
        let (members, times) = self.runs[object];
        let judged = &self.glance.judged[object];
        for rule in &judged.always {
            self.counts[*rule] += times;
        }
        for (bit, rules) in judged.present.iter().enumerate() {
            if members & (1 << bit) != 0 {
                for rule in rules {
                    self.counts[*rule] += times;
                }
            }
        }
    }

    /// How many documents passed, and what they gave to judge.
    pub(super) fn finish(mut self) -> (usize, Judgement) {
        for object in 0..self.runs.len() {
            self.settle(object);
        }
        let mut judgement = Judgement::default();
        for (rule, count) in self
            .glance
            .rules
            .iter()
            .zip(&self.counts)
            .filter(|(_, count)| **count > 0)
        {
            judgement.tallies.entry(rule.clone()).or_default().judged = *count;
        }
        (self.documents, judgement)
    }
}

/// A document as tokens. Every step answers nothing where it is not sure.
struct Tokens<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    scratch: &'a mut Scratch,
}

/// Memory that is used again for each document.
#[derive(Debug, Default)]
struct Scratch {
    /// Objects of the present document with the members that are there.
    met: Vec<(usize, u64)>,
    /// Where the unlisted names of the open objects stand.
    names: Vec<(usize, usize)>,
}

/// Where nothing is said.
static FREE: Place = Place {
    types: ANY,
    text: None,
    object: None,
    items: None,
};

/// Every byte of a word that is `byte`, as its high bit; right up to the first one.
const fn equal_bytes(word: u64, byte: u8) -> u64 {
    let apart = word ^ (0x0101_0101_0101_0101 * byte as u64);
    apart.wrapping_sub(0x0101_0101_0101_0101) & !apart & 0x8080_8080_8080_8080
}

/// Every byte of a word that is below a blank, as its high bit; right up to the first one.
const fn control_bytes(word: u64) -> u64 {
    word.wrapping_sub(0x2020_2020_2020_2020) & !word & 0x8080_8080_8080_8080
}

impl<'a> Tokens<'a> {
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    fn value(&mut self, place: &Place, depth: usize) -> Option<()> {
        let allows = |types: u8| (place.types & types != 0).then_some(());
        match self.peek()? {
            b'"' => {
                allows(STRING)?;
                match &place.text {
                    Some(wanted) => wanted.fits(self.plain_string()?).then_some(()),
                    None => self.string(),
                }
            }
            b'{' => {
                allows(OBJECT)?;
                self.object(place.object.as_deref(), depth)
            }
            b'[' => {
                allows(ARRAY)?;
                self.array(place.items.as_deref(), depth)
            }
            b'n' => {
                allows(NULL)?;
                self.word("null")
            }
            b't' => {
                allows(BOOLEAN)?;
                self.word("true")
            }
            b'f' => {
                allows(BOOLEAN)?;
                self.word("false")
            }
            _ => {
                allows(INTEGER | FRACTION)?;
                self.number(place.types & FRACTION != 0)
            }
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let is_there = self.bytes[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        is_there.then_some(())
    }

    /// A number; one with a fraction or exponent only where any number will do, as `1.0` may count
    /// as an integer or not.
    fn number(&mut self, is_any: bool) -> Option<()> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if is_any && self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        let ends = self
            .bytes
            .get(self.at)
            .is_none_or(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
        ends.then_some(())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// Passes over a string, escapes of one character included.
    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.next_mark()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => {
                    let escaped = self.bytes.get(self.at + 1)?;
                    if !matches!(
                        escaped,
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'
                    ) {
                        return None;
                    }
                    self.at += 2;
                }
                _ => return None,
            }
        }
    }

    /// The text of a string without escapes.
    fn plain_string(&mut self) -> Option<&'a str> {
        self.at += 1;
        let start = self.at;
        if self.next_mark()? != b'"' {
            return None;
        }
        self.at += 1;
        self.text.get(start..self.at - 1)
    }

    /// Goes on to the next quote, backslash or control character.
    fn next_mark(&mut self) -> Option<u8> {
        while let Some(chunk) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            let word = u64::from_le_bytes(*chunk);
            let marks = equal_bytes(word, b'"') | equal_bytes(word, b'\\') | control_bytes(word);
            if marks != 0 {
                let at = marks.trailing_zeros() as usize / 8;
                self.at += at;
                return Some(chunk[at]);
            }
            self.at += 8;
        }
        loop {
            let byte = *self.bytes.get(self.at)?;
            if matches!(byte, b'"' | b'\\') || byte < b' ' {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn array(&mut self, items: Option<&Place>, depth: usize) -> Option<()> {
        if depth >= DEPTH_MAX {
            return None;
        }
        self.at += 1;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(items.unwrap_or(&FREE), depth + 1)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn object(&mut self, object: Option<&Object>, depth: usize) -> Option<()> {
        if depth >= DEPTH_MAX {
            return None;
        }
        let members = object.map_or(&[][..], |o| &o.members);
        let others = object.map_or(Some(&FREE), |o| o.others.as_ref());
        let first_name = self.scratch.names.len();
        let (mut seen, mut expected) = (0_u64, 0);
        self.at += 1;
        if self.peek()? == b'}' {
            self.at += 1;
        } else {
            loop {
                if self.peek()? != b'"' {
                    return None;
                }
                let rest = &self.bytes[self.at..];
                let is_next = members
                    .get(expected)
                    .is_some_and(|(name, _)| name.begins(rest));
                let bit = is_next
                    .then_some(expected)
                    .or_else(|| members.iter().position(|(name, _)| name.begins(rest)));
                let place = if let Some(bit) = bit {
                    let (name, place) = &members[bit];
                    if seen & (1 << bit) != 0 {
                        return None;
                    }
                    self.at += name.quoted.len();
                    seen |= 1 << bit;
                    expected = bit + 1;
                    place
                } else {
                    self.unlisted_name(first_name)?;
                    others?
                };
                if self.peek()? != b':' {
                    return None;
                }
                self.at += 1;
                self.value(place, depth + 1)?;
                match self.peek()? {
                    b',' => self.at += 1,
                    b'}' => {
                        self.at += 1;
                        break;
                    }
                    _ => return None,
                }
            }
        }
        self.scratch.names.truncate(first_name);
        if let Some(object) = object {
            if seen & object.required != object.required {
                return None;
            }
            self.scratch
                .met
                .extend(object.index.map(|index| (index, seen)));
        }
        Some(())
    }

    /// A name that no schema lists, told apart from the others of its object.
    fn unlisted_name(&mut self, first_name: usize) -> Option<()> {
        let start = self.at;
        let name = self.plain_string()?;
        let others = &self.scratch.names[first_name..];
        let is_twice = others
            .iter()
            .any(|(start, end)| self.bytes[*start..*end] == *name.as_bytes());
        // Some names have a meaning inside the reader; it refuses them.
        if is_twice || others.len() >= UNLISTED_MAX || name.starts_with('$') {
            return None;
        }
        self.scratch.names.push((start + 1, start + 1 + name.len()));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Plan, subjects};
    use crate::judge::evidence::{Evidence, Payload};
    use crate::judge::judge;
    use crate::schema::Schemas;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::{Arc, OnceLock};

    struct World {
        rulebook: Rulebook,
        schemas: Schemas,
        /// Kinds that have a glance, each with some documents.
        kinds: Vec<(String, Glance, Vec<String>)>,
    }

    fn world() -> &'static World {
        static WORLD: OnceLock<World> = OnceLock::new();
        WORLD.get_or_init(|| {
            let rulebook = Rulebook::from_dir(Path::new("specs"))
                .unwrap_or_else(|problems| panic!("{problems}"));
            let mut kinds = Vec::new();
            for subject in subjects(&rulebook) {
                let Some(glance) = Glance::of(&rulebook, &subject.name) else {
                    continue;
                };
                let Ok(plan) = Plan::new(&subject) else {
                    continue;
                };
                let mut documents = plan.documents(1);
                let texts = (0..20)
                    .map(|n| documents.value(n).unwrap().to_string())
                    .collect();
                kinds.push((subject.name.clone(), glance, texts));
            }
            World {
                rulebook,
                schemas: Schemas::default(),
                kinds,
            }
        })
    }

    /// What the careful way says: nothing where it finds something, else how often each rule judged.
    fn careful(kind: &str, text: &str) -> Option<BTreeMap<String, usize>> {
        let world = world();
        let parsed = crate::json::parse(text.as_bytes(), crate::json::Limits::default()).ok()?;
        let payloads = vec![Payload {
            kind: kind.to_owned(),
            value: Arc::new(parsed.value),
            notes: parsed.notes,
            step: 0,
        }];
        let judgement = judge(
            &world.rulebook,
            &world.schemas,
            &Evidence {
                payloads,
                ..Evidence::default()
            },
        );
        let judged = judgement
            .tallies
            .into_iter()
            .filter(|(_, tally)| tally.judged > 0);
        judgement
            .findings
            .is_empty()
            .then(|| judged.map(|(rule, tally)| (rule, tally.judged)).collect())
    }

    /// Whether the glance passes it; then both ways agree.
    fn agrees(kind: &str, glance: &Glance, text: &str) -> bool {
        let mut look = Look::new(glance);
        let passes = look.passes(text);
        if passes {
            let (_, judgement) = look.finish();
            let counted = judgement
                .tallies
                .into_iter()
                .map(|(rule, tally)| (rule, tally.judged))
                .collect();
            assert_eq!(careful(kind, text), Some(counted), "{kind}: {text}");
        }
        passes
    }

    #[test]
    fn every_event_has_a_glance_that_passes_what_is_fine() {
        let events = world()
            .kinds
            .iter()
            .filter(|(kind, ..)| kind.starts_with("events/"));
        assert_eq!(
            events.clone().count(),
            world()
                .rulebook
                .kinds
                .keys()
                .filter(|k| k.starts_with("events/"))
                .count()
        );
        for (kind, glance, texts) in events {
            let passed = texts
                .iter()
                .filter(|text| agrees(kind, glance, text))
                .count();
            assert!(
                passed > texts.len() / 2,
                "{kind}: {passed} of {}",
                texts.len()
            );
        }
    }

    #[test]
    fn fixtures_of_every_kind_are_told_alike() {
        for (kind, glance, texts) in &world().kinds {
            for text in texts {
                agrees(kind, glance, text);
                let spread = text.replace(':', " : ").replace(',', " ,\n ");
                agrees(kind, glance, &spread);
            }
        }
    }

    #[test]
    fn what_a_glance_does_not_read_is_left_to_the_careful_way() {
        let (kind, glance, _) = world()
            .kinds
            .iter()
            .find(|(kind, ..)| kind == "events/MessageSent/4")
            .unwrap();
        assert!(
            agrees(kind, glance, "{}")
                && agrees(kind, glance, " {\"tags\": {\"a\": \"\\n\u{e9}\"}} ")
        );
        for text in [
            "",
            "null",
            "[]",
            "{",
            "{}x",
            "{\"x\":1}",
            "{\"attempt\":null}",
            "{\"attempt\":1}",
            "{\"attempt\":\"1\",}",
            "{\"attempt\":\"1\",\"attempt\":\"1\"}",
            "{\"attempt\" \"1\"}",
            "{\"attempt\":\"\\u0031\"}",
            "{\"attempt\":\"\\x\"}",
            "{\"attempt\":\"\t\"}",
            "{\"from\":{\"channel\":\"SMS\"}}",
            "{\"tags\":{\"a\":\"\",\"a\":\"\"}}",
            "{\"tags\":{\"a\":1}}",
            "{\"tags\":{\"$serde_json::private::Number\":\"1\"}}",
            "{\"attempt\":\"1\"",
        ] {
            assert!(!agrees(kind, glance, text), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn changed_documents_are_told_alike(
            kind in any::<prop::sample::Index>(),
            document in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            with in prop::sample::select(vec![
                "", "\"", "\\", "null", "1", "-0", "01", "1.0", "1e5", "true", "{}", "[]", "{", "}", ",", ":", "\"\"", "\"x\":1,", "\u{e9}", "\u{0}", " ",
            ]),
            removed in 0..6_usize,
        ) {
            let (kind, glance, texts) = kind.get(&world().kinds);
            let text = document.get(texts);
            let mut changed: Vec<char> = text.chars().collect();
            let at = at.index(changed.len());
            let end = (at + removed).min(changed.len());
            changed.splice(at..end, with.chars());
            agrees(kind, glance, &changed.into_iter().collect::<String>());
        }

        #[test]
        fn made_up_documents_are_told_alike(
            members in prop::collection::vec((
                prop::sample::select(vec!["operation_id", "message_id", "attempt", "downstream_id", "from", "to", "tags", "id", "channel", "x"]),
                prop::sample::select(vec!["\"sms\"", "\"\"", "null", "1", "{}", "{\"id\":\"a\",\"channel\":\"rcs\"}", "{\"a\":\"b\"}", "{\"a\":null}", "[]", "\"\\\\\""]),
            ), 0..6),
        ) {
            let (kind, glance, _) = world().kinds.iter().find(|(kind, ..)| kind == "events/MessageSent/4").unwrap();
            let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            agrees(kind, glance, &format!("{{{}}}", members.join(",")));
        }

        #[test]
        fn marks_are_found_wherever_they_stand(text in "[ -~\u{e9}\u{4e00}\t]{0,40}") {
            let mut scratch = Scratch::default();
            let mut tokens = Tokens { text: &text, bytes: text.as_bytes(), at: 0, scratch: &mut scratch };
            let found = tokens.next_mark().map(|_| tokens.at);
            prop_assert_eq!(found, text.bytes().position(|b| matches!(b, b'"' | b'\\') || b < b' '));
        }
    }

    #[test]
    fn patterns_of_one_run_are_told_as_the_engine_tells_them() {
        let pattern = "^FN[0-9a-fA-F]{32}$";
        let quick = Pattern::new(pattern).unwrap();
        assert!(matches!(quick, Pattern::Run { .. }));
        let slow = regex::Regex::new(pattern).unwrap();
        for text in [
            format!("FN{}", "0aF".repeat(10)),
            format!("FN{}", "0a".repeat(16)),
            format!("FN{}g", "0a".repeat(15)),
            String::new(),
            format!("FX{}", "0a".repeat(16)),
            format!("FN{}\n", "0a".repeat(16)),
            format!("FN{}\u{e9}", "0a".repeat(15)),
        ] {
            assert_eq!(quick.fits(&text), slow.is_match(&text), "{text}");
        }
    }
}
