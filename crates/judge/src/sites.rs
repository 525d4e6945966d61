//! Sites: the places in the evidence of a case that decide an instance of a rule.

use super::evidence::Evidence;

/// A place in the evidence of a case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// An exchange as such: that it was accepted or refused, its body as bytes.
    Exchange(usize),
    /// A place in the document of an exchange's answer.
    Answer {
        /// Index into the exchanges.
        exchange: usize,
        /// JSON Pointer, with `*` where several places decide together.
        pointer: String,
    },
    /// A place in a payload that came in another way.
    Payload {
        /// Index into the payloads.
        payload: usize,
        /// JSON Pointer, with `*` where several places decide together.
        pointer: String,
    },
    /// A place in what a hook brought.
    Hook {
        /// Index into the events.
        event: usize,
        /// JSON Pointer, with `*` where several places decide together.
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
        /// JSON Pointer, with `*` where several places decide together.
        pointer: String,
    },
    /// A walk over the pages of a list.
    Walk(usize),
}

/// How many sites of one instance are kept.
const SITES_MAX: usize = 8;

/// One or more sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    others: Vec<Site>,
    last: Site,
}

impl Site {
    /// A place in the answer of an exchange.
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

    /// A place in what a hook brought.
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

    /// The exchange that it belongs to, where there is one.
    pub fn exchange(&self, evidence: &Evidence) -> Option<usize> {
        match self {
            Self::Exchange(exchange) | Self::Answer { exchange, .. } => Some(*exchange),
            Self::Result { statement, .. } => evidence.statements.get(*statement)?.exchange,
            Self::Walk(walk) => evidence.walks.get(*walk)?.pages.last().copied(),
            Self::Payload { .. } | Self::Hook { .. } | Self::Delivery { .. } => None,
        }
    }

    /// A place below it, by a pointer that begins there.
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

    /// The pointer into its document; empty for the whole.
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
    /// The sites of a walk through places; nothing where it comes to none. Of many the first and
    /// the last are kept.
    pub fn of(sites: impl IntoIterator<Item = Site>) -> Option<Self> {
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

    /// The same as [`Sites::of`] for places of which each is said by a thing; what is not kept is not made.
    pub fn of_each<T>(things: &[T], site: impl Fn(&T) -> Site) -> Option<Self> {
        let (last, others) = things.split_last()?;
        Some(Self {
            others: others.iter().take(SITES_MAX - 1).map(&site).collect(),
            last: site(last),
        })
    }

    /// The last one with the first of those it stands beside; nothing where it stands alone. No further ones are looked at:
    /// there may be as many as a list has items.
    pub fn beside<'s>(others: impl IntoIterator<Item = &'s Site>, last: Site) -> Option<Self> {
        let others: Vec<Site> = others.into_iter().take(SITES_MAX - 1).cloned().collect();
        (!others.is_empty()).then_some(Self { others, last })
    }

    /// The one where a finding stands.
    pub fn last(&self) -> &Site {
        &self.last
    }

    /// All in order.
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
    fn of_many_sites_the_first_and_the_last_are_kept() {
        assert_eq!(Sites::of([]), None);
        let many = Sites::of((0..20).map(Site::Exchange)).expect("there are some");
        let kept: Vec<&Site> = many.iter().collect();
        assert_eq!(kept.len(), SITES_MAX);
        assert_eq!(
            (kept[0], many.last()),
            (&Site::Exchange(0), &Site::Exchange(19))
        );
        for count in 0..20 {
            let numbers: Vec<usize> = (0..count).collect();
            let sites = Sites::of_each(&numbers, |&n| Site::Exchange(n));
            assert_eq!(sites, Sites::of((0..count).map(Site::Exchange)));
            let others: Vec<Site> = numbers.iter().map(|&n| Site::Exchange(n)).collect();
            let beside = Sites::beside(&others, Site::Exchange(99));
            let all = others.into_iter().chain([Site::Exchange(99)]);
            assert_eq!(beside, Sites::of(all).filter(|_| count > 0));
        }
    }
}
