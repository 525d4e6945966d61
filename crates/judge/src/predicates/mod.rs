//! All predicates, one file each, registered by one line.

mod prelude;
#[cfg(test)]
mod tests;

/// Declares the modules and registers their types, in the order of judging.
macro_rules! predicates {
    ($($name:literal => $module:ident::$type:ident,)*) => {
        $(pub mod $module;)*

        /// All predicates.
        pub(super) const REGISTERED: &[super::predicate::Registration] =
            &[$(super::predicate::Registration::of::<$module::$type>($name),)*];

        /// Their names.
        pub(super) const NAMES: &[&str] = &[$($name,)*];
    };
}

predicates! {
    "story" => story::Story,
    "conforms" => conforms::Conforms,
    "configured" => configured::Configured,
    "at-most-after" => at_most_after::AtMostAfter,
    "present-only-when" => present_only_when::PresentOnlyWhen,
    "echoes" => echoes::Echoes,
    "default" => default::Default,
    "ordered-by" => ordered_by::OrderedBy,
    "filtered-by" => filtered_by::FilteredBy,
    "bounded" => bounded::Bounded,
    "in-format" => in_format::InFormat,
    "plain-json" => plain_json::PlainJson,
    "no-longer-than" => no_longer_than::NoLongerThan,
    "same-resource" => same_resource::SameResource,
    "own-url" => own_url::OwnUrl,
    "dated" => dated::Dated,
    "unique-within" => unique_within::UniqueWithin,
    "increasing-within" => increasing_within::IncreasingWithin,
    "transition" => transition::Transition,
    "timed" => timed::Timed,
    "registers" => registers::Registers,
    "called-by" => called_by::CalledBy,
    "same-phone" => same_phone::SamePhone,
    "present-when" => present_when::PresentWhen,
    "uploaded" => uploaded::Uploaded,
    "file-link" => file_link::FileLink,
    "one-spelling" => one_spelling::OneSpelling,
    "links-for-each" => links_for_each::LinksForEach,
    "told" => told::Told,
    "carries" => carries::Carries,
    "announces" => announces::Announces,
    "one-message" => one_message::OneMessage,
    "one-instant" => one_instant::OneInstant,
    "initial" => initial::Initial,
    "refuses" => refuses::Refuses,
    "leads" => leads::Leads,
    "binds" => binds::Binds,
    "follows" => follows::Follows,
    "takes-part" => takes_part::TakesPart,
    "agrees" => agrees::Agrees,
    "filtered" => filtered::Filtered,
    "counts" => counts::Counts,
    "rest-stays" => rest_stays::RestStays,
    "own-parent" => own_parent::OwnParent,
    "refers-within" => refers_within::RefersWithin,
    "named" => named::Named,
    "listed" => listed::Listed,
    "gone" => gone::Gone,
    "refused-leaves-nothing" => refused_leaves_nothing::RefusedLeavesNothing,
    "refused-name" => refused_name::RefusedName,
    "empty-answer" => empty_answer::EmptyAnswer,
    "immutable" => immutable::Immutable,
    "pages" => pages::Pages,
    "kept" => kept::Kept,
    "made-with" => made_with::MadeWith,
    "moved" => moved::Moved,
    "others-stay" => others_stay::OthersStay,
    "same-everywhere" => same_everywhere::SameEverywhere,
}
