//! Existence of resources at a moment, and lists that lag behind actions.

use super::History;
use super::identity::{Resource, ResourceId};
use super::lists::List;
use super::observations::{Appearance, Moment};
use super::writes::{NamedValue, Origin, Outcome, Write, WriteId};
use crate::compare::as_text;
use crate::context::Context;
use conformant_rulebook::Action;
use conformant_rulebook::annotations::Annotations;

impl History<'_> {
    /// The moment since which a resource certainly existed: something created or returned it,
    /// and no later action may have ended it.
    pub fn exists_since(&self, id: ResourceId, until: &Moment) -> Option<Moment> {
        let resource = self.resources.get(id);
        if self.ended_unseen.contains(&resource.kind) {
            return None;
        }
        let brought = resource.writes.iter().map(|&write| &self.writes[write]);
        let brought =
            brought.filter(|write| write.outcome == Outcome::Done && write.does.may_make());
        // A response that shows a deleted resource is a finding of its own, and does not bring the resource back.
        let ended = resource
            .ended
            .filter(|&ended| !self.is_made_after(ended, resource));
        let ended = ended.map(|write| &self.writes[write].moment);
        let seen = resource.observations.iter().filter(|s| {
            s.shows != Appearance::NotFound && ended.is_none_or(|end| !end.is_before(&s.moment))
        });
        let mut moments: Vec<Moment> = brought
            .map(|write| write.moment)
            .chain(seen.map(|observation| observation.moment))
            .filter(|moment| moment.is_before(until))
            .collect();
        moments.sort_by_key(|moment| moment.event);
        let holds = |since: &Moment| {
            let mut writes = self.writes.iter();
            !writes.any(|write| {
                // An action at that moment finds it.
                let is_now = write.moment.event == until.event;
                // A deletion may show what it ends.
                let is_of_deletion =
                    write.does == Action::Ends && write.moment.event == since.event;
                let follows = is_of_deletion || write.moment.may_follow(since);
                let between = follows && !until.is_before(&write.moment);
                between && !is_now && self.may_end(write, id)
            })
        };
        moments.into_iter().find(holds)
    }

    /// The moment since which a resource certainly existed, if it also did while the last page of a list was read.
    pub fn exists_throughout(&self, id: ResourceId, list: &List<'_>) -> Option<Moment> {
        let since = self.exists_since(id, &list.first)?;
        let is_stable = list.pages.len() < 2 || self.exists_since(id, &list.last) == Some(since);
        is_stable.then_some(since)
    }

    /// The resources that a list must contain: those that it had time to show, or showed before. `None` if its items have no
    /// identity.
    pub fn due_in(
        &self,
        context: &Context<'_>,
        list: &List<'_>,
        was_shown: impl Fn(ResourceId) -> bool,
    ) -> Option<Vec<ResourceId>> {
        let kind = context.about(list.item_type).and_then(Annotations::of)?;
        let is_due = |id: &ResourceId| {
            let since = self.exists_throughout(*id, list);
            let shown = |since: Moment| was_shown(*id) || since.is_settled(&list.first);
            self.is_exclusive(*id)
                && self.belongs(*id, list) == Some(true)
                && since.is_some_and(shown)
        };
        let resources = self.resources.of_kind(kind).map(|(id, _)| id);
        Some(resources.filter(is_due).collect())
    }

    /// Whether a write may have ended a resource, or replaced it.
    pub fn may_end(&self, write: &Write<'_>, id: ResourceId) -> bool {
        let kind = self.resources.get(id).kind;
        let above = |resource: ResourceId| resource == id || self.resources.is_below(id, resource);
        if write.outcome == Outcome::Refused {
            return false;
        }
        // It ended the resource or one of its parents; an unknown one may be any of the type.
        if write.does == Action::Ends {
            return write.resource.map_or(write.kind == Some(kind), above);
        }
        // A creation of another type may end it, such as that of a member an invite.
        let ends = |made: &str| self.creation_may_end(made, kind);
        if write.does.may_make() && write.kind.is_some_and(ends) {
            return true;
        }
        // An unknown resource may have replaced it.
        if write.does == Action::FindsOrMakes && write.resource.is_none() {
            return write.kind == Some(kind);
        }
        // The type of what a hook changed may be unknown.
        write.kind.is_none()
    }

    /// Whether creating one resource type may end resources of another.
    fn creation_may_end(&self, made: &str, kind: &str) -> bool {
        let by = self.ended_by.get(kind);
        by.is_some_and(|by| by.iter().any(|by| by == made))
    }

    /// Whether a creation with a used name returned the existing resource. Its other parameters need not be
    /// echoed then.
    pub fn returns_existing(&self, context: &Context<'_>, index: usize) -> bool {
        let mut writes = self.writes.iter();
        let Some(write) = writes.find(|write| write.exchange() == Some(index)) else {
            return false;
        };
        let seen = &context.seen[index];
        let makes = seen.operation.is_some_and(|o| o.does == Action::Makes);
        let kind = write.kind.and_then(|kind| context.rulebook.kinds.get(kind));
        let identity = kind.and_then(|kind| kind.annotations.identity.as_ref());
        let bears = |named: &NamedValue<'_>| {
            let is_name = identity.is_some_and(|identity| identity.names.contains(&named.echo.at));
            is_name
                && seen
                    .value(&named.echo.at)
                    .is_some_and(|is| as_text(is) == as_text(named.value))
        };
        makes && write.does == Action::FindsOrMakes && write.named.iter().any(bears)
    }

    /// Whether a resource belongs to a list by the list's path; `None` if that is
    /// unknown.
    pub fn belongs(&self, id: ResourceId, list: &List<'_>) -> Option<bool> {
        self.is_under(id, &list.parents)
    }

    /// Whether a resource has all of these parents; `None` if that is unknown.
    pub fn is_under(&self, id: ResourceId, parents: &[Option<ResourceId>]) -> Option<bool> {
        let own = &self.resources.get(id).parents;
        let mut is_under = true;
        for parent in parents {
            let parent = (*parent)?;
            let kind = self.resources.get(parent).kind;
            let same = own.iter().find(|&&p| self.resources.get(p).kind == kind)?;
            is_under &= *same == parent;
        }
        Some(is_under)
    }

    /// Whether people may have changed resources of that type: a hook did, or hooks are
    /// not recorded.
    pub fn changed_by_people(&self, kind: &str) -> bool {
        let mut writes = self.writes.iter();
        self.has_unobserved_actions
            || writes.any(|write| {
                let by_people = matches!(write.origin, Origin::Hook(_));
                by_people && write.does == Action::Changes && write.kind == Some(kind)
            })
    }

    /// Lists without a created resource, or with a deleted one, that may merely lag: of each last reading the exchange of
    /// the first page. Where the clock was moved, they may lag for any time.
    pub fn lagging(&self, context: &Context<'_>, clock_was_moved: bool) -> Vec<usize> {
        let mut behind = Vec::new();
        for (n, list) in self.lists.iter().enumerate() {
            let same = |other: &List<'_>| {
                other.operation.id == list.operation.id
                    && other.parents == list.parents
                    && other.filters == list.filters
            };
            let is_last = !self.lists[n + 1..].iter().any(same);
            if is_last
                && list.filters.is_empty()
                && list.is_complete
                && self.lags(context, list, clock_was_moved)
            {
                behind.push(list.pages[0]);
            }
        }
        behind
    }

    fn lags(&self, context: &Context<'_>, list: &List<'_>, clock_was_moved: bool) -> bool {
        let kind = context.rulebook.kinds.get(list.item_type);
        let Some(of) = kind.and_then(|kind| kind.annotations.of()) else {
            return false;
        };
        self.resources.of_kind(of).any(|(id, resource)| {
            let ended = resource
                .ended
                .filter(|&ended| !self.is_made_after(ended, resource));
            let ended = ended.map(|write| &self.writes[write]);
            let is_gone = ended.is_some_and(|write| write.moment.is_before(&list.first));
            match list.holds(id) {
                true => is_gone,
                false => {
                    let since = self.exists_throughout(id, list);
                    let may_catch_up = since
                        .is_some_and(|since| clock_was_moved || !since.is_settled(&list.first));
                    may_catch_up && self.is_exclusive(id) && self.belongs(id, list) == Some(true)
                }
            }
        })
    }

    /// Whether a resource was created again after that write, with the same key.
    fn is_made_after(&self, ended: WriteId, resource: &Resource<'_>) -> bool {
        resource.writes.iter().any(|&id| {
            let write = &self.writes[id];
            let makes = write.does.may_make();
            id > ended && makes && write.outcome == Outcome::Done
        })
    }
}
