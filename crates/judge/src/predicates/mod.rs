//! All predicates, one file each, registered by one line.
//!
//! A predicate may have several forms. A parameter in brackets selects its form.

mod prelude;
#[cfg(test)]
mod tests;

/// Declares the modules and registers their types, in the order of judging.
macro_rules! predicates {
    ($($name:literal $([$key:literal])? => $module:ident::$type:ident,)*) => {
        $(pub mod $module;)*

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
    "field-presence" ["otherwise"] => field_presence::FieldPresence,
    "parameter-echo" => parameter_echo::ParameterEcho,
    "parameter-echo" ["default"] => parameter_default::ParameterDefault,
    "order" ["direction"] => list_order::ListOrder,
    "list-filter" ["parameter"] => list_filter::ListFilter,
    "list-size" => list_size::ListSize,
    "response-format" ["parameter"] => requested_format::RequestedFormat,
    "response-format" => plain_json::PlainJson,
    "immutable" ["key"] => immutable_by_key::ImmutableByKey,
    "unique-value" ["kinds"] => unique_url::UniqueUrl,
    "time-difference" ["kinds"] => creation_times::CreationTimes,
    "unique-value" ["scope"] => unique_value::UniqueValue,
    "order" ["scope"] => creation_order::CreationOrder,
    "state-transition" ["steps"] => state_transition::StateTransition,
    "state-transition" ["aspect"] => state_timer::StateTimer,
    "token-registration" => token_registration::TokenRegistration,
    "callback-method" => callback_method::CallbackMethod,
    "registration-identity" => registration_identity::RegistrationIdentity,
    "field-presence" => field_required_when::FieldRequiredWhen,
    "uploaded-file" => uploaded_file::UploadedFile,
    "link-target" ["aspects"] => file_link::FileLink,
    "consistent-spelling" => consistent_spelling::ConsistentSpelling,
    "link-target" => links_present::LinksPresent,
    "event-emitted" => event_emitted::EventEmitted,
    "event-fields" ["of"] => event_fields::EventFields,
    "event-fields" ["aspect"] => event_schema_address::EventSchemaAddress,
    "event-fields" ["recipient"] => event_fields_agree::EventFieldsAgree,
    "event-fields" ["message"] => event_messages_differ::EventMessagesDiffer,
    "event-fields" ["type"] => event_payload::EventPayload,
    "immutable" ["at"] => immutable_instant::ImmutableInstant,
    "initial-value" => initial_value::InitialValue,
    "rejects-parameter" => rejects_parameter::RejectsParameter,
    "link-target" ["to"] => link_target::LinkTarget,
    "unique-name" => unique_name::UniqueName,
    "state-transition" ["after"] => state_after_hook::StateAfterHook,
    "membership" => membership::Membership,
    "referenced-fields" => referenced_fields::ReferencedFields,
    "list-filter" ["filters"] => list_filter_complete::ListFilterComplete,
    "resource-count" => resource_count::ResourceCount,
    "other-fields-unchanged" => other_fields_unchanged::OtherFieldsUnchanged,
    "parent-scope" ["of"] => parent_scope::ParentScope,
    "parent-scope" ["to"] => reference_scope::ReferenceScope,
    "parent-scope" ["other"] => reference_to_other::ReferenceToOther,
    "lookup-by-name" => lookup_by_name::LookupByName,
    "list-complete" => list_complete::ListComplete,
    "deleted-is-absent" => deleted_is_absent::DeletedIsAbsent,
    "rejected-create" ["of"] => rejected_create::RejectedCreate,
    "rejected-create" ["path"] => rejected_name::RejectedName,
    "response-format" ["of"] => empty_response::EmptyResponse,
    "immutable" => immutable::Immutable,
    "page-links" => page_links::PageLinks,
    "write-persists" ["of"] => write_persists::WritePersists,
    "write-persists" ["operation"] => created_with::CreatedWith,
    "updated-at-advances" => updated_at_advances::UpdatedAtAdvances,
    "other-resources-unchanged" => other_resources_unchanged::OtherResourcesUnchanged,
    "consistent-reads" => consistent_reads::ConsistentReads,
    "account-scope" => account_scope::AccountScope,
}
