//! Lists of chat: keys, page sizes and filters. `listing` cuts the pages.

use super::table::Table;
use crate::listing::{Listing, Order};
use crate::{Answer, Call, Core, Fault, Refusal, Variant};
use conformant_base::clock::Timestamp;
use serde_json::Value;

/// The other maximum that D2 gives for user channels.
const USER_CHANNELS_OTHER_MAX: u64 = 50;

/// A query parameter that filters a list and may be repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    name: &'static str,
    /// Allowed values; empty for any text.
    values: &'static [&'static str],
    /// Fault: it has no effect.
    ignored: Fault,
    /// Fault: only its first value counts.
    first_only: Fault,
}

/// Binding types (D2, Endpoints: User binding).
pub(super) const BINDING_TYPES: &[&str] = &["gcm", "apn", "fcm"];

/// `Identity` of a channel's members.
pub(super) const MEMBERS_IDENTITY: Filter = Filter {
    name: "Identity",
    values: &[],
    ignored: Fault::ChatReadMembersIdentityIgnored,
    first_only: Fault::ChatReadMembersIdentityFirstOnly,
};
/// `Identity` of a service's bindings.
pub(super) const BINDINGS_IDENTITY: Filter = Filter {
    name: "Identity",
    values: &[],
    ignored: Fault::ChatReadBindingsIdentityIgnored,
    first_only: Fault::ChatReadBindingsIdentityFirstOnly,
};
/// `BindingType` of a service's bindings.
pub(super) const BINDINGS_TYPE: Filter = Filter {
    name: "BindingType",
    values: BINDING_TYPES,
    ignored: Fault::ChatReadBindingsTypeIgnored,
    first_only: Fault::ChatReadBindingsTypeFirstOnly,
};
/// `BindingType` of a user's bindings.
pub(super) const USER_BINDINGS_TYPE: Filter = Filter {
    name: "BindingType",
    values: BINDING_TYPES,
    ignored: Fault::ChatReadUserBindingsTypeIgnored,
    first_only: Fault::ChatReadUserBindingsTypeFirstOnly,
};

impl Filter {
    /// The requested values; empty without a filter.
    pub(super) fn wanted<'a>(&self, core: &Core, call: &'a Call<'_>) -> Vec<&'a str> {
        let mut wanted: Vec<&str> = call
            .query
            .0
            .iter()
            .filter(|(name, _)| name == self.name)
            .map(|(_, value)| value.as_str())
            .collect();
        let is_later = call.query.has("PageToken") && !wanted.is_empty();
        if core.fails(self.ignored) || (is_later && core.fails(Fault::ChatFirstPageFiltered)) {
            wanted.clear();
        }
        if core.fails(self.first_only) {
            wanted.truncate(1);
        }
        if wanted.len() > 2 && core.fails(Fault::ChatThirdFilterValueIgnored) {
            wanted.truncate(2);
        }
        wanted
    }

    /// Refuses undocumented values.
    pub(super) fn check(&self, core: &Core, call: &Call<'_>) -> Result<(), Refusal> {
        let foreign = |value: &&str| !self.values.is_empty() && !self.values.contains(value);
        match self.wanted(core, call).into_iter().find(foreign) {
            Some(_) if core.varies(Variant::ChatForeignTypeFindsNothing) => Ok(()),
            Some(_) => Err(Refusal::bad_parameter(
                self.name,
                &format!("one of {}", self.values.join(", ")),
            )),
            None => Ok(()),
        }
    }
}

/// True if an item of that age is listed; no document defines a delay.
pub(super) fn is_listed(core: &Core, made: Timestamp) -> bool {
    let is_young = core.now.duration_since(made).as_secs() < 5;
    !(is_young && core.varies(Variant::ChatListsLag))
}

/// The parameters as pairs, for page links.
pub(super) fn filters(call: &Call<'_>, of: &[Filter]) -> Vec<(String, String)> {
    call.query
        .0
        .iter()
        .filter(|(name, _)| of.iter().any(|filter| filter.name == name))
        .cloned()
        .collect()
}

/// A list without filters.
pub(super) fn list<'a>(core: &Core, key: &'a str, url: String) -> Listing<'a> {
    let order = if core.varies(Variant::ChatNewestFirst) {
        Order::Descending
    } else {
        Order::Ascending
    };
    Listing::new(key, url, order)
}

/// Returns the requested page of all rows.
pub(super) fn all<T: Clone>(
    core: &Core,
    call: &Call<'_>,
    (key, url): (&str, String),
    rows: &Table<T>,
    show: impl Fn(&T) -> Value,
) -> Answer {
    let items = rows.iter().map(|(sequence, row)| (sequence, || show(row)));
    list(core, key, url).page(core, call, items)
}

/// The list of a user's channels, for which D2 gives two largest pages.
pub(super) fn user_channels(
    core: &Core,
    call: &Call<'_>,
    url: String,
) -> Result<Listing<'static>, Refusal> {
    let mut list = list(core, "channels", url);
    let asked = call
        .query
        .get("PageSize")
        .and_then(|size| size.parse().ok());
    if core.varies(Variant::ChatUserChannelPagesOver50Refused)
        && asked.is_some_and(|size: u64| size > USER_CHANNELS_OTHER_MAX)
    {
        return Err(Refusal::bad_parameter("PageSize", "at most 50"));
    }
    if core.varies(Variant::ChatUserChannelPagesOf50) {
        list.page_size_max = USER_CHANNELS_OTHER_MAX;
    }
    Ok(list)
}
