//! Every predicate, one file each, registered by one line.

mod prelude;
#[cfg(test)]
mod tests;

/// Declares the modules and lists their types, in the order in which they judge.
macro_rules! predicates {
    ($($module:ident::$name:ident,)*) => {
        $(pub mod $module;)*

        /// Every predicate.
        pub(super) const ENTRIES: &[super::predicate::Entry] =
            &[$(super::predicate::Entry::of::<$module::$name>(),)*];

        /// Their names.
        pub(super) const NAMES: &[&str] =
            &[$(<$module::$name as super::predicate::Predicate>::NAME,)*];
    };
}

predicates! {
    story::Story,
    conforms::Conforms,
    configured::Configured,
    at_most_after::AtMostAfter,
    present_only_when::PresentOnlyWhen,
    echoes::Echoes,
    default::Default,
    ordered_by::OrderedBy,
    filtered_by::FilteredBy,
    bounded::Bounded,
    in_format::InFormat,
    plain_json::PlainJson,
    no_longer_than::NoLongerThan,
    same_resource::SameResource,
    own_url::OwnUrl,
    dated::Dated,
    unique_within::UniqueWithin,
    increasing_within::IncreasingWithin,
    transition::Transition,
    timed::Timed,
    registers::Registers,
    called_by::CalledBy,
    same_phone::SamePhone,
    present_when::PresentWhen,
    uploaded::Uploaded,
    file_link::FileLink,
    one_spelling::OneSpelling,
    links_for_each::LinksForEach,
    told::Told,
    carries::Carries,
    announces::Announces,
    one_message::OneMessage,
    one_instant::OneInstant,
    initial::Initial,
    refuses::Refuses,
    leads::Leads,
    binds::Binds,
    follows::Follows,
    takes_part::TakesPart,
    agrees::Agrees,
    filtered::Filtered,
    counts::Counts,
    rest_stays::RestStays,
    own_parent::OwnParent,
    refers_within::RefersWithin,
    named::Named,
    listed::Listed,
    gone::Gone,
    refused_leaves_nothing::RefusedLeavesNothing,
    refused_name::RefusedName,
    empty_answer::EmptyAnswer,
    immutable::Immutable,
    pages::Pages,
    kept::Kept,
    made_with::MadeWith,
    moved::Moved,
    others_stay::OthersStay,
    same_everywhere::SameEverywhere,
}
