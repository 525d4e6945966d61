//! Compares texts as sets: those that two patterns and lengths accept, with a text that only one of them accepts.
//!
//! It traverses both automata in parallel. Patterns without an automaton (look-ahead, back reference) or with a large one
//! are undecided.

use conformant_base::sorted::SortedMap;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};
use std::collections::VecDeque;

/// Maximum size of an automaton.
const AUTOMATON_BYTES_MAX: usize = 4 << 20;
/// Maximum number of visited states.
const STATES_MAX: usize = 300_000;

/// The texts that a schema accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Texts {
    /// Value of `pattern`.
    pub(super) pattern: Option<String>,
    /// Minimum length.
    pub(super) shortest: u64,
    /// Maximum length.
    pub(super) longest: Option<u64>,
}

/// A text in only one of two sets, or none.
pub(super) type Only = Option<String>;

impl Texts {
    /// A text of this set that is not in the other, and vice versa; none if undecided.
    pub(super) fn apart(&self, other: &Self) -> Option<(Only, Only)> {
        if self == other {
            return Some((None, None));
        }
        if self.pattern.is_none() && other.pattern.is_none() {
            return Some((self.beyond(other), other.beyond(self)));
        }
        let (one, two) = (self.automaton()?, other.automaton()?);
        let walk = |a: (&Dfa, &Self), b: (&Dfa, &Self)| Walk::new(a, b).first();
        let lost = walk((&one, self), (&two, other))?;
        let gained = walk((&two, other), (&one, self))?;
        Some((lost, gained))
    }

    /// A text that is too short or too long for the other set, without patterns.
    fn beyond(&self, other: &Self) -> Only {
        let has = |length: u64| {
            length >= self.shortest && self.longest.is_none_or(|longest| length <= longest)
        };
        let edges = [
            Some(self.shortest),
            other.longest.map(|longest| longest + 1),
        ];
        let length = edges.into_iter().flatten().find(|length| {
            has(*length)
                && (*length < other.shortest || other.longest.is_some_and(|most| *length > most))
        })?;
        // Longer texts are distinguished by length only.
        usize::try_from(length)
            .ok()
            .map(|length| "a".repeat(length.min(1 << 16)))
    }

    /// A shortest text of the set.
    pub(super) fn one(&self) -> Option<String> {
        let nothing = Self {
            pattern: Some("a^".to_owned()),
            ..Self::default()
        };
        self.apart(&nothing)?.0
    }

    fn automaton(&self) -> Option<Dfa> {
        let pattern = self.pattern.as_deref().unwrap_or_default();
        // In JSON Schema patterns a digit is ASCII.
        let pattern = pattern.replace("\\d", "[0-9]");
        let config = dense::Config::new()
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Anchored)
            .accelerate(false)
            .dfa_size_limit(Some(AUTOMATON_BYTES_MAX))
            .determinize_size_limit(Some(2 * AUTOMATON_BYTES_MAX));
        dense::Builder::new()
            .configure(config)
            .thompson(thompson::Config::new().nfa_size_limit(Some(AUTOMATON_BYTES_MAX)))
            .build(&format!(r"\A(?s:.)*(?:{pattern})(?s:.)*\z"))
            .ok()
    }

    fn fits(&self, length: u64) -> bool {
        length >= self.shortest && self.longest.is_none_or(|longest| length <= longest)
    }

    /// Larger lengths are treated alike.
    fn edge(&self) -> u64 {
        self.shortest
            .max(self.longest.map_or(0, |longest| longest + 1))
    }
}

type Dfa = dense::DFA<Vec<u32>>;

/// State of a traversal: both automata and the length.
type Spot = (StateID, StateID, u64);

/// Traverses both automata for a text of the first that is not one of the second.
struct Walk<'a> {
    one: (&'a Dfa, &'a Texts),
    two: (&'a Dfa, &'a Texts),
    /// One byte of each equivalence class, readable ones first.
    bytes: Vec<u8>,
    edge: u64,
}

impl<'a> Walk<'a> {
    fn new(one: (&'a Dfa, &'a Texts), two: (&'a Dfa, &'a Texts)) -> Self {
        let mut kinds: SortedMap<(u8, u8, bool), u8> = SortedMap::new();
        let readable = (b'a'..=b'z')
            .chain(b'0'..=b'9')
            .chain(b'A'..=b'Z')
            .chain(b' '..=b'~');
        for byte in readable.chain(0..=u8::MAX) {
            let (a, b) = (
                one.0.byte_classes().get(byte),
                two.0.byte_classes().get(byte),
            );
            kinds.entry((a, b, continues(byte))).or_insert(byte);
        }
        Self {
            edge: one.1.edge().max(two.1.edge()),
            bytes: kinds.into_values().collect(),
            one,
            two,
        }
    }

    /// The outer `None` means undecided.
    fn first(&self) -> Option<Only> {
        let begin = start::Config::new().anchored(Anchored::Yes);
        let state = |dfa: &Dfa| dfa.start_state(&begin).ok();
        let spot: Spot = (state(self.one.0)?, state(self.two.0)?, 0);
        let mut came: SortedMap<Spot, Option<(Spot, u8)>> = SortedMap::from([(spot, None)]);
        let mut waiting = VecDeque::from([spot]);
        while let Some(spot) = waiting.pop_front() {
            if self.is_apart(spot) {
                return Some(text_to(&came, spot));
            }
            for byte in &self.bytes {
                let next = self.next(spot, *byte);
                if self.one.0.is_dead_state(next.0) || came.contains_key(&next) {
                    continue;
                }
                if came.len() >= STATES_MAX {
                    return None;
                }
                came.insert(next, Some((spot, *byte)));
                waiting.push_back(next);
            }
        }
        Some(None)
    }

    fn next(&self, (one, two, length): Spot, byte: u8) -> Spot {
        let length = length + u64::from(!continues(byte));
        (
            self.one.0.next_state(one, byte),
            self.two.0.next_state(two, byte),
            length.min(self.edge),
        )
    }

    fn is_apart(&self, (one, two, length): Spot) -> bool {
        let ends = |dfa: &Dfa, state: StateID| dfa.is_match_state(dfa.next_eoi_state(state));
        let is_in = ends(self.one.0, one) && self.one.1.fits(length);
        is_in && !(ends(self.two.0, two) && self.two.1.fits(length))
    }
}

/// Whether a byte continues a character.
fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn text_to(came: &SortedMap<Spot, Option<(Spot, u8)>>, mut spot: Spot) -> Only {
    let mut bytes = Vec::new();
    while let Some(Some((before, byte))) = came.get(&spot) {
        bytes.push(*byte);
        spot = *before;
    }
    bytes.reverse();
    String::from_utf8(bytes).ok()
}
