//! Compiles the schema and written rules of a type for the fast path; none if they have unsupported constructs.

use super::{
    DEPTH_MAX, FastPath, Judged, Literal, Name, OBJECTS_MAX, Object, Pattern, Place, Text,
};
use conformant_base::json::{join, segments};
use conformant_rulebook::{
    Constraints, OTHER_FIELDS_KEY, Origin, PayloadRule, RULE_KEY, Resolved, Rulebook, Subject,
    types,
};
use serde_json::Value;

/// Keywords that the other users of a schema know and this one does not.
const UNDECIDED: [&str; 7] = [
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "contains",
    "propertyNames",
    "contentMediaType",
];

type Schemas<'a> = conformant_rulebook::Place<'a>;

struct Compiler<'a> {
    /// The type's own schema, whose properties are rules.
    own: &'a Value,
    judged: Vec<Judged>,
    rules: Vec<String>,
    /// Written rules with their pointers.
    written: Vec<(&'a str, &'a str, &'a Value)>,
    /// How many of them were compiled.
    reached: usize,
}

impl FastPath {
    /// Compiles a type; none if its rules have unsupported constructs.
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
            // It reports byte order marks and duplicate names, which the fast path rejects anyway.
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
            own: &known.schema,
            judged: Vec::new(),
            rules: Vec::new(),
            written,
            reached: 0,
        };
        let root = compiler.place("", Schemas::root(&known.schema), true)?;
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
    /// The combined constraints of these schemas; `is_single`: a document has at most one such place.
    fn place(&mut self, pointer: &str, mut schemas: Schemas<'a>, is_single: bool) -> Option<Place> {
        if segments(pointer).count() > DEPTH_MAX {
            return None;
        }
        for (at, _, schema) in &self.written {
            if *at == pointer {
                self.reached += 1;
                schemas = schemas.and(Schemas::root(schema));
            }
        }
        let mut place = Place {
            types: types::ALL,
            text: None,
            object: None,
            items: None,
        };
        if schemas.is_empty() {
            return Some(place);
        }
        let schemas = schemas.always();
        if UNDECIDED.iter().any(|keyword| schemas.has(keyword)) {
            return None;
        }
        let text;
        (place.types, text) = limits(&schemas.constraints())?;
        if place.types & types::STRING != 0 {
            place.text = text.says_something().then_some(text);
        }
        if place.types & types::OBJECT != 0 {
            place.object = Some(Box::new(self.object(pointer, &schemas, is_single)?));
        }
        if place.types & types::ARRAY != 0 {
            let items = self.place(&format!("{pointer}/*"), schemas.items(), false)?;
            place.items = Some(Box::new(items));
        }
        Some(place)
    }

    fn object(&mut self, pointer: &str, schemas: &Resolved<'a>, is_single: bool) -> Option<Object> {
        // Documents probably have the order of the schema.
        let names = schemas.listed();
        let required: Vec<&str> = schemas.required().collect();
        if names.len() > 64 || required.iter().any(|name| !names.contains(name)) {
            return None;
        }
        let own = schemas.of(self.own);
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
            let ids = own.properties(name);
            let ids = ids.filter_map(|(property, _)| property.get(RULE_KEY)?.as_str());
            let mut rules: Vec<usize> = ids.map(|rule| self.rule(rule)).collect();
            if required.contains(name) {
                object.required |= 1 << bit;
                judged.always.append(&mut rules);
            }
            rules.extend(self.written_at(&at));
            judged.present.push(rules);
            let place = self.place(&at, schemas.member(name), is_single)?;
            object.members.push((Name::new(name)?, place));
        }
        let closed: Vec<&str> = own
            .all(OTHER_FIELDS_KEY)
            .filter_map(Value::as_str)
            .collect();
        if closed.len() > 1 {
            return None;
        }
        judged
            .always
            .extend(closed.iter().map(|rule| self.rule(rule)));
        let is_refused = schemas
            .all("additionalProperties")
            .any(|rest| *rest == false);
        if closed.is_empty() && !is_refused {
            let others = self.place(&format!("{pointer}/*"), schemas.others(), false)?;
            object.others = Some(others);
        }
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

    /// A rule that every document triggers is not counted again in nested objects.
    /// None if two nested objects share one.
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

    /// Written rules about exactly that place.
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

/// The types and texts of a place; none if something is not decided here.
fn limits(limits: &Constraints<'_>) -> Option<(u8, Text)> {
    let is_decided = limits.unknown.is_empty() && limits.excluded.is_empty();
    if !is_decided || !limits.refused.is_empty() {
        return None;
    }
    let mut types = limits.types;
    let mut text = Text {
        options: None,
        patterns: Vec::new(),
        characters_min: limits.length.0,
        characters_max: limits.length.1,
        is_date_time: !limits.formats.is_empty(),
    };
    if limits.formats.iter().any(|format| *format != "date-time") {
        return None;
    }
    for pattern in &limits.patterns {
        text.patterns.push(Pattern::new(pattern)?);
    }
    if let Some(values) = &limits.values {
        let mut allowed = types::NONE;
        let mut words = Vec::new();
        for value in values {
            match value {
                Value::Null => allowed |= types::NULL,
                // Only the texts that the other constraints accept.
                Value::String(word) => {
                    allowed |= types::STRING;
                    if text.fits(word.as_bytes(), word.is_ascii()) {
                        words.push(Literal::quoted(word)?);
                    }
                }
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    return None;
                }
            }
        }
        types &= allowed;
        text.options = Some(words);
    }
    (types != types::NONE).then_some((types, text))
}
