//! `takes-part`: how a user stands to a channel is what membership and invitation made of it, once that had time to
//! follow. Says nothing of channels that strangers reach, nor where people may act unseen.

use super::prelude::*;
use crate::compare::as_text;
use crate::evidence::Event;
use crate::history::{History, List, Origin, Outcome, Shows, Sight, ThingId, When, Write, same};
use conformant_rulebook::Does;
#[cfg(test)]
use scenes::{ann, ann_at, invite, member, person, scene, seen};

/// A channel as one of its users sees it.
const FACE: &str = "chat/user-channel";
const MEMBER: &str = "chat/member";
const INVITE: &str = "chat/invite";
const STATUS: &str = "/status";
const MEMBER_SID: &str = "/member_sid";
/// What was last read, as member and user channel both show it.
const READ: &str = "/last_consumed_message_index";

/// A user channel shows how its user stands to the channel.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakesPart {
    /// What is said, and of whom.
    aspect: Aspect,
}

/// What a user channel shows of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Aspect {
    /// Who is a member has joined.
    Joined,
    /// Of a member it names the membership.
    Member,
    /// Of a member it shows what the member shows to have been read.
    Read,
    /// Who is a member finds the channel in the list.
    Listed,
    /// Who was only invited has not joined.
    Guest,
    /// Who left has not joined.
    Left,
    /// Who has nothing to do with a channel neither joined it nor was invited, and finds no private one listed.
    Nobody,
}

/// How a user stands to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A member; which one, where that is known.
    Joined(Option<ThingId>),
    Guest,
    Left,
    Nobody,
}

/// A user and a channel of one service.
type Pair = (ThingId, ThingId);

impl Predicate for TakesPart {
        fn subject(&self) -> Subject {
        Subject::kind(FACE)
    }

    fn references(&self, references: &mut References) {
        let shown = [STATUS, MEMBER_SID, READ].map(str::to_owned);
        references.kind("aspect", FACE).pointers("aspect", &shown);
        references.kind("aspect", MEMBER).pointer("aspect", READ);
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::History]
    }

    fn judge(&self, case: &Case<'_>, rule: &Rule, verdicts: &mut Verdicts<'_>) {
        let history = &case.history;
        if matches!(self.aspect, Aspect::Listed | Aspect::Nobody) {
            let lists = history.lists.iter().filter(|list| list.face == FACE);
            for list in
                lists.filter(|list| list.filters.is_empty() && list.is_complete && !list.is_attempt)
            {
                self.judge_list(case, rule, list, verdicts);
            }
        }
        for (_, thing) in history.things.of_kind(FACE) {
            let &[.., user, channel] = &thing.parents[..] else {
                continue;
            };
            for sight in thing.sights.iter().filter(|sight| !sight.is_attempt()) {
                self.judge_sight(case, rule, ((user, channel), sight), verdicts);
            }
        }
    }

    fn break_it(&self, sites: &Sites) -> Vec<Mutation> {
        let mut mutations = Vec::new();
        for site in sites.iter() {
            let others = if site.pointer().ends_with(STATUS) {
                vec![json!("joined"), json!("notParticipating")]
            } else if site.pointer().ends_with(MEMBER_SID) {
                vec![json!(sid("MB", "f"))]
            } else {
                Vec::new()
            };
            let others = others.into_iter().map(Change::To);
            mutations.extend(others.map(|change| Mutation::new(site.clone(), change)));
        }
        mutations.extend(Mutation::of_sites(sites));
        mutations
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let of = |aspect: &str| scene(aspect);
        let joins = |scene: Scene| scene.answered("create-member", ann(), member("ann", 1));
        let leaves = |scene: Scene| scene.hook("leave_channel", person(), json!({}));
        let enters = |scene: Scene| scene.hook("join_channel", person(), json!({}));
        let asked = |scene: Scene| scene.answered("create-invite", ann(), invite("ann"));
        let late =
            |scene: Scene| (0..11).fold(scene, |scene, _| scene.refused("create-role", json!({})));
        let sees = |scene: Scene, status: &str, member: &Value| {
            scene.answered("fetch-user-channel", ann_at(), seen(status, member))
        };
        let lists = |scene: Scene, items: Value| {
            let page =
                json!({"channels": items, "meta": {"next_page_url": null, "key": "channels"}});
            scene.answered("read-user-channels", ann_at(), page)
        };
        let none = Value::Null;
        let (hers, other) = (json!(sid("MB", "1")), json!(sid("MB", "2")));
        let reads = |index: i64| {
            let path =
                json!({"ServiceSid": sid("IS", "1"), "ChannelSid": sid("CH", "1"), "Sid": hers});
            late(joins(of("read"))).answered("fetch-member", path, member("ann", index))
        };
        vec![
            sees(late(joins(of("joined"))), "joined", &hers).passes(),
            sees(late(enters(of("joined"))), "joined", &hers).passes(),
            sees(late(joins(of("joined"))), "invited", &none).fails(STATUS),
            // It may follow later.
            sees(joins(of("joined")), "invited", &none).not_judged(),
            sees(late(leaves(joins(of("joined")))), "invited", &none).not_judged(),
            sees(late(joins(of("member"))), "joined", &hers).passes(),
            sees(late(joins(of("member"))), "joined", &other).fails(MEMBER_SID),
            sees(late(enters(of("member"))), "joined", &other).not_judged(),
            sees(reads(1), "joined", &hers).passes(),
            sees(reads(2), "joined", &hers).fails(READ),
            sees(late(joins(of("read"))), "joined", &hers).passes(),
            lists(late(joins(of("listed"))), json!([seen("joined", &hers)])).passes(),
            lists(late(joins(of("listed"))), json!([])).fails("/channels"),
            lists(joins(of("listed")), json!([])).not_judged(),
            sees(late(asked(of("guest"))), "invited", &none).passes(),
            sees(late(asked(of("guest"))), "joined", &hers).fails(STATUS),
            sees(late(joins(asked(of("guest")))), "joined", &hers).not_judged(),
            sees(late(leaves(joins(of("left")))), "notParticipating", &none).passes(),
            sees(late(leaves(joins(of("left")))), "joined", &hers).fails(STATUS),
            sees(late(joins(of("left"))), "joined", &hers).not_judged(),
            sees(late(of("nobody")), "notParticipating", &none).passes(),
            sees(late(of("nobody")), "joined", &hers).fails(STATUS),
            lists(late(of("nobody")), json!([seen("invited", &none)])).fails("/channels/0/status"),
            sees(late(joins(of("nobody"))), "joined", &hers).not_judged(),
        ]
    }
}

impl TakesPart {
    fn judge_sight(
        &self,
        case: &Case<'_>,
        rule: &Rule,
        ((user, channel), sight): (Pair, &Sight<'_>),
        verdicts: &mut Verdicts<'_>,
    ) {
        let history = &case.history;
        let stands = standing(case, (user, channel), &sight.when);
        let (Some((stands, since)), Some(shown)) = (stands, sight.representation(case)) else {
            return;
        };
        let status = shown.value(STATUS).and_then(Value::as_str);
        let has_joined = || Some(status? == "joined");
        let (at, is_wrong, expected) = match (self.aspect, stands) {
            (Aspect::Joined, Standing::Joined(_)) => (
                STATUS,
                has_joined().map(|joined| !joined),
                "joined, as a member".to_owned(),
            ),
            (Aspect::Guest, Standing::Guest) => {
                (STATUS, has_joined(), "not joined, as a guest".to_owned())
            }
            (Aspect::Left, Standing::Left) => {
                (STATUS, has_joined(), "not joined, having left".to_owned())
            }
            (Aspect::Nobody, Standing::Nobody) => {
                let takes_part = status.map(|status| ["joined", "invited"].contains(&status));
                let is_listed = matches!(sight.shows, Shows::Item(_));
                let is_hidden = is_listed && is_private(case, channel, &sight.when);
                let wrong = takes_part.map(|part| part || is_hidden);
                (STATUS, wrong, "nothing of a channel of others".to_owned())
            }
            (Aspect::Member, Standing::Joined(Some(member))) => {
                let key = &history.things.get(member).key;
                let named = shown.value(MEMBER_SID).map(as_text);
                (MEMBER_SID, named.map(|named| named != *key), key.clone())
            }
            (Aspect::Read, Standing::Joined(Some(member))) => {
                return judge_read(case, rule, (member, channel, sight, shown), verdicts);
            }
            _ => return,
        };
        let site = shown.site(at);
        // Who never was a member has joined at no time; what membership brings and takes away may follow.
        let was_never = matches!(self.aspect, Aspect::Guest | Aspect::Nobody);
        let is_due = was_never || since.is_settled(&sight.when);
        let Some(is_wrong) = is_wrong.filter(|_| is_due && !verdicts.accuses(&site)) else {
            return;
        };
        let fact = Fact {
            kind: "participation",
            expected,
            actual: shown
                .value(at)
                .map_or_else(|| "nothing".to_owned(), json::short),
            ..Fact::default()
        };
        verdicts
            .instance(rule, site)
            .conclude(is_wrong.then_some(fact));
    }

    /// What a user's list holds beside what it shows: channels that must be in it, and those that must not.
    fn judge_list(
        &self,
        case: &Case<'_>,
        rule: &Rule,
        list: &List<'_>,
        verdicts: &mut Verdicts<'_>,
    ) {
        let history = &case.history;
        let Some(user) = list.scope().filter(|_| list.is_readable()) else {
            return;
        };
        let pages = list
            .pages
            .iter()
            .map(|&page| Site::answer(page, list.place()));
        let Some(sites) = Sites::of(pages) else {
            return;
        };
        if sites.iter().any(|site| verdicts.accuses(site)) {
            return;
        }
        let holds = |channel: ThingId| {
            let key = [user, channel]
                .map(|id| history.things.get(id).key.as_str())
                .join("\n");
            list.items.iter().any(|item| {
                item.thing
                    .is_some_and(|thing| history.things.get(thing).key == key)
            })
        };
        let mut judged = 0;
        let mut lacks = None;
        for (channel, thing) in history.things.of_kind("chat/channel") {
            let stands = standing(case, (user, channel), &list.first);
            let Some((stands, since)) = stands else {
                continue;
            };
            match (self.aspect, stands) {
                (Aspect::Listed, Standing::Joined(_)) => {
                    let is_due = since.is_settled(&list.first);
                    judged += usize::from(is_due);
                    if is_due && !holds(channel) {
                        lacks = lacks.or(Some(&thing.key));
                    }
                }
                // One that is listed is judged as it stands there.
                (Aspect::Nobody, Standing::Nobody) => judged += usize::from(!holds(channel)),
                _ => {}
            }
        }
        if judged == 0 {
            verdicts.trivial(rule, Trivial::Empty);
            return;
        }
        verdicts
            .instance(rule, sites)
            .conclude(lacks.map(|key| Fact {
                kind: "not-listed",
                expected: format!("{key} in the list"),
                actual: "a list without it".to_owned(),
                ..Fact::default()
            }));
    }
}

/// Compares what was read with the last sight of the member before and the first one after.
fn judge_read(
    case: &Case<'_>,
    rule: &Rule,
    (member, channel, sight, shown): (ThingId, ThingId, &Sight<'_>, &Representation<'_>),
    verdicts: &mut Verdicts<'_>,
) {
    let history = &case.history;
    let site = shown.site(READ);
    let sights = &history.things.get(member).sights;
    let others = |other: &&Sight<'_>| !other.is_attempt() && other.value(case, READ).is_some();
    let before = sights
        .iter()
        .rev()
        .filter(others)
        .find(|s| s.when.is_before(&sight.when));
    let after = sights
        .iter()
        .filter(others)
        .find(|s| sight.when.is_before(&s.when));
    for other in [before, after].into_iter().flatten() {
        let (first, last) = if other.when.is_before(&sight.when) {
            (&other.when, &sight.when)
        } else {
            (&sight.when, &other.when)
        };
        let moves = |write: &&Write<'_>| {
            let may = [FACE, MEMBER, "chat/message", ""].contains(&write.kind);
            let elsewhere = write.kind == "chat/message"
                && write
                    .parents
                    .last()
                    .is_some_and(|of| of.is_some_and(|of| of != channel));
            may && !elsewhere && write.outcome != Outcome::Refused
        };
        let moved = || history.writes.iter().filter(moves);
        let is_between =
            |write: &Write<'_>| !write.when.is_before(first) && !last.is_before(&write.when);
        let own = |write: &Write<'_>| {
            write
                .exchange()
                .is_some_and(|e| Some(e) == sight.exchange || Some(e) == other.exchange)
        };
        // What brought the first of the two sights was done before it.
        if moved()
            .any(|write| is_between(write) && !(own(write) && write.when.event == first.event))
        {
            continue;
        }
        let (Some(a), Some(b)) = (shown.value(READ), other.value(case, READ)) else {
            continue;
        };
        let agrees = same(a, b);
        let is_settled = moved()
            .filter(|write| write.when.event <= first.event)
            .all(|write| match write.when.event == first.event {
                true => write.when.is_settled(last),
                false => write.when.is_settled(first),
            });
        if verdicts.accuses(&site) || !is_settled {
            continue;
        }
        let fact = Fact {
            kind: "participation",
            expected: format!("{}, as the member shows", json::short(b)),
            actual: json::short(a),
            ..Fact::default()
        };
        verdicts
            .instance(rule, site.clone())
            .conclude((!agrees).then_some(fact));
    }
}

/// How a user stood to a channel at a moment, and what made it so; nothing where that is not known for certain.
fn standing(case: &Case<'_>, (user, channel): Pair, until: &When) -> Option<(Standing, When)> {
    let history = &case.history;
    let names: Vec<&String> = history.things.names_of(user).collect();
    let made = &history.writes[history.things.get(channel).made?];
    let creator = made
        .exchange()
        .and_then(|made| case.seen[made].exchange.sent.get("CreatedBy"));
    let is_meant = |identity: &Value| names.iter().any(|name| **name == as_text(identity));
    // A channel's creator may be a member from the start.
    let is_known = made.when.is_before(until)
        && history.is_own(channel)
        && !history.deeds_unseen
        && !names.is_empty()
        && !creator.is_some_and(is_meant);
    let mut stands = (Standing::Nobody, made.when);
    for write in is_known.then_some(&history.writes)? {
        if write.outcome == Outcome::Refused || until.is_before(&write.when) {
            continue;
        }
        let now = match write.kind {
            MEMBER | INVITE => match identity(case, history, write, channel) {
                Some(identity) if is_meant(identity) => after(stands.0, write),
                Some(_) => None,
                None if is_elsewhere(write, channel) => None,
                None => return None,
            },
            "" => return None,
            _ => None,
        };
        let Some(now) = now else { continue };
        // What overlaps the sight, or came to nobody knows what, leaves it open.
        if !write.when.is_before(until) || write.outcome == Outcome::Unknown {
            return None;
        }
        stands = (now, write.when);
    }
    Some(stands)
}

/// What a write makes of how somebody stands; nothing where it leaves that as it is.
fn after(before: Standing, write: &Write<'_>) -> Option<Standing> {
    let joins = matches!(write.does, Does::Makes | Does::FindsOrMakes);
    match (write.kind, before) {
        (MEMBER, Standing::Joined(Some(_))) if joins && write.thing.is_none() => None,
        (MEMBER, _) if joins => Some(Standing::Joined(write.thing)),
        (MEMBER, _) if write.does == Does::Ends => Some(Standing::Left),
        (INVITE, Standing::Joined(_)) => None,
        (INVITE, _) if joins => Some(Standing::Guest),
        _ => None,
    }
}

/// Whom of this channel a write is about; nothing where it is about another channel, or does not say.
fn identity<'c>(
    case: &'c Case<'_>,
    history: &History<'_>,
    write: &Write<'_>,
    channel: ThingId,
) -> Option<&'c Value> {
    match write.origin {
        Origin::Exchange(index) => {
            let sent = &case.seen[index].exchange.sent;
            let here = write.parents.last() == Some(&Some(channel));
            // An update names the member; nothing that a user channel shows moves with it.
            sent.get("Identity").filter(|_| here)
        }
        Origin::Hook(event) => {
            let Some(Event::Hook(call)) = case.evidence.events.get(event) else {
                return None;
            };
            let named = as_text(call.arguments.get("channel_sid")?);
            let here = named == history.things.get(channel).key;
            call.arguments.get("identity").filter(|_| here)
        }
    }
}

/// Whether a write is about another channel, or about nobody's standing.
fn is_elsewhere(write: &Write<'_>, channel: ThingId) -> bool {
    let other = write.parents.last().copied().flatten();
    matches!(write.origin, Origin::Hook(_))
        || write.does == Does::Changes
        || other.is_some_and(|other| other != channel)
}

/// Whether a channel was last seen to be private.
fn is_private(case: &Case<'_>, channel: ThingId, until: &When) -> bool {
    let sights = &case.history.things.get(channel).sights;
    let mut before = sights.iter().rev().filter(|s| s.when.is_before(until));
    before
        .find_map(|s| s.value(case, "/type"))
        .is_some_and(|kind| *kind == "private")
}

fn sid(kind: &str, digit: &str) -> String {
    format!("{kind}{}", digit.repeat(32))
}

/// Examples are about one channel of one service, and about Ann.
#[cfg(test)]
mod scenes {
    use super::*;

    pub(super) fn scene(aspect: &str) -> Scene {
        let channel = json!({
            "sid": sid("CH", "1"), "account_sid": "AC1", "service_sid": sid("IS", "1"),
            "friendly_name": null, "unique_name": null, "attributes": "{}", "type": "public",
            "date_created": "", "date_updated": "", "created_by": "system", "members_count": 0,
            "messages_count": 0, "url": "", "links": {},
        });
        let user = json!({
            "sid": sid("US", "1"), "account_sid": "AC1", "service_sid": sid("IS", "1"),
            "attributes": "{}", "friendly_name": "a", "role_sid": sid("RL", "1"), "identity": "ann",
            "is_online": null, "is_notifiable": null, "date_created": "", "date_updated": "",
            "joined_channels_count": 0, "links": {}, "url": "",
        });
        let within = json!({"ServiceSid": sid("IS", "1")});
        Example::of("chat", json!({"aspect": aspect}))
            .answered("create-user", ann(), user)
            .answered("create-channel", within, channel)
    }

    pub(super) fn ann() -> Value {
        json!({"ServiceSid": sid("IS", "1"), "ChannelSid": sid("CH", "1"), "Identity": "ann"})
    }

    pub(super) fn ann_at() -> Value {
        json!({"ServiceSid": sid("IS", "1"), "ChannelSid": sid("CH", "1"), "UserSid": "ann"})
    }

    pub(super) fn person() -> Value {
        json!({"service_sid": sid("IS", "1"), "channel_sid": sid("CH", "1"), "identity": "ann"})
    }

    pub(super) fn member(identity: &str, read: i64) -> Value {
        json!({
            "sid": sid("MB", "1"), "account_sid": "AC1", "channel_sid": sid("CH", "1"),
            "service_sid": sid("IS", "1"), "identity": identity, "role_sid": sid("RL", "1"),
            "last_consumed_message_index": read, "last_consumption_timestamp": null,
            "date_created": "", "date_updated": "", "attributes": "{}", "url": "",
        })
    }

    pub(super) fn invite(identity: &str) -> Value {
        json!({
            "sid": sid("IN", "1"), "account_sid": "AC1", "channel_sid": sid("CH", "1"),
            "service_sid": sid("IS", "1"), "identity": identity, "role_sid": sid("RL", "1"),
            "created_by": "system", "date_created": "", "date_updated": "", "url": "",
        })
    }

    pub(super) fn seen(status: &str, member: &Value) -> Value {
        json!({
            "account_sid": "AC1", "service_sid": sid("IS", "1"), "channel_sid": sid("CH", "1"),
            "user_sid": sid("US", "1"), "member_sid": member, "status": status,
            "last_consumed_message_index": 1, "unread_messages_count": 0,
            "notification_level": "default", "url": "", "links": {},
        })
    }
}
