//! `page-links`: every address of a page leads to the page that it names. Does not judge items or their order.
//!
//! Other writers move pages: contents are compared only if the first page was read again afterwards, unchanged.

use super::prelude::*;
use crate::evidence::Poll;
use crate::history::{FIRST, ITSELF, NEXT, PREVIOUS};
use conformant_rulebook::scenario::Credentials;

/// The addresses of a page lead to the pages that they name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PageLinks {
    /// The list operation with its service.
    of: OperationName,
    /// What of it.
    #[serde(default)]
    aspect: Aspect,
}

/// What is asked of the addresses of pages.
#[derive(Clone, Copy, Debug, std::default::Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Aspect {
    /// Each leads to the page that it names, at the same size and in the same list.
    #[default]
    Leads,
    /// A page has the number that its address asks for.
    Numbered,
}

/// What each page of a list holds, by exchange.
type Held = BTreeMap<usize, Vec<Option<ResourceId>>>;

impl Predicate for PageLinks {
    fn references(&self, references: &mut References) {
        references.operation("of", self.of.name());
    }

    fn fits(model: &Model<'_>) -> Option<Vec<String>> {
        let lists = model
            .operations()
            .filter(|o| o.does == Action::Lists && o.list_key.is_some());
        let lists = lists.filter(|o| o.paging.has_meta());
        Some(lists.map(|o| format!("{}/{}", o.service, o.id)).collect())
    }

    fn follows_links(&self) -> bool {
        true
    }

    fn evaluate(&self, verdicts: &mut Verdicts<'_>) {
        let context = verdicts.context;
        let mut held = None;
        for (index, seen) in context.seen.iter().enumerate() {
            let Some(via) = &seen.exchange.via else {
                continue;
            };
            let from = &context.seen[via.exchange];
            let is_ours = from.exchange.service == verdicts.rule.service
                && from.exchange.operation == self.of.id()
                && from.value(&via.pointer).is_some();
            // Wrong credentials are refused wherever they lead.
            let has_right = matches!(
                seen.exchange.credentials,
                Credentials::Default | Credentials::Account
            );
            if !is_ours || !has_right || seen.exchange.poll == Poll::Attempt {
                continue;
            }
            let held = held.get_or_insert_with(|| held_by_page(context));
            let link = Link {
                context,
                from: (via.exchange, from),
                pointer: &via.pointer,
                to: (index, seen),
                held,
            };
            match self.aspect {
                Aspect::Leads => link.leads(verdicts),
                Aspect::Numbered => link.numbered(verdicts),
            }
        }
    }

    #[cfg(test)]
    fn examples() -> Vec<Example> {
        let path = json!({"FlowSid": sid("FW", "1"), "ExecutionSid": sid("FN", "1")});
        let shown = |scene: &ExampleBuilder, number: usize, digit: &str| {
            let step = json!({
                "sid": sid("FT", digit), "flow_sid": sid("FW", "1"), "execution_sid": sid("FN", "1"),
            });
            let before = (number > 0).then_some("before");
            let meta = json!({
                "page": number, "page_size": 1, "key": "steps", "url": "this", "first_page_url": "first",
                "previous_page_url": before, "next_page_url": "after",
            });
            let sent = path.clone();
            scene.answered("read-steps", sent, json!({"meta": meta, "steps": [step]}))
        };
        let first = |aspect: &str| {
            let parameters = json!({"of": "flow/read-steps", "aspect": aspect});
            shown(&Example::for_rule("flow", parameters), 0, "1")
        };
        let walked = |aspect: &str| {
            let second = shown(&first(aspect), 1, "2").via(0, NEXT);
            shown(&second, 2, "3").via(1, NEXT)
        };
        let (leads, numbered) = (walked("leads"), first("numbered"));
        // The first page is read again at the end.
        let back = |digit: &str, again: &str| {
            let previous = shown(&leads, 1, digit).via(2, PREVIOUS);
            shown(&previous, 0, again)
        };
        let to_first = shown(&leads, 2, "3").via(2, FIRST);
        let next = |number: usize| {
            let next = shown(&numbered, number, "2").via(0, NEXT);
            next.at("/v1/Steps?Page=1")
        };
        vec![
            back("2", "1").passes(),
            back("1", "1").fails(PREVIOUS),
            shown(&to_first, 0, "1").fails(FIRST),
            leads
                .refused("read-steps", path.clone())
                .via(1, ITSELF)
                .fails(ITSELF),
            // A step was added meanwhile.
            back("1", "9").not_judged(),
            next(1).passes(),
            next(0).fails("/meta/page"),
            walked("numbered").not_judged(),
        ]
    }
}

/// If it is another one: the page that a page contains in place of another one, and the first item that differs: its number, the expected and the
/// actual key.
type OtherPage = Option<(&'static str, (usize, String, String))>;

/// A link from a page that was followed.
struct Link<'c> {
    context: &'c Context<'c>,
    from: (usize, &'c Seen<'c>),
    pointer: &'c str,
    to: (usize, &'c Seen<'c>),
    held: &'c Held,
}

impl Link<'_> {
    fn site(&self) -> Site {
        Site::answer(self.from.0, self.pointer)
    }

    fn leads(&self, verdicts: &mut Verdicts<'_>) {
        let expected = match self.pointer {
            FIRST => "the first page",
            PREVIOUS => "the page before",
            ITSELF => "this page",
            NEXT => "the page after",
            _ => return,
        };
        let wrong = |actual: &str| Fact {
            kind: "page-url",
            expected: expected.to_owned(),
            actual: actual.to_owned(),
            message: format!("{} leads to {actual} instead of {expected}", self.pointer),
        };
        let (index, to) = self.to;
        let nowhere = to
            .exchange
            .status()
            .is_some_and(|s| s == 404 || s == 410 || s == 400);
        if nowhere && self.pointer != NEXT && !self.is_open(self.from.0) {
            let sites = [Site::Exchange(index), self.site()];
            verdicts.conclude(sites, Some(wrong("nothing")));
            return;
        }
        let same_list = to.exchange.operation == self.from.1.exchange.operation;
        if to.acceptance != Acceptance::Accepted || (!same_list && to.operation.is_none()) {
            return;
        }
        if !same_list || self.is_elsewhere() {
            let sites = [Site::Exchange(index), self.site()];
            verdicts.conclude(sites, Some(wrong("another list")));
            return;
        }
        let size = "/meta/page_size";
        let sizes = self.from.1.value(size).zip(to.value(size));
        if sizes.is_some_and(|(before, after)| !json::equal(before, after)) {
            let sites = [Site::answer(index, size), self.site()];
            let fact = wrong("one of another size");
            verdicts.conclude(sites, Some(fact));
            return;
        }
        let Some(other) = self.compared() else {
            verdicts.record_vacuous(Vacuity::Alone);
            return;
        };
        let wrong = other.map(|(actual, (item, wanted, got))| Fact {
            expected: format!("{expected}, whose item {item} is {wanted}"),
            actual: format!("{actual}, whose item {item} is {got}"),
            ..wrong(actual)
        });
        let mut shown = self.context.representations.iter();
        let first = shown.find(|r| r.exchange == Some(index));
        let held = first.map_or(Site::Exchange(index), |first| {
            first.site(self.key_of(first))
        });
        verdicts.conclude([held, self.site()], wrong);
    }

    /// Where an item has its key.
    fn key_of(&self, item: &Representation<'_>) -> &str {
        let key = self
            .context
            .identity(item.kind)
            .and_then(|identity| identity.key.last());
        key.map_or("", String::as_str)
    }

    /// What it contains, compared with what it should contain; `None` if either is unknown.
    fn compared(&self) -> Option<OtherPage> {
        let (context, history) = (self.context, &self.context.history);
        let (at, from) = history.page_of(context, self.from.0)?;
        let list = &history.lists[at];
        let place = match self.pointer {
            FIRST => 0,
            PREVIOUS => from.checked_sub(1)?,
            ITSELF => from,
            _ => from + 1,
        };
        let page = *list.pages.get(place).filter(|page| **page != self.to.0)?;
        let (wanted, got) = (self.held.get(&page)?, self.held.get(&self.to.0)?);
        let is_known =
            |page: &[Option<ResourceId>]| !page.is_empty() && page.iter().all(Option::is_some);
        if !is_known(wanted) || !is_known(got) || self.is_open(page) || !self.is_quiet(at) {
            return None;
        }
        let mut both = wanted.iter().zip(got);
        let Some(differs) = both.position(|(wanted, got)| wanted != got) else {
            return Some(None);
        };
        let key = |item: Option<ResourceId>| {
            item.map_or_else(String::new, |id| history.resources.get(id).key.clone())
        };
        let item = (differs + 1, key(wanted[differs]), key(got[differs]));
        let mut pages = list.pages.iter();
        let other = pages.position(|page| {
            self.held
                .get(page)
                .is_some_and(|held| held[..1.min(held.len())] == got[..1])
        });
        // If other writers exist, only a difference that none of their actions explains is another page.
        let is_own = history.alone
            || list
                .scope()
                .is_some_and(|scope| history.is_exclusive(scope));
        let is_earlier = other.is_some_and(|other| other < place);
        let actual = match other {
            Some(0) => "the first page",
            Some(other) if other == from => "itself",
            Some(_) | None => "another page",
        };
        (is_own || place == 0 || is_earlier).then_some(Some((actual, item)))
    }

    /// Whether something was done since that page was read that may have moved what it holds.
    fn is_open(&self, page: usize) -> bool {
        let history = &self.context.history;
        let (then, now) = (history.moments[page], history.moments[self.to.0]);
        history.writes.iter().any(|write| {
            let between = !write.moment.is_before(&then) && !now.is_before(&write.moment);
            between && write.outcome != Outcome::Refused
        })
    }

    /// Whether the list was begun again later, and its first page was what it had been.
    fn is_quiet(&self, at: usize) -> bool {
        let (context, history) = (self.context, &self.context.history);
        let list = &history.lists[at];
        let sent = &context.seen[list.pages[0]].exchange.sent;
        history.lists[at + 1..].iter().any(|again| {
            let first = again.pages[0];
            again.from_start
                && first > self.to.0
                && again.operation.id == list.operation.id
                && again.operation.service == list.operation.service
                && context.seen[first].exchange.sent == *sent
                && self.held.get(&first) == self.held.get(&list.pages[0])
        })
    }

    /// Whether it leads below another parent.
    fn is_elsewhere(&self) -> bool {
        let bound = &self.context.history.path_bindings;
        let (ours, others) = (&bound[self.from.0].parents, &bound[self.to.0].parents);
        let mut pairs = ours.iter().zip(others);
        pairs.any(|(ours, other)| ours.zip(*other).is_some_and(|(ours, other)| ours != other))
    }

    fn numbered(&self, verdicts: &mut Verdicts<'_>) {
        let (index, to) = self.to;
        let asked = page_in(&to.exchange.request.target);
        let shown = to.value("/meta/page").and_then(Value::as_u64);
        let Some((asked, shown)) = asked.zip(shown).filter(|_| self.pointer == NEXT) else {
            return;
        };
        let fact = (asked != shown).then(|| {
            let expected = format!("{asked}, as the address of the page says");
            Fact::new("page-number", expected, shown.to_string())
        });
        verdicts.conclude(Site::answer(index, "/meta/page"), fact);
    }
}

/// The number that an address asks for.
fn page_in(target: &str) -> Option<u64> {
    let (_, query) = target.split_once('?')?;
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let (_, number) = pairs.find(|(name, _)| name == "Page")?;
    number.parse().ok()
}

fn held_by_page(context: &Context<'_>) -> Held {
    let mut held = Held::new();
    for list in &context.history.lists {
        for &page in &list.pages {
            held.entry(page).or_default();
        }
        for item in &list.items {
            if let Some(page) = context.representations[item.representation].exchange {
                held.entry(page).or_default().push(item.resource);
            }
        }
    }
    held
}
