//! `membership`: what a user sees of a group agrees with the user's memberships and invites, after the consistency window.
//!
//! Does not judge groups that other clients may reach, or recordings without all actions of people.

use super::prelude::*;
#[cfg(test)]
use scenes::{of_ann, person, read_to, scene, seen};

/// A user's view of a group shows the membership of the user.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Membership {
    /// What is judged.
    aspect: Aspect,
    /// The resource types of groups and memberships, and their fields.
    model: GroupModel,
}

/// Groups, members, invites and what a user sees of a group.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct GroupModel {
    /// The resource type of a group.
    group: String,
    /// The resource type of a member.
    member: String,
    /// The resource type of an invite.
    invite: String,
    /// The resource type of what is posted to a group.
    post: String,
    /// The resource type of a group as one of its users sees it; user and group are its last parents.
    view: String,
    /// Where the view shows the status of the user.
    status: String,
    /// The status of a member.
    joined: String,
    /// The status of a user with an invite.
    invited: String,
    /// Where the view shows the key of the member.
    member_key: String,
    /// Where view and member show the read position of the user.
    #[serde(rename = "read")]
    read_position: String,
    /// Where a group shows its type.
    visibility: String,
    /// The type of a group that only its members see.
    private: Value,
    /// The parameter of a write that names the user.
    user_parameter: String,
    /// The parameter of a group's creation that names its creator.
    creator_parameter: String,
    /// The argument of a hook that names the user.
    user_argument: String,
    /// The argument of a hook that names the group.
    group_argument: String,
}

/// What a view shows of the membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Aspect {
    /// The status of a member is joined.
    #[serde(rename = "joined")]
    JoinedStatus,
    /// The view of a member has the key of the member.
    #[serde(rename = "member")]
    MemberKey,
    /// The view of a member shows the same read position as the member.
    #[serde(rename = "read")]
    ReadPosition,
    /// The list of a member contains the group.
    Listed,
    /// The status of an invited user is not joined.
    #[serde(rename = "guest")]
    InvitedStatus,
    /// The status of a user who left is not joined.
    #[serde(rename = "left")]
    LeftStatus,
    /// The status of an unrelated user is neither joined nor invited; and of the groups that the user neither joined nor is
    /// invited to, the list contains no private one.
    Unrelated,
}

/// The relation of a user to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A member; which one, if known.
    Joined(Option<ResourceId>),
    /// Only invited.
    Invited {
        /// Whether the user left the group before.
        has_left: bool,
    },
    Left,
    Unrelated,
}

/// A user and a group.
type Pair = (ResourceId, ResourceId);

/// What a write of members or invites is about.
enum Concerns<'c> {
    /// This user of the group.
    User(&'c Value),
    /// Another group, or nothing that changes a relation.
    Other,
    /// Possibly a user of the group.
    Unknown,
}

impl Predicate for Membership {
    fn references(&self, references: &mut References) {
        let model = &self.model;
        references
            .kind("model/view", &model.view)
            .pointer("model/status", &model.status)
            .pointer("model/member-key", &model.member_key)
            .pointer("model/read", &model.read_position);
        references
            .kind("model/member", &model.member)
            .pointer("model/read", &model.read_position);
        references
            .kind("model/group", &model.group)
            .pointer("model/visibility", &model.visibility);
        references.kind("model/invite", &model.invite);
        references.kind("model/post", &model.post);
        references.any_parameter("model/user-parameter", &model.user_parameter);
        references.any_parameter("model/creator-parameter", &model.creator_parameter);
        references.any_argument("model/user-argument", &model.user_argument);
        references.any_argument("model/group-argument", &model.group_argument);
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        if matches!(self.aspect, Aspect::Listed | Aspect::Unrelated) {
            let lists = history
                .lists
                .iter()
                .filter(|list| list.item_type == self.model.view);
            for list in
                lists.filter(|list| list.filters.is_empty() && list.is_complete && !list.is_attempt)
            {
                self.evaluate_list(list, verdicts);
            }
        }
        for (_, resource) in history.resources.of_kind(&self.model.view) {
            let &[.., user, group] = &resource.parents[..] else {
                continue;
            };
            for observation in resource.seen() {
                self.evaluate_observation(((user, group), observation), verdicts);
            }
        }
    }

    fn mutations(&self, sites: &Sites) -> Vec<Mutation> {
        let mut mutations = Vec::new();
        for site in sites.iter() {
            let model = &self.model;
            let changes = if site.pointer().ends_with(&model.status) {
                let others = [&*model.joined, "another status"];
                others.map(|other| Change::To(json!(other))).to_vec()
            } else if site.pointer().ends_with(&model.member_key) {
                vec![Change::Near]
            } else {
                Vec::new()
            };
            let changes = changes.into_iter();
            mutations.extend(changes.map(|change| Mutation::new(site.clone(), change)));
        }
        mutations.extend(Mutation::of_sites(sites));
        mutations
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        const STATUS: &str = "/status";
        const READ: &str = "/last_consumed_message_index";
        let joins = |scene: &ExampleBuilder| scene.answered("create-member", of_ann(), read_to(1));
        let leaves = |scene: &ExampleBuilder| scene.hook("leave_channel", person(), json!({}));
        let enters = |scene: &ExampleBuilder| scene.hook("join_channel", person(), json!({}));
        let asked = |scene: &ExampleBuilder| {
            let mut invite = member("1", "ann");
            invite["sid"] = json!(sid("IN", "1"));
            scene.answered("create-invite", of_ann(), invite)
        };
        let by_ann = || in_channel(json!({"UserSid": "ann"}));
        let sees = |scene: &ExampleBuilder, status: &str, member: &Value| {
            scene.answered("fetch-user-channel", by_ann(), seen(status, member))
        };
        let lists = |scene: &ExampleBuilder, items: Value| {
            scene.answered("read-user-channels", by_ann(), page("channels", items))
        };
        let none = Value::Null;
        let (hers, other) = (json!(sid("MB", "1")), json!(sid("MB", "2")));
        let reads = |index: i64| {
            let path = in_channel(json!({"Sid": hers}));
            joins(&scene("read"))
                .late()
                .answered("fetch-member", path, read_to(index))
        };
        let joined = |aspect: &str| joins(&scene(aspect)).late();
        let left = |aspect: &str| leaves(&joins(&scene(aspect)));
        let begun = joined("listed").answered(
            "read-user-channels",
            by_ann(),
            json!({"channels": [], "meta": {"next_page_url": "/next", "key": "channels"}}),
        );
        let unrelated = scene("unrelated").late();
        let enters_elsewhere = |scene: &ExampleBuilder| {
            let of = |mut fields: Value| {
                fields["service_sid"] = json!(sid("IS", "2"));
                fields
            };
            let channel = of(json!({"sid": sid("CH", "2"), "type": "public"}));
            let mut namesake = of(member("2", "ann"));
            namesake["channel_sid"] = json!(sid("CH", "2"));
            let path = json!({"ServiceSid": sid("IS", "2"), "ChannelSid": sid("CH", "2"), "Identity": "ann"});
            scene
                .answered(
                    "create-channel",
                    json!({"ServiceSid": sid("IS", "2")}),
                    channel,
                )
                .answered("create-member", path, namesake)
        };
        vec![
            sees(&joined("joined"), "joined", &hers).passes(),
            sees(&enters(&scene("joined")).late(), "joined", &hers).passes(),
            sees(&joined("joined"), "invited", &none).fails(STATUS),
            // It may follow later.
            sees(&joins(&scene("joined")), "invited", &none).not_judged(),
            sees(&left("joined").late(), "invited", &none).not_judged(),
            sees(&joined("member"), "joined", &hers).passes(),
            sees(&joined("member"), "joined", &other).fails("/member_sid"),
            sees(&enters(&scene("member")).late(), "joined", &other).not_judged(),
            sees(&reads(1), "joined", &hers).passes(),
            sees(&reads(2), "joined", &hers).fails(READ),
            sees(&joined("read"), "joined", &hers).passes(),
            lists(&joined("listed"), json!([seen("joined", &hers)])).passes(),
            lists(&joined("listed"), json!([])).fails("/channels"),
            lists(&joins(&scene("listed")), json!([])).not_judged(),
            // Ann of another service.
            lists(
                &enters_elsewhere(&joined("listed")).late(),
                json!([seen("joined", &hers)]),
            )
            .passes(),
            lists(&begun, json!([])).walked(2).fails("/channels"),
            // The user leaves between the two pages.
            lists(&leaves(&begun), json!([])).walked(2).not_judged(),
            sees(&asked(&scene("guest")).late(), "invited", &none).passes(),
            sees(&asked(&scene("guest")).late(), "joined", &hers).fails(STATUS),
            sees(&joins(&asked(&scene("guest"))).late(), "joined", &hers).not_judged(),
            // The invite may be visible before the end of the membership.
            sees(&asked(&left("guest").late()), "joined", &hers).not_judged(),
            sees(&asked(&left("guest")).late(), "joined", &hers).fails(STATUS),
            sees(&left("left").late(), "notParticipating", &none).passes(),
            sees(&left("left").late(), "joined", &hers).fails(STATUS),
            sees(&joined("left"), "joined", &hers).not_judged(),
            sees(&unrelated, "notParticipating", &none).passes(),
            sees(&unrelated, "joined", &hers).fails(STATUS),
            lists(&unrelated, json!([seen("invited", &none)])).fails("/channels/0/status"),
            sees(&joined("unrelated"), "joined", &hers).not_judged(),
        ]
    }
}

impl Membership {
    fn evaluate_observation(
        &self,
        ((user, group), observation): (Pair, &Observation<'_>),
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let history = &context.history;
        let known = self
            .model
            .standing(context, (user, group), &observation.moment);
        let (Some((standing, since)), Some(shown)) = (known, observation.representation(context))
        else {
            return;
        };
        let status = shown.value(&self.model.status).and_then(Value::as_str);
        let has_joined = || Some(status? == self.model.joined);
        let mut listed_wrongly = None;
        let (at, is_wrong, expected) = match (self.aspect, standing) {
            (Aspect::JoinedStatus, Standing::Joined(_)) => (
                &self.model.status,
                has_joined().map(|joined| !joined),
                format!("{}, as a member", self.model.joined),
            ),
            (Aspect::InvitedStatus, Standing::Invited { .. }) => (
                &self.model.status,
                has_joined(),
                format!("not {}, only invited", self.model.joined),
            ),
            (Aspect::LeftStatus, Standing::Left) => (
                &self.model.status,
                has_joined(),
                format!("not {}, after leaving", self.model.joined),
            ),
            (Aspect::Unrelated, Standing::Unrelated) => {
                let takes_part = status
                    .map(|status| status == self.model.joined || status == self.model.invited);
                let is_listed = matches!(observation.shows, Appearance::Item(_));
                let ought_to_be_hidden =
                    is_listed && self.model.is_private(context, group, &observation.moment);
                if takes_part == Some(false) && ought_to_be_hidden {
                    listed_wrongly = Some(&history.resources.get(group).key);
                }
                (
                    &self.model.status,
                    takes_part.map(|part| part || ought_to_be_hidden),
                    format!("neither {} nor {}", self.model.joined, self.model.invited),
                )
            }
            (Aspect::MemberKey, Standing::Joined(Some(member))) => {
                let key = &history.resources.get(member).key;
                let named = shown.value(&self.model.member_key).map(as_text);
                (
                    &self.model.member_key,
                    named.map(|named| named != *key),
                    key.clone(),
                )
            }
            (Aspect::ReadPosition, Standing::Joined(Some(member))) => {
                let model = &self.model;
                return model.evaluate_read_position((member, group), observation, verdicts);
            }
            _ => return,
        };
        let site = shown.site(at);
        // A user who never was a member is never joined. Effects of a membership may be delayed.
        let was_never = matches!(
            standing,
            Standing::Unrelated | Standing::Invited { has_left: false }
        );
        let is_due = was_never || since.is_settled(&observation.moment);
        let Some(is_wrong) = is_wrong.filter(|_| is_due && !verdicts.has_finding_at(&site)) else {
            return;
        };
        let fact = match listed_wrongly {
            Some(key) => Fact {
                kind: "private-listed",
                expected: "no private group in the list".to_owned(),
                actual: key.clone(),
                message: format!(
                    "the list contains the private group {key}, which the user neither joined nor was invited to"
                ),
            },
            None => Fact::new(
                "participation",
                expected,
                shown
                    .value(at)
                    .map_or_else(|| "nothing".to_owned(), json::short),
            ),
        };
        verdicts.conclude(site, is_wrong.then_some(fact));
    }

    /// Judges which groups a user's list contains.
    fn evaluate_list(&self, list: &List<'_>, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let history = &context.history;
        let Some(user) = list.scope().filter(|_| list.is_readable()) else {
            return;
        };
        let Some(sites) = list.sites() else {
            return;
        };
        if sites.iter().any(|site| verdicts.has_finding_at(site)) {
            return;
        }
        let holds = |group: ResourceId| {
            let key = history.resources.composed_key(&[user, group]);
            let view = history.resources.by_key(&self.model.view, &key);
            view.is_some_and(|view| list.holds(view))
        };
        let mut judged = 0;
        let mut lacks = None;
        for (group, resource) in history.resources.of_kind(&self.model.group) {
            let standing = |at| self.model.standing(context, (user, group), at);
            let known = standing(&list.first);
            // A relation that changes between the first and the last page may show on either.
            let is_stable = list.pages.len() < 2 || standing(&list.last) == known;
            let Some((standing, since)) = known.filter(|_| is_stable) else {
                continue;
            };
            match (self.aspect, standing) {
                (Aspect::Listed, Standing::Joined(_)) => {
                    let is_due = since.is_settled(&list.first);
                    judged += usize::from(is_due);
                    if is_due && !holds(group) {
                        lacks = lacks.or(Some(&resource.key));
                    }
                }
                // A listed group is judged by its item.
                (Aspect::Unrelated, Standing::Unrelated) => judged += usize::from(!holds(group)),
                _ => {}
            }
        }
        if judged == 0 {
            verdicts.record_vacuous(Vacuity::NothingDue);
            return;
        }
        let fact = lacks.map(|key| {
            let expected = format!("{key} in the list");
            Fact::new("not-listed", expected, list.without_it())
        });
        verdicts.conclude(sites, fact);
    }
}

impl GroupModel {
    /// Compares the read position with the last observation of the member before and the first one after.
    fn evaluate_read_position(
        &self,
        (member, group): (ResourceId, ResourceId),
        observation: &Observation<'_>,
        verdicts: &mut Verdicts<'_>,
    ) {
        let context = verdicts.context;
        let history = &context.history;
        let Some(shown) = observation.representation(context) else {
            return;
        };
        let site = shown.site(&self.read_position);
        if verdicts.has_finding_at(&site) {
            return;
        }
        let shows = |s: &&Observation<'_>| s.value(context, &self.read_position).is_some();
        let mut others = history.resources.get(member).seen().filter(shows);
        let after = others
            .clone()
            .find(|s| observation.moment.is_before(&s.moment));
        let before = others.rfind(|s| s.moment.is_before(&observation.moment));
        for other in [before, after].into_iter().flatten() {
            let (earlier, later) = if other.moment.is_before(&observation.moment) {
                (&other.moment, &observation.moment)
            } else {
                (&observation.moment, &other.moment)
            };
            let writes = || {
                let writes = history.writes.iter();
                writes.filter(|write| self.may_move_position(write, group))
            };
            let is_between = |write: &Write<'_>| {
                !write.moment.is_before(earlier) && !later.is_before(&write.moment)
            };
            // The write that returned the earlier observation precedes it.
            if writes().any(|write| is_between(write) && write.moment.event != earlier.event) {
                continue;
            }
            let (Some(a), Some(b)) = (
                shown.value(&self.read_position),
                other.value(context, &self.read_position),
            ) else {
                continue;
            };
            let agrees = is_equivalent(a, b);
            // A write that returned the earlier observation must have settled when the later observation was made. All older
            // writes must have settled when the earlier observation was made.
            let is_settled = writes()
                .filter(|write| write.moment.event <= earlier.event)
                .all(|write| match write.moment.event == earlier.event {
                    true => write.moment.is_settled(later),
                    false => write.moment.is_settled(earlier),
                });
            if !is_settled {
                continue;
            }
            let fact = Fact::new(
                "participation",
                format!("{}, as the member shows", json::short(b)),
                json::short(a),
            );
            verdicts.conclude(site.clone(), (!agrees).then_some(fact));
            if !agrees {
                return;
            }
        }
    }

    /// Whether a write may move the read position of a member of this group.
    fn may_move_position(&self, write: &Write<'_>, group: ResourceId) -> bool {
        let may = match write.kind {
            None => true,
            Some(kind) => [&*self.view, &self.member, &self.post].contains(&kind),
        };
        let of = write.parents.last().copied().flatten();
        let is_elsewhere = write.kind == Some(&*self.post) && of.is_some_and(|of| of != group);
        may && !is_elsewhere && write.outcome != Outcome::Refused
    }

    /// The relation of a user to a group at a moment, and since when; `None` if it is uncertain.
    fn standing(
        &self,
        context: &Context<'_>,
        (user, group): Pair,
        until: &Moment,
    ) -> Option<(Standing, Moment)> {
        let history = &context.history;
        let names: Vec<&String> = history.resources.names_of(user).collect();
        let made = history.creation_of(group)?;
        let creator = made.exchange().and_then(|made| {
            context.seen[made]
                .exchange
                .sent
                .get(&self.creator_parameter)
        });
        // Users of other scopes may have the same name.
        let scope = |id: ResourceId| history.resources.get(id).parents.first();
        let is_here = scope(user) == scope(group);
        let is_meant =
            |identity: &Value| is_here && names.iter().any(|name| **name == as_text(identity));
        // The creator of a group may be a member from the start.
        let is_known = made.moment.is_before(until)
            && history.is_exclusive(group)
            && !history.has_unobserved_actions
            && !names.is_empty()
            && !creator.is_some_and(is_meant);
        if !is_known {
            return None;
        }
        let mut known = (Standing::Unrelated, made.moment);
        for write in &history.writes {
            if write.outcome == Outcome::Refused || until.is_before(&write.moment) {
                continue;
            }
            let now = match self.concerns(context, write, group) {
                Concerns::User(identity) if is_meant(identity) => self.after(known.0, write),
                Concerns::User(_) | Concerns::Other => None,
                Concerns::Unknown => return None,
            };
            let Some(now) = now else { continue };
            // A write that overlaps the observation, or has an unknown outcome, makes the relation uncertain.
            if !write.moment.is_before(until) || write.outcome == Outcome::Unknown {
                return None;
            }
            known = (now, write.moment);
        }
        Some(known)
    }

    /// The relation after a write; `None` if it does not change.
    fn after(&self, before: Standing, write: &Write<'_>) -> Option<Standing> {
        let creates = write.does.may_make();
        match (write.kind == Some(&self.member), before) {
            // A hook that joins again does not say which member.
            (true, Standing::Joined(Some(_))) if creates && write.resource.is_none() => None,
            (true, _) if creates => Some(Standing::Joined(write.resource)),
            (true, _) if write.does == Action::Ends => Some(Standing::Left),
            // An invite changes nothing for a member.
            (false, Standing::Left) if creates => Some(Standing::Invited { has_left: true }),
            (false, Standing::Unrelated) if creates => Some(Standing::Invited { has_left: false }),
            (true | false, _) => None,
        }
    }

    /// What a write may change about the relations to a group.
    fn concerns<'c>(
        &self,
        context: &'c Context<'_>,
        write: &Write<'_>,
        group: ResourceId,
    ) -> Concerns<'c> {
        let is_relation = |kind: &str| kind == self.member || kind == self.invite;
        match write.kind {
            None => return Concerns::Unknown,
            Some(kind) if !is_relation(kind) => return Concerns::Other,
            // An update names the member and changes no relation.
            Some(_) if write.does == Action::Changes => return Concerns::Other,
            Some(_) => {}
        }
        let user = match write.origin {
            Origin::Exchange(index) => match write.parents.last() {
                Some(Some(of)) if *of != group => return Concerns::Other,
                Some(Some(_)) => {
                    let sent = &context.seen[index].exchange.sent;
                    sent.get(&self.user_parameter)
                }
                Some(None) | None => None,
            },
            Origin::Hook(event) => {
                let Some(call) = context.evidence.hook(event) else {
                    return Concerns::Unknown;
                };
                let key = &context.history.resources.get(group).key;
                match call.arguments.get(&self.group_argument).map(as_text) {
                    Some(named) if named != *key => return Concerns::Other,
                    Some(_) => call.arguments.get(&self.user_argument),
                    None => None,
                }
            }
        };
        user.map_or(Concerns::Unknown, Concerns::User)
    }

    /// Whether a group was last seen to be private.
    fn is_private(&self, context: &Context<'_>, group: ResourceId, until: &Moment) -> bool {
        let observations = &context.history.resources.get(group).observations;
        let mut before = observations
            .iter()
            .rev()
            .filter(|s| s.moment.is_before(until));
        before
            .find_map(|s| s.value(context, &self.visibility))
            .is_some_and(|kind| *kind == self.private)
    }
}

/// Examples are about one channel of one service, and about Ann.
#[cfg(test)]
mod scenes {
    use super::*;

    pub(super) fn scene(aspect: &str) -> ExampleBuilder {
        let channel =
            json!({"sid": sid("CH", "1"), "service_sid": sid("IS", "1"), "type": "public"});
        let user = json!({"sid": sid("US", "1"), "service_sid": sid("IS", "1"), "identity": "ann"});
        let model = json!({
            "group": "chat/channel", "member": "chat/member", "invite": "chat/invite", "post": "chat/message",
            "view": "chat/user-channel", "status": "/status", "joined": "joined", "invited": "invited",
            "member-key": "/member_sid", "read": "/last_consumed_message_index", "visibility": "/type",
            "private": "private", "user-parameter": "Identity", "creator-parameter": "CreatedBy",
            "user-argument": "identity", "group-argument": "channel_sid",
        });
        Example::for_rule("chat", json!({"aspect": aspect, "model": model}))
            .answered("create-user", of_ann(), user)
            .answered(
                "create-channel",
                json!({"ServiceSid": sid("IS", "1")}),
                channel,
            )
    }

    pub(super) fn of_ann() -> Value {
        in_channel(json!({"Identity": "ann"}))
    }

    pub(super) fn person() -> Value {
        json!({"service_sid": sid("IS", "1"), "channel_sid": sid("CH", "1"), "identity": "ann"})
    }

    /// Ann as a member with this read position.
    pub(super) fn read_to(index: i64) -> Value {
        let mut ann = member("1", "ann");
        ann["last_consumed_message_index"] = json!(index);
        ann
    }

    pub(super) fn seen(status: &str, member: &Value) -> Value {
        json!({
            "service_sid": sid("IS", "1"), "channel_sid": sid("CH", "1"), "user_sid": sid("US", "1"),
            "member_sid": member, "status": status, "last_consumed_message_index": 1,
        })
    }
}
