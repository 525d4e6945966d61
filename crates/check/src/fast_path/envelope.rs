//! Fast path for events in envelopes: finds type, schema address and payload, and validates the payload by its type.

use super::validate::{FREE, FastValidator, Scratch, Tokens};
use super::{FastPath, Name};
use crate::stream::vendor_end;
use conformant_judge::Judgment;
use std::ops::Range;

/// Parts of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Type,
    Schema,
    Payload,
}

/// The members that lead to the parts of an envelope.
#[derive(Debug, Default)]
struct Tree(Vec<(Name, Node)>);

#[derive(Debug)]
enum Node {
    Part(Part),
    Below(Tree),
}

/// Validator of one event type.
#[derive(Debug)]
pub(crate) struct TypeFastPath {
    /// The type name after the vendor's segment.
    pub(crate) name: String,
    /// The end of its schema address; empty without a documented payload.
    pub(crate) schema: String,
    /// Validator of its payload; none without a documented payload.
    pub(crate) payload: Option<FastPath>,
}

/// A compiled mapping with the known types.
#[derive(Debug)]
pub(crate) struct Envelopes {
    tree: Tree,
    types: Vec<TypeFastPath>,
}

impl Envelopes {
    /// None if a path contains a list or a name that needs escapes.
    pub(crate) fn of(paths: &[(Part, Vec<String>)], types: Vec<TypeFastPath>) -> Option<Self> {
        let mut tree = Tree::default();
        for (part, path) in paths {
            let is_index = |segment: &String| segment.bytes().all(|b| b.is_ascii_digit());
            if path.iter().any(is_index) {
                return None;
            }
            tree.add(*part, path)?;
        }
        Some(Self { tree, types })
    }
}

impl Tree {
    /// None if two parts have the same place, or one contains the other.
    fn add(&mut self, part: Part, path: &[String]) -> Option<()> {
        let (first, rest) = path.split_first()?;
        let name = Name::new(first)?;
        let known = self.0.iter().position(|(n, _)| n.is(&name));
        match (known, rest.is_empty()) {
            (None, true) => self.0.push((name, Node::Part(part))),
            (None, false) => {
                let mut below = Self::default();
                below.add(part, rest)?;
                self.0.push((name, Node::Below(below)));
            }
            (Some(at), false) => match &mut self.0[at].1 {
                Node::Below(below) => below.add(part, rest)?,
                Node::Part(_) => return None,
            },
            (Some(_), true) => return None,
        }
        Some(())
    }
}

/// Number of valid events of one type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    pub(crate) events: usize,
    /// Number of those with a schema address.
    pub(crate) announced: usize,
}

/// Validates events in envelopes and counts what was judged.
#[derive(Debug)]
pub(crate) struct LookInside<'g> {
    envelopes: &'g Envelopes,
    validators: Vec<Option<FastValidator<'g>>>,
    passed: Vec<Passed>,
    scratch: Scratch,
}

/// State of one envelope.
#[derive(Default)]
struct Met {
    r#type: Option<usize>,
    schema: Option<Range<usize>>,
    payload: Option<Range<usize>>,
    /// The type by which the payload was validated.
    looked: Option<usize>,
}

impl<'g> LookInside<'g> {
    pub(crate) fn new(envelopes: &'g Envelopes) -> Self {
        let validator =
            |of_type: &'g TypeFastPath| of_type.payload.as_ref().map(FastValidator::new);
        Self {
            envelopes,
            validators: envelopes.types.iter().map(validator).collect(),
            passed: vec![Passed::default(); envelopes.types.len()],
            scratch: Scratch::default(),
        }
    }

    /// Validates the first event of a text. If it certainly breaks no rule, counts it and returns the length of its line.
    pub(crate) fn line(&mut self, text: &[u8]) -> Option<usize> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut met = Met::default();
        let mut tokens = Tokens::new(text, &mut scratch);
        let read = self.envelope(&mut tokens, &mut met);
        let passed = read.and_then(|end| self.conclude(text, met, &scratch).map(|()| end));
        self.scratch = scratch;
        passed
    }

    fn envelope(&self, tokens: &mut Tokens<'_>, met: &mut Met) -> Option<usize> {
        let (start, first) = tokens.peek(0)?;
        if first != b'{' {
            return None;
        }
        let end = self.object(&self.envelopes.tree, tokens, start, met, 0)?;
        tokens.end_of_line(end)
    }

    /// Whether the schema address matches the type, and the payload is valid.
    fn conclude(&mut self, text: &[u8], met: Met, scratch: &Scratch) -> Option<()> {
        let index = met.r#type?;
        let known = &self.envelopes.types[index];
        let is_announced = met.schema.is_some();
        if let Some(address) = met.schema
            && (known.schema.is_empty() || !text[address].ends_with(known.schema.as_bytes()))
        {
            return None;
        }
        let payload = met.payload?;
        if let Some(validator) = &mut self.validators[index] {
            if met.looked == Some(index) {
                validator.count(&scratch.met);
            } else {
                validator.line(&text[payload])?;
            }
        }
        self.passed[index].events += 1;
        self.passed[index].announced += usize::from(is_announced);
        Some(())
    }

    fn object(
        &self,
        tree: &Tree,
        tokens: &mut Tokens<'_>,
        at: usize,
        met: &mut Met,
        depth: usize,
    ) -> Option<usize> {
        let read = tokens.members(at, &tree.0, depth, |tokens, at, node| match node {
            None => tokens.value(at, &FREE, depth + 1),
            Some(Node::Below(below)) => match tokens.peek(at)? {
                (at, b'{') => self.object(below, tokens, at, met, depth + 1),
                _ => None,
            },
            Some(Node::Part(part)) => self.part(*part, tokens, at, met, depth),
        });
        read.map(|(end, _)| end)
    }

    fn part(
        &self,
        part: Part,
        tokens: &mut Tokens<'_>,
        at: usize,
        met: &mut Met,
        depth: usize,
    ) -> Option<usize> {
        let (start, first) = tokens.peek(at)?;
        let end = match part {
            Part::Type | Part::Schema if first != b'"' => return None,
            Part::Type => {
                let name = tokens.plain_text(start)?;
                met.r#type = Some(self.known(&tokens.bytes[name.clone()])?);
                name.end + 1
            }
            Part::Schema => {
                let address = tokens.plain_text(start)?;
                met.schema = Some(address.clone());
                address.end + 1
            }
            Part::Payload => {
                met.looked = met.r#type;
                let fast_path = met
                    .looked
                    .and_then(|of_type| self.envelopes.types[of_type].payload.as_ref());
                let place = fast_path.map_or(&FREE, |fast_path| &fast_path.root);
                let end = tokens.value(start, place, depth + 1)?;
                met.payload = Some(start..end);
                end
            }
        };
        Some(end)
    }

    fn known(&self, text: &[u8]) -> Option<usize> {
        let name = &text[vendor_end(text)?..];
        let mut types = self.envelopes.types.iter();
        types.position(|t| t.name.as_bytes() == name)
    }

    /// Counts by type, and what was judged in payloads.
    pub(crate) fn finish(self) -> (Vec<(&'g TypeFastPath, Passed)>, Judgment) {
        let types = self.envelopes.types.iter().zip(self.passed).collect();
        let mut judgment = Judgment::default();
        for validator in self.validators.into_iter().flatten() {
            judgment.merge(validator.finish().1);
        }
        (types, judgment)
    }
}
