//! Sites: the places in the evidence that decide an instance of a rule.

use super::evidence::Evidence;

/// A place in the evidence of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// An exchange as a whole: its acceptance, or its body as bytes.
    Exchange(usize),
    /// A place in the document of a response.
    Answer {
        /// Index into the exchanges.
        exchange: usize,
        /// JSON Pointer, with `*` if several places decide together.
        pointer: String,
    },
    /// A place in a payload that is not a response.
    Payload {
        /// Index into the payloads.
        payload: usize,
        /// JSON Pointer, with `*` if several places decide together.
        pointer: String,
    },
    /// A place in the result of a hook.
    Hook {
        /// Index into the events.
        event: usize,
        /// JSON Pointer, with `*` if several places decide together.
        pointer: String,
    },
    /// A part of a callback as a request: `/method`.
    Delivery {
        /// Index into the events.
        event: usize,
        /// JSON Pointer to the part.
        pointer: String,
    },
    /// A place in the result of a step.
    Result {
        /// Index into the statements.
        statement: usize,
        /// JSON Pointer, with `*` if several places decide together.
        pointer: String,
    },
    /// A walk over the pages of a list.
    Walk(usize),
}

/// Maximum number of sites per instance.
const SITES_MAX: usize = 8;

/// One or more sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    others: Vec<Site>,
    last: Site,
}

impl Site {
    /// A place in the response of an exchange.
    pub fn answer(exchange: usize, pointer: impl Into<String>) -> Self {
        Self::Answer {
            exchange,
            pointer: pointer.into(),
        }
    }

    /// A place in a payload.
    pub fn payload(payload: usize, pointer: impl Into<String>) -> Self {
        Self::Payload {
            payload,
            pointer: pointer.into(),
        }
    }

    /// A place in the result that a statement is about.
    pub fn result(statement: usize, pointer: impl Into<String>) -> Self {
        Self::Result {
            statement,
            pointer: pointer.into(),
        }
    }

    /// A place in the result of a hook.
    pub fn hook(event: usize, pointer: impl Into<String>) -> Self {
        Self::Hook {
            event,
            pointer: pointer.into(),
        }
    }

    /// A part of a callback.
    pub fn delivery(event: usize, pointer: impl Into<String>) -> Self {
        Self::Delivery {
            event,
            pointer: pointer.into(),
        }
    }

    /// The exchange that it belongs to, if any.
    pub fn exchange(&self, evidence: &Evidence) -> Option<usize> {
        match self {
            Self::Exchange(exchange) | Self::Answer { exchange, .. } => Some(*exchange),
            Self::Result { statement, .. } => evidence.statements.get(*statement)?.exchange,
            Self::Walk(walk) => evidence.walks.get(*walk)?.pages.last().copied(),
            Self::Payload { .. } | Self::Hook { .. } | Self::Delivery { .. } => None,
        }
    }

    /// The place at a pointer relative to this one.
    #[must_use]
    pub fn below(&self, further: &str) -> Self {
        let mut below = self.clone();
        match &mut below {
            Self::Answer { pointer, .. }
            | Self::Payload { pointer, .. }
            | Self::Hook { pointer, .. }
            | Self::Delivery { pointer, .. }
            | Self::Result { pointer, .. } => pointer.push_str(further),
            Self::Exchange(_) | Self::Walk(_) => {}
        }
        below
    }

    /// The pointer into its document; empty for the whole document.
    pub fn pointer(&self) -> &str {
        match self {
            Self::Answer { pointer, .. }
            | Self::Payload { pointer, .. }
            | Self::Hook { pointer, .. }
            | Self::Delivery { pointer, .. }
            | Self::Result { pointer, .. } => pointer,
            Self::Exchange(_) | Self::Walk(_) => "",
        }
    }
}

impl Sites {
    /// The sites of an iteration; `None` if there are none. If there are too many, the first ones and the last are kept.
    pub fn collect(sites: impl IntoIterator<Item = Site>) -> Option<Self> {
        let mut others: Vec<Site> = Vec::new();
        let mut last = None;
        for site in sites {
            if let Some(before) = last.replace(site)
                && others.len() + 1 < SITES_MAX
            {
                others.push(before);
            }
        }
        Some(Self {
            others,
            last: last?,
        })
    }

    /// As [`Sites::of`], from a slice. Sites that are not kept are not built.
    pub fn from_slice<T>(resources: &[T], site: impl Fn(&T) -> Site) -> Option<Self> {
        let (last, others) = resources.split_last()?;
        Some(Self {
            others: others.iter().take(SITES_MAX - 1).map(&site).collect(),
            last: site(last),
        })
    }

    /// The last site with the first of the others. Only the first one is read: a list may have many items.
    pub fn first_with_last<'s>(
        others: impl IntoIterator<Item = &'s Site>,
        last: Site,
    ) -> Option<Self> {
        let others: Vec<Site> = others.into_iter().take(SITES_MAX - 1).cloned().collect();
        (!others.is_empty()).then_some(Self { others, last })
    }

    /// The site of a finding.
    pub fn last(&self) -> &Site {
        &self.last
    }

    pub fn iter(&self) -> impl Iterator<Item = &Site> {
        self.others.iter().chain(std::iter::once(&self.last))
    }
}

impl From<Site> for Sites {
    fn from(last: Site) -> Self {
        Self {
            others: Vec::new(),
            last,
        }
    }
}

impl From<[Site; 2]> for Sites {
    fn from([first, last]: [Site; 2]) -> Self {
        Self {
            others: vec![first],
            last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_sites_are_reduced_to_the_first_ones_and_the_last() {
        assert_eq!(Sites::collect([]), None);
        let many = Sites::collect((0..20).map(Site::Exchange)).expect("there are some");
        let kept: Vec<&Site> = many.iter().collect();
        assert_eq!(kept.len(), SITES_MAX);
        assert_eq!(
            (kept[0], many.last()),
            (&Site::Exchange(0), &Site::Exchange(19))
        );
        for count in 0..20 {
            let numbers: Vec<usize> = (0..count).collect();
            let sites = Sites::from_slice(&numbers, |&n| Site::Exchange(n));
            assert_eq!(sites, Sites::collect((0..count).map(Site::Exchange)));
            let others: Vec<Site> = numbers.iter().map(|&n| Site::Exchange(n)).collect();
            let beside = Sites::first_with_last(&others, Site::Exchange(99));
            let all = others.into_iter().chain([Site::Exchange(99)]);
            assert_eq!(beside, Sites::collect(all).filter(|_| count > 0));
        }
    }
}
