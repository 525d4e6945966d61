//! What a kind's schema and written rules come to, made for looking; nothing where they say more
//! than is understood.

use super::{
    ANY, ARRAY, BOOLEAN, DEPTH_MAX, FRACTION, Glance, INTEGER, Judged, Literal, NULL, Name, OBJECT,
    OBJECTS_MAX, Object, Pattern, Place, STRING, Text,
};
use conformant_base::json::{join, segments};
use conformant_rulebook::{OTHER_FIELDS_KEY, Origin, PayloadRule, RULE_KEY, Rulebook, Subject};
use serde_json::Value;

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
    pub(crate) fn of(rulebook: &Rulebook, kind: &str) -> Option<Self> {
        let known = rulebook.kinds.get(kind)?;
        if known.page_of.is_some() {
            return None;
        }
        let mut written = Vec::new();
        let mut of_all = Vec::new();
        for rule in rulebook.rules.values() {
            let Origin::Written(it) = &rule.origin else {
                continue;
            };
            // What it objects to, a mark or a name that comes twice, is nothing that a glance passes.
            let of_service = kind.split('/').next() == Some(rule.service.as_str());
            if it.predicate == "response-format" && it.subject == Subject::Service && of_service {
                of_all.push(rule.id.clone());
            }
            if !it.is_about(kind) {
                continue;
            }
            let Some(PayloadRule::Conforms { at, schema }) = &it.payload else {
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
        // Of several texts those remain that all else admits.
        if let Some(mut options) = text.options.take() {
            options.retain(|word| text.fits(word.within(), word.within().is_ascii()));
            text.options = Some(options);
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
                words.push(Literal::quoted(word)?);
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
