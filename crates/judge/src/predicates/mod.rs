//! All predicates, each in the file or folder of its name, registered by one line for each form.
//!
//! The parameter in brackets selects a form.

mod account_scope;
mod callback_method;
mod conforms;
mod consistent_reads;
mod consistent_spelling;
mod deleted_is_absent;
mod event_emitted;
mod event_fields;
mod feed;
mod field_presence;
mod immutable;
mod initial_value;
mod link_target;
mod list_complete;
mod list_filter;
mod list_size;
mod lookup_by_name;
mod matches_configuration;
mod membership;
mod order;
mod other_fields_unchanged;
mod other_resources_unchanged;
mod page_links;
pub(super) mod parameter_echo;
mod parent_scope;
mod prelude;
mod referenced_fields;
mod registration_identity;
mod rejected_create;
mod rejects_parameter;
mod resource_count;
mod response_format;
mod scenario;
mod state_transition;
#[cfg(test)]
mod tests;
mod time_difference;
mod token_registration;
mod unique_name;
mod unique_value;
mod updated_at_advances;
mod uploaded_file;
mod write_persists;

/// Registers the types, in the order of judging.
macro_rules! predicates {
    ($($name:literal $([$key:literal])? => $module:ident::$type:ident,)*) => {
        /// All predicates.
        pub(super) const REGISTERED: &[super::predicate::Registration] =
            &[$(super::predicate::Registration::new::<$module::$type>($name, &[$($key)?]),)*];
    };
}

predicates! {
    "scenario" => scenario::Scenario,
    "conforms" => conforms::Conforms,
    "matches-configuration" => matches_configuration::MatchesConfiguration,
    "time-difference" ["seconds"] => time_difference::TimeDifference,
    "parameter-echo" => parameter_echo::ParameterEcho,
    "order" ["direction"] => order::ListOrder,
    "list-filter" ["parameter"] => list_filter::ListFilter,
    "list-size" => list_size::ListSize,
    "response-format" ["parameter"] => response_format::RequestedFormat,
    "response-format" => response_format::PlainJson,
    "immutable" ["key"] => immutable::ImmutableByKey,
    "unique-value" ["kinds"] => unique_value::UniqueUrl,
    "time-difference" ["kinds"] => time_difference::CreationTimes,
    "unique-value" ["scope"] => unique_value::UniqueValue,
    "order" ["scope"] => order::CreationOrder,
    "state-transition" ["steps"] => state_transition::StateTransition,
    "state-transition" ["aspect"] => state_transition::StateTimer,
    "token-registration" => token_registration::TokenRegistration,
    "callback-method" => callback_method::CallbackMethod,
    "registration-identity" => registration_identity::RegistrationIdentity,
    "field-presence" => field_presence::FieldPresence,
    "uploaded-file" => uploaded_file::UploadedFile,
    "link-target" ["aspects"] => link_target::FileLink,
    "consistent-spelling" => consistent_spelling::ConsistentSpelling,
    "link-target" => link_target::LinksPresent,
    "event-emitted" => event_emitted::EventEmitted,
    "event-fields" ["of"] => event_fields::EventFields,
    "event-fields" ["aspect"] => event_fields::EventSchemaAddress,
    "event-fields" ["recipient"] => event_fields::EventFieldsAgree,
    "event-fields" ["message"] => event_fields::EventMessagesDiffer,
    "event-fields" ["type"] => event_fields::EventPayload,
    "immutable" ["at"] => immutable::ImmutableInstant,
    "initial-value" => initial_value::InitialValue,
    "rejects-parameter" => rejects_parameter::RejectsParameter,
    "link-target" ["to"] => link_target::LinkTarget,
    "unique-name" => unique_name::UniqueName,
    "state-transition" ["after"] => state_transition::StateAfterHook,
    "membership" => membership::Membership,
    "referenced-fields" => referenced_fields::ReferencedFields,
    "list-filter" ["filters"] => list_filter::ListFilterComplete,
    "resource-count" => resource_count::ResourceCount,
    "other-fields-unchanged" => other_fields_unchanged::OtherFieldsUnchanged,
    "parent-scope" ["of"] => parent_scope::ParentScope,
    "parent-scope" ["to"] => parent_scope::ReferenceScope,
    "parent-scope" ["other"] => parent_scope::ReferenceToOther,
    "lookup-by-name" => lookup_by_name::LookupByName,
    "list-complete" => list_complete::ListComplete,
    "deleted-is-absent" => deleted_is_absent::DeletedIsAbsent,
    "rejected-create" ["of"] => rejected_create::RejectedCreate,
    "rejected-create" ["path"] => rejected_create::RejectedName,
    "response-format" ["of"] => response_format::EmptyResponse,
    "immutable" => immutable::Immutable,
    "page-links" => page_links::PageLinks,
    "write-persists" ["of"] => write_persists::WritePersists,
    "write-persists" ["operation"] => write_persists::CreatedWith,
    "updated-at-advances" => updated_at_advances::UpdatedAtAdvances,
    "other-resources-unchanged" => other_resources_unchanged::OtherResourcesUnchanged,
    "consistent-reads" => consistent_reads::ConsistentReads,
    "account-scope" => account_scope::AccountScope,
}
