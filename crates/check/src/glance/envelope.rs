//! A glance at an event in its envelope: type, schema address and payload are found on the way, and
//! the payload is looked at as what its type says.

use super::look::{FREE, Look, Scratch, Tokens};
use super::{Glance, Name};
use crate::stream::vendor_end;
use conformant_judge::Judgement;
use std::ops::Range;

/// What an envelope holds where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Type,
    Schema,
    Payload,
}

/// The members of an object that lead to the parts of an envelope.
#[derive(Debug, Default)]
struct Tree(Vec<(Name, Node)>);

#[derive(Debug)]
enum Node {
    Part(Part),
    Below(Tree),
}

/// What events of one type are looked at as.
#[derive(Debug)]
pub(crate) struct TypeGlance {
    /// What follows the vendor's segment.
    pub(crate) name: String,
    /// How the address of its schema ends; empty where no schema is shown.
    pub(crate) schema: String,
    /// Its payload; nothing where no schema is shown, so that any will do.
    pub(crate) payload: Option<Glance>,
}

/// What is compiled of a mapping and the known types.
#[derive(Debug)]
pub(crate) struct Envelopes {
    tree: Tree,
    types: Vec<TypeGlance>,
}

impl Envelopes {
    /// Nothing where a path leads through a list, or a name would be escaped.
    pub(crate) fn of(paths: &[(Part, Vec<String>)], types: Vec<TypeGlance>) -> Option<Self> {
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
    /// Nothing where two parts would stand in or below one place.
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

/// How many events of one type passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    pub(crate) events: usize,
    /// Those of them that say the address of their schema.
    pub(crate) announced: usize,
}

/// Looks at events in their envelopes and counts what they gave to judge.
#[derive(Debug)]
pub(crate) struct LookInside<'g> {
    envelopes: &'g Envelopes,
    looks: Vec<Option<Look<'g>>>,
    passed: Vec<Passed>,
    scratch: Scratch,
}

/// What was met of one envelope.
#[derive(Default)]
struct Met {
    r#type: Option<usize>,
    schema: Option<Range<usize>>,
    payload: Option<Range<usize>>,
    /// The payload was looked at as this type's.
    looked: Option<usize>,
}

impl<'g> LookInside<'g> {
    pub(crate) fn new(envelopes: &'g Envelopes) -> Self {
        let look = |of_type: &'g TypeGlance| of_type.payload.as_ref().map(Look::new);
        Self {
            envelopes,
            looks: envelopes.types.iter().map(look).collect(),
            passed: vec![Passed::default(); envelopes.types.len()],
            scratch: Scratch::default(),
        }
    }

    /// Looks at the event that a text begins with: how long its line is, the end included, where it
    /// surely breaks nothing; then it is counted.
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

    /// The schema address fits the type, and the payload breaks nothing.
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
        if let Some(look) = &mut self.looks[index] {
            if met.looked == Some(index) {
                look.count(&scratch.met);
            } else {
                look.line(&text[payload])?;
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
                let glance = met
                    .looked
                    .and_then(|of_type| self.envelopes.types[of_type].payload.as_ref());
                let place = glance.map_or(&FREE, |glance| &glance.root);
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

    /// The types with what passed of each, and what the payloads gave to judge.
    pub(crate) fn finish(self) -> (Vec<(&'g TypeGlance, Passed)>, Judgement) {
        let types = self.envelopes.types.iter().zip(self.passed).collect();
        let mut judgement = Judgement::default();
        for look in self.looks.into_iter().flatten() {
            judgement.merge(look.finish().1);
        }
        (types, judgement)
    }
}
