//! Whether a thing was there at a moment, and which lists still lag behind what was done.

use super::History;
use super::identity::ThingId;
use super::lists::List;
use super::sights::{Shows, When};
use super::writes::{Named, Origin, Outcome, Write};
use crate::case::Case;
use crate::compare::as_text;
use conformant_rulebook::Does;

impl History<'_> {
    /// Since when a thing was there for certain until that moment: something brought or showed it,
    /// and nothing afterwards may have ended it.
    pub fn there_since(&self, id: ThingId, until: &When) -> Option<When> {
        let thing = self.things.get(id);
        if self.ended_unseen.contains(&thing.kind) {
            return None;
        }
        let brought = thing.writes.iter().map(|&write| &self.writes[write]);
        let brought = brought.filter(|write| {
            write.outcome == Outcome::Done && matches!(write.does, Does::Makes | Does::FindsOrMakes)
        });
        let seen = thing.sights.iter().filter(|s| s.shows != Shows::NotFound);
        let mut moments: Vec<When> = brought
            .map(|write| write.when)
            .chain(seen.map(|sight| sight.when))
            .filter(|when| when.is_before(until))
            .collect();
        moments.sort_by_key(|when| when.event);
        let holds = |since: &When| {
            let mut writes = self.writes.iter();
            !writes.any(|write| {
                // What happens at that very moment finds it there.
                let is_now = write.when.event == until.event;
                let between = write.when.may_follow(since) && !until.is_before(&write.when);
                between && !is_now && self.may_end(write, id)
            })
        };
        moments.into_iter().find(holds)
    }

    /// Whether a write may have ended a thing, or put another one in its place.
    pub fn may_end(&self, write: &Write<'_>, id: ThingId) -> bool {
        let kind = self.things.get(id).kind;
        let above = |thing: ThingId| thing == id || self.things.is_below(id, thing);
        match (write.outcome, write.does, write.thing) {
            (Outcome::Refused, _, _) => false,
            (_, Does::Ends, Some(thing)) => above(thing),
            (_, Does::Ends | Does::FindsOrMakes, None) if write.kind == kind => true,
            (_, Does::Makes | Does::FindsOrMakes, _) if self.ends(write.kind, kind) => true,
            (_, Does::Ends | Does::FindsOrMakes, None) => false,
            _ => write.kind.is_empty(),
        }
    }

    /// Whether the making of the one kind may end things of the other.
    fn ends(&self, made: &str, kind: &str) -> bool {
        let by = self.ended_by.get(kind);
        by.is_some_and(|by| by.iter().any(|by| by == made))
    }

    /// Whether a creation under a name that was taken has answered with what bears it: then what else it
    /// sends need not be there.
    pub fn brings_what_is_there(&self, case: &Case<'_>, index: usize) -> bool {
        let mut writes = self.writes.iter();
        let Some(write) = writes.find(|write| write.exchange() == Some(index)) else {
            return false;
        };
        let seen = &case.seen[index];
        let makes = seen.operation.is_some_and(|o| o.does == Does::Makes);
        let kind = case.rulebook.kinds.get(write.kind);
        let identity = kind.and_then(|kind| kind.about.identity.as_ref());
        let bears = |named: &Named<'_>| {
            let is_name = identity.is_some_and(|identity| identity.names.contains(&named.echo.at));
            is_name
                && seen
                    .value(&named.echo.at)
                    .is_some_and(|is| as_text(is) == as_text(named.value))
        };
        makes && write.does == Does::FindsOrMakes && write.named.iter().any(bears)
    }

    /// Whether a thing belongs into a list by all that the list's path names; nothing where that is
    /// not known.
    pub fn belongs(&self, id: ThingId, list: &List<'_>) -> Option<bool> {
        self.is_under(id, &list.parents)
    }

    /// Whether a thing is below all of these; nothing where that is not known.
    pub fn is_under(&self, id: ThingId, parents: &[Option<ThingId>]) -> Option<bool> {
        let own = &self.things.get(id).parents;
        let mut is_under = true;
        for parent in parents {
            let parent = (*parent)?;
            let kind = self.things.get(parent).kind;
            let same = own.iter().find(|&&p| self.things.get(p).kind == kind)?;
            is_under &= *same == parent;
        }
        Some(is_under)
    }

    /// Whether people may have changed things of that kind: they were seen to, or nobody would have
    /// seen them.
    pub fn changed_by_people(&self, kind: &str) -> bool {
        let mut writes = self.writes.iter();
        self.deeds_unseen
            || writes.any(|write| {
                let by_people = matches!(write.origin, Origin::Hook(_));
                by_people && write.does == Does::Changes && write.kind == kind
            })
    }

    /// Lists that lack what was made, or hold what was ended, and may merely lag behind it: of each
    /// the first page of its last reading.
    pub fn lagging(&self, case: &Case<'_>) -> Vec<usize> {
        let mut behind = Vec::new();
        for (n, list) in self.lists.iter().enumerate() {
            let same = |other: &List<'_>| {
                other.operation.id == list.operation.id
                    && other.parents == list.parents
                    && other.filters == list.filters
            };
            let is_last = !self.lists[n + 1..].iter().any(same);
            if is_last && list.filters.is_empty() && list.is_complete && self.lags(case, list) {
                behind.push(list.pages[0]);
            }
        }
        behind
    }

    fn lags(&self, case: &Case<'_>, list: &List<'_>) -> bool {
        let kind = case.rulebook.kinds.get(list.face);
        let Some(of) = kind.and_then(|kind| kind.about.of()) else {
            return false;
        };
        self.things.of_kind(of).any(|(id, thing)| {
            let ended = thing.ended.map(|write| &self.writes[write]);
            let is_gone = ended.is_some_and(|write| write.when.is_before(&list.first));
            match list.holds(id) {
                true => is_gone,
                false => {
                    let since = self.there_since(id, &list.first);
                    let may_follow = since.is_some_and(|since| !since.is_settled(&list.first));
                    may_follow && self.is_own(id) && self.belongs(id, list) == Some(true)
                }
            }
        })
    }
}
