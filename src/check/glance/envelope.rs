//! A glance at an event in its envelope: type, schema address and payload are found on the way, and
//! the payload is looked at as what its type says.

use super::look::{FREE, Look, Scratch, Tokens};
use super::{DEPTH_MAX, DOCUMENT_BYTES_MAX, Glance, Name};
use crate::check::stream::behind_the_vendor;
use crate::judge::Judgement;
use std::ops::Range;

/// What an envelope holds where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check) enum Part {
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
pub(in crate::check) struct TypeGlance {
    /// What follows the vendor's segment.
    pub(in crate::check) name: String,
    /// How the address of its schema ends; empty where no schema is shown.
    pub(in crate::check) schema: String,
    /// Its payload; nothing where no schema is shown, so that any will do.
    pub(in crate::check) payload: Option<Glance>,
}

/// What is compiled of a mapping and the known types.
#[derive(Debug)]
pub(in crate::check) struct Envelopes {
    tree: Tree,
    types: Vec<TypeGlance>,
}

impl Envelopes {
    /// Nothing where a path leads through a list, or a name would be escaped.
    pub(in crate::check) fn of(
        paths: &[(Part, Vec<String>)],
        types: Vec<TypeGlance>,
    ) -> Option<Self> {
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
        let known = self.0.iter().position(|(n, _)| n.quoted == name.quoted);
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
pub(in crate::check) struct Passed {
    pub(in crate::check) events: usize,
    /// Those of them that say the address of their schema.
    pub(in crate::check) announced: usize,
}

/// Looks at events in their envelopes and counts what they gave to judge.
#[derive(Debug)]
pub(in crate::check) struct LookInside<'g> {
    envelopes: &'g Envelopes,
    looks: Vec<Option<Look<'g>>>,
    passed: Vec<Passed>,
    scratch: Scratch,
}

/// What was met of one envelope.
#[derive(Default)]
struct Met<'a> {
    r#type: Option<usize>,
    schema: Option<&'a str>,
    payload: Option<Range<usize>>,
    /// The payload was looked at as this type's.
    looked: Option<usize>,
}

impl<'g> LookInside<'g> {
    pub(in crate::check) fn new(envelopes: &'g Envelopes) -> Self {
        let look = |of_type: &'g TypeGlance| of_type.payload.as_ref().map(Look::new);
        Self {
            envelopes,
            looks: envelopes.types.iter().map(look).collect(),
            passed: vec![Passed::default(); envelopes.types.len()],
            scratch: Scratch::default(),
        }
    }

    /// True when the event surely breaks nothing; then it is counted.
    pub(in crate::check) fn passes(&mut self, line: &str) -> bool {
        line.len() <= DOCUMENT_BYTES_MAX && self.event(line).is_some()
    }

    fn event(&mut self, line: &str) -> Option<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let met = self.envelope(line, &mut scratch);
        let passed = met.and_then(|met| self.conclude(line, &met, &mut scratch));
        self.scratch = scratch;
        passed
    }

    fn envelope<'a>(&self, line: &'a str, scratch: &mut Scratch) -> Option<Met<'a>> {
        let mut tokens = Tokens::new(line, scratch);
        let mut met = Met::default();
        if tokens.peek()? != b'{' {
            return None;
        }
        self.object(&self.envelopes.tree, &mut tokens, line, &mut met, 0)?;
        tokens.is_at_end().then_some(met)
    }

    /// The schema address fits the type, and the payload breaks nothing.
    fn conclude(&mut self, line: &str, met: &Met<'_>, scratch: &mut Scratch) -> Option<()> {
        let index = met.r#type?;
        let known = &self.envelopes.types[index];
        let announces =
            |address: &str| !known.schema.is_empty() && address.ends_with(&known.schema);
        if met.schema.is_some_and(|address| !announces(address)) {
            return None;
        }
        let payload = met.payload.clone()?;
        if let Some(look) = &mut self.looks[index] {
            if met.looked == Some(index) {
                look.count(&scratch.met);
            } else if !look.passes(&line[payload]) {
                return None;
            }
        }
        self.passed[index].events += 1;
        self.passed[index].announced += usize::from(met.schema.is_some());
        Some(())
    }

    fn object<'a>(
        &self,
        tree: &Tree,
        tokens: &mut Tokens<'_>,
        line: &'a str,
        met: &mut Met<'a>,
        depth: usize,
    ) -> Option<()> {
        if depth >= DEPTH_MAX {
            return None;
        }
        let first_name = tokens.names();
        let mut seen = 0_u64;
        tokens.at += 1;
        if tokens.peek()? == b'}' {
            tokens.at += 1;
            return Some(());
        }
        loop {
            if tokens.peek()? != b'"' {
                return None;
            }
            let rest = &line.as_bytes()[tokens.at..];
            let bit = tree.0.iter().position(|(name, _)| name.begins(rest));
            if let Some(bit) = bit {
                if seen & (1 << bit) != 0 {
                    return None;
                }
                seen |= 1 << bit;
                tokens.at += tree.0[bit].0.quoted.len();
            } else {
                tokens.unlisted_name(first_name)?;
            }
            if tokens.peek()? != b':' {
                return None;
            }
            tokens.at += 1;
            match bit.map(|bit| &tree.0[bit].1) {
                None => tokens.value(&FREE, depth + 1)?,
                Some(Node::Below(below)) if tokens.peek()? == b'{' => {
                    self.object(below, tokens, line, met, depth + 1)?;
                }
                Some(Node::Below(_)) => return None,
                Some(Node::Part(part)) => self.part(*part, tokens, line, met, depth)?,
            }
            match tokens.peek()? {
                b',' => tokens.at += 1,
                b'}' => {
                    tokens.at += 1;
                    break;
                }
                _ => return None,
            }
        }
        tokens.forget_names(first_name);
        Some(())
    }

    fn part<'a>(
        &self,
        part: Part,
        tokens: &mut Tokens<'_>,
        line: &'a str,
        met: &mut Met<'a>,
        depth: usize,
    ) -> Option<()> {
        let first = tokens.peek()?;
        let start = tokens.at;
        match part {
            Part::Type | Part::Schema if first != b'"' => return None,
            Part::Type => {
                tokens.plain_string()?;
                met.r#type = Some(self.known(&line[start + 1..tokens.at - 1])?);
            }
            Part::Schema => {
                tokens.plain_string()?;
                met.schema = Some(&line[start + 1..tokens.at - 1]);
            }
            Part::Payload => {
                let known = met.r#type;
                let glance = known.and_then(|t| self.envelopes.types[t].payload.as_ref());
                if let Some(glance) = glance {
                    tokens.value(&glance.root, depth + 1)?;
                    met.looked = known;
                } else {
                    tokens.value(&FREE, depth + 1)?;
                }
                met.payload = Some(start..tokens.at);
            }
        }
        Some(())
    }

    fn known(&self, text: &str) -> Option<usize> {
        let name = behind_the_vendor(text)?;
        self.envelopes.types.iter().position(|t| t.name == name)
    }

    /// The types with what passed of each, and what the payloads gave to judge.
    pub(in crate::check) fn finish(self) -> (Vec<(&'g TypeGlance, Passed)>, Judgement) {
        let types = self.envelopes.types.iter().zip(self.passed).collect();
        let mut judgement = Judgement::default();
        for look in self.looks.into_iter().flatten() {
            judgement.merge(look.finish().1);
        }
        (types, judgement)
    }
}
